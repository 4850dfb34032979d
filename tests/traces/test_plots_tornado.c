/* plots/plot.h, tornados: the text of the script, and refused tornados. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "plots/plot.h"
#include "tests/support/support_folder.h"

static const struct plot_effect effects[] = {{"products", -0.0875, 0.105}, {"latencies", 0, 0.0325},
                                             {"memory", -0.012, -0.002}};

static bool has(const char *text, const char *what) { return strstr(text, what) != NULL; }

/* Bars from 0 to either side; the second has one side, and so has the third, which does not reach 0. */
static void the_script_has_every_bar(void **state)
{
    (void)state;
    char folder[SUPPORT_FOLDER_BYTES], picture[64], script[64], *text;
    size_t length;
    struct error err = {0};
    support_folder_make(folder);
    snprintf(picture, sizeof picture, "%s/t.svg", folder);
    snprintf(script, sizeof script, "%s/t.gp", folder);
    const struct plot_options options = {.title = "of m", .keep_script = true};
    enum status status = plot_tornado(effects, 3, picture, &options, &err);
    if (status == STATUS_DEVICE) skip(); /* no gnuplot */
    if (status != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(file_read(script, 1 << 20, &text, &length, &err), STATUS_OK);
    assert_true(has(text, "\n-8.75 0 8 26 0x") && has(text, "\n0 10.5 8 26 0x"));
    assert_true(has(text, "\n0 3.25 34 52 0x") && !has(text, "\n0 0 34"));
    assert_true(has(text, "\n-1.2 -0.2 60 78 0x"));
    assert_true(has(text, "of m") && has(text, "+10.5 %") && has(text, "-8.8 %") && has(text, "latencies"));
    free(text);
    assert_int_equal(unlink(picture), 0);
    assert_int_equal(unlink(script), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void what_cannot_be_drawn_is_refused(void **state)
{
    (void)state;
    const struct plot_effect wrong[] = {{"a", 0.2, 0.1}}, endless[] = {{"b", 0, INFINITY}};
    const struct plot_options none = {0};
    struct error err = {0};
    assert_int_equal(plot_tornado(effects, 0, "t.svg", &none, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "there is no figure to draw");
    err = (struct error){0};
    assert_int_equal(plot_tornado(wrong, 1, "t.svg", &none, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "figure 'a' has no range");
    err = (struct error){0};
    assert_int_equal(plot_tornado(endless, 1, "t.svg", &none, &err), STATUS_BAD_INPUT);
    err = (struct error){0};
    assert_int_equal(plot_tornado(effects, 3, "t.pdf", &none, &err), STATUS_BAD_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_script_has_every_bar),
        cmocka_unit_test(what_cannot_be_drawn_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
