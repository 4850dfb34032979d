/*
 * cli/history/history.h, history_error.h: random records come back as they were, filtered as by hand; errors by group
 * against sums of their own; files that are no histories; writers at once.
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
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "base/size.h"
#include "cli/history/database.h"
#include "cli/history/history_error.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

static char folder[SUPPORT_FOLDER_BYTES], path[96];

static int make_folder(void **state)
{
    (void)state;
    support_folder_make(folder);
    snprintf(path, sizeof path, "%s/history.db", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path); /* if it is there */
    return rmdir(folder);
}

static const char *const verbs[] = {"plan", "simulate", "run"};
static const char *const policies[] = {NULL, "fifo", "sharded-lrtf", "it's; DROP TABLE records"};
static const char *const machines[] = {NULL, "4x a100-sxm4-80gb", "m\xc3\xbcller's"};

enum { RECORDS = 200 };
static char times[RECORDS][HISTORY_TIME_BYTES];

/* Makes a record, a minute after the previous one. */
static struct history_record random_record(uint64_t key, uint32_t r)
{
    double predicted_s = 1 + random_unit(key, 0), factor = 0.5 + random_unit(key, 1);
    const char *verb = verbs[random_below(key, 2, 3)];
    bool ran = strcmp(verb, "run") == 0;
    return (struct history_record){
        .made_at = history_time(1795000000 + 60 * (int64_t)r * (int64_t)(1 + key % 1000), times[r]),
        .verb = verb,
        .command = random_below(key, 3, 2) ? "plan 'a b'" : NULL,
        .policy = policies[random_below(key, 4, 4)],
        .networks = random_below(key, 5, 3) ? "gpt2 x 2" : NULL,
        .hardware = machines[random_below(key, 6, 3)],
        .jobs = (int64_t)random_below(key, 7, 9),
        .devices = (int64_t)(random_u64(key, 8) >> 1),
        .predicted_s = predicted_s,
        .measured_s = ran ? predicted_s * factor : 0,
        .complete = ran && random_below(key, 9, 4) > 0,
    };
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void check_same(const struct history_record *a, const struct history_record *b)
{
    assert_string_equal(a->made_at, b->made_at);
    assert_string_equal(a->verb, b->verb);
    assert_true(same_text(a->command, b->command) && same_text(a->policy, b->policy));
    assert_true(same_text(a->networks, b->networks) && same_text(a->hardware, b->hardware));
    assert_true(!a->file && !a->version && !a->fingerprint && !a->measured_on);
    assert_int_equal(a->jobs, b->jobs);
    assert_int_equal(a->devices, b->devices);
    assert_memory_equal(&a->predicted_s, &b->predicted_s, sizeof a->predicted_s);
    assert_memory_equal(&a->measured_s, &b->measured_s, sizeof a->measured_s);
    assert_int_equal(a->complete, b->complete);
    assert_true(a->lower_bound_s <= 0 && a->measured_tokens_per_s <= 0);
}

static bool passes(const struct history_filter *filter, const struct history_record *record)
{
    return (!filter->verb || same_text(filter->verb, record->verb)) &&
           (!filter->policy || same_text(filter->policy, record->policy)) &&
           (!filter->hardware || same_text(filter->hardware, record->hardware)) &&
           (!filter->since || strcmp(record->made_at, filter->since) >= 0);
}

/* Checks a value of each group by brute force: for each run its whole group is gathered again. */
static void check_errors(const struct history_record *records, size_t count, enum history_by by)
{
    struct arena arena = {0};
    struct history_error *groups = NULL;
    struct error err = {0};
    size_t group_count = 0, runs = 0;
    assert_int_equal(history_errors(records, count, by, &arena, &groups, &group_count, &err), STATUS_OK);
    for (size_t g = 0; g < group_count; g++) {
        const struct history_error *group = &groups[g];
        double errors[RECORDS], sum = 0, absolute = 0, worst = 0;
        size_t found = 0;
        bool all = g + 1 == group_count;
        if (all) assert_string_equal(group->group, "all");
        else if (g > 0) assert_true(strcmp(groups[g - 1].group, group->group) < 0);
        for (size_t r = 0; r < count; r++) {
            const struct history_record *record = &records[r];
            const char *text = by == HISTORY_BY_POLICY ? record->policy : record->hardware;
            if (!record->complete || (!all && strcmp(text ? text : "-", group->group) != 0)) continue;
            double error = (record->predicted_s - record->measured_s) / record->measured_s;
            errors[found++] = fabs(error);
            sum += error;
            absolute += fabs(error);
            if (fabs(error) > fabs(worst)) worst = error;
        }
        assert_int_equal(group->runs, found);
        assert_true(fabs(group->mean - sum / (double)found) < 1e-12);
        assert_true(fabs(group->mean_absolute - absolute / (double)found) < 1e-12);
        assert_true(fabs(group->worst - worst) < 1e-12);
        size_t below = 0, above = 0; /* equal numbers are on either side of the median */
        for (size_t i = 0; i < found; i++) {
            below += errors[i] < group->median_absolute - 1e-12;
            above += errors[i] > group->median_absolute + 1e-12;
        }
        assert_true(below <= found / 2 && above <= found / 2);
        if (!all) runs += found;
    }
    if (group_count > 0) assert_int_equal(groups[group_count - 1].runs, runs);
    arena_release(&arena);
}

static void records_come_back(void **state)
{
    (void)state;
    uint64_t seed = support_seed("records come back");
    struct history_record written[RECORDS];
    struct history *history = NULL;
    struct error err = {0};
    assert_int_equal(history_open(path, true, &history, &err), STATUS_OK);
    for (uint32_t r = 0; r < RECORDS; r++) {
        if (r == RECORDS / 2) { /* as another program's */
            history_close(history);
            assert_int_equal(history_open(path, true, &history, &err), STATUS_OK);
        }
        written[r] = random_record(random_u64(seed, r) | 1, r);
        assert_int_equal(history_add(history, &written[r], &err), STATUS_OK);
    }
    for (uint32_t c = 0; c < 60; c++) {
        uint64_t key = random_u64(seed, 1000 + c);
        const struct history_filter filter = {
            .verb = random_below(key, 0, 2) ? verbs[random_below(key, 1, 3)] : NULL,
            .policy = random_below(key, 2, 2) ? policies[random_below(key, 3, 4)] : NULL,
            .hardware = random_below(key, 4, 2) ? machines[random_below(key, 5, 3)] : NULL,
            .since = random_below(key, 6, 2) ? written[random_below(key, 7, RECORDS)].made_at : NULL,
            .last = (uint32_t)random_below(key, 8, 30)};
        struct arena arena = {0};
        struct history_record *read = NULL;
        size_t count = 0, expected = 0, skip;
        assert_int_equal(history_read(history, &filter, &arena, &read, &count, NULL, &err), STATUS_OK);
        for (uint32_t r = 0; r < RECORDS; r++) expected += passes(&filter, &written[r]);
        skip = filter.last > 0 && expected > filter.last ? expected - filter.last : 0;
        assert_int_equal(count, expected - skip);
        for (uint32_t r = 0, i = 0; r < RECORDS; r++) {
            if (!passes(&filter, &written[r]) || skip-- > 0) continue;
            skip = 0;
            assert_int_equal(read[i].id, r + 1);
            check_same(&read[i++], &written[r]);
        }
        check_errors(read, count, c % 2 ? HISTORY_BY_POLICY : HISTORY_BY_HARDWARE);
        arena_release(&arena);
    }
    history_close(history);
}

static void errors_by_time(void **state)
{
    (void)state;
    const struct history_record records[] = {
        {.made_at = "2026-10-31T23:59:00Z", .predicted_s = 9, .measured_s = 10, .complete = 1},
        {.made_at = "2026-11-01T00:00:00Z", .predicted_s = 12, .measured_s = 10, .complete = 1},
        {.made_at = "2026-11-02T00:00:00Z", .predicted_s = 10.5, .measured_s = 10, .complete = 1},
        {.made_at = "2026-11-02T00:00:00Z", .predicted_s = 50, .measured_s = 10}, /* stopped */
        {.made_at = "2026-11-03T00:00:00Z", .predicted_s = 50},                   /* planned */
    };
    struct arena arena = {0};
    struct history_error *groups;
    struct error err = {0};
    size_t count;
    assert_int_equal(history_errors(records, ARRAY_COUNT(records), HISTORY_BY_MONTH, &arena, &groups, &count, &err), 0);
    assert_int_equal(count, 3);
    assert_string_equal(groups[1].group, "2026-11");
    assert_true(fabs(groups[0].mean + 0.1) < 1e-12 && fabs(groups[1].mean - 0.125) < 1e-12);
    assert_true(fabs(groups[2].mean - 0.05) < 1e-12 && fabs(groups[2].mean_absolute - 0.35 / 3) < 1e-12);
    assert_true(fabs(groups[2].median_absolute - 0.1) < 1e-12 && fabs(groups[2].worst - 0.2) < 1e-12);
    assert_int_equal(history_errors(records, ARRAY_COUNT(records), HISTORY_BY_DAY, &arena, &groups, &count, &err), 0);
    assert_int_equal(count, 4);
    assert_int_equal(history_errors(records + 3, 2, HISTORY_BY_DAY, &arena, &groups, &count, &err), 0);
    assert_int_equal(count, 0);
    arena_release(&arena);
}

static void refused(const char *name, bool create, enum status status, const char *text)
{
    struct history *history = NULL;
    struct error err = {0};
    assert_int_equal(history_open(name, create, &history, &err), status);
    assert_null(history);
    if (!strstr(err.text, text)) fail_msg("'%s' without '%s'", err.text, text);
}

static void execute(const char *sql)
{
    sqlite3 *database;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
}

static void no_histories(void **state)
{
    (void)state;
    char missing[128];
    snprintf(missing, sizeof missing, "%s/none/history.db", folder);
    refused(missing, true, STATUS_IO, "/none/history.db': unable to open database file");
    unlink(path);
    refused(path, false, STATUS_BAD_INPUT, "/history.db': No such file or directory");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("these are eleven words that are not the header of SQLite's", file);
    fclose(file);
    refused(path, true, STATUS_BAD_INPUT, "/history.db' is a text (expected a history, which is a SQLite database)");
    file = fopen(path, "w");
    assert_non_null(file);
    fwrite("SQLite format 3\0and then nothing that belongs there", 1, 50, file);
    fclose(file);
    refused(path, true, STATUS_BAD_INPUT, "/history.db' is a damaged SQLite database (expected a history)");
    unlink(path);
    execute("CREATE TABLE mine(x)");
    refused(path, true, STATUS_BAD_INPUT, "/history.db' is not a history (it is another program's database)");
    unlink(path);
    struct history *history = NULL;
    struct error err = {0};
    assert_int_equal(history_open(path, true, &history, &err), STATUS_OK);
    history_close(history);
    execute("PRAGMA user_version=3");
    refused(path, true, STATUS_BAD_INPUT, "/history.db' is a history of version 3 (expected 2)");
    unlink(path);
}

/* Version 1 had no constraints. */
static void make_version_1(const char *rows)
{
    unlink(path);
    execute("PRAGMA application_id=0x53505748;PRAGMA user_version=1;"
            "CREATE TABLE records(id INTEGER PRIMARY KEY,made_at TEXT,verb TEXT,version TEXT,command TEXT,file TEXT,"
            "fingerprint TEXT,policy TEXT,networks TEXT,hardware TEXT,measured_on TEXT,jobs INTEGER,devices INTEGER,"
            "predicted_s REAL,lower_bound_s REAL,predicted_tokens_per_s REAL,measured_s REAL,measured_tokens_per_s "
            "REAL,complete INTEGER)");
    execute(rows);
}

#define ROW(made_at, verb, jobs, predicted_s, complete)                                          \
    "INSERT INTO records VALUES(NULL," made_at "," verb ",'0.1.0','plan','j.json',NULL,'fifo',NULL,NULL,NULL," jobs  \
    ",2," predicted_s ",NULL,NULL,NULL,NULL," complete ");"
#define TIME "'2026-11-22T09:30:00Z'"

static void every_value_is_checked_when_it_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *rows, *message;
    } files[] = {
        {"INSERT INTO records DEFAULT VALUES", "row 1: 'made_at' is 'NULL' (expected a time such as "
                                               "2026-11-22T09:30:00Z)"},
        {ROW(TIME, "'run'", "3", "7.5", "1") ROW("'now'", "'run'", "3", "7.5", "1"), "row 2: 'made_at' is 'now'"},
        {ROW(TIME, "NULL", "3", "7.5", "1"), "row 1: 'verb' is 'NULL' (expected plan, simulate or run)"},
        {ROW(TIME, "'sleep'", "3", "7.5", "1"), "'verb' is 'sleep'"},
        {ROW(TIME, "'run'", "-3", "7.5", "1"), "'jobs' is '-3' (expected a whole number, at least 0)"},
        {ROW(TIME, "'run'", "'x'", "7.5", "1"), "'jobs' is 'x'"},
        {ROW(TIME, "'run'", "3", "1e308", "1"), "'predicted_s' is '1.0e+308' (expected a number from 1e-15 to 1e18)"},
        {ROW(TIME, "'run'", "3", "-7.5", "1"), "'predicted_s' is '-7.5'"},
        {ROW(TIME, "'run'", "3", "'y'", "1"), "'predicted_s' is 'y'"},
        {ROW(TIME, "'run'", "3", "9e999", "1"), "'predicted_s' is 'Inf'"},
        {ROW(TIME, "'run'", "3", "7.5", "2"), "'complete' is '2' (expected 0 or 1)"},
        {ROW(TIME, "'run'", "3", "7.5", "1") "UPDATE records SET file=x'00ff'", "'file' is '' (expected a text)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        struct history *history = NULL;
        struct history_record *records;
        struct arena arena = {0};
        struct error err = {0};
        size_t count;
        make_version_1(files[i].rows);
        assert_int_equal(history_open(path, false, &history, &err), STATUS_OK);
        assert_int_equal(history_read(history, &(struct history_filter){0}, &arena, &records, &count, NULL, &err),
                         STATUS_BAD_INPUT);
        if (!strstr(err.text, files[i].message)) fail_msg("'%s' lacks '%s'", err.text, files[i].message);
        history_close(history);
        arena_release(&arena);
    }
    unlink(path);
}

static int64_t count_of(const char *sql)
{
    struct database database = {.kind = &(const struct database_kind){.name = "history", .title = ""}};
    struct error err = {0};
    int64_t count = -1;
    assert_int_equal(database_open(path, database.kind, false, &database, &err), STATUS_OK);
    assert_int_equal(database_ask(&database, sql, &count, &err), STATUS_OK);
    database_close(&database);
    return count;
}

/* Two rows of five break a rule: they are kept separately, the others keep their numbers. */
static void version_1_is_brought_up_to_date(void **state)
{
    (void)state;
    const struct history_record added = {.made_at = "2026-11-23T10:00:00Z", .verb = "run", .measured_s = 2.25};
    struct history *history = NULL;
    struct history_record *records;
    struct arena arena = {0};
    struct error err = {0};
    size_t count;
    make_version_1(ROW(TIME, "'plan'", "3", "7.5", "0") ROW(TIME, "NULL", "3", "7.5", "0")
                   ROW(TIME, "'run'", "4", "8.5", "1") ROW(TIME, "'run'", "4", "1e308", "1")
                   ROW(TIME, "'run'", "5", "NULL", "1"));
    assert_int_equal(history_open(path, true, &history, &err), STATUS_OK);
    assert_int_equal(history_add(history, &added, &err), STATUS_OK);
    assert_int_equal(history_read(history, &(struct history_filter){0}, &arena, &records, &count, NULL, &err),
                     STATUS_OK);
    assert_int_equal(count, 4);
    assert_int_equal(records[1].id, 3);
    assert_true(records[1].predicted_s > 8.4 && records[1].predicted_s < 8.6);
    assert_int_equal(records[2].jobs, 5);
    assert_string_equal(records[3].made_at, added.made_at);
    history_close(history);
    arena_release(&arena);
    assert_int_equal(count_of("PRAGMA user_version"), 2);
    assert_int_equal(count_of("SELECT count(*) FROM records_1"), 2);
    unlink(path);
}

/* Rows 2 and 4 of five are wrong, and then all of many: the others are read, and the skipped rows are reported. */
static void wrong_rows_are_left_out(void **state)
{
    (void)state;
    struct history *history = NULL;
    struct history_record *records;
    struct history_wrong wrong;
    struct arena arena = {0};
    struct error err = {0};
    size_t count;
    make_version_1(ROW(TIME, "'plan'", "3", "7.5", "0") ROW(TIME, "NULL", "3", "7.5", "0")
                   ROW(TIME, "'run'", "4", "8.5", "1") ROW(TIME, "'run'", "4", "1e308", "1")
                   ROW(TIME, "'run'", "5", "NULL", "1"));
    assert_int_equal(history_open(path, false, &history, &err), STATUS_OK);
    assert_int_equal(history_read(history, &(struct history_filter){0}, &arena, &records, &count, &wrong, &err),
                     STATUS_OK);
    assert_int_equal(count, 3);
    assert_int_equal(records[0].id, 1);
    assert_int_equal(records[1].id, 3);
    assert_int_equal(records[2].id, 5);
    assert_int_equal(records[2].jobs, 5);
    assert_int_equal(wrong.rows, 2);
    assert_string_equal(wrong.text, "row 2: 'verb' is 'NULL' (expected plan, simulate or run); "
                                    "row 4: 'predicted_s' is '1.0e+308' (expected a number from 1e-15 to 1e18)");
    history_close(history);

    execute("UPDATE records SET complete=7;"
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<100)"
            "INSERT INTO records(verb) SELECT 'never' FROM n");
    assert_int_equal(history_open(path, false, &history, &err), STATUS_OK);
    assert_int_equal(history_read(history, &(struct history_filter){0}, &arena, &records, &count, &wrong, &err),
                     STATUS_OK);
    assert_int_equal(count, 0);
    assert_int_equal(wrong.rows, 105);
    history_close(history);
    arena_release(&arena);
    unlink(path);
}

/* Another program writes rows into the table. */
static void the_table_refuses_what_no_record_has(void **state)
{
    (void)state;
    static const char *const rows[] = {"INSERT INTO records DEFAULT VALUES",
                                       ROW(TIME, "'run'", "3", "1e308", "1"), ROW(TIME, "'sleep'", "3", "7.5", "1"),
                                       ROW("'now'", "'run'", "3", "7.5", "1"), ROW(TIME, "'run'", "NULL", "7.5", "1"),
                                       ROW(TIME, "'run'", "3", "7.5", "2")};
    struct history *history = NULL;
    struct error err = {0};
    sqlite3 *handle = NULL;
    assert_int_equal(history_open(path, true, &history, &err), STATUS_OK);
    history_close(history);
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(sqlite3_exec(handle, rows[i], NULL, NULL, NULL), SQLITE_CONSTRAINT);
    assert_int_equal(sqlite3_exec(handle, ROW(TIME, "'run'", "3", "7.5", "1"), NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(handle);
    unlink(path);
}

/* Processes begin at once, when there is no file yet. */
static void writers_at_once(void **state)
{
    (void)state;
    enum { WRITERS = 4, EACH = 5 };
    pid_t children[WRITERS];
    struct error err = {0};
    struct history *history = NULL;
    unlink(path);
    for (int w = 0; w < WRITERS; w++) {
        children[w] = fork();
        assert_true(children[w] >= 0);
        if (children[w] > 0) continue;
        for (uint32_t r = 0; r < EACH; r++) {
            const struct history_record record = random_record(7 * (uint64_t)w + r + 1, r);
            if (history_open(path, true, &history, &err) || history_add(history, &record, &err)) {
                fprintf(stderr, "%s\n", err.text);
                _exit(1);
            }
            history_close(history);
        }
        _exit(0);
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        assert_int_equal(waitpid(children[w], &status, 0), children[w]);
        assert_int_equal(status, 0);
    }
    struct arena arena = {0};
    struct history_record *records;
    size_t count;
    assert_int_equal(history_open(path, false, &history, &err), STATUS_OK);
    assert_int_equal(history_read(history, &(struct history_filter){0}, &arena, &records, &count, NULL, &err),
                     STATUS_OK);
    assert_int_equal(count, WRITERS * EACH);
    history_close(history);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(records_come_back, make_folder, remove_folder),
        cmocka_unit_test(errors_by_time),
        cmocka_unit_test_setup_teardown(no_histories, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(every_value_is_checked_when_it_is_read, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(wrong_rows_are_left_out, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(version_1_is_brought_up_to_date, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(the_table_refuses_what_no_record_has, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(writers_at_once, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
