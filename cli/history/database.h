/*
 * Files of SQLite that are ours: opened with some patience for other processes, and only if they are what they should be.
 *
 * A kind of file has an id of its own in SQLite's header (PRAGMA application_id) and a version (PRAGMA user_version), so
 * that somebody else's database is refused before anything is written to it.
 */
#ifndef SPILLWAY_HISTORY_DATABASE_H
#define SPILLWAY_HISTORY_DATABASE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct database_kind {
    const char *name;  /* in messages: "'file' is no history" */
    const char *title; /* what stands in front of the file's name in other messages: "the history " */
    int application_id, version;
    int oldest; /* version that can still be read; 0: `version` only */
};

struct database {
    const struct database_kind *kind;
    sqlite3 *handle;
    const char *path; /* borrowed */
    int version;      /* of the file, when it is claimed */
};

/* `create`: a file that is not there is made. Close it in any case. Errors: STATUS_IO. */
MUST_CHECK enum status database_open(const char *path, const struct database_kind *kind, bool create,
                                     struct database *out, struct error *err);
void database_close(struct database *database); /* a transaction that was not committed is undone */

/*
 * It is one of the kind; or it is made one by the statements `create_sql` where it is empty, in one transaction, of two
 * processes that begin at once by the first. NULL: an empty file is none.
 * Errors: STATUS_BAD_INPUT for somebody else's file and for a version that cannot be read; STATUS_IO.
 */
MUST_CHECK enum status database_claim(struct database *database, const char *create_sql, struct error *err);

/* STATUS_IO with what SQLite says. */
enum status database_complain(const struct database *database, struct error *err);

/* The one whole number that a statement answers with. Errors: STATUS_IO; STATUS_BAD_INPUT when the file is no database. */
MUST_CHECK enum status database_ask(const struct database *database, const char *sql, int64_t *out, struct error *err);

/* Statements without an answer. Errors: STATUS_IO; STATUS_NO_MEMORY where `sql` is NULL, as sqlite3_mprintf() leaves it. */
MUST_CHECK enum status database_execute(const struct database *database, const char *sql, struct error *err);

#endif
