#include "cli/sweep/kept.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/try.h"
#include "cli/history/database.h"

static const struct database_kind kind_of_file = {.name = "sweep that was begun", .title = "",
                                                  .application_id = 0x53505753 /* "SPWS" */, .version = 1};

struct sweep_kept {
    struct database database; /* its path is a copy after the struct */
    sqlite3_stmt *insert;
    const struct sweep_results *results;
};

static enum status complain(const struct sweep_kept *kept, struct error *err)
{
    return database_complain(&kept->database, err);
}

/* --- the tables ------------------------------------------------------------------------------ */

/* Counts "point", the axes, the outcome, the figures, the reason. */
static uint32_t column_count(const struct sweep_results *results)
{
    return 1 + results->grid->axis_count + 1 + results->figure_count + 1;
}

static char *create_sql(const struct sweep_results *results, const char *what)
{
    const struct sweep_grid *grid = results->grid;
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendf(sql, "CREATE TABLE sweep(what TEXT, version TEXT); INSERT INTO sweep VALUES(%Q,%Q);"
                             "CREATE TABLE points(point INTEGER PRIMARY KEY",
                        what, SPILLWAY_VERSION);
    for (uint32_t a = 0; a < grid->axis_count; a++)
        sqlite3_str_appendf(sql, ",\"%w\" %s", grid->axes[a].name, grid->axes[a].numeric ? "REAL" : "TEXT");
    sqlite3_str_appendf(sql, ",outcome TEXT");
    for (uint32_t f = 0; f < results->figure_count; f++) sqlite3_str_appendf(sql, ",\"%w\" REAL", results->figures[f]);
    sqlite3_str_appendf(sql, ",reason TEXT)");
    return sqlite3_str_finish(sql);
}

static char *insert_sql(const struct sweep_results *results)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendf(sql, "INSERT INTO points VALUES(?");
    for (uint32_t c = 1; c < column_count(results); c++) sqlite3_str_appendf(sql, ",?");
    sqlite3_str_appendf(sql, ")");
    return sqlite3_str_finish(sql);
}

static enum status check_same(const struct sweep_kept *kept, const char *what, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(kept->database.handle, "SELECT what=?1 AND version=?2 FROM sweep", -1, &statement,
                                  NULL);
    if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 1, what, -1, SQLITE_STATIC);
    if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 2, SPILLWAY_VERSION, -1, SQLITE_STATIC);
    bool same = code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_int(statement, 0) == 1;
    sqlite3_finalize(statement);
    if (same) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "'%s' is of another sweep that was begun (end that one, or remove the file)", kept->database.path);
}

/* --- points ---------------------------------------------------------------------------------- */

static uint32_t outcome_of(const char *name)
{
    for (uint32_t o = SWEEP_DONE; name && o < SWEEP_OUTCOME_COUNT; o++)
        if (strcmp(name, sweep_outcome_names[o]) == 0) return o;
    return SWEEP_PENDING;
}

/* Reads a finite number, or NAN for NULL; false otherwise. */
static bool read_figure(sqlite3_stmt *statement, int column, double *out)
{
    const int type = sqlite3_column_type(statement, column);
    *out = type == SQLITE_NULL ? (double)NAN : sqlite3_column_double(statement, column);
    return type == SQLITE_NULL || ((type == SQLITE_FLOAT || type == SQLITE_INTEGER) && isfinite(*out));
}

/* Returns false if no sweep can have written the row: a point outside of the grid or repeated, an unknown outcome,
 * an invalid figure. */
static bool read_point(sqlite3_stmt *statement, struct sweep_results *results)
{
    const int outcome = (int)results->grid->axis_count + 1, reason = (int)column_count(results) - 1;
    const int64_t point = sqlite3_column_int64(statement, 0);
    if (sqlite3_column_type(statement, 0) != SQLITE_INTEGER || point < 0 ||
        (uint64_t)point >= results->grid->point_count || results->points[point].outcome != SWEEP_PENDING)
        return false;
    struct sweep_result *result = &results->points[point];
    const char *text = (const char *)sqlite3_column_text(statement, reason);
    result->outcome = outcome_of((const char *)sqlite3_column_text(statement, outcome));
    snprintf(result->reason, sizeof result->reason, "%s", text ? text : "");
    for (uint32_t f = 0; f < results->figure_count; f++)
        if (!read_figure(statement, outcome + 1 + (int)f, &result->figures[f])) return false;
    return result->outcome != SWEEP_PENDING;
}

static enum status read_points(const struct sweep_kept *kept, struct sweep_results *results, uint64_t *count,
                               struct error *err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(kept->database.handle, "SELECT * FROM points ORDER BY point", -1, &statement, NULL);
    bool good = true;
    *count = 0;
    while (good && (code == SQLITE_OK || code == SQLITE_ROW)) {
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW) break;
        good = read_point(statement, results);
        *count += good;
    }
    sqlite3_finalize(statement);
    if (!good)
        return error_set(err, STATUS_BAD_INPUT, "'%s' is damaged: the data after its point %" PRIu64
                         " is invalid (remove the file to start the sweep again)",
                         kept->database.path, *count);
    return code == SQLITE_DONE ? STATUS_OK : complain(kept, err);
}

static int bind_number(sqlite3_stmt *statement, int place, double number)
{
    return isnan(number) ? sqlite3_bind_null(statement, place) : sqlite3_bind_double(statement, place, number);
}

enum status sweep_kept_add(struct sweep_kept *kept, const struct sweep_result *result, struct error *err)
{
    const struct sweep_results *results = kept->results;
    const struct sweep_grid *grid = results->grid;
    sqlite3_stmt *insert = kept->insert;
    int place = 1, code = sqlite3_bind_int64(insert, place++, (int64_t)result->point);
    for (uint32_t a = 0; code == SQLITE_OK && a < grid->axis_count; a++) {
        const struct sweep_value *value = sweep_grid_value(grid, result->point, a);
        code = grid->axes[a].numeric ? sqlite3_bind_double(insert, place++, value->number)
                                     : sqlite3_bind_text(insert, place++, value->text, -1, SQLITE_STATIC);
    }
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(insert, place++, sweep_outcome_names[result->outcome], -1, SQLITE_STATIC);
    for (uint32_t f = 0; code == SQLITE_OK && f < results->figure_count; f++)
        code = bind_number(insert, place++, result->figures[f]);
    if (code == SQLITE_OK)
        code = result->reason[0] ? sqlite3_bind_text(insert, place, result->reason, -1, SQLITE_STATIC)
                                 : sqlite3_bind_null(insert, place);
    if (code == SQLITE_OK) code = sqlite3_step(insert);
    enum status status = code == SQLITE_DONE ? STATUS_OK : complain(kept, err);
    sqlite3_reset(insert);
    return status;
}

/* --- the file -------------------------------------------------------------------------------- */

/* Checks the kind before journal_mode, which is written to the file. */
static enum status adopt(struct sweep_kept *kept, const char *what, struct error *err)
{
    char *sql = create_sql(kept->results, what);
    enum status status = sql ? database_adopt(&kept->database, sql, err) : error_memory(err, "a sweep's results", 0);
    sqlite3_free(sql);
    if (status == STATUS_OK) status = check_same(kept, what, err);
    /* a crash of the machine may lose the last points only */
    if (status == STATUS_OK)
        status = database_execute(&kept->database, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL", err);
    return status;
}

static enum status prepare(struct sweep_kept *kept, const char *what, struct sweep_results *results, uint64_t *count,
                           struct error *err)
{
    TRY(adopt(kept, what, err));
    enum status status = read_points(kept, results, count, err);
    char *sql = insert_sql(results);
    if (status == STATUS_OK &&
        (!sql || sqlite3_prepare_v2(kept->database.handle, sql, -1, &kept->insert, NULL) != SQLITE_OK))
        status = complain(kept, err);
    sqlite3_free(sql);
    return status;
}

enum status sweep_kept_open(const char *part, const char *what, struct sweep_results *results, uint64_t *count,
                            struct sweep_kept **out, struct error *err)
{
    size_t length = strlen(part);
    struct sweep_kept *kept = alloc_zeroed(1, sizeof *kept + length + 1);
    if (!kept) return error_memory(err, "a sweep's results", sizeof *kept + length + 1);
    const char *own = memcpy(kept + 1, part, length + 1);
    kept->results = results;
    enum status status = database_open(own, &kind_of_file, true, &kept->database, err);
    if (status == STATUS_OK) status = prepare(kept, what, results, count, err);
    if (status != STATUS_OK) {
        sweep_kept_close(kept, false);
        return status;
    }
    *out = kept;
    return STATUS_OK;
}

/* Makes a new database without deleted data. */
enum status sweep_kept_write(struct sweep_kept *kept, const char *path, struct error *err)
{
    char *temporary = sqlite3_mprintf("%s.tmp-%d", path, (int)getpid());
    char *sql = temporary ? sqlite3_mprintf("VACUUM INTO %Q", temporary) : NULL;
    enum status status = database_execute(&kept->database, sql, err);
    if (status == STATUS_OK && rename(temporary, path) != 0) status = error_io(err, "cannot write '%s'", path);
    if (status != STATUS_OK && temporary) unlink(temporary);
    sqlite3_free(sql);
    sqlite3_free(temporary);
    return status;
}

void sweep_kept_close(struct sweep_kept *kept, bool remove)
{
    if (!kept) return;
    sqlite3_finalize(kept->insert);
    database_close(&kept->database);
    if (remove) unlink(kept->database.path);
    free(kept);
}
