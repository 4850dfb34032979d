/* label: long
 * The committed library of instances: every best known schedule is one, has its value, no bound is above any
 * value, optima can be proven again, and the search comes near. Broken files are reported.
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

#include "base/size.h"
#include "planner/solve/certify/instance_library.h"
#include "tests/support/support_folder.h"

static const char *const folder = SOURCE_DIR "/docs/instances";

/* 60 iterations of the search and 20000 nodes: no clock, the same on every machine. */
static const struct certify_options limits = {.seed = 1, .iterations = 60, .search_limit_s = HUGE_VAL,
                                              .nodes_max = 20000, .exact_limit_s = HUGE_VAL};

static void library(void **state)
{
    (void)state;
    struct instance_library all = {0};
    struct error err = {0};
    double gap = 0;
    uint32_t closed = 0, reached = 0;
    if (instance_library_open(folder, &all, &err)) fail_msg("%s", err.text);
    assert_int_equal(all.count, 48);
    for (uint32_t i = 0; i < all.count; i++) {
        if (instance_library_solve(folder, &all, i, &limits, &err)) fail_msg("%s", err.text);
        const struct instance_library_row *row = &all.rows[i];
        if (row->found.value < row->best)
            print_message("%s: %lld, better than the best known %lld\n", row->name,
                          (long long)row->found.value, (long long)row->best);
        closed += row->best == row->best_bound;
        reached += !instance_library_worse(row);
        gap += (double)(row->found.value - row->best) / (double)row->best / all.count;
        /* the proven value was best before: an optimum that the file missed would show here */
        if (row->found.status != CERTIFICATE_GAP) assert_int_equal(row->found.value, row->best);
    }
    print_message("%u instances, %u closed, %u reached, mean gap to the best %.3f %%\n", all.count, closed,
                  reached, 100 * gap);
    assert_true(reached >= all.count / 2);
    assert_true(gap < 0.02);
    instance_library_release(&all);
}

/* --- broken libraries ------------------------------------------------------------------------ */

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Two tasks of 5 and 3 in one job on one device: 8, and the chain says so. */
static void broken(void **state)
{
    (void)state;
    static const struct {
        const char *best, *message;
    } cases[] = {
        {"{\"spillway_timetable\": 1, \"instance\": \"i\", \"objective\": \"makespan\", \"value\": 8, "
         "\"bound\": 8, \"devices\": [[[0, 0, 0], [0, 1, 5]]]}", NULL},
        {"{\"spillway_timetable\": 1, \"instance\": \"i\", \"objective\": \"makespan\", \"value\": 9, "
         "\"bound\": 9, \"devices\": [[[0, 0, 0], [0, 1, 6]]]}",
         "./best/i.json: the bound 9 is above the value 8 of now"},
        {"{\"spillway_timetable\": 1, \"instance\": \"i\", \"objective\": \"makespan\", \"value\": 7, "
         "\"bound\": 7, \"devices\": [[[0, 0, 0], [0, 1, 4]]]}",
         "./best/i.json: job 'a', task 1: starts at 4 on device 0, which cannot before 5"},
        {"{\"spillway_timetable\": 1, \"instance\": \"i\", \"objective\": \"makespan\", \"value\": 7, "
         "\"bound\": 7, \"devices\": [[[0, 0, 0], [0, 1, 5]]]}",
         "./best/i.json: claims a makespan of 7, and it is 8"},
        {"{\"spillway_timetable\": 1, \"instance\": \"i\", \"objective\": \"mean\", \"value\": 8, "
         "\"bound\": 8, \"devices\": [[[0, 0, 0], [0, 1, 5]]]}",
         "./best/i.json:1:57: 'mean', but the instance's is 'makespan'"},
    };
    char old[4096], made[SUPPORT_FOLDER_BYTES];
    assert_non_null(getcwd(old, sizeof old));
    support_folder_make(made);
    assert_int_equal(chdir(made), 0);
    assert_int_equal(mkdir("best", 0700), 0);
    struct instance_library none = {0};
    struct error err = {0};
    assert_int_equal(instance_library_open(".", &none, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "no instances in '.' (expected NAME.json and best/NAME.json)");
    instance_library_release(&none);
    put("i.json", "{\"spillway_instance\": 1, \"devices\": [{\"memory\": 1}], \"jobs\": [{\"name\": \"a\","
                  " \"units\": [{\"compute\": 5}, {\"compute\": 3}]}]}");
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        struct instance_library one = {0};
        err = (struct error){0};
        put("best/i.json", cases[c].best);
        assert_int_equal(instance_library_open(".", &one, &err), STATUS_OK);
        assert_int_equal(one.count, 1);
        enum status status = instance_library_solve(".", &one, 0, &limits, &err);
        if (cases[c].message) {
            assert_int_not_equal(status, STATUS_OK);
            if (strcmp(err.text, cases[c].message) != 0)
                fail_msg("'%s' (expected '%s')", err.text, cases[c].message);
        } else {
            if (status) fail_msg("%s", err.text);
            assert_false(instance_library_worse(&one.rows[0]));
        }
        instance_library_release(&one);
    }
    unlink("i.json");
    unlink("best/i.json");
    rmdir("best");
    assert_int_equal(chdir(old), 0);
    assert_int_equal(rmdir(made), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(library), cmocka_unit_test(broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
