/*
 * Ways by their degrees, how deep a network may be, and gradients of 16 bits.
 *
 * The resident bytes of a device have a closed form, ZeRO's (arXiv 1910.02054, table 1): for P parameters and N ranks
 * 16 P, 4 P + 12 P / N, 2 P + 14 P / N and 16 P / N bytes with gradients of 16 bits; 18 P where they have 32. Only
 * feasibility_find() judges the deepest network that fits: it fits, and with a block more it does not.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "models/hardware/hardware.h"
#include "models/job/job.h"
#include "models/job/parallel_memory.h"
#include "planner/capacity/feasibility_largest.h"
#include "tests/support/support_models.h"

enum { DEVICES = 4 };

static void make_machine(struct hardware *out)
{
    struct error err = {0};
    *out = (struct hardware){0};
    const struct hardware_options options = {.device_count = DEVICES};
    assert_int_equal(hardware_find("dgx-2", out, &err), STATUS_OK);
    assert_int_equal(hardware_adjust(out, &options, &err), STATUS_OK);
}

static const char gpt[] = "{\"model_type\": \"gpt2\", \"n_embd\": 2048, \"n_layer\": 24, \"n_head\": 16}";

static void make_job(struct job_set *out, const char *keys)
{
    char text[512];
    struct error err = {0};
    snprintf(text, sizeof text,
             "{\"spillway_jobs\": 1, \"jobs\": [{\"network\": %s, \"microbatches\": 8, \"minibatches\": 1%s}]}", gpt,
             keys);
    *out = (struct job_set){0};
    if (support_jobs(text, ".", out, &err)) fail_msg("%s\n%s", text, err.text);
}

static const char halves[] = ", \"precision\": \"bf16\", \"gradients\": \"bf16\"";

/* --- what stays ------------------------------------------------------------------------------- */

static double bytes_of_a_parameter(const struct job_set *jobs, const char *degrees)
{
    struct error err = {0};
    struct job job = jobs->jobs[0];
    assert_int_equal(parallel_parse_text(degrees, &job.parallel, &err), STATUS_OK);
    struct rank_state state = parallel_stage_state(&job, 0);
    return (double)(state.weight_bytes + state.gradient_bytes + state.state_bytes) /
           (double)network_parameters(&job.network);
}

static void states_are_those_of_zero(void **state)
{
    (void)state;
    struct job_set jobs;
    make_job(&jobs, halves);
    for (unsigned n = 4; n <= 1024; n *= 4) {
        const double expected[] = {16, 4 + 12.0 / n, 2 + 14.0 / n, 16.0 / n};
        for (unsigned zero = 0; zero <= 3; zero++) {
            char degrees[64];
            snprintf(degrees, sizeof degrees, "dp=%u,v=24,zero=%u", n, zero);
            /* 24 runs' shares are rounded up, to whole parameters of at most 16 bytes */
            assert_true(fabs(bytes_of_a_parameter(&jobs, degrees) - expected[zero]) < 1e-6);
        }
    }
    job_set_release(&jobs);
    make_job(&jobs, ", \"precision\": \"bf16\"");
    assert_true(fabs(bytes_of_a_parameter(&jobs, "dp=1") - 18) < 1e-9);
    job_set_release(&jobs);
}

/* --- ways by degrees -------------------------------------------------------------------------- */

static void ways_are_read(void **state)
{
    (void)state;
    struct hardware hardware;
    struct job_set jobs;
    struct feasibility_way way;
    struct error err = {0};
    make_machine(&hardware);
    make_job(&jobs, halves);
    assert_int_equal(feasibility_way_parse(&hardware, &jobs.jobs[0], "tp=2,dp=2,zero=1+recompute", &way, &err),
                     STATUS_OK);
    assert_string_equal(way.name, "tp=2,dp=2,zero=1+recompute");
    assert_int_equal(way.devices, 4);
    assert_int_equal(way.parallel.tensor, 2);
    assert_int_equal(way.parallel.recompute, RECOMPUTE_FULL);
    assert_int_equal(feasibility_way_parse(&hardware, &jobs.jobs[0], "dp=1+selective", &way, &err), STATUS_OK);
    assert_int_equal(way.parallel.recompute, RECOMPUTE_SELECTIVE);
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"dp=2+some", "unknown '+some' (expected '+recompute', '+selective' or '+stage')"},
        {"dp=8", "way 'dp=8' takes 8 devices (the machine has 4)"},
        {"dp=3", "8 microbatches on 3 data-parallel replicas (expected a multiple)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        err = (struct error){0};
        assert_int_equal(feasibility_way_parse(&hardware, &jobs.jobs[0], cases[i].text, &way, &err), STATUS_BAD_INPUT);
        if (!strstr(err.text, cases[i].message)) fail_msg("'%s' does not say '%s'", err.text, cases[i].message);
    }
    job_set_release(&jobs);
    hardware_release(&hardware);
}

/* --- the deepest ------------------------------------------------------------------------------ */

static void one_more_does_not_fit(void **state)
{
    (void)state;
    struct hardware hardware;
    struct job_set jobs;
    make_machine(&hardware);
    make_job(&jobs, halves);
    static const char *const texts[] = {"dp=1+recompute", "dp=4,zero=2+recompute", "tp=4", "pp=4+recompute"};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct feasibility_way way;
        struct feasibility fit;
        struct feasibility_largest largest;
        struct error err = {0};
        assert_int_equal(feasibility_way_parse(&hardware, &jobs.jobs[0], texts[i], &way, &err), STATUS_OK);
        assert_int_equal(feasibility_find_largest(&hardware, &jobs.jobs[0], &way, &largest, &err), STATUS_OK);
        struct job deepest = feasibility_job_of_blocks(&jobs.jobs[0], largest.blocks);
        assert_int_equal(feasibility_find(&hardware, &deepest, &way, &fit, &err), STATUS_OK);
        assert_int_equal(fit.verdict, FEASIBILITY_YES);
        assert_int_equal(largest.parameters, network_parameters(&deepest.network));
        struct job deeper = feasibility_job_of_blocks(&jobs.jobs[0], largest.blocks + 1);
        assert_int_equal(feasibility_find(&hardware, &deeper, &way, &fit, &err), STATUS_OK);
        assert_int_equal(fit.verdict, FEASIBILITY_DEVICE);
        assert_int_equal(largest.one_more, FEASIBILITY_DEVICE);
    }
    job_set_release(&jobs);
    hardware_release(&hardware);
}

/* A device that holds nothing has not even one block; if everything fits, the result is the limit. */
static void none_and_all(void **state)
{
    (void)state;
    struct hardware hardware;
    struct job_set jobs;
    struct feasibility_way way;
    struct feasibility_largest largest;
    struct error err = {0};
    make_machine(&hardware);
    make_job(&jobs, halves);
    assert_int_equal(feasibility_way_parse(&hardware, &jobs.jobs[0], "dp=1", &way, &err), STATUS_OK);
    hardware.devices[0].memory_bytes = 1 << 20;
    assert_int_equal(feasibility_find_largest(&hardware, &jobs.jobs[0], &way, &largest, &err), STATUS_OK);
    assert_int_equal(largest.blocks, 0);
    assert_int_equal(largest.parameters, 0);
    hardware.devices[0].memory_bytes = UINT64_C(1) << 50;
    assert_int_equal(feasibility_find_largest(&hardware, &jobs.jobs[0], &way, &largest, &err), STATUS_OK);
    assert_int_equal(largest.blocks, FEASIBILITY_BLOCKS_MOST);
    assert_int_equal(largest.one_more, FEASIBILITY_YES);
    job_set_release(&jobs);
    hardware_release(&hardware);
}

/* --- gradients -------------------------------------------------------------------------------- */

static void gradients_are_refused(void **state)
{
    (void)state;
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    const struct planner_options options = {0};
    make_machine(&hardware);
    make_job(&jobs, halves);
    assert_int_equal(planner_plan(&hardware, &jobs, &options, &plan, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "job 'job-1' has gradients of bf16 and is not a parallel job (see --parallel)");
    make_job(&jobs, ", \"gradients\": \"bf16\"");
    struct job job = jobs.jobs[0];
    err = (struct error){0};
    assert_int_equal(parallel_parse_text("dp=2", &job.parallel, &err), STATUS_OK);
    assert_int_equal(parallel_check(&job, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "'gradients' of bf16 with 'precision' fp32 (expected fp32, the same)");
    job_set_release(&jobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_those_of_zero), cmocka_unit_test(ways_are_read),
        cmocka_unit_test(one_more_does_not_fit), cmocka_unit_test(none_and_all),
        cmocka_unit_test(gradients_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
