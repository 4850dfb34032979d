/*
 * SQLite files of this program. Opening waits a while for other processes and refuses other programs' files.
 *
 * Each kind of file has its own id in SQLite's header (PRAGMA application_id) and a version (PRAGMA user_version), so
 * that another program's database is refused before anything is written to it.
 */
#ifndef SPILLWAY_CLI_HISTORY_DATABASE_H
#define SPILLWAY_CLI_HISTORY_DATABASE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct database_kind {
    const char *name;  /* in messages: "'file' is no history" */
    const char *title; /* words before the file's name in other messages: "the history " */
    int application_id, version;
    int oldest; /* oldest version that can still be read; 0: only `version` */
};

struct database {
    const struct database_kind *kind;
    sqlite3 *handle;
    const char *path; /* borrowed */
    int version;      /* version of the file, set by database_claim() */
};

/* Opens `path`; with `create` makes a missing file. The caller closes `out` in any case. Errors: STATUS_IO. */
MUST_CHECK enum status database_open(const char *path, const struct database_kind *kind, bool create,
                                     struct database *out, struct error *err);
void database_close(struct database *database); /* an uncommitted transaction is undone */

/*
 * Checks that the file is of the kind. An empty file is made one by the statements `create_sql` in one transaction; if
 * two processes begin at once, the first one creates the tables. `create_sql` NULL: an empty file is not of the kind.
 * Errors: STATUS_BAD_INPUT for another program's file and for a version that cannot be read; STATUS_IO.
 */
MUST_CHECK enum status database_claim(struct database *database, const char *create_sql, struct error *err);

/* Sets STATUS_IO with SQLite's message. */
enum status database_complain(const struct database *database, struct error *err);

/* Reads the single integer that a statement returns. Errors: STATUS_IO; STATUS_BAD_INPUT when the file is not a
 * database. */
MUST_CHECK enum status database_ask(const struct database *database, const char *sql, int64_t *out, struct error *err);

/* Executes statements without results. Errors: STATUS_IO; STATUS_NO_MEMORY if `sql` is NULL, which sqlite3_mprintf()
 * returns. */
MUST_CHECK enum status database_execute(const struct database *database, const char *sql, struct error *err);

#endif
