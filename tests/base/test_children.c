/* base/process/children.h: the reason why a program ended and its complaint; programs are reported as they end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/process/children.h"
#include "base/size.h"

static void a_reason_is_the_last_error(void **state)
{
    (void)state;
    static const struct {
        const char *complaint, *reason;
    } cases[] = {
        {"error: jobs.json:3:7: unknown key 'x'", "jobs.json:3:7: unknown key 'x'"},
        {"warning: old prices\nerror: nothing fits", "nothing fits"},
        {"error: nothing fits\nwarning: this is not in the history", "nothing fits"},
        {"error: one\nerror: two\n", "two"},
        {"Segmentation fault", "Segmentation fault"},
        {"a library says\nerror in line 7", "error in line 7"},
        {"an error: of ours stands first in its line", "an error: of ours stands first in its line"},
        {"error: ", ""},
        {"", ""},
    };
    char buffer[100];
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        assert_string_equal(children_reason(cases[i].complaint, buffer, sizeof buffer), cases[i].reason);
    assert_string_equal(children_reason("error: 1234567", buffer, 5), "1234");
}

struct heard {
    uint32_t begun, ended;
    char reason[100];
    int exit_code;
};

static bool next(void *context, struct children_start *out)
{
    static const char *const words[] = {"/bin/sh", "-c", "echo 'warning: a' >&2; echo 'error: b' >&2; exit 3", NULL};
    struct heard *heard = context;
    if (heard->begun > 0) return false;
    heard->begun++;
    *out = (struct children_start){.argv = words, .id = 7};
    return true;
}

static enum status ended(void *context, const struct children_end *end, struct error *err)
{
    struct heard *heard = context;
    (void)err;
    heard->ended += end->id == 7;
    heard->exit_code = end->exit_code;
    children_reason(end->complaint, heard->reason, sizeof heard->reason);
    return STATUS_OK;
}

static void a_program_says_why(void **state)
{
    (void)state;
    struct heard heard = {0};
    struct error err = {0};
    const struct children_client client = {.context = &heard, .next = next, .ended = ended};
    assert_int_equal(children_run(&client, 2, &err), STATUS_OK);
    assert_int_equal(heard.ended, 1);
    assert_int_equal(heard.exit_code, 3);
    assert_string_equal(heard.reason, "b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reason_is_the_last_error),
        cmocka_unit_test(a_program_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
