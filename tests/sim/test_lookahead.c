/*
 * Operations are issued no later than they are needed, and not all of them at once (label: fast): judged only by the
 * walk and the spans, each begins at the very moment when its stream is free and all that it waits for has ended; and
 * pipelines with replicas keep a small part of their operations in memory, as do jobs that take turns in host memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/random.h"
#include "planner/strategy/planner.h"
#include "planner/walk/plan_walk.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_random_family.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/sim/support_sim.h"
#include "tests/support/support_seed.h"

enum { ROUNDS = 40, PIPELINES = 40 };

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* When its stream is free and all that it waits for has ended. */
static double ready_s(const struct plan_walk_op *op, const struct trace *trace, double *free_s)
{
    double ready = free_s[op->stream];
    for (uint32_t w = 0; w < op->wait_count; w++) ready = later(ready, trace->spans[op->waits[w]].end_s);
    free_s[op->stream] = trace->spans[op->number].end_s;
    return ready;
}

/* Operations of a collective follow each other, and begin when the last is ready. Spans are in plan order. */
static void none_is_late(const struct plan *plan, const struct trace *trace, uint64_t key)
{
    struct plan_walk *walk;
    struct plan_walk_op op;
    struct error err = {0};
    double *free_s = alloc_zeroed(plan_stream_count(plan), sizeof *free_s), ready = 0;
    assert_non_null(free_s);
    assert_int_equal(plan_walk_create(plan, NULL, &walk, &err), STATUS_OK);
    while (plan_walk_next(walk, &op)) {
        bool joins = op.join_count > 1, first = !joins || op.join_at == 0,
            last = !joins || op.join_at + 1 == op.join_count;
        const struct trace_span *span = &trace->spans[op.number];
        double own = ready_s(&op, trace, free_s);
        assert_true(span->number == op.number);
        ready = first ? own : later(ready, own);
        if (last && (span->start_s < ready || span->start_s > ready))
            fail_msg("key %" PRIu64 ": operation %" PRIu64 " begins at %.17g and is ready at %.17g", key, op.number,
                     span->start_s, ready);
    }
    plan_walk_destroy(walk);
    free(free_s);
}

/* Returns the part of the operations that were in memory at once, at most. */
static double simulate(const struct plan *plan, bool spans, uint64_t key)
{
    const struct sim_options options = {.record_spans = spans};
    struct sim_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    if (sim_run(plan, &options, &result, &trace, &err)) fail_msg("key %" PRIu64 ": %s", key, err.text);
    if (spans) none_is_late(plan, &trace, key);
    double part = (double)result.window_peak / (double)result.operations;
    trace_release(&trace);
    sim_result_release(&result);
    return part;
}

static void families(void **state)
{
    static const enum random_family of[] = {RANDOM_REPLICAS, RANDOM_PIPELINED, RANDOM_STALE, RANDOM_TENSOR};
    uint64_t seed = support_seed("gates of families");
    uint32_t plans = 0;
    (void)state;
    for (uint32_t round = 0; round < 4 * ROUNDS; round++) {
        struct plan plan;
        uint64_t key = random_u64(seed, round);
        if (!random_family_plan(of[round % 4], key, &plan)) continue;
        simulate(&plan, true, key);
        plan_release(&plan);
        plans++;
    }
    assert_true(plans > ROUNDS);
}

/* Two replicas of a pipeline, with many microbatches and a step or two: gradients go round at the end of each. */
static void random_pipeline(uint64_t key, uint32_t minibatches, struct plan *out)
{
    struct hardware hardware;
    struct job_set jobs;
    struct test_random_layers layers = {.key = key, .copy_weight = 1};
    uint32_t stages = 2 + (uint32_t)random_below(key, 1, 3), chunks = 1 + (uint32_t)random_below(key, 2, 2);
    test_parallel_machine(&hardware, 2 * stages, 1e9, 1e-6);
    test_profile_jobs(&jobs, 1, 2 * stages * chunks, minibatches, test_random_layer, &layers);
    jobs.jobs[0].microbatches = 2 * stages * (24 + random_below(key, 3, 9));
    jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = stages, .data = 2, .chunks = chunks,
                                              .zero = (uint32_t)random_below(key, 4, 2),
                                              .schedule = chunks > 1 ? PIPELINE_INTERLEAVED : PIPELINE_1F1B};
    test_parallel_plan(&hardware, &jobs, out);
}

static void pipelines(void **state)
{
    uint64_t seed = support_seed("gates of pipelines");
    (void)state;
    for (uint32_t round = 0; round < PIPELINES; round++) {
        struct plan plan;
        uint64_t key = random_u64(seed, round);
        random_pipeline(key, 1 + round % 2, &plan);
        simulate(&plan, true, key);
        double part = simulate(&plan, false, key);
        if (round % 2 == 0 && part > 0.25) fail_msg("key %" PRIu64 ": %.2f of the operations at once", key, part);
        plan_release(&plan);
    }
}

/* --- jobs that take turns in host memory ------------------------------------------------------ */

static void plan_turns(uint64_t host_bytes, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    const struct planner_options options = {.policy = "sharded-lrtf", .activations = PLANNER_AUTO,
                                            .optimizer = PLANNER_AUTO};
    test_hardware(&hardware, 2, 3 << 20, 1e10);
    if (host_bytes > 0) hardware.host_bytes.value = (double)host_bytes;
    test_gpt_jobs(&jobs, 6, 3, 64, 1021, 2);
    for (uint32_t j = 0; j < jobs.count; j++) jobs.jobs[j].minibatches = 4000 + 500 * j;
    if (planner_plan(&hardware, &jobs, &options, plan, &err)) fail_msg("%s", err.text);
}

/* A later job's files could be read at any time: operations until then are not all in memory. */
static void jobs_in_turns(void **state)
{
    (void)state;
    struct plan all, turns;
    plan_turns(0, &all);
    plan_turns(plan_host_bytes(&all) * 6 / 10, &turns);
    assert_non_null(turns.host_ranges);
    const double part = simulate(&turns, false, 0), operations = (double)plan_operations(&turns);
    if (operations < 400000 || part * operations > 30000)
        fail_msg("%.0f of %.0f operations at once", part * operations, operations);
    plan_release(&all);
    plan_release(&turns);
}

/* --- streams in any order ------------------------------------------------------------------- */

static void add_op(struct plan_builder *builder, struct plan_op op, const struct plan_access *accesses, uint32_t count,
                   uint32_t gang, const uint32_t *slot)
{
    plan_builder_unit_begin(builder, 0, 0, PLAN_FORWARD, false);
    plan_builder_op(builder, &op, accesses, count, NULL, 0);
    plan_builder_gang_task(builder, plan_builder_unit_end(builder), gang, slot, slot ? 1 : 0);
}

/*
 * Two replicas compute on a buffer, join it, and copy it out: the first and only operation of the d2h stream waits for
 * one of the data stream, which has the higher number.
 *
 *     compute   C0 C1 ... C49
 *     data                    R
 *     d2h                       D
 */
static void a_first_operation_that_waits(void **state)
{
    enum { COMPUTATIONS = 50, BYTES = 4096 };
    const uint32_t extents[AXIS_COUNT] = {1, 2, 1}, devices[2] = {0, 1};
    struct hardware hardware;
    struct plan plan;
    (void)state;
    test_parallel_machine(&hardware, 2, 1e9, 0);
    struct plan_builder *builder = sim_test_builder(&hardware, 1);
    plan_builder_plan(builder)->jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = 2,
                                                                          .chunks = 1};
    uint32_t gang = plan_builder_gang(builder, extents, devices), slot = plan_builder_slot(builder, 0, BYTES);
    struct plan_buffer buffer = {.kind = BUFFER_GRADIENT, .on_device = true, .bytes = BYTES};
    struct plan_access on_device = {.buffer = plan_builder_buffer(builder, &buffer),
                                    .flags = ACCESS_WRITE | ACCESS_ACQUIRE};
    struct plan_op compute = {.kind = OP_COMPUTE, .stream = STREAM_COMPUTE, .work = sim_test_work(builder, 1000)};
    add_op(builder, compute, &on_device, 1, gang, &slot);
    on_device.flags = ACCESS_READ | ACCESS_WRITE;
    for (uint32_t i = 1; i < COMPUTATIONS; i++) add_op(builder, compute, &on_device, 1, gang, NULL);
    struct plan_op join = {.kind = OP_COLLECTIVE, .stream = STREAM_DATA, .work = PLAN_NONE, .bytes = BYTES, .rounds = 1,
                           .collective = COLLECTIVE_ALL_REDUCE, .axes = 1u << AXIS_DATA};
    add_op(builder, join, &on_device, 1, gang, NULL);
    buffer.on_device = false;
    on_device.flags = ACCESS_READ | ACCESS_RELEASE;
    const struct plan_access out[] = {on_device,
                                      {.buffer = plan_builder_buffer(builder, &buffer), .flags = ACCESS_WRITE}};
    struct plan_op copy = {.kind = OP_COPY, .stream = STREAM_D2H, .work = PLAN_NONE, .bytes = BYTES};
    add_op(builder, copy, out, 2, gang, NULL);
    plan_builder_segment(builder, 1); /* unchanged: a repeated task has no lookahead limits */
    sim_test_finish(builder, &plan);
    double part = simulate(&plan, true, 0);
    if (part > 0.25) fail_msg("%.2f of the operations at once", part);
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(families), cmocka_unit_test(pipelines),
                                       cmocka_unit_test(jobs_in_turns), cmocka_unit_test(a_first_operation_that_waits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
