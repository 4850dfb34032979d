/* label: long
 * exec/run/run_live.h and planner/policy/plan_dispatch.h: an order that comes about while work runs gives what the
 * plan's own order gives, bit for bit, within memory.
 *
 * The judge of the order is plan_check(), which knows nothing of dispatch: the plan that was carried out
 * must be one. Random pauses on every stream let orders differ from run to run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "base/size.h"
#include "exec/run/run.h"
#include "planner/check/plan_check.h"
#include "planner/policy/plan_executed.h"
#include "planner/policy/policy_load.h"
#include "planner/policy/policy_process.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"
#include "tests/support/exec/support_orphan.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

enum { BLOCKS = 3, WIDTH = 32, VOCABULARY = 97, JOBS = 4, LONGEST = 64, ROOM = 64 << 20 };

/* --- making plans ----------------------------------------------------------------------------- */

struct setting {
    uint32_t devices, jobs, shards, minibatches;
    uint64_t device_bytes; /* 0: plenty */
    uint32_t optimizer;    /* enum planner_place, or PLANNER_AUTO */
    uint32_t weight_buffers; /* 0: chosen */
    double clip;           /* of the last job; 0: it does not */
    bool stored;           /* states are on storage */
    bool evaluated;        /* the first job, and its best weights are kept */
    bool fixed;            /* only one order */
};

static enum status make_plan(const struct setting *setting, const uint64_t *first, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    test_hardware(&hardware, setting->devices, setting->device_bytes ? setting->device_bytes : ROOM, 10e9);
    hardware.backend = "host";
    hardware.threads = 1;
    hardware.storage.capacity_bytes.value = 1e9;
    hardware.storage.read_rate.value = hardware.storage.write_rate.value = 1e9;
    test_gpt_jobs(&jobs, setting->jobs, BLOCKS, WIDTH, VOCABULARY, setting->minibatches);
    for (uint32_t j = 0; j < jobs.count; j++) {
        jobs.jobs[j].optimizer.schedule = (struct rate_schedule){.kind = RATE_CONSTANT};
        jobs.jobs[j].minibatches -= j % 2; /* they do not end together */
        if (!first) continue;
        jobs.jobs[j].first_minibatch = first[j];
        jobs.jobs[j].minibatches -= first[j];
    }
    if (setting->evaluated) {
        jobs.jobs[0].evaluation = (struct job_evaluation){.every = 2, .minibatches = 2, .data_format = DATA_NONE};
        jobs.jobs[0].keep_best = true;
    }
    jobs.jobs[jobs.count - 1].optimizer.clip = setting->clip;
    const struct planner_options options = {
        .live = !setting->fixed,
        .seed = 5,
        .optimizer = setting->optimizer,
        .shards = setting->shards,
        .weight_buffers = setting->weight_buffers,
        .activations = PLANNER_AUTO,
        .storage = setting->stored ? PLANNER_STORAGE_ALL : PLANNER_STORAGE_NONE,
    };
    *plan = (struct plan){0};
    const enum status status = planner_plan(&hardware, &jobs, &options, plan, &err);
    if (status != STATUS_OK && status != STATUS_INFEASIBLE) fail_msg("%s", err.text);
    return status;
}

/* --- running them ----------------------------------------------------------------------------- */

struct outcome {
    uint64_t minibatches[JOBS];
    double losses[JOBS][LONGEST];
    uint64_t fingerprints[JOBS], best[JOBS];
    uint64_t order_fingerprint; /* of the plan that was carried out; 0: it is not complete */
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

/* `policy` NULL: the plan's order. Returns how the run ended, with its message in `text`. */
static enum status try_run(const struct plan *plan, const char *policy, const struct run_options *given,
                           struct outcome *out, struct error *err)
{
    struct run_result result = {0};
    struct trace trace = {0};
    struct run_options options = *given;
    options.record_spans = true;
    options.storage.folder = BINARY_DIR;
    *out = (struct outcome){.stopped = false};
    if (policy && policy_process_open(policy, 3, &options.live, err) != STATUS_OK) return err->status;
    const enum status status = run_plan(plan, &options, &result, &trace, err);
    policy_process_close(options.live);
    for (uint32_t j = 0; result.jobs && j < plan->jobs.count; j++) {
        const struct run_job_result *const job = &result.jobs[j];
        out->minibatches[j] = job->minibatches;
        out->fingerprints[j] = job->weights_fingerprint;
        out->best[j] = job->kept_fingerprint;
        memcpy(out->losses[j], job->losses, job->minibatches * sizeof(double));
        snprintf(out->failure[j], sizeof out->failure[j], "%s", job->failure ? job->failure : "");
    }
    out->stopped = result.stopped;
    if (status == STATUS_OK) {
        struct error wrong = {0};
        if (trace_check(&trace, &wrong) != STATUS_OK) fail_msg("%s", wrong.text);
        for (uint32_t d = 0; d < plan->hardware.device_count; d++)
            assert_true(trace.places[1 + d].peak_bytes <= plan->hardware.devices[d].memory_bytes);
        if (policy && trace.complete) check_order(plan, &result, &trace, out);
    }
    trace_release(&trace);
    run_result_release(&result);
    return status;
}

static void run(const struct plan *plan, const char *policy, const struct run_options *options,
                struct outcome *out)
{
    struct error err = {0};
    if (try_run(plan, policy, options, out, &err) != STATUS_OK) fail_msg("%s", err.text);
}

/* Checks that the first losses of both have the same bits; weights too if they end at one minibatch. */
static void assert_same(const struct plan *plan, const struct outcome *a, const struct outcome *b,
                        const char *what)
{
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const uint64_t common = a->minibatches[j] < b->minibatches[j] ? a->minibatches[j] : b->minibatches[j];
        for (uint64_t i = 0; i < common; i++)
            if (memcmp(&a->losses[j][i], &b->losses[j][i], sizeof(double)) != 0)
                fail_msg("%s: job %u, minibatch %u: loss %.17g, not %.17g", what, j, (unsigned)i,
                         b->losses[j][i], a->losses[j][i]);
        if (a->minibatches[j] != b->minibatches[j]) continue;
        if (a->fingerprints[j] != b->fingerprints[j] || a->best[j] != b->best[j])
            fail_msg("%s: job %u: other weights", what, j);
    }
}

/* --- one result ------------------------------------------------------------------------------- */

static const char *const asked[] = {"sharded-lrtf", "sharded-lrtf-cached", "lrtf-emptiest", "srtf", "fifo",
                                    "random", "spill-sequential", BINARY_DIR "/policies/good.so"};

static void test_any_policy_gives_the_same_bits(void **state)
{
    (void)state;
    static const struct setting settings[] = {
        {.devices = 2, .jobs = 3, .shards = 4, .minibatches = 3, .device_bytes = 400000},
        {.devices = 1, .jobs = 2, .shards = 3, .minibatches = 4},
        {.devices = 3, .jobs = 4, .shards = 3, .minibatches = 3, .optimizer = PLANNER_PLACE_CPU},
        {.devices = 2, .jobs = 3, .shards = 4, .minibatches = 3, .optimizer = PLANNER_AUTO, .clip = 0.25,
         .evaluated = true},
        {.devices = 2, .jobs = 3, .shards = 4, .minibatches = 3, .stored = true, .weight_buffers = 3},
        {.devices = 2, .jobs = 3, .shards = 5, .minibatches = 3, .weight_buffers = 1},
    };
    for (size_t s = 0; s < ARRAY_COUNT(settings); s++) {
        struct plan plan, fixed_plan;
        struct setting fixed = settings[s];
        struct outcome own, live, out;
        fixed.fixed = true;
        assert_int_equal(make_plan(&settings[s], NULL, &plan), STATUS_OK);
        assert_int_equal(make_plan(&fixed, NULL, &fixed_plan), STATUS_OK);
        assert_true(plan.choice_count > 0 && fixed_plan.choice_count == 0);
        run(&fixed_plan, NULL, &(struct run_options){.poison = true}, &out);
        run(&plan, NULL, &(struct run_options){.poison = true}, &own);
        assert_same(&plan, &out, &own, "the order of a plan with choices");
        for (size_t p = 0; p < ARRAY_COUNT(asked); p++) {
            const struct run_options options = {
                .poison = true, .live_seed = 7, .delay_seed = p % 2 ? 100 * s + p : 0};
            char what[120];
            snprintf(what, sizeof what, "setting %zu, %s", s, asked[p]);
            run(&plan, asked[p], &options, &live);
            assert_true(live.order_fingerprint != 0);
            assert_same(&plan, &own, &live, what);
        }
        plan_release(&plan);
        plan_release(&fixed_plan);
    }
}

static void test_random_workloads(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("test_exec_live");
    uint32_t ran = 0;
    for (uint32_t n = 0; n < 24; n++) {
        const uint64_t key = random_u64(seed, n);
        const struct setting setting = {
            .devices = 1 + (uint32_t)random_below(key, 0, 3),
            .jobs = 1 + (uint32_t)random_below(key, 1, JOBS),
            .shards = 2 + (uint32_t)random_below(key, 2, 4),
            .minibatches = 2 + (uint32_t)random_below(key, 3, 2),
            .device_bytes = random_below(key, 4, 2) ? 0 : 300000 + random_below(key, 5, 900000),
            .optimizer = random_below(key, 6, 2) ? PLANNER_PLACE_DEVICE : PLANNER_AUTO,
            .weight_buffers = (uint32_t)random_below(key, 7, 5),
            .clip = 0,
            .stored = random_below(key, 8, 4) == 0,
            .evaluated = random_below(key, 9, 3) == 0,
        };
        const char *const policy = asked[random_below(key, 10, ARRAY_COUNT(asked))];
        struct plan plan;
        if (make_plan(&setting, NULL, &plan) == STATUS_OK) {
            struct outcome own, live;
            char what[120];
            snprintf(what, sizeof what, "workload %u, %s", n, policy);
            run(&plan, NULL, &(struct run_options){.poison = true}, &own);
            run(&plan, policy,
                &(struct run_options){.poison = true, .delay_seed = random_below(key, 11, 2) * (key | 1),
                                      .live_seed = key >> 1}, &live);
            assert_same(&plan, &own, &live, what);
            ran++;
        }
        plan_release(&plan);
    }
    print_message("%u workloads\n", ran);
    assert_true(ran >= 12);
}

/* Simulated live, a plan has the same number of operations and stays within memory; a second run is the same. */
static void test_simulated(void **state)
{
    (void)state;
    static const struct setting setting = {
        .devices = 2, .jobs = 3, .shards = 4, .minibatches = 3, .device_bytes = 400000, .optimizer = PLANNER_AUTO,
        .clip = 0.25, .evaluated = true};
    struct plan plan;
    assert_int_equal(make_plan(&setting, NULL, &plan), STATUS_OK);
    for (size_t p = 0; p + 1 < ARRAY_COUNT(asked); p++) {
        struct policy_handle handle;
        struct error err = {0};
        double makespan_s = 0;
        assert_int_equal(policy_open(asked[p], &handle, &err), STATUS_OK);
        for (uint32_t twice = 0; twice < 2; twice++) {
            struct sim_result result = {0};
            struct trace trace = {0};
            const struct plan_dispatch_options live = {.policy = handle.policy, .seed = 4};
            const struct sim_options options = {.live = &live, .record_spans = true};
            if (sim_run(&plan, &options, &result, &trace, &err) != STATUS_OK) fail_msg("%s", err.text);
            if (trace_check(&trace, &err) != STATUS_OK) fail_msg("%s", err.text);
            assert_int_equal(result.operations, plan_operations(&plan));
            assert_string_equal(trace.policy, asked[p]);
            for (uint32_t d = 0; d < 2; d++)
                assert_true(trace.places[1 + d].peak_bytes <= plan.hardware.devices[d].memory_bytes);
            assert_true(result.makespan_s >= plan.lower_bound_s);
            if (twice) assert_memory_equal(&makespan_s, &result.makespan_s, sizeof makespan_s);
            makespan_s = result.makespan_s;
            trace_release(&trace);
            sim_result_release(&result);
        }
        policy_close(&handle);
    }
    plan_release(&plan);
}

static const struct setting three_jobs = {
    .devices = 2, .jobs = 3, .shards = 4, .minibatches = 24, .device_bytes = 400000};

/* The orders differ; if all were equal, nothing would have been decided. */
static void test_policies_decide(void **state)
{
    (void)state;
    struct plan plan;
    struct outcome a, b;
    const struct run_options options = {.live_seed = 3};
    assert_int_equal(make_plan(&three_jobs, NULL, &plan), STATUS_OK);
    run(&plan, "spill-sequential", &options, &a);
    run(&plan, "random", &options, &b);
    assert_true(a.order_fingerprint != b.order_fingerprint);
    plan_release(&plan);
}

/* --- policies that go wrong --------------------------------------------------------------------- */

static void test_broken_policies_stop_the_run(void **state)
{
    (void)state;
    static const struct {
        const char *name, *says;
        bool loads;
    } broken[] = {
        {"absent_job", "returned job 1000 (there are 3, from 0)", true},
        {"absent_device", "returned device 2 (there are 2, from 0)", true},
        {"unready_job", "which runs or was chosen ahead", true},
        {"waits", "waits although nothing runs that could end", true},
        {"loops", "its process was not done within 3 s", true},
        {"crashes", "its process was ended by SIGABRT", true},
        {"exits", "its process ended the process with exit code 0", true},
        {"no_state", "has made no state (create() returned NULL)", true},
        {"version", "is of policy interface version", false},
        {"crashes_at_load", "while it was loaded its process was ended by SIG", false},
        {"scribbles", "its process wrote something of its own into its socket", true},
        {"scribbles_at_load", "while it was loaded its process wrote something of its own", false},
        {"closes", "its process closed its socket", true},
        {"kills_parent", "its process killed its parent process (SIGKILL)", true},
    };
    struct plan plan;
    struct outcome whole, out;
    assert_int_equal(make_plan(&three_jobs, NULL, &plan), STATUS_OK);
    run(&plan, NULL, &(struct run_options){.poison = true}, &whole);
    for (size_t b = 0; b < ARRAY_COUNT(broken); b++) {
        char path[256];
        struct error err = {0};
        snprintf(path, sizeof path, BINARY_DIR "/policies/%s.so", broken[b].name);
        assert_int_equal(try_run(&plan, path, &(struct run_options){.poison = true}, &out, &err),
                         STATUS_BAD_INPUT);
        if (!strstr(err.text, broken[b].says)) fail_msg("%s: %s", broken[b].name, err.text);
        if (!broken[b].loads) continue;
        assert_same(&plan, &whole, &out, broken[b].name);
        for (uint32_t j = 0; j < plan.jobs.count; j++)
            assert_true(out.minibatches[j] < plan.jobs.jobs[j].minibatches);
    }
    plan_release(&plan);
}

/* Processes started by a policy's process end with the run. */
static void test_no_process_is_left(void **state)
{
    (void)state;
    struct plan plan;
    struct outcome whole, out;
    assert_int_equal(make_plan(&three_jobs, NULL, &plan), STATUS_OK);
    run(&plan, NULL, &(struct run_options){.poison = true}, &whole);
    run(&plan, BINARY_DIR "/policies/orphans.so", &(struct run_options){.poison = true}, &out);
    assert_same(&plan, &whole, &out, "orphans");
    assert_false(support_orphan_lives());
    plan_release(&plan);
}

static void test_policies_that_cannot_be_asked(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        bool fixed;
        enum status status;
        const char *says;
    } cases[] = {
        {"optimal", false, STATUS_INFEASIBLE, "policy 'optimal' is a search and cannot decide live"},
        {"model-parallel", false, STATUS_INFEASIBLE,
         "policy 'model-parallel' keeps states on devices, but live dispatch may choose any device"},
        {"fifo", true, STATUS_BAD_INPUT,
         "the plan has only one order (expected a plan made with --dispatch live)"},
        {"fifi", false, STATUS_BAD_INPUT, "unknown policy 'fifi' (did you mean 'fifo'?)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct setting setting = three_jobs;
        struct plan plan;
        struct outcome out;
        struct error err = {0};
        setting.fixed = cases[i].fixed;
        assert_int_equal(make_plan(&setting, NULL, &plan), STATUS_OK);
        assert_int_equal(try_run(&plan, cases[i].policy, &(struct run_options){.poison = false}, &out, &err),
                         cases[i].status);
        assert_string_equal(err.text, cases[i].says);
        plan_release(&plan);
    }
}

/* --- stopping, checkpoints, failures ------------------------------------------------------------ */

static volatile bool stop;

static void stop_half_way(void *context, double done, double total, uint32_t job, double loss)
{
    (void)context;
    (void)job;
    (void)loss;
    if (done > 0.3 * total) stop = true;
}

/* The run stops, or its policy fails in the middle; resumed from the checkpoints it ends with the same bits. */
static void check_goes_on(const struct setting *setting, const char *policy, bool stops)
{
    char folder[SUPPORT_FOLDER_BYTES];
    support_folder_make(folder);
    struct plan plan, rest;
    struct outcome whole, half, other;
    struct error err = {0};
    const struct run_checkpoints checkpoints = {.folder = folder, .every_steps = 3, .keep = 2};
    const struct run_options options = {.poison = true,
                                        .delay_seed = 11,
                                        .checkpoints = &checkpoints,
                                        .stop = &stop,
                                        .on_progress = stops ? stop_half_way : NULL};
    assert_int_equal(make_plan(setting, NULL, &plan), STATUS_OK);
    run(&plan, NULL, &(struct run_options){.poison = true}, &whole);
    stop = false;
    const enum status status = try_run(&plan, policy, &options, &half, &err);
    assert_int_equal(status, stops ? STATUS_OK : STATUS_BAD_INPUT);
    if (stops) assert_true(half.stopped);
    assert_same(&plan, &whole, &half, "stopped");
    for (uint32_t j = 0; j < plan.jobs.count; j++) {
        print_message("%s: job %u stopped after %" PRIu64 " minibatches\n", policy, j, half.minibatches[j]);
        assert_true(half.minibatches[j] < plan.jobs.jobs[j].minibatches);
    }
    assert_int_equal(make_plan(setting, half.minibatches, &rest), STATUS_OK);
    stop = false;
    run(&rest, "random", &(struct run_options){.poison = true, .checkpoints = &checkpoints}, &other);
    assert_same(&plan, &whole, &other, "gone on");
    for (uint32_t j = 0; j < plan.jobs.count; j++) assert_int_equal(other.minibatches[j], whole.minibatches[j]);
    plan_release(&rest);
    plan_release(&plan);
    support_folder_remove(folder);
}

static void test_stopped_and_gone_on(void **state)
{
    (void)state;
    struct setting stored = three_jobs;
    stored.stored = true;
    check_goes_on(&three_jobs, "fifo", true);
    check_goes_on(&three_jobs, "random", true);
    check_goes_on(&stored, "fifo", true);
    check_goes_on(&three_jobs, BINARY_DIR "/policies/waits.so", false);
    check_goes_on(&three_jobs, BINARY_DIR "/policies/crashes.so", false);
}

static void test_stopped_before_the_first_unit(void **state)
{
    (void)state;
    struct plan plan;
    struct outcome out;
    stop = true;
    assert_int_equal(make_plan(&three_jobs, NULL, &plan), STATUS_OK);
    run(&plan, "fifo", &(struct run_options){.stop = &stop}, &out);
    assert_true(out.stopped);
    for (uint32_t j = 0; j < plan.jobs.count; j++) assert_int_equal(out.minibatches[j], 0);
    plan_release(&plan);
}

/* A job whose loss is not finite ends without effect on the others. */
static void test_one_job_fails(void **state)
{
    (void)state;
    struct plan plan;
    struct outcome whole, out;
    assert_int_equal(make_plan(&three_jobs, NULL, &plan), STATUS_OK);
    run(&plan, NULL, &(struct run_options){.poison = true}, &whole);
    plan.jobs.jobs[1].optimizer.learning_rate = 1e30;
    run(&plan, "sharded-lrtf",
        &(struct run_options){.poison = true, .delay_seed = 5, .keep_going = true, .on_nan = RUN_NAN_STOP}, &out);
    assert_true(out.minibatches[1] < plan.jobs.jobs[1].minibatches);
    assert_non_null(strstr(out.failure[1], "minibatch"));
    for (uint32_t j = 0; j < 3; j += 2) {
        assert_int_equal(out.minibatches[j], whole.minibatches[j]);
        assert_int_equal(out.fingerprints[j], whole.fingerprints[j]);
        assert_string_equal(out.failure[j], "");
    }
    plan_release(&plan);
}

/* A job without its data never begins. */
static void test_one_job_has_no_data(void **state)
{
    (void)state;
    struct plan plan;
    struct outcome whole, out;
    assert_int_equal(make_plan(&three_jobs, NULL, &plan), STATUS_OK);
    run(&plan, NULL, &(struct run_options){.poison = true}, &whole);
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
        cmocka_unit_test(test_any_policy_gives_the_same_bits),
        cmocka_unit_test(test_random_workloads),
        cmocka_unit_test(test_simulated),
        cmocka_unit_test(test_policies_decide),
        cmocka_unit_test(test_broken_policies_stop_the_run),
        cmocka_unit_test(test_no_process_is_left),
        cmocka_unit_test(test_policies_that_cannot_be_asked),
        cmocka_unit_test(test_stopped_and_gone_on),
        cmocka_unit_test(test_stopped_before_the_first_unit),
        cmocka_unit_test(test_one_job_fails),
        cmocka_unit_test(test_one_job_has_no_data),
    };
    return cmocka_run_group_tests_name("exec_live", tests, NULL, NULL);
}
