/* cli/explain/cli_explain_history.h: rows of a history made here, and the text for rows without a trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/size.h"
#include "cli/explain/cli_explain_history.h"
#include "cli/history/history.h"
#include "tests/support/support_folder.h"

static char folder[SUPPORT_FOLDER_BYTES], path[96];

/* Rows 1 to 5. */
static const struct history_record records[] = {
    {.made_at = "2026-11-22T09:30:00Z", .verb = "plan", .command = "plan jobs.json -o a.json", .file = "jobs.json"},
    {.made_at = "2026-11-22T09:31:00Z", .verb = "run", .command = "run a.json --trace 'it'\\''s a trace.json.gz' -q",
     .file = "a.json"},
    {.made_at = "2026-11-22T09:32:00Z", .verb = "run", .command = "run b.json", .file = "b.json"},
    {.made_at = "2026-11-22T09:33:00Z", .verb = "run", .command = "run --trace=t.json c.json", .file = "c.json"},
    {.made_at = "2026-11-22T09:34:00Z", .verb = "simulate", .command = "simulate c.json --trace p.json",
     .file = "c.json"},
};

static int make_history(void **state)
{
    (void)state;
    struct history *history = NULL;
    struct error err = {0};
    support_folder_make(folder);
    snprintf(path, sizeof path, "%s/history.db", folder);
    setenv("SPILLWAY_HISTORY", path, 1);
    enum status status = history_open(path, true, &history, &err);
    for (size_t r = 0; !status && r < ARRAY_COUNT(records); r++) status = history_add(history, &records[r], &err);
    history_close(history);
    return status ? -1 : 0;
}

static int remove_history(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void check_files(const char *word, const char *plan, const char *trace)
{
    struct arena arena = {0};
    struct error err = {0};
    const char *plan_path, *trace_path;
    assert_true(cli_explain_is_row(word));
    if (cli_explain_row(word, &arena, &plan_path, &trace_path, &err) != STATUS_OK) fail_msg("%s: %s", word, err.text);
    assert_string_equal(plan_path, plan);
    assert_string_equal(trace_path, trace);
    arena_release(&arena);
}

static void rows_have_their_files(void **state)
{
    (void)state;
    check_files("history:2", "a.json", "it's a trace.json.gz");
    check_files("history:4", "c.json", "t.json");
    check_files("history:last", "c.json", "t.json"); /* the last run, not the last row */
    assert_false(cli_explain_is_row("plan.json"));
}

static void check_refused(const char *word, const char *message)
{
    struct arena arena = {0};
    struct error err = {0};
    const char *plan_path, *trace_path;
    assert_int_equal(cli_explain_row(word, &arena, &plan_path, &trace_path, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, message);
    arena_release(&arena);
}

static void rows_without_are_refused(void **state)
{
    (void)state;
    check_refused("history:3", "run 3 of the history kept no trace (expected 'spillway run PLAN --trace FILE')");
    check_refused("history:1", "row 1 of the history is of 'plan' (expected a run)");
    check_refused("history:17", "no row '17' in the history (expected last, or the \"id\" of a run in "
                                "'spillway history --json')");
    check_refused("history:", "no row '' in the history (expected last, or the \"id\" of a run in "
                              "'spillway history --json')");
    setenv("SPILLWAY_HISTORY", "/tmp/spillway-no-such-history.db", 1);
    check_refused("history:2", "there is no history yet");
    setenv("SPILLWAY_HISTORY", path, 1);
}

/* A wrong row: `explain` finds the others, `history` prints them and reports the row that it left out. */
static void wrong_rows_are_passed_over(void **state)
{
    (void)state;
    static char verb[] = "history", option[] = "--file";
    char *words[] = {verb, option, path, NULL};
    char *text = NULL;
    size_t length = 0;
    struct error err = {0};
    sqlite3 *handle = NULL;
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle, "PRAGMA ignore_check_constraints=1;"
                                          "INSERT INTO records SELECT 6,made_at,'sleep',version,command,file,"
                                          "fingerprint,policy,"
                                          "networks,hardware,measured_on,jobs,devices,predicted_s,lower_bound_s,"
                                          "predicted_tokens_per_s,measured_s,measured_tokens_per_s,complete "
                                          "FROM records WHERE id=4", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(handle);
    check_files("history:2", "a.json", "it's a trace.json.gz");
    check_files("history:last", "c.json", "t.json");
    check_refused("history:6", "1 wrong row (see 'spillway history'): no row '6' in the history (expected last, "
                               "or the \"id\" of a run in 'spillway history --json')");
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    assert_int_equal(cli_dispatch(3, words, out, &err), STATUS_BAD_INPUT);
    fclose(out);
    assert_non_null(strstr(err.text, "/history.db': 1 row is left out: row 6: 'verb' is 'sleep' (expected plan, "
                                     "simulate or run)"));
    assert_non_null(strstr(text, "2026-11-22 09:30"));
    assert_non_null(strstr(text, "2026-11-22 09:34"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_their_files),
        cmocka_unit_test(rows_without_are_refused),
        cmocka_unit_test(wrong_rows_are_passed_over),
    };
    return cmocka_run_group_tests(tests, make_history, remove_history);
}
