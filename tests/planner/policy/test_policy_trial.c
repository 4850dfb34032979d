/*
 * Policies of a user's, each wrong in one way (tests/policies/), are told apart and contained; and what
 * base/process/contain.h does with children that end in every way there is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/process/contain.h"
#include "base/size.h"
#include "planner/policy/trial/policy_trial.h"
#include "planner/strategy/planner.h"
#include "tests/support/exec/support_orphan.h"
#include "tests/support/solve/support_instance.h"
#include "tests/support/planner/support_planner.h"

#define POLICIES BINARY_DIR "/policies/"

/* --- children -------------------------------------------------------------------------------- */

struct order {
    enum { SAY, SAY_MUCH, SAY_AND_LEAVE, CRASH, SLEEP, CLOSE_AND_SLEEP, EAT, KILL_PARENT, LEAVE_ORPHAN,
          LEAVE_AND_KILL } what;
};

static void leave_orphan(bool session)
{
    if (fork() != 0) return;
    if (session) setsid();
    prctl(PR_SET_NAME, SUPPORT_ORPHAN);
    for (;;) pause();
}

static void obey(void *context, struct contain_sink *sink)
{
    const struct order *order = context;
    char text[1000] = "said";
    switch (order->what) {
    case SAY: contain_write(sink, text, 4); return;
    case SAY_MUCH:
        for (int i = 0; i < 300; i++) contain_write(sink, text, sizeof text);
        return;
    case SAY_AND_LEAVE: contain_write(sink, text, 4); _exit(0);
    case CRASH: raise(SIGSEGV); return;
    case SLEEP: for (;;) pause();
    case CLOSE_AND_SLEEP:
        closefrom(3);
        for (;;) pause();
    case KILL_PARENT: kill(getppid(), SIGKILL); for (;;) pause();
    case LEAVE_ORPHAN: /* in a session of its own, with the pipe open */
        leave_orphan(true);
        contain_write(sink, text, 4);
        return;
    case LEAVE_AND_KILL: /* the guard cannot end it any more */
        leave_orphan(false);
        kill(getppid(), SIGKILL);
        for (;;) pause();
    case EAT: {
        void *memory = malloc((size_t)1 << 33);
        contain_write(sink, memory ? "much" : "none", 4);
        free(memory);
    }
    }
}

static void children(void **state)
{
    (void)state;
    static const struct {
        struct order order;
        const char *text; /* of a bad end, or the output */
        size_t length;    /* 0: nothing came back */
    } cases[] = {{{SAY}, "said", 4},
                 {{SAY_MUCH}, "said", 300000},
                 {{SAY_AND_LEAVE}, "ended the process with exit code 0", 0},
                 {{CRASH}, "was ended by SIGSEGV (Segmentation fault)", 0},
                 {{SLEEP}, "was not done within 0.3 s", 0},
                 {{CLOSE_AND_SLEEP}, "was not done within 0.3 s", 0},
                 {{KILL_PARENT}, "killed its parent process (SIGKILL)", 0},
                 {{LEAVE_ORPHAN}, "said", 4},
                 {{LEAVE_AND_KILL}, "killed its parent process (SIGKILL)", 0},
                 {{EAT}, "none", 4}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        bool hangs = cases[i].order.what == SLEEP || cases[i].order.what == CLOSE_AND_SLEEP;
        struct contain_limits limits = {.seconds = hangs ? 0.3 : 60, .memory_bytes = 1 << 30};
        struct order order = cases[i].order;
        struct contain_end end;
        struct error err = {0};
        char text[CONTAIN_TEXT_BYTES];
        void *result;
        size_t length;
        assert_int_equal(contain_run(obey, &order, &limits, 300000, &result, &length, &end, &err), STATUS_OK);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        if (order.what == EAT) { /* limits of memory are not kept there */
            free(result);
            continue;
        }
#endif
        assert_int_equal(length, cases[i].length);
        if (cases[i].length > 0) assert_memory_equal(result, cases[i].text, 4);
        else assert_string_equal(contain_text(&end, &limits, text), cases[i].text);
        if (cases[i].length == 0) assert_null(result);
        if (hangs) assert_true(end.seconds >= 0.3);
        free(result);
        assert_false(support_orphan_lives());
    }
    struct order much = {SAY_MUCH};
    struct contain_limits limits = {.seconds = 60};
    struct contain_end end;
    struct error err = {0};
    void *result;
    size_t length;
    assert_int_equal(contain_run(obey, &much, &limits, 299999, &result, &length, &end, &err), STATUS_LIMIT);
    assert_string_equal(err.text, "a child process wrote more than 299999 bytes");
    assert_null(result);
}

/* --- children that are talked to -------------------------------------------------------------- */

static void talk(void *context, int socket)
{
    const struct order *order = context;
    char text[4];
    if (read(socket, text, sizeof text) != (ssize_t)sizeof text) return;
    switch (order->what) {
    case SAY: break;
    case SAY_AND_LEAVE: _exit(3);
    case CRASH: raise(SIGSEGV); break;
    case CLOSE_AND_SLEEP: close(socket); for (;;) pause();
    case KILL_PARENT: kill(getppid(), SIGKILL); for (;;) pause();
    case LEAVE_AND_KILL: leave_orphan(false); kill(getppid(), SIGKILL); for (;;) pause();
    case LEAVE_ORPHAN: leave_orphan(true); return; /* with the socket open */
    case EAT: {
        void *memory = malloc((size_t)1 << 33);
        memcpy(text, memory ? "much" : "none", 4);
        free(memory);
        break;
    }
    default: fail();
    }
    if (write(socket, text, sizeof text) < 0) _exit(4);
    for (;;) pause(); /* until it is ended */
}

static void talks(void **state)
{
    (void)state;
    static const struct {
        struct order order;
        const char *answer; /* NULL: the socket closes */
        bool in_time;
        const char *end;    /* when it ended by itself */
    } cases[] = {{{SAY}, "ping", false, NULL},
                 {{SAY_AND_LEAVE}, NULL, true, "ended the process with exit code 3"},
                 {{CRASH}, NULL, true, "was ended by SIGSEGV (Segmentation fault)"},
                 {{CLOSE_AND_SLEEP}, NULL, false, NULL},
                 {{KILL_PARENT}, NULL, true, "killed its parent process (SIGKILL)"},
                 {{LEAVE_ORPHAN}, NULL, true, "ended the process with exit code 0"},
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
                 {{EAT}, "none", false, NULL}, /* limits of memory are not kept there */
#endif
                 {{LEAVE_AND_KILL}, NULL, true, "killed its parent process (SIGKILL)"}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct contain_limits limits = {.seconds = 9, .memory_bytes = 1 << 30};
        struct contain_process *process = NULL;
        struct order order = cases[i].order;
        struct contain_end end;
        struct error err = {0};
        char text[CONTAIN_TEXT_BYTES], answer[4];
        assert_int_equal(contain_start(talk, &order, &limits, &process, &err), STATUS_OK);
        assert_int_equal(write(contain_socket(process), "ping", 4), 4);
        if (cases[i].order.what != LEAVE_AND_KILL) { /* its orphan has the socket */
            const ssize_t got = read(contain_socket(process), answer, sizeof answer);
            assert_int_equal(got, cases[i].answer ? 4 : 0);
            if (cases[i].answer) assert_memory_equal(answer, cases[i].answer, 4);
        }
        contain_stop(process, !cases[i].answer, &end);
        assert_int_equal(end.in_time, cases[i].in_time);
        if (cases[i].end) assert_string_equal(contain_text(&end, &limits, text), cases[i].end);
        assert_false(support_orphan_lives());
    }
}

/* --- policies -------------------------------------------------------------------------------- */

/* Two devices, the second without room for a; a and c of two tasks, b of one. */
static const char *const small =
    "{'spillway_instance': 1, 'devices': [{'memory': 9}, {'memory': 4}], 'jobs': ["
    " {'name': 'a', 'units': [{'compute': 5, 'memory': 6}, {'compute': 7, 'memory': 6, 'shard': 1}]},"
    " {'name': 'b', 'units': [{'compute': 2, 'in': 3, 'memory': 4}]},"
    " {'name': 'c', 'units': [{'compute': 3, 'memory': 4}, {'compute': 1, 'memory': 4, 'shard': 1}]}]}";

static struct policy_trial try_it(const char *file, const struct instance *in, double seconds)
{
    struct policy_trial_options options = {
        .run = {.seed = 5}, .twice = true, .limits = {.seconds = seconds, .memory_bytes = 1 << 28}};
    struct policy_trial trial = {0};
    struct error err = {0};
    if (policy_trial(file, in, &options, &trial, &err)) fail_msg("%s", err.text);
    return trial;
}

/* The policies begin well: a to device 0 at 0, b to device 1 at 0 (until 3 + 2 = 5); at 5 they err. */
static void broken_policies(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        enum status status;
        enum policy_rule rule;
        const char *text;
    } cases[] = {
        {POLICIES "good.so", STATUS_OK, 0, ""},
        {POLICIES "version.so", STATUS_BAD_INPUT, 0,
         POLICIES "version.so: is of policy interface version 3 and this is version 2 (build it again with "
                  "the header of this version)"},
        {POLICIES "built_in_name.so", STATUS_BAD_INPUT, 0,
         POLICIES "built_in_name.so: names itself 'fifo', which is a built-in policy"},
        {POLICIES "no_name.so", STATUS_BAD_INPUT, 0,
         POLICIES "no_name.so: names itself 'No Name' (expected lower case letters, digits and dashes, at "
                  "most 63)"},
        {POLICIES "no_choose.so", STATUS_BAD_INPUT, 0,
         POLICIES "no_choose.so: policy 'broken' has neither choose() nor rank() (expected one)"},
        {POLICIES "absent_device.so", STATUS_CHECK, POLICY_RULE_CHOICES,
         "policy 'broken', decision 3 at 5: returned device 2 (there are 2, from 0)"},
        {POLICIES "absent_job.so", STATUS_CHECK, POLICY_RULE_CHOICES,
         "policy 'broken', decision 3 at 5: returned job 1000 (there are 3, from 0)"},
        {POLICIES "done_job.so", STATUS_CHECK, POLICY_RULE_ORDER,
         "policy 'broken', decision 3 at 5: returned job 1, which has no units left"},
        {POLICIES "no_room.so", STATUS_CHECK, POLICY_RULE_MEMORY,
         "policy 'broken', decision 1 at 0: returned device 1 for job 0, whose next unit takes 6 of memory "
         "where there are 4"},
        {POLICIES "waits.so", STATUS_CHECK, POLICY_RULE_TERMINATES,
         "policy 'broken', decision 5 at 12: waits although nothing runs that could end, so this would never "
         "be done"},
        {POLICIES "loops.so", STATUS_CHECK, POLICY_RULE_TERMINATES,
         "the process of the policy was not done within 0.4 s"},
        {POLICIES "crashes.so", STATUS_CHECK, POLICY_RULE_TERMINATES,
         "the process of the policy was ended by SIGABRT (Aborted)"},
        {POLICIES "crashes_at_load.so", STATUS_CHECK, POLICY_RULE_TERMINATES,
         "the process of the policy was ended by SIGABRT (Aborted)"},
        {POLICIES "exits.so", STATUS_CHECK, POLICY_RULE_TERMINATES,
         "the process of the policy ended the process with exit code 0"},
        {"/nowhere/mine.so", STATUS_BAD_INPUT, 0,
         "cannot read policy '/nowhere/mine.so': No such file or directory"},
    };
    struct instance in;
    test_instance(small, &in);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        bool loops = strstr(cases[i].file, "loops") != NULL;
        struct policy_trial trial = try_it(cases[i].file, &in, loops ? 0.4 : 60);
        assert_string_equal(trial.text, cases[i].text);
        assert_int_equal(trial.status, cases[i].status);
        if (trial.status == STATUS_CHECK) assert_int_equal(trial.broken, cases[i].rule);
        policy_trial_release(&trial);
    }
    instance_release(&in);
}

/* Rules that are broken only in larger instances. */
static void rules_on_a_longer_one(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        enum policy_rule rule;
        const char *begins;
    } cases[] = {{POLICIES "busy_device.so", POLICY_RULE_CHOICES, "policy 'broken', decision "},
                 {POLICIES "unready_job.so", POLICY_RULE_ORDER, "policy 'broken', decision "},
                 {POLICIES "moody.so", POLICY_RULE_DETERMINISTIC, "policy 'broken', task "}};
    struct instance in;
    test_instance("{'spillway_instance': 1, 'devices': [{'count': 3, 'memory': 9}], 'jobs': ["
                  " {'name': 'a', 'repeat': 4, 'units': [{'compute': 5}, {'compute': 4, 'shard': 1}]},"
                  " {'name': 'b', 'repeat': 5, 'units': [{'compute': 2, 'in': 3}]},"
                  " {'name': 'c', 'repeat': 5, 'units': [{'compute': 7, 'in': 1}]},"
                  " {'name': 'd', 'repeat': 7, 'units': [{'compute': 3}]}]}", &in);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct policy_trial trial = try_it(cases[i].file, &in, 60);
        if (strncmp(trial.text, cases[i].begins, strlen(cases[i].begins)) != 0) fail_msg("%s", trial.text);
        assert_int_equal(trial.status, STATUS_CHECK);
        assert_int_equal(trial.broken, cases[i].rule);
        policy_trial_release(&trial);
    }
    struct policy_trial trial = try_it("fifo", &in, 1);
    assert_int_equal(trial.status, STATUS_OK);
    assert_string_equal(trial.name, "fifo");
    policy_trial_release(&trial);
    instance_release(&in);
}

/* The policy asks for more memory than allowed; its process contains the effects. */
static void hungry(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* limits of memory are not kept there */
#endif
    struct instance in;
    test_instance(small, &in);
    struct policy_trial trial = try_it(POLICIES "hungry.so", &in, 60);
    assert_string_equal(trial.text, "the process of the policy was ended by SIGSEGV (Segmentation fault)");
    assert_int_equal(trial.broken, POLICY_RULE_TERMINATES);
    policy_trial_release(&trial);
    instance_release(&in);
}

/* --- plans ----------------------------------------------------------------------------------- */

static struct test_layer layer(void *context, uint32_t job, uint32_t number)
{
    (void)context;
    return (struct test_layer){64 * (1000 + job), 64, 64, 1000000 + number, 2000000 + 1000 * job};
}

/* A shared object and the same built-in rule make equal plans; refusals name the decision. */
static void plans(void **state)
{
    (void)state;
    static const struct {
        const char *policy, *text;
    } cases[] = {
        {POLICIES "good.so", ""},
        {POLICIES "absent_device.so",
         "policy 'broken', decision 3 at 0.001001: returned device 2 (there are 2, from 0)"},
        {POLICIES "absent_job.so",
         "policy 'broken', decision 3 at 0.001001: returned job 1000 (there are 3, from 0)"},
        {POLICIES "waits.so", NULL},
        {POLICIES "no_state.so", "policy 'broken' has made no state (create() returned NULL)"}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        struct planner_options options = {.policy = cases[i].policy, .activations = PLANNER_AUTO, .shards = 2};
        test_hardware(&hardware, 2, 1 << 20, 1e12);
        test_profile_jobs(&jobs, 3, 2, 2, layer, NULL);
        enum status status = planner_plan(&hardware, &jobs, &options, &plan, &err);
        if (cases[i].text) {
            if (strncmp(err.text, cases[i].text, 30) != 0) fail_msg("%s", err.text);
        } else if (!strstr(err.text, "waits although nothing runs that could end")) {
            fail_msg("%s", err.text);
        }
        assert_int_equal(status == STATUS_OK, cases[i].text && cases[i].text[0] == '\0');
        if (status == STATUS_OK) assert_string_equal(plan.policy, "broken");
        plan_release(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(children), cmocka_unit_test(talks),
                                       cmocka_unit_test(broken_policies),
                                       cmocka_unit_test(rules_on_a_longer_one), cmocka_unit_test(hungry),
                                       cmocka_unit_test(plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
