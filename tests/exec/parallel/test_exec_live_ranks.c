/* label: long, all rounds: slow
 * Parallel jobs dispatched live in several processes: rank 0 asks the policy, and all walk the order that it tells.
 *
 * Random workloads on random numbers of processes, with random pauses on every stream and NaN in all memory that was
 * released: each job has the bits that the plan's own order gives it in one process, and the order that was taken is a
 * plan (plan_check()). A rank that is stopped ends all after the same minibatches; a policy that fails or a rank that
 * is killed ends the others in time.
 *
 * With --keep-going, in that order and in the plan's, a job whose data a rank cannot read, at first or later on, ends
 * on all ranks without effect on the other jobs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/process/clock.h"
#include "base/random.h"
#include "base/size.h"
#include "exec/ranks/rank_mesh.h"
#include "exec/run/run.h"
#include "planner/check/plan_check.h"
#include "planner/policy/plan_executed.h"
#include "planner/policy/policy_process.h"
#include "tests/support/exec/support_live_jobs.h"
#include "tests/support/support_seed.h"

enum { READING = 2 }; /* the job that reads a file in some tests, on ranks 0 and 1 of 3 */
enum { RANKS_MOST = 4, PATIENCE_S = 60, KILL_PATIENCE_S = 8, KILLS = 6 };
#define CASES support_rounds(8, 24)

static const char *const asked[] = {"sharded-lrtf", "lrtf-emptiest", "srtf", "fifo", "random", "spill-sequential",
                                    BINARY_DIR "/policies/good.so"};

struct outcome {
    uint64_t minibatches[LIVE_JOBS], fingerprints[LIVE_JOBS], best[LIVE_JOBS];
    double losses[LIVE_JOBS][LIVE_JOBS_STEPS];
    uint64_t order_fingerprint, decisions;
    bool stopped;
    double begun_s; /* the walk */
    char failure[LIVE_JOBS][160];
};

/* How a plan is carried out. */
struct way {
    uint32_t count;     /* of processes; 1: in one */
    const char *policy; /* NULL: in the plan's order */
    uint64_t seed;      /* of the policy and of pauses */
    uint32_t stops;     /* the rank that is stopped half way; RANKS_MOST: none */
    bool reads;         /* a job reads a file, and the others go on without it ... */
    uint32_t loses;     /* ... the rank that loses it; RANKS_MOST: none ... */
    bool at_first;      /* ... before it begins, or a little later */
    double patience_s;
};

/* --- a rank ------------------------------------------------------------------------------------- */

static volatile bool stop;
static bool stops_here;
static struct outcome *told_here;
static char loses_here[96]; /* the file; "": none */

static void look(void *context, double done, double total, uint32_t job, double loss)
{
    (void)context, (void)job, (void)loss;
    if (told_here->begun_s == 0 && done > 0) told_here->begun_s = clock_s();
    if (stops_here && done > 0.3 * total) stop = true;
}

/* Checks the order that rank 0 has taken. */
static enum status judge(const struct plan *plan, const struct run_result *result, const struct trace *trace,
                         struct outcome *told, struct error *err)
{
    struct plan_executed executed;
    told->decisions = result->decisions;
    if (!trace->complete) return STATUS_OK;
    enum status status = plan_executed_make(plan, result->order, (uint32_t)result->order_count, &executed, err);
    if (status != STATUS_OK) return status;
    status = plan_check(&executed.plan, err);
    told->order_fingerprint = plan_fingerprint(&executed.plan);
    if (status == STATUS_OK && trace->plan_fingerprint != told->order_fingerprint)
        status = error_set(err, STATUS_CHECK, "the trace is of another order");
    if (status == STATUS_OK && trace->span_count != plan_operations(plan))
        status = error_set(err, STATUS_CHECK, "the trace lacks operations");
    plan_executed_release(&executed);
    return status;
}

/* Has a job read a file of the rank's own, in this process alone. */
static void give_file(struct plan *plan, const struct way *way, uint32_t rank)
{
    enum { TOKENS = 5000, WORDS = 61 };
    static char path[96];
    if (!way->reads) return;
    snprintf(path, sizeof path, "/tmp/test-live-tokens-%ld.%u", (long)getppid(), rank);
    plan->jobs.jobs[READING].data = path;
    plan->jobs.jobs[READING].data_format = DATA_NANOGPT;
    unlink(path);
    if (way->loses == rank && way->at_first) return;
    FILE *const file = fopen(path, "w");
    for (uint32_t i = 0; file && i < TOKENS; i++) fputc((int)random_below(5, i, WORDS), file), fputc(0, file);
    if (!file || fclose(file) != 0) abort();
    if (way->loses == rank) memcpy(loses_here, path, sizeof path);
}

/* Empties the file when the job that reads it has its second loss. */
static void *lose_file(void *pointer)
{
    struct run_job_result *volatile *const jobs = pointer;
    const volatile double *losses = NULL;
    while (!losses || losses[1] == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        losses = *jobs ? (*jobs)[READING].losses : NULL;
    }
    if (truncate(loses_here, 0) != 0) abort();
    return NULL;
}

static enum status run_rank(const struct plan *plan, const struct way *way, const struct ranks_options *options,
                            struct outcome *told, struct error *err)
{
    struct run_result result = {0};
    struct trace trace = {0};
    struct ranks *ranks = NULL;
    const uint32_t rank = options ? options->rank : 0;
    struct run_options of_run = {.poison = true, .delay_seed = way->seed ? way->seed + rank : 0,
                                 .live_seed = way->seed >> 1, .stall_s = PATIENCE_S, .record_spans = rank == 0,
                                 .storage.folder = P_tmpdir, .stop = &stop, .on_progress = look,
                                 .keep_going = way->reads, .live_elsewhere = way->policy && rank > 0};
    pthread_t thread;
    told_here = told;
    if (loses_here[0] && pthread_create(&thread, NULL, lose_file, &result.jobs) != 0) abort();
    stops_here = way->stops == rank;
    enum status status = options ? ranks_join(options, &ranks, err) : STATUS_OK;
    if (status == STATUS_OK && way->policy && rank == 0)
        status = policy_process_open(way->policy, 3, &of_run.live, err);
    of_run.ranks = ranks;
    if (status == STATUS_OK) status = run_plan(plan, &of_run, &result, &trace, err);
    policy_process_close(of_run.live);
    for (uint32_t j = 0; result.jobs && j < plan->jobs.count; j++) {
        const struct run_job_result *const job = &result.jobs[j];
        told->minibatches[j] = job->minibatches;
        told->fingerprints[j] = job->weights_fingerprint;
        told->best[j] = job->kept_fingerprint;
        memcpy(told->losses[j], job->losses, job->minibatches * sizeof(double));
        snprintf(told->failure[j], sizeof told->failure[j], "%s", job->failure ? job->failure : "");
    }
    told->stopped = result.stopped;
    if (status == STATUS_OK && of_run.live) status = judge(plan, &result, &trace, told, err);
    ranks_destroy(ranks);
    trace_release(&trace);
    run_result_release(&result);
    return status;
}

/* --- all ranks ---------------------------------------------------------------------------------- */

struct ranks_run {
    pid_t children[RANKS_MOST];
    struct outcome *told; /* by rank, shared with them */
    int codes[RANKS_MOST];
    char texts[RANKS_MOST][256];
};

/* Starts all ranks as children, because threads of kernels do not survive a fork. Errors go to files. */
static void begin(const struct plan *plan, const struct way *way, struct ranks_run *run)
{
    char meet[64];
    *run = (struct ranks_run){.codes = {0}};
    run->told = mmap(NULL, RANKS_MOST * sizeof *run->told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(run->told != MAP_FAILED);
    snprintf(meet, sizeof meet, "/tmp/test-live-ranks-%ld.meet", (long)getpid());
    struct ranks_options options = {.count = way->count, .meet_file = meet, .patience_s = way->patience_s,
                                    .plan = plan_fingerprint(plan), .machine = "test"};
    fflush(NULL);
    for (uint32_t r = 0; r < way->count; r++) {
        run->children[r] = fork();
        assert_true(run->children[r] >= 0);
        if (run->children[r] > 0) continue;
        struct error err = {0};
        char path[96];
        options.rank = r;
        give_file((struct plan *)(uintptr_t)plan, way, r);
        const int code = (int)run_rank(plan, way, way->count > 1 ? &options : NULL, &run->told[r], &err);
        snprintf(path, sizeof path, "/tmp/test-live-ranks-%ld.%u", (long)getppid(), r);
        FILE *const file = fopen(path, "w");
        if (file) fputs(err.text, file), fclose(file);
        if (way->reads) unlink(plan->jobs.jobs[READING].data);
        _exit(code);
    }
}

/* Waits for a rank: its exit code, or minus its signal, and its error. */
static void await_rank(struct ranks_run *run, uint32_t rank)
{
    int ended = 0;
    char path[96];
    assert_int_equal(waitpid(run->children[rank], &ended, 0), run->children[rank]);
    run->codes[rank] = WIFSIGNALED(ended) ? -WTERMSIG(ended) : WEXITSTATUS(ended);
    snprintf(path, sizeof path, "/tmp/test-live-ranks-%ld.%u", (long)getpid(), rank);
    FILE *const file = fopen(path, "r");
    if (!file) return;
    (void)!fgets(run->texts[rank], sizeof run->texts[rank], file);
    fclose(file);
    unlink(path);
}

static void end(struct ranks_run *run)
{
    munmap(run->told, RANKS_MOST * sizeof *run->told);
}

/* Carries the plan out. All ranks must end well, with the same losses. */
static void carry_out(const struct plan *plan, const struct way *way, struct outcome *out)
{
    struct ranks_run run;
    begin(plan, way, &run);
    for (uint32_t r = 0; r < way->count; r++) await_rank(&run, r);
    for (uint32_t r = 0; r < way->count; r++)
        if (run.codes[r] != 0) fail_msg("rank %u of %u: %d, %s", r, way->count, run.codes[r], run.texts[r]);
    for (uint32_t r = 1; r < way->count; r++) {
        assert_memory_equal(run.told[r].minibatches, run.told[0].minibatches, sizeof run.told[0].minibatches);
        assert_memory_equal(run.told[r].losses, run.told[0].losses, sizeof run.told[0].losses);
    }
    *out = run.told[0];
    end(&run);
}

/* --- tests -------------------------------------------------------------------------------------- */

/* Checks that the first losses of both have the same bits; weights too if they end at one minibatch. */
static void assert_same(const struct plan *plan, const struct outcome *a, const struct outcome *b, const char *what)
{
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const uint64_t common = a->minibatches[j] < b->minibatches[j] ? a->minibatches[j] : b->minibatches[j];
        if (memcmp(a->losses[j], b->losses[j], common * sizeof(double)) != 0)
            fail_msg("%s: job %u: other losses", what, j);
        if (a->minibatches[j] != b->minibatches[j]) continue;
        if (a->fingerprints[j] != b->fingerprints[j] || a->best[j] != b->best[j])
            fail_msg("%s: job %u: other weights", what, j);
    }
}

static void test_random_workloads(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("live jobs in processes");
    for (uint32_t n = 0; n < CASES; n++) {
        const uint64_t key = random_u64(seed, n);
        struct live_jobs jobs = live_jobs_draw(key), fixed = jobs;
        struct plan plan, fixed_plan;
        struct outcome wanted, live;
        char what[160];
        const struct way one = {.count = 1, .stops = RANKS_MOST};
        const struct way several = {.count = 2 + (uint32_t)random_below(key, 2, RANKS_MOST - 1),
                                    .policy = asked[random_below(key, 1, ARRAY_COUNT(asked))],
                                    .seed = n % 3 ? key | 1 : 0, .stops = RANKS_MOST,
                                    .patience_s = PATIENCE_S};
        fixed.fixed = true;
        live_jobs_plan(&jobs, NULL, &plan);
        live_jobs_plan(&fixed, NULL, &fixed_plan);
        snprintf(what, sizeof what, "workload %u, %u jobs, way %u first, %.40s, %u processes", n, jobs.count,
                 jobs.jobs[0].way, several.policy, several.count);
        print_message("%s\n", what);
        carry_out(&fixed_plan, &one, &wanted);
        carry_out(&plan, &several, &live);
        assert_same(&plan, &wanted, &live, what);
        assert_memory_equal(live.minibatches, wanted.minibatches, sizeof wanted.minibatches);
        assert_true(live.order_fingerprint != 0 && live.decisions > 0);
        plan_release(&plan);
        plan_release(&fixed_plan);
    }
}

/* Three jobs, of which the first and the last are on devices of all ranks. */
static const struct live_jobs shared = {
    .count = 3, .jobs = {{.way = 1, .first_device = 2}, {.way = 6, .first_device = 4}, {.way = 7, .first_device = 0}}};

static void test_orders_differ(void **state)
{
    (void)state;
    struct plan plan;
    struct outcome a, b;
    struct way way = {.count = 3, .policy = "spill-sequential", .seed = 6, .stops = RANKS_MOST,
                      .patience_s = PATIENCE_S};
    live_jobs_plan(&shared, NULL, &plan);
    carry_out(&plan, &way, &a);
    way.policy = "random";
    carry_out(&plan, &way, &b);
    assert_true(a.order_fingerprint != b.order_fingerprint);
    assert_same(&plan, &a, &b, "another order");
    plan_release(&plan);
}

/* Any rank may be stopped; all end after the same minibatches, with the weights of a shorter run. */
static void test_stops(void **state)
{
    (void)state;
    struct plan plan;
    struct outcome whole, half;
    struct way way = {.count = 1, .stops = RANKS_MOST, .patience_s = PATIENCE_S};
    live_jobs_plan(&shared, NULL, &plan);
    carry_out(&plan, &way, &whole);
    for (uint32_t rank = 0; rank < 3; rank++) {
        way = (struct way){.count = 3, .policy = "random", .seed = 100 + rank, .stops = rank,
                           .patience_s = PATIENCE_S};
        carry_out(&plan, &way, &half);
        assert_true(half.stopped);
        assert_same(&plan, &whole, &half, "stopped");
    }
    plan_release(&plan);
}

/* A job that fails at one rank ends everywhere, and the other jobs go on. */
static void test_one_job_fails(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("failing jobs");
    struct plan plan;
    struct outcome whole, out;
    const struct way one = {.count = 1, .stops = RANKS_MOST, .reads = true, .loses = RANKS_MOST};
    live_jobs_plan(&shared, NULL, &plan);
    carry_out(&plan, &one, &whole);
    for (uint32_t n = 0; n < 12; n++) {
        const struct way way = {.count = 3, .policy = n % 2 ? "random" : NULL, .seed = random_u64(seed, n) | 1,
                                .stops = RANKS_MOST, .reads = true, .loses = n < 6 ? n / 2 % 2 : n / 2 % 3,
                                .at_first = n >= 6,
                                .patience_s = PATIENCE_S};
        carry_out(&plan, &way, &out);
        assert_same(&plan, &whole, &out, "beside a job that failed");
        for (uint32_t j = 0; j < plan.jobs.count; j++) {
            const bool fails = j == READING;
            if ((out.failure[j][0] != 0) != fails || (out.minibatches[j] < whole.minibatches[j]) != fails)
                fail_msg("case %u: job %u ended after %u minibatches: %s", n, j, (unsigned)out.minibatches[j],
                         out.failure[j]);
        }
        if (!strstr(out.failure[READING], "test-live-tokens-")) fail_msg("case %u: %s", n, out.failure[READING]);
        assert_true(way.at_first ? out.minibatches[READING] == 0 : out.minibatches[READING] >= 2);
    }
    plan_release(&plan);
}

/* A policy that fails ends the run like a stop; rank 0 says why. */
static void test_broken_policies(void **state)
{
    (void)state;
    static const struct {
        const char *name, *says;
    } broken[] = {{"absent_job", "returned job 1000 (there are 3, from 0)"},
                  {"waits", "waits although nothing runs that could end"},
                  {"crashes", "its process was ended by SIGABRT"}};
    struct plan plan;
    live_jobs_plan(&shared, NULL, &plan);
    for (size_t b = 0; b < ARRAY_COUNT(broken); b++) {
        char path[256];
        struct ranks_run run;
        snprintf(path, sizeof path, BINARY_DIR "/policies/%s.so", broken[b].name);
        const struct way way = {.count = 3, .policy = path, .seed = 9, .stops = RANKS_MOST,
                                .patience_s = PATIENCE_S};
        begin(&plan, &way, &run);
        for (uint32_t r = 0; r < way.count; r++) await_rank(&run, r);
        assert_int_equal(run.codes[0], STATUS_BAD_INPUT);
        if (!strstr(run.texts[0], broken[b].says)) fail_msg("%s: %s", broken[b].name, run.texts[0]);
        for (uint32_t r = 1; r < way.count; r++) assert_true(run.codes[r] > 0);
        end(&run);
    }
    plan_release(&plan);
}

/* A rank is killed at a random time: the others end within ten seconds, and name it. */
static void test_kills(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("kills of live jobs");
    struct plan plan;
    live_jobs_plan(&shared, NULL, &plan);
    for (uint32_t n = 0; n < KILLS; n++) {
        struct ranks_run run;
        const struct way way = {.count = 3, .policy = asked[n % ARRAY_COUNT(asked)],
                                .seed = random_u64(seed, 2 * n) | 1, .stops = RANKS_MOST,
                                .patience_s = KILL_PATIENCE_S};
        const uint32_t victim = n % way.count;
        char name[32];
        begin(&plan, &way, &run);
        for (volatile double *const begun_s = &run.told[victim].begun_s; *begun_s == 0;)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        nanosleep(&(struct timespec){.tv_nsec = (long)random_below(seed, 2 * n + 1, 100) * 1000000}, NULL);
        assert_int_equal(kill(run.children[victim], SIGKILL), 0);
        const double killed_s = clock_s();
        for (uint32_t r = 0; r < way.count; r++) await_rank(&run, r);
        const double ended_s = clock_s() - killed_s;
        print_message("rank %u killed, the others ended after %.0f ms\n", victim, 1e3 * ended_s);
        snprintf(name, sizeof name, "rank %u", victim);
        for (uint32_t r = 0; r < way.count && run.codes[victim] == -SIGKILL; r++) {
            if (r == victim) continue;
            assert_int_equal(run.codes[r], STATUS_DEVICE);
            if (!strstr(run.texts[r], name)) fail_msg("rank %u: %s", r, run.texts[r]);
        }
        assert_true(ended_s < 10);
        end(&run);
    }
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_workloads), cmocka_unit_test(test_orders_differ), cmocka_unit_test(test_stops),
        cmocka_unit_test(test_one_job_fails),
        cmocka_unit_test(test_broken_policies),  cmocka_unit_test(test_kills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
