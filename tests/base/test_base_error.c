/*
 * base/error.h: the first error wins, causes are put in front, nothing a terminal would obey gets
 * through, and every status has its exit code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

static void first_error_wins(void **state)
{
    (void)state;
    struct error err = {0};
    assert_int_equal(error_set(&err, STATUS_LIMIT, "too many %s (limit is %d)", "tasks", 7),
                     STATUS_LIMIT);
    assert_int_equal(error_set(&err, STATUS_IO, "second"), STATUS_LIMIT);
    errno = ENOENT;
    assert_int_equal(error_io(&err, "third"), STATUS_LIMIT);
    assert_int_equal(error_memory(&err, "fourth", 3), STATUS_LIMIT);
    assert_string_equal(err.text, "too many tasks (limit is 7)");
    assert_int_equal(err.status, STATUS_LIMIT);
}

static void prefix_says_what_was_done(void **state)
{
    (void)state;
    struct error err = {0};
    errno = ENOSPC;
    assert_int_equal(error_io(&err, "cannot write '%s'", "a.json"), STATUS_IO);
    assert_int_equal(error_add(&err, "job %d", 3), STATUS_IO);
    assert_int_equal(error_add(&err, "plan"), STATUS_IO);
    assert_string_equal(err.text, "plan: job 3: cannot write 'a.json': No space left on device");
}

/* A wrong name is the user's mistake, a broken disk is not. */
static void inputs_that_are_not_there_are_bad_input(void **state)
{
    (void)state;
    const struct {
        int number;
        enum status expected;
    } cases[] = {{ENOENT, STATUS_BAD_INPUT}, {ENOTDIR, STATUS_BAD_INPUT}, {EISDIR, STATUS_BAD_INPUT},
                 {ELOOP, STATUS_BAD_INPUT},  {EACCES, STATUS_IO},         {EIO, STATUS_IO}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        errno = cases[i].number;
        assert_int_equal(error_input(&err, "cannot open '%s'", "a.json"), cases[i].expected);
    }
    struct error err = {0};
    errno = ENOENT;
    assert_int_equal(error_input(&err, "cannot open '%s'", "a.json"), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "cannot open 'a.json': No such file or directory");
}

static void memory_names_what_and_how_much(void **state)
{
    (void)state;
    struct error err = {0};
    assert_int_equal(error_memory(&err, "tasks", 123456789012), STATUS_NO_MEMORY);
    assert_string_equal(err.text, "no memory for tasks (123456789012 bytes)");
}

static void long_text_is_cut_with_dots(void **state)
{
    (void)state;
    char text[4 * sizeof ((struct error *)0)->text];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    struct error err = {0};
    error_set(&err, STATUS_CHECK, "%s", text);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_string_equal(err.text + sizeof err.text - 6, "xx...");
    error_add(&err, "in '%s'", "file");
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_memory_equal(err.text, "in 'file': xxx", 14);
    assert_string_equal(err.text + sizeof err.text - 6, "xx...");
}

static void control_characters_are_replaced(void **state)
{
    (void)state;
    struct error err = {0};
    error_set(&err, STATUS_BAD_INPUT, "unknown key '%s'", "\033[31mred\a\x7f\tone\nend\xc3\xa9");
    assert_string_equal(err.text, "unknown key '?[31mred???one?end\xc3\xa9'");
    /* U+009B begins a command of a terminal as ESC [ does; U+00A0, and 0x9b within a character, do not */
    struct error other = {0};
    error_set(&other, STATUS_BAD_INPUT, "\xc2\x9b" "31m \x9b \xc2\xa0 \xe2\x9b\x84 \xe9 \xc2");
    assert_string_equal(other.text, "??31m ? \xc2\xa0 \xe2\x9b\x84 \xe9 \xc2");
}

static void kept_control_characters(void **state)
{
    (void)state;
    char text[] = "a\tb\r\nc\0d\xc2\x85";
    text_clean(text, sizeof text - 1, "\t\n");
    assert_memory_equal(text, "a\tb?\nc?d??", sizeof text);
}

static void exit_codes(void **state)
{
    (void)state;
    assert_int_equal(error_exit_code(STATUS_OK), 0);
    assert_int_equal(error_exit_code(STATUS_INFEASIBLE), 1);
    assert_int_equal(error_exit_code(STATUS_CHECK), 1);
    assert_int_equal(error_exit_code(STATUS_BAD_INPUT), 2);
    assert_int_equal(error_exit_code(STATUS_LIMIT), 2);
    assert_int_equal(error_exit_code(STATUS_NO_MEMORY), 3);
    assert_int_equal(error_exit_code(STATUS_IO), 3);
    assert_int_equal(error_exit_code(STATUS_DEVICE), 3);
    assert_int_equal(error_exit_code(STATUS_INTERRUPTED), 130);
    assert_int_equal(error_exit_code(STATUS_MISSED), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_error_wins),
        cmocka_unit_test(prefix_says_what_was_done),
        cmocka_unit_test(inputs_that_are_not_there_are_bad_input),
        cmocka_unit_test(memory_names_what_and_how_much),
        cmocka_unit_test(long_text_is_cut_with_dots),
        cmocka_unit_test(control_characters_are_replaced),
        cmocka_unit_test(kept_control_characters),
        cmocka_unit_test(exit_codes),
    };
    return cmocka_run_group_tests_name("base/error.h", tests, NULL, NULL);
}
