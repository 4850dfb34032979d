/*
 * Slices of tokens and their sends (planner/parallel/parallel_job_slices.h; label: fast): makespans by the closed form,
 * a sequence in one slice as gpipe has it, and the planner's choice against equal slices where each slice costs a
 * latency.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/size.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"

enum { FORWARD_NS = 4800000, BACKWARD_NS = 9600000, TOKENS = 64 };

static struct test_layer uniform_layer(void *context, uint32_t job, uint32_t layer)
{
    (void)job, (void)layer;
    return (struct test_layer){.forward_ns = FORWARD_NS, .backward_ns = BACKWARD_NS, .activation_bytes = 4800,
                               .boundary_bytes = *(const uint64_t *)context};
}

struct shape {
    uint32_t stages;
    uint64_t microbatches, boundary_bytes;
    double rate, latency_s;
};

/* `slices` equal ones; UINT32_MAX: gpipe. */
static double makespan_s(struct shape *x, uint32_t slices)
{
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    bool whole = slices == UINT32_MAX;
    struct parallel p = {.tensor = 1, .pipeline = x->stages, .data = 1, .chunks = 1,
                         .schedule = whole ? PIPELINE_GPIPE : PIPELINE_TERAPIPE};
    for (uint32_t s = 0; s < slices && !whole; s++) p.slice_tokens[p.slices++] = TOKENS / slices;
    test_parallel_machine(&hardware, p.pipeline, x->rate, x->latency_s);
    test_profile_jobs(&jobs, 1, p.pipeline, 1, uniform_layer, &x->boundary_bytes);
    jobs.jobs[0].microbatches = x->microbatches;
    jobs.jobs[0].sequence = TOKENS;
    jobs.jobs[0].parallel = p;
    test_parallel_plan(&hardware, &jobs, &plan);
    double seconds = test_parallel_simulate(&plan, false).makespan_s;
    plan_release(&plan);
    return seconds;
}

/* n equal slices, which are sent in less time than they are computed in, take M n slots of (f + b) / n, and K - 1
 * hops of a slot and of two copies, over two links each. */
static double closed_s(const struct shape *x, uint32_t slices)
{
    double both_s = 1e-9 * (FORWARD_NS + BACKWARD_NS);
    double send_s = 2 * x->latency_s + (double)x->boundary_bytes / slices / x->rate;
    return (double)x->microbatches * both_s + (x->stages - 1) * (both_s / slices + 2 * send_s);
}

static void copies_belong_to_hops(void **state)
{
    (void)state;
    static const uint32_t slices[] = {1, 2, 4, 8};
    for (uint32_t stages = 1; stages <= 6; stages++)
        for (uint32_t i = 0; i < 4; i++) { /* half of a forward pass, and a latency of a twentieth */
            struct shape x = {stages, 5, 2400000, 1e9, 30e-6};
            test_parallel_near(makespan_s(&x, slices[i]), closed_s(&x, slices[i]));
        }
}

/* A sequence that is not cut: the same passes in the same order as gpipe's, with room to send during the passes. */
static void one_slice_is_gpipe(void **state)
{
    (void)state;
    for (uint32_t stages = 2; stages <= 6; stages++) {
        struct shape x = {stages, 7, 4000000, 1e9, 0};
        test_parallel_near(makespan_s(&x, 1), makespan_s(&x, UINT32_MAX));
    }
}

/* Where each slice costs something of its own (an A100's kernels wait to be dispatched, tensor groups to begin) long
 * ones are better, and where links are slow short ones: with both the choice is as good as any equal slices, to 2 %. */
static void choice_knows_of_copies(void **state)
{
    (void)state;
    static const struct {
        uint32_t tensor;
        double rate;
    } cases[] = {{1, 1e9}, {1, 2e10}, {2, 1e9}, {2, 2e10}};
    uint32_t counts[4];
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        double chosen_s = 0;
        for (uint32_t slices = 0; slices <= 8; slices = slices > 0 ? 2 * slices : 1) {
            struct hardware hardware = {0};
            struct job_set jobs;
            struct plan plan = {0};
            struct error err = {0};
            const struct hardware_options options = {.p2p_bytes_per_s = cases[c].rate};
            if (hardware_find("8x a100-sxm4-80gb", &hardware, &err) || hardware_adjust(&hardware, &options, &err))
                fail_msg("%s", err.text);
            hardware.stack = STACK_FRAMEWORKS;
            test_gpt_jobs(&jobs, 1, 8, 1024, 256, 1);
            struct job *job = &jobs.jobs[0];
            job->network.heads = 8;
            job->network.head_width = 128;
            job->network.positions = job->sequence = 2048;
            job->microbatches = 4;
            job->precision = PRECISION_BF16;
            job->parallel = (struct parallel){.tensor = cases[c].tensor, .pipeline = 8 / cases[c].tensor, .data = 1,
                                              .chunks = 1, .schedule = PIPELINE_TERAPIPE};
            for (uint32_t s = 0; s < slices; s++) job->parallel.slice_tokens[job->parallel.slices++] = 2048 / slices;
            test_parallel_plan(&hardware, &jobs, &plan);
            double seconds = test_parallel_simulate(&plan, false).makespan_s;
            if (slices == 0) {
                counts[c] = plan.jobs.jobs[0].parallel.slices;
                chosen_s = seconds;
            } else if (chosen_s > 1.02 * seconds) {
                fail_msg("case %zu: %g s with %u slices, %g s with %u", c, chosen_s, counts[c], seconds, slices);
            }
            plan_release(&plan);
        }
    }
    assert_true(counts[0] > counts[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_belong_to_hops),
        cmocka_unit_test(one_slice_is_gpipe),
        cmocka_unit_test(choice_knows_of_copies),
    };
    return cmocka_run_group_tests_name("planner/parallel/parallel_job_slices.h: sends", tests, NULL, NULL);
}
