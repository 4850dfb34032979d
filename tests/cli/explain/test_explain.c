/*
 * cli/explain: critical paths of plans made by hand and of random ones, where the simulator's own replay is the other
 * road; what more of a thing brings, against closed forms; causes that were put into a run found again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "base/size.h"
#include "cli/explain/causes.h"
#include "cli/explain/critical_path.h"
#include "cli/explain/late_members.h"
#include "cli/explain/plan_path.h"
#include "cli/explain/purchase.h"
#include "planner/files/plan_io.h"
#include "sim/replay.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/sim/support_sim.h"
#include "tests/support/support_seed.h"

enum { DEVICES = 2 };

/* --- plans made by hand ---------------------------------------------------------------------- */

/* Makes devices with a duplex link each of 1 GB/s without latency. */
static void machine(struct hardware *hardware)
{
    sim_test_machine(hardware, "cuda", DEVICES);
    for (uint32_t d = 0; d < DEVICES; d++) sim_test_connect(hardware, d, sim_test_link(hardware, 1e9, 0, true));
}

/* A chain on device 0: 3 s in, 2 s of computation, 0.5 s out; and on device 1 one that is over earlier: 1.2, 0.7,
 * 0.1. */
static void chains(struct hardware *hardware, struct plan *plan)
{
    struct plan_builder *builder = sim_test_builder(hardware, 2);
    const struct sim_test_unit units[] = {
        {.job = 0, .number = 0, .in_bytes = 3000000000, .compute_ns = 2000000000, .out_bytes = 500000000},
        {.job = 1, .number = 0, .in_bytes = 1200000000, .compute_ns = 700000000, .out_bytes = 100000000}};
    for (uint32_t d = 0; d < DEVICES; d++) sim_test_run_on(builder, sim_test_unit(builder, &units[d]), d, d);
    *plan = (struct plan){0};
    sim_test_finish(builder, plan);
}

static void find_path(const struct plan *plan, const struct trace *trace, struct arena *arena, struct explain_path *out)
{
    struct explain_times times;
    struct explain_schedule schedule;
    struct error err = {0};
    if (explain_times_read(plan, trace, arena, &times, &err) ||
        explain_schedule_run(plan, &times, arena, &schedule, &err) ||
        explain_path_find(trace, &times, &schedule, arena, out, &err))
        fail_msg("%s", err.text);
}

static void path_by_hand(void **state)
{
    (void)state;
    struct hardware hardware;
    struct plan plan;
    struct sim_test_outcome outcome;
    struct arena arena = {0};
    struct explain_path path;
    machine(&hardware);
    chains(&hardware, &plan);
    sim_test_simulate(&plan, &outcome);
    find_path(&plan, &outcome.trace, &arena, &path);
    SIM_ASSERT_CLOSE(path.makespan_s, 5.5);
    SIM_ASSERT_CLOSE(path.streams[plan_stream(&plan, 0, STREAM_H2D)].seconds, 3);
    SIM_ASSERT_CLOSE(path.streams[plan_stream(&plan, 0, STREAM_COMPUTE)].seconds, 2);
    SIM_ASSERT_CLOSE(path.streams[plan_stream(&plan, 0, STREAM_D2H)].seconds, 0.5);
    assert_int_equal(path.operations, 3);
    assert_int_equal(path.streams[plan_stream(&plan, 1, STREAM_COMPUTE)].operations, 0);
    SIM_ASSERT_CLOSE(path.jobs[0].seconds, 5.5);
    assert_int_equal(path.jobs[1].operations, 0);
    SIM_ASSERT_CLOSE(path.jobs[0].alone_s, 5.5);
    /* who waited for whom: computing for 3 s of copying in, copying out for 2 s of computing */
    assert_int_equal(path.handover_count, 2);
    assert_int_equal(path.handovers[0].waiter, plan_stream(&plan, 0, STREAM_COMPUTE));
    assert_int_equal(path.handovers[0].awaited, plan_stream(&plan, 0, STREAM_H2D));
    SIM_ASSERT_CLOSE(path.handovers[0].awaited_s, 3);
    assert_int_equal(path.handovers[1].waiter, plan_stream(&plan, 0, STREAM_D2H));
    assert_int_equal(path.handovers[1].count, 1);
    arena_release(&arena);
    sim_test_release(&outcome);
    plan_release(&plan);
}

/* --- what more of a thing brings --------------------------------------------------------------- */

static const struct explain_purchase *find(const struct explain_purchase *purchases, uint32_t count, uint32_t resource,
                                           uint32_t first)
{
    for (uint32_t i = 0; i < count; i++)
        if (purchases[i].resource == resource && purchases[i].first == first) return &purchases[i];
    fail_msg("no purchase %u of resource %u", first, resource);
    return NULL;
}

static uint32_t buy(const struct plan *plan, double more, struct arena *arena, struct explain_purchase *out)
{
    struct error err = {0};
    uint32_t count;
    if (explain_purchases(plan, more, arena, out, &count, &err)) fail_msg("%s", err.text);
    for (uint32_t i = 1; i < count; i++) assert_true(out[i - 1].gain >= out[i].gain);
    return count;
}

/* 5.5 s, of which 3.5 s are the link's and 2 s the device's, held against 10 % more of each; device 1's link is of
 * no use. */
static void purchases_of_a_chain(void **state)
{
    (void)state;
    struct hardware hardware;
    struct plan plan;
    struct arena arena = {0};
    struct explain_purchase purchases[EXPLAIN_PURCHASES_MAX];
    machine(&hardware);
    chains(&hardware, &plan);
    uint32_t count = buy(&plan, 0.1, &arena, purchases);
    assert_int_equal(count, 3);
    const struct explain_purchase *link = find(purchases, count, EXPLAIN_LINK, 0);
    SIM_ASSERT_CLOSE(link->before_s, 5.5);
    SIM_ASSERT_CLOSE(link->gain, 5.5 / (3.5 / 1.1 + 2) - 1);
    SIM_ASSERT_CLOSE(link->derivative, log(5.5 / (3.5 / 1.1 + 2)) / log(1.1));
    SIM_ASSERT_CLOSE(find(purchases, count, EXPLAIN_COMPUTE, 0)->gain, 5.5 / (3.5 + 2 / 1.1) - 1);
    assert_true(fabs(find(purchases, count, EXPLAIN_LINK, 1)->gain) < 1e-12);
    assert_true(fabs(find(purchases, count, EXPLAIN_LINK, 1)->derivative) < 1e-12);
    arena_release(&arena);
    plan_release(&plan);
}

/* The named rate is the rate of the jobs' precision, fp32 here, not the device's highest rate. */
static void compute_is_named_by_the_jobs(void **state)
{
    (void)state;
    struct hardware hardware;
    struct plan plan;
    struct arena arena = {0};
    struct explain_purchase purchases[EXPLAIN_PURCHASES_MAX];
    machine(&hardware);
    chains(&hardware, &plan);
    plan.hardware.types[0].peak_fp32.value = 15.7e12;
    plan.hardware.types[0].peak_tf32.value = 0;
    plan.hardware.types[0].peak_bf16.value = 125e12;
    uint32_t count = buy(&plan, 0.1, &arena, purchases);
    SIM_ASSERT_CLOSE(find(purchases, count, EXPLAIN_COMPUTE, 0)->value, 15.7e12);
    arena_release(&arena);
    plan_release(&plan);
}

/* With only copies on one device, throughput grows like the link's rate, also with measured copies, which the cost
 * model prefers. */
static void purchase_of_a_lone_bottleneck(void **state)
{
    (void)state;
    static const struct copy_point measured[] = {{1000000, 0.002, 0}, {1000000000, 1.385, 0}};
    for (int curve = 0; curve < 2; curve++) {
        struct hardware hardware;
        struct plan plan = {0};
        struct arena arena = {0};
        struct explain_purchase purchases[EXPLAIN_PURCHASES_MAX];
        machine(&hardware);
        if (curve) {
            hardware.types[0].h2d = measured;
            hardware.types[0].h2d_count = 2;
        }
        struct plan_builder *builder = sim_test_builder(&hardware, 1);
        for (uint32_t i = 0; i < 3; i++)
            sim_test_run_on(builder,
                            sim_test_unit(builder, &(struct sim_test_unit){.number = i, .in_bytes = 1000000000}), 0, i);
        sim_test_finish(builder, &plan);
        uint32_t types = plan.hardware.type_count, count = buy(&plan, 0.25, &arena, purchases);
        const struct explain_purchase *link = find(purchases, count, EXPLAIN_LINK, 0);
        SIM_ASSERT_CLOSE(link->before_s, curve ? 3 * 1.385 : 3.0);
        SIM_ASSERT_CLOSE(link->gain, 0.25);
        SIM_ASSERT_CLOSE(link->derivative, 1);
        assert_true(fabs(find(purchases, count, EXPLAIN_LINK, 1)->gain) < 1e-12);
        assert_true(fabs(find(purchases, count, EXPLAIN_COMPUTE, 0)->gain) < 1e-12);
        /* the machine itself is as it was */
        SIM_ASSERT_CLOSE(plan.hardware.links[0].bandwidth.value, 1e9);
        assert_int_equal(plan.hardware.type_count, types);
        arena_release(&arena);
        plan_release(&plan);
    }
}

/* --- random plans ------------------------------------------------------------------------------ */

static void same_share(const struct explain_share *a, const struct explain_share *b)
{
    assert_memory_equal(&a->seconds, &b->seconds, sizeof a->seconds);
    assert_memory_equal(&a->alone_s, &b->alone_s, sizeof a->alone_s);
    assert_true(a->operations == b->operations);
}

/* Finds the path from the spans as they come, with few rows in memory: the same, to the last bit. */
static void from_spans(const struct plan *plan, const struct trace *trace, const struct explain_path *whole)
{
    static const uint64_t windows[] = {16, 64, EXPLAIN_PLAN_WINDOW};
    for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
        struct explain_plan_path *spans;
        struct sim_result result = {0};
        struct trace bare = {0};
        struct arena arena = {0};
        struct explain_path path;
        struct error err = {0};
        if (explain_plan_path_create(plan, windows[w], &spans, &err)) fail_msg("%s", err.text);
        const struct sim_options options = {.on_span = explain_plan_path_span, .spans = spans};
        if (sim_run(plan, &options, &result, &bare, &err) || explain_plan_path_find(spans, &bare, &arena, &path, &err))
            fail_msg("%s", err.text);
        assert_int_equal(bare.span_count, 0);
        assert_int_equal(path.stream_count, trace->stream_count);
        assert_int_equal(path.job_count, trace->job_count);
        assert_memory_equal(&path.makespan_s, &whole->makespan_s, sizeof path.makespan_s);
        assert_memory_equal(&path.gap_s, &whole->gap_s, sizeof path.gap_s);
        assert_true(path.operations == whole->operations);
        for (uint32_t s = 0; s < path.stream_count; s++) same_share(&path.streams[s], &whole->streams[s]);
        for (uint32_t j = 0; j < path.job_count; j++) same_share(&path.jobs[j], &whole->jobs[j]);
        assert_int_equal(path.handover_count, whole->handover_count);
        for (size_t i = 0; i < path.handover_count; i++) {
            assert_int_equal(path.handovers[i].waiter, whole->handovers[i].waiter);
            assert_int_equal(path.handovers[i].awaited, whole->handovers[i].awaited);
            assert_true(path.handovers[i].count == whole->handovers[i].count);
        }
        explain_plan_path_destroy(spans);
        arena_release(&arena);
        sim_result_release(&result);
        trace_release(&bare);
    }
}

/* Streams and gaps add up to the makespan, as do jobs and gaps; the simulator's replay finds the same path. */
static void shares_add_up(void **state)
{
    (void)state;
    uint64_t seed = support_seed("explain_shares");
    const struct sim_replay_change none = sim_replay_unchanged();
    for (uint32_t c = 0; c < 16; c++) {
        struct plan plan;
        struct sim_test_outcome outcome;
        struct trace again = {0};
        struct sim_replay replay;
        struct arena arena = {0};
        struct explain_path path;
        struct error err = {0};
        double by_kind[STREAM_KIND_COUNT] = {0}, streams_s = 0, jobs_s = 0;
        test_parallel_or_spilled(random_u64(seed, c), c % 2 == 1, &plan);
        sim_test_simulate(&plan, &outcome);
        find_path(&plan, &outcome.trace, &arena, &path);
        from_spans(&plan, &outcome.trace, &path);
        for (uint32_t s = 0; s < path.stream_count; s++) {
            by_kind[outcome.trace.streams[s].kind] += path.streams[s].seconds;
            streams_s += path.streams[s].seconds;
        }
        for (uint32_t j = 0; j < path.job_count; j++) jobs_s += path.jobs[j].seconds;
        SIM_ASSERT_CLOSE(path.makespan_s, outcome.result.makespan_s);
        SIM_ASSERT_CLOSE(streams_s + path.gap_s, outcome.result.makespan_s);
        SIM_ASSERT_CLOSE(jobs_s + path.gap_s, outcome.result.makespan_s);
        if (sim_replay_run(&plan, &outcome.trace, &none, &again, &replay, &err)) fail_msg("%s", err.text);
        for (uint32_t k = 0; k < STREAM_KIND_COUNT; k++) SIM_ASSERT_NEAR(by_kind[k], replay.path_s[k], path.makespan_s);
        assert_int_equal(path.operations, replay.path_count);
        trace_release(&again);
        arena_release(&arena);
        sim_test_release(&outcome);
        plan_release(&plan);
    }
}

/* --- causes ------------------------------------------------------------------------------------ */

static double sum(const struct explain_causes *causes)
{
    double seconds = causes->rest_s;
    for (uint32_t c = 0; c < EXPLAIN_CAUSE_COUNT; c++) seconds += causes->parts[c].seconds;
    return seconds;
}

/* Makes a run that differs from its prediction in one respect, by the simulator's replay. */
static void measure(const struct plan *plan, const struct trace *predicted, const struct sim_replay_change *change,
                    struct trace *out)
{
    struct sim_replay replay;
    struct error err = {0};
    *out = (struct trace){0};
    if (sim_replay_run(plan, predicted, change, out, &replay, &err)) fail_msg("%s", err.text);
    out->source = TRACE_MEASURED;
}

static enum status find_causes(const struct plan *plan, const struct trace *predicted, const struct trace *measured,
                               struct explain_causes *out, struct error *err)
{
    struct arena arena = {0};
    struct explain_times promised;
    enum status status = explain_times_read(plan, predicted, &arena, &promised, err);
    if (status == STATUS_OK) status = explain_causes_find(plan, &promised, predicted->makespan_s, measured, out, err);
    arena_release(&arena);
    return status;
}

static void causes_are_found(void **state)
{
    (void)state;
    uint64_t seed = support_seed("explain_causes");
    static const double slow[DEVICES] = {1.7, 1.7};
    for (uint32_t c = 0; c < 16; c++) {
        struct plan plan;
        struct sim_test_outcome predicted;
        struct trace measured;
        struct explain_causes causes;
        struct error err = {0};
        struct sim_replay_change change = sim_replay_unchanged();
        bool copies = c % 2 == 0;
        test_parallel_or_spilled(random_u64(seed, c), false, &plan);
        sim_test_simulate(&plan, &predicted);
        if (copies) change.scale[STREAM_H2D] = change.scale[STREAM_D2H] = 2.385;
        else change.slow = slow;
        measure(&plan, &predicted.trace, &change, &measured);
        if (find_causes(&plan, &predicted.trace, &measured, &causes, &err)) fail_msg("%s", err.text);
        double difference_s = measured.makespan_s - predicted.trace.makespan_s, guilty_s = 0;
        SIM_ASSERT_NEAR(sum(&causes), difference_s, measured.makespan_s);
        if (copies) guilty_s = causes.parts[EXPLAIN_COPY_SMALL].seconds + causes.parts[EXPLAIN_COPY_SHARED].seconds +
                               causes.parts[EXPLAIN_COPY_BESIDE_COMPUTE].seconds +
                               causes.parts[EXPLAIN_COPY_ALONE].seconds;
        else guilty_s = causes.parts[EXPLAIN_COMPUTE_BESIDE_COPY].seconds + causes.parts[EXPLAIN_COMPUTE_ALONE].seconds;
        assert_true(difference_s > 0);
        SIM_ASSERT_NEAR(guilty_s, difference_s, measured.makespan_s);
        trace_release(&measured);
        sim_test_release(&predicted);
        plan_release(&plan);
    }
}

/* By hand: the copy in takes 1 s longer, and the computation begins 0.25 s late. */
static void causes_by_hand(void **state)
{
    (void)state;
    struct hardware hardware;
    struct plan plan;
    struct sim_test_outcome predicted, measured;
    struct explain_causes causes;
    struct error err = {0};
    machine(&hardware);
    chains(&hardware, &plan);
    sim_test_simulate(&plan, &predicted);
    sim_test_simulate(&plan, &measured);
    for (uint64_t n = 0; n < measured.trace.span_count; n++) {
        struct trace_span *span = &measured.trace.spans[n];
        const struct trace_stream *stream = &measured.trace.streams[span->stream];
        if (stream->device != 0) continue;
        span->start_s += stream->kind == STREAM_H2D ? 0 : 1.25;
        span->end_s += stream->kind == STREAM_H2D ? 1 : 1.25;
    }
    measured.trace.source = TRACE_MEASURED;
    trace_finish(&measured.trace);
    if (find_causes(&plan, &predicted.trace, &measured.trace, &causes, &err)) fail_msg("%s", err.text);
    SIM_ASSERT_CLOSE(causes.parts[EXPLAIN_GAPS].seconds, 0.25);
    SIM_ASSERT_CLOSE(causes.parts[EXPLAIN_COPY_ALONE].seconds, 1);
    assert_int_equal(causes.parts[EXPLAIN_GAPS].operations, 1);
    SIM_ASSERT_CLOSE(causes.parts[EXPLAIN_COPY_ALONE].measured_s, 4 + 0.5 + 1.2 + 0.1);
    SIM_ASSERT_CLOSE(sum(&causes), 1.25);
    sim_test_release(&measured);
    sim_test_release(&predicted);
    plan_release(&plan);
}

/* Computations of 2 s on both devices, before a collective of both. */
static void meeting_plan(struct plan *out)
{
    struct hardware hardware;
    const uint32_t extents[AXIS_COUNT] = {2, 1, 1}, devices[] = {0, 1};
    const struct plan_op op = {.kind = OP_COLLECTIVE, .collective = COLLECTIVE_ALL_REDUCE, .stream = STREAM_COMPUTE,
                               .axes = 1u << AXIS_TENSOR, .rounds = 1, .bytes = 1000000, .work = PLAN_NONE};
    machine(&hardware);
    struct plan_builder *builder = sim_test_builder(&hardware, 3);
    const uint32_t gang = plan_builder_gang(builder, extents, devices);
    uint32_t units[DEVICES + 1];
    for (uint32_t d = 0; d < DEVICES; d++)
        units[d] = sim_test_unit(builder, &(struct sim_test_unit){.job = d, .compute_ns = 2000000000});
    plan_builder_unit_begin(builder, 2, 0, PLAN_FORWARD, false);
    plan_builder_op(builder, &op, NULL, 0, NULL, 0);
    units[DEVICES] = plan_builder_unit_end(builder);
    for (uint32_t d = 0; d < DEVICES; d++) sim_test_run_on(builder, units[d], d, d);
    plan_builder_gang_task(builder, units[DEVICES], gang, NULL, 0);
    sim_test_finish(builder, out);
}

/* Computations that end so many seconds later than planned; the collective follows them, and takes as long as planned.
 * A time by which both are later is the computations' fault; the rest is waiting for the member that came last. */
static void waiting_for_members(void **state)
{
    (void)state;
    static const double later_s[][DEVICES] = {{0, 1}, {1.5, 0}, {1, 1}, {1, 3}, {0, 0}};
    for (size_t c = 0; c < ARRAY_COUNT(later_s) * 2; c++) {
        const double *const by_s = later_s[c / 2], both_s = fmin(by_s[0], by_s[1]), last_s = fmax(by_s[0], by_s[1]);
        const bool has_waits = c % 2 == 0;
        struct plan plan = {0};
        struct sim_test_outcome predicted, measured;
        struct explain_causes causes;
        struct explain_late_members late;
        struct arena arena = {0};
        struct error err = {0};
        meeting_plan(&plan);
        sim_test_simulate(&plan, &predicted);
        sim_test_simulate(&plan, &measured);
        for (uint32_t d = 0; d < DEVICES; d++) {
            struct trace_span *const computes = &measured.trace.spans[d],
                *const joins = &measured.trace.spans[DEVICES + d];
            computes->end_s += by_s[d];
            joins->start_s += last_s;
            joins->end_s += last_s;
            joins->waited_s = has_waits ? last_s - by_s[d] : 0;
        }
        measured.trace.has_waits = has_waits; /* else the plan says who waited */
        measured.trace.source = TRACE_MEASURED;
        trace_finish(&measured.trace);
        if (find_causes(&plan, &predicted.trace, &measured.trace, &causes, &err)) fail_msg("%s", err.text);
        const double whole_s = predicted.trace.makespan_s;
        SIM_ASSERT_NEAR(causes.parts[EXPLAIN_MEMBERS].seconds, last_s - both_s, whole_s);
        SIM_ASSERT_NEAR(causes.parts[EXPLAIN_MEMBERS].measured_s, last_s - both_s, whole_s);
        SIM_ASSERT_NEAR(causes.parts[EXPLAIN_MEMBERS].predicted_s, 0, whole_s);
        SIM_ASSERT_NEAR(causes.parts[EXPLAIN_COMPUTE_ALONE].seconds, both_s, whole_s);
        SIM_ASSERT_NEAR(sum(&causes), last_s, whole_s);
        if (explain_late_members_find(&plan, &measured.trace, &arena, &late, &err)) fail_msg("%s", err.text);
        assert_int_equal(late.count, has_waits && last_s > both_s);
        if (late.count > 0) {
            assert_int_equal(late.items[0].device, by_s[1] > by_s[0]);
            assert_int_equal(late.items[0].times, 1);
            SIM_ASSERT_CLOSE(late.items[0].seconds, last_s - both_s);
        }
        arena_release(&arena);
        sim_test_release(&measured);
        sim_test_release(&predicted);
        plan_release(&plan);
    }
}

static void refused(void **state)
{
    (void)state;
    struct hardware hardware;
    struct plan plan;
    struct sim_test_outcome outcome;
    struct arena arena = {0};
    struct explain_times times;
    machine(&hardware);
    chains(&hardware, &plan);
    sim_test_simulate(&plan, &outcome);
    uint64_t count = outcome.trace.span_count;
    outcome.trace.span_count--;
    struct error err = {0};
    assert_int_equal(explain_times_read(&plan, &outcome.trace, &arena, &times, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "the trace ends before the plan does: it has 5 of 6 operations");
    outcome.trace.span_count = count;
    outcome.trace.plan_fingerprint ^= 1;
    err = (struct error){0};
    assert_int_equal(explain_times_read(&plan, &outcome.trace, &arena, &times, &err), STATUS_BAD_INPUT);
    assert_non_null(strstr(err.text, "the trace is of another plan"));
    arena_release(&arena);
    sim_test_release(&outcome);
    plan_release(&plan);
}

/* Returns the gain of twice the memory for the plan, which is written to a file. */
static struct explain_purchase twice_the_memory(const struct plan *plan)
{
    char path[] = "/tmp/spillway-explain-XXXXXX";
    struct explain_purchase purchase;
    struct error err = {0};
    bool known;
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    if (plan_write(plan, path, &err) || explain_memory_purchase(path, 1, &purchase, &known, &err))
        fail_msg("%s", err.text);
    unlink(path);
    assert_true(known);
    return purchase;
}

/* Jobs that are spilled through devices with little memory are planned again, with that memory and with more. */
static void memory(void **state)
{
    (void)state;
    struct plan plan;
    test_parallel_or_spilled(2385, false, &plan);
    struct explain_purchase purchase = twice_the_memory(&plan);
    SIM_ASSERT_CLOSE(purchase.value, 500000);
    assert_true(purchase.before_s > 0 && purchase.after_s > 0);
    SIM_ASSERT_CLOSE(1 + purchase.gain, purchase.before_s / purchase.after_s);
    SIM_ASSERT_CLOSE(purchase.derivative, log(purchase.before_s / purchase.after_s) / log(2));
    plan_release(&plan);
}

static struct test_layer equal_layer(void *context, uint32_t job, uint32_t layer)
{
    (void)context, (void)job;
    return (struct test_layer){.parameter_bytes = 4000000, .boundary_bytes = 1024, .activation_bytes = 4096,
                               .forward_ns = 500000 + 1000 * layer, .backward_ns = 1000000};
}

/* Resident jobs: planned again they give the same plan, and devices that hold their states need no more memory. */
static void memory_of_resident_placement(void **state)
{
    (void)state;
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO, .resident = true};
    test_hardware(&hardware, 2, 200000000, 1e9);
    test_profile_jobs(&jobs, 2, 5, 3, equal_layer, NULL);
    if (planner_plan(&hardware, &jobs, &options, &plan, &err)) fail_msg("%s", err.text);
    assert_int_equal(plan.reservation_count, 2);
    struct explain_purchase purchase = twice_the_memory(&plan);
    SIM_ASSERT_CLOSE(purchase.before_s, test_parallel_simulate(&plan, false).makespan_s);
    SIM_ASSERT_CLOSE(purchase.after_s, purchase.before_s);
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path_by_hand),  cmocka_unit_test(purchases_of_a_chain),
        cmocka_unit_test(compute_is_named_by_the_jobs), cmocka_unit_test(purchase_of_a_lone_bottleneck),
        cmocka_unit_test(shares_add_up), cmocka_unit_test(causes_are_found),     cmocka_unit_test(causes_by_hand),
        cmocka_unit_test(waiting_for_members),
        cmocka_unit_test(refused),       cmocka_unit_test(memory),
        cmocka_unit_test(memory_of_resident_placement),
    };
    return cmocka_run_group_tests_name("cli/explain", tests, NULL, NULL);
}
