/*
 * Plan files: a plan survives writing and reading, and each fault in a file has its place and
 * words.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/size.h"
#include "planner/files/plan_io.h"
#include "planner/policy/policies.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_plan.h"
#include "tests/support/planner/support_plan_text.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

/* --- round trips ---------------------------------------------------------------------------- */

static void assert_round_trip(const struct plan *plan)
{
    struct plan read = {0};
    struct error err = {0};
    char *text = support_plan_text(plan);
    if (plan_parse("test", text, strlen(text), &read, &err) != STATUS_OK) fail_msg("%s", err.text);
    char *again = support_plan_text(&read);
    assert_string_equal(text, again);
    assert_true(plan_fingerprint(plan) == plan_fingerprint(&read));
    assert_true(plan_operations(plan) == plan_operations(&read));
    assert_string_equal(plan->policy, read.policy);
    assert_string_equal(plan->bound_text, read.bound_text);
    assert_int_equal(plan->bound_kind, read.bound_kind);
    assert_int_equal(plan->seed, read.seed);
    assert_int_equal(plan->double_buffer, read.double_buffer);
    assert_true(memcmp(&plan->estimated_makespan_s, &read.estimated_makespan_s, 8) == 0);
    assert_true(memcmp(&plan->lower_bound_s, &read.lower_bound_s, 8) == 0);
    free(text);
    free(again);
    plan_release(&read);
}

static void test_round_trips(void **state)
{
    (void)state;
    const struct draft_shape shapes[] = {
        {.devices = 1, .jobs = 1, .middle = 1, .minibatches = 1},
        {.devices = 3, .jobs = 2, .middle = 2, .minibatches = 4},
        {.devices = 2, .jobs = 2, .middle = 1, .minibatches = 3, .slices = 3},
        {.devices = 2, .jobs = 2, .middle = 1, .minibatches = 2, .resident = true},
        {.devices = 2, .jobs = 3, .middle = 1, .minibatches = 2, .profile = true,
         .activations = ACTIVATIONS_SPILL},
        {.devices = 2, .jobs = 2, .middle = 1, .blocks = 2, .minibatches = 2,
         .activations = ACTIVATIONS_KEEP_INPUTS},
        {.devices = 3, .jobs = 2, .middle = 2, .minibatches = 2, .direct = true},
    };
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) {
        struct plan plan;
        support_plan(&shapes[i], &plan);
        assert_round_trip(&plan);
        plan_release(&plan);
    }
}

/* The planner's plans of random jobs, by every policy. */
static void test_planner_round_trips(void **state)
{
    (void)state;
    uint64_t seed = support_seed("test_planner_round_trips");
    uint32_t planned = 0;
    for (uint64_t n = 0; n < 40; n++) {
        uint64_t key = random_u64(seed, n);
        struct test_random_layers layers = {key, 1};
        const char *policy = policy_name_at(0);
        for (uint32_t p = 0; (policy = policy_name_at(p)) != NULL; p++) {
            struct hardware hardware;
            struct job_set jobs;
            struct plan plan = {0};
            struct error err = {0};
            struct planner_options options = {.policy = policy, .activations = PLANNER_AUTO};
            test_hardware(&hardware, 1 + (uint32_t)random_below(key, 1, 3), 300000, 1e9);
            if (random_below(key, 2, 2) == 0)
                test_profile_jobs(&jobs, 1 + (uint32_t)random_below(key, 3, 4),
                                  1 + (uint32_t)random_below(key, 4, 6),
                                  1 + random_below(key, 5, 5), test_random_layer, &layers);
            else
                test_gpt_jobs(&jobs, 1 + (uint32_t)random_below(key, 6, 3),
                              1 + (uint32_t)random_below(key, 7, 3), 8, 96,
                              1 + random_below(key, 8, 4));
            enum status status = planner_plan(&hardware, &jobs, &options, &plan, &err);
            if (status == STATUS_OK) {
                assert_round_trip(&plan);
                planned++;
            } else if (status != STATUS_INFEASIBLE) {
                fail_msg("%s: %s", policy, err.text);
            }
            plan_release(&plan);
        }
    }
    assert_true(planned > 100);
}

/* --- faults --------------------------------------------------------------------------------- */

/* Replaces `from` by `to` at its first occurrence after `behind`. */
struct fault {
    const char *behind, *from, *to, *message;
};

static const struct fault faults[] = {
    {"", "\"spillway_plan\": 1", "\"spillway_plan\": 2",
     "plan.json:2:20: a plan of version 2 (this program reads version 1)"},
    {"", "\"spillway_plan\": 1,", "",
     "plan.json:1:1: missing key 'spillway_plan'"},
    {"", "\"policy\": \"by hand\"", "\"policy\": 7",
     "plan.json:3:13: 'policy' is a number (expected a string)"},
    {"", "\"seed\": 5", "\"seed\": -5",
     "plan.json:4:11: 'seed' is -5 (expected at least 0)"},
    {"", "\"seed\": 5", "\"seed\": 5, \"sede\": 5",
     "plan.json:4:14: unknown key 'sede' (did you mean 'seed'?)"},
    {"", "\"lower_bound_s\": 1.125", "\"lower_bound_s\": -1",
     "plan.json:7:20: 'lower_bound_s' is -1 (expected 0 to 1e300)"},
    {"", "\"kind\": \"chain\"", "\"kind\": \"chains\"",
     "plan.json:8:21: unknown kind 'chains' (expected none, area, chain, link or storage)"},
    {"", "[\"recompute\"]", "[\"recompute\", \"keep\"]",
     "plan.json:70:18: 2 activations for 1 jobs (expected one each)"},
    {"", "[\"recompute\"]", "[\"recomptue\"]",
     "plan.json:70:19: unknown way of activations 'recomptue' (did you mean 'recompute'?)"},
    {"\"shards\"", "[0, 1, 1]", "[1, 1, 1]",
     "plan.json:73:6: job 1 does not exist (there are 1)"},
    {"\"shards\"", "[0, 1, 1]", "[0, 1]",
     "plan.json:73:5: element 1 has 2 elements (expected 3)"},
    {"\"shards\"", "[0, 1, 1]", "[0, 1, 1, \"input\"]",
     "plan.json:73:15: unknown way of activations 'input' (did you mean 'inputs'?)"},
    {"\"shards\"", "[0, 1, 1]", "[0, 1, 0]",
     "plan.json:73:12: element 2 is 0 (expected 1 to 100000)"},
    {"\"works\"", "\"norm_forward\", 1", "\"norm_forwards\", 1",
     "plan.json:79:7: unknown kernel 'norm_forwards' (did you mean 'norm_forward'?)"},
    {"\"works\"", "\"norm_forward\", 1", "\"norm_forward\", 0",
     "plan.json:79:23: element 1 is 0 (expected 1 to 4294967295)"},
    {"\"works\"", "[\"norm_forward\", 1, 32, 8, 0]", "[\"norm_forward\", 1, 32, 8]",
     "plan.json:79:6: element 0 has 4 elements (expected 5)"},
    {"\"buffers\"", "\"batch\"", "\"bach\"",
     "plan.json:84:6: unknown buffer kind 'bach' (did you mean 'batch'?)"},
    {"\"buffers\"", "\"device\"", "\"disk\"",
     "plan.json:85:27: unknown place 'disk'"},
    {"\"buffers\"", "[\"batch\", 0, null", "[\"batch\", 3, null",
     "plan.json:84:15: job 3 does not exist (there are 1)"},
    {"\"buffers\"", "[\"state\", 0, 0", "[\"state\", 0, 3",
     "plan.json:86:18: shard 3 does not exist (there are 3)"},
    {"\"buffers\"", "136]", "\"136 B\"]",
     "plan.json:84:35: element 5 is a string (expected a whole number)"},
    {"\"slots\"", "[0, 136]", "[0, 136, 1]",
     "plan.json:114:5: element 0 has 3 elements (expected 2)"},
    {"\"slots\"", "[0, 136]", "[0.5, 136]",
     "plan.json:114:6: element 0 is 0.5 (expected a whole number)"},
    {"\"units\"", "\"shard\": 1", "\"shard\": 3",
     "plan.json:171:16: shard 3 does not exist (there are 3)"},
    {"\"units\"", "\"pass\": \"forward\"", "\"pass\": \"forwards\"",
     "plan.json:145:15: unknown pass 'forwards' (did you mean 'forward'?)"},
    {"\"units\"", "\"ends_minibatch\": false", "\"ends_minibatch\": 0",
     "plan.json:146:25: 'ends_minibatch' is a number (expected true or false)"},
    {"\"units\"", "\"compute\": \"batch\"", "\"compute\": \"load\"",
     "plan.json: unit 0, operation 0 (job-0 shard 0 forward): form: kind 1 on stream 0, pass 8"},
    {"\"units\"", "\"compute\": \"batch\"", "\"comptue\": \"batch\"",
     "plan.json:148:9: an operation without kind (expected 'copy', 'compute' or 'collective')"},
    {"\"units\"", "\"copy\": \"h2d\"", "\"copy\": \"host\"",
     "plan.json:149:18: unknown copy 'host' (expected h2d, d2h, p2p, read or write)"},
    {"\"units\"", "\"bytes\": 136", "\"byte\": 136",
     "plan.json:149:9: missing key 'bytes'; unknown key 'byte' (did you mean 'bytes'?)"},
    {"\"units\"", "\"from\": [0, 0, \"r\"]", "\"from\": [99, 0, \"r\"]",
     "plan.json:149:48: buffer 99 does not exist (there are 28)"},
    {"\"units\"", "\"from\": [0, 0, \"r\"]", "\"from\": [0, \"r\"]",
     "plan.json:149:47: 'from' has 2 elements (expected buffer, offset, access)"},
    {"\"units\"", "\"from\": [0, 0, \"r\"]", "\"from\": [0, 0, \"q\"]",
     "plan.json:149:54: access 'q' is not understood (expected each of r read, w write, a "
     "acquire, x release at most once)"},
    {"\"units\"", "\"from\": [0, 0, \"r\"]", "\"from\": [0, 0, \"rr\"]",
     "plan.json:149:54: access 'rr' is not understood (expected each of r read, w write, a "
     "acquire, x release at most once)"},
    {"\"units\"", "\"work\": 1", "\"work\": 100",
     "plan.json:165:41: work 100 does not exist (there are 5)"},
    {"\"units\"", "\"work\": 1,", "\"work\": 1, \"rows\": [1],",
     "plan.json:165:52: 'rows' has 1 elements (expected first row, count)"},
    {"\"units\"", "\"work\": 1,", "\"work\": 1, \"rows\": [0, 8],",
     "plan.json:165:9: missing key 'slice'"},
    {"\"units\"", "\"work\": 1,", "\"work\": 1, \"slice\": 1,",
     "plan.json:165:44: unknown key 'slice' (expected compute, cpu, host, work, rows, tokens, access or after)"},
    {"\"units\"", "\"work\": 1,", "\"work\": 1, \"after\": [[0]],",
     "plan.json:165:54: element 0 has 1 elements (expected 2)"},
    {"\"units\"", "\"access\": [[0, \"w\"]]", "\"access\": [[0, 0, \"w\"]]",
     "plan.json:148:41: element 0 has 3 elements (expected 2)"},
    {"\"units\"", "\"access\": [[0, \"w\"]]", "\"access\": [[0, \"w\"]], \"bytes\": 3",
     "plan.json:148:52: unknown key 'bytes' (expected compute, cpu, host, work, rows, tokens, access or after)"},
    {"\"segments\"", "\"repeat\": 1", "\"repeat\": 0",
     "plan.json:215:17: 'repeat' is 0 (expected 1 to 4294967295)"},
    {"\"segments\"", "[0, 0,", "[5, 0,",
     "plan.json:217:10: unit 5 does not exist (there are 5)"},
    {"\"segments\"", "[0, 0,", "[0, 1,",
     "plan.json:217:13: device 1 does not exist (there are 1)"},
    {"\"segments\"", "[0, 0,", "[0, 0, 0,",
     "plan.json:217:9: 5 slots for unit 0 (it acquires 4 buffers)"},
    {"\"segments\"", "[0, 0, 0,", "[0, 0, 60,",
     "plan.json:217:16: slot 60 does not exist (there are 26)"},
    {"\"segments\"", "[0, 0,", "[],\n[0, 0,",
     "plan.json:217:9: a task of 0 elements (expected unit, device, slots)"},
    {"\"segments\"", "\"segments\": [", "\"segments\": [{\"repeat\": 1, \"tasks\": []},",
     "plan.json:213:39: a segment without tasks"},
    {"\"segments\"", "\"segments\": [", "\"segments\": [3,",
     "plan.json:213:16: found a number (expected a segment)"},
    /* what only plan_check() knows */
    {"\"slots\"", "[0, 136]", "[0, 135]",
     "plan.json: task 0, operation 1 (h2d of batch of job-0): memory: slot 0 has 135 "
     "bytes, the batch of job-0 136"},
    {"\"units\"", "\"from\": [0, 0, \"r\"]", "\"from\": [0, 8, \"r\"]",
     "plan.json: unit 0, operation 1 (h2d of batch of job-0): form: copies 136 bytes at 8 of "
     "the batch of job-0 (it has 136)"},
};

static char *changed(const char *text, const struct fault *fault)
{
    const char *start = strstr(text, fault->behind);
    const char *at = start ? strstr(start, fault->from) : NULL;
    if (!at) fail_msg("'%s' is not in the file", fault->from);
    size_t front = (size_t)(at - text), length = strlen(text) + strlen(fault->to) + 1;
    char *copy = malloc(length);
    assert_non_null(copy);
    snprintf(copy, length, "%.*s%s%s", (int)front, text, fault->to, at + strlen(fault->from));
    return copy;
}

static void check_faults(const char *text, const struct fault *list, size_t count)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        char *broken = changed(text, &list[i]);
        struct plan read = {0};
        struct error err = {0};
        enum status status = plan_parse("plan.json", broken, strlen(broken), &read, &err);
        if (status == STATUS_OK || strcmp(err.text, list[i].message) != 0) {
            print_message("fault %zu, expected: %s\n            found: %s\n", i,
                          list[i].message, err.text);
            wrong++;
        }
        plan_release(&read);
        free(broken);
    }
    assert_int_equal(wrong, 0);
}

static void test_faults(void **state)
{
    (void)state;
    const struct draft_shape shape = {.devices = 1, .jobs = 1, .middle = 1, .minibatches = 1};
    struct plan plan;
    support_plan(&shape, &plan);
    char *text = support_plan_text(&plan);
    check_faults(text, faults, ARRAY_COUNT(faults));
    free(text);
    plan_release(&plan);
}

/* Words of version 0.1 are read. */
static void test_words_of_before(void **state)
{
    (void)state;
    const struct draft_shape shape = {.devices = 1, .jobs = 1, .middle = 1, .minibatches = 1};
    const struct fault word = {"\"order\"", "\"weight buffers\"", "\"regions\"", NULL};
    struct plan plan, read = {0};
    struct error err = {0};
    support_plan(&shape, &plan);
    plan.order = (struct plan_order){.kind = PLAN_ORDER_WEIGHT_BUFFERS, .bound_s = 1, .tried = 2};
    char *text = support_plan_text(&plan), *before = changed(text, &word);
    if (plan_parse("plan.json", before, strlen(before), &read, &err)) fail_msg("%s", err.text);
    assert_int_equal(read.order.kind, PLAN_ORDER_WEIGHT_BUFFERS);
    assert_int_equal(read.order.tried, 2);
    free(before);
    free(text);
    plan_release(&read);
    plan_release(&plan);
}

/* Tasks are "instances" in plans of version 0.1. */
static void test_tasks_of_before(void **state)
{
    (void)state;
    const struct draft_shape shape = {.devices = 1, .jobs = 1, .middle = 1, .minibatches = 1};
    const struct fault key = {"\"segments\"", "\"tasks\"", "\"instances\"", NULL};
    const struct fault empty = {"\"segments\"", "\"segments\": [", "\"segments\": [{\"repeat\": 1, \"instances\": []},",
                                NULL};
    struct plan plan, read = {0}, none = {0};
    struct error err = {0};
    support_plan(&shape, &plan);
    assert_int_equal(plan.segment_count, 1);
    char *text = support_plan_text(&plan), *before = changed(text, &key), *without = changed(before, &empty);
    if (plan_parse("plan.json", before, strlen(before), &read, &err)) fail_msg("%s", err.text);
    assert_int_equal(read.task_count, plan.task_count);
    assert_true(plan_fingerprint(&read) == plan_fingerprint(&plan));
    assert_int_equal(plan_parse("plan.json", without, strlen(without), &none, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "plan.json:213:43: a segment without tasks");
    free(without);
    free(before);
    free(text);
    plan_release(&none);
    plan_release(&read);
    plan_release(&plan);
}

/* Faults of a plan with copies between two devices. */
static void test_faults_of_direct_copies(void **state)
{
    (void)state;
    static const struct fault direct_faults[] = {
        {"\"segments\"", "[0, 1]", "[0, 2]",
         "plan.json:222:17: device 2 does not exist (there are 2)"},
        {"\"segments\"", "[0, 1]", "[0]",
         "plan.json:222:13: element 1 has 1 elements (expected 2)"},
        {"\"segments\"", "[0, 1]", "0",
         "plan.json: task 2, operation 2 (p2p of boundary of job-0 shard 2): form: a copy between "
         "devices in a task without a peer"},
        {"\"segments\"", "[0, 1]", "[0, 0]",
         "plan.json: task 2, operation 2 (p2p of boundary of job-0 shard 2): form: device 0 has no "
         "direct link to device 0"},
        {"\"group\": 1", "\"group\": 1", "\"group\": 2",
         "plan.json:166:18: 'p2p' on a machine without direct links between devices"},
    };
    const struct draft_shape shape = {
        .devices = 2, .jobs = 1, .middle = 1, .minibatches = 1, .direct = true};
    struct plan plan;
    support_plan(&shape, &plan);
    char *text = support_plan_text(&plan);
    check_faults(text, direct_faults, ARRAY_COUNT(direct_faults));
    free(text);
    plan_release(&plan);
}

/* --- files ---------------------------------------------------------------------------------- */

static void test_files(void **state)
{
    (void)state;
    const struct draft_shape shape = {.devices = 1, .jobs = 1, .middle = 1, .minibatches = 1};
    struct plan plan, read = {0};
    struct error err = {0};
    char path[64];
    snprintf(path, sizeof path, "/tmp/test_plan_io-%ld.json.gz", (long)getpid());
    support_plan(&shape, &plan);
    assert_int_equal(plan_write(&plan, path, &err), STATUS_OK);
    assert_int_equal(plan_read(path, &read, &err), STATUS_OK);
    assert_true(plan_fingerprint(&plan) == plan_fingerprint(&read));
    unlink(path);
    plan_release(&read);
    assert_int_equal(plan_read(path, &read, &err), STATUS_BAD_INPUT);
    plan_release(&read);

    /* a plan that is wrong is not written */
    plan.segments[0].repeat_count = 2;
    err = (struct error){0};
    assert_int_equal(plan_write(&plan, path, &err), STATUS_CHECK);
    assert_int_equal(access(path, F_OK), -1);
    plan_release(&plan);
}

/* The files that a plan reads and writes move with its folder. */
static void test_moved(void **state)
{
    (void)state;
    const struct draft_shape shape = {.devices = 1, .jobs = 2, .middle = 1, .minibatches = 1};
    struct plan plan, read = {0};
    struct error err = {0};
    char top[SUPPORT_FOLDER_BYTES], made[64], moved[64], data[96], weights[96], path[96], expected[96];
    support_folder_make(top);
    snprintf(made, sizeof made, "%s/made", top);
    snprintf(moved, sizeof moved, "%s/moved", top);
    snprintf(data, sizeof data, "%s/shared.txt", top);
    snprintf(weights, sizeof weights, "%s/out/a.safetensors", made);
    snprintf(path, sizeof path, "%s/plan.json", made);
    assert_int_equal(mkdir(made, 0700), 0);
    support_plan(&shape, &plan);
    plan.jobs.jobs[0].weights_out = weights;
    plan.jobs.jobs[0].weights_in = data;
    snprintf(plan.jobs.jobs[0].network.name, sizeof plan.jobs.jobs[0].network.name, "%s/net/config.json", made);
    plan.jobs.jobs[1].weights_in = "/dev/null";
    if (plan_write(&plan, path, &err)) fail_msg("%s", err.text);
    assert_int_equal(rename(made, moved), 0);
    snprintf(path, sizeof path, "%s/plan.json", moved);
    if (plan_read(path, &read, &err)) fail_msg("%s", err.text);
    snprintf(expected, sizeof expected, "%s/out/a.safetensors", moved);
    assert_string_equal(read.jobs.jobs[0].weights_out, expected);
    snprintf(expected, sizeof expected, "%s/../shared.txt", moved);
    assert_string_equal(read.jobs.jobs[0].weights_in, expected);
    snprintf(expected, sizeof expected, "%s/net/config.json", moved);
    assert_string_equal(read.jobs.jobs[0].network.name, expected);
    assert_string_equal(read.jobs.jobs[1].weights_in, "/dev/null");
    assert_true(plan_fingerprint(&plan) == plan_fingerprint(&read)); /* traces go on being its traces */
    plan.jobs.jobs[0].weights_out = "/elsewhere/b.safetensors";
    assert_true(plan_fingerprint(&plan) != plan_fingerprint(&read));
    unlink(path);
    rmdir(moved);
    support_folder_remove(top);
    plan_release(&read);
    plan_release(&plan);
}

/* The plans that fuzzing starts from are good ones: a corpus of refused files would test little.
 * When models/ or the format change on purpose, SPILLWAY_REWRITE=1 writes them again. */
static void test_corpus(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct draft_shape shape;
        bool waits; /* with an "after" */
    } files[] = {
        {"spilled", {.devices = 1, .jobs = 1, .middle = 1, .minibatches = 3}, false},
        {"sliced", {.devices = 2, .jobs = 1, .middle = 1, .minibatches = 2, .slices = 2}, false},
        {"resident", {.devices = 2, .jobs = 2, .middle = 1, .minibatches = 2, .resident = true},
         false},
        {"profile", {.devices = 2, .jobs = 2, .minibatches = 5, .profile = true,
                     .activations = ACTIVATIONS_SPILL}, false},
        {"after", {.devices = 2, .jobs = 2, .minibatches = 5, .profile = true}, true},
    };
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        struct plan read = {0};
        struct error err = {0};
        char path[512];
        snprintf(path, sizeof path, "%s/tests/fuzz/corpus/plan/%s.json", SOURCE_DIR, files[i].name);
        if (getenv("SPILLWAY_REWRITE")) {
            struct draft *draft = draft_create(&files[i].shape);
            struct plan plan;
            if (files[i].waits) {
                struct draft_op *op = &draft_unit(draft, 0, 1, PLAN_LOSS)->ops[1];
                op->has_after = true;
                op->after = (struct plan_after){.tasks = 1, .op = 2};
            }
            draft_build(draft, &plan);
            if (plan_write(&plan, path, &err) != STATUS_OK) fail_msg("%s", err.text);
            plan_release(&plan);
            draft_destroy(draft);
        }
        if (plan_read(path, &read, &err) != STATUS_OK) fail_msg("%s", err.text);
        assert_true((read.after_count > 0) == files[i].waits);
        plan_release(&read);
    }
}

static void test_allocation_failures(void **state)
{
    (void)state;
    const struct draft_shape shape = {.devices = 2, .jobs = 1, .middle = 1, .minibatches = 2,
                                      .slices = 2};
    struct plan plan;
    support_plan(&shape, &plan);
    char *text = support_plan_text(&plan);
    enum status status = STATUS_NO_MEMORY;
    for (uint64_t n = 1; status == STATUS_NO_MEMORY; n++) {
        struct plan read = {0};
        struct error err = {0};
        alloc_test_fail_at(n);
        status = plan_parse("test", text, strlen(text), &read, &err);
        plan_release(&read);
        assert_true(n < 1000);
    }
    alloc_test_fail_at(0);
    assert_int_equal(status, STATUS_OK);
    free(text);
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_planner_round_trips),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_words_of_before),
        cmocka_unit_test(test_tasks_of_before),
        cmocka_unit_test(test_faults_of_direct_copies),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_moved),
        cmocka_unit_test(test_corpus),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
