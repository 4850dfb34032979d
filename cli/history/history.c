/* One list of columns defines table, statements and records. */
#include "cli/history/history.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/size.h"
#include "base/try.h"
#include "cli/history/database.h"

enum { SQL_BYTES = 4096, RECORDS_MAX = 10000000 };

static const struct database_kind kind_of_file = {.name = "history", .title = "the history ",
                                                  .application_id = 0x53505748 /* "SPWH" */, .version = 2,
                                                  .oldest = 1};

struct history {
    struct database database; /* its path is a copy after the struct */
};

/* --- columns --------------------------------------------------------------------------------- */

enum kind { TEXT, INTEGER, REAL };

/* "id" is SQLite's key, and comes first. */
static const struct column {
    const char *name;
    enum kind kind;
    size_t offset;
} columns[] = {
#define COLUMN(field, kind) {#field, kind, offsetof(struct history_record, field)}
    COLUMN(id, INTEGER),
    COLUMN(made_at, TEXT),
    COLUMN(verb, TEXT),
    COLUMN(version, TEXT),
    COLUMN(command, TEXT),
    COLUMN(file, TEXT),
    COLUMN(fingerprint, TEXT),
    COLUMN(policy, TEXT),
    COLUMN(networks, TEXT),
    COLUMN(hardware, TEXT),
    COLUMN(measured_on, TEXT),
    COLUMN(jobs, INTEGER),
    COLUMN(devices, INTEGER),
    COLUMN(predicted_s, REAL),
    COLUMN(lower_bound_s, REAL),
    COLUMN(predicted_tokens_per_s, REAL),
    COLUMN(measured_s, REAL),
    COLUMN(measured_tokens_per_s, REAL),
    COLUMN(complete, INTEGER),
#undef COLUMN
};

/* %1$s is the column. Figures have the header's range. */
static const char *const rules[] = {
    [TEXT] = "%1$s TEXT CHECK(%1$s IS NULL OR typeof(%1$s)='text')",
    [INTEGER] = "%1$s INTEGER NOT NULL CHECK(typeof(%1$s)='integer' AND %1$s>=0)",
    [REAL] = "%1$s REAL CHECK(%1$s IS NULL OR (typeof(%1$s)='real' AND %1$s>=1e-15 AND %1$s<=1e18))"};

/* Constraints of whole records. */
static const char more_rules[] =
    "CHECK(made_at IS NOT NULL AND made_at GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T"
    "[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z'),"
    "CHECK(verb IS NOT NULL AND verb IN ('plan','simulate','run')),CHECK(complete IN (0,1))";

static const char *const *text_of(const struct history_record *record, const struct column *column)
{
    return (const char *const *)(const void *)((const char *)record + column->offset);
}

static const int64_t *integer_of(const struct history_record *record, const struct column *column)
{
    return (const int64_t *)(const void *)((const char *)record + column->offset);
}

static const double *real_of(const struct history_record *record, const struct column *column)
{
    return (const double *)(const void *)((const char *)record + column->offset);
}

/* --- the file -------------------------------------------------------------------------------- */

static enum status complain(const struct history *history, struct error *err)
{
    return database_complain(&history->database, err);
}

static const char *create_sql(char sql[SQL_BYTES])
{
    int used = snprintf(sql, SQL_BYTES, "CREATE TABLE records(");
    used += snprintf(sql + used, SQL_BYTES - (size_t)used, "id INTEGER PRIMARY KEY,");
    for (size_t c = 1; c < ARRAY_COUNT(columns); c++) {
        used += snprintf(sql + used, SQL_BYTES - (size_t)used, rules[columns[c].kind], columns[c].name);
        used += snprintf(sql + used, SQL_BYTES - (size_t)used, ",");
    }
    used += snprintf(sql + used, SQL_BYTES - (size_t)used, "%s);", more_rules);
    assert(used < SQL_BYTES);
    return sql;
}

/* Moves valid rows to a new table with constraints. */
static enum status move_records(struct history *history, struct error *err)
{
    const struct database *database = &history->database;
    char create[SQL_BYTES];
    int64_t left = 0;
    if (database_execute(database, "ALTER TABLE records RENAME TO records_1", err) ||
        database_execute(database, create_sql(create), err) ||
        database_execute(database, "INSERT OR IGNORE INTO records SELECT * FROM records_1;"
                                   "DELETE FROM records_1 WHERE id IN (SELECT id FROM records)", err) ||
        database_ask(database, "SELECT count(*) FROM records_1", &left, err) ||
        (left == 0 && database_execute(database, "DROP TABLE records_1", err)))
        return err->status;
    return database_execute(database, "PRAGMA user_version=2;COMMIT", err);
}

/* Makes version 2; the first of two processes does it. */
static enum status migrate(struct history *history, struct error *err)
{
    int64_t version = 0;
    TRY(database_execute(&history->database, "BEGIN IMMEDIATE", err));
    TRY(database_ask(&history->database, "PRAGMA user_version", &version, err));
    history->database.version = 2;
    return version == 1 ? move_records(history, err) : database_execute(&history->database, "COMMIT", err);
}

enum status history_open(const char *path, bool create, struct history **out, struct error *err)
{
    size_t length = strlen(path);
    char sql[SQL_BYTES];
    struct history *history = alloc_zeroed(1, sizeof *history + length + 1);
    if (!history) return error_memory(err, "the history", sizeof *history + length + 1);
    const char *own = memcpy(history + 1, path, length + 1);
    enum status status = database_open(own, &kind_of_file, create, &history->database, err);
    if (status == STATUS_OK) status = database_adopt(&history->database, create ? create_sql(sql) : NULL, err);
    if (status != STATUS_OK) {
        history_close(history);
        return status;
    }
    *out = history;
    return STATUS_OK;
}

void history_close(struct history *history)
{
    if (!history) return;
    database_close(&history->database);
    free(history);
}

/* --- records --------------------------------------------------------------------------------- */

const char *history_time(int64_t seconds, char text[HISTORY_TIME_BYTES])
{
    time_t time = (time_t)seconds;
    struct tm utc;
    if (!gmtime_r(&time, &utc) || strftime(text, HISTORY_TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0) text[0] = '\0';
    return text;
}

/* Returns false for NaN. */
static bool in_range(double value)
{
    return value >= HISTORY_REAL_MIN && value <= HISTORY_REAL_MAX;
}

static int bind(sqlite3_stmt *statement, int place, const struct history_record *record, const struct column *column)
{
    switch (column->kind) {
    case TEXT:
        if (!*text_of(record, column)) return sqlite3_bind_null(statement, place);
        return sqlite3_bind_text(statement, place, *text_of(record, column), -1, SQLITE_STATIC);
    case INTEGER: return sqlite3_bind_int64(statement, place, *integer_of(record, column));
    case REAL: break;
    }
    double value = *real_of(record, column);
    return in_range(value) ? sqlite3_bind_double(statement, place, value) : sqlite3_bind_null(statement, place);
}

enum status history_add(struct history *history, const struct history_record *record, struct error *err)
{
    char sql[SQL_BYTES];
    if (history->database.version < kind_of_file.version) TRY(migrate(history, err));
    int used = snprintf(sql, sizeof sql, "INSERT INTO records VALUES(NULL");
    for (size_t c = 1; c < ARRAY_COUNT(columns); c++) used += snprintf(sql + used, sizeof sql - (size_t)used, ",?");
    snprintf(sql + used, sizeof sql - (size_t)used, ")");
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(history->database.handle, sql, -1, &statement, NULL);
    for (size_t c = 1; code == SQLITE_OK && c < ARRAY_COUNT(columns); c++)
        code = bind(statement, (int)c, record, &columns[c]);
    if (code == SQLITE_OK) code = sqlite3_step(statement);
    enum status status = code == SQLITE_DONE ? STATUS_OK : complain(history, err);
    sqlite3_finalize(statement);
    return status;
}

/* --- checking rows ----------------------------------------------------------------------------- */

static bool is_time(const char *text)
{
    static const char form[] = "dddd-dd-ddTdd:dd:ddZ";
    size_t i = 0;
    for (; text[i] && form[i]; i++)
        if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i]) return false;
    return !text[i] && !form[i];
}

static bool is_verb(const char *text)
{
    return strcmp(text, "plan") == 0 || strcmp(text, "simulate") == 0 || strcmp(text, "run") == 0;
}

/* Returns the expected text, or NULL if `text` (may be NULL) is right. */
static const char *text_mistake(const struct column *column, const char *text)
{
    if (column->offset == offsetof(struct history_record, made_at))
        return text && is_time(text) ? NULL : "a time such as 2026-11-22T09:30:00Z";
    if (column->offset == offsetof(struct history_record, verb))
        return text && is_verb(text) ? NULL : "plan, simulate or run";
    return NULL;
}

/* Reads a column; returns NULL if it is right, else the expected value. */
static const char *read_number(sqlite3_stmt *statement, int c, struct history_record *record)
{
    const struct column *column = &columns[c];
    void *to = (char *)record + column->offset;
    const int type = sqlite3_column_type(statement, c);
    if (column->kind == REAL) {
        if (type == SQLITE_NULL) return NULL;
        *(double *)to = sqlite3_column_double(statement, c);
        const bool number = type == SQLITE_FLOAT || type == SQLITE_INTEGER;
        return number && in_range(*(double *)to) ? NULL : "a number from 1e-15 to 1e18";
    }
    *(int64_t *)to = sqlite3_column_int64(statement, c);
    const bool flag = column->offset == offsetof(struct history_record, complete);
    if (type == SQLITE_INTEGER && *(int64_t *)to >= 0 && (!flag || *(int64_t *)to <= 1)) return NULL;
    return flag ? "0 or 1" : "a whole number, at least 0";
}

static enum status read_text(sqlite3_stmt *statement, int c, struct history_record *record, struct arena *arena,
                             const char **expected, struct error *err)
{
    const struct column *column = &columns[c];
    const int type = sqlite3_column_type(statement, c);
    const char *text = type == SQLITE_TEXT ? (const char *)sqlite3_column_text(statement, c) : NULL;
    if (type == SQLITE_TEXT && !text) return error_memory(err, "a text of the history", 0);
    const bool whole = !text || strlen(text) == (size_t)sqlite3_column_bytes(statement, c);
    *expected = (type != SQLITE_TEXT && type != SQLITE_NULL) || !whole ? "a text" : text_mistake(column, text);
    if (*expected || !text) return STATUS_OK;
    return arena_string(arena, text, (const char **)(void *)((char *)record + column->offset), err);
}

/* Reads a row; `record` is zeroed before. */
static enum status read_row(sqlite3_stmt *statement, struct history_record *record, struct arena *arena,
                            struct error *err)
{
    for (size_t c = 0; c < ARRAY_COUNT(columns); c++) {
        const char *expected = NULL;
        if (columns[c].kind != TEXT)
            expected = read_number(statement, (int)c, record);
        else if (read_text(statement, (int)c, record, arena, &expected, err) != STATUS_OK)
            return err->status;
        if (!expected) continue;
        const char *found = (const char *)sqlite3_column_text(statement, (int)c);
        return error_set(err, STATUS_BAD_INPUT, "row %lld: '%s' is '%.60s' (expected %s)", (long long)record->id,
                         columns[c].name, found ? found : "NULL", expected);
    }
    return STATUS_OK;
}

/* Counts a row that is left out. */
static void leave_out(struct history_wrong *wrong, const struct error *why)
{
    const size_t used = strlen(wrong->text), length = strlen(why->text);
    wrong->rows++;
    if (used + length + sizeof "; " <= sizeof wrong->text)
        snprintf(wrong->text + used, sizeof wrong->text - used, "%s%s", used > 0 ? "; " : "", why->text);
}

static enum status break_off(const struct history *history, const struct error *why, struct error *err)
{
    error_set(err, why->status, "%s", why->text);
    return error_add(err, "the history '%s'", history->database.path);
}

static int prepare_query(const struct history *history, const struct history_filter *filter, sqlite3_stmt **out)
{
    char sql[SQL_BYTES];
    int used = snprintf(sql, sizeof sql, "SELECT * FROM (SELECT ");
    for (size_t c = 0; c < ARRAY_COUNT(columns); c++)
        used += snprintf(sql + used, sizeof sql - (size_t)used, "%s%s", c ? "," : "", columns[c].name);
    snprintf(sql + used, sizeof sql - (size_t)used,
             " FROM records WHERE (?1 IS NULL OR verb=?1) AND (?2 IS NULL OR policy=?2) AND (?3 IS NULL OR hardware=?3)"
             " AND (?4 IS NULL OR made_at>=?4) ORDER BY id DESC LIMIT ?5) ORDER BY id");
    int code = sqlite3_prepare_v2(history->database.handle, sql, -1, out, NULL);
    const char *const texts[] = {filter->verb, filter->policy, filter->hardware, filter->since};
    for (int i = 0; code == SQLITE_OK && i < 4; i++)
        code = texts[i] ? sqlite3_bind_text(*out, i + 1, texts[i], -1, SQLITE_STATIC) : sqlite3_bind_null(*out, i + 1);
    if (code == SQLITE_OK) code = sqlite3_bind_int64(*out, 5, filter->last > 0 ? (int64_t)filter->last : -1);
    return code;
}

enum status history_read(struct history *history, const struct history_filter *filter, struct arena *arena,
                         struct history_record **out, size_t *count, struct history_wrong *wrong, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    struct history_record *records = NULL;
    size_t capacity = 0, used = 0;
    enum status status = STATUS_OK;
    if (wrong) *wrong = (struct history_wrong){.rows = 0};
    int code = prepare_query(history, filter, &statement);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW) break;
        status = array_reserve(&records, &capacity, used, sizeof *records, RECORDS_MAX, "records", err);
        if (status != STATUS_OK) break;
        struct error why = {0};
        records[used] = (struct history_record){0};
        status = read_row(statement, &records[used], arena, &why);
        if (status == STATUS_OK) used++;
        else if (status == STATUS_BAD_INPUT && wrong) leave_out(wrong, &why);
        else status = break_off(history, &why, err);
        if (err->status != STATUS_OK) break;
        status = STATUS_OK;
    }
    if (status == STATUS_OK && code != SQLITE_DONE) status = complain(history, err);
    sqlite3_finalize(statement);
    struct history_record *kept = NULL;
    if (status == STATUS_OK) status = ARENA_NEW(arena, used, kept, err);
    if (status == STATUS_OK) {
        if (used > 0) memcpy(kept, records, used * sizeof *records);
        *out = kept;
        *count = used;
    }
    free(records);
    return status;
}
