/* label: medium
 * Checkpoints do not show how a job was cut: those of a pipeline equal the spilled job's byte for byte, and each goes
 * on under another cut, level of shares or place of the optimizer with the same bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/size.h"
#include "tests/support/exec/support_cut_job.h"

static char top[] = "/tmp/test-pipeline-XXXXXX";

static char *folder(uint32_t number, char out[64])
{
    snprintf(out, 64, "%s/%u", top, number);
    return out;
}

static void assert_same_file(const char *a, const char *b, uint64_t step)
{
    char path[128], *text[2];
    size_t length[2];
    struct error err = {0};
    const char *const folders[] = {a, b};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/job-0/step-%010llu.safetensors", folders[i], (unsigned long long)step);
        if (file_read(path, 64 << 20, &text[i], &length[i], &err)) fail_msg("%s", err.text);
    }
    assert_int_equal(length[0], length[1]);
    assert_memory_equal(text[0], text[1], length[0]);
    free(text[0]);
    free(text[1]);
}

static void remove_top(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    assert_int_equal(system(command), 0);
}

static void copy_folder(const char *from, const char *to)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s' && cp -r '%s' '%s'", to, from, to);
    assert_int_equal(system(command), 0);
}

/* Replicas of one microbatch each, whatever they split: checkpoints are equal, and each goes on under another cut and
 * level with the same bits, or spilled. */
static void check_shared_checkpoints(uint32_t precision, bool adapts)
{
    static const struct job_cut shared[] = {
        {1, 2, 1, PIPELINE_1F1B, 2}, {2, 1, 1, PIPELINE_GPIPE, 2}, {1, 1, 1, PIPELINE_GPIPE, 2},
        {2, 1, 2, PIPELINE_1F1B, 2}};
    struct cut_job s = {.config = cut_job_configs[0], .microbatches = 2, .precision = precision};
    const uint32_t first = 200 + 10 * precision + 50 * adapts, most = adapts ? ZERO_GRADIENTS : ZERO_WEIGHTS;
    if (adapts) s.adapter = (struct job_adapter){.rank = 3, .alpha = 20, .all_linear = true};
    struct cut_job_outcome wanted, found;
    struct plan plan = {0};
    char own[64], other[64];
    for (uint32_t zero = ZERO_NOTHING; zero <= most; zero++) {
        const struct run_checkpoints checkpoints = {.folder = folder(first + zero, own), .every_steps = 1, .keep = 100,
                                                    .each = true};
        s.cut = &shared[zero];
        s.zero = zero;
        s.offload = zero > ZERO_NOTHING && !adapts;
        s.weights_below = zero == ZERO_WEIGHTS;
        cut_job_plan(&s, &plan);
        cut_job_run(&plan, &(struct run_options){.poison = true, .delay_seed = 7 + zero, .checkpoints = &checkpoints},
            zero == ZERO_NOTHING ? &wanted : &found);
        if (zero == ZERO_NOTHING) continue;
        cut_job_same(&wanted, &found, &s);
        for (uint64_t step = 1; step <= CUT_JOB_STEPS; step++) assert_same_file(folder(first, other), own, step);
    }
    for (uint32_t zero = ZERO_NOTHING; zero <= most + 1; zero++) {
        const struct run_checkpoints checkpoints = {.folder = folder(99, own), .keep = 100};
        const bool spilled = zero > most;
        copy_folder(folder(first + (spilled ? most : zero), other), own);
        s.zero = (zero + 1) % (most + 1);
        s.cut = spilled ? NULL : &shared[s.zero];
        s.offload = !spilled && zero % 2 == 0 && !adapts;
        s.weights_below = s.zero == ZERO_NOTHING && !spilled && !adapts;
        s.first = 1 + zero % 2;
        cut_job_plan(&s, &plan);
        cut_job_run(&plan, &(struct run_options){.poison = true, .checkpoints = &checkpoints}, &found);
        if (!spilled) cut_job_same(&wanted, &found, &s);
        else assert_true(fabs(found.losses[CUT_JOB_STEPS - 1] / wanted.losses[CUT_JOB_STEPS - 1] - 1) < 1e-2);
    }
}

/* Adapters of a tensor group are whole in checkpoints, and go on with its bits under another cut, split or not. */
static void check_checkpoints_of_groups(void)
{
    static const struct job_cut cuts[] = {
        {1, 1, 1, PIPELINE_1F1B, 2}, {2, 1, 1, PIPELINE_GPIPE, 2}, {2, 2, 1, PIPELINE_INTERLEAVED, 2}};
    struct cut_job s = {.config = cut_job_configs[0], .microbatches = 4, .tensor = 2,
                        .adapter = {.rank = 3, .alpha = 20, .all_linear = true}};
    struct cut_job_outcome wanted, found;
    struct plan plan = {0};
    char own[64], other[64];
    for (uint32_t i = 0; i < ARRAY_COUNT(cuts); i++) {
        const struct run_checkpoints checkpoints = {.folder = folder(350 + i, own), .every_steps = 1, .keep = 100,
                                                    .each = true};
        s.cut = &cuts[i];
        s.zero = i % 2;
        cut_job_plan(&s, &plan);
        cut_job_run(&plan, &(struct run_options){.poison = true, .delay_seed = 3 + i, .checkpoints = &checkpoints},
                    i == 0 ? &wanted : &found);
        if (i == 0) continue;
        cut_job_same(&wanted, &found, &s);
        for (uint64_t step = 1; step <= CUT_JOB_STEPS; step++) assert_same_file(folder(350, other), own, step);
    }
    for (uint32_t i = 0; i < ARRAY_COUNT(cuts); i++) {
        const struct run_checkpoints checkpoints = {.folder = folder(99, own), .keep = 100};
        copy_folder(folder(350 + i, other), own);
        s.cut = &cuts[(i + 1) % ARRAY_COUNT(cuts)];
        s.zero = 1 - i % 2;
        s.first = 1 + i % 2;
        cut_job_plan(&s, &plan);
        cut_job_run(&plan, &(struct run_options){.poison = true, .checkpoints = &checkpoints}, &found);
        cut_job_same(&wanted, &found, &s);
    }
}

/* Sums as a tree have the same bits spilled, resident and in replicas: checkpoints are equal, and each goes on under
 * the next way. */
static void check_checkpoints_of_trees(void)
{
    static const struct job_cut cuts[] = {
        {1, 1, 1, PIPELINE_GPIPE, 1}, {1, 2, 1, PIPELINE_1F1B, 2}, {2, 1, 1, PIPELINE_1F1B, 4}};
    enum { WAYS = ARRAY_COUNT(cuts) + 1 };
    struct cut_job s = {.config = cut_job_configs[0], .microbatches = 8, .clip = 0.2, .tree = true};
    struct cut_job_outcome wanted, found;
    struct plan plan = {0};
    char own[64], other[64];
    for (uint32_t i = 0; i < WAYS; i++) {
        const struct run_checkpoints checkpoints = {.folder = folder(300 + i, own), .every_steps = 1, .keep = 100,
                                                    .each = true};
        s.cut = i == 0 ? NULL : &cuts[i - 1];
        cut_job_plan(&s, &plan);
        cut_job_run(&plan, &(struct run_options){.poison = true, .delay_seed = 3 + i, .checkpoints = &checkpoints},
                    i == 0 ? &wanted : &found);
        if (i == 0) continue;
        cut_job_same(&wanted, &found, &s);
        for (uint64_t step = 1; step <= CUT_JOB_STEPS; step++) assert_same_file(folder(300, other), own, step);
    }
    for (uint32_t i = 0; i < WAYS; i++) {
        const struct run_checkpoints checkpoints = {.folder = folder(99, own), .keep = 100};
        copy_folder(folder(300 + i, other), own);
        s.cut = i + 1 == WAYS ? NULL : &cuts[i];
        s.first = 1 + i % 2;
        cut_job_plan(&s, &plan);
        cut_job_run(&plan, &(struct run_options){.poison = true, .checkpoints = &checkpoints}, &found);
        s.cut = &cuts[0]; /* for messages */
        cut_job_same(&wanted, &found, &s);
    }
}

/* Takes a checkpoint after every minibatch under each cut and by itself, and goes on from each under the next cut. */
static void test_checkpoints_do_not_show_the_cut(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(top));
    struct cut_job s = {.config = cut_job_configs[0], .microbatches = 4};
    struct cut_job_outcome wanted, found;
    struct plan plan = {0};
    char own[64], other[64];
    for (uint32_t i = 0; i <= JOB_CUTS; i++) {
        const struct run_checkpoints checkpoints = {
            .folder = folder(i, own), .every_steps = 1, .keep = 100, .each = true};
        s.cut = i == 0 ? NULL : &job_cuts[i - 1];
        cut_job_plan(&s, &plan);
        cut_job_run(&plan, &(struct run_options){.poison = true, .delay_seed = 5 + i, .checkpoints = &checkpoints},
            i == 0 ? &wanted : &found);
        if (i == 0) continue;
        cut_job_same(&wanted, &found, &s);
        for (uint64_t step = 1; step <= CUT_JOB_STEPS; step++) assert_same_file(folder(0, other), own, step);
    }
    for (uint32_t i = 0; i <= JOB_CUTS; i++) {
        const struct run_checkpoints checkpoints = {.folder = folder(99, own), .keep = 100};
        copy_folder(folder(i, other), own);
        s.cut = &job_cuts[i % JOB_CUTS];
        s.first = 1 + i % (CUT_JOB_STEPS - 1);
        cut_job_plan(&s, &plan);
        cut_job_run(&plan, &(struct run_options){.poison = true, .checkpoints = &checkpoints}, &found);
        cut_job_same(&wanted, &found, &s);
    }
    for (uint32_t i = 0; i < 2; i++) { /* replicas: whole under one cut, then from the middle under another */
        const struct run_checkpoints checkpoints = {.folder = folder(98, own), .every_steps = 1, .keep = 100,
                                                    .each = true};
        s.cut = &job_cuts_replicated[2 * i];
        s.first = i;
        cut_job_plan(&s, &plan);
        cut_job_run(&plan, &(struct run_options){.poison = true, .checkpoints = &checkpoints},
                    i == 0 ? &wanted : &found);
    }
    cut_job_same(&wanted, &found, &s);
    check_shared_checkpoints(PRECISION_BF16_WEIGHTS, false);
    check_shared_checkpoints(PRECISION_BF16, false);
    check_shared_checkpoints(PRECISION_FP32, true);
    check_checkpoints_of_groups();
    check_checkpoints_of_trees();
    remove_top();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checkpoints_do_not_show_the_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
