/*
 * Sums whose order does not depend on the devices (label: fast): replicas add up gradients as trees, tensor groups sum
 * pieces. The jobs that have such sums, the reasons to refuse others, and the judge's rules for partial sums.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/size.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/planner/support_parallel_variants.h"
#include "tests/support/planner/support_planner.h"

/* A job as text, and why it is refused. */
struct wanted {
    const char *text;
    uint64_t microbatches;
    uint32_t schedule, precision;
    double clip;
    const char *complaint; /* NULL: accepted */
};

static void check(const struct wanted *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct job_set jobs;
        struct parallel p = {0};
        struct error err = {0};
        char text[PARALLEL_TEXT_BYTES];
        test_gpt_jobs(&jobs, 1, 6, 32, 97, VARIANT_MINIBATCHES);
        struct job *job = &jobs.jobs[0];
        job->microbatches = cases[i].microbatches;
        job->precision = cases[i].precision;
        job->optimizer.clip = cases[i].clip;
        assert_int_equal(parallel_parse_text(cases[i].text, &p, &err), STATUS_OK);
        if (p.replicated == 0 && p.zero == 0 && !p.sequence)
            assert_string_equal(parallel_text(&p, text), cases[i].text);
        p.schedule = cases[i].schedule;
        job->parallel = p;
        const enum status status = parallel_check(job, &err);
        if (!cases[i].complaint && status) fail_msg("%s: %s", cases[i].text, err.text);
        if (cases[i].complaint) assert_string_equal(err.text, cases[i].complaint);
        job_set_release(&jobs);
    }
}

/* Trees as text, and the jobs that have none. */
static void trees(void **state)
{
    (void)state;
    static const struct wanted cases[] = {
        {"dp=4,tree", 8, PIPELINE_1F1B, PRECISION_FP32, 0, NULL},
        {"pp=2,tree", 7, PIPELINE_1F1B, PRECISION_FP32, 0, NULL},
        {"dp=4,tree", 12, PIPELINE_1F1B, PRECISION_FP32, 0, "'sum' 'tree' with 3 microbatches on each of 4 replicas "
                                                            "(expected a power of two)"},
        {"dp=2,zero=2,tree", 8, PIPELINE_1F1B, PRECISION_FP32, 0, "'sum' 'tree' with split gradients and several "
         "passes of a replica, whose sum none keeps (expected 'zero' 0 or 1, or one microbatch of each replica)"},
        {"replicas=2-1,tree", 8, PIPELINE_1F1B, PRECISION_FP32, 0, "'sum' 'tree' with unequal replicas, "
         "whose sums are no branches of one tree"},
        {"pp=2,tree", 8, PIPELINE_TERAPIPE, PRECISION_FP32, 0, NULL},
        {"pp=2,tree", 8, PIPELINE_2BW, PRECISION_FP32, 0, "'sum' 'tree' with a schedule without a flush"},
    };
    check(cases, ARRAY_COUNT(cases));
}

/* Jobs in pieces, and what those cannot go with. */
static void pieces(void **state)
{
    (void)state;
    static const struct wanted cases[] = {
        {"tensor_pieces=4", 4, PIPELINE_1F1B, PRECISION_FP32, 0.5, NULL},
        {"tp=2,pp=2,dp=2,tensor_pieces=4", 4, PIPELINE_1F1B, PRECISION_FP32, 0.5, NULL},
        {"tp=4,dp=2,zero=3,tensor_pieces=4", 4, PIPELINE_1F1B, PRECISION_FP32, 0, NULL},
        {"tp=2,tensor_pieces=6", 4, PIPELINE_1F1B, PRECISION_FP32, 0,
         "'tensor_pieces' 6 on 2 devices of a tensor group (expected a power of two from 2 on that they divide)"},
        {"tensor_pieces=1", 4, PIPELINE_1F1B, PRECISION_FP32, 0,
         "'tensor_pieces' 1 on 1 device of a tensor group (expected a power of two from 2 on that they divide)"},
        {"tp=4,tensor_pieces=2", 4, PIPELINE_1F1B, PRECISION_FP32, 0,
         "'tensor_pieces' 2 on 4 devices of a tensor group (expected a power of two from 2 on that they divide)"},
        {"tp=2,tensor_pieces=8", 4, PIPELINE_1F1B, PRECISION_FP32, 0,
         "'tensor_pieces' 8 with 4 attention heads (expected a divisor)"},
        {"tp=2,sp,tensor_pieces=4", 4, PIPELINE_1F1B, PRECISION_FP32, 0, "'tensor_pieces' with sequence parallelism"},
        {"tp=2,tensor_pieces=4", 4, PIPELINE_1F1B, PRECISION_BF16_WEIGHTS, 0,
         "'tensor_pieces' with numbers of 16 bits (expected 'precision' and 'moments' fp32)"},
        {"tp=2,dp=2,zero=1,tensor_pieces=4", 4, PIPELINE_1F1B, PRECISION_FP32, 0.5,
         "'tensor_pieces' with 'clip' of split or offloaded states"},
    };
    check(cases, ARRAY_COUNT(cases));
}

/* --- broken plans ---------------------------------------------------------------------------- */

static struct plan_buffer *levels_of(struct plan *p)
{
    for (uint32_t b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].kind == BUFFER_GRADIENT && p->buffers[b].variant == PLAN_GRADIENT_LEVELS)
        return &p->buffers[b];
    fail_msg("no partial sums");
    return NULL;
}
static void levels_small(struct plan *p) { levels_of(p)->bytes -= 64; }
static void levels_lost(struct plan *p) { levels_of(p)->variant = 5; }
static void losses_small(struct plan *p) { test_parallel_buffer(p, BUFFER_LOSS, PLAN_NONE, true)->bytes -= 8; }

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {levels_small, VARIANT_TREES + 2, "memory: the gradient of job-0 shard"},
        {levels_lost, VARIANT_TREES + 12, "job-0 shard 0"},
        {losses_small, VARIANT_TREES + 2, "memory: the loss of job-0 has 16 bytes (expected 24)"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), test_parallel_variant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees),
        cmocka_unit_test(pieces),
        cmocka_unit_test(broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
