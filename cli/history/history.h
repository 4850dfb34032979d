/*
 * Predictions and measurements: a row for each plan, simulation and run in a SQLite file.
 *
 * Version 2 of the file has constraints: every value must be in the range that this header gives. A file of version 1
 * is readable, and becomes version 2 when a record is added; rows that break a constraint then move to a table
 * `records_1`.
 *
 * The one table, `records`, has a column for each field of struct history_record, with the same name, so that users can
 * ask further questions in SQL. The file is identified by its application id and its version. Rows are only added.
 * Several programs may write at once: each waits up to two seconds for the others.
 */
#ifndef SPILLWAY_CLI_HISTORY_HISTORY_H
#define SPILLWAY_CLI_HISTORY_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct history; /* opaque: an open file */

/* Range of known figures, in the field's unit; a figure outside the range is unknown. */
#define HISTORY_REAL_MIN 1e-15
#define HISTORY_REAL_MAX 1e18

enum { HISTORY_TIME_BYTES = 24, HISTORY_FINGERPRINT_BYTES = 17 };

/* NULL texts and figures that are 0 are unknown, except where a comment says otherwise. */
struct history_record {
    int64_t id;                 /* number in the order of writing, from 1; ignored when a record is added */
    const char *made_at;        /* UTC, "2026-11-22T09:30:00Z"; never NULL */
    const char *verb;           /* "plan", "simulate" or "run"; never NULL */
    const char *version;        /* of this program */
    const char *command;        /* the words after `spillway`, each quoted for a shell */
    const char *file;           /* the file that was read: jobs, plan or other */
    const char *fingerprint;    /* fingerprint of the plan: 16 hexadecimal digits, equal for predictions and runs of one
                                   plan */
    const char *policy;
    const char *networks;       /* "gpt2-xl, llama-7b x 3" */
    const char *hardware;       /* the machine's name ... */
    const char *measured_on;    /* ... and the device on which its figures were measured; NULL: they were not
                                   measured */
    int64_t jobs, devices;
    double predicted_s;         /* the makespan, by simulation */
    double lower_bound_s;       /* lower bound of the makespan of all plans */
    double predicted_tokens_per_s;
    double measured_s;          /* makespan of a run */
    double measured_tokens_per_s;
    int64_t complete;           /* 1: every job ended, so both makespans are of the same work; else 0 */
};

/* Which records to read; NULL and 0: no restriction. */
struct history_filter {
    const char *verb, *policy, *hardware;
    const char *since;          /* "2026-11", "2026-11-22", ...: made then or later */
    uint32_t last;              /* maximum number of records, the latest ones */
};

/* Writes `seconds` since 1970 in the format of made_at. */
const char *history_time(int64_t seconds, char text[HISTORY_TIME_BYTES]);

/*
 * Opens `path`; with `create` makes the file if it is missing (its folder must exist). The caller closes it; closing
 * NULL is fine. Errors: STATUS_BAD_INPUT if the file is not a history or has another version, STATUS_IO.
 */
MUST_CHECK enum status history_open(const char *path, bool create, struct history **out, struct error *err);
void history_close(struct history *history);

/* Adds a record, whole or not at all. Errors: STATUS_IO. */
MUST_CHECK enum status history_add(struct history *history, const struct history_record *record, struct error *err);

/* Rows with values that no record can have; they are left out. */
struct history_wrong {
    uint64_t rows;
    char text[720]; /* the first such row: "row 7: 'verb' is 'sleep' (expected ...)", faults separated by semicolons */
};

/* Reads the records that pass the filter, the earliest first; texts live as long as `arena`. If `wrong` is NULL, a
 * wrong row is an error. Errors: STATUS_IO; STATUS_BAD_INPUT with row and column. */
MUST_CHECK enum status history_read(struct history *history, const struct history_filter *filter, struct arena *arena,
                                    struct history_record **out, size_t *count, struct history_wrong *wrong,
                                    struct error *err);

#endif
