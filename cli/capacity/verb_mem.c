/*
 * `mem`: does the training of a network fit a machine, and in which ways? The options become a jobs file in memory,
 * with the defaults, limits and messages of other verbs. Each way (planner/capacity/feasibility_ways.h) is planned,
 * and ways that fit are simulated and ranked.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "base/text/suggest.h"
#include "base/try.h"
#include "cli/capacity/cli_mem_report.h"
#include "cli/common/cli_adapter.h"
#include "cli/common/cli_machine.h"
#include "cli/ways/cli_planned.h"
#include "cli/ways/cli_predict.h"
#include "models/jobs/jobs_file.h"
#include "models/network/network_graph.h"
#include "models/network/network_t5.h"
#include "planner/capacity/what_if.h"

static const char *const gradients_choices[] = {"fp32", "bf16", NULL};
static const char *const optimizer_choices[] = {"adamw", "momentum", "sgd", NULL};

struct mem_request {
    struct cli_machine machine;
    const char *network, *way;
    uint64_t microbatch, microbatches, steps, samples, sequence, decoder_sequence, image; /* 0: the default */
    size_t precision, gradients, optimizer;
    struct cli_adapter adapter;
    bool largest;
};

/* --- the job ---------------------------------------------------------------------------------- */

static void write_optimizer(const struct mem_request *request, struct json_out *json)
{
    const char *kind = optimizer_choices[request->optimizer];
    bool momentum = strcmp(kind, "momentum") == 0;
    json_out_object_begin(json, "optimizer", true);
    json_out_string(json, "kind", momentum ? "sgd" : kind);
    if (momentum) json_out_double(json, "momentum", 0.9);
    json_out_object_end(json);
}

static const char job_name[] = "the command line";

/* Counts replicas: the requested way's, else one per device. */
static enum status count_replicas(const struct mem_request *request, const struct hardware *hardware, uint64_t *out,
                                  struct error *err)
{
    struct parallel parallel = {0};
    *out = hardware->device_count;
    if (!request->way || !strchr(request->way, '=')) return STATUS_OK;
    char degrees[128];
    snprintf(degrees, sizeof degrees, "%.*s", (int)strcspn(request->way, "+"), request->way);
    TRY(parallel_parse_text(degrees, &parallel, err));
    *out = parallel.data;
    return STATUS_OK;
}

/* Counts all replicas' microbatches. */
static enum status count_microbatches(const struct mem_request *request, const struct hardware *hardware, uint64_t *out,
                                      struct error *err)
{
    uint64_t replicas;
    TRY(count_replicas(request, hardware, &replicas, err));
    uint64_t steps = request->steps > 0 ? request->steps : 1;
    *out = request->microbatches > 0 ? request->microbatches : steps * replicas;
    uint64_t samples = *out * request->microbatch;
    bool said = request->steps > 0 || request->microbatches > 0;
    if (request->microbatches > 0 && request->steps > 0 && request->microbatches != steps * replicas)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--gradient-accumulation-steps' is %" PRIu64 " for each of %" PRIu64
                         " replicas, %" PRIu64 " in all (found --microbatches %" PRIu64
                         ", the number for all replicas)",
                         steps, replicas, steps * replicas, request->microbatches);
    if (request->samples == 0 || (said && samples == request->samples)) return STATUS_OK;
    if (said)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--global-batch' is %" PRIu64 " but %" PRIu64 " microbatches of %" PRIu64
                         " are %" PRIu64 " samples", request->samples, *out, request->microbatch, samples);
    if (request->samples % request->microbatch != 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--global-batch' is %" PRIu64 " (expected a multiple of %" PRIu64
                         ", the samples of a microbatch)", request->samples, request->microbatch);
    *out = request->samples / request->microbatch;
    return STATUS_OK;
}

static void write_jobs(const struct mem_request *request, uint64_t microbatches, uint64_t minibatches,
                       struct json_out *json)
{
    json_out_object_begin(json, NULL, true);
    json_out_u64(json, "spillway_jobs", 1);
    json_out_array_begin(json, "jobs", true);
    json_out_object_begin(json, NULL, true);
    json_out_string(json, "network", request->network);
    json_out_u64(json, "microbatch", request->microbatch);
    json_out_u64(json, "microbatches", microbatches);
    json_out_u64(json, "minibatches", minibatches);
    if (request->image > 0) json_out_u64(json, "image_size", request->image);
    if (request->sequence > 0) json_out_u64(json, "sequence", request->sequence);
    if (request->decoder_sequence > 0) json_out_u64(json, "decoder_sequence", request->decoder_sequence);
    json_out_string(json, "precision", precision_names[request->precision]);
    if (request->gradients > 0) json_out_string(json, "gradients", gradients_choices[request->gradients]);
    write_optimizer(request, json);
    cli_adapter_write(&request->adapter, json);
    json_out_object_end(json);
    json_out_array_end(json);
    json_out_object_end(json);
}

/* Takes what was not asked for from the network. */
static void choose_defaults(const struct network *network, struct mem_request *request)
{
    const uint64_t usual = network_usual_sequence(network);
    if (request->sequence == 0 && usual < network->positions) request->sequence = usual;
    if (request->precision == PRECISION_COUNT)
        request->precision = network->in_bf16 ? PRECISION_BF16 : PRECISION_FP32;
}

/* Checks the network first, so that its error has no place in the command line's JSON. */
static enum status check_network(struct mem_request *request, struct error *err)
{
    struct arena arena = {0};
    struct network network = {0};
    enum status status = network_find(request->network, &arena, &network, err);
    if (!status && network_is_limited(&network) && request->sequence > network.positions)
        status = error_set(err, STATUS_BAD_INPUT,
                           "sequence %" PRIu64 " is longer than the %" PRIu64 " positions of '%s'", request->sequence,
                           network.positions, network.name);
    if (!status && request->decoder_sequence > 0)
        status = network_set_decoder(&network, request->sequence, request->decoder_sequence, err);
    if (!status && request->image > 0 && request->image != network.image)
        status = network_for_image(&network, request->image, &arena, &network, err);
    if (!status) choose_defaults(&network, request);
    arena_release(&arena);
    return status;
}

/* Removes "the command line:1:128: " from an error. */
static enum status without_place(struct error *err)
{
    if (strncmp(err->text, job_name, strlen(job_name)) == 0) {
        const char *behind = strstr(err->text, ": ");
        if (behind) memmove(err->text, behind + 2, strlen(behind + 2) + 1);
    }
    return err->status;
}

/* Makes the jobs file, which the caller destroys. */
static enum status write_job(const struct mem_request *request, const struct hardware *hardware, uint64_t minibatches,
                             struct json_input **out, struct error *err)
{
    uint64_t microbatches = 0;
    TRY(count_microbatches(request, hardware, &microbatches, err));
    struct json_out *json = json_out_create(NULL);
    size_t length;
    if (!json) return error_memory(err, "the job", 1);
    write_jobs(request, microbatches, minibatches, json);
    const char *text = json_out_text(json, &length);
    enum status status = json_out_complete(json) ? json_input_parse(job_name, text, length, out, err)
                                                 : error_memory(err, "the job", length);
    json_out_destroy(json);
    return status ? without_place(err) : STATUS_OK;
}

static enum status make_job(const struct mem_request *request, const struct hardware *hardware, uint64_t minibatches,
                            struct job_set *out, struct error *err)
{
    struct json_input *in = NULL;
    TRY(write_job(request, hardware, minibatches, &in, err));
    enum status status = job_set_parse(in, json_input_root(in), ".", out, err);
    json_input_destroy(in);
    return status ? without_place(err) : STATUS_OK;
}

/* --- the next command ------------------------------------------------------------------------- */

enum { NEXT_WORDS_MAX = 24, NEXT_TEXT_BYTES = 40 };

/* Options for the next command, as words. */
struct next_words {
    const char *words[NEXT_WORDS_MAX + 1];
    char texts[NEXT_WORDS_MAX][NEXT_TEXT_BYTES];
    size_t count;
};

static void next_option(struct next_words *out, const char *name, const char *value)
{
    assert(out->count + 2 <= NEXT_WORDS_MAX);
    out->words[out->count++] = name;
    out->words[out->count++] = value;
}

static void next_number(struct next_words *out, const char *name, uint64_t value)
{
    char *text = out->texts[out->count];
    snprintf(text, NEXT_TEXT_BYTES, "%" PRIu64, value);
    next_option(out, name, text);
}

/* Adds a quantity in the largest unit that it is a multiple of. Does nothing if it was not given. */
static void next_quantity(struct next_words *out, const char *name, double value, bool is_rate)
{
    static const char *const sizes[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    static const char *const rates[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
    char *text = out->texts[out->count];
    double step = is_rate ? 1000 : 1024;
    size_t unit = 0;
    if (value < 0) return;
    while (unit + 1 < ARRAY_COUNT(sizes) && value >= step && fmod(value, step) == 0) {
        value /= step;
        unit++;
    }
    snprintf(text, NEXT_TEXT_BYTES, "%.0f%s", value, (is_rate ? rates : sizes)[unit]);
    next_option(out, name, text);
}

/* Options of `jobs new` for the same job. */
static void next_job(const struct mem_request *r, uint64_t microbatches, struct next_words *out)
{
    bool batch = r->samples > 0 || r->steps > 0 || r->microbatches > 0;
    if (r->precision != PRECISION_FP32) next_option(out, "--precision", precision_names[r->precision]);
    if (r->sequence > 0) next_number(out, "--sequence", r->sequence);
    if (r->decoder_sequence > 0) next_number(out, "--decoder-sequence", r->decoder_sequence);
    if (r->image > 0) next_number(out, "--image-size", r->image);
    if (r->microbatch > 1) next_number(out, "--microbatch", r->microbatch);
    if (batch) next_number(out, "--microbatches", microbatches);
    if (r->optimizer > 0) next_option(out, "--optimizer", optimizer_choices[r->optimizer]);
    if (r->gradients > 0) next_option(out, "--gradients", gradients_choices[r->gradients]);
    if (r->adapter.rank > 0) next_number(out, "--lora-rank", r->adapter.rank);
    if (r->adapter.targets) next_option(out, "--lora-targets", r->adapter.targets);
}

/* Options of `plan` for the same machine. */
static void next_machine(const struct cli_machine *m, struct next_words *out)
{
    if (m->devices > 0) next_number(out, "--devices", m->devices);
    next_quantity(out, "--device-memory", m->device_memory_bytes, false);
    next_quantity(out, "--host-memory", m->host_memory_bytes, false);
    next_quantity(out, "--storage-memory", m->storage_bytes, false);
    next_quantity(out, "--storage-rate", m->storage_bytes_per_s, true);
    if (m->stack != STACK_COUNT) next_option(out, "--stack", hardware_stack_names[m->stack]);
}

/* --- the ways --------------------------------------------------------------------------------- */

/* Finds a listed way, or adds one, for which there is room. */
static enum status find_way(struct cli_mem *mem, struct feasibility_way *ways, const char *name, uint32_t *out,
                            struct error *err)
{
    const char *names[FEASIBILITY_WAYS_MAX];
    char ending[SUGGEST_BYTES];
    for (uint32_t i = 0; i < mem->count; i++) {
        names[i] = mem->ways[i].name;
        if (strcmp(names[i], name) != 0) continue;
        *out = i;
        return STATUS_OK;
    }
    *out = mem->count;
    if (strchr(name, '=')) {
        TRY(feasibility_way_parse(mem->hardware, mem->job, name, &ways[mem->count], err));
        mem->count++;
        return STATUS_OK;
    }
    return error_set(err, STATUS_BAD_INPUT, "unknown way '%.64s'%s", name,
                     suggest_ending(name, names, mem->count, ending));
}

/* Weighs a device's shortage more than the host's, and that more than storage's. */
static uint64_t lack_of(const struct feasibility *f)
{
    return f->verdict == FEASIBILITY_DEVICE ? f->least_bytes
         : f->verdict == FEASIBILITY_HOST   ? f->host_bytes
                                            : f->stored_bytes;
}

static bool better(const struct feasibility *a, const struct feasibility *b)
{
    static const int ranks[FEASIBILITY_VERDICTS] = {[FEASIBILITY_YES] = 0,
                                                    [FEASIBILITY_STORAGE] = 1,
                                                    [FEASIBILITY_HOST] = 2,
                                                    [FEASIBILITY_DEVICE] = 3,
                                                    [FEASIBILITY_IMPOSSIBLE] = 4};
    if (a->verdict != b->verdict) return ranks[a->verdict] < ranks[b->verdict];
    return a->verdict != FEASIBILITY_YES && lack_of(a) < lack_of(b);
}

/* Simulates a way's longer plan, for time and bottleneck. */
static enum status simulated_s(void *context, const struct plan *plan, double *seconds, struct error *err)
{
    struct cli_mem_time *out = context;
    struct cli_prediction prediction = {0};
    enum status status = cli_predict(plan, NULL, NULL, &prediction, err);
    *seconds = prediction.result.makespan_s;
    bool chain = !status && strncmp(prediction.result.binds, "the chain of ", 13) == 0; /* the job has no name */
    if (!status && out->binds[0] == '\0')
        snprintf(out->binds, sizeof out->binds, "%s", chain ? "the chain of passes" : prediction.result.binds);
    cli_prediction_release(&prediction);
    return status;
}

static enum status time_way(const struct cli_mem *mem, uint32_t index, struct cli_mem_time *out, struct error *err)
{
    double begin_s;
    const struct what_if_way way = {.fit = mem->ways[index],
                                    .microbatch = mem->job->microbatch,
                                    .microbatches = mem->job->microbatches};
    const struct saturn_clock clock = {.time = simulated_s, .context = out};
    return what_if_minibatch(mem->hardware, mem->job, &way, &clock, &begin_s, &out->minibatch_s, err);
}

/* Inserts a way among the `count` before it, after equally good ones. */
static void rank_way(const struct cli_mem *mem, uint32_t index, uint32_t count, uint32_t *order)
{
    uint32_t at = count;
    for (; at > 0; at--) {
        uint32_t other = order[at - 1];
        const struct feasibility *fit = &mem->fits[index], *before = &mem->fits[other];
        bool both = fit->verdict == FEASIBILITY_YES && before->verdict == FEASIBILITY_YES;
        if (both ? mem->times[index].minibatch_s >= mem->times[other].minibatch_s : !better(fit, before)) break;
        order[at] = other;
    }
    order[at] = index;
}

/* Returns true if any number of blocks fits. */
static bool any_fits(const struct cli_mem *mem)
{
    for (uint32_t i = 0; mem->largest && i < mem->count; i++)
        if (mem->largest[i].blocks > 0) return true;
    return false;
}

struct found {
    struct feasibility_way ways[FEASIBILITY_WAYS_MAX];
    struct feasibility fits[FEASIBILITY_WAYS_MAX];
    struct cli_mem_time times[FEASIBILITY_WAYS_MAX];
    struct feasibility_largest largest[FEASIBILITY_WAYS_MAX];
    uint32_t order[FEASIBILITY_WAYS_MAX];
};

enum { PLANNED_DEVICES_MOST = 16 };

/* Finds the choice of `plan`, which tries more ways. */
static enum status find_planned(const struct mem_request *request, struct cli_mem *mem, struct error *err)
{
    struct job_set jobs = {0};
    if (mem->hardware->device_count > PLANNED_DEVICES_MOST) return STATUS_OK;
    const struct cli_source source = {.jobs = &jobs, .machine = request->machine, .parallel = CLI_PARALLEL_NONE};
    enum status status = make_job(request, mem->hardware, CLI_PLANNED_RUN, &jobs, err);
    if (!status) status = cli_planned_find(&source, mem->ways[mem->chosen].name, &mem->planned, err);
    job_set_release(&jobs);
    return status;
}

static enum status answer(struct cli *cli, const struct mem_request *request, struct cli_mem *mem, struct found *found,
                          struct error *err)
{
    if (request->largest) mem->largest = found->largest;
    mem->count = feasibility_ways(mem->hardware, mem->job, found->ways);
    mem->only_chosen = request->way != NULL;
    if (request->way) TRY(find_way(mem, found->ways, request->way, &mem->chosen, err));
    for (uint32_t i = 0; i < mem->count; i++) {
        found->order[i] = i;
        if (mem->only_chosen && i != mem->chosen) continue;
        TRY(feasibility_find(mem->hardware, mem->job, &found->ways[i], &found->fits[i], err));
        if (request->largest)
            TRY(feasibility_find_largest(mem->hardware, mem->job, &found->ways[i], &found->largest[i], err));
        if (found->fits[i].verdict == FEASIBILITY_YES) TRY(time_way(mem, i, &found->times[i], err));
        if (!mem->only_chosen) rank_way(mem, i, i, found->order);
    }
    if (!mem->only_chosen) mem->chosen = found->order[0];
    if (!mem->only_chosen) TRY(find_planned(request, mem, err));
    TRY((cli->json ? cli_mem_json : cli_mem_text)(cli, mem, err));
    if (found->fits[mem->chosen].verdict == FEASIBILITY_YES || any_fits(mem)) return STATUS_OK;
    char text[CLI_MEM_VERDICT_BYTES];
    return error_set(err, STATUS_INFEASIBLE, "%s%s: %s", mem->only_chosen ? "it does not fit in way " : "no way fits; ",
                     found->ways[mem->chosen].name, cli_mem_verdict(mem, mem->chosen, text));
}

static enum status run(struct cli *cli, struct mem_request *request, struct error *err)
{
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    struct found *found = alloc_zeroed(1, sizeof *found);
    enum status status = found ? check_network(request, err) : error_memory(err, "ways of fitting", sizeof *found);
    if (!status) status = cli_adapter_check(&request->adapter, err);
    if (!status) status = cli_machine_read(&request->machine, &hardware, err);
    if (!status) status = make_job(request, &hardware, 1, &jobs, err);
    if (!status) {
        struct next_words job = {.count = 0}, machine = {.count = 0};
        next_job(request, jobs.jobs[0].microbatches, &job);
        next_machine(&request->machine, &machine);
        struct cli_mem mem = {.hardware = &hardware, .machine = request->machine.name, .job = &jobs.jobs[0],
                              .ways = found->ways, .fits = found->fits, .times = found->times, .order = found->order,
                              .next = {.network = request->network, .machine = request->machine.name,
                                       .job_words = job.words, .plan_words = machine.words}};
        status = answer(cli, request, &mem, found, err);
    }
    free(found);
    job_set_release(&jobs);
    hardware_release(&hardware);
    return status;
}

enum status verb_mem(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct mem_request request = {.machine = CLI_MACHINE_NONE, .microbatch = 1, .precision = PRECISION_COUNT};
    const struct option_spec specs[] = {
        CLI_MACHINE_NAME(&request.machine),
        CLI_MACHINE_SIZES(&request.machine),
        CLI_MACHINE_STORAGE(&request.machine),
        CLI_MACHINE_STACK(&request.machine),
        OPTION_U64("microbatch", 'b', "N", 1, 1 << 20, &request.microbatch, "samples per pass (default 1)"),
        OPTION_U64("microbatches", 0, "N", 1, 1 << 20, &request.microbatches,
                   "microbatches per minibatch, over all replicas (default: one per device)"),
        OPTION_U64("gradient-accumulation-steps", 0, "N", 1, 1 << 20, &request.steps,
                   "microbatches per minibatch of each replica, as other tools count them"),
        OPTION_U64("global-batch", 0, "N", 1, UINT32_MAX, &request.samples,
                   "samples per minibatch, over all replicas"),
        OPTION_U64("sequence", 's', "N", 1, 1 << 24, &request.sequence,
                   "tokens per sample (default: the network's, at most 2048)"),
        CLI_OTHER_SIZES(&request.decoder_sequence, &request.image),
        OPTION_CHOICE("precision", 0, "TYPE", precision_names, &request.precision,
                      "precision of training (default: bf16 for networks published in it, else fp32)"),
        OPTION_CHOICE("gradients", 0, "TYPE", gradients_choices, &request.gradients,
                      "precision of weight gradients on several devices (default fp32)"),
        OPTION_CHOICE("optimizer", 0, "KIND", optimizer_choices, &request.optimizer, "optimizer (default adamw)"),
        CLI_ADAPTER_RANK(&request.adapter),
        CLI_ADAPTER_TARGETS(&request.adapter),
        OPTION_STRING("way", 0, "NAME", &request.way, "only this way, such as spilled-cpu or tp=2,dp=8,zero=1 "
                                                      "(default: all)"),
        OPTION_FLAG("largest", 0, &request.largest, "find the largest number of blocks that fits"),
        CLI_ANSWER_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, 1),
        .examples =
            (const char *const[]){"spillway mem gpt2-xl --hw rtx-3090-24gb",
                                  "spillway mem llama-3.1-8b --hw '8x a100-sxm4-40gb' --sequence 4096",
                                  "spillway mem ./my-network/config.json --way spilled-cpu --json",
                                  "spillway mem gpt2-xl --hw '8x a100-sxm4-40gb' --way dp=8,zero=2 --largest",
                                  "spillway mem llama-3.1-8b --hw rtx-3090-24gb --lora-rank 16", NULL},
        .details = "Prints the memory of devices, host and storage for every way to train the network on the "
                   "machine: resident, recomputed, spilled, or over all of its devices. Exit code 1 if no way fits; "
                   "with --largest, if not even one block fits.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    request.network = options.operands[0];
    return run(cli, &request, err);
}
