/*
 * Does everything fit (jobs, places); how long, and how good is that (makespan, bound, gap, proof); what next?
 *
 * The gap compares the simulated makespan with the bound of every plan, or only of plans that run the jobs in the same
 * way. A plan is called optimal only if its simulated time equals the bound of all plans (cli_proven.h).
 */
#include "cli/reports/cli_plan_report.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "cli/common/cli_machine.h"
#include "cli/common/cli_table.h"
#include "cli/common/cli_trace.h"
#include "cli/reports/cli_claim.h"
#include "cli/reports/cli_milp_report.h"
#include "cli/reports/cli_reservations.h"
#include "cli/reports/cli_ranking.h"
#include "cli/reports/cli_kept_outputs.h"
#include "cli/reports/cli_shared_base.h"
#include "cli/reports/cli_staleness.h"
#include "cli/ways/cli_proven.h"
#include "cli/ways/cli_saturn.h"
#include "cli/ways/cli_swap.h"
#include "models/job/parallel_offload.h"
#include "models/jobs/job_rows.h"
#include "planner/plan_hosts.h"
#include "planner/plan_memory.h"
#include "planner/policy/policies.h"

/* A smaller gap is rounding. */
static const double gap_nothing = 1e-9;

/* --- figures of a job ------------------------------------------------------------------------ */

static uint64_t largest_shard_bytes(const struct plan *plan, uint32_t job)
{
    const struct job *described = &plan->jobs.jobs[job];
    uint64_t largest = 0;
    for (uint32_t s = plan->job_first_shard[job]; s < plan->job_first_shard[job + 1]; s++) {
        uint64_t bytes =
            job_state(described, plan->shards[s].first_layer, plan->shards[s].layer_count).bytes;
        if (bytes > largest) largest = bytes;
    }
    return largest;
}

static uint64_t job_state_bytes(const struct plan *plan, uint32_t job)
{
    const struct job *described = &plan->jobs.jobs[job];
    return job_state(described, 0, described->network.layer_count).bytes;
}

/* Adds "13", or "13, 4 stay". */
static void shards_cell(struct cli_table *table, const struct plan *plan, uint32_t job)
{
    uint32_t shards = plan_job_shards(plan, job), stay = cli_persistent_shards(plan, job);
    if (stay == 0) cli_table_cell(table, "%" PRIu32, shards);
    else if (stay == shards) cli_table_cell(table, "%" PRIu32 ", all stay", shards);
    else cli_table_cell(table, "%" PRIu32 ", %" PRIu32 " stay", shards, stay);
}

/* Adds "adamw", "adamw on cpu" or "adamw, 3 of 13 on cpu". */
static void optimizer_cell(struct cli_table *table, const struct plan *plan, uint32_t job)
{
    const char *name = optimizer_names[plan->jobs.jobs[job].optimizer.kind];
    uint32_t there = plan_cpu_shards(plan, job), shards = plan_job_shards(plan, job);
    if (there == 0) cli_table_cell(table, "%s", name);
    else if (there == shards) cli_table_cell(table, "%s on cpu", name);
    else cli_table_cell(table, "%s, %" PRIu32 " of %" PRIu32 " on cpu", name, there, shards);
}

static uint64_t stored_bytes(const struct plan *plan, uint32_t job)
{
    uint64_t bytes = 0;
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].kind == BUFFER_STORED && plan->buffers[b].job == job)
            bytes += plan->buffers[b].bytes;
    return bytes;
}

static bool plan_stores(const struct plan *plan)
{
    bool any = false;
    for (uint32_t j = 0; j < plan->jobs.count; j++) any |= stored_bytes(plan, j) > 0;
    return any;
}

/* Adds "115 MiB", or "115 MiB, 80 MiB stored". */
static void state_cell(struct cli_table *table, const struct plan *plan, uint32_t job)
{
    char text[QUANTITY_TEXT_BYTES], stored[QUANTITY_TEXT_BYTES];
    quantity_text((double)job_state_bytes(plan, job), DIMENSION_BYTES, text);
    uint64_t there = stored_bytes(plan, job);
    if (there == 0) cli_table_cell(table, "%s", text);
    else cli_table_cell(table, "%s, %s stored", text,
                        quantity_text((double)there, DIMENSION_BYTES, stored));
}

/* --- text ------------------------------------------------------------------------------------ */

/* Returns true if the loss layer keeps only inputs. */
static bool loss_from_inputs(const struct plan *plan, uint32_t job)
{
    return plan->shards[plan->job_first_shard[job + 1] - 1].inputs_only;
}

static enum status print_jobs(struct cli *cli, const struct plan *plan, struct error *err)
{
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES];
    cli_table_begin(&table, (const char *const[]){"JOB", "NETWORK", ">PARAMETERS", "OPTIMIZER",
                                                  ">STATE", ">SHARDS", ">LARGEST SHARD",
                                                  "ACTIVATIONS", NULL});
    uint32_t shown = plan->jobs.count < CLI_ROWS_MAX ? plan->jobs.count : CLI_ROWS_MAX;
    for (uint32_t j = 0; j < shown; j++) {
        const struct job *job = &plan->jobs.jobs[j];
        cli_table_cell(&table, "%s", job->name);
        cli_table_cell(&table, "%s", cli_network_label(job->network.name));
        cli_table_cell(&table, "%s", quantity_text((double)network_parameters(&job->network),
                                                   DIMENSION_COUNT_OF, text));
        optimizer_cell(&table, plan, j);
        state_cell(&table, plan, j);
        shards_cell(&table, plan, j);
        cli_table_cell(&table, "%s",
                       quantity_text((double)largest_shard_bytes(plan, j), DIMENSION_BYTES, text));
        char kept[24] = "";
        uint32_t kept_count = plan_kept_shards(plan, j);
        if (kept_count > 0) snprintf(kept, sizeof kept, ", %u kept", kept_count);
        cli_table_cell(&table, "%s%s%s", plan_activations_names[plan->job_activations[j]], kept,
                       loss_from_inputs(plan, j) ? ", loss from inputs" : "");
    }
    TRY(cli_table_end(&table, cli->out, err));
    cli_more_rows(cli->out, shown, plan->jobs.count);
    return STATUS_OK;
}

/* Counts recomputed chunks. */
static uint32_t chosen_again(const struct parallel *p)
{
    uint32_t count = 0;
    for (uint32_t r = 0; r < p->chosen; r++) count += p->choices[r] == PARALLEL_AGAIN;
    return count;
}

static enum status print_parallel_jobs(struct cli *cli, const struct plan *plan, struct error *err)
{
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES], degrees[PARALLEL_TEXT_BYTES];
    cli_table_begin(&table, (const char *const[]){"JOB", "NETWORK", ">PARAMETERS", "OPTIMIZER", "PARALLEL",
                                                  ">DEVICES", "SCHEDULE", ">MICROBATCHES", "RECOMPUTED", NULL});
    uint32_t shown = plan->jobs.count < CLI_ROWS_MAX ? plan->jobs.count : CLI_ROWS_MAX;
    for (uint32_t j = 0; j < shown; j++) {
        const struct job *job = &plan->jobs.jobs[j];
        const struct parallel *p = &job->parallel;
        cli_table_cell(&table, "%s", job->name);
        cli_table_cell(&table, "%s", cli_network_label(job->network.name));
        cli_table_cell(&table, "%s", quantity_text((double)network_parameters(&job->network),
                                                   DIMENSION_COUNT_OF, text));
        cli_table_cell(&table, "%s", optimizer_names[job->optimizer.kind]);
        cli_table_cell(&table, "%s", parallel_text(p, degrees));
        cli_table_cell(&table, "%" PRIu32 " to %" PRIu64, p->first_device,
                       p->first_device + parallel_devices(p) - 1);
        cli_table_cell(&table, "%s", pipeline_schedule_names[p->schedule]);
        cli_table_cell(&table, "%" PRIu64, parallel_microbatches(job, 0));
        char swapped[32] = "", again[32] = "";
        if (p->swap) snprintf(swapped, sizeof swapped, ", %" PRIu32 " swapped", plan_swapped_shards(plan, j));
        if (p->chosen > 0) snprintf(again, sizeof again, ", %" PRIu32 " full", chosen_again(p));
        cli_table_cell(&table, "%s%s%s", recompute_names[p->recompute], again, swapped);
    }
    TRY(cli_table_end(&table, cli->out, err));
    cli_more_rows(cli->out, shown, plan->jobs.count);
    return STATUS_OK;
}

/* Prints a minibatch in other programs' words. */
static void print_batches(FILE *out, const struct plan *plan)
{
    char text[JOB_BATCH_TEXT_BYTES];
    uint32_t told = 0, shown = 0;
    for (uint32_t j = 0; j < plan->jobs.count; j++) told += *job_batch_text(&plan->jobs.jobs[j], text) != '\0';
    for (uint32_t j = 0; j < plan->jobs.count && shown < CLI_ROWS_MAX; j++) {
        if (*job_batch_text(&plan->jobs.jobs[j], text) == '\0') continue;
        fprintf(out, "%s%s: %s\n", shown++ == 0 ? "\n" : "", plan->jobs.jobs[j].name, text);
    }
    cli_more_rows(out, shown, told);
}

/* Prints which rows are a job's samples. */
static void print_rows_of_jobs(FILE *out, const struct plan *plan)
{
    char text[JOB_ROWS_TEXT_BYTES];
    uint32_t told = 0, shown = 0;
    for (uint32_t j = 0; j < plan->jobs.count; j++) told += job_has_labels(&plan->jobs.jobs[j]);
    for (uint32_t j = 0; j < plan->jobs.count && shown < CLI_ROWS_MAX; j++) {
        if (*job_rows_text(&plan->jobs.jobs[j], text) == '\0') continue;
        fprintf(out, "%s%s: %s\n", shown++ == 0 ? "\n" : "", plan->jobs.jobs[j].name, text);
    }
    cli_more_rows(out, shown, told);
}

static enum status print_how_jobs_run(struct cli *cli, const struct plan *plan, struct error *err)
{
    if (plan->reservation_count > 0) TRY(cli_reservations_text(cli->out, plan, err));
    else TRY((plan->gang_count > 0 ? print_parallel_jobs : print_jobs)(cli, plan, err));
    print_batches(cli->out, plan);
    print_rows_of_jobs(cli->out, plan);
    return STATUS_OK;
}

static void place_cells(struct cli_table *table, const char *name, uint64_t used, uint64_t most)
{
    char text[QUANTITY_TEXT_BYTES];
    cli_table_cell(table, "%s", name);
    cli_table_cell(table, "%s", quantity_text((double)used, DIMENSION_BYTES, text));
    cli_table_cell(table, "%s", quantity_text((double)most, DIMENSION_BYTES, text));
    cli_table_cell(table, "%.1f %%", most > 0 ? 100 * (double)used / (double)most : 0.0);
}

static enum status print_places(struct cli *cli, const struct plan *plan, struct error *err)
{
    const struct hardware *hardware = &plan->hardware;
    struct cli_table table;
    cli_table_begin(&table, (const char *const[]){"MEMORY", ">PLANNED", ">OF", ">USED", NULL});
    bool several = hardware_host_count(hardware) > 1;
    const struct plan_host_use fullest = plan_host_fullest(plan);
    place_cells(&table, several ? "fullest host" : "host", fullest.memory_bytes, hardware_host_bytes(hardware));
    if (hardware_has_storage(hardware))
        place_cells(&table, several ? "fullest storage" : "storage", fullest.stored_bytes,
                    hardware_storage_bytes(hardware));
    uint32_t devices = hardware->device_count, shown = devices;
    if (shown > CLI_ROWS_MAX) shown = CLI_ROWS_MAX;
    for (uint32_t d = 0; d < shown; d++) {
        char name[32];
        snprintf(name, sizeof name, "device %u", d);
        place_cells(&table, name, plan_device_bytes(plan, d), hardware->devices[d].memory_bytes);
    }
    TRY(cli_table_end(&table, cli->out, err));
    cli_more_rows(cli->out, shown, devices);
    return STATUS_OK;
}

static bool same_memory(const struct plan_memory *a, const struct plan_memory *b)
{
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->lines[i].uses != b->lines[i].uses || a->lines[i].bytes != b->lines[i].bytes)
            return false;
    return true;
}

static void memory_rows(struct cli_table *table, const char *name, const struct plan_memory *memory)
{
    char use[PLAN_MEMORY_TEXT_BYTES], bytes[QUANTITY_TEXT_BYTES];
    for (uint32_t i = 0; i < memory->count; i++) {
        const struct plan_memory_line *line = &memory->lines[i];
        cli_table_cell(table, "%s", name);
        cli_table_cell(table, "%s", plan_memory_text(line->uses, use));
        cli_table_cell(table, "%s", quantity_text((double)line->bytes, DIMENSION_BYTES, bytes));
        cli_table_cell(table, "%.1f %%", 100 * (double)line->bytes / (double)memory->bytes);
    }
}

/* Prints device memory; equal devices share rows. */
static enum status print_memory(struct cli *cli, const struct plan *plan, struct error *err)
{
    struct cli_table table;
    struct plan_memory memory, other;
    uint32_t devices = plan->hardware.device_count, first = 0;
    cli_table_begin(&table, (const char *const[]){"MEMORY OF", "FOR", ">BYTES", ">OF PLANNED",
                                                  NULL});
    while (first < devices && first < CLI_ROWS_MAX) {
        uint32_t end = first + 1;
        char name[48];
        if (plan_memory_planned(plan, first, &memory, &table.failed) != STATUS_OK) break;
        for (; end < devices; end++)
            if (plan_memory_planned(plan, end, &other, &table.failed) != STATUS_OK ||
                !same_memory(&memory, &other))
                break;
        if (end == first + 1) snprintf(name, sizeof name, "device %" PRIu32, first);
        else snprintf(name, sizeof name, "devices %" PRIu32 " to %" PRIu32, first, end - 1);
        memory_rows(&table, name, &memory);
        first = end;
    }
    TRY(cli_table_end(&table, cli->out, err));
    cli_more_rows(cli->out, first, devices);
    return STATUS_OK;
}

static void print_speed(FILE *out, enum job_unit unit, double tokens_per_s, double samples_per_s, double compute_share)
{
    char tokens[QUANTITY_TEXT_BYTES], samples[QUANTITY_TEXT_BYTES];
    quantity_text(samples_per_s, DIMENSION_COUNT_OF, samples);
    fputs("throughput   ", out);
    if (unit == JOB_TOKENS)
        fprintf(out, "%s tokens/s, %s samples/s",
                quantity_text(tokens_per_s >= 100 ? (double)(uint64_t)tokens_per_s : tokens_per_s, DIMENSION_COUNT_OF,
                              tokens),
                samples);
    else fprintf(out, "%s %s", samples, cli_unit_rates[unit]);
    fprintf(out, "; compute %.1f %% busy\n", 100 * compute_share);
}

/* Prints what a better order could gain, by the planner's clock. */
static void print_order(FILE *out, const struct plan *plan)
{
    char bound[QUANTITY_TEXT_BYTES], tried[QUANTITY_TEXT_BYTES];
    double gap = cli_gap_over(plan->estimated_makespan_s, plan->order.bound_s);
    fprintf(out, "order        ");
    if (plan->order.tried > 1)
        fprintf(out, "the best of %s; ",
                quantity_text((double)plan->order.tried, DIMENSION_COUNT_OF, tried));
    fprintf(out, "by that clock no order ends before %s (%s)",
            quantity_text(plan->order.bound_s, DIMENSION_SECONDS, bound),
            plan_order_names[plan->order.kind]);
    fprintf(out, ", gap %.2f %%\n", 100 * gap);
}

/* Returns true if the planner's clock is a lower bound (planner/parallel/parallel_job.c). */
static bool plan_offloads(const struct plan *plan)
{
    bool any = false;
    for (uint32_t j = 0; j < plan->jobs.count; j++) any |= parallel_offloads(&plan->jobs.jobs[j].parallel);
    return any;
}

/* Sets *optimal if that is proven, and no other way was simulated to end earlier. */
static enum status is_optimal(const struct cli_plan_report *report, bool *optimal, struct error *err)
{
    double makespan_s = report->prediction->result.makespan_s;
    TRY(cli_proven(report->plan, makespan_s, optimal, err));
    for (size_t i = 0; i < report->outcome_count; i++)
        if (report->outcomes[i].kind == CLI_OUTCOME_PLAN && report->outcomes[i].makespan_s < makespan_s)
            *optimal = false;
    return STATUS_OK;
}

/* Prints why the two makespans differ. */
static void print_contention(FILE *out, double simulated_s, double estimated_s)
{
    static const double least = 1e-3; /* of the makespan: invisible in its digits */
    char text[QUANTITY_TEXT_BYTES];
    if (simulated_s <= estimated_s * (1 + least)) return;
    fprintf(out, "contention   %s of it: copies that share links, and cores that compute and copy\n",
            quantity_text(simulated_s - estimated_s, DIMENSION_SECONDS, text));
}

/* Prints the bound of all plans, and the plan's own where that is higher. */
static enum status print_bounds(FILE *out, const struct cli_plan_report *report, struct error *err)
{
    bool optimal;
    struct bound all;
    char text[QUANTITY_TEXT_BYTES];
    const struct plan *plan = report->plan;
    double makespan_s = report->prediction->result.makespan_s;
    TRY(is_optimal(report, &optimal, err));
    TRY(cli_bound_of_all(plan, &all, err));
    const char *own = cli_own_bound(plan, &all);
    fprintf(out, "lower bound  %s, gap %.1f %%%s\n", quantity_text(all.any_s, DIMENSION_SECONDS, text),
            100 * cli_gap_over(makespan_s, all.any_s), optimal ? ": this plan is optimal" : "");
    fprintf(out, "proof        %s: %s\n", plan_bound_names[all.any_kind], all.any_text);
    if (!own) return STATUS_OK;
    fprintf(out, "own bound    %s, gap %.1f %%: the bound %s\n",
            quantity_text(plan->lower_bound_s, DIMENSION_SECONDS, text),
            100 * cli_gap_over(makespan_s, plan->lower_bound_s), own);
    fprintf(out, "its proof    %s: %s\n", plan_bound_names[plan->bound_kind], plan->bound_text ? plan->bound_text : "");
    return STATUS_OK;
}

static enum status print_times(FILE *out, const struct cli_plan_report *report, struct error *err)
{
    const struct plan *plan = report->plan;
    const struct cli_prediction *prediction = report->prediction;
    char text[QUANTITY_TEXT_BYTES], other[QUANTITY_TEXT_BYTES];
    double makespan_s = prediction->result.makespan_s;
    fprintf(out, "makespan     %s simulated (%s%s by the planner's own clock)\n",
            quantity_text(makespan_s, DIMENSION_SECONDS, text), plan_offloads(plan) ? "at least " : "",
            quantity_text(plan->estimated_makespan_s, DIMENSION_SECONDS, other));
    print_contention(out, makespan_s, plan->estimated_makespan_s);
    if (plan->bound_kind == BOUND_NONE) fputs("lower bound  none was proven\n", out);
    else TRY(print_bounds(out, report, err));
    if (plan->order.kind != PLAN_ORDER_NONE) print_order(out, plan);
    cli_ranking_search_text(out, report);
    cli_milp_text(out, report->milp);
    if (report->claim) cli_claim_text(out, report->claim);
    if (report->saturn) cli_saturn_text(out, report->saturn, plan, makespan_s);
    print_speed(out, cli_unit_of(&plan->jobs), prediction->tokens_per_s, prediction->samples_per_s,
                prediction->compute_share);
    fprintf(out, "bound by     %s\n", prediction->result.binds);
    return STATUS_OK;
}

/* Suggests the command line with the chosen policy and an output file. */
static void print_next(struct cli *cli, const struct cli_plan_report *report)
{
    enum { WORDS_MAX = 64 };
    const char *words[WORDS_MAX] = {"plan"};
    size_t count = 1;
    if (report->plan_path) {
        const bool runs = report->refusal->asked && !report->refusal->refused;
        const char *verb = runs ? "run" : "simulate";
        const bool stores = runs && plan_stores(report->plan);
        cli_next(cli, (const char *const[]){verb, report->plan_path, stores ? "--storage" : NULL, ".", NULL});
        return;
    }
    for (int i = 1; i < report->argc && count + 5 < WORDS_MAX; i++) {
        const char *text = report->argv[i];
        bool alone = strcmp(text, "--policy") == 0 || strcmp(text, "-p") == 0 ||
                     strcmp(text, "--write-instance") == 0;
        bool joined = strncmp(text, "--policy=", strlen("--policy=")) == 0 ||
                      strncmp(text, "--write-instance=", strlen("--write-instance=")) == 0 ||
                      (strncmp(text, "-p", 2) == 0 && text[2]);
        if (alone) i++;
        if (!alone && !joined) words[count++] = text;
    }
    bool reserved = report->plan->reservation_count > 0 && !report->saturn;
    bool one = report->saturn ||
               (report->plan->gang_count == 0 && !reserved && !report->claim && report->swap->job_count == 0);
    bool again = report->by_default || (report->outcomes && !policy_find(report->plan->policy)); /* the same choice */
    if (one && !again) {
        words[count++] = "--policy";
        words[count++] = report->policy ? report->policy : report->plan->policy;
    }
    words[count++] = "-o";
    words[count++] = "plan.json";
    cli_next(cli, words);
}

enum status cli_plan_text(struct cli *cli, const struct cli_plan_report *report,
                          struct error *err)
{
    const struct plan *plan = report->plan;
    FILE *out = cli->out;
    char machine[CLI_MACHINE_TEXT_BYTES], count[QUANTITY_TEXT_BYTES];
    fprintf(out, "%s on %s\n\n", CLI_COUNT(plan->jobs.count, "job"), cli_machine_text(&plan->hardware, machine));
    if (report->outcomes) {
        TRY(cli_ranking_text(out, report, err));
    }
    TRY(print_how_jobs_run(cli, plan, err));
    fputc('\n', out);
    TRY(print_places(cli, plan, err));
    fputc('\n', out);
    TRY(print_memory(cli, plan, err));
    if (report->swap->job_count > 0) fputc('\n', out);
    if (report->swap->job_count > 0) TRY(cli_swap_text(out, plan, report->swap, err));
    fprintf(out, "\npolicy       %s, %s operations\n", plan->policy,
            quantity_text((double)plan_operations(plan), DIMENSION_COUNT_OF, count));
    cli_staleness_print(out, plan, 13);
    cli_shared_base_print(out, plan, 13);
    cli_kept_outputs_print(out, plan, report->keep, 13);
    TRY(print_times(out, report, err));
    if (report->plan_path) fprintf(out, "written to   %s\n", report->plan_path);
    if (report->refusal->refused) fprintf(out, "\n'run' would refuse this plan: %s\n", report->refusal->text);
    print_next(cli, report);
    return STATUS_OK;
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void jobs_json(struct json_out *json, const struct plan *plan)
{
    json_out_array_begin(json, "jobs", false);
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct job *job = &plan->jobs.jobs[j];
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", job->name);
        json_out_string(json, "network", job->network.name);
        json_out_u64(json, "parameter_count", network_parameters(&job->network));
        json_out_string(json, "optimizer", optimizer_names[job->optimizer.kind]);
        json_out_u64(json, "state_bytes", job_state_bytes(plan, j));
        json_out_u64(json, "stored_bytes", stored_bytes(plan, j));
        json_out_u64(json, "shard_count", plan_job_shards(plan, j));
        json_out_u64(json, "cpu_shard_count", plan_cpu_shards(plan, j));
        json_out_u64(json, "persistent_shard_count", cli_persistent_shards(plan, j));
        json_out_u64(json, "largest_shard_bytes", largest_shard_bytes(plan, j));
        json_out_string(json, "activations", plan_activations_names[plan->job_activations[j]]);
        json_out_u64(json, "kept_shard_count", plan_kept_shards(plan, j));
        json_out_u64(json, "swapped_shard_count", plan_swapped_shards(plan, j));
        json_out_bool(json, "loss_from_inputs", loss_from_inputs(plan, j));
        json_out_u64(json, "minibatches", job->minibatches);
        if (plan->reservation_count > 0)
            json_out_u64(json, "device_count", plan->reservations[plan->job_reservation[j]].device_count);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

static void place_json(struct json_out *json, const char *name, uint64_t used, uint64_t most)
{
    json_out_object_begin(json, NULL, true);
    json_out_string(json, "name", name);
    json_out_u64(json, "planned_bytes", used);
    json_out_u64(json, "capacity_bytes", most);
    json_out_object_end(json);
}

static enum status memory_json(struct json_out *json, const struct plan *plan, uint32_t device,
                               struct error *err)
{
    struct plan_memory memory;
    char name[PLAN_MEMORY_TEXT_BYTES];
    TRY(plan_memory_planned(plan, device, &memory, err));
    for (uint32_t i = 0; i < memory.count; i++) {
        json_out_object_begin(json, NULL, true);
        json_out_u64(json, "device", device);
        json_out_string(json, "for", plan_memory_text(memory.lines[i].uses, name));
        json_out_u64(json, "bytes", memory.lines[i].bytes);
        json_out_object_end(json);
    }
    return STATUS_OK;
}

/* Writes "host" and "storage", with several nodes numbered. */
static enum status hosts_json(struct json_out *json, const struct plan *plan, struct error *err)
{
    uint32_t hosts = hardware_host_count(&plan->hardware);
    struct plan_host_use *uses = alloc_zeroed(hosts, sizeof *uses);
    if (!uses) return error_memory(err, "what hosts have", hosts * sizeof *uses);
    enum status status = plan_host_uses(plan, uses, err);
    for (uint32_t h = 0; h < hosts && !status; h++) {
        char number[16] = "", name[32];
        if (hosts > 1) snprintf(number, sizeof number, "%" PRIu32, h);
        snprintf(name, sizeof name, "host%s", number);
        place_json(json, name, uses[h].memory_bytes, hardware_host_bytes(&plan->hardware));
        snprintf(name, sizeof name, "storage%s", number);
        if (hardware_has_storage(&plan->hardware))
            place_json(json, name, uses[h].stored_bytes, hardware_storage_bytes(&plan->hardware));
    }
    free(uses);
    return status;
}

static enum status places_json(struct json_out *json, const struct plan *plan, struct error *err)
{
    json_out_array_begin(json, "places", false);
    TRY(hosts_json(json, plan, err));
    for (uint32_t d = 0; d < plan->hardware.device_count; d++) {
        char name[32];
        snprintf(name, sizeof name, "device %u", d);
        place_json(json, name, plan_device_bytes(plan, d), plan->hardware.devices[d].memory_bytes);
    }
    json_out_array_end(json);
    return STATUS_OK;
}

static void order_json(struct json_out *json, const struct plan *plan)
{
    const struct plan_order *order = &plan->order;
    if (order->kind == PLAN_ORDER_NONE) return;
    double gap = cli_gap_over(plan->estimated_makespan_s, order->bound_s);
    json_out_object_begin(json, "order", true);
    json_out_string(json, "status", gap <= gap_nothing ? "closed" : "gap");
    json_out_string(json, "kind", plan_order_names[order->kind]);
    json_out_double(json, "bound_s", order->bound_s);
    json_out_double(json, "gap", gap);
    json_out_u64(json, "tried", order->tried);
    json_out_object_end(json);
}

/* Writes the bound of all plans, and the plan's own where that is higher. */
static void bounds_json(struct json_out *json, const struct plan *plan, const struct bound *all, double makespan_s,
                        bool optimal)
{
    const char *own = cli_own_bound(plan, all);
    bool none = plan->bound_kind == BOUND_NONE;
    double bound_s = none ? 0 : all->any_s;
    json_out_double(json, "lower_bound_s", bound_s);
    json_out_double(json, "gap", cli_gap_over(makespan_s, bound_s));
    json_out_bool(json, "optimal", optimal);
    json_out_object_begin(json, "proof", true);
    json_out_string(json, "kind", plan_bound_names[none ? (uint32_t)BOUND_NONE : all->any_kind]);
    json_out_string(json, "text", none ? "" : all->any_text);
    json_out_object_end(json);
    if (!own) return;
    json_out_object_begin(json, "own_bound", false);
    json_out_string(json, "of", own);
    json_out_double(json, "bound_s", plan->lower_bound_s);
    json_out_double(json, "gap", cli_gap_over(makespan_s, plan->lower_bound_s));
    json_out_string(json, "kind", plan_bound_names[plan->bound_kind]);
    json_out_string(json, "text", plan->bound_text ? plan->bound_text : "");
    json_out_object_end(json);
}

enum status cli_plan_json(struct cli *cli, const struct cli_plan_report *report,
                          struct error *err)
{
    const struct plan *plan = report->plan;
    const struct cli_prediction *prediction = report->prediction;
    struct json_out *json;
    bool optimal;
    struct bound all;
    TRY(is_optimal(report, &optimal, err));
    TRY(cli_bound_of_all(plan, &all, err));
    TRY(cli_report_begin(cli, "plan", &json, err));
    double makespan_s = prediction->result.makespan_s;
    json_out_string(json, "jobs_file", report->jobs_path);
    if (report->plan_path) json_out_string(json, "plan_file", report->plan_path);
    if (report->refusal->refused) json_out_string(json, "run_refuses", report->refusal->text);
    cli_fingerprint(json, plan_fingerprint(plan));
    json_out_string(json, "hardware", plan->hardware.name);
    json_out_u64(json, "device_count", plan->hardware.device_count);
    json_out_string(json, "policy", plan->policy);
    json_out_u64(json, "seed", plan->seed);
    json_out_double(json, "makespan_s", makespan_s);
    json_out_double(json, "estimated_makespan_s", plan->estimated_makespan_s);
    if (plan_offloads(plan)) json_out_bool(json, "estimate_is_lower_bound", true);
    bounds_json(json, plan, &all, makespan_s, optimal);
    order_json(json, plan);
    cli_ranking_search_json(json, report);
    cli_milp_json(json, report->milp);
    if (report->claim) cli_claim_json(json, report->claim);
    if (report->saturn) cli_saturn_json(json, report->saturn, plan, makespan_s);
    json_out_double(json, "tokens_per_s", prediction->tokens_per_s);
    json_out_double(json, "samples_per_s", prediction->samples_per_s);
    json_out_double(json, "compute_utilisation", prediction->compute_share);
    json_out_string(json, "binds", prediction->result.binds);
    json_out_u64(json, "operation_count", plan_operations(plan));
    jobs_json(json, plan);
    cli_staleness_json(json, plan);
    cli_shared_base_json(json, plan);
    cli_kept_outputs_json(json, plan, report->keep);
    cli_reservations_json(json, plan);
    enum status status = places_json(json, plan, err);
    json_out_array_begin(json, "memory", false);
    for (uint32_t d = 0; d < plan->hardware.device_count && status == STATUS_OK; d++)
        status = memory_json(json, plan, d, err);
    if (status != STATUS_OK) {
        json_out_destroy(json);
        return status;
    }
    json_out_array_end(json);
    if (report->swap->job_count > 0) cli_swap_json(json, plan, report->swap);
    if (report->outcomes) cli_ranking_json(json, report);
    return cli_report_end(cli, json, err);
}
