/*
 * Repetitions that are left out of a run (sim/steady.h; label: fast): random plans and jobs with all their repetitions
 * and with only the simulated ones, equal to the last bit where that is promised; a closed form; a clock that never
 * starts again; repetitions that must not be left out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_random_plan.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/sim/support_sim.h"
#include "tests/support/support_seed.h"

/* --- two simulations -------------------------------------------------------------------------- */

static void simulate(const struct plan *plan, struct sim_options options, struct sim_test_outcome *out)
{
    struct error err = {0};
    *out = (struct sim_test_outcome){0};
    if (sim_run(plan, &options, &out->result, &out->trace, &err)) fail_msg("%s", err.text);
}

static void same(double found, double whole, const char *what, uint32_t index)
{
    if (memcmp(&found, &whole, sizeof found) != 0)
        fail_msg("%s %u: %.17g, and of all %.17g", what, index, found, whole);
}

static void near(double found, double whole, double scale, const char *what, uint32_t index)
{
    if (!(fabs(found - whole) <= 1e-12 * scale)) fail_msg("%s %u: %.17g, and of all %.17g", what, index, found, whole);
}

static void same_outcome(const struct plan *plan, const struct sim_test_outcome *found,
                         const struct sim_test_outcome *whole)
{
    const struct sim_result *a = &found->result, *b = &whole->result;
    assert_int_equal(b->skipped, 0);
    assert_int_equal(a->operations, b->operations);
    same(a->makespan_s, b->makespan_s, "makespan", 0);
    for (uint32_t s = 0; s < plan_stream_count(plan); s++) {
        near(a->streams[s].busy_s, b->streams[s].busy_s, b->makespan_s, "busy seconds of stream", s);
        assert_int_equal(a->streams[s].operations, b->streams[s].operations);
    }
    for (uint32_t l = 0; l < plan->hardware.link_count + hardware_has_storage(&plan->hardware); l++) {
        same(a->links[l].bytes[0], b->links[l].bytes[0], "bytes in over link", l);
        same(a->links[l].bytes[1], b->links[l].bytes[1], "bytes out over link", l);
        near(a->links[l].busy_s, b->links[l].busy_s, b->makespan_s, "busy seconds of link", l);
        near(a->links[l].saturated_s, b->links[l].saturated_s, b->makespan_s, "saturated seconds of link", l);
    }
    for (uint32_t p = 0; p < whole->trace.place_count; p++) {
        assert_int_equal(found->trace.places[p].peak_bytes, whole->trace.places[p].peak_bytes);
        same(found->trace.places[p].peak_time_s, whole->trace.places[p].peak_time_s, "peak at place", p);
    }
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        same(found->trace.jobs[j].start_s, whole->trace.jobs[j].start_s, "start of job", j);
        same(found->trace.jobs[j].end_s, whole->trace.jobs[j].end_s, "end of job", j);
    }
    assert_string_equal(a->binds, b->binds);
}

/* How many of the operations were left out, as a part of them all. */
static double compare(const struct plan *plan, struct sim_options options)
{
    struct sim_test_outcome found, whole;
    simulate(plan, options, &found);
    options.no_skip = true;
    simulate(plan, options, &whole);
    same_outcome(plan, &found, &whole);
    double part = (double)found.result.skipped / (double)found.result.operations;
    sim_test_release(&found);
    sim_test_release(&whole);
    return part;
}

/* --- random ones ------------------------------------------------------------------------------ */

/* With spans, times count from the beginning. Not where copies on demand go first: a last bit decides which copy is on
 * demand where a computation ends as a copy begins. Nor for plans that find no steady state: copies that slow each
 * other down can make a last bit grow from repetition to repetition, in one of 9000 such plans to 2e-7. */
static void as_by_another_clock(const struct plan *plan)
{
    struct sim_test_outcome found, other;
    simulate(plan, (struct sim_options){.no_skip = false}, &found);
    simulate(plan, (struct sim_options){.record_spans = true}, &other);
    double makespan_s = other.result.makespan_s;
    SIM_ASSERT_CLOSE(found.result.makespan_s, makespan_s);
    for (uint32_t s = 0; s < plan_stream_count(plan); s++)
        SIM_ASSERT_NEAR(found.result.streams[s].busy_s, other.result.streams[s].busy_s, makespan_s);
    for (uint32_t l = 0; l < plan->hardware.link_count + hardware_has_storage(&plan->hardware); l++) {
        SIM_ASSERT_NEAR(found.result.links[l].busy_s, other.result.links[l].busy_s, makespan_s);
        SIM_ASSERT_NEAR(found.result.links[l].saturated_s, other.result.links[l].saturated_s, makespan_s);
    }
    sim_test_release(&found);
    sim_test_release(&other);
}

static void random_plans(void **state)
{
    (void)state;
    uint64_t seed = support_seed("steady: random plans");
    uint32_t rounds = 150, most = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        const struct random_plan_shape shape = {
            .key = random_mix(seed) + round, .tasks = 1 + round / 8, .repeats = 40 + round % 3 * 60};
        struct plan plan = {0};
        random_plan(&shape, &plan);
        bool demand_first = round % 5 == 0;
        double part = compare(&plan, (struct sim_options){.demand_first = demand_first});
        most += part > 0.5;
        if (!demand_first && part > 0.5) as_by_another_clock(&plan);
        plan_release(&plan);
    }
    print_message("steady: more than half is left out of %u of %u random plans\n", most, rounds);
    assert_true(most > rounds / 4);
}

static bool random_parallel_plan(uint64_t key, struct plan *out)
{
    static const char *const machines[] = {"2x dgx-a100-80gb", "4x p3dn.24xlarge",
                                           "2x dgx-a100-80gb + 1x p3dn.24xlarge"};
    static const uint32_t schedules[] = {PIPELINE_GPIPE, PIPELINE_1F1B, PIPELINE_INTERLEAVED, PIPELINE_ZB_H1};
    struct hardware hardware = {0};
    struct job_set jobs;
    struct error err = {0};
    if (hardware_find(machines[random_below(key, 0, ARRAY_COUNT(machines))], &hardware, &err)) fail_msg("%s", err.text);
    test_gpt_jobs(&jobs, 1, 10, 256, 256, 60 + random_below(key, 1, 80));
    struct job *job = &jobs.jobs[0];
    struct parallel *p = &job->parallel;
    job->network.heads = 8;
    job->network.head_width = 32;
    *p = (struct parallel){.tensor = 1u << random_below(key, 2, 2), .data = 1 + (uint32_t)random_below(key, 3, 3),
                           .pipeline = 1 + (uint32_t)random_below(key, 4, 2), .chunks = 1,
                           .schedule = schedules[random_below(key, 5, ARRAY_COUNT(schedules))],
                           .zero = (uint32_t)random_below(key, 6, 4)};
    if (p->schedule == PIPELINE_INTERLEAVED) p->chunks = 2;
    job->microbatches = p->data * p->pipeline * (1 + random_below(key, 7, 2));
    const struct planner_options options = {.weight_buffers = 0};
    return planner_plan(&hardware, &jobs, &options, out, &err) == STATUS_OK;
}

static void random_jobs(void **state)
{
    (void)state;
    uint64_t seed = support_seed("steady: random jobs");
    uint32_t plans = 0, most = 0;
    for (uint32_t c = 0; c < 24; c++) {
        uint64_t key = random_u64(seed, c);
        struct plan plan = {0};
        if (!random_parallel_plan(key, &plan)) continue;
        struct sim_options options = {.collectives = (enum sim_collectives_by)random_below(key, 10, 3)};
        struct sim_test_outcome folded, whole;
        plans++;
        most += compare(&plan, options) > 0.5;
        simulate(&plan, options, &folded);
        options.no_fold = options.no_skip = true;
        simulate(&plan, options, &whole);
        same(folded.result.makespan_s, whole.result.makespan_s, "makespan", c);
        sim_test_release(&folded);
        sim_test_release(&whole);
        plan_release(&plan);
    }
    print_message("steady: more than half is left out of %u of %u random jobs\n", most, plans);
    assert_true(plans > 12 && most > plans / 8);
}

/* --- in closed form --------------------------------------------------------------------------- */

static const struct sim_test_unit passes[] = {
    {.number = 0, .in_bytes = 1300000000, .compute_ns = 2385000007, .out_bytes = 700000000},
    {.job = 1, .number = 1, .in_bytes = 900000000, .compute_ns = 1117000003, .out_bytes = 300000000}};

/* `devices` devices, each behind a link of 1 GB/s of its own; the d-th repeats the d-th pass in one range of memory. */
static void make_passes(uint32_t devices, uint32_t repeats, struct plan *out)
{
    struct hardware hardware;
    sim_test_machine(&hardware, "cuda", devices);
    for (uint32_t d = 0; d < devices; d++) sim_test_connect(&hardware, d, sim_test_link(&hardware, 1e9, 0, true));
    struct plan_builder *builder = sim_test_builder(&hardware, devices);
    uint32_t units[ARRAY_COUNT(passes)];
    for (uint32_t d = 0; d < devices; d++) units[d] = sim_test_unit(builder, &passes[d]);
    for (uint32_t r = 0; r < repeats; r++)
        for (uint32_t d = 0; d < devices; d++) sim_test_run_on(builder, units[d], d, 0);
    sim_test_finish(builder, out);
}

/* Copies in of pass n + 1 wait for the copies out of pass n: (1.3 + 2.385000007 + 0.7) s each. */
static void ten_thousand_passes(void **state)
{
    (void)state;
    struct plan plan;
    struct sim_test_outcome outcome;
    make_passes(1, 10000, &plan);
    simulate(&plan, (struct sim_options){0}, &outcome);
    const struct sim_result *result = &outcome.result;
    near(result->makespan_s, 10000 * 4.385000007, 43850, "makespan", 0);
    near(result->streams[STREAM_COMPUTE].busy_s, 10000 * 2.385000007, 43850, "computing", 0);
    near(result->links[0].bytes[0], 1.3e13, 1.3e13, "bytes in", 0);
    near(result->links[0].saturated_s, 10000 * 1.3, 43850, "saturated", 0);
    assert_int_equal(result->operations, 30000);
    assert_true(result->skipped > 29000 && result->skipped < 30000 && result->skipped % 3 == 0);
    assert_true(result->events < 1000);
    sim_test_release(&outcome);
    plan_release(&plan);
}

/* --- what must not be left out ------------------------------------------------------------------ */

/* Two jobs at paces of their own: (1.3 + 2.385000007 + 0.7) s and (0.9 + 1.117000003 + 0.3) s. */
static void two_paces(void **state)
{
    (void)state;
    struct plan plan;
    struct sim_test_outcome outcome;
    make_passes(2, 500, &plan);
    assert_true(compare(&plan, (struct sim_options){0}) <= 0);
    simulate(&plan, (struct sim_options){0}, &outcome);
    near(outcome.trace.jobs[0].end_s, 500 * 4.385000007, 2193, "end of job", 0);
    near(outcome.trace.jobs[1].end_s, 500 * 2.317000003, 2193, "end of job", 1);
    sim_test_release(&outcome);
    plan_release(&plan);
}

/*
 * The rest of a flow, which no other part of the state tells. Links of 1 B/ns; copies out of all devices share one
 * more.
 *
 *     device 1   copies out  .....]                                 once: an operation before all repetitions
 *     device 0   copies out    [ out of 0 .........|........]
 *     device 2   copies out                        [ out of 4 ]
 *                                                  | the simulator looks
 *
 * Devices 0 and 2 are bound by their computations, 8 s a repetition, and wait for no copy out. So at a look that has
 * device 1's copy end while unit 0's copy goes on, what waits, what runs and since when are as they will be at each
 * look to come, and so is the next event of the shared link, the end of unit 4's copy. But of unit 0's copy more is
 * left: were that no part of the state, a repetition in which it takes longer would be repeated up to the end.
 * Times are sums of halves, quarters ... of seconds, that equal ones be equal to the last bit. Without links of their
 * own the flows are of a bottleneck, with them each is of a class (sim/network/flow.c). There is no such test for
 * slowed computations: each has its end in the queue and its speed by the flows' rates, so its rest is the product.
 */
static void make_leftover(uint64_t delay_ns, uint64_t once_bytes, bool own_links, struct plan *out)
{
    static const struct sim_test_unit repeated[] = {
        {.number = 0, .in_bytes = 500000000, .compute_ns = 3000000000, .out_bytes = 1000000000},
        {.number = 1, .in_bytes = 500000000, .compute_ns = 2500000000, .out_bytes = 250000000},
        {.number = 2, .in_bytes = 6500000000, .compute_ns = 500000000, .out_bytes = 250000000},
        {.number = 3, .in_bytes = 500000000, .compute_ns = 2000000000, .out_bytes = 250000000},
        {.job = 1, .number = 4, .compute_ns = 4000000000, .out_bytes = 250000000},
        {.job = 1, .number = 5, .compute_ns = 4000000000}};
    struct hardware hardware;
    sim_test_machine(&hardware, "cuda", 3);
    uint32_t shared = sim_test_link(&hardware, 1e9, 0, true);
    for (uint32_t d = 0; d < 3; d++) {
        if (own_links) sim_test_connect(&hardware, d, sim_test_link(&hardware, 1e9, 0, true));
        sim_test_connect(&hardware, d, shared);
    }
    struct plan_builder *builder = sim_test_builder(&hardware, 3);
    uint32_t once = sim_test_unit(builder, &(struct sim_test_unit){
        .job = 2, .number = 6, .compute_ns = 500000000, .out_bytes = once_bytes});
    uint32_t delay = sim_test_unit(builder, &(struct sim_test_unit){.job = 1, .number = 7, .compute_ns = delay_ns});
    uint32_t units[ARRAY_COUNT(repeated)];
    for (uint32_t u = 0; u < ARRAY_COUNT(repeated); u++) units[u] = sim_test_unit(builder, &repeated[u]);
    sim_test_run_on(builder, once, 1, 0);
    sim_test_run_on(builder, delay, 2, 0);
    for (uint32_t r = 0; r < 48; r++)
        for (uint32_t u = 0; u < ARRAY_COUNT(repeated); u++) sim_test_run_on(builder, units[u], u < 4 ? 0 : 2, 8 * u);
    sim_test_finish(builder, out);
}

static void what_is_left(bool own_links)
{
    for (uint64_t delay_ns = 1250000000; delay_ns < 2000000000; delay_ns += 250000000)
        for (uint64_t once_bytes = 34000000000; once_bytes < 35500000000; once_bytes += 62500000) {
            struct plan plan;
            make_leftover(delay_ns, once_bytes, own_links, &plan);
            assert_true(compare(&plan, (struct sim_options){0}) > 0.5);
            plan_release(&plan);
        }
}

static void what_is_left_in_a_bottleneck(void **state)
{
    (void)state;
    what_is_left(false);
}

static void what_is_left_in_classes(void **state)
{
    (void)state;
    what_is_left(true);
}

static void nothing_with(const struct plan *plan, struct sim_options options)
{
    struct sim_test_outcome outcome;
    simulate(plan, options, &outcome);
    assert_int_equal(outcome.result.skipped, 0);
    sim_test_release(&outcome);
}

static void each_by_itself(void **state)
{
    (void)state;
    struct plan plan;
    make_passes(1, 100, &plan);
    assert_true(compare(&plan, (struct sim_options){0}) > 0.5);
    nothing_with(&plan, (struct sim_options){.record_spans = true});
    nothing_with(&plan, (struct sim_options){.noise = 0.1});
    nothing_with(&plan, (struct sim_options){.caching = true});
    nothing_with(&plan, (struct sim_options){.no_skip = true});
    plan_release(&plan);
    make_passes(1, 31, &plan); /* fewer than are looked at */
    nothing_with(&plan, (struct sim_options){0});
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_plans),
        cmocka_unit_test(random_jobs),
        cmocka_unit_test(ten_thousand_passes),
        cmocka_unit_test(two_paces),
        cmocka_unit_test(what_is_left_in_a_bottleneck),
        cmocka_unit_test(what_is_left_in_classes),
        cmocka_unit_test(each_by_itself),
    };
    return cmocka_run_group_tests_name("sim/steady.h", tests, NULL, NULL);
}
