/*
 * Mixed-integer programs: a knapsack whose optimum is known, files with its names, limits, and
 * solvers that are missing, killed, slow or write rubbish.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/progress.h"
#include "base/size.h"
#include "planner/milp.h"

/* Values 8 11 6 4, weights 5 7 4 3, room 14: items 1, 2 and 3 (7 + 4 + 3 = 14) are worth 21. */
static struct milp *knapsack(double room)
{
    static const double values[] = {8, 11, 6, 4}, weights[] = {5, 7, 4, 3};
    struct milp *m = milp_create("knapsack");
    assert_non_null(m);
    for (uint32_t i = 0; i < ARRAY_COUNT(values); i++) milp_column(m, 0, 1, -values[i], true, "take_%u", i);
    for (uint32_t i = 0; i < ARRAY_COUNT(values); i++) milp_term(m, i, weights[i]);
    milp_row(m, -HUGE_VAL, room, "room");
    return m;
}

static void solves(void **state)
{
    (void)state;
    static const double poor[] = {1, 1, 0, 0}, wrong[] = {1, 1, 1, 0};
    struct milp *m = knapsack(14);
    struct milp_options options = {.limit_s = 30};
    struct milp_result r;
    struct error err = {0};
    assert_true(milp_feasible(m, poor));
    assert_false(milp_feasible(m, wrong));
    for (int run = 0; run < 3; run++) {
        options.incumbent = run == 1 ? poor : NULL;
        options.cuts = run == 2;
        if (milp_solve(m, &options, &r, &err)) fail_msg("%s", err.text);
        assert_int_equal(r.status, MILP_OPTIMAL);
        assert_true(r.found && fabs(r.value + 21) < 1e-9 && fabs(r.bound + 21) < 1e-9);
        assert_true(r.x[1] > 0.5 && r.x[2] > 0.5 && r.x[3] > 0.5 && r.x[0] < 0.5);
        free(r.x);
    }
    options.incumbent = wrong;
    assert_int_equal(milp_solve(m, &options, &r, &err), STATUS_CHECK);
    assert_string_equal(err.text, "the solution to start from breaks a row or a bound");
    milp_destroy(m);
}

static void infeasible(void **state)
{
    (void)state;
    struct milp *m = knapsack(-1);
    struct milp_options options = {.limit_s = 30};
    struct milp_result r;
    struct error err = {0};
    assert_int_equal(milp_solve(m, &options, &r, &err), STATUS_OK);
    assert_int_equal(r.status, MILP_INFEASIBLE);
    assert_false(r.found);
    milp_destroy(m);
}

/* An equation over even numbers with an odd sum: no solution, and no LP that shows it. */
static struct milp *endless(void)
{
    struct milp *m = milp_create("parity");
    assert_non_null(m);
    for (uint32_t i = 0; i < 60; i++) milp_column(m, 0, 1, i % 7, true, "x_%u", i);
    for (uint32_t i = 0; i < 60; i++) milp_term(m, i, 2);
    milp_row(m, 59, 59, "odd");
    return m;
}

static void limits(void **state)
{
    (void)state;
    static const double seconds[] = {-1, 0, 0.001, 0.3};
    struct milp *m = endless();
    for (size_t l = 0; l < ARRAY_COUNT(seconds); l++) {
        struct milp_options options = {.limit_s = seconds[l]};
        struct milp_result r;
        struct error err = {0};
        double started = clock_s();
        if (milp_solve(m, &options, &r, &err)) fail_msg("%s", err.text);
        assert_true(clock_s() - started < 2);
        assert_int_equal(r.status, MILP_STOPPED);
        assert_false(r.found);
        free(r.x);
    }
    milp_destroy(m);
}

/* --- files ----------------------------------------------------------------------------------- */

static char *contents(const char *path)
{
    char *text;
    size_t length;
    struct error err = {0};
    if (file_read(path, 1 << 20, &text, &length, &err)) fail_msg("%s", err.text);
    return text;
}

static void files(void **state)
{
    (void)state;
    char path[] = "/tmp/spillway-milp-test-XXXXXX";
    struct milp *m = knapsack(14);
    struct error err = {0};
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    if (milp_write_lp(m, path, &err)) fail_msg("%s", err.text);
    char *text = contents(path);
    assert_non_null(strstr(text, "room: + 3 take_3 + 4 take_2 + 7 take_1 + 5 take_0 <= 14"));
    free(text);
    if (milp_write_mps(m, path, &err)) fail_msg("%s", err.text);
    text = contents(path);
    assert_non_null(strstr(text, "take_2"));
    free(text);
    unlink(path);
    assert_int_equal(milp_write_mps(m, "/nowhere/at/all.mps", &err), STATUS_IO);
    assert_string_equal(err.text, "cannot write '/nowhere/at/all.mps': No such file or directory");
    milp_destroy(m);
}

/* --- other solvers --------------------------------------------------------------------------- */

/* A solver that is a shell script; "$6" is the solution's file. */
static void with_script(const char *body, const char *message, enum milp_status status, bool found)
{
    static const double known[] = {0, 0, 1, 1};
    char path[] = "/tmp/spillway-solver-XXXXXX", expected[256];
    struct milp *m = knapsack(14);
    struct milp_options options = {.solver = path, .limit_s = 0.4, .incumbent = known};
    struct milp_result r;
    struct error err = {0};
    int file = mkstemp(path);
    assert_true(file >= 0);
    FILE *script = fdopen(file, "w");
    fprintf(script, "#!/bin/sh\n%s\n", body);
    fclose(script);
    assert_int_equal(chmod(path, 0700), 0);
    double started = clock_s();
    enum status failed = milp_solve(m, &options, &r, &err);
    assert_true(clock_s() - started < 5);
    if (message) {
        snprintf(expected, sizeof expected, message, path);
        assert_int_equal(failed, STATUS_DEVICE);
        assert_string_equal(err.text, expected);
    } else if (failed) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(r.status, status);
    assert_true(r.found); /* what was known is never lost */
    assert_true(fabs(r.value + (found ? 21 : 10)) < 1e-9);
    free(r.x);
    unlink(path);
    milp_destroy(m);
}

static void scripts(void **state)
{
    (void)state;
    with_script("printf 'Optimal - objective value -21\\n 1 take_1 1 -11\\n 2 take_2 1 -6\\n 3 take_3 1 -4\\n' >\"$6\"",
                NULL, MILP_OPTIMAL, true);
    with_script("printf 'Model status\\nOptimal\\n\\n# Primal solution values\\nFeasible\\nObjective -21\\n"
                "# Columns 4\\ntake_0 0\\ntake_1 1\\ntake_2 1\\ntake_3 1\\n# Rows 1\\nroom 14\\n' >\"$6\"",
                NULL, MILP_OPTIMAL, true);
    with_script("printf 'Optimal - objective value -25\\n 0 take_0 1 0\\n 1 take_1 1 0\\n 2 take_2 1 0\\n' >\"$6\"",
                "the solution of the solver '%s' breaks the rows it was given", MILP_STOPPED, false);
    with_script("echo '<html>not found</html>' >\"$6\"",
                "the solution of the solver '%s' cannot be read", MILP_STOPPED, false);
    with_script(": >\"$6\"", "the solution of the solver '%s' cannot be read", MILP_STOPPED, false);
    with_script("exit 0", "the solver '%s' left no solution", MILP_STOPPED, false);
    with_script("exit 3", "the solver '%s' failed with exit code 3", MILP_STOPPED, false);
    with_script("kill -SEGV $$", "the solver '%s' was ended by signal 11 (Segmentation fault)",
                MILP_STOPPED, false);
    with_script("sleep 60", NULL, MILP_STOPPED, false);
}

static void missing(void **state)
{
    (void)state;
    struct milp *m = knapsack(14);
    struct milp_options options = {.solver = "/no/such/solver", .limit_s = 1};
    struct milp_result r;
    struct error err = {0};
    assert_int_equal(milp_solve(m, &options, &r, &err), STATUS_DEVICE);
    assert_string_equal(err.text, "cannot start the solver '/no/such/solver': No such file or directory");
    milp_destroy(m);
}

static void with_program(const char *name)
{
    struct milp *m = knapsack(14), *none = knapsack(-1);
    struct milp_options options = {.solver = name, .limit_s = 30};
    struct milp_result r;
    struct error err = {0};
    if (milp_solve(m, &options, &r, &err)) fail_msg("%s", err.text);
    assert_int_equal(r.status, MILP_OPTIMAL);
    assert_true(r.found && fabs(r.value + 21) < 1e-6);
    free(r.x);
    if (milp_solve(none, &options, &r, &err)) fail_msg("%s", err.text);
    assert_int_equal(r.status, MILP_INFEASIBLE);
    free(r.x);
    milp_destroy(m);
    milp_destroy(none);
}

static void cbc(void **state)
{
    (void)state;
    if (system("command -v cbc >/dev/null") != 0) skip();
    with_program("cbc");
}

static void highs(void **state)
{
    (void)state;
    if (system("command -v highs >/dev/null") != 0) skip();
    with_program("highs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solves), cmocka_unit_test(infeasible), cmocka_unit_test(limits),
        cmocka_unit_test(files),  cmocka_unit_test(scripts),    cmocka_unit_test(missing),
        cmocka_unit_test(cbc),    cmocka_unit_test(highs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
