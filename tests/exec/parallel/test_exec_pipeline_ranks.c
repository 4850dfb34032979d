/* label: medium
 * Pipelines and replicas over several processes have the bits of one process: random cuts and numbers of processes, with
 * random pauses on every stream and NaN in all memory that was released.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "base/size.h"
#include "exec/ranks/rank_mesh.h"
#include "tests/support/exec/support_cut_job.h"
#include "tests/support/support_seed.h"

enum { RANKS_MOST = 4, RANK_CASES = 4, RANK_PATIENCE_S = 60 };

/* Carries the plan out as one of several processes. Returns 0 unless the run failed, with the reason in *err. */
static int run_rank(const struct plan *plan, const struct ranks_options *options, uint64_t delay_seed,
                    struct cut_job_outcome *out, struct error *err)
{
    struct run_result result = {0};
    struct trace trace = {0};
    struct ranks *ranks = NULL;
    enum status status = ranks_join(options, &ranks, err);
    const struct run_options of_run = {.ranks = ranks, .poison = true, .delay_seed = delay_seed, .stall_s = RANK_PATIENCE_S};
    if (status == STATUS_OK) status = run_plan(plan, &of_run, &result, &trace, err);
    if (status == STATUS_OK) {
        out->minibatches = result.jobs[0].minibatches;
        out->fingerprint = result.jobs[0].weights_fingerprint;
        memcpy(out->losses, result.jobs[0].losses, out->minibatches * sizeof *out->losses);
    }
    ranks_destroy(ranks);
    trace_release(&trace);
    run_result_release(&result);
    return (int)status;
}

/* Runs rank 0 here and the others in children. All must end well, and each must know all losses. */
static void run_ranks(const struct plan *plan, uint32_t count, uint64_t seed, struct cut_job_outcome *found)
{
    char meet[64];
    struct error err = {0};
    pid_t children[RANKS_MOST] = {0};
    struct cut_job_outcome *const theirs = mmap(NULL, RANKS_MOST * sizeof *theirs, PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(theirs != MAP_FAILED);
    snprintf(meet, sizeof meet, "/tmp/test-pipeline-%ld.meet", (long)getpid());
    struct ranks_options options = {.count = count, .meet_file = meet, .patience_s = RANK_PATIENCE_S,
                                    .plan = plan_fingerprint(plan), .machine = "test"};
    for (uint32_t r = 1; r < count; r++) {
        children[r] = fork();
        assert_true(children[r] >= 0);
        if (children[r] > 0) continue;
        options.rank = r;
        const int code = run_rank(plan, &options, seed > 0 ? seed + r : 0, &theirs[r], &err);
        if (code) fprintf(stderr, "rank %u: %s\n", r, err.text);
        _exit(code);
    }
    *found = (struct cut_job_outcome){.evaluation_count = 0};
    const int code = run_rank(plan, &options, seed, found, &err);
    for (uint32_t r = 1; r < count; r++) {
        int ended = 0;
        assert_int_equal(waitpid(children[r], &ended, 0), children[r]);
        if (code == 0) assert_int_equal(ended, 0);
        if (code == 0) assert_memory_equal(theirs[r].losses, found->losses, sizeof found->losses);
    }
    munmap(theirs, RANKS_MOST * sizeof *theirs);
    if (code) fail_msg("%s", err.text);
}

static void test_bits_of_several_processes(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("processes");
    for (size_t c = 0; c < CUT_JOB_CONFIGS; c++)
        for (uint64_t n = 0; n < RANK_CASES; n++) {
            struct cut_job s = cut_job_draw(seed, c * RANK_CASES + n, cut_job_configs[c]);
            struct cut_job_outcome wanted, found;
            struct plan plan = {0};
            if (n % 2 == 1) {
                s.cut = &job_cuts_replicated[random_below(seed, 1000 + n, JOB_CUTS_REPLICATED)];
                s.microbatches = 8;
            }
            s.clip = 0;
            s.every = 0;
            s.offload = s.weights_below = s.swaps = s.chooses = false;
            s.devices = s.cut->pipeline * s.cut->data;
            cut_job_plan(&s, &plan);
            cut_job_run(&plan, &(struct run_options){.poison = true}, &wanted);
            if (s.devices < 2) continue;
            cut_job_plan(&s, &plan);
            const uint32_t most = s.devices < RANKS_MOST ? s.devices : RANKS_MOST;
            run_ranks(&plan, 2 + (uint32_t)random_below(seed, 2000 + n, most - 1), n % 3 == 0 ? 0 : seed + n, &found);
            cut_job_same(&wanted, &found, &s);
            plan_release(&plan);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_of_several_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
