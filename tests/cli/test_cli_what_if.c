/*
 * cli/capacity/cli_what_if.h: intervals in two ways, by moving values one by one and by random machines
 * (sim/uncertainty/machine_draw.h); a single value against its closed form; a machine without spreads has no interval.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "cli/capacity/cli_what_if.h"
#include "sim/sim.h"
#include "sim/uncertainty/machine_draw.h"
#include "sim/uncertainty/quantiles.h"
#include "tests/support/support_models.h"
#include "tests/support/support_seed.h"

enum { DRAWS = 1000 };

static const char text[] =
    "{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"a\", \"network\": {\"model_type\": \"gpt2\", \"n_layer\": 4, "
    "\"n_embd\": 512, \"n_head\": 8, \"vocab_size\": 3000, \"n_positions\": 256}, \"sequence\": 256, "
    "\"microbatch\": 2, \"microbatches\": 8, \"minibatches\": 2, \"precision\": \"bf16\"}]}";

static void begin(const char *machine, struct what_if_answer *answer, struct job_set *jobs)
{
    struct error err = {0};
    *answer = (struct what_if_answer){.name = machine};
    *jobs = (struct job_set){0};
    if (hardware_find(machine, &answer->hardware, &err) != STATUS_OK) fail_msg("%s", err.text);
    if (support_jobs(text, ".", jobs, &err) != STATUS_OK) fail_msg("%s", err.text);
}

/* A single job is not tried together with others. */
static const struct cli_source nowhere = {.machine = CLI_MACHINE_NONE, .parallel = CLI_PARALLEL_NONE};

static void end(struct what_if_answer *answer, struct job_set *jobs)
{
    what_if_answer_release(answer);
    job_set_release(jobs);
}

static double simulated_s(const struct plan *plan, const struct hardware *hardware)
{
    struct sim_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    if (sim_run(plan, &(struct sim_options){.hardware = hardware}, &result, &trace, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    double seconds = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    return seconds;
}

/* Times do not follow values evenly: ends agree within a part of the interval's half. Over 60 seeds the worst of
 * the four ends (the lower one of 4x a100) is off by 0.257 of it on average, and 1000 draws scatter that by 0.030:
 * 0.4 is 4.7 of those away, where a third was 2.5 and is passed by one seed in some 160. */
static void intervals_are_those_of_draws(void **state)
{
    (void)state;
    static const char *const machines[] = {"4x a100-sxm4-40gb", "a100-sxm4-80gb"};
    uint64_t seed = support_seed("draws");
    for (size_t m = 0; m < 2; m++) {
        struct what_if_answer answer;
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        double seconds[DRAWS];
        begin(machines[m], &answer, &jobs);
        if (what_if_answer(&nowhere, &jobs, &answer, &err) != STATUS_OK) fail_msg("%s", err.text);
        const struct what_if *search = &answer.searches[0];
        assert_int_equal(what_if_plan(&answer.hardware, &jobs.jobs[0], &search->tries[search->best].way, 2, &plan,
                                      &err),
                         STATUS_OK);
        for (uint64_t d = 0; d < DRAWS; d++) {
            struct hardware drawn = {0};
            assert_int_equal(machine_draw(&plan.hardware, seed, d, &drawn, &err), STATUS_OK);
            seconds[d] = simulated_s(&plan, &drawn);
            hardware_release(&drawn);
        }
        struct quantiles of_draws = quantiles_of(seconds, DRAWS);
        assert_true(answer.low_s < answer.run_s && answer.run_s < answer.high_s);
        assert_true(fabs(log(answer.low_s / of_draws.low)) < log(answer.run_s / answer.low_s) * 0.4);
        assert_true(fabs(log(answer.high_s / of_draws.high)) < log(answer.high_s / answer.run_s) * 0.4);
        plan_release(&plan);
        end(&answer, &jobs);
    }
}

static void silence(struct hardware *hardware)
{
    for (uint32_t t = 0; t < hardware->type_count; t++) {
        struct device_type *type = &hardware->types[t];
        struct sourced_value *values[] = {&type->peak_fp32, &type->peak_tf32, &type->peak_bf16, &type->memory_bandwidth,
                                           &type->matmul_efficiency, &type->memory_efficiency, &type->launch_latency,
                                           &type->collective_latency, &type->kernel_model.matmul_depth,
                                           &type->kernel_model.score_bytes_forward,
                                           &type->kernel_model.score_bytes_backward,
                                           &type->kernel_model.loss_passes, &type->kernel_model.dispatch_latency};
        for (size_t f = 0; f < sizeof values / sizeof *values; f++) values[f]->spread = 0;
    }
    for (uint32_t l = 0; l < hardware->link_count; l++)
        hardware->links[l].bandwidth.spread = hardware->links[l].latency.spread = 0;
    hardware->host_bandwidth.spread = 0;
}

static void without_spreads_it_is_sure(void **state)
{
    (void)state;
    struct what_if_answer answer;
    struct job_set jobs;
    struct error err = {0};
    begin("rtx-3090-24gb", &answer, &jobs);
    silence(&answer.hardware);
    assert_false(machine_has_spread(&answer.hardware));
    assert_int_equal(what_if_answer(&nowhere, &jobs, &answer, &err), STATUS_OK);
    assert_true(answer.fits);
    assert_true(answer.low_s == answer.run_s && answer.high_s == answer.run_s);
    for (uint32_t f = 0; f < MACHINE_VALUES; f++) assert_true(answer.effects[f].spread == 0);
    end(&answer, &jobs);
}

/* With a single uncertain value the interval ends at the ends of the value: a spread of 0.07 is a factor of e^(0.07
 * / 0.6745 * 1.6449) = 1.186 at 95 %, and kernels that are all products at the peak rate, without launches, take
 * exactly that much longer at 5 %. */
static void a_value_alone_makes_the_interval(void **state)
{
    (void)state;
    struct what_if_answer answer;
    struct job_set jobs;
    struct error err = {0};
    begin("rtx-3090-24gb", &answer, &jobs);
    silence(&answer.hardware);
    for (uint32_t t = 0; t < answer.hardware.type_count; t++) answer.hardware.types[t].matmul_efficiency.spread = 0.07;
    assert_int_equal(what_if_answer(&nowhere, &jobs, &answer, &err), STATUS_OK);
    const struct what_if_effect *effect = &answer.effects[MACHINE_MATMUL_EFFICIENCY];
    assert_true(fabs(effect->spread - 0.07) < 1e-12);
    assert_true(fabs(answer.low_s / effect->better_s - 1) < 1e-9);
    assert_true(fabs(answer.high_s / effect->worse_s - 1) < 1e-9);
    assert_true(answer.high_s > answer.run_s &&
                answer.high_s <= answer.run_s * machine_draw_factor(0.07, 0.95) * (1 + 1e-9));
    assert_true(fabs(machine_draw_factor(0.07, 0.95) - 1.186) < 1e-3);
    end(&answer, &jobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_are_those_of_draws),
        cmocka_unit_test(without_spreads_it_is_sure),
        cmocka_unit_test(a_value_alone_makes_the_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
