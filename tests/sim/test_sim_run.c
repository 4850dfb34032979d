/* sim/sim.h against closed forms: small plans whose makespan can be worked out on paper. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "models/cost/cost.h"
#include "tests/support/sim/support_sim.h"

/* Makes one device with one link. */
static void one_device(struct hardware *hardware, double bytes_per_s, double latency_s, bool duplex)
{
    sim_test_machine(hardware, "cuda", 1);
    sim_test_connect(hardware, 0, sim_test_link(hardware, bytes_per_s, latency_s, duplex));
}

static uint32_t unit_of(struct plan_builder *builder, uint32_t number, uint64_t in_bytes,
                        uint64_t compute_ns, uint64_t out_bytes)
{
    return sim_test_unit(builder, &(struct sim_test_unit){.number = number,
                                                          .in_bytes = in_bytes,
                                                          .compute_ns = compute_ns,
                                                          .out_bytes = out_bytes});
}

/* --- one operation after the other ---------------------------------------------------------- */

/* 25 us + 2 385 000 B / 1.2e9 B/s */
static void test_one_copy(void **state)
{
    (void)state;
    struct hardware hardware;
    one_device(&hardware, 1.2e9, 25e-6, true);
    struct plan_builder *builder = sim_test_builder(&hardware, 1);
    sim_test_run_on(builder, unit_of(builder, 0, 2385000, 0, 0), 0, 0);
    SIM_ASSERT_CLOSE(sim_test_makespan(builder), 25e-6 + 2385000 / 1.2e9);
}

/* In, compute, out wait for each other: 2 latencies, 3e6 + 2e6 bytes, 1.7 ms. */
static void test_a_chain(void **state)
{
    (void)state;
    struct hardware hardware;
    one_device(&hardware, 1.2e9, 25e-6, true);
    struct plan_builder *builder = sim_test_builder(&hardware, 1);
    sim_test_run_on(builder, unit_of(builder, 0, 3000000, 1700000, 2000000), 0, 0);
    SIM_ASSERT_CLOSE(sim_test_makespan(builder), 2 * 25e-6 + 5e6 / 1.2e9 + 1.7e-3);
}

/* During the latency of one copy only the other uses the link: two devices behind a
 * simplex link of 1e9; copies of 1e6 and 3e6 B; the first device's own link has 1 ms of latency.
 * 0 - 1 ms: only the second, 1e6 B. Then half each: the first takes 2 ms for its 1e6, while the
 * second moves its other 1e6; the last 1e6 has the whole link and takes 1 ms: 4 ms. */
static void test_latency_takes_no_bandwidth(void **state)
{
    (void)state;
    struct hardware hardware;
    sim_test_machine(&hardware, "cuda", 2);
    uint32_t shared = sim_test_link(&hardware, 1e9, 0, false);
    for (uint32_t d = 0; d < 2; d++) {
        sim_test_connect(&hardware, d, shared);
        sim_test_connect(&hardware, d, sim_test_link(&hardware, 7e9, d == 0 ? 1e-3 : 0, true));
    }
    struct plan_builder *builder = sim_test_builder(&hardware, 1);
    sim_test_run_on(builder, unit_of(builder, 0, 1000000, 0, 0), 0, 0);
    sim_test_run_on(builder, unit_of(builder, 1, 3000000, 0, 0), 1, 0);
    SIM_ASSERT_CLOSE(sim_test_makespan(builder), 4e-3);
}

/* --- sharing -------------------------------------------------------------------------------- */

/* Two copies of 1e9 and 2.5e9 B over a simplex link of 3.5e9, 3e9 each at most: both at 1.75e9 until
 * the first is done, then 1.5e9 B at 3e9. */
static void test_two_flows_on_a_link(void **state)
{
    (void)state;
    struct hardware hardware;
    sim_test_machine(&hardware, "cuda", 2);
    uint32_t shared = sim_test_link(&hardware, 3.5e9, 0, false);
    for (uint32_t d = 0; d < 2; d++) {
        sim_test_connect(&hardware, d, shared);
        sim_test_connect(&hardware, d, sim_test_link(&hardware, 3e9, 0, true));
    }
    struct plan_builder *builder = sim_test_builder(&hardware, 1);
    sim_test_run_on(builder, unit_of(builder, 0, 1000000000, 0, 0), 0, 0);
    sim_test_run_on(builder, unit_of(builder, 1, 2500000000, 0, 0), 1, 0);
    struct sim_test_outcome outcome;
    sim_test_run(builder, &outcome);
    double first_s = 1 / 1.75, rest_s = 0.5;
    SIM_ASSERT_CLOSE(outcome.result.makespan_s, first_s + rest_s);
    SIM_ASSERT_CLOSE(outcome.trace.spans[0].end_s, first_s);

    const struct sim_link_use *links = outcome.result.links;
    SIM_ASSERT_CLOSE(links[0].bytes[0], 3.5e9);
    SIM_ASSERT_CLOSE(links[0].bytes[1], 0);
    SIM_ASSERT_CLOSE(links[0].busy_s, first_s + rest_s);
    SIM_ASSERT_CLOSE(links[0].saturated_s, first_s); /* a single flow is held back by its own link */
    SIM_ASSERT_CLOSE(links[1].busy_s, first_s);
    SIM_ASSERT_CLOSE(links[1].saturated_s, 0);
    SIM_ASSERT_CLOSE(links[2].saturated_s, rest_s);
    SIM_ASSERT_CLOSE(outcome.result.streams[1].busy_s, first_s);
    SIM_ASSERT_CLOSE(outcome.result.streams[4].busy_s, first_s + rest_s);
    sim_test_release(&outcome);
}

/* A copy in of 3e9 B while one of 2e9 B goes out, 1e9 B/s: 3 s on a duplex link; on a simplex one
 * half each for 4 s, then only the other 1e9 B: 5 s. */
static void test_duplex_and_simplex(void **state)
{
    (void)state;
    for (uint32_t duplex = 0; duplex < 2; duplex++) {
        struct hardware hardware;
        one_device(&hardware, 1e9, 0, duplex);
        struct plan_builder *builder = sim_test_builder(&hardware, 1);
        sim_test_run_on(builder, unit_of(builder, 0, 0, 0, 2000000000), 0, 0);
        sim_test_run_on(builder, unit_of(builder, 1, 3000000000, 0, 0), 0, 1);
        SIM_ASSERT_CLOSE(sim_test_makespan(builder), duplex ? 3 : 5);
    }
}

/* Sixteen devices with 12e9 each way behind a duplex bridge of 32e9: 2e9 B/s each, each way. All
 * move 1e9 B in and 1e9 B out at once: 0.5 s. */
static void test_sixteen_devices_behind_a_bridge(void **state)
{
    (void)state;
    struct hardware hardware;
    sim_test_machine(&hardware, "cuda", 16);
    uint32_t bridge = sim_test_link(&hardware, 32e9, 0, true);
    for (uint32_t d = 0; d < 16; d++) {
        sim_test_connect(&hardware, d, bridge);
        sim_test_connect(&hardware, d, sim_test_link(&hardware, 12e9, 0, true));
    }
    struct plan_builder *builder = sim_test_builder(&hardware, 1);
    for (uint32_t d = 0; d < 16; d++) {
        sim_test_run_on(builder, unit_of(builder, 2 * d, 0, 0, 1000000000), d, 0);
        sim_test_run_on(builder, unit_of(builder, 2 * d + 1, 1000000000, 0, 0), d, 1);
    }
    struct sim_test_outcome outcome;
    sim_test_run(builder, &outcome);
    SIM_ASSERT_CLOSE(outcome.result.makespan_s, 0.5);
    SIM_ASSERT_CLOSE(outcome.result.links[bridge].saturated_s, 0.5);
    SIM_ASSERT_CLOSE(outcome.result.links[bridge].bytes[0], 16e9);
    SIM_ASSERT_CLOSE(outcome.result.links[bridge].bytes[1], 16e9);
    assert_string_equal(outcome.result.binds, "link 'link-0'");
    sim_test_release(&outcome);
}

/*
 * A measured time need not be latency + bytes / bandwidth: undisturbed, a copy lasts exactly as
 * models/cost/cost.h says; two such copies on a link that either fills by itself last twice the part that is
 * not latency.
 */
static void test_measured_copies(void **state)
{
    (void)state;
    static const struct copy_point points[] = {
        {.bytes = 1000, .seconds = 9e-6}, {.bytes = 1000000, .seconds = 3e-4},
        {.bytes = 100000000, .seconds = 1.2e-2}, {.bytes = 1000000000, .seconds = 0.118}};
    static const uint64_t sizes[] = {8, 1000, 54321, 2385000, 400000000};
    for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (uint32_t devices = 1; devices <= 2; devices++) {
            struct hardware hardware;
            sim_test_machine(&hardware, "cuda", devices);
            hardware.types[0].h2d = points;
            hardware.types[0].h2d_count = 4;
            uint32_t shared = sim_test_link(&hardware, 10e9, 2e-6, false);
            for (uint32_t d = 0; d < devices; d++) sim_test_connect(&hardware, d, shared);
            double alone_s = cost_copy_s(&hardware, 0, COPY_H2D, sizes[i]);
            double latency_s = fmin(cost_copy_latency_s(&hardware, 0, COPY_H2D), alone_s);
            double share = fmax(2 * cost_copy_bandwidth(&hardware, 0, COPY_H2D) / 10e9, 1);
            struct plan_builder *builder = sim_test_builder(&hardware, 1);
            for (uint32_t d = 0; d < devices; d++)
                sim_test_run_on(builder, unit_of(builder, d, sizes[i], 0, 0), d, 0);
            SIM_ASSERT_CLOSE(sim_test_makespan(builder),
                             devices == 1 ? alone_s : latency_s + (alone_s - latency_s) * share);
        }
}

/* --- double buffering ----------------------------------------------------------------------- */

/* The period of `count` units of one device that take turns in `slots` slots. */
static double period(uint32_t slots, uint64_t in_bytes, uint64_t compute_ns, uint64_t out_bytes)
{
    double makespan_s[2];
    const uint32_t units = 60;
    for (uint32_t twice = 0; twice < 2; twice++) {
        struct hardware hardware;
        one_device(&hardware, 1e9, 0, true);
        struct plan_builder *builder = sim_test_builder(&hardware, 1);
        for (uint32_t i = 0; i < units * (1 + twice); i++)
            sim_test_run_on(builder, unit_of(builder, i, in_bytes, compute_ns, out_bytes), 0,
                            i % slots);
        makespan_s[twice] = sim_test_makespan(builder);
    }
    return (makespan_s[1] - makespan_s[0]) / units;
}

/*
 * A slot is taken from the start of the copy in to the end of the copy out, so s slots begin a unit
 * every (in + compute + out) / s at best; and no stream does more than one unit in max(in, compute,
 * out). With three slots the latter binds as soon as the three are about equal; with two it is the
 * slots (copies of 4 ms each: (4 + compute + 4) / 2, or in + out when compute hides neither); with
 * one, the sum.
 */
static void test_period_of_double_buffering(void **state)
{
    (void)state;
    SIM_ASSERT_CLOSE(period(3, 4000000, 5000000, 3000000), 5e-3); /* compute */
    SIM_ASSERT_CLOSE(period(3, 6000000, 5000000, 3500000), 6e-3); /* copy in */
    SIM_ASSERT_CLOSE(period(3, 3500000, 5000000, 7000000), 7e-3); /* copy out */
    SIM_ASSERT_CLOSE(period(2, 4000000, 5000000, 3000000), 6e-3); /* (4 + 5 + 3) / 2 */
    SIM_ASSERT_CLOSE(period(2, 4000000, 8000000, 4000000), 8e-3); /* in + out = compute */
    SIM_ASSERT_CLOSE(period(2, 4000000, 9000000, 3000000), 9e-3); /* compute hides both */
    SIM_ASSERT_CLOSE(period(1, 4000000, 5000000, 3000000), 12e-3);
}

/* --- interference --------------------------------------------------------------------------- */

/*
 * Two host devices, R = 4e9, a = 0.25 (compute by compute), b = 0.5 (by copies), c = 0.6 (copies by
 * compute), d = 0.2 (by copies). Device 0 computes 2 s, device 1 computes 1 s and copies 6e9 B.
 *
 * Phase 1, all three: the copy goes at R / (1 + 2 * 0.6) = 4e9 / 2.2; the computations at
 * 1 / (1 + 0.25 + 0.5 / 2.2). Device 1's ends after t1 = 1.25 + 0.5 / 2.2 s.
 * Phase 2, one computation: copy at 4e9 / 1.6, computation at 1 / (1 + 0.5 / 1.6). Device 0 has 1 s
 * left and needs 1 + 0.5 / 1.6 s; the copy has 6e9 - t1 * 4e9 / 2.2 B left.
 * Phase 3: only the rest of the copy.
 */
static void test_interference(void **state)
{
    (void)state;
    struct hardware hardware;
    sim_test_machine(&hardware, "host", 2);
    for (uint32_t d = 0; d < 2; d++)
        sim_test_connect(&hardware, d, sim_test_link(&hardware, 4e9, 0, true));
    sim_test_interfere(&hardware, 0, (struct sim_test_law){0.25, 0.5, 0.6, 0.2, 4e9, 0});
    struct plan_builder *builder = sim_test_builder(&hardware, 1);
    sim_test_run_on(builder, unit_of(builder, 0, 0, 2000000000, 0), 0, 0);
    sim_test_run_on(builder, unit_of(builder, 1, 0, 1000000000, 0), 1, 0);
    sim_test_run_on(builder, unit_of(builder, 2, 6000000000, 0, 0), 1, 1);
    struct sim_test_outcome outcome;
    sim_test_run(builder, &outcome);

    double t1 = 1.25 + 0.5 / 2.2;
    double left_bytes = 6e9 - t1 * 4e9 / 2.2, phase2_s = 1 + 0.5 / 1.6;
    double copy_s = left_bytes / (4e9 / 1.6); /* if it ends within phase 2 */
    SIM_ASSERT_CLOSE(outcome.trace.spans[1].end_s, t1);
    if (copy_s < phase2_s) {
        SIM_ASSERT_CLOSE(outcome.trace.spans[2].end_s, t1 + copy_s);
        SIM_ASSERT_CLOSE(outcome.trace.spans[0].end_s,
                         t1 + copy_s + 1 - copy_s / (1 + 0.5 / 1.6));
    } else {
        double after_s = (left_bytes - phase2_s * 4e9 / 1.6) / 4e9;
        SIM_ASSERT_CLOSE(outcome.trace.spans[0].end_s, t1 + phase2_s);
        SIM_ASSERT_CLOSE(outcome.trace.spans[2].end_s, t1 + phase2_s + after_s);
    }
    sim_test_release(&outcome);
}

/* Two copies of a domain: R / (1 + d) each; 3e9 B at 4e9 / 1.2. Each GPU has a domain of its own: 4e9. */
static void test_copies_slow_copies_of_their_domain(void **state)
{
    (void)state;
    for (uint32_t host = 0; host < 2; host++) {
        struct hardware hardware;
        sim_test_machine(&hardware, host ? "host" : "cuda", 2);
        for (uint32_t d = 0; d < 2; d++)
            sim_test_connect(&hardware, d, sim_test_link(&hardware, 4e9, 0, true));
        sim_test_interfere(&hardware, 0, (struct sim_test_law){0, 0, 0, 0.2, 4e9, 0});
        struct plan_builder *builder = sim_test_builder(&hardware, 1);
        for (uint32_t d = 0; d < 2; d++)
            sim_test_run_on(builder, unit_of(builder, d, 3000000000, 0, 0), d, 0);
        SIM_ASSERT_CLOSE(sim_test_makespan(builder), host ? 0.75 * 1.2 : 0.75);
    }
}

/* --- memory, jobs, limits ------------------------------------------------------------------- */

/*
 * Buffers of 3e6 and 2e6 B on one device at 1e9 B/s:
 *     in 0   0 - 3 ms    compute 0  3 - 5 ms    out 0  5 - 8 ms
 *     in 1   3 - 5 ms    compute 1  5 - 6 ms    out 1  8 - 10 ms
 * In use: 3e6 from 0, 5e6 from 3 ms, 2e6 from 8 ms, 0 from 10 ms.
 */
static void test_memory_in_use(void **state)
{
    (void)state;
    static const struct trace_level expected[] = {
        {0, 5000000, 0}, {0, 3000000, 1}, {3e-3, 5000000, 1}, {8e-3, 2000000, 1}, {10e-3, 0, 1}};
    struct hardware hardware;
    one_device(&hardware, 1e9, 0, true);
    struct plan_builder *builder = sim_test_builder(&hardware, 1);
    sim_test_run_on(builder, unit_of(builder, 0, 3000000, 2000000, 3000000), 0, 0);
    sim_test_run_on(builder, unit_of(builder, 1, 2000000, 1000000, 2000000), 0, 1);
    struct sim_test_outcome outcome;
    sim_test_run(builder, &outcome);
    assert_int_equal(outcome.trace.level_count, 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(outcome.trace.levels[i].place, expected[i].place);
        assert_int_equal(outcome.trace.levels[i].bytes, expected[i].bytes);
        SIM_ASSERT_CLOSE(outcome.trace.levels[i].time_s, expected[i].time_s);
    }
    assert_int_equal(outcome.trace.places[1].peak_bytes, 5000000);
    SIM_ASSERT_CLOSE(outcome.trace.places[1].peak_time_s, 3e-3);
    assert_int_equal(outcome.trace.places[0].peak_bytes, 5000000);
    sim_test_release(&outcome);
}

/* Two devices that do the same at the same times, again and again in one range of memory: the levels of both are noted,
 * and of several at one time only the last. Copies in of 3 ms, 1 ms of computing, copies out of 2 ms. */
static void test_levels_at_equal_times(void **state)
{
    (void)state;
    enum { REPEATS = 3 };
    struct hardware hardware;
    struct plan plan = {0};
    struct sim_test_outcome outcome;
    sim_test_machine(&hardware, "cuda", 2);
    for (uint32_t d = 0; d < 2; d++) sim_test_connect(&hardware, d, sim_test_link(&hardware, 1e9, 0, true));
    struct plan_builder *builder = sim_test_builder(&hardware, 2);
    uint32_t units[2];
    for (uint32_t d = 0; d < 2; d++)
        units[d] = sim_test_unit(builder, &(struct sim_test_unit){
            .job = d, .number = d, .in_bytes = 3000000, .compute_ns = 1000000, .out_bytes = 2000000});
    for (uint32_t r = 0; r < REPEATS; r++)
        for (uint32_t d = 0; d < 2; d++) sim_test_run_on(builder, units[d], d, 0);
    sim_test_finish(builder, &plan);
    sim_test_simulate(&plan, &outcome);
    SIM_ASSERT_CLOSE(outcome.result.makespan_s, REPEATS * 6e-3);
    uint32_t counts[2] = {0};
    double before_s[2] = {-1, -1};
    uint64_t bytes[2][4 * REPEATS] = {{0}};
    for (uint64_t i = 0; i < outcome.trace.level_count; i++) {
        const struct trace_level *level = &outcome.trace.levels[i];
        if (level->place == 0) continue;
        uint32_t d = level->place - 1;
        assert_true(level->time_s > before_s[d] && counts[d] < 4 * REPEATS);
        before_s[d] = level->time_s;
        bytes[d][counts[d]++] = level->bytes;
    }
    assert_true(counts[0] >= REPEATS && counts[0] == counts[1]);
    assert_memory_equal(bytes[0], bytes[1], sizeof bytes[0]);
    assert_int_equal(bytes[0][counts[0] - 1], 0);
    sim_test_release(&outcome);
    plan_release(&plan);
}

/* Spans do not change the numbers. */
static void test_spans_change_nothing(void **state)
{
    (void)state;
    struct hardware hardware;
    one_device(&hardware, 1e9, 1e-5, false);
    struct plan_builder *builder = sim_test_builder(&hardware, 2);
    for (uint32_t i = 0; i < 20; i++)
        sim_test_run_on(builder,
                        sim_test_unit(builder, &(struct sim_test_unit){.job = i % 2,
                                                                       .number = i,
                                                                       .in_bytes = 100 * i + 7,
                                                                       .compute_ns = 1700 * i,
                                                                       .out_bytes = 90 * i + 8}),
                        0, i % 3);
    struct plan plan = {0};
    struct sim_test_outcome with;
    sim_test_finish(builder, &plan);
    sim_test_simulate(&plan, &with);
    struct sim_options options = {0};
    struct sim_test_outcome without = {0};
    struct error err = {0};
    assert_int_equal(sim_run(&plan, &options, &without.result, &without.trace, &err), STATUS_OK);
    assert_int_equal(without.trace.span_count, 0);
    assert_int_equal(without.trace.level_count, 0);
    assert_memory_equal(&without.result.makespan_s, &with.result.makespan_s, sizeof(double));
    assert_memory_equal(&without.trace.makespan_s, &with.trace.makespan_s, sizeof(double));
    for (uint32_t j = 0; j < 2; j++) {
        SIM_ASSERT_CLOSE(without.trace.jobs[j].start_s, with.trace.jobs[j].start_s);
        SIM_ASSERT_CLOSE(without.trace.jobs[j].end_s, with.trace.jobs[j].end_s);
        assert_int_equal(without.trace.jobs[j].samples, 10); /* 5 minibatches of 2 */
        assert_int_equal(without.trace.jobs[j].tokens, 30);  /* of 3 tokens */
    }
    assert_int_equal(without.trace.places[1].peak_bytes, with.trace.places[1].peak_bytes);
    sim_test_release(&without);
    sim_test_release(&with);
    plan_release(&plan);
}

static void test_what_binds(void **state)
{
    (void)state;
    static const struct {
        uint64_t in_bytes, compute_ns, out_bytes;
        double shared; /* bandwidth of the link behind the device's own 1e9 one */
        uint32_t slots;
        const char *expected;
    } cases[] = {
        {1000000, 5000000, 1000000, 8e9, 3, "compute of device 0"},
        {3000000, 1000000, 1000000, 0.8e9, 3, "link 'link-0'"},
        {1000000, 1000000, 3000000, 8e9, 3, "link 'link-1'"},
        {1000000, 1500000, 1000000, 8e9, 1, "the chain of job-0"},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hardware hardware;
        sim_test_machine(&hardware, "cuda", 1);
        sim_test_connect(&hardware, 0, sim_test_link(&hardware, cases[i].shared, 0, false));
        sim_test_connect(&hardware, 0, sim_test_link(&hardware, 1e9, 0, true));
        struct plan_builder *builder = sim_test_builder(&hardware, 1);
        for (uint32_t k = 0; k < 100; k++)
            sim_test_run_on(builder, unit_of(builder, k, cases[i].in_bytes, cases[i].compute_ns,
                                             cases[i].out_bytes), 0, k % cases[i].slots);
        struct sim_test_outcome outcome;
        sim_test_run(builder, &outcome);
        assert_string_equal(outcome.result.binds, cases[i].expected);
        sim_test_release(&outcome);
    }
}

/* --- other machines, errors ----------------------------------------------------------------- */

static void simple_plan(struct plan *plan)
{
    struct hardware hardware;
    one_device(&hardware, 1e9, 0, true);
    struct plan_builder *builder = sim_test_builder(&hardware, 1);
    for (uint32_t i = 0; i < 8; i++)
        sim_test_run_on(builder, unit_of(builder, i, 1000000, 2000000, 1000000), 0, i % 2);
    sim_test_finish(builder, plan);
}

/* Twice the bandwidth: 8 units of 2 ms, the first copy in and the last out 0.5 ms each. */
static void test_another_machine(void **state)
{
    (void)state;
    struct plan plan = {0};
    struct hardware other;
    simple_plan(&plan);
    one_device(&other, 2e9, 0, true);
    struct sim_options options = {.hardware = &other};
    struct sim_test_outcome outcome = {0};
    struct error err = {0};
    assert_int_equal(sim_run(&plan, &options, &outcome.result, &outcome.trace, &err), STATUS_OK);
    SIM_ASSERT_CLOSE(outcome.result.makespan_s, 8 * 2e-3 + 2 * 0.5e-3);
    sim_test_release(&outcome);

    other.devices[0].memory_bytes = 1500000000; /* two slots of 1e9 are used */
    assert_int_equal(sim_run(&plan, &options, &outcome.result, &outcome.trace, &err),
                     STATUS_BAD_INPUT);
    assert_string_equal(err.text, "device 0 of machine 'made-up' has 1500000000 bytes of memory, "
                                  "but the plan uses 2000000000");
    sim_test_release(&outcome);
    hardware_release(&other);

    sim_test_machine(&other, "cuda", 2);
    err = (struct error){0};
    assert_int_equal(sim_run(&plan, &options, &outcome.result, &outcome.trace, &err),
                     STATUS_BAD_INPUT);
    assert_string_equal(err.text, "machine 'made-up' has 2 devices, but the plan is for 1");
    sim_test_release(&outcome);
    hardware_release(&other);
    plan_release(&plan);
}

static void test_an_empty_plan(void **state)
{
    (void)state;
    struct hardware hardware;
    one_device(&hardware, 1e9, 0, true);
    SIM_ASSERT_CLOSE(sim_test_makespan(sim_test_builder(&hardware, 1)), 0);
}

struct progress_seen {
    uint32_t calls;
    double done, total;
};

static void see_progress(void *context, double done, double total)
{
    struct progress_seen *seen = context;
    assert_true(done >= seen->done);
    seen->calls++;
    seen->done = done;
    seen->total = total;
}

/* 3 * 60000 operations are one report on the way and one at the end. */
static void test_progress_is_reported(void **state)
{
    (void)state;
    struct hardware hardware;
    one_device(&hardware, 1e9, 0, true);
    struct plan_builder *builder = sim_test_builder(&hardware, 1);
    uint32_t unit = unit_of(builder, 0, 1000, 2000, 1000);
    for (uint32_t i = 0; i < 60000; i++) sim_test_run_on(builder, unit, 0, 0);
    struct plan plan = {0};
    sim_test_finish(builder, &plan);
    struct progress_seen seen = {0};
    struct sim_options options = {.on_progress = see_progress, .context = &seen};
    struct sim_test_outcome outcome = {0};
    struct error err = {0};
    assert_int_equal(sim_run(&plan, &options, &outcome.result, &outcome.trace, &err), STATUS_OK);
    assert_int_equal(seen.calls, 2);
    SIM_ASSERT_CLOSE(seen.done, 180000);
    SIM_ASSERT_CLOSE(seen.total, 180000);
    assert_true(outcome.result.window_peak < 20);
    sim_test_release(&outcome);
    plan_release(&plan);
}

/* The memory in use of a caching allocator is the buffers in use, each rounded up to 512 B. */
static void test_caching(void **state)
{
    (void)state;
    struct plan plan = {0};
    simple_plan(&plan);
    struct sim_options options = {.caching = true};
    struct sim_test_outcome outcome = {0};
    struct error err = {0};
    assert_int_equal(sim_run(&plan, &options, &outcome.result, &outcome.trace, &err), STATUS_OK);
    assert_non_null(outcome.result.reserved);
    const struct sim_reserved *reserved = &outcome.result.reserved[0];
    uint64_t peak_bytes = outcome.trace.places[1].peak_bytes;
    assert_true(peak_bytes > 0 && reserved->allocated_peak_bytes >= peak_bytes);
    assert_true(reserved->allocated_peak_bytes < peak_bytes + 512 * (uint64_t)plan.buffer_count);
    assert_true(reserved->reserved_peak_bytes >= reserved->allocated_peak_bytes);
    assert_true(reserved->allocated_bytes == 0 && reserved->reserved_bytes == reserved->reserved_peak_bytes);
    sim_test_release(&outcome);
    plan_release(&plan);
}

/* Every allocation fails once: the run reports it and leaks nothing (the sanitizer looks). */
static void test_no_memory(void **state)
{
    (void)state;
    struct plan plan = {0};
    simple_plan(&plan);
    (void)alloc_test_fail_at(0);
    struct sim_test_outcome outcome;
    sim_test_simulate(&plan, &outcome);
    uint64_t calls = alloc_test_fail_at(0);
    sim_test_release(&outcome);
    assert_true(calls > 5);
    struct sim_options options = {.record_spans = true, .caching = true};
    for (uint64_t n = 1; n <= calls + 8; n++) { /* the allocator's books are a few more */
        struct error err = {0};
        (void)alloc_test_fail_at(n);
        enum status status = sim_run(&plan, &options, &outcome.result, &outcome.trace, &err);
        uint64_t made = alloc_test_fail_at(0);
        sim_test_release(&outcome);
        if (made < n) continue; /* there are fewer than n calls */
        assert_int_equal(status, STATUS_NO_MEMORY);
    }
    plan_release(&plan);
}

/* --- copies between devices ------------------------------------------------------------------- */

/* The result that device 0 computes in `compute_ns` goes straight to device 1, and if `out_bytes` > 0, to
 * the host as well. */
static void plan_fetch(struct hardware *hardware, uint64_t compute_ns, uint64_t out_bytes, uint64_t p2p_bytes,
                       struct plan *plan)
{
    struct plan_buffer name = {.kind = BUFFER_STATE, .bytes = 5000000};
    hardware_note_p2p(hardware);
    assert_true(hardware_has_p2p(hardware));
    struct plan_builder *builder = sim_test_builder(hardware, 1);
    uint32_t host = plan_builder_buffer(builder, &name);
    name.on_device = true;
    uint32_t device = plan_builder_buffer(builder, &name);
    uint32_t slot = plan_builder_slot(builder, 0, 5000000);
    struct plan_op compute = {.kind = OP_COMPUTE, .stream = STREAM_COMPUTE, .pass = PLAN_FORWARD,
                              .work = sim_test_work(builder, compute_ns)};
    struct plan_op send = {.kind = OP_COPY, .stream = STREAM_D2H, .bytes = out_bytes};
    struct plan_op fetch = {.kind = OP_COPY, .stream = STREAM_P2P, .bytes = p2p_bytes};
    struct plan_access made = {.buffer = device, .flags = ACCESS_WRITE | ACCESS_ACQUIRE};
    struct plan_access sent[] = {{.buffer = device, .flags = ACCESS_READ},
                                 {.buffer = host, .flags = ACCESS_WRITE}};
    struct plan_access fetched[] = {
        {.buffer = device, .flags = ACCESS_READ | ACCESS_RELEASE},
        {.buffer = device, .flags = ACCESS_WRITE | ACCESS_ACQUIRE | ACCESS_RELEASE}};
    plan_builder_unit_begin(builder, 0, 0, PLAN_FORWARD, false);
    plan_builder_op(builder, &compute, &made, 1, NULL, 0);
    if (out_bytes > 0) plan_builder_op(builder, &send, sent, 2, NULL, 0);
    plan_builder_task(builder, plan_builder_unit_end(builder), 0, &slot, 1);
    plan_builder_unit_begin(builder, 0, 1, PLAN_FORWARD, false);
    plan_builder_op(builder, &fetch, fetched, 2, NULL, 0);
    plan_builder_task(builder, plan_builder_unit_end(builder), 1, &slot, 1);
    plan_builder_peer(builder, 0);
    *plan = (struct plan){0};
    sim_test_finish(builder, plan);
}

static void run_fetch(struct hardware *hardware, uint64_t compute_ns, uint64_t out_bytes,
                      uint64_t p2p_bytes, struct sim_test_outcome *outcome)
{
    struct plan plan;
    plan_fetch(hardware, compute_ns, out_bytes, p2p_bytes, &plan);
    sim_test_simulate(&plan, outcome);
    plan_release(&plan);
}

/* Links of their own, 2 and 3e9 B/s, 20 and 30 us: 3e6 B after 1 ms of computing, while 4e6 B go out
 * over another link at 1e9 B/s. Bytes leave by the one and arrive by the other. */
static void test_a_direct_copy(void **state)
{
    (void)state;
    struct hardware hardware;
    struct sim_test_outcome outcome;
    sim_test_machine(&hardware, "cuda", 2);
    for (uint32_t d = 0; d < 2; d++) {
        sim_test_connect(&hardware, d, sim_test_link(&hardware, 1e9, 0, true));
        struct hardware_network *network = hardware_join(&hardware.devices[d], 1);
        network->path[network->path_count++] =
            sim_test_link(&hardware, d ? 3e9 : 2e9, d ? 30e-6 : 20e-6, true);
    }
    run_fetch(&hardware, 1000000, 4000000, 3000000, &outcome);
    SIM_ASSERT_CLOSE(outcome.trace.spans[1].end_s, 1e-3 + 4e-3);
    SIM_ASSERT_CLOSE(outcome.trace.spans[2].start_s, 1e-3);
    SIM_ASSERT_CLOSE(outcome.trace.spans[2].end_s, 1e-3 + 50e-6 + 1.5e-3);
    assert_string_equal(outcome.trace.streams[outcome.trace.spans[2].stream].name, "gpu1 p2p");
    const struct sim_link_use *links = outcome.result.links;
    SIM_ASSERT_CLOSE(links[1].bytes[1], 3e6);
    SIM_ASSERT_CLOSE(links[3].bytes[0], 3e6);
    SIM_ASSERT_CLOSE(links[0].bytes[1], 4e6);
    SIM_ASSERT_CLOSE(links[1].bytes[0] + links[3].bytes[1] + links[2].busy_s, 0);
    SIM_ASSERT_CLOSE(links[1].saturated_s, 1.5e-3);
    SIM_ASSERT_CLOSE(links[3].saturated_s, 0);
    sim_test_release(&outcome);
}

/* Without links of their own the way out is shared: device 0's link of 1e9 B/s carries 2e6 B to the
 * host and 2e6 B to device 1 at half the rate each; each takes 4 ms. A narrow bridge of 0.25e9 B/s slows
 * the one to 8 ms and is not on the other's way, which gets the 0.75e9 that are left of the link. */
static void test_a_direct_copy_over_the_links_to_the_host(void **state)
{
    (void)state;
    for (uint32_t narrow = 0; narrow < 2; narrow++) {
        struct hardware hardware;
        struct sim_test_outcome outcome;
        sim_test_machine(&hardware, "cuda", 2);
        uint32_t bridge = sim_test_link(&hardware, narrow ? 0.25e9 : 10e9, 0, false);
        for (uint32_t d = 0; d < 2; d++) {
            sim_test_connect(&hardware, d, bridge);
            sim_test_connect(&hardware, d, sim_test_link(&hardware, 1e9, 0, true));
            struct hardware_network *network = hardware_join(&hardware.devices[d], 1);
            memcpy(network->path, hardware.devices[d].path, sizeof network->path);
            network->path_count = 2;
        }
        run_fetch(&hardware, 1000000, 2000000, 2000000, &outcome);
        SIM_ASSERT_CLOSE(outcome.trace.spans[1].end_s, 1e-3 + (narrow ? 8e-3 : 4e-3));
        SIM_ASSERT_CLOSE(outcome.trace.spans[2].end_s, 1e-3 + (narrow ? 2e-3 / 0.75 : 4e-3));
        SIM_ASSERT_CLOSE(outcome.result.links[bridge].bytes[1], 2e6);
        SIM_ASSERT_CLOSE(outcome.result.links[1].bytes[1], 4e6);
        SIM_ASSERT_CLOSE(outcome.result.links[2].bytes[0], 2e6);
        sim_test_release(&outcome);
    }
}

/* Two devices whose links to the host meet in a simplex bridge; a network between them where `direct`. */
static void bridged(struct hardware *out, double bridge, double own, bool direct)
{
    sim_test_machine(out, "cuda", 2);
    uint32_t shared = sim_test_link(out, bridge, 0, false);
    for (uint32_t d = 0; d < 2; d++) {
        sim_test_connect(out, d, shared);
        sim_test_connect(out, d, sim_test_link(out, own, 25e-6, true));
        if (direct) hardware_join(&out->devices[d], 1);
    }
}

/*
 * Without a network the copy is staged: out over link and bridge, and in over both again. Its latency is the sum of
 * both copies', 50 us. Without other copies it gets half of the bridge, 1.75e9 B/s, which is less than 0.79 of a link
 * of 3e9.
 *
 *     1.000 ms  computed; the copy to the host begins 25 us later, that to device 1 50 us later
 *     1.025     only the former on its link: 3e9 B/s, 75e3 B
 *     1.050     both: the bridge carries r + 2 r = 3.5e9, r = 3.5e9 / 3; in 1.5 ms 1.75e6 B each
 *     2.550     the former has its 1.825e6 B, the latter goes at 1.75e9: 2.625e6 B more in 1.5 ms
 *     4.050
 */
static void test_a_staged_copy_shares_the_bridge(void **state)
{
    (void)state;
    struct hardware hardware, other;
    struct plan plan;
    struct error err = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    bridged(&hardware, 3.5e9, 3e9, true);
    bridged(&other, 3.5e9, 3e9, false);
    plan_fetch(&hardware, 1000000, 1825000, 4375000, &plan);
    const struct sim_options options = {.hardware = &other, .record_spans = true};
    if (sim_run(&plan, &options, &result, &trace, &err)) fail_msg("%s", err.text);
    SIM_ASSERT_CLOSE(trace.spans[1].end_s, 2.55e-3);
    SIM_ASSERT_CLOSE(trace.spans[2].end_s, 4.05e-3);
    const struct sim_link_use *bridge = &result.links[0];
    SIM_ASSERT_CLOSE(bridge->bytes[0], 4375000);
    SIM_ASSERT_CLOSE(bridge->bytes[1], 4375000 + 1825000);
    SIM_ASSERT_CLOSE(result.links[1].bytes[1], 4375000 + 1825000);
    SIM_ASSERT_CLOSE(result.links[2].bytes[0], 4375000);
    sim_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
    hardware_release(&other);
}

/* On a bridge that is no limit a staged copy reaches 0.79 of the slower link: 3.95e6 B at 0.79 * 2.5e9 B/s take 2
 * ms. */
static void test_a_staged_copy_alone(void **state)
{
    (void)state;
    struct hardware hardware;
    bridged(&hardware, 1e11, 2.5e9, false);
    hardware.links[2].bandwidth.value = 3e9;
    SIM_ASSERT_CLOSE(cost_p2p_s(&hardware, 0, 1, 3950000), 50e-6 + 2e-3);
    SIM_ASSERT_CLOSE(cost_p2p_bandwidth(&hardware, 1, 0), 0.79 * 2.5e9);
    SIM_ASSERT_CLOSE(cost_p2p_latency_s(&hardware, 1, 0), 50e-6);
    hardware_release(&hardware);
}

/* A machine whose devices do not reach each other cannot time a plan that copies between them. */
static void test_another_machine_without_a_way(void **state)
{
    (void)state;
    struct hardware hardware, other;
    struct plan plan;
    struct error err = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    bridged(&hardware, 3.5e9, 3e9, true);
    bridged(&other, 3.5e9, 3e9, false);
    hardware.host_nodes = other.host_nodes = 2;
    hardware.devices[1].host = other.devices[1].host = 1;
    plan_fetch(&hardware, 1000000, 0, 4375000, &plan);
    const struct sim_options options = {.hardware = &other};
    assert_int_equal(sim_run(&plan, &options, &result, &trace, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "on machine 'made-up' device 0 does not reach device 1, but "
                                  "the plan copies from one to the other");
    sim_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
    hardware_release(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_copy),
        cmocka_unit_test(test_a_chain),
        cmocka_unit_test(test_latency_takes_no_bandwidth),
        cmocka_unit_test(test_two_flows_on_a_link),
        cmocka_unit_test(test_duplex_and_simplex),
        cmocka_unit_test(test_sixteen_devices_behind_a_bridge),
        cmocka_unit_test(test_measured_copies),
        cmocka_unit_test(test_period_of_double_buffering),
        cmocka_unit_test(test_interference),
        cmocka_unit_test(test_copies_slow_copies_of_their_domain),
        cmocka_unit_test(test_memory_in_use),
        cmocka_unit_test(test_levels_at_equal_times),
        cmocka_unit_test(test_spans_change_nothing),
        cmocka_unit_test(test_what_binds),
        cmocka_unit_test(test_another_machine),
        cmocka_unit_test(test_an_empty_plan),
        cmocka_unit_test(test_progress_is_reported),
        cmocka_unit_test(test_caching),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_a_direct_copy),
        cmocka_unit_test(test_a_direct_copy_over_the_links_to_the_host),
        cmocka_unit_test(test_a_staged_copy_shares_the_bridge),
        cmocka_unit_test(test_a_staged_copy_alone),
        cmocka_unit_test(test_another_machine_without_a_way),
    };
    return cmocka_run_group_tests_name("sim/sim.h", tests, NULL, NULL);
}
