/*
 * This program's SQLite files. Opening waits a while for other processes. Each kind has an id (PRAGMA application_id)
 * and a version (PRAGMA user_version): other programs' databases are refused before anything is written.
 */
#ifndef SPILLWAY_CLI_HISTORY_DATABASE_H
#define SPILLWAY_CLI_HISTORY_DATABASE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct database_kind {
    const char *name;  /* for "'file' is no history" */
    const char *title; /* before the file's name: "the history " */
    int application_id, version;
    int oldest; /* that can be read; 0: only `version` */
};

struct database {
    const struct database_kind *kind;
    sqlite3 *handle;
    const char *path; /* borrowed */
    int version;      /* set by database_adopt() */
};

/* Opens `path`; `create` makes a missing file. The caller closes `out` in any case. Errors: STATUS_IO. */
MUST_CHECK enum status database_open(const char *path, const struct database_kind *kind, bool create,
                                     struct database *out, struct error *err);
void database_close(struct database *database); /* undoes an uncommitted transaction */

/*
 * Checks the kind. An empty file is made one by `create_sql` in one transaction, of the first of two processes; NULL:
 * an empty file is not of the kind. Errors: STATUS_BAD_INPUT for another program's file and for a version that cannot
 * be read; STATUS_IO.
 */
MUST_CHECK enum status database_adopt(struct database *database, const char *create_sql, struct error *err);

/* Sets STATUS_IO with SQLite's message. */
enum status database_complain(const struct database *database, struct error *err);

/* Reads a statement's single integer. Errors: STATUS_IO; STATUS_BAD_INPUT when the file is not a database. */
MUST_CHECK enum status database_ask(const struct database *database, const char *sql, int64_t *out, struct error *err);

/* Executes statements without results. Errors: STATUS_IO; STATUS_NO_MEMORY if `sql` is NULL, which
 * sqlite3_mprintf() returns. */
MUST_CHECK enum status database_execute(const struct database *database, const char *sql, struct error *err);

#endif
