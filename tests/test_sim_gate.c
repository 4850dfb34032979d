/*
 * Operations are issued no later than they are needed, and not all of them at once (label: fast): by the walk and the
 * spans alone, each begins at the very moment when its stream is free and all that it waits for has ended; and pipelines
 * with replicas keep a small part of their operations in memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/random.h"
#include "planner/plan_walk.h"
#include "sim/sim.h"
#include "tests/support_planner.h"
#include "tests/support_random_family.h"
#include "tests/support_seed.h"
#include "tests/support_spread.h"

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
        bool joins = op.join_count > 1, first = !joins || op.join_at == 0, last = !joins || op.join_at + 1 == op.join_count;
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
    (void)state;
    for (uint32_t round = 0; round < 4 * ROUNDS; round++) {
        struct plan plan;
        uint64_t key = random_u64(seed, round);
        if (!random_family_plan(of[round % 4], key, &plan)) continue;
        simulate(&plan, true, key);
        plan_release(&plan);
    }
}

/* Two replicas of a pipeline, with many microbatches and a step or two: gradients go round at the end of each. */
static void random_pipeline(uint64_t key, uint32_t minibatches, struct plan *out)
{
    struct hardware hardware;
    struct job_set jobs;
    struct test_random_layers layers = {.key = key, .copy_weight = 1};
    uint32_t stages = 2 + (uint32_t)random_below(key, 1, 3), chunks = 1 + (uint32_t)random_below(key, 2, 2);
    test_spread_machine(&hardware, 2 * stages, 1e9, 1e-6);
    test_profile_jobs(&jobs, 1, 2 * stages * chunks, minibatches, test_random_layer, &layers);
    jobs.jobs[0].microbatches = 2 * stages * (24 + random_below(key, 3, 9));
    jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = stages, .data = 2, .chunks = chunks,
                                              .zero = (uint32_t)random_below(key, 4, 2),
                                              .schedule = chunks > 1 ? PIPELINE_INTERLEAVED : PIPELINE_1F1B};
    test_spread_plan(&hardware, &jobs, out);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(families), cmocka_unit_test(pipelines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
