/* label: long, all rounds: slow
 * Parallel jobs dispatched live: a policy decides which job's minibatch is next, and each job has the bits that the
 * plan's own order gives it, within memory.
 *
 * Pipelines, replicas that split states, tensor groups, slices of tokens, asynchronous pipelines and states below, also
 * on devices that jobs share in part; with random pauses on every stream and NaN in all memory that was released. The
 * judge of the order is plan_check(): the order that was taken must be a plan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "exec/run/run.h"
#include "planner/check/plan_check.h"
#include "planner/policy/plan_executed.h"
#include "planner/policy/policy_load.h"
#include "planner/policy/policy_process.h"
#include "sim/sim.h"
#include "tests/support/exec/support_live_jobs.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

enum { JOBS = LIVE_JOBS, STEPS = LIVE_JOBS_STEPS, DEVICES = LIVE_JOBS_DEVICES };

/* --- running them ----------------------------------------------------------------------------- */

struct outcome {
    uint64_t minibatches[JOBS], fingerprints[JOBS], best[JOBS], skipped[JOBS];
    double losses[JOBS][STEPS];
    uint64_t order_fingerprint; /* of the order that was taken; 0: it is not complete */
    bool stopped;
    char failure[JOBS][160];
};

static void check_order(const struct plan *plan, const struct run_result *result, const struct trace *trace,
                        struct outcome *out)
{
    struct plan_executed executed;
    struct error err = {0};
    assert_int_equal(plan_executed_make(plan, result->order, (uint32_t)result->order_count, &executed, &err),
                     STATUS_OK);
    if (plan_check(&executed.plan, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(plan_operations(&executed.plan), plan_operations(plan));
    assert_int_equal(trace->span_count, plan_operations(plan));
    out->order_fingerprint = plan_fingerprint(&executed.plan);
    assert_int_equal(trace->plan_fingerprint, out->order_fingerprint);
    plan_executed_release(&executed);
}

/* `policy` NULL: the plan's order. Returns how the run ended, with its message in `err`. */
static enum status try_run(const struct plan *plan, const char *policy, const struct run_options *given,
                           struct outcome *out, struct error *err)
{
    struct run_result result = {0};
    struct trace trace = {0};
    struct run_options options = *given;
    options.record_spans = options.poison = true;
    *out = (struct outcome){.stopped = false};
    if (policy && policy_process_open(policy, 3, &options.live, err) != STATUS_OK) return err->status;
    const enum status status = run_plan(plan, &options, &result, &trace, err);
    policy_process_close(options.live);
    for (uint32_t j = 0; result.jobs && j < plan->jobs.count; j++) {
        const struct run_job_result *const job = &result.jobs[j];
        out->minibatches[j] = job->minibatches;
        out->fingerprints[j] = job->weights_fingerprint;
        out->best[j] = job->kept_fingerprint;
        out->skipped[j] = job->skipped;
        memcpy(out->losses[j], job->losses, job->minibatches * sizeof(double));
        snprintf(out->failure[j], sizeof out->failure[j], "%s", job->failure ? job->failure : "");
    }
    out->stopped = result.stopped;
    if (status == STATUS_OK) {
        struct error wrong = {0};
        if (trace_check(&trace, &wrong) != STATUS_OK) fail_msg("%s", wrong.text);
        for (uint32_t d = 0; d < plan->hardware.device_count; d++)
            assert_true(trace.places[1 + d].peak_bytes <= plan_device_bytes(plan, d));
        if (policy && trace.complete) check_order(plan, &result, &trace, out);
    }
    trace_release(&trace);
    run_result_release(&result);
    return status;
}

static void run(const struct plan *plan, const char *policy, const struct run_options *options, struct outcome *out)
{
    struct error err = {0};
    if (try_run(plan, policy, options, out, &err) != STATUS_OK) fail_msg("%s", err.text);
}

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

/* --- one result ------------------------------------------------------------------------------- */

static const char *const asked[] = {"sharded-lrtf", "lrtf-emptiest", "srtf", "fifo", "random", "spill-sequential",
                                    BINARY_DIR "/policies/good.so"};

static void simulate(const struct plan *plan, const char *policy)
{
    struct policy_handle handle;
    struct error err = {0};
    double makespan_s = 0;
    assert_int_equal(policy_open(policy, &handle, &err), STATUS_OK);
    for (uint32_t twice = 0; twice < 2; twice++) {
        struct sim_result result = {0};
        struct trace trace = {0};
        const struct plan_dispatch_options live = {.policy = handle.policy, .seed = 4};
        const struct sim_options options = {.live = &live, .record_spans = true};
        if (sim_run(plan, &options, &result, &trace, &err) != STATUS_OK) fail_msg("%s", err.text);
        if (trace_check(&trace, &err) != STATUS_OK) fail_msg("%s", err.text);
        assert_int_equal(result.operations, plan_operations(plan));
        for (uint32_t d = 0; d < DEVICES; d++)
            assert_true(trace.places[1 + d].peak_bytes <= plan_device_bytes(plan, d));
        assert_true(result.makespan_s >= plan->lower_bound_s);
        if (twice) assert_memory_equal(&makespan_s, &result.makespan_s, sizeof makespan_s);
        makespan_s = result.makespan_s;
        trace_release(&trace);
        sim_result_release(&result);
    }
    policy_close(&handle);
}

static void test_random_workloads(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("live parallel jobs");
    for (uint32_t n = 0; n < support_rounds(12, 40); n++) {
        const uint64_t key = random_u64(seed, n);
        struct live_jobs setting = live_jobs_draw(key), fixed = setting;
        const char *const policy = asked[random_below(key, 1, ARRAY_COUNT(asked))];
        struct plan plan, fixed_plan;
        struct outcome wanted, own, live;
        char what[120];
        fixed.fixed = true;
        live_jobs_plan(&setting, NULL, &plan);
        live_jobs_plan(&fixed, NULL, &fixed_plan);
        snprintf(what, sizeof what, "workload %u, %u jobs, way %u first, %s", n, setting.count, setting.jobs[0].way,
                 policy);
        run(&fixed_plan, NULL, &(struct run_options){.live_seed = 0}, &wanted);
        run(&plan, NULL, &(struct run_options){.live_seed = 0}, &own);
        assert_same(&plan, &wanted, &own, what);
        run(&plan, policy, &(struct run_options){.delay_seed = n % 3 ? key | 1 : 0, .live_seed = key >> 1}, &live);
        assert_same(&plan, &wanted, &live, what);
        for (uint32_t j = 0; j < plan.jobs.count; j++) assert_int_equal(live.minibatches[j], wanted.minibatches[j]);
        assert_true(live.order_fingerprint != 0);
        if (policy[0] != '/') simulate(&plan, policy);
        plan_release(&plan);
        plan_release(&fixed_plan);
    }
}

/* Three jobs on the same devices: the orders differ; if all were equal, nothing would have been decided. */
static const struct live_jobs shared = {.count = 3, .jobs = {{.way = 0}, {.way = 6}, {.way = 7}}};

static void test_policies_decide(void **state)
{
    (void)state;
    struct plan plan;
    struct outcome a, b;
    live_jobs_plan(&shared, NULL, &plan);
    run(&plan, "spill-sequential", &(struct run_options){.live_seed = 3}, &a);
    run(&plan, "random", &(struct run_options){.live_seed = 3}, &b);
    assert_true(a.order_fingerprint != b.order_fingerprint);
    plan_release(&plan);
}

static void test_broken_policies_stop_the_run(void **state)
{
    (void)state;
    static const struct {
        const char *name, *says;
    } broken[] = {
        {"absent_job", "returned job 1000 (there are 3, from 0)"},
        {"absent_device", "returned device 6 (there are 6, from 0)"},
        {"unready_job", "which runs or was chosen ahead"},
        {"waits", "waits although nothing runs that could end"},
        {"crashes", "its process was ended by SIGABRT"},
    };
    struct plan plan;
    struct outcome whole, out;
    live_jobs_plan(&shared, NULL, &plan);
    run(&plan, NULL, &(struct run_options){.live_seed = 0}, &whole);
    for (size_t b = 0; b < ARRAY_COUNT(broken); b++) {
        char path[256];
        struct error err = {0};
        uint64_t left = 0;
        snprintf(path, sizeof path, BINARY_DIR "/policies/%s.so", broken[b].name);
        assert_int_equal(try_run(&plan, path, &(struct run_options){.live_seed = 0}, &out, &err), STATUS_BAD_INPUT);
        if (!strstr(err.text, broken[b].says)) fail_msg("%s: %s", broken[b].name, err.text);
        assert_same(&plan, &whole, &out, broken[b].name);
        for (uint32_t j = 0; j < plan.jobs.count; j++) left += plan.jobs.jobs[j].minibatches - out.minibatches[j];
        assert_true(left > 0);
    }
    plan_release(&plan);
}

/* --- stopping, checkpoints, failures ------------------------------------------------------------ */

static volatile bool stop;

static void stop_half_way(void *context, double done, double total, uint32_t job, double loss)
{
    (void)context, (void)job, (void)loss;
    if (done > 0.3 * total) stop = true;
}

/* Goes on from the checkpoints, where all jobs may and have something left. */
static bool go_on(const struct live_jobs *setting, const struct plan *plan, const struct run_checkpoints *checkpoints,
                  const struct outcome *whole, const struct outcome *half)
{
    struct plan rest;
    struct outcome other;
    for (uint32_t j = 0; j < setting->count; j++)
        if (setting->jobs[j].way >= LIVE_JOBS_SYNCHRONOUS || half->minibatches[j] == whole->minibatches[j])
            return false;
    live_jobs_plan(setting, half->minibatches, &rest);
    run(&rest, "random", &(struct run_options){.checkpoints = checkpoints}, &other);
    assert_same(plan, whole, &other, "gone on");
    for (uint32_t j = 0; j < setting->count; j++) assert_int_equal(other.minibatches[j], whole->minibatches[j]);
    plan_release(&rest);
    return true;
}

/* A stopped run has the weights of a shorter one, and goes on with the same bits. */
static void test_stopped_and_gone_on(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("live parallel stops");
    uint32_t stopped = 0, gone_on = 0;
    for (uint32_t n = 0; n < 16; n++) {
        const uint64_t key = random_u64(seed, n);
        struct live_jobs setting = live_jobs_draw(key);
        for (uint32_t j = 0; j < setting.count; j++)
            setting.jobs[j].way %= n % 2 ? LIVE_JOBS_SYNCHRONOUS : LIVE_JOBS_WITH_CHECKPOINTS;
        for (uint32_t j = 0; j < setting.count; j++) setting.jobs[j].first_device = 0;
        char folder[SUPPORT_FOLDER_BYTES];
        support_folder_make(folder);
        struct plan plan;
        struct outcome whole, half;
        const struct run_checkpoints checkpoints = {.folder = folder, .every_steps = 3, .keep = 2};
        for (uint32_t j = 0; j < setting.count; j++) setting.jobs[j].clip = 0;
        live_jobs_plan(&setting, NULL, &plan);
        run(&plan, NULL, &(struct run_options){.live_seed = 0}, &whole);
        stop = false;
        run(&plan, asked[n % ARRAY_COUNT(asked)],
            &(struct run_options){.delay_seed = key | 1, .checkpoints = &checkpoints, .stop = &stop,
                                  .on_progress = stop_half_way, .live_seed = key >> 1}, &half);
        assert_same(&plan, &whole, &half, "stopped");
        stopped += half.stopped;
        gone_on += go_on(&setting, &plan, &checkpoints, &whole, &half);
        plan_release(&plan);
        support_folder_remove(folder);
    }
    print_message("%u of 16 stopped early, %u went on\n", stopped, gone_on);
    assert_true(stopped > 0 && gone_on > 0);
}

static void stop_at_loss(void *context, double done, double total, uint32_t job, double loss)
{
    (void)done, (void)total, (void)job, (void)loss;
    uint32_t *const losses_left = context;
    if (--*losses_left == 0) stop = true;
}

/* A run that stops while the best evaluation's checkpoint is made leaves the weights of that evaluation in it, though
 * those of the next minibatches come from the devices meanwhile. */
static void test_stopped_after_an_evaluation(void **state)
{
    (void)state;
    static const struct live_jobs one = {.count = 1, .jobs = {{.way = 3, .evaluated = true}}};
    uint32_t gone_on = 0;
    struct plan plan;
    struct outcome whole, half;
    live_jobs_plan(&one, NULL, &plan);
    run(&plan, NULL, &(struct run_options){.live_seed = 0}, &whole);
    for (uint64_t seed = 1; seed <= 24; seed++) {
        char folder[SUPPORT_FOLDER_BYTES];
        uint32_t losses_left = 1 + (uint32_t)seed % 3; /* what is under way goes on */
        support_folder_make(folder);
        const struct run_checkpoints checkpoints = {.folder = folder, .every_steps = 3, .keep = 2};
        stop = false;
        run(&plan, "random", &(struct run_options){.delay_seed = seed, .checkpoints = &checkpoints, .stop = &stop,
                                                   .on_progress = stop_at_loss, .context = &losses_left}, &half);
        gone_on += go_on(&one, &plan, &checkpoints, &whole, &half);
        support_folder_remove(folder);
    }
    plan_release(&plan);
    print_message("%u of 24 went on\n", gone_on);
    assert_true(gone_on > 0);
}

/* A job whose loss is not finite ends, or leaves its updates out, as in the plan's order and without effect on the
 * others. */
static void test_one_job_fails(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < LIVE_JOBS_WAYS + LIVE_JOBS_SYNCHRONOUS; n++) {
        const bool skips = n >= LIVE_JOBS_WAYS;
        const double clip = skips ? 0.5 : 0;
        const struct live_jobs setting = {
            .count = 3,
            .jobs = {{.way = 0, .clip = clip}, {.way = n % LIVE_JOBS_WAYS, .clip = clip}, {.way = 6, .clip = clip}}};
        const struct run_options options = {.keep_going = true, .on_nan = skips ? RUN_NAN_SKIP : RUN_NAN_STOP};
        struct run_options delayed = options;
        struct plan plan;
        struct outcome whole, wanted, out;
        delayed.delay_seed = n + 1;
        live_jobs_plan(&setting, NULL, &plan);
        run(&plan, NULL, &options, &whole);
        plan.jobs.jobs[1].optimizer.learning_rate = 1e30;
        run(&plan, NULL, &options, &wanted);
        run(&plan, "sharded-lrtf", &delayed, &out);
        if (skips) assert_int_equal(out.skipped[1], wanted.skipped[1]);
        else assert_non_null(strstr(out.failure[1], "minibatch"));
        if (skips) assert_true(out.skipped[1] > 0);
        else assert_true(out.minibatches[1] < plan.jobs.jobs[1].minibatches);
        if (n % LIVE_JOBS_WAYS < LIVE_JOBS_SYNCHRONOUS) assert_int_equal(out.minibatches[1], wanted.minibatches[1]);
        if (n % LIVE_JOBS_WAYS < LIVE_JOBS_SYNCHRONOUS) assert_int_equal(out.fingerprints[1], wanted.fingerprints[1]);
        for (uint32_t j = 0; j < 3; j += 2) {
            assert_int_equal(out.minibatches[j], whole.minibatches[j]);
            assert_int_equal(out.fingerprints[j], whole.fingerprints[j]);
            assert_string_equal(out.failure[j], "");
        }
        plan_release(&plan);
    }
}

/* A job without its data never begins. */
static void test_one_job_has_no_data(void **state)
{
    (void)state;
    struct plan plan;
    struct outcome whole, out;
    live_jobs_plan(&shared, NULL, &plan);
    run(&plan, NULL, &(struct run_options){.live_seed = 0}, &whole);
    plan.jobs.jobs[0].data = "/nowhere/data.txt";
    plan.jobs.jobs[0].data_format = DATA_TEXT;
    run(&plan, "sharded-lrtf", &(struct run_options){.keep_going = true}, &out);
    assert_int_equal(out.minibatches[0], 0);
    assert_non_null(strstr(out.failure[0], "/nowhere/data.txt"));
    assert_int_equal(out.fingerprints[1], whole.fingerprints[1]);
    assert_int_equal(out.fingerprints[2], whole.fingerprints[2]);
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_workloads),
        cmocka_unit_test(test_policies_decide),
        cmocka_unit_test(test_broken_policies_stop_the_run),
        cmocka_unit_test(test_stopped_and_gone_on),
        cmocka_unit_test(test_stopped_after_an_evaluation),
        cmocka_unit_test(test_one_job_fails),
        cmocka_unit_test(test_one_job_has_no_data),
    };
    return cmocka_run_group_tests_name("exec_live_parallel", tests, NULL, NULL);
}
