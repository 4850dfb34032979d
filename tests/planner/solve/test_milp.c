/*
 * Mixed-integer programs: a knapsack whose optimum is known, files with its names, limits, and
 * solvers that are missing, killed, slow or write rubbish.
 * also uses: cbc highs
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

#include "base/files/file.h"
#include "base/process/clock.h"
#include "base/size.h"
#include "planner/solve/milp/milp.h"

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

/* --- relaxed and listed ----------------------------------------------------------------------- */

/*
 * Choose among a, b, c, d, which cost 3 5 4 6 and bring 2 4 3 7 of a demand of 9; the shortfall is bought at 2 each.
 * For choices x that is 3 a + 5 b + 4 c + 6 d + 2 max(0, 9 - the amount brought).
 */
enum { ITEMS = 4 };
static const double item_costs[ITEMS] = {3, 5, 4, 6}, item_brings[ITEMS] = {2, 4, 3, 7};
static const double demand = 9, shop = 2;

static struct milp *buying(void)
{
    struct milp *m = milp_create("buying");
    assert_non_null(m);
    for (uint32_t i = 0; i < ITEMS; i++) milp_column(m, 0, 1, item_costs[i], true, "x_%u", i);
    milp_column(m, 0, HUGE_VAL, shop, false, "bought");
    for (uint32_t i = 0; i < ITEMS; i++) milp_term(m, i, item_brings[i]);
    milp_term(m, ITEMS, 1);
    milp_row(m, demand, HUGE_VAL, "demand");
    return m;
}

static double brought(uint32_t set)
{
    double sum = 0;
    for (uint32_t i = 0; i < ITEMS; i++) sum += set >> i & 1 ? item_brings[i] : 0;
    return sum;
}

static double price_of_set(uint32_t set)
{
    double missing = demand - brought(set), sum = missing > 0 ? shop * missing : 0;
    for (uint32_t i = 0; i < ITEMS; i++) sum += set >> i & 1 ? item_costs[i] : 0;
    return sum;
}

/* With all items held at 0 or 1, one more in demand costs 2 where something is bought and else nothing. */
static void variants(void **state)
{
    (void)state;
    enum { SETS = 1 << ITEMS };
    struct milp *m = buying();
    struct milp_fixing fixings[SETS * ITEMS];
    struct milp_result r;
    struct error err = {0};
    for (uint32_t set = 0; set < SETS; set++)
        for (uint32_t i = 0; i < ITEMS; i++)
            fixings[set * ITEMS + i] = (struct milp_fixing){i, set >> i & 1 ? 1 : 0};
    const struct milp_options options = {.limit_s = 30, .relaxed = true, .fixings = fixings,
                                         .variant_count = SETS, .fixed_count = ITEMS};
    if (milp_solve(m, &options, &r, &err)) fail_msg("%s", err.text);
    assert_int_equal(r.dual_count, 1 + SETS);
    /* relaxed: 7 of d at 6/7 each, then 2 more of b at 5/4 each */
    assert_true(fabs(r.bound - 8.5) < 1e-9 && fabs(r.duals[0] - 1.25) < 1e-9);
    for (uint32_t set = 0; set < SETS; set++) {
        double dual = r.duals[1 + set];
        if (brought(set) != demand) assert_true(fabs(dual - (brought(set) < demand ? shop : 0)) < 1e-9);
        else assert_true(dual >= 0 && dual <= shop);
    }
    free(r.duals);
    milp_destroy(m);
}

/* Items held at more than there is: such a program has no answer, and the programs after it have one. */
static void variants_without_answer(void **state)
{
    (void)state;
    struct milp *m = milp_create("room");
    struct milp_result r;
    struct error err = {0};
    const struct milp_fixing fixings[] = {{0, 5}, {0, 1}};
    assert_non_null(m);
    milp_column(m, 0, 9, 1, false, "x");
    milp_column(m, 0, HUGE_VAL, 4, false, "y");
    milp_term(m, 0, 1);
    milp_row(m, -HUGE_VAL, 3, "most");
    milp_term(m, 0, 1);
    milp_term(m, 1, 1);
    milp_row(m, 2, HUGE_VAL, "least");
    const struct milp_options options = {.limit_s = 30, .relaxed = true, .fixings = fixings,
                                         .variant_count = 2, .fixed_count = 1};
    if (milp_solve(m, &options, &r, &err)) fail_msg("%s", err.text);
    assert_int_equal(r.dual_count, 3);
    assert_true(fabs(r.duals[1] - 1) < 1e-9); /* x = 2 */
    assert_true(r.duals[2] == 0 && r.duals[3] == 0);
    assert_true(fabs(r.duals[5] - 4) < 1e-9); /* x = 1, and one y */
    free(r.duals);
    milp_destroy(m);
}

/* Every set at or below the cutoff, each once, with its cost. */
static void lists(void **state)
{
    (void)state;
    static const double cutoffs[] = {5, 9.5, 12.25, 15, 100};
    static const uint32_t listed[] = {0, 1, 2, 3};
    struct milp *m = buying();
    for (size_t k = 0; k < ARRAY_COUNT(cutoffs); k++) {
        const struct milp_options options = {.limit_s = 30, .listed = listed, .listed_count = ITEMS,
                                             .list_max = 1 << ITEMS, .cutoff = cutoffs[k]};
        struct milp_result r;
        struct error err = {0};
        uint32_t seen = 0, expected = 0;
        if (milp_solve(m, &options, &r, &err)) fail_msg("%s", err.text);
        for (uint32_t i = 0; i < r.setting_count; i++) {
            uint32_t set = 0;
            for (uint32_t c = 0; c < ITEMS; c++) set |= (uint32_t)r.settings[i * ITEMS + c] << c;
            assert_false(seen >> set & 1);
            seen |= UINT32_C(1) << set;
            assert_true(fabs(r.setting_values[i] - price_of_set(set)) < 1e-9);
        }
        for (uint32_t set = 0; set < 1 << ITEMS; set++)
            if (price_of_set(set) <= cutoffs[k]) expected |= UINT32_C(1) << set;
        assert_int_equal(seen, expected);
        /* at its limit a list may or may not be complete */
        if (r.setting_count < options.list_max) assert_int_equal(r.status, MILP_INFEASIBLE);
        free(r.settings);
        free(r.setting_values);
    }
    const struct milp_options few = {.limit_s = 30, .listed = listed, .listed_count = ITEMS, .list_max = 3,
                                     .cutoff = 15};
    struct milp_result r;
    struct error err = {0};
    if (milp_solve(m, &few, &r, &err)) fail_msg("%s", err.text);
    assert_int_equal(r.setting_count, 3);
    assert_int_equal(r.status, MILP_STOPPED);
    free(r.settings);
    free(r.setting_values);
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
    assert_true(r.found); /* a known solution is never lost */
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
        cmocka_unit_test(variants), cmocka_unit_test(variants_without_answer), cmocka_unit_test(lists),
        cmocka_unit_test(files),  cmocka_unit_test(scripts),    cmocka_unit_test(missing),
        cmocka_unit_test(cbc),    cmocka_unit_test(highs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
