/* label: medium
 * Every family in the common cuts, against one device.
 *
 * Tensor groups and replicas that split everything have its losses to a relative 1e-6, and their weights went its way
 * to a thousandth of each tensor's way; pipelines have its bits. With and without clipping. Random cuts:
 * test_exec_groups.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "tests/support/exec/support_checkpoints.h"
#include "tests/support/exec/support_cut_job.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_folder.h"

enum { STEPS = 4 };

struct cut {
    const char *name;
    struct parallel parallel;
    bool same_bits;
};

static const struct cut cuts[] = {
    {"tp=2", {.tensor = 2, .pipeline = 1, .data = 1, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_1F1B}, false},
    {"tp=2,sp",
     {.tensor = 2, .pipeline = 1, .data = 1, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_1F1B, .sequence = true},
     false},
    {"pp=3", {.tensor = 1, .pipeline = 3, .data = 1, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_1F1B}, true},
    {"tp=2,pp=2", {.tensor = 2, .pipeline = 2, .data = 1, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_1F1B},
     false},
    {"dp=2,zero=3",
     {.tensor = 1, .pipeline = 1, .data = 2, .chunks = 3, .prefetch = 1, .zero = ZERO_WEIGHTS,
      .schedule = PIPELINE_1F1B}, false},
};

/* Carries a job out, with checkpoints of all steps in a new `folder`. */
static void carry_out(const struct cut_job *s, char folder[SUPPORT_FOLDER_BYTES], struct cut_job_outcome *out)
{
    struct plan plan = {0};
    support_folder_make(folder);
    const struct run_checkpoints checkpoints = {.folder = folder, .every_steps = 1, .keep = STEPS, .each = true};
    cut_job_plan(s, &plan);
    cut_job_run(&plan, &(struct run_options){.poison = true, .checkpoints = &checkpoints}, out);
}

static void compare(const struct cut *cut, const struct cut_job *s, const struct cut_job_outcome *wanted,
                    const char *folder, const struct job *job)
{
    struct cut_job_outcome found;
    char own[SUPPORT_FOLDER_BYTES], what[128];
    struct cut_job with = *s;
    with.parallel = &cut->parallel;
    snprintf(what, sizeof what, "%.40s..., clip %g, %s", s->config, s->clip, cut->name);
    carry_out(&with, own, &found);
    assert_int_equal(found.minibatches, STEPS);
    if (cut->same_bits) cut_job_same(wanted, &found, &with);
    for (uint32_t i = 0; i < STEPS; i++)
        if (!(fabs(found.losses[i] / wanted->losses[i] - 1) <= 1e-6))
            fail_msg("%s: loss %u is %.9g (expected %.9g)", what, i, found.losses[i], wanted->losses[i]);
    support_checkpoints_compare(&job->network, folder, own, STEPS, what);
    support_checkpoints_compare_ways(&job->network, folder, own, 1, STEPS, 1e-3, what);
    support_folder_remove(own);
}

static void check_family(const char *config)
{
    struct job_set jobs;
    uint64_t fingerprints[2];
    test_network_jobs(&jobs, 1, config, STEPS);
    for (uint32_t clips = 0; clips < (cut_job_clips(config) ? 2 : 1); clips++) {
        const struct cut_job s = {.config = config, .microbatches = 4, .steps = STEPS, .rate = 0.2,
                                  .clip = clips ? 0.5 : 0,
                                  .optimizer = OPTIMIZER_MOMENTUM};
        struct cut_job_outcome wanted;
        char folder[SUPPORT_FOLDER_BYTES];
        carry_out(&s, folder, &wanted);
        fingerprints[clips] = wanted.fingerprint;
        if (clips && fingerprints[0] == fingerprints[1]) fail_msg("%.40s...: nothing is clipped", config);
        for (size_t c = 0; c < ARRAY_COUNT(cuts); c++)
            if (!cuts[c].parallel.sequence || parallel_divides_tokens(&jobs.jobs[0], cuts[c].parallel.tensor))
                compare(&cuts[c], &s, &wanted, folder, &jobs.jobs[0]);
        support_folder_remove(folder);
    }
    job_set_release(&jobs);
}

static void test_families(void **state)
{
    (void)state;
    for (size_t c = 0; c < CUT_JOB_CONFIGS; c++) check_family(cut_job_configs[c]);
    for (size_t c = 0; c < CUT_JOB_FAMILIES; c++) check_family(cut_job_families[c]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_families)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
