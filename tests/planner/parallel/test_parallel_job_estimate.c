/*
 * The clock that is printed for parallel jobs (label: fast): of a pipeline and of replicas the simulator's, of jobs
 * whose states or weights are on hosts a lower bound of it that is not far below.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "base/random.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/support_seed.h"

enum { BLOCKS = 4 };

/* Chunks with this parallelism, on the number of devices that it needs: by the planner's clock and simulated. */
static void plan_and_simulate(struct parallel parallel, uint64_t microbatches, uint64_t minibatches, double *clock_s,
                              double *simulated_s)
{
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct trace trace = {0};
    struct sim_result result = {0};
    struct error err = {0};
    test_parallel_machine(&hardware, parallel.pipeline * parallel.data, 1e11, 0);
    hardware.host_bandwidth =
        (struct sourced_value){.value = 2e10, .kind = SOURCE_ASSUMED, .source = "a test", .as_of = "2026-11"};
    test_gpt_jobs(&jobs, 1, BLOCKS, 64, 256, minibatches);
    jobs.jobs[0].parallel = parallel;
    jobs.jobs[0].microbatches = microbatches;
    test_parallel_plan(&hardware, &jobs, &plan);
    if (sim_run(&plan, &(struct sim_options){0}, &result, &trace, &err)) fail_msg("%s", err.text);
    *clock_s = plan.estimated_makespan_s;
    *simulated_s = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
}

static struct parallel parallel_as(uint32_t pipeline, uint32_t data)
{
    return (struct parallel){.tensor = 1, .pipeline = pipeline, .data = data, .chunks = 1,
                             .schedule = PIPELINE_1F1B, .prefetch = 1};
}

static void pipelines(void **state)
{
    (void)state;
    for (uint32_t stages = 2; stages <= 4; stages++) /* one stage is a resident job, not a pipeline */
        for (uint64_t microbatches = stages; microbatches <= 8; microbatches += 3) {
            double clock_s, simulated_s;
            plan_and_simulate(parallel_as(stages, 1), microbatches, 3, &clock_s, &simulated_s);
            if (!(fabs(clock_s - simulated_s) <= 0.01 * simulated_s))
                fail_msg("%u stages: %g s by the clock, %g s simulated", stages, clock_s, simulated_s);
        }
}

static void states_on_hosts(void **state)
{
    (void)state;
    uint64_t seed = support_seed("states_on_hosts");
    double closest = 0;
    for (uint32_t round = 0; round < 150; round++) {
        uint64_t key = random_u64(seed, round);
        struct parallel p = parallel_as(1, 1 + (uint32_t)random_below(key, 0, 4));
        double clock_s, simulated_s;
        p.chunks = 1 + (uint32_t)random_below(key, 1, BLOCKS);
        p.offload = random_below(key, 2, 2) ? OFFLOAD_STATES : OFFLOAD_WEIGHTS;
        p.zero = p.offload == OFFLOAD_STATES ? ZERO_GRADIENTS : ZERO_WEIGHTS;
        if (p.offload == OFFLOAD_WEIGHTS && p.data > 1 && random_below(key, 3, 2)) p.zero = ZERO_NOTHING;
        p.delayed = p.offload == OFFLOAD_STATES && random_below(key, 4, 2);
        uint64_t microbatches = p.data * (p.zero == ZERO_NOTHING ? 1 : 1 + random_below(key, 5, 2));
        plan_and_simulate(p, microbatches, 1 + random_below(key, 6, 4), &clock_s, &simulated_s);
        if (!(clock_s <= simulated_s * (1 + 1e-9)))
            fail_msg("round %u: at least %g s by the clock, %g s simulated", round, clock_s, simulated_s);
        closest = fmax(closest, clock_s / simulated_s);
    }
    if (!(closest > 0.6)) fail_msg("the nearest bound is %g of what is simulated", closest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pipelines), cmocka_unit_test(states_on_hosts)};
    return cmocka_run_group_tests_name("parallel_job_estimate", tests, NULL, NULL);
}
