#include "tests/support/planner/support_random_family.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/size.h"
#include "planner/strategy/planner.h"
#include "planner/swap/swap.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_random_plan.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/sim/support_sim.h"

const char *const random_family_names[RANDOM_FAMILY_COUNT] = {
    "free", "one link", "spilled", "resident", "swapped", "replicas", "pipelined", "stale", "tensor"};

static uint32_t draw(uint64_t key, uint64_t counter, uint32_t low, uint32_t high)
{
    return low + (uint32_t)random_below(key, counter, high - low + 1u);
}

/* Plans, and takes machine and jobs over. */
static bool plan_of(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                    uint64_t key, struct plan *out)
{
    struct error err = {0};
    enum status status = planner_plan(hardware, jobs, options, out, &err);
    if (status != STATUS_OK && status != STATUS_INFEASIBLE)
        fail_msg("key %llu: %s", (unsigned long long)key, err.text);
    return status == STATUS_OK;
}

/* --- no family ------------------------------------------------------------------------------- */

static bool make_free(uint64_t key, struct plan *out)
{
    random_plan(&(struct random_plan_shape){.key = key, .tasks = draw(key, 0, 1, 8), .repeats = draw(key, 1, 1, 2)},
                out);
    return true;
}

/* Makes a chain of copies for each device, over its own link and a link that all share. */
static bool make_one_link(uint64_t key, struct plan *out)
{
    struct hardware hardware;
    uint32_t devices = draw(key, 0, 1, 5);
    sim_test_machine(&hardware, "cuda", devices);
    uint32_t bus = sim_test_link(&hardware, 1e9 * draw(key, 1, 4, 40), 0, draw(key, 2, 0, 1));
    for (uint32_t d = 0; d < devices; d++) {
        sim_test_connect(&hardware, d, bus);
        if (draw(key, 10 + d, 0, 2) > 0)
            sim_test_connect(&hardware, d, sim_test_link(&hardware, 1e9 * draw(key, 20 + d, 3, 20), 0, true));
    }
    struct plan_builder *builder = sim_test_builder(&hardware, 2);
    for (uint32_t i = 0, count = draw(key, 3, 1, 5 * devices); i < count; i++) {
        struct sim_test_unit unit = {.job = i % 2, .number = i, .in_bytes = 1000 * draw(key, 100 + i, 1, 100000)};
        sim_test_run_on(builder, sim_test_unit(builder, &unit), draw(key, 200 + i, 0, devices - 1), i);
    }
    sim_test_finish(builder, out);
    return true;
}

/* --- one device at a time -------------------------------------------------------------------- */

/* Makes a machine with separate links, or with one more that all share; some machines have a host that computes, and
 * a disk. */
static void planned_machine(uint64_t key, uint64_t memory_bytes, struct hardware *out)
{
    uint32_t devices = draw(key, 0, 1, 4), bus = UINT32_MAX;
    sim_test_machine(out, "cuda", devices);
    if (draw(key, 1, 0, 1)) bus = sim_test_link(out, 1e9 * draw(key, 2, 3, 30), 0, draw(key, 3, 0, 1));
    for (uint32_t d = 0; d < devices; d++) {
        out->devices[d].memory_bytes = memory_bytes;
        if (bus != UINT32_MAX) sim_test_connect(out, d, bus);
        sim_test_connect(out, d,
                         sim_test_link(out, 1e9 * draw(key, 4, 2, 20), 1e-6 * draw(key, 5, 0, 3),
                                       draw(key, 6, 0, 3) > 0));
    }
    if (draw(key, 7, 0, 3) == 0)
        for (uint32_t d = 0; d < devices; d++) hardware_join(&out->devices[d], 1);
    hardware_note_p2p(out);
    if (draw(key, 8, 0, 2) == 0) out->host_bandwidth.value = 4e10;
    if (draw(key, 9, 0, 3) == 0)
        out->storage = (struct hardware_storage){.capacity_bytes = {.value = 1e12}, .read_rate = {.value = 2.5e9},
                                                 .write_rate = {.value = 1.7e9},
                                                 .latency = {.value = 1e-6 * draw(key, 10, 0, 9)}};
}

static void profile_jobs(uint64_t key, uint32_t count_max, uint32_t layers, uint64_t minibatches_max,
                         struct job_set *out)
{
    struct test_random_layers r = {key, draw(key, 30, 1, 8)};
    test_profile_jobs(out, draw(key, 31, 1, count_max), layers, draw(key, 33, 1, (uint32_t)minibatches_max),
                      test_random_layer, &r);
}

static bool make_spilled(uint64_t key, struct plan *out)
{
    static const char *const policies[] = {"sharded-lrtf", "sharded-lrtf-cached", "lrtf-emptiest", "srtf", "fifo",
                                           "random", "spill-sequential"};
    struct hardware hardware;
    struct job_set jobs;
    planned_machine(key, 100000 + random_below(key, 40, 800000), &hardware);
    if (draw(key, 41, 0, 15) == 0) test_gpt_jobs(&jobs, draw(key, 31, 1, 2), draw(key, 32, 1, 2), 8, 64, 1);
    else profile_jobs(key, 3, draw(key, 32, 1, 4), 2, &jobs);
    bool cpu = hardware_has_cpu(&hardware);
    const struct planner_options options = {
        .policy = policies[draw(key, 42, 0, ARRAY_COUNT(policies) - 1)],
        .seed = key >> 2,
        .activations = draw(key, 43, 0, 1) ? PLANNER_AUTO : draw(key, 44, 0, ACTIVATIONS_COUNT - 1),
        .mixed = draw(key, 45, 0, 1),
        .optimizer = !cpu || draw(key, 46, 0, 1) ? PLANNER_AUTO : draw(key, 47, 0, PLANNER_PLACE_COUNT - 1),
        .weight_buffers = draw(key, 48, 0, 3),
        .no_persistence = draw(key, 49, 0, 1),
        .storage = draw(key, 50, 0, 1) || !hardware_has_storage(&hardware) ? PLANNER_STORAGE_AUTO : PLANNER_STORAGE_ALL,
        .cuts = draw(key, 51, 0, 1) ? PLANNER_CUTS_BALANCED : PLANNER_CUTS_GREEDY,
        .shards = draw(key, 52, 0, 3)};
    return plan_of(&hardware, &jobs, &options, key, out);
}

static bool make_resident(uint64_t key, struct plan *out)
{
    struct hardware hardware;
    struct job_set jobs;
    planned_machine(key, 400000 + random_below(key, 40, 2000000), &hardware);
    profile_jobs(key, 3, draw(key, 32, 1, 4), 3, &jobs);
    const struct planner_options options = {.policy = draw(key, 42, 0, 1) ? "model-parallel" : "shard-parallel",
                                            .activations = PLANNER_AUTO};
    return plan_of(&hardware, &jobs, &options, key, out);
}

static bool make_swapped(uint64_t key, struct plan *out)
{
    struct hardware hardware;
    struct job_set jobs;
    struct swap_report report = {0};
    planned_machine(key, 200000 + random_below(key, 40, 400000), &hardware);
    profile_jobs(key, 3, draw(key, 32, 2, 6), 3, &jobs);
    const struct swap_options swap = {.way = draw(key, 42, 0, CHAIN_RULES - 1), .limit_s = 0.2};
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO,
                                            .swap = &swap, .swap_report = &report};
    bool fits = plan_of(&hardware, &jobs, &options, key, out);
    swap_report_release(&report);
    return fits;
}

/* --- several devices at a time --------------------------------------------------------------- */

static bool plan_parallel(uint64_t key, struct job_set *jobs, struct plan *out)
{
    struct hardware hardware;
    const struct planner_options options = {.weight_buffers = 0};
    test_parallel_machine(&hardware, (uint32_t)parallel_devices(&jobs->jobs[0].parallel),
                          1e9 * draw(key, 1, 1, 50), 1e-6 * draw(key, 2, 0, 9));
    hardware.host_bandwidth.value = 4e10;
    for (uint32_t d = 0; d < hardware.device_count && jobs->jobs[0].parallel.swap; d++)
        hardware.devices[d].memory_bytes = 200000 + random_below(key, 40, 800000);
    return plan_of(&hardware, jobs, &options, key, out);
}

static void minibatches_of(uint64_t key, const struct parallel *p, struct job *job)
{
    job->microbatches = p->data * p->pipeline * draw(key, 10, 1, 2);
    if (p->schedule == PIPELINE_PIPEDREAM || p->offload != OFFLOAD_NOTHING) job->microbatches = p->data;
    job->parallel = *p;
}

/* Makes a job of layers that are known only by a profile. */
static bool parallel_profile(uint64_t key, struct parallel *p, struct plan *out)
{
    struct job_set jobs;
    if (p->schedule == PIPELINE_INTERLEAVED) p->chunks = draw(key, 11, 2, 3);
    if (p->schedule == PIPELINE_ZB_V) p->chunks = 2;
    if (draw(key, 12, 0, 3) == 0) p->partition = PARALLEL_BALANCED;
    bool stale = pipeline_is_asynchronous(p->schedule);
    profile_jobs(key, 1, parallel_chunks(p) + draw(key, 13, 0, 2), stale ? 6 : 2, &jobs);
    minibatches_of(key, p, &jobs.jobs[0]);
    bool in_two = p->schedule >= PIPELINE_ZB_H1 && p->schedule <= PIPELINE_ZB_V;
    if (!in_two && draw(key, 14, 0, 3) == 0)
        jobs.jobs[0].compression[COMPRESSION_ACTIVATIONS] = (struct compression){draw(key, 15, 2, 9), 3e9, 5e9, 0};
    return plan_parallel(key, &jobs, out);
}

static bool make_replicas(uint64_t key, struct plan *out)
{
    struct parallel p = {.tensor = 1, .pipeline = 1, .data = draw(key, 3, 2, 5), .chunks = draw(key, 4, 1, 3),
                         .schedule = PIPELINE_1F1B, .zero = draw(key, 5, 0, 3), .prefetch = draw(key, 6, 0, 3)};
    if (p.zero % 3 == 0 && draw(key, 7, 0, 1)) {
        p.offload = OFFLOAD_WEIGHTS;
        p.chunks = draw(key, 4, 1, 6);
        p.swap = draw(key, 8, 0, 1);
    }
    return parallel_profile(key, &p, out);
}

static bool make_pipelined(uint64_t key, struct plan *out)
{
    static const uint32_t schedules[] = {PIPELINE_GPIPE, PIPELINE_1F1B, PIPELINE_INTERLEAVED, PIPELINE_ZB_H1,
                                         PIPELINE_ZB_H2, PIPELINE_ZB_V, PIPELINE_TERAPIPE};
    struct parallel p = {.tensor = 1, .pipeline = draw(key, 3, 2, 4), .data = draw(key, 4, 1, 2), .chunks = 1,
                         .schedule = schedules[draw(key, 5, 0, ARRAY_COUNT(schedules) - 1)],
                         .recompute = draw(key, 7, 0, RECOMPUTE_COUNT - 1),
                         .zero = draw(key, 8, 0, 3), .prefetch = draw(key, 6, 0, 2)};
    return parallel_profile(key, &p, out);
}

static bool make_stale(uint64_t key, struct plan *out)
{
    struct parallel p = {.tensor = 1, .pipeline = draw(key, 3, 1, 4), .data = draw(key, 4, 1, 2), .chunks = 1,
                         .schedule = draw(key, 5, 0, 1) ? PIPELINE_PIPEDREAM : PIPELINE_2BW,
                         .recompute = draw(key, 7, 0, RECOMPUTE_COUNT - 1)};
    return parallel_profile(key, &p, out);
}

/* Makes a job of GPT-2 blocks. */
static bool make_tensor(uint64_t key, struct plan *out)
{
    static const uint32_t schedules[] = {PIPELINE_GPIPE, PIPELINE_1F1B, PIPELINE_ZB_H1, PIPELINE_TERAPIPE};
    struct job_set jobs;
    struct parallel p = {.tensor = draw(key, 3, 1, 2), .pipeline = draw(key, 4, 1, 2), .data = draw(key, 5, 1, 2),
                         .chunks = 1, .schedule = schedules[draw(key, 6, 0, ARRAY_COUNT(schedules) - 1)],
                         .recompute = draw(key, 7, 0, RECOMPUTE_COUNT - 1), .zero = draw(key, 8, 0, 3)};
    p.sequence = p.tensor > 1 && p.schedule != PIPELINE_TERAPIPE && draw(key, 9, 0, 1);
    if (p.schedule == PIPELINE_TERAPIPE)
        for (uint32_t left = 16; left > 0; left -= p.slice_tokens[p.slices++])
            p.slice_tokens[p.slices] = draw(key, 30 + p.slices, left < 4 ? left : 4, left < 9 ? left : 9);
    test_gpt_jobs(&jobs, 1, p.pipeline, 16, 64, 1);
    jobs.jobs[0].precision = draw(key, 11, 0, 1) ? PRECISION_BF16 : PRECISION_FP32;
    minibatches_of(key, &p, &jobs.jobs[0]);
    return plan_parallel(key, &jobs, out);
}

bool random_family_plan(enum random_family family, uint64_t key, struct plan *out)
{
    static bool (*const makers[RANDOM_FAMILY_COUNT])(uint64_t key, struct plan *out) = {
        make_free, make_one_link, make_spilled, make_resident, make_swapped,
        make_replicas, make_pipelined, make_stale, make_tensor};
    *out = (struct plan){0};
    return makers[family](key, out);
}
