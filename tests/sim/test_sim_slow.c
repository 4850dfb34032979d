/*
 * Devices that compute more slowly than they should (label: fast): spilled units, pipelines and data-parallel ranks
 * against closed forms and a recurrence; folding, which sees them; computations of random length.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "base/random.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/sim/support_sim.h"
#include "tests/support/support_seed.h"

static void simulate(const struct plan *plan, const struct sim_options *options, struct sim_test_outcome *out)
{
    struct error err = {0};
    *out = (struct sim_test_outcome){0};
    if (sim_run(plan, options, &out->result, &out->trace, &err)) fail_msg("%s", err.text);
}

static double makespan_s(const struct plan *plan, const struct sim_options *options)
{
    struct sim_test_outcome outcome;
    simulate(plan, options, &outcome);
    double seconds = outcome.result.makespan_s;
    sim_test_release(&outcome);
    return seconds;
}

/* --- spilled units --------------------------------------------------------------------------- */

enum { UNITS = 7, DEVICES = 3 };

/* On each device UNITS units that copy 2e6 B in at 1e9 B/s, compute 1.7 ms and copy 2e6 B out, in two slots. */
static void spilled_plan(struct plan *plan)
{
    struct hardware hardware;
    sim_test_machine(&hardware, "cuda", DEVICES);
    for (uint32_t d = 0; d < DEVICES; d++) sim_test_connect(&hardware, d, sim_test_link(&hardware, 1e9, 0, true));
    struct plan_builder *builder = sim_test_builder(&hardware, DEVICES);
    for (uint32_t u = 0; u < UNITS; u++)
        for (uint32_t d = 0; d < DEVICES; d++) {
            const struct sim_test_unit unit = {
                .job = d, .number = u, .in_bytes = 2000000, .compute_ns = 1700000, .out_bytes = 2000000};
            sim_test_run_on(builder, sim_test_unit(builder, &unit), d, u % 2);
        }
    sim_test_finish(builder, plan);
}

/*
 * A device that computes for at least as long as both copies of a unit never pauses: 2 ms in, UNITS computations,
 * 2 ms out. One that is as fast as it should be waits for its slots, each 2 + 1.7 + 2 ms: four times for the first,
 * in which unit 0, 2, 4 and 6 follow each other.
 */
static void test_spilled(void **state)
{
    (void)state;
    const double slow[DEVICES] = {1, 2.385, 3.1};
    struct plan plan = {0};
    struct sim_test_outcome outcome;
    spilled_plan(&plan);
    simulate(&plan, &(struct sim_options){.slow = slow, .record_spans = true}, &outcome);
    SIM_ASSERT_CLOSE(outcome.trace.jobs[0].end_s, 4 * 5.7e-3);
    for (uint32_t d = 1; d < DEVICES; d++) {
        SIM_ASSERT_CLOSE(outcome.trace.jobs[d].end_s, 4e-3 + UNITS * slow[d] * 1.7e-3);
        SIM_ASSERT_CLOSE(outcome.result.streams[plan_stream(&plan, d, STREAM_COMPUTE)].busy_s,
                         UNITS * slow[d] * 1.7e-3);
    }
    SIM_ASSERT_CLOSE(outcome.result.makespan_s, 4e-3 + UNITS * 3.1 * 1.7e-3);
    sim_test_release(&outcome);
    plan_release(&plan);
}

/* --- pipelines ------------------------------------------------------------------------------- */

enum { FORWARD_NS = 4000000, BACKWARD_NS = 6000000, STAGES_MAX = 6 };

static struct test_layer layer_of(void *context, uint32_t job, uint32_t layer)
{
    (void)job, (void)layer;
    return (struct test_layer){.forward_ns = FORWARD_NS, .backward_ns = BACKWARD_NS, .activation_bytes = 64,
                               .parameter_bytes = context ? *(uint64_t *)context : 0};
}

static void parallel_plan_of(struct parallel parallel, uint32_t microbatches, uint64_t bytes, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    test_parallel_machine(&hardware, parallel.pipeline * parallel.data, bytes > 0 ? 1e9 : 1e12, bytes > 0 ? 1e-6 : 0);
    test_profile_jobs(&jobs, 1, parallel_chunks(&parallel), 1, layer_of, bytes > 0 ? &bytes : NULL);
    jobs.jobs[0].microbatches = microbatches;
    jobs.jobs[0].parallel = parallel;
    test_parallel_plan(&hardware, &jobs, plan);
}

/* A last stage that is slow never waits once it has begun: (P - 1) (f + b) + m s (f + b). */
static void test_slow_stage(void **state)
{
    (void)state;
    uint64_t seed = support_seed("slow_stage"), drawn = 0;
    const double both_s = (FORWARD_NS + BACKWARD_NS) * 1e-9;
    for (uint32_t stages = 2; stages <= STAGES_MAX; stages++)
        for (uint32_t m = stages; m <= 16; m += 3) {
            struct plan plan = {0};
            struct parallel p = {.tensor = 1, .pipeline = stages, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B};
            double slow[STAGES_MAX];
            parallel_plan_of(p, m, 0, &plan);
            for (uint32_t s = 0; s < stages; s++) slow[s] = s + 1 == stages ? 2.385 : 1;
            SIM_ASSERT_CLOSE(makespan_s(&plan, &(struct sim_options){.slow = slow}),
                             (stages - 1) * both_s + m * 2.385 * both_s);
            for (uint32_t s = 0; s < stages; s++) slow[s] = 0.5 + 3 * random_unit(seed, drawn++);
            struct test_parallel_stage of[STAGES_MAX];
            for (uint32_t s = 0; s < stages; s++)
                of[s] = (struct test_parallel_stage){slow[s] * FORWARD_NS * 1e-9, slow[s] * BACKWARD_NS * 1e-9, 0};
            SIM_ASSERT_CLOSE(makespan_s(&plan, &(struct sim_options){.slow = slow}),
                             test_parallel_1f1b_s(of, stages, m, false));
            plan_release(&plan);
        }
}

/* --- data-parallel ranks ---------------------------------------------------------------------- */

/* The all-reduce waits for the slowest: 3 microbatches of it, then 2 (d - 1) steps of b / d bytes, each over two
 * links. */
static void test_barrier(void **state)
{
    (void)state;
    const uint64_t bytes = 1200000;
    for (uint32_t d = 2; d <= 6; d++) {
        struct plan plan = {0};
        double slow[6] = {1.5, 1, 1, 1, 1, 1};
        parallel_plan_of((struct parallel){.tensor = 1, .pipeline = 1, .data = d, .chunks = 1}, 3 * d, bytes, &plan);
        double ring_s = 2 * (d - 1) * (2 * 1e-6 + (double)bytes / d / 1e9);
        slow[d - 1] = 2.385;
        SIM_ASSERT_CLOSE(makespan_s(&plan, &(struct sim_options){.slow = slow}),
                         2.385 * 3 * (FORWARD_NS + BACKWARD_NS) * 1e-9 + ring_s);
        plan_release(&plan);
    }
}

/* Equal bits with and without folding; folded only where the devices of each stage are equally slow. */
static void test_folding(void **state)
{
    (void)state;
    uint64_t seed = support_seed("slow_folding"), drawn = 0;
    for (uint32_t stages = 1; stages <= 3; stages++)
        for (uint32_t data = 2; data <= 3; data++)
            for (uint32_t alike = 0; alike <= 1; alike++) {
                struct plan plan = {0};
                struct parallel p = {
                    .tensor = 1, .pipeline = stages, .data = data, .chunks = 1, .schedule = PIPELINE_1F1B};
                double slow[9];
                parallel_plan_of(p, 4 * data, 500000, &plan);
                for (uint32_t d = 0; d < stages * data; d++)
                    slow[d] = 1 + random_unit(seed, alike ? drawn + d / data : drawn + d);
                drawn += 9;
                struct sim_test_outcome folded, whole;
                simulate(&plan, &(struct sim_options){.slow = slow}, &folded);
                simulate(&plan, &(struct sim_options){.slow = slow, .no_fold = true}, &whole);
                assert_int_equal(folded.result.represented, alike ? stages * (data - 1) : 0);
                assert_int_equal(whole.result.represented, 0);
                assert_memory_equal(&folded.result.makespan_s, &whole.result.makespan_s, sizeof(double));
                for (uint32_t s = 0; s < plan_stream_count(&plan); s++)
                    assert_memory_equal(&folded.result.streams[s].busy_s, &whole.result.streams[s].busy_s,
                                        sizeof(double));
                sim_test_release(&folded);
                sim_test_release(&whole);
                plan_release(&plan);
            }
}

/* --- chance ---------------------------------------------------------------------------------- */

/* Only computations, one after the other on one device: their sum, each within its range; mean and variance of a
 * uniform distribution, 1 and noise^2 / 3, within five standard errors (its fourth moment is noise^4 / 5). */
static void test_noise(void **state)
{
    (void)state;
    enum { COUNT = 4000 };
    const double noise = 0.3, alone_s = 1.7e-3;
    uint64_t seed = support_seed("noise");
    struct hardware hardware;
    struct plan plan = {0};
    sim_test_machine(&hardware, "cuda", 1);
    sim_test_connect(&hardware, 0, sim_test_link(&hardware, 1e9, 0, true));
    struct plan_builder *builder = sim_test_builder(&hardware, 1);
    uint32_t unit = sim_test_unit(builder, &(struct sim_test_unit){.compute_ns = 1700000});
    for (uint32_t i = 0; i < COUNT; i++) sim_test_run_on(builder, unit, 0, 0);
    sim_test_finish(builder, &plan);

    struct sim_test_outcome outcome;
    struct sim_options options = {.noise = noise, .seed = seed, .record_spans = true};
    simulate(&plan, &options, &outcome);
    assert_int_equal(outcome.trace.span_count, COUNT);
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        double factor = (outcome.trace.spans[i].end_s - outcome.trace.spans[i].start_s) / alone_s;
        assert_true(factor >= 1 - noise - 1e-9 && factor <= 1 + noise + 1e-9);
        sum += factor - 1;
        squares += (factor - 1) * (factor - 1);
    }
    double variance = noise * noise / 3, fourth = pow(noise, 4) / 5;
    assert_true(fabs(sum / COUNT) < 5 * sqrt(variance / COUNT));
    assert_true(fabs(squares / COUNT - variance) < 5 * sqrt((fourth - variance * variance) / COUNT));
    SIM_ASSERT_CLOSE(outcome.result.makespan_s, (COUNT + sum) * alone_s);

    options.record_spans = false; /* equal seeds, equal bytes; another seed, another run */
    double again_s = makespan_s(&plan, &options);
    assert_memory_equal(&again_s, &outcome.result.makespan_s, sizeof again_s);
    options.seed++;
    assert_true(fabs(makespan_s(&plan, &options) - again_s) > 0);
    sim_test_release(&outcome);
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spilled), cmocka_unit_test(test_slow_stage), cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_folding), cmocka_unit_test(test_noise),
    };
    return cmocka_run_group_tests_name("sim/slow", tests, NULL, NULL);
}
