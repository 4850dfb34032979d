#include "cli/history/database.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file_kind.h"
#include "base/try.h"

enum { BUSY_MS = 2000 };

enum status database_complain(const struct database *database, struct error *err)
{
    return error_set(err, STATUS_IO, "%s'%s': %s", database->kind->title, database->path,
                     sqlite3_errmsg(database->handle));
}

enum status database_open(const char *path, const struct database_kind *kind, bool create, struct database *out,
                          struct error *err)
{
    *out = (struct database){.kind = kind, .path = path};
    if (!create && access(path, F_OK) != 0) return error_input(err, "cannot open '%s'", path);
    int flags = SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0);
    if (sqlite3_open_v2(path, &out->handle, flags, NULL) != SQLITE_OK) return database_complain(out, err);
    sqlite3_busy_timeout(out->handle, BUSY_MS);
    return STATUS_OK;
}

void database_close(struct database *database)
{
    sqlite3_close(database->handle);
    database->handle = NULL;
}

enum status database_execute(const struct database *database, const char *sql, struct error *err)
{
    if (!sql)
        return error_set(err, STATUS_NO_MEMORY, "no memory for statements to %s'%s'", database->kind->title,
                         database->path);
    if (sqlite3_exec(database->handle, sql, NULL, NULL, NULL) == SQLITE_OK) return STATUS_OK;
    return database_complain(database, err);
}

/* Returns true for a file with the first bytes of a SQLite database. */
static bool begins_as_database(const char *path)
{
    static const char first[] = "SQLite format 3";
    char found[sizeof first];
    FILE *file = fopen(path, "rb");
    const bool same = file && fread(found, 1, sizeof found, file) == sizeof found &&
                      memcmp(found, first, sizeof found) == 0;
    if (file) fclose(file);
    return same;
}

/* Says what the file is instead. */
static enum status refuse_file(const struct database *database, struct error *err)
{
    char expected[64], found[FILE_READING_BYTES];
    if (begins_as_database(database->path))
        return error_set(err, STATUS_BAD_INPUT, "'%s' is a damaged SQLite database (expected a %s)", database->path,
                         database->kind->name);
    snprintf(expected, sizeof expected, "a %s, which is a SQLite database", database->kind->name);
    if (file_reading_refusal_at(database->path, expected, found))
        return error_set(err, STATUS_BAD_INPUT, "'%s' is %s", database->path, found);
    return error_set(err, STATUS_BAD_INPUT, "'%s' is not a %s (%s)", database->path, database->kind->name,
                     sqlite3_errmsg(database->handle));
}

enum status database_ask(const struct database *database, const char *sql, int64_t *out, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(database->handle, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) code = sqlite3_step(statement);
    if (code == SQLITE_ROW) *out = sqlite3_column_int64(statement, 0);
    enum status status = STATUS_OK;
    if (code == SQLITE_NOTADB) status = refuse_file(database, err);
    else if (code != SQLITE_ROW)
        status = database_complain(database, err);
    sqlite3_finalize(statement);
    return status;
}

static enum status count_tables(const struct database *database, int64_t *out, struct error *err)
{
    return database_ask(database, "SELECT count(*) FROM sqlite_master", out, err);
}

static enum status create(const struct database *database, const char *create_sql, struct error *err)
{
    char *sql = sqlite3_mprintf("PRAGMA application_id=%d;PRAGMA user_version=%d;%s", database->kind->application_id,
                                database->kind->version, create_sql);
    enum status status = database_execute(database, sql, err);
    sqlite3_free(sql);
    return status;
}

static enum status check_or_create(struct database *database, const char *create_sql, struct error *err)
{
    const struct database_kind *kind = database->kind;
    int64_t application = 0, version = 0, tables = 0;
    TRY(count_tables(database, &tables, err));
    TRY(database_ask(database, "PRAGMA application_id", &application, err));
    TRY(database_ask(database, "PRAGMA user_version", &version, err));
    database->version = kind->version;
    if (create_sql && tables == 0 && application == 0 && version == 0) return create(database, create_sql, err);
    if (application != kind->application_id)
        return error_set(err, STATUS_BAD_INPUT, "'%s' is not a %s (it is another program's database)", database->path,
                         kind->name);
    if (version > kind->version || version < (kind->oldest > 0 ? kind->oldest : kind->version))
        return error_set(err, STATUS_BAD_INPUT, "'%s' is a %s of version %lld (expected %d)", database->path,
                         kind->name, (long long)version, kind->version);
    database->version = (int)version;
    return STATUS_OK;
}

/* Checks the kind before any write, and under the lock whether the file is still empty. */
enum status database_adopt(struct database *database, const char *create_sql, struct error *err)
{
    int64_t tables = 0;
    TRY(count_tables(database, &tables, err));
    if (!create_sql || tables > 0) return check_or_create(database, NULL, err);
    TRY(database_execute(database, "BEGIN IMMEDIATE", err));
    TRY(check_or_create(database, create_sql, err));
    return database_execute(database, "COMMIT", err);
}
