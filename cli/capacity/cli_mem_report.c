#include "cli/capacity/cli_mem_report.h"

#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli_table.h"
#include "cli/reports/cli_breakdown.h"
#include "models/job/parallel_memory.h"
#include "models/jobs/jobs_file.h"
#include "models/network/network_t5.h"

static const char *const verdict_names[FEASIBILITY_VERDICTS] = {
    [FEASIBILITY_YES] = "fits",
    [FEASIBILITY_DEVICE] = "device-memory",
    [FEASIBILITY_HOST] = "host-memory",
    [FEASIBILITY_STORAGE] = "storage",
    [FEASIBILITY_IMPOSSIBLE] = "impossible",
};

static const char *const assumptions[] = {
    "each way is planned with two minibatches and shows that plan's memory; AT LEAST is the least device memory",
    "MINIBATCH is simulated: half of the time that two more minibatches add to that plan",
    "spilled ways use all memory of a device: longer runs may keep more states there",
    "ways on one device, stages, and parallel jobs that can be carried out, as the executor lays them out:",
    "activations (16 bits in bf16 jobs) and gradients of weights in fp32",
    "other ways over several devices (dp, tp, pp) as published: jobs in bf16 have activations of 16 bits,",
    "and attention's weights are kept unless recomputed",
    "no dropout; samples are as long as the sequence; nothing else runs on the devices",
};
static const char *const not_modelled[] = {
    "memory of the driver beyond the unusable part, buffers of communication libraries, fragmentation of",
    "caching allocators (simulate --caching-allocator); the host's operating system, file caches, data loaders",
};

static uint64_t margin_of(uint64_t need, uint64_t have) { return need > have ? need - have : have - need; }

const char *cli_mem_verdict(const struct cli_mem *mem, uint32_t way, char text[CLI_MEM_VERDICT_BYTES])
{
    const struct feasibility *f = &mem->fits[way];
    const struct feasibility_memory have = feasibility_memory_of(mem->hardware, &mem->ways[way]);
    bool several = hardware_host_count(mem->hardware) > 1;
    char bytes[QUANTITY_TEXT_BYTES];
    const struct {
        const char *who;
        uint64_t need, have;
    } of[] = {[FEASIBILITY_YES] = {"", 0, 0},
              [FEASIBILITY_DEVICE] = {"a device", f->least_bytes, have.device_bytes},
              [FEASIBILITY_HOST] = {several ? "a node's host" : "the host", f->host_bytes, have.host_bytes},
              [FEASIBILITY_STORAGE] = {several ? "a node's storage" : "storage", f->stored_bytes, have.storage_bytes}};
    if (f->verdict == FEASIBILITY_YES) snprintf(text, CLI_MEM_VERDICT_BYTES, "yes");
    else if (f->verdict == FEASIBILITY_IMPOSSIBLE) snprintf(text, CLI_MEM_VERDICT_BYTES, "%s", f->reason);
    else
        snprintf(text, CLI_MEM_VERDICT_BYTES, "%s lacks %s", of[f->verdict].who,
                 quantity_text((double)margin_of(of[f->verdict].need, of[f->verdict].have), DIMENSION_BYTES, bytes));
    return text;
}

/* --- text ------------------------------------------------------------------------------------- */

static void print_sourced(FILE *out, const char *what, const struct sourced_value *sourced)
{
    char text[QUANTITY_TEXT_BYTES];
    fprintf(out, "%s (%s: %s)", quantity_text(sourced->value, DIMENSION_BYTES, text), source_kind_names[sourced->kind],
            sourced->source ? sourced->source : what);
}

/* Returns the largest tensor of embedding, block and head. */
static struct tensor_spec largest_tensor(const struct network *n)
{
    struct tensor_spec largest = {0}, specs[LAYER_TENSORS_MAX];
    const uint64_t layers[] = {0, n->layer_count > 2 ? 1 : 0, n->layer_count - 1};
    for (size_t i = 0; i < ARRAY_COUNT(layers) && n->family != NETWORK_PROFILE; i++) {
        uint32_t count = network_layer_tensors(n, layers[i], specs);
        for (uint32_t t = 0; t < count; t++)
            if (specs[t].elements > largest.elements) largest = specs[t];
    }
    return largest;
}

enum { TRAINED_BYTES = QUANTITY_TEXT_BYTES + 16 };

/* Writes ", 3.2 million trained"; "" if all are. */
static const char *trained_text(const struct network *n, char out[TRAINED_BYTES])
{
    char count[QUANTITY_TEXT_BYTES];
    if (!n->trained) return "";
    snprintf(out, TRAINED_BYTES, ", %s trained",
             quantity_text((double)network_trained_parameters(n), DIMENSION_COUNT_OF, count));
    return out;
}

static void print_head(FILE *out, const struct cli_mem *mem)
{
    const struct job *job = mem->job;
    const struct network *n = &job->network;
    const struct device_type *type = &mem->hardware->types[mem->hardware->devices[0].type];
    const struct tensor_spec largest = largest_tensor(n);
    uint32_t hosts = hardware_host_count(mem->hardware);
    char count[QUANTITY_TEXT_BYTES], usable[QUANTITY_TEXT_BYTES], nominal[QUANTITY_TEXT_BYTES],
        bytes[QUANTITY_TEXT_BYTES];
    char trained[TRAINED_BYTES];
    fprintf(out,
            "%s (%s): %s parameters in %" PRIu64 " layers%s\n"
            "job       microbatch %" PRIu64 ", %" PRIu64 " to a minibatch, %s %" PRIu64,
            cli_network_label(n->name), network_family_names[n->family],
            quantity_text((double)network_parameters(n), DIMENSION_COUNT_OF, count), n->layer_count,
            trained_text(n, trained), job->microbatch,
            job->microbatches, n->graph && n->image > 0 ? "image" : "sequence",
            n->graph && n->image > 0 ? n->image : job->sequence);
    uint64_t decoder = network_decoder_tokens(n, job->sequence);
    if (decoder > 0) fprintf(out, ", %" PRIu64 " of the decoder", decoder);
    fprintf(out, ", %s, %s\n", precision_names[job->precision], optimizer_names[job->optimizer.kind]);
    fprintf(out, "devices   %" PRIu32 " x '%s', %s usable of %s", mem->hardware->device_count, type->name,
            quantity_text((double)mem->hardware->devices[0].memory_bytes, DIMENSION_BYTES, usable),
            quantity_text(type->memory_bytes.value, DIMENSION_BYTES, nominal));
    if (type->usable_bytes.source)
        fprintf(out, " (%s: %s)", source_kind_names[type->usable_bytes.kind], type->usable_bytes.source);
    fputs("\nhost      ", out);
    print_sourced(out, "host", &mem->hardware->host_bytes);
    if (hosts > 1)
        fprintf(out, " of %" PRIu32 " nodes, %s each; what follows is of the fullest", hosts,
                quantity_text((double)hardware_host_bytes(mem->hardware), DIMENSION_BYTES, bytes));
    if (hardware_has_storage(mem->hardware)) {
        fputs("\nstorage   ", out);
        print_sourced(out, "storage", &mem->hardware->storage.capacity_bytes);
    }
    if (largest.elements > 0)
        fprintf(out, "\nlargest   tensor '%s', %s in fp32", largest.name,
                quantity_text((double)largest.elements * 4, DIMENSION_BYTES, bytes));
    fputs("\n\n", out);
}

/* Adds "60 blocks", and such a network's parameters. */
static void largest_cells(struct cli_table *table, const struct feasibility_largest *largest)
{
    char count[QUANTITY_TEXT_BYTES];
    if (largest->blocks == 0) cli_table_cell(table, "none");
    else cli_table_cell(table, "%" PRIu64 " block%s", largest->blocks, largest->blocks > 1 ? "s" : "");
    cli_table_cell(table, "%s",
                   largest->blocks == 0 ? "-"
                                        : quantity_text((double)largest->parameters, DIMENSION_COUNT_OF, count));
}

static void way_cells(struct cli_table *table, const struct cli_mem *mem, uint32_t i)
{
    const struct feasibility_way *way = &mem->ways[i];
    const struct feasibility *f = &mem->fits[i];
    char text[CLI_MEM_VERDICT_BYTES], margin[QUANTITY_TEXT_BYTES], seconds[QUANTITY_TEXT_BYTES];
    uint64_t usable = feasibility_usable_bytes(mem->hardware, way);
    bool known = f->verdict != FEASIBILITY_IMPOSSIBLE;
    cli_table_cell(table, "%s", way->name);
    cli_table_cell(table, "%" PRIu32, way->devices);
    if (f->verdict != FEASIBILITY_YES) cli_table_cell(table, "-");
    else cli_table_cell(table, "%s", quantity_text(mem->times[i].minibatch_s, DIMENSION_SECONDS, seconds));
    cli_table_bytes(table, known ? f->least_bytes : 0);
    cli_table_bytes(table, known ? f->device_bytes : 0);
    cli_table_bytes(table, known ? f->host_bytes : 0);
    cli_table_bytes(table, known ? f->stored_bytes : 0);
    if (!known) cli_table_cell(table, "-");
    else
        cli_table_cell(table, "%s%s", f->least_bytes > usable ? "-" : "+",
                       quantity_text((double)margin_of(f->least_bytes, usable), DIMENSION_BYTES, margin));
    cli_table_cell(table, "%s", known ? cli_mem_verdict(mem, i, text) : "never");
    cli_table_cell(table, "%s", f->verdict == FEASIBILITY_YES ? mem->times[i].binds : "-");
    if (mem->largest) largest_cells(table, &mem->largest[i]);
}

/* Prints each reason once. */
static void print_reasons(FILE *out, const struct cli_mem *mem)
{
    const char *last = "";
    for (uint32_t n = 0; n < mem->count; n++) {
        uint32_t i = mem->order[n];
        const struct feasibility *f = &mem->fits[i];
        if (f->verdict != FEASIBILITY_IMPOSSIBLE || (mem->only_chosen && i != mem->chosen) ||
            strcmp(f->reason, last) == 0)
            continue;
        last = f->reason;
        fprintf(out, "\nnever: %s\n", last);
    }
}

static enum status print_ways(FILE *out, const struct cli_mem *mem, struct error *err)
{
    struct cli_table table;
    cli_table_begin(&table, (const char *const[]){"WAY", ">DEVICES", ">MINIBATCH", ">AT LEAST", ">DEVICE", ">HOST",
                                                  ">STORAGE", ">MARGIN", "FITS", "BOUND BY",
                                                  mem->largest ? ">LARGEST" : NULL, ">PARAMETERS", NULL});
    for (uint32_t n = 0; n < mem->count; n++)
        if (!mem->only_chosen || mem->order[n] == mem->chosen) way_cells(&table, mem, mem->order[n]);
    return cli_table_end(&table, out, err);
}

/* Returns true if `plan` chooses this way, or another only because `run` cannot carry it out. */
static bool is_fastest(const struct cli_mem *mem)
{
    return !mem->planned.any || strcmp(mem->planned.way, mem->ways[mem->chosen].name) == 0 ||
           mem->planned.run_s > mem->planned.other_s;
}

/* Prints the choice of `plan`, which tries more ways, or only runnable ways if plans can be run. */
static void print_planned(FILE *out, const struct cli_mem *mem)
{
    const struct cli_planned *planned = &mem->planned;
    const char *chosen = mem->ways[mem->chosen].name;
    char text[QUANTITY_TEXT_BYTES];
    if (!planned->any) return;
    fprintf(out, "\nplan picks  %s: %s for %d minibatches", planned->way,
            quantity_text(planned->run_s, DIMENSION_SECONDS, text), CLI_PLANNED_RUN);
    if (planned->other_s > 0 && strcmp(planned->way, chosen) != 0)
        fprintf(out, ", and %s %s%s", chosen, quantity_text(planned->other_s, DIMENSION_SECONDS, text),
                planned->other_s < planned->run_s ? ", which 'run' cannot carry out here" : "");
    fputc('\n', out);
}

static enum status print_parts(FILE *out, const struct cli_mem *mem, struct error *err)
{
    const struct feasibility *f = &mem->fits[mem->chosen];
    fprintf(out, "\n%s%s, at the peak of the fullest device: %s\n\n", mem->ways[mem->chosen].name,
            mem->only_chosen ? ""
            : f->verdict == FEASIBILITY_YES
                ? is_fastest(mem) ? ", the fastest way that fits" : ", the fastest of these ways that fits"
                : ", the way that lacks the least memory",
            f->moment);
    TRY(cli_breakdown_table(out, &f->device, &f->host, err));
    if (f->verdict != FEASIBILITY_YES || f->host_bytes == 0) return STATUS_OK;
    const uint64_t at_a_time = hardware_host_bytes(mem->hardware) / f->host_bytes;
    fprintf(out, "\nhost memory has room for %" PRIu64 " such job%s at a time; other jobs are in files\n", at_a_time,
            at_a_time == 1 ? "" : "s");
    return STATUS_OK;
}

enum status cli_mem_text(struct cli *cli, const struct cli_mem *mem, struct error *err)
{
    print_head(cli->out, mem);
    enum status status = print_ways(cli->out, mem, err);
    if (!status) print_reasons(cli->out, mem);
    if (!status) print_planned(cli->out, mem);
    if (!status && mem->fits[mem->chosen].verdict != FEASIBILITY_IMPOSSIBLE) status = print_parts(cli->out, mem, err);
    if (status) return status;
    for (size_t i = 0; i < ARRAY_COUNT(assumptions); i++)
        fprintf(cli->out, "%s%s\n", i == 0 ? "\nassumed       " : "              ", assumptions[i]);
    for (size_t i = 0; i < ARRAY_COUNT(not_modelled); i++)
        fprintf(cli->out, "%s%s\n", i == 0 ? "not modelled  " : "              ", not_modelled[i]);
    if (mem->fits[mem->chosen].verdict == FEASIBILITY_YES) cli_next_plan(cli, &mem->next);
    return STATUS_OK;
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* Writes the closed form of the states of the stage with the most. */
static void states_json(struct json_out *json, const struct job *job, const struct parallel *parallel)
{
    struct job own = *job;
    struct rank_state most = {0};
    own.parallel = *parallel;
    for (uint32_t stage = 0; stage < parallel->pipeline; stage++) {
        struct rank_state of = parallel_stage_state(&own, stage);
        if (of.weight_bytes + of.gradient_bytes + of.state_bytes >
            most.weight_bytes + most.gradient_bytes + most.state_bytes)
            most = of;
    }
    json_out_object_begin(json, "states", true);
    json_out_u64(json, "weights_bytes", most.weight_bytes);
    json_out_u64(json, "gradients_bytes", most.gradient_bytes);
    json_out_u64(json, "optimizer_bytes", most.state_bytes);
    json_out_u64(json, "all_bytes", most.weight_bytes + most.gradient_bytes + most.state_bytes);
    json_out_object_end(json);
}

static void largest_json(struct json_out *json, const struct feasibility_largest *largest)
{
    json_out_object_begin(json, "largest", true);
    json_out_u64(json, "blocks", largest->blocks);
    json_out_u64(json, "parameter_count", largest->parameters);
    json_out_string(json, "one_more", verdict_names[largest->one_more]);
    json_out_object_end(json);
}

static void way_json(struct json_out *json, const struct cli_mem *mem, uint32_t i)
{
    const struct feasibility *f = &mem->fits[i];
    json_out_object_begin(json, NULL, false);
    json_out_string(json, "way", mem->ways[i].name);
    json_out_u64(json, "devices", mem->ways[i].devices);
    json_out_string(json, "verdict", verdict_names[f->verdict]);
    if (f->verdict == FEASIBILITY_IMPOSSIBLE) {
        json_out_string(json, "reason", f->reason);
    } else {
        json_out_u64(json, "usable_bytes", feasibility_usable_bytes(mem->hardware, &mem->ways[i]));
        json_out_u64(json, "least_bytes", f->least_bytes);
        json_out_u64(json, "device_bytes", f->device_bytes);
        json_out_u64(json, "host_bytes", f->host_bytes);
        if (f->verdict == FEASIBILITY_YES && f->host_bytes > 0)
            json_out_u64(json, "host_jobs", hardware_host_bytes(mem->hardware) / f->host_bytes);
        json_out_u64(json, "storage_bytes", f->stored_bytes);
        if (f->verdict == FEASIBILITY_YES) {
            json_out_double(json, "minibatch_s", mem->times[i].minibatch_s);
            json_out_string(json, "bound_by", mem->times[i].binds);
        }
        json_out_string(json, "peak", f->moment);
        cli_breakdown_object(json, "device", &f->device);
        cli_breakdown_object(json, "host", &f->host);
        if (parallel_is_set(&mem->ways[i].parallel)) states_json(json, mem->job, &mem->ways[i].parallel);
    }
    if (mem->largest) largest_json(json, &mem->largest[i]);
    json_out_object_end(json);
}

static void strings_json(struct json_out *json, const char *key, const char *const *strings, size_t count)
{
    json_out_array_begin(json, key, false);
    for (size_t i = 0; i < count; i++) json_out_string(json, NULL, strings[i]);
    json_out_array_end(json);
}

enum status cli_mem_json(struct cli *cli, const struct cli_mem *mem, struct error *err)
{
    struct json_out *json;
    const struct hardware *h = mem->hardware;
    const struct device_type *type = &h->types[h->devices[0].type];
    TRY(cli_report_begin(cli, "mem", &json, err));
    json_out_string(json, "network", mem->job->network.name);
    json_out_u64(json, "parameter_count", network_parameters(&mem->job->network));
    if (mem->job->network.trained)
        json_out_u64(json, "trained_parameter_count", network_trained_parameters(&mem->job->network));
    job_set_write(mem->job, 1, NULL, json, "jobs");
    json_out_string(json, "machine", h->name);
    json_out_u64(json, "device_count", h->device_count);
    json_out_u64(json, "device_usable_bytes", h->devices[0].memory_bytes);
    json_out_u64(json, "device_nominal_bytes", (uint64_t)type->memory_bytes.value);
    json_out_u64(json, "host_usable_bytes", hardware_host_bytes(h));
    json_out_u64(json, "storage_usable_bytes", hardware_storage_bytes(h));
    json_out_string(json, "chosen", mem->ways[mem->chosen].name);
    if (mem->planned.any) {
        json_out_object_begin(json, "planned", true);
        json_out_string(json, "way", mem->planned.way);
        json_out_u64(json, "minibatches", CLI_PLANNED_RUN);
        json_out_double(json, "makespan_s", mem->planned.run_s);
        if (mem->planned.other_s > 0) json_out_double(json, "chosen_makespan_s", mem->planned.other_s);
        json_out_bool(json, "runnable", mem->planned.runnable);
        json_out_object_end(json);
    }
    json_out_array_begin(json, "ways", false);
    for (uint32_t n = 0; n < mem->count; n++)
        if (!mem->only_chosen || mem->order[n] == mem->chosen) way_json(json, mem, mem->order[n]);
    json_out_array_end(json);
    strings_json(json, "assumptions", assumptions, ARRAY_COUNT(assumptions));
    strings_json(json, "not_modelled", not_modelled, ARRAY_COUNT(not_modelled));
    return cli_report_end(cli, json, err);
}
