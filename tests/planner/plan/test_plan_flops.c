/* planner/plan_flops.h: an MFU's numerator by hand, and by which peak jobs of each precision go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "base/size.h"
#include "planner/plan_flops.h"
#include "tests/support/support_models.h"

static void jobs_of(const char *text, struct plan *plan)
{
    struct error err = {0};
    *plan = (struct plan){0};
    if (support_jobs(text, ".", &plan->jobs, &err) != STATUS_OK) fail_msg("%s", err.text);
}

static const char gpt[] =
    "{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"a\", \"network\": \"gpt2\", \"sequence\": 128, \"microbatch\": 2, "
    "\"minibatches\": 3, \"precision\": \"fp32\"}]}";
static const char half[] =
    "{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"a\", \"network\": \"gpt2\", \"sequence\": 128, \"microbatch\": 2, "
    "\"minibatches\": 3, \"precision\": \"bf16\"}]}";
static const char vgg[] =
    "{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"a\", \"network\": \"vgg16\", \"microbatch\": 2, "
    "\"minibatches\": 3}]}";

/* A V100's products of fp32 have no matrix cores; an A100's have, in TF32. */
static void peaks_go_by_precision(void **state)
{
    (void)state;
    static const struct {
        const char *machine;
        double fp32, bf16; /* FLOP/s, of the data sheets */
    } cases[] = {{"v100-sxm2-32gb", 15.7e12, 125e12}, {"a100-sxm4-40gb", 156e12, 312e12}};
    struct plan wide, narrow;
    jobs_of(gpt, &wide);
    jobs_of(half, &narrow);
    for (int i = 0; i < 2; i++) {
        struct hardware hardware;
        support_machine(cases[i].machine, &hardware);
        assert_true(fabs(plan_peak_flops_per_s(&wide, &hardware.types[0]) / cases[i].fp32 - 1) < 0.01);
        assert_true(fabs(plan_peak_flops_per_s(&narrow, &hardware.types[0]) / cases[i].bf16 - 1) < 0.01);
        hardware_release(&hardware);
    }
    assert_true(plan_peak_flops_per_s(&wide, &(struct device_type){0}) <= 0);
    job_set_release(&wide.jobs);
    job_set_release(&narrow.jobs);
}

/*
 * VGG16's formula: 15.47e9 multiplications and additions of an image of 224 pixels forward, two FLOPs each, and double
 * that backward but for the images' own gradient. All but a twentieth are 3 x 3 convolutions with a stride of 1. Only
 * on devices without matrix cores filtering leaves a quarter of these.
 */
static void filtered_convolutions_keep_their_formula(void **state)
{
    (void)state;
    struct plan plan;
    struct hardware volta, ampere;
    jobs_of(vgg, &plan);
    support_machine("v100-sxm2-32gb", &volta);
    support_machine("a100-sxm4-40gb", &ampere);
    double model = plan_model_flops(&plan), least = plan_least_flops(&plan, &volta);
    assert_true(fabs(model / (6 * 3 * 2 * 15.47e9) - 1) < 0.02);
    assert_true(least < 0.3 * model && least > 0.25 * model);
    assert_true(plan_least_flops(&plan, &ampere) == model);
    hardware_release(&volta);
    hardware_release(&ampere);
    job_set_release(&plan.jobs);
}

/*
 * A block of width C on R rows with T tokens: 24 R C^2 forward and 2 R T C of causal attention. Forward passes of
 * blocks are repeated with full recomputation, attention's inside with selective recomputation. A tensor group of two
 * and two replicas of half of the minibatch compute the same.
 */
static void recomputation_counts_as_hardware_flops(void **state)
{
    (void)state;
    const double rows = 2 * 4 * 128, width = 768, tokens = 128, blocks = 12, minibatches = 3;
    const double core = minibatches * blocks * 2 * rows * tokens * width;
    const double forward = minibatches * blocks * 24 * rows * width * width + core;
    const struct {
        const char *parallel;
        double again;
    } cases[] = {{"\"recompute\": \"none\"", 0},
                 {"\"recompute\": \"selective\"", core},
                 {"\"recompute\": \"full\"", forward},
                 {"\"tensor\": 2, \"pipeline\": 3, \"data\": 2, \"recompute\": \"full\"", forward}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char text[512];
        struct plan plan;
        snprintf(text, sizeof text,
                 "{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"a\", \"network\": {\"model_type\": \"gpt2\", "
                 "\"vocab_size\": 50304}, \"sequence\": 128, \"microbatch\": 2, \"microbatches\": 4, "
                 "\"minibatches\": 3, \"precision\": \"bf16\", \"parallel\": {%s}}]}",
                 cases[i].parallel);
        jobs_of(text, &plan);
        const double again = plan_hardware_flops(&plan) - plan_model_flops(&plan);
        if (fabs(again - cases[i].again) > 1e-9 * forward) fail_msg("%s: %g and not %g", text, again, cases[i].again);
        job_set_release(&plan.jobs);
    }
    struct plan spilled;
    jobs_of(gpt, &spilled);
    assert_true(plan_hardware_flops(&spilled) <= 0); /* unknown */
    job_set_release(&spilled.jobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peaks_go_by_precision),
        cmocka_unit_test(filtered_convolutions_keep_their_formula),
        cmocka_unit_test(recomputation_counts_as_hardware_flops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
