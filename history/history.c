/* See history.h. The table, statements and records are made from one list of columns. */
#include "history/history.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/size.h"
#include "history/database.h"

enum { SQL_BYTES = 2048, RECORDS_MAX = 10000000 };

static const struct database_kind kind_of_file = {.name = "history", .title = "the history ",
                                                  .application_id = 0x53505748 /* "SPWH" */, .version = 1};

struct history {
    struct database database; /* its path: our own copy, behind the struct */
};

/* --- columns --------------------------------------------------------------------------------- */

enum kind { TEXT, INTEGER, REAL };

/* "id" is SQLite's own key, and comes first. */
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

static const char *const kind_names[] = {[TEXT] = "TEXT", [INTEGER] = "INTEGER", [REAL] = "REAL"};

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
    for (size_t c = 0; c < ARRAY_COUNT(columns); c++)
        used += snprintf(sql + used, SQL_BYTES - (size_t)used, "%s%s %s", c ? "," : "", columns[c].name,
                         c ? kind_names[columns[c].kind] : "INTEGER PRIMARY KEY");
    snprintf(sql + used, SQL_BYTES - (size_t)used, ");");
    return sql;
}

enum status history_open(const char *path, bool create, struct history **out, struct error *err)
{
    size_t length = strlen(path);
    char sql[SQL_BYTES];
    struct history *history = alloc_zeroed(1, sizeof *history + length + 1);
    if (!history) return error_memory(err, "the history", sizeof *history + length + 1);
    const char *own = memcpy(history + 1, path, length + 1);
    enum status status = database_open(own, &kind_of_file, create, &history->database, err);
    if (status == STATUS_OK) status = database_claim(&history->database, create ? create_sql(sql) : NULL, err);
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
    return value > 0 ? sqlite3_bind_double(statement, place, value) : sqlite3_bind_null(statement, place);
}

enum status history_add(struct history *history, const struct history_record *record, struct error *err)
{
    char sql[SQL_BYTES];
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

/* The statement's row; `record` is zeroed. */
static enum status take_row(sqlite3_stmt *statement, struct history_record *record, struct arena *arena,
                            struct error *err)
{
    for (size_t c = 0; c < ARRAY_COUNT(columns); c++) {
        const struct column *column = &columns[c];
        void *to = (char *)record + column->offset;
        if (sqlite3_column_type(statement, (int)c) == SQLITE_NULL) continue;
        switch (column->kind) {
        case INTEGER: *(int64_t *)to = sqlite3_column_int64(statement, (int)c); break;
        case REAL: *(double *)to = sqlite3_column_double(statement, (int)c); break;
        case TEXT:
            if (arena_string(arena, (const char *)sqlite3_column_text(statement, (int)c), to, err) != STATUS_OK)
                return err->status;
            break;
        }
    }
    return STATUS_OK;
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
                         struct history_record **out, size_t *count, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    struct history_record *records = NULL;
    size_t capacity = 0, used = 0;
    enum status status = STATUS_OK;
    int code = prepare_query(history, filter, &statement);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW) break;
        status = array_reserve(&records, &capacity, used, sizeof *records, RECORDS_MAX, "records", err);
        if (status == STATUS_OK) {
            records[used] = (struct history_record){0};
            status = take_row(statement, &records[used], arena, err);
        }
        if (status != STATUS_OK) break;
        used++;
    }
    if (status == STATUS_OK && code != SQLITE_DONE) status = complain(history, err);
    sqlite3_finalize(statement);
    void *kept = NULL;
    if (status == STATUS_OK) status = arena_array(arena, used, sizeof *records, &kept, err);
    if (status == STATUS_OK) {
        if (used > 0) memcpy(kept, records, used * sizeof *records);
        *out = kept;
        *count = used;
    }
    free(records);
    return status;
}
