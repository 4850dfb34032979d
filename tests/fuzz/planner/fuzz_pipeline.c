/*
 * The whole path from a jobs file of any bytes. Small accepted jobs are planned in two of the ways below, selected by
 * the bytes. A plan passes its independent check, reads back as the same plan, and its simulation ends no earlier than
 * its lower bound. Other jobs are refused with a message.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_in.h"
#include "base/json/json_out.h"
#include "models/jobs/jobs_file.h"
#include "planner/check/plan_check.h"
#include "planner/files/plan_io.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Larger files are only read. */
enum { FEW_JOBS = 6, FEW_LAYERS = 60, FEW_MICROBATCHES = 600, FEW_OPERATIONS = 30000 };

static _Noreturn void complain(const char *what, const struct error *err)
{
    fprintf(stderr, "%s: %s\n", what, err->text);
    abort();
}

static bool is_small(const struct job_set *set)
{
    uint64_t layers = 0, microbatches = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct job *job = &set->jobs[i];
        layers += job->network.layer_count;
        if (job->minibatches > FEW_MICROBATCHES || job->microbatches > FEW_MICROBATCHES) return false;
        microbatches += job->minibatches * (job->microbatches + 1);
    }
    return set->count <= FEW_JOBS && layers <= FEW_LAYERS && microbatches <= FEW_MICROBATCHES;
}

static void check_text(const struct plan *plan)
{
    struct error err = {0};
    struct plan again = {0};
    size_t length;
    struct json_out *out = json_out_create(NULL);
    assert(out);
    plan_write_json(plan, out);
    const char *text = json_out_text(out, &length);
    if (plan_parse("again", text, length, &again, &err) != STATUS_OK) complain("the plan is not read back", &err);
    assert(plan_fingerprint(plan) == plan_fingerprint(&again));
    plan_release(&again);
    json_out_destroy(out);
}

static void check_simulation(const struct plan *plan)
{
    static const struct sim_options options = {0};
    struct error err = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    if (sim_run(plan, &options, &result, &trace, &err) != STATUS_OK) complain("the plan is not simulated", &err);
    if (!isfinite(result.makespan_s) || result.makespan_s < plan->lower_bound_s * (1 - 1e-9)) {
        fprintf(stderr, "makespan %.17g s, bound %.17g s\n", result.makespan_s, plan->lower_bound_s);
        abort();
    }
    sim_result_release(&result);
    trace_release(&trace);
}

/* A machine and a way to plan. The small devices hold no whole network of three layers or more of the corpus. */
struct way {
    const char *machine;
    struct hardware_options hardware;
    struct planner_options planner;
};

#define CHOSEN .activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO, .iterations = 5
#define SMALL .device_count = 2, .device_memory_bytes = 6 << 20, .link_bytes_per_s = 2e9

static const struct way ways[] = {
    {"4x rtx-3090-24gb", {.no_p2p = false}, {CHOSEN, .resident = true}},
    {"2x p3.16xlarge", {.no_p2p = false}, {CHOSEN, .policy = "sharded-lrtf", .mixed = true}},
    {"host-2-cores", {SMALL}, {CHOSEN, .resident = true}},
    {"host-2-cores", {SMALL}, {CHOSEN, .policy = "sharded-lrtf", .mixed = true}},
    {"host-2-cores", {SMALL}, {CHOSEN, .policy = "optimal"}},
    {"host-2-cores", {SMALL}, {CHOSEN, .policy = "spill-sequential", .no_double_buffer = true}},
    {"host-2-cores", {SMALL}, {CHOSEN, .policy = "fifo", .cuts = PLANNER_CUTS_BALANCED, .no_persistence = true}},
    {"host-2-cores", {SMALL}, {CHOSEN, .policy = "random", .seed = 5, .shards = 3, .last = PLANNER_LAST_HOLDS_INPUTS}},
    {"host-2-cores", {SMALL, .host_memory_bytes = 64 << 20}, {CHOSEN, .policy = "srtf", .weight_buffers = 3}},
    {"2x a100-sxm4-40gb", {.no_p2p = false}, {CHOSEN, .policy = "model-parallel"}},
    {"2x a100-sxm4-40gb", {.no_p2p = false}, {CHOSEN, .policy = "shard-parallel"}},
    {"4x a100-sxm4-80gb", {.no_p2p = false}, {CHOSEN, .policy = "saturn"}},
    {"4x a100-sxm4-80gb", {.no_p2p = true}, {CHOSEN, .policy = "max-heuristic"}},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* Takes `set` over. */
static void plan_jobs(struct job_set *set, const struct way *way)
{
    struct error err = {0};
    struct hardware hardware = {0};
    struct plan plan = {0};
    if (hardware_find(way->machine, &hardware, &err) != STATUS_OK ||
        hardware_adjust(&hardware, &way->hardware, &err) != STATUS_OK)
        complain("no machine", &err);
    if (planner_plan(&hardware, set, &way->planner, &plan, &err) == STATUS_OK) {
        if (plan_check(&plan, &err) != STATUS_OK) complain("the plan fails its check", &err);
        if (plan_operations(&plan) < FEW_OPERATIONS) {
            check_text(&plan);
            check_simulation(&plan);
        }
    } else {
        assert(err.text[0]);
    }
    plan_release(&plan);
}

static void try_way(const uint8_t *data, size_t size, const struct way *way)
{
    struct json_input *in;
    struct error err = {0};
    struct job_set set = {0};
    if (json_input_parse("fuzz", (const char *)data, size, &in, &err) != STATUS_OK) return;
    const enum status status = job_set_parse(in, json_input_root(in), "/no/such/folder", &set, &err);
    json_input_destroy(in);
    if (status == STATUS_OK && is_small(&set)) plan_jobs(&set, way);
    job_set_release(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < size; i++) sum = sum * 31 + data[i];
    try_way(data, size, &ways[sum % WAYS]);
    try_way(data, size, &ways[(sum / WAYS) % WAYS]);
    return 0;
}
