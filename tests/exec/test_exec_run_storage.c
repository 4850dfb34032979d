/* label: medium
 * A disk that fails takes the job with it whose state was on it, and nothing else.
 *
 * The k-th transfer of a run fails, for many k. With keep_going, jobs that had no part in it end with
 * the bits of an undisturbed run; the job that failed says where, and the losses that it counts are
 * losses of minibatches before the failure. Without keep_going, the run ends and says the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "exec/run/run.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

enum { JOBS = 2, STEPS = 4, BLOCKS = 3, WIDTH = 32, VOCABULARY = 97, FAULTS = 24 };

struct faults {
    struct storage_calls calls; /* first: what storage.c knows */
    pthread_mutex_t lock;
    uint64_t count, fail_at;    /* transfers; 0: none fails */
    bool failed_writing;
};

static int reserve_nothing(struct storage_calls *calls, int file, uint64_t bytes)
{
    (void)calls, (void)file, (void)bytes;
    return ENOSPC;
}

static int64_t outcome(struct storage_calls *calls, bool write, uint64_t offset, uint64_t length,
                       int64_t result)
{
    (void)offset, (void)length;
    struct faults *const faults = (struct faults *)(void *)calls;
    pthread_mutex_lock(&faults->lock);
    const bool fails = ++faults->count == faults->fail_at;
    if (fails) faults->failed_writing = write;
    pthread_mutex_unlock(&faults->lock);
    return fails ? -EIO : result;
}

static void make_plan(bool resident, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    test_hardware(&hardware, 2, resident ? 16 << 20 : 400000, 10e9);
    hardware.backend = "host";
    hardware.threads = 1;
    hardware.storage.capacity_bytes.value = 1e9;
    hardware.storage.read_rate.value = hardware.storage.write_rate.value = 1e9;
    test_gpt_jobs(&jobs, JOBS, BLOCKS, WIDTH, VOCABULARY, STEPS);
    const struct planner_options options = {.policy = resident ? "model-parallel" : "sharded-lrtf",
                                            .activations = PLANNER_AUTO,
                                            .optimizer = PLANNER_AUTO,
                                            .storage = PLANNER_STORAGE_ALL,
                                            .shards = 4};
    *plan = (struct plan){0};
    if (planner_plan(&hardware, &jobs, &options, plan, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_true(plan_stored_bytes(plan) > 0);
}

static struct run_options options_for(struct faults *faults, bool keep_going)
{
    return (struct run_options){.poison = true,
                                .keep_going = keep_going,
                                .storage = {.folder = BINARY_DIR, .calls = &faults->calls}};
}

/* `unread`: the states could not be read for the weights, after the training. */
static void check_job(const struct run_job_result *found, const struct run_job_result *expected, bool unread)
{
    if (!found->failure) {
        assert_int_equal(found->minibatches, STEPS);
        assert_true(found->weights_fingerprint == expected->weights_fingerprint ||
                    (unread && found->weights_fingerprint == 0));
    } else {
        assert_non_null(strstr(found->failure, " the storage in '" BINARY_DIR "' at byte "));
        assert_non_null(strstr(found->failure, ": Input/output error"));
        assert_null(found->weights_path);
    }
    assert_memory_equal(found->losses, expected->losses, found->minibatches * sizeof(double));
}

static void check_faults(bool resident, uint64_t seed)
{
    struct faults faults = {.calls = {.open = storage_calls_real.open,
                                      .reserve = storage_calls_real.reserve,
                                      .outcome = outcome},
                            .lock = PTHREAD_MUTEX_INITIALIZER};
    struct run_options options = options_for(&faults, true);
    struct run_result whole = {0};
    struct trace trace = {0};
    struct plan plan;
    struct error err = {0};
    make_plan(resident, &plan);
    if (run_plan(&plan, &options, &whole, &trace, &err) != STATUS_OK) fail_msg("%s", err.text);
    trace_release(&trace);
    const uint64_t transfers = faults.count;
    uint32_t writes = 0, reads = 0;
    for (uint64_t i = 0; i < FAULTS; i++) {
        /* from the first, when initial weights are stored, to the last, when final ones are read */
        faults.fail_at = 1 + (i * transfers + random_below(seed, i, transfers)) / FAULTS % transfers;
        faults.count = 0;
        options.keep_going = i % 4 != 3;
        struct run_result result = {0};
        trace = (struct trace){0};
        const enum status status = run_plan(&plan, &options, &result, &trace, &err);
        const bool unread = strstr(result.unwritten, ": Input/output error") != NULL;
        if (options.keep_going || unread) {
            assert_int_equal(status, STATUS_OK);
            assert_true(faults.count < faults.fail_at || (result.failed == 1) != unread);
            for (uint32_t j = 0; j < JOBS; j++) check_job(&result.jobs[j], &whole.jobs[j], unread);
        } else if (faults.count >= faults.fail_at) {
            assert_int_equal(status, STATUS_IO);
            assert_non_null(strstr(err.text, ": Input/output error"));
        }
        if (faults.count >= faults.fail_at) *(faults.failed_writing ? &writes : &reads) += 1;
        err = (struct error){0};
        trace_release(&trace);
        run_result_release(&result);
    }
    print_message("%s: of %u transfers, %u reads and %u writes failed in turn\n",
                  resident ? "resident" : "spilled", (unsigned)transfers, reads, writes);
    assert_true(reads > 0 && writes > 0);
    run_result_release(&whole);
    plan_release(&plan);
}

static void test_faults(void **state)
{
    (void)state;
    const uint64_t seed = support_seed(__func__);
    check_faults(false, seed);
    check_faults(true, seed + 1);
}

static void expect_refused(const struct run_options *options, enum status expected,
                           const char *text)
{
    struct run_result result = {0};
    struct trace trace = {0};
    struct plan plan;
    struct error err = {0};
    make_plan(false, &plan);
    assert_int_equal(run_plan(&plan, options, &result, &trace, &err), expected);
    if (!strstr(err.text, text)) fail_msg("'%s' does not have '%s'", err.text, text);
    trace_release(&trace);
    run_result_release(&result);
    plan_release(&plan);
}

static void test_refusals(void **state)
{
    (void)state;
    struct faults full = {.calls = {.open = storage_calls_real.open,
                                    .reserve = reserve_nothing,
                                    .outcome = outcome},
                          .lock = PTHREAD_MUTEX_INITIALIZER};
    struct run_options options = {.storage = {.folder = NULL}};
    expect_refused(&options, STATUS_BAD_INPUT,
                   "of states on storage, and no folder for it is named (--storage DIR)");
    options.storage.folder = "/nonexistent";
    expect_refused(&options, STATUS_BAD_INPUT, "cannot open storage in '/nonexistent': No such file");
    options = options_for(&full, false);
    expect_refused(&options, STATUS_IO, "No space left on device"); /* before anything is computed */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("run_storage", tests, NULL, NULL);
}
