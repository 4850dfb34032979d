/*
 * cli/sweep: axes as they are typed, points of grids, fronts against comparing all with all, CSV, and results that are
 * kept when a sweep is stopped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/random.h"
#include "base/size.h"
#include "cli/sweep/kept.h"
#include "cli/sweep/report_figure.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

static char folder[SUPPORT_FOLDER_BYTES], path[96], other_path[96];

static int make_folder(void **state)
{
    (void)state;
    support_folder_make(folder);
    snprintf(path, sizeof path, "%s/sweep.part", folder);
    snprintf(other_path, sizeof other_path, "%s/other", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    unlink(other_path);
    return rmdir(folder);
}

/* --- axes ------------------------------------------------------------------------------------ */

static void values_are_read_as_typed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *values, *unit;
        bool numeric;
    } cases[] = {
        {"devices=1..5", "1 2 3 4 5", "", true},
        {"devices=1..3,8,16", "1 2 3 8 16", "", true},
        {"devices=1..64:x4", "1 4 16 64", "", true},
        {"devices=1..40:x4", "1 4 16", "", true},
        {"link.rate=6..64GB/s", "6GB/s 12GB/s 24GB/s 48GB/s 64GB/s", "GB/s", true},
        {"link-rate=8..64GB/s", "8GB/s 16GB/s 32GB/s 64GB/s", "GB/s", true},
        {"link-rate=10GB/s..30GB/s:5", "10GB/s 15GB/s 20GB/s 25GB/s 30GB/s", "GB/s", true},
        {"device-memory=8..24GiB:+4", "8GiB 12GiB 16GiB 20GiB 24GiB", "GiB", true},
        {"link-rate=4..9GB/s:+2GB/s", "4GB/s 6GB/s 8GB/s", "GB/s", true},
        {"noise=0..0.3:4", "0 0.1 0.2 0.3", "", true},
        {"noise=0.5..2", "0.5 1 2", "", true},
        {"policy=fifo,srtf", "fifo srtf", "", false},
        {"hw=8x a100-sxm4-80gb,4x h100-sxm5-80gb", "8x a100-sxm4-80gb|4x h100-sxm5-80gb", "", false},
        {"link-rate=6GB/s,500MB/s", "6GB/s 500MB/s", "", false},
        {"link-rate=6,12.5,25GB/s", "6GB/s 12.5GB/s 25GB/s", "GB/s", true},
        {"link-rate=2,500MB/s,4..16GB/s", "2GB/s 500MB/s 4GB/s 8GB/s 16GB/s", "", false},
        {"link-rate=4..16,24,64GB/s", "4GB/s 8GB/s 16GB/s 24GB/s 64GB/s", "GB/s", true},
        {"link-rate=2,4..9GB/s:+2", "2GB/s 4GB/s 6GB/s 8GB/s", "GB/s", true},
        {"link-rate=2..4:+1,9GB/s", "2GB/s 3GB/s 4GB/s 9GB/s", "GB/s", true},
        {"rate=1e3,0.50", "1e3 0.50", "", true},
        {"file=../a.json,b..c", "../a.json b..c", "", false},
        {"t=-2..2", "-2 -1 0 1 2", "", true},
    };
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        struct arena arena = {0};
        struct error err = {0};
        struct sweep_axis axis;
        char text[512] = "";
        if (sweep_axis_parse(cases[c].text, &arena, &axis, &err) != STATUS_OK)
            fail_msg("%s: %s", cases[c].text, err.text);
        for (size_t v = 0; v < axis.count; v++) {
            if (v > 0) strcat(text, strchr(cases[c].values, '|') ? "|" : " ");
            strcat(text, axis.values[v].text);
        }
        assert_string_equal(text, cases[c].values);
        assert_string_equal(axis.unit, cases[c].unit);
        assert_int_equal(axis.numeric, cases[c].numeric);
        arena_release(&arena);
    }
}

static void wrong_axes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"devices", "option '--vary' is 'devices' (expected NAME=VALUES, such as devices=1..8)"},
        {"devices=", "option '--vary' is 'devices=' (expected NAME=VALUES, such as devices=1..8)"},
        {"=1", "option '--vary' is '=1' (expected NAME=VALUES, such as devices=1..8)"},
        {"d=1,,2", "option '--vary': '' of 'd=1,,2' (expected a value between commas)"},
        {"d=4..1", "option '--vary': '4..1' of 'd=4..1' (expected a range that ends above its beginning)"},
        {"d=1,2,1", "option '--vary': 'd=1,2,1' has the value '1' twice"},
        {"r=6MB/s..64GB/s", "option '--vary': '6MB/s..64GB/s' of 'r=6MB/s..64GB/s' (expected the same unit at both "
                            "ends of a range)"},
        {"r=1..64:x1", "option '--vary': '1..64:x1' of 'r=1..64:x1' (expected a factor above 1 and a beginning above "
                       "0)"},
        {"r=0..64GB/s", "option '--vary': '0..64GB/s' of 'r=0..64GB/s' (expected a factor above 1 and a beginning "
                        "above 0)"},
        {"r=1..64:+0", "option '--vary': '1..64:+0' of 'r=1..64:+0' (expected a step above 0)"},
        {"r=1..64:1", "option '--vary': '1..64:1' of 'r=1..64:1' (expected at least two values)"},
        {"r=1..9GB/s:+2MB/s", "option '--vary': '1..9GB/s:+2MB/s' of 'r=1..9GB/s:+2MB/s' (expected a count such as "
                              "':5', ':x2' or ':+4' after the range)"},
        {"r=1..64:y", "option '--vary': '1..64:y' of 'r=1..64:y' (expected a count such as ':5', ':x2' or ':+4' after "
                      "the range)"},
        {"r=1..", "option '--vary': '1..' of 'r=1..' (expected a range such as 1..16, 6..64GB/s, 1..64:x2, 10..30:5 or "
                  "8..24GiB:+4)"},
        {"r=1..100000", "too many values of one --vary (limit is 10000)"},
    };
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        struct arena arena = {0};
        struct error err = {0};
        struct sweep_axis axis;
        assert_int_not_equal(sweep_axis_parse(cases[c].text, &arena, &axis, &err), STATUS_OK);
        assert_string_equal(err.text, cases[c].message);
        arena_release(&arena);
    }
}

/* --- grids ----------------------------------------------------------------------------------- */

static void every_combination_is_one_point(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    struct sweep_grid grid = {0};
    assert_int_equal(sweep_grid_add(&grid, "a=1..3", &arena, &err), STATUS_OK);
    assert_int_equal(sweep_grid_add(&grid, "b=x,y", &arena, &err), STATUS_OK);
    assert_int_equal(sweep_grid_add(&grid, "c=1..4", &arena, &err), STATUS_OK);
    assert_int_equal(grid.point_count, 24);
    uint64_t point = 0;
    for (size_t a = 0; a < 3; a++)
        for (size_t b = 0; b < 2; b++)
            for (size_t c = 0; c < 4; c++, point++) {
                assert_int_equal(sweep_grid_index(&grid, point, 0), a);
                assert_int_equal(sweep_grid_index(&grid, point, 1), b);
                assert_int_equal(sweep_grid_index(&grid, point, 2), c);
            }
    assert_int_equal(sweep_grid_add(&grid, "b=2", &arena, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "option '--vary': 'b' is varied twice");
    arena_release(&arena);
}

/* --- figures --------------------------------------------------------------------------------- */

static void figures_are_found_by_path(void **state)
{
    (void)state;
    json_t *report = json_loads("{\"makespan_s\": 2.5, \"fits\": true, \"places\": [{\"name\": \"host\", \"peak\": 1},"
                                "{\"name\": \"gpu0\", \"peak\": 7}], \"text\": \"x\"}", 0, NULL);
    assert_true(sweep_figure_read(report, "makespan_s") == 2.5);
    assert_true(sweep_figure_read(report, "fits") == 1);
    assert_true(sweep_figure_read(report, "places[1].peak") == 7);
    assert_true(sweep_figure_read(report, "places[gpu0].peak") == 7);
    static const char *const absent[] = {"nothing", "text", "places", "places[2].peak", "places[gpu1].peak",
                                         "makespan_s.x"};
    for (size_t a = 0; a < ARRAY_COUNT(absent); a++) assert_true(isnan(sweep_figure_read(report, absent[a])));
    static const char *const wrong[] = {"", ".a", "[0]", "a.", "a[", "a[]", "a[0]b"};
    for (size_t w = 0; w < ARRAY_COUNT(wrong); w++) {
        struct error err = {0};
        assert_int_equal(sweep_figure_check(wrong[w], &err), STATUS_BAD_INPUT);
    }
    json_decref(report);
}

static void better_is_told_by_the_name(void **state)
{
    (void)state;
    static const char *const less[] = {"makespan_s", "places[gpu0].peak_bytes", "cost_usd", "gap"};
    static const char *const more[] = {"tokens_per_s", "compute_utilisation", "jobs[0].samples_per_s"};
    for (size_t l = 0; l < ARRAY_COUNT(less); l++) assert_true(sweep_less_is_better(less[l]));
    for (size_t m = 0; m < ARRAY_COUNT(more); m++) assert_false(sweep_less_is_better(more[m]));
}

/* --- fronts ---------------------------------------------------------------------------------- */

static const char *const two_figures[] = {"makespan_s", "tokens_per_s"};

/* A point that is neither better nor worse in any figure is the same point. */
static bool beats(const struct sweep_result *a, const struct sweep_result *b)
{
    bool as_good = a->figures[0] <= b->figures[0] && a->figures[1] >= b->figures[1];
    return as_good && (a->figures[0] < b->figures[0] || a->figures[1] > b->figures[1]);
}

static void fronts_are_what_nobody_beats(void **state)
{
    (void)state;
    uint64_t seed = support_seed("sweep");
    for (uint64_t round = 0; round < 300; round++) {
        struct arena arena = {0};
        struct error err = {0};
        struct sweep_grid grid = {0};
        struct sweep_results results;
        bool front[60];
        uint64_t key = random_u64(seed, round), points = 1 + random_below(key, 0, 60);
        char axis[32];
        snprintf(axis, sizeof axis, "p=1..%llu", (unsigned long long)points);
        if (points == 1) snprintf(axis, sizeof axis, "p=1");
        assert_int_equal(sweep_grid_add(&grid, axis, &arena, &err), STATUS_OK);
        assert_int_equal(sweep_results_create(&grid, two_figures, 2, &arena, &results, &err), STATUS_OK);
        for (uint64_t p = 0; p < points; p++)
            for (uint32_t f = 0; f < 2; f++) /* few values, so that many are equal; some unknown */
                if (random_below(key, 10 + 4 * p + f, 12) > 0)
                    results.points[p].figures[f] = (double)random_below(key, 10 + 4 * p + 2 + f, 8);
        assert_int_equal(sweep_results_front(&results, 0, 1, front, &err), STATUS_OK);
        for (uint64_t p = 0; p < points; p++) {
            const double *figures = results.points[p].figures;
            bool wanted = !isnan(figures[0]) && !isnan(figures[1]);
            for (uint64_t q = 0; q < points; q++) wanted = wanted && !beats(&results.points[q], &results.points[p]);
            if (front[p] != wanted) fail_msg("SPILLWAY_SEED=%llu, round %llu, point %llu", (unsigned long long)seed,
                                             (unsigned long long)round, (unsigned long long)p);
        }
        arena_release(&arena);
    }
}

/* --- files ----------------------------------------------------------------------------------- */

struct made {
    struct arena arena;
    struct sweep_grid grid;
    struct sweep_results results;
};

static void make(struct made *made)
{
    struct error err = {0};
    *made = (struct made){0};
    assert_int_equal(sweep_grid_add(&made->grid, "rate=1..4GB/s", &made->arena, &err), STATUS_OK);
    assert_int_equal(sweep_grid_add(&made->grid, "na\"me=it's,b", &made->arena, &err), STATUS_OK);
    assert_int_equal(sweep_results_create(&made->grid, two_figures, 2, &made->arena, &made->results, &err), STATUS_OK);
}

/* Makes point p's result; some points have each outcome. */
static struct sweep_result result_of(const struct made *made, uint64_t p)
{
    struct sweep_result result = made->results.points[p];
    result.outcome = p == 2 ? SWEEP_NO : p == 3 ? SWEEP_REFUSED : SWEEP_DONE;
    if (result.outcome == SWEEP_DONE) result.figures[0] = 0.1 * (double)p;
    if (p == 1) result.figures[1] = 1e6;
    if (result.outcome != SWEEP_DONE) snprintf(result.reason, sizeof result.reason, "no \"room\", %d", (int)p);
    return result;
}

static void csv_has_a_line_per_point(void **state)
{
    (void)state;
    struct made made;
    struct error err = {0};
    char *text;
    size_t length;
    make(&made);
    for (uint64_t p = 0; p < 6; p++) made.results.points[p] = result_of(&made, p);
    made.results.points[5].outcome = SWEEP_PENDING;
    made.results.points[5].figures[0] = NAN;
    assert_int_equal(sweep_results_csv(&made.results, other_path, &err), STATUS_OK);
    assert_int_equal(file_read(other_path, 10000, &text, &length, &err), STATUS_OK);
    assert_string_equal(text, "rate [GB/s],\"na\"\"me\",outcome,makespan_s,tokens_per_s,reason\r\n"
                              "1,it's,done,0,,\r\n"
                              "1,b,done,0.1,1000000,\r\n"
                              "2,it's,no,,,\"no \"\"room\"\", 2\"\r\n"
                              "2,b,refused,,,\"no \"\"room\"\", 3\"\r\n"
                              "4,it's,done,0.4,,\r\n"
                              "4,b,pending,,,\r\n");
    free(text);
    arena_release(&made.arena);
}

/* Stores points in `order`, stops after `before` points, resumes, and writes to other_path. */
static void keep(const uint64_t *order, size_t before)
{
    struct error err = {0};
    for (size_t part = 0; part < 2; part++) {
        struct made made;
        struct sweep_kept *kept;
        uint64_t found;
        make(&made);
        assert_int_equal(sweep_kept_open(path, "what", &made.results, &found, &kept, &err), STATUS_OK);
        assert_int_equal(found, part == 0 ? 0 : before);
        for (size_t i = 0; part == 1 && i < before; i++) {
            struct sweep_result wanted = result_of(&(struct made){.results = made.results}, order[i]);
            const struct sweep_result *there = &made.results.points[order[i]];
            assert_int_equal(there->outcome, wanted.outcome);
            assert_string_equal(there->reason, wanted.reason);
            for (uint32_t f = 0; f < 2; f++)
                assert_true(there->figures[f] == wanted.figures[f] ||
                            (isnan(there->figures[f]) && isnan(wanted.figures[f])));
        }
        for (size_t i = part == 0 ? 0 : before; i < (part == 0 ? before : 6); i++) {
            struct sweep_result result = result_of(&made, order[i]);
            assert_int_equal(sweep_kept_add(kept, &result, &err), STATUS_OK);
        }
        if (part == 1) assert_int_equal(sweep_kept_write(kept, other_path, &err), STATUS_OK);
        sweep_kept_close(kept, part == 1);
        arena_release(&made.arena);
    }
    assert_int_not_equal(access(path, F_OK), 0);
}

static void results_outlive_a_stop(void **state)
{
    (void)state;
    static const uint64_t orders[][6] = {{0, 1, 2, 3, 4, 5}, {5, 3, 1, 0, 2, 4}};
    char *texts[2];
    size_t lengths[2];
    struct error err = {0};
    for (size_t o = 0; o < 2; o++) {
        keep(orders[o], o == 0 ? 2 : 5);
        assert_int_equal(file_read(other_path, 1 << 20, &texts[o], &lengths[o], &err), STATUS_OK);
        unlink(other_path);
    }
    assert_int_equal(lengths[0], lengths[1]); /* whatever came when */
    assert_memory_equal(texts[0], texts[1], lengths[0]);
    free(texts[0]);
    free(texts[1]);
}

/* Rows that no sweep has written are reported: a point that counts but has no result, or an invalid figure. */
static void damaged_rows_are_refused(void **state)
{
    (void)state;
    static const char *const damages[] = {
        "UPDATE points SET outcome = 'perhaps' WHERE point = 4", "UPDATE points SET point = 6 WHERE point = 4",
        "UPDATE points SET makespan_s = 9e999 WHERE point = 4", "UPDATE points SET makespan_s = 'soon' WHERE point = 4",
        "CREATE TABLE more AS SELECT * FROM points; DROP TABLE points; ALTER TABLE more RENAME TO points;"
        "INSERT INTO points SELECT * FROM points WHERE point = 0"};
    for (size_t d = 0; d < sizeof damages / sizeof *damages; d++) {
        struct made made;
        struct error err = {0};
        struct sweep_kept *kept;
        sqlite3 *database;
        uint64_t found;
        make(&made);
        assert_int_equal(sweep_kept_open(path, "what", &made.results, &found, &kept, &err), STATUS_OK);
        for (uint64_t p = 0; p <= 4; p += 4) {
            struct sweep_result result = result_of(&made, p);
            assert_int_equal(sweep_kept_add(kept, &result, &err), STATUS_OK);
        }
        sweep_kept_close(kept, false);
        arena_release(&made.arena);
        assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
        assert_int_equal(sqlite3_exec(database, damages[d], NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(database);
        make(&made);
        assert_int_equal(sweep_kept_open(path, "what", &made.results, &found, &kept, &err), STATUS_BAD_INPUT);
        assert_non_null(strstr(err.text, "' is damaged: the data after its point 1 is invalid"));
        arena_release(&made.arena);
        unlink(path);
    }
}

static void another_sweep_is_not_gone_on_with(void **state)
{
    (void)state;
    struct made made;
    struct sweep_kept *kept;
    struct error err = {0};
    uint64_t found;
    char message[256];
    make(&made);
    assert_int_equal(sweep_kept_open(path, "what", &made.results, &found, &kept, &err), STATUS_OK);
    sweep_kept_close(kept, false);
    assert_int_equal(sweep_kept_open(path, "another", &made.results, &found, &kept, &err), STATUS_BAD_INPUT);
    snprintf(message, sizeof message, "'%s' is of another sweep that was begun (end that one, or remove the file)",
             path);
    assert_string_equal(err.text, message);
    unlink(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("point,figure\n1,2\n and more than a page of nothing that a database begins with\n", file);
    assert_int_equal(fclose(file), 0);
    err = (struct error){0};
    assert_int_equal(sweep_kept_open(path, "what", &made.results, &found, &kept, &err), STATUS_BAD_INPUT);
    unlink(path);
    sqlite3 *other; /* somebody else's, which stays as it was: a journal's mode would be written to it */
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "PRAGMA application_id=7; CREATE TABLE letters(text)", NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(other);
    char *before, *after;
    size_t length, length_after;
    err = (struct error){0};
    assert_int_equal(file_read(path, 1 << 20, &before, &length, &err), STATUS_OK);
    assert_int_equal(sweep_kept_open(path, "what", &made.results, &found, &kept, &err), STATUS_BAD_INPUT);
    snprintf(message, sizeof message, "'%s' is not a sweep that was begun (it is another program's database)", path);
    assert_string_equal(err.text, message);
    err = (struct error){0};
    assert_int_equal(file_read(path, 1 << 20, &after, &length_after, &err), STATUS_OK);
    assert_int_equal(length, length_after);
    assert_memory_equal(before, after, length);
    free(before);
    free(after);
    arena_release(&made.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read_as_typed),
        cmocka_unit_test(wrong_axes_are_refused),
        cmocka_unit_test(every_combination_is_one_point),
        cmocka_unit_test(figures_are_found_by_path),
        cmocka_unit_test(better_is_told_by_the_name),
        cmocka_unit_test(fronts_are_what_nobody_beats),
        cmocka_unit_test_setup_teardown(csv_has_a_line_per_point, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(results_outlive_a_stop, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(damaged_rows_are_refused, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(another_sweep_is_not_gone_on_with, make_folder, remove_folder),
    };
    return cmocka_run_group_tests_name("sweep", tests, NULL, NULL);
}
