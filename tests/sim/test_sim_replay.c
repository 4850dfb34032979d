/*
 * sim/replay.h (label: fast): recorded traces unchanged to the last digit, changed as the simulator has it where
 * nothing is shared, gaps that were put in found again and taken out, records that are none of the plan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "planner/walk/plan_walk.h"
#include "sim/replay.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/sim/support_sim.h"
#include "tests/support/support_seed.h"

enum { DEVICES = 2 };

static void replay(const struct plan *plan, const struct trace *record, const struct sim_replay_change *change,
                   struct trace *out, struct sim_replay *result)
{
    struct error err = {0};
    *out = (struct trace){0};
    if (sim_replay_run(plan, record, change, out, result, &err) || trace_check(out, &err)) fail_msg("%s", err.text);
}

static double replayed_s(const struct plan *plan, const struct trace *record, const struct sim_replay_change *change)
{
    struct trace out;
    struct sim_replay result;
    replay(plan, record, change, &out, &result);
    double path_s = result.path_gap_s;
    for (uint32_t k = 0; k < STREAM_KIND_COUNT; k++) path_s += result.path_s[k];
    SIM_ASSERT_CLOSE(path_s, result.makespan_s);
    trace_release(&out);
    return result.makespan_s;
}

/* --- unchanged ------------------------------------------------------------------------------- */

/* Also with shared links and collectives, each span keeps its place, without gaps. */
static void test_unchanged(void **state)
{
    (void)state;
    uint64_t seed = support_seed("replay_unchanged");
    const struct sim_replay_change none = sim_replay_unchanged();
    for (uint32_t c = 0; c < 24; c++) {
        struct plan plan;
        struct sim_test_outcome recorded;
        struct trace out;
        struct sim_replay result;
        test_parallel_or_spilled(random_u64(seed, c), c % 2 == 1, &plan);
        sim_test_simulate(&plan, &recorded);
        replay(&plan, &recorded.trace, &none, &out, &result);
        SIM_ASSERT_CLOSE(result.makespan_s, recorded.result.makespan_s);
        assert_int_equal(out.span_count, recorded.trace.span_count);
        for (uint64_t n = 0; n < out.span_count; n++) {
            SIM_ASSERT_NEAR(out.spans[n].start_s, recorded.trace.spans[n].start_s, result.makespan_s);
            SIM_ASSERT_NEAR(out.spans[n].end_s, recorded.trace.spans[n].end_s, result.makespan_s);
        }
        assert_true(result.gap_s <= 1e-9 * result.makespan_s && result.early_s <= 1e-9 * result.makespan_s);
        trace_release(&out);
        sim_test_release(&recorded);
        plan_release(&plan);
    }
}

/* --- changed --------------------------------------------------------------------------------- */

static double simulated_s(const struct plan *plan, const struct sim_options *options)
{
    struct sim_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    if (sim_run(plan, options, &result, &trace, &err)) fail_msg("%s", err.text);
    double makespan_s = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    return makespan_s;
}

/* Compares with the simulator: all links are duplex and of one device, so no copy slows another one. */
static void test_two_roads(void **state)
{
    (void)state;
    uint64_t seed = support_seed("replay_changed");
    for (uint32_t c = 0; c < 12; c++) {
        struct plan plan, again;
        struct sim_test_outcome recorded;
        uint64_t key = random_u64(seed, c);
        const double slow[DEVICES] = {1, 2.385};
        test_parallel_or_spilled(key, false, &plan);
        test_parallel_or_spilled(key, false, &again);
        sim_test_simulate(&plan, &recorded);
        struct sim_replay_change change = sim_replay_unchanged();
        change.slow = slow;
        SIM_ASSERT_CLOSE(replayed_s(&plan, &recorded.trace, &change),
                         simulated_s(&plan, &(struct sim_options){.slow = slow}));

        /* half the rate of every link: by the cost model, and by hand, for there is no latency */
        for (uint32_t l = 0; l < again.hardware.link_count; l++) again.hardware.links[l].bandwidth.value *= 0.5;
        double halved_s = simulated_s(&plan, &(struct sim_options){.hardware = &again.hardware});
        change = sim_replay_unchanged();
        change.hardware = &again.hardware;
        SIM_ASSERT_CLOSE(replayed_s(&plan, &recorded.trace, &change), halved_s);
        change = sim_replay_unchanged();
        change.scale[STREAM_H2D] = change.scale[STREAM_D2H] = 2;
        SIM_ASSERT_CLOSE(replayed_s(&plan, &recorded.trace, &change), halved_s);
        sim_test_release(&recorded);
        plan_release(&plan);
        plan_release(&again);
    }
}

/* Rates of collectives and of copies between devices: bytes over twice the bandwidth, without latency, take half. */
static void test_collectives(void **state)
{
    (void)state;
    struct plan plan, again;
    struct sim_test_outcome recorded;
    uint64_t seed = support_seed("replay_collectives");
    test_parallel_or_spilled(seed, true, &plan);
    test_parallel_or_spilled(seed, true, &again);
    for (uint32_t l = 0; l < plan.hardware.link_count; l++) {
        plan.hardware.links[l].latency.value = again.hardware.links[l].latency.value = 0;
        again.hardware.links[l].bandwidth.value *= 2;
    }
    sim_test_simulate(&plan, &recorded);
    struct sim_replay_change change = sim_replay_unchanged();
    change.hardware = &again.hardware;
    double faster_s = replayed_s(&plan, &recorded.trace, &change);
    SIM_ASSERT_CLOSE(faster_s, simulated_s(&plan, &(struct sim_options){.hardware = &again.hardware}));
    assert_true(faster_s < recorded.result.makespan_s);
    sim_test_release(&recorded);
    plan_release(&plan);
    plan_release(&again);
}

/* --- gaps ------------------------------------------------------------------------------------ */

/* A record as an executor would write it, which is late for each operation by a gap of its own: by what the walk says
 * an operation waits for. It begins at 3 s by its clock. Returns the sum of the gaps. */
static double make_late(const struct plan *plan, struct trace *trace, uint64_t key)
{
    struct plan_walk *walk;
    struct plan_walk_op op;
    struct error err = {0};
    double sum_s = 0, last_s[64];
    assert_true(trace->stream_count <= 64);
    for (uint32_t s = 0; s < trace->stream_count; s++) last_s[s] = 3;
    if (plan_walk_create(plan, NULL, &walk, &err)) fail_msg("%s", err.text);
    while (plan_walk_next(walk, &op)) {
        struct trace_span *span = &trace->spans[op.number];
        double ready_s = last_s[op.stream], seconds = span->end_s - span->start_s;
        double gap_s = op.number == 0 ? 0 : 1e-5 * random_unit(key, op.number);
        for (uint32_t w = 0; w < op.wait_count; w++) ready_s = fmax(ready_s, trace->spans[op.waits[w]].end_s);
        span->start_s = ready_s + gap_s;
        span->end_s = last_s[op.stream] = span->start_s + seconds;
        sum_s += gap_s;
    }
    plan_walk_destroy(walk);
    trace->source = TRACE_MEASURED;
    trace->level_count = 0;
    trace_finish(trace);
    return sum_s;
}

static void test_gaps(void **state)
{
    (void)state;
    uint64_t seed = support_seed("replay_gaps");
    for (uint32_t c = 0; c < 12; c++) {
        struct plan plan;
        struct sim_test_outcome recorded;
        struct trace out;
        struct sim_replay result;
        test_parallel_or_spilled(random_u64(seed, c), false, &plan);
        sim_test_simulate(&plan, &recorded);
        double undisturbed_s = recorded.result.makespan_s,
            sum_s = make_late(&plan, &recorded.trace, random_u64(seed, c));
        struct sim_replay_change change = sim_replay_unchanged();
        replay(&plan, &recorded.trace, &change, &out, &result);
        assert_true(fabs(result.makespan_s - recorded.trace.makespan_s) <= 1e-9 * result.makespan_s);
        assert_true(result.makespan_s > undisturbed_s);
        assert_true(fabs(result.gap_s - sum_s) <= 1e-9 * sum_s);
        trace_release(&out);
        change.gap_scale = 0;
        assert_true(fabs(replayed_s(&plan, &recorded.trace, &change) - undisturbed_s) <= 1e-9 * undisturbed_s);
        sim_test_release(&recorded);
        plan_release(&plan);
    }
}

/* In 2 ms, computation 1.7 ms, out 2 ms. The record has the computation begin 0.1 ms before its copy in has ended:
 * it is replayed after the copy. */
static void test_too_early(void **state)
{
    (void)state;
    struct hardware hardware;
    struct plan plan = {0};
    struct sim_test_outcome recorded;
    struct trace out;
    struct sim_replay result;
    sim_test_machine(&hardware, "cuda", 1);
    sim_test_connect(&hardware, 0, sim_test_link(&hardware, 1e9, 0, true));
    struct plan_builder *builder = sim_test_builder(&hardware, 1);
    const struct sim_test_unit unit = {.in_bytes = 2000000, .compute_ns = 1700000, .out_bytes = 2000000};
    sim_test_run_on(builder, sim_test_unit(builder, &unit), 0, 0);
    sim_test_finish(builder, &plan);
    sim_test_simulate(&plan, &recorded);
    for (uint32_t n = 1; n < 3; n++) {
        recorded.trace.spans[n].start_s -= 1e-4;
        recorded.trace.spans[n].end_s -= 1e-4;
    }
    recorded.trace.level_count = 0;
    trace_finish(&recorded.trace);
    const struct sim_replay_change none = sim_replay_unchanged();
    replay(&plan, &recorded.trace, &none, &out, &result);
    SIM_ASSERT_CLOSE(recorded.trace.makespan_s, 5.6e-3);
    SIM_ASSERT_CLOSE(result.makespan_s, 5.7e-3);
    SIM_ASSERT_CLOSE(result.early_s, 1e-4);
    assert_int_equal(result.early_count, 1);
    SIM_ASSERT_CLOSE(result.path_s[STREAM_COMPUTE], 1.7e-3);
    SIM_ASSERT_CLOSE(result.path_s[STREAM_H2D], 2e-3);
    assert_int_equal(result.path_count, 3);
    trace_release(&out);
    sim_test_release(&recorded);
    plan_release(&plan);
}

/* --- records that are none ------------------------------------------------------------------- */

static void other_plan(struct trace *trace) { trace->plan_fingerprint++; }
static void no_spans(struct trace *trace) { trace->span_count = 0; }
static void stopped(struct trace *trace) { trace->complete = false; }
static void shorter(struct trace *trace) { trace->span_count--; }
static void other_stream(struct trace *trace) { trace->spans[2].stream++; }

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        void (*damage)(struct trace *trace);
        const char *complaint;
    } cases[] = {{other_plan, "the trace is of another plan (fingerprint "},
                 {no_spans, "the trace has no operations"},
                 {stopped, "the trace ends before the plan does: it has "},
                 {shorter, "the trace ends before the plan does: it has "},
                 {other_stream, "the trace's operation 2 is not the plan's"}};
    const struct sim_replay_change none = sim_replay_unchanged();
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct plan plan;
        struct sim_test_outcome recorded;
        struct trace out = {0};
        struct sim_replay result;
        struct error err = {0};
        test_parallel_or_spilled(5, false, &plan);
        sim_test_simulate(&plan, &recorded);
        cases[i].damage(&recorded.trace);
        assert_int_equal(sim_replay_run(&plan, &recorded.trace, &none, &out, &result, &err), STATUS_BAD_INPUT);
        if (!strstr(err.text, cases[i].complaint)) fail_msg("'%s' does not say '%s'", err.text, cases[i].complaint);
        trace_release(&out);
        sim_test_release(&recorded);
        plan_release(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unchanged), cmocka_unit_test(test_two_roads), cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_gaps),      cmocka_unit_test(test_too_early), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("sim/replay", tests, NULL, NULL);
}
