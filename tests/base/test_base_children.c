/* base/process/children.h: many programs side by side, what each printed and how each ended; programs that cannot be
 * started. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process/children.h"
#include "base/process/clock.h"

enum { PROGRAMS = 40 };

struct watch {
    char scripts[PROGRAMS][128];
    const char *argv[PROGRAMS][4];
    uint32_t count, started, ended;
    uint32_t running, most; /* at once */
    const char *program;
    struct children_end last;
    char output[256], complaint[256]; /* of the last one the beginning, and the end */
    bool stop, one_by_one;
    const char *folder;
};

static bool next(void *context, struct children_start *out)
{
    struct watch *watch = context;
    if (watch->started == watch->count || (watch->one_by_one && watch->running > 0)) return false;
    uint32_t p = watch->started++;
    watch->argv[p][0] = watch->program ? watch->program : "/bin/sh";
    watch->argv[p][1] = "-c";
    watch->argv[p][2] = watch->scripts[p];
    watch->argv[p][3] = NULL;
    if (++watch->running > watch->most) watch->most = watch->running;
    *out = (struct children_start){.argv = watch->argv[p], .folder = watch->folder, .id = p};
    return true;
}

static enum status ended(void *context, const struct children_end *end, struct error *err)
{
    struct watch *watch = context;
    watch->running--;
    watch->ended++;
    watch->last = *end;
    snprintf(watch->output, sizeof watch->output, "%s", end->output);
    size_t length = strlen(end->complaint), most = sizeof watch->complaint - 1;
    snprintf(watch->complaint, sizeof watch->complaint, "%s", end->complaint + (length > most ? length - most : 0));
    return watch->stop ? error_set(err, STATUS_CHECK, "enough") : STATUS_OK;
}

static enum status check_numbered(void *context, const struct children_end *end, struct error *err)
{
    char wanted[32];
    snprintf(wanted, sizeof wanted, "out %u\n", (unsigned)end->id);
    assert_string_equal(end->output, wanted);
    snprintf(wanted, sizeof wanted, "err %u", (unsigned)end->id);
    assert_string_equal(end->complaint, wanted);
    assert_int_equal(end->exit_code, (int)end->id % 5);
    return ended(context, end, err);
}

static void all_run_and_are_told_apart(void **state)
{
    (void)state;
    struct watch watch = {.count = PROGRAMS};
    struct error err = {0};
    for (uint32_t p = 0; p < PROGRAMS; p++)
        snprintf(watch.scripts[p], sizeof watch.scripts[p], "echo out %u; echo err %u >&2; exit %u", p, p, p % 5);
    const struct children_client client = {&watch, next, check_numbered, NULL};
    assert_int_equal(children_run(&client, 4, &err), STATUS_OK);
    assert_int_equal(watch.ended, PROGRAMS);
    assert_int_equal(watch.most, 4);
}

static void run_one(struct watch *watch, const char *script, enum status wanted, struct error *err)
{
    watch->count = 1;
    snprintf(watch->scripts[0], sizeof watch->scripts[0], "%s", script);
    const struct children_client client = {watch, next, ended, NULL};
    *err = (struct error){0};
    assert_int_equal(children_run(&client, 1, err), wanted);
}

static void ends_are_told(void **state)
{
    (void)state;
    struct error err;
    struct watch killed = {0}, long_one = {0}, talkative = {0}, silent = {0}, absent = {.program = "/nowhere/program"};
    struct watch busy = {0}, elsewhere = {.folder = "/usr"}, lost = {.folder = "/nowhere"};
    run_one(&killed, "kill -SEGV $$", STATUS_OK, &err);
    assert_int_equal(killed.last.signal, SIGSEGV);
    run_one(&long_one, "head -c 3000000 /dev/zero | tr '\\0' x; head -c 100000 /dev/zero >&2", STATUS_OK, &err);
    assert_int_equal(long_one.last.output_length, 3000000);
    run_one(&talkative, "head -c 100000 /dev/zero | tr '\\0' w >&2; echo >&2; echo error: why >&2", STATUS_OK, &err);
    assert_non_null(strstr(talkative.complaint, "www\nerror: why")); /* its last words are there */
    assert_string_equal(strchr(talkative.complaint, '\n'), "\nerror: why");
    run_one(&silent, "cat", STATUS_OK, &err); /* there is no input */
    assert_string_equal(silent.output, "");
    assert_string_equal(silent.complaint, "");
    run_one(&busy, "i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done", STATUS_OK, &err);
    assert_true(busy.last.cpu_s > 1e-3 && silent.last.cpu_s < busy.last.cpu_s);
    run_one(&elsewhere, "pwd", STATUS_OK, &err);
    assert_string_equal(elsewhere.output, "/usr\n");
    run_one(&lost, "pwd", STATUS_DEVICE, &err);
    assert_string_equal(err.text, "cannot start '/bin/sh': No such file or directory");
    run_one(&absent, "", STATUS_DEVICE, &err);
    assert_string_equal(err.text, "cannot start '/nowhere/program': No such file or directory");
}

/* A client that has nothing to start now is asked again. */
static void the_next_can_wait_for_the_last(void **state)
{
    (void)state;
    struct watch watch = {.count = 5, .one_by_one = true};
    struct error err = {0};
    for (uint32_t p = 0; p < watch.count; p++) snprintf(watch.scripts[p], sizeof watch.scripts[p], "true");
    const struct children_client client = {&watch, next, ended, NULL};
    assert_int_equal(children_run(&client, 3, &err), STATUS_OK);
    assert_int_equal(watch.ended, 5);
    assert_int_equal(watch.most, 1);
}

/* The other children do not outlive the call, which would take a minute. */
static void a_client_can_end_it(void **state)
{
    (void)state;
    struct watch watch = {.count = 3, .stop = true};
    struct error err = {0};
    snprintf(watch.scripts[0], sizeof watch.scripts[0], "true");
    for (uint32_t p = 1; p < 3; p++) snprintf(watch.scripts[p], sizeof watch.scripts[p], "exec sleep 60");
    const struct children_client client = {&watch, next, ended, NULL};
    double begun_s = clock_s();
    assert_int_equal(children_run(&client, 3, &err), STATUS_CHECK);
    assert_string_equal(err.text, "enough");
    assert_true(clock_s() - begun_s < 30);
}

static enum status interrupt(void *context, struct error *err)
{
    (void)context;
    (void)err;
    raise(SIGINT);
    return STATUS_OK;
}

static void ctrl_c_ends_it(void **state)
{
    (void)state;
    struct watch watch = {.count = 1};
    struct error err = {0};
    snprintf(watch.scripts[0], sizeof watch.scripts[0], "exec sleep 60");
    const struct children_client client = {&watch, next, ended, interrupt};
    assert_int_equal(children_run(&client, 1, &err), STATUS_INTERRUPTED);
    assert_int_equal(watch.ended, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_run_and_are_told_apart),
        cmocka_unit_test(ends_are_told),
        cmocka_unit_test(the_next_can_wait_for_the_last),
        cmocka_unit_test(a_client_can_end_it),
        cmocka_unit_test(ctrl_c_ends_it),
    };
    return cmocka_run_group_tests_name("children", tests, NULL, NULL);
}
