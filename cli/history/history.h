/*
 * Predictions and measurements: a row per plan, simulation and run in SQLite.
 *
 * Version 2 has constraints: every value is in this header's range. Version 1 is readable, and becomes version 2 when
 * a record is added; rows that break a constraint move to `records_1`.
 *
 * The table `records` has a column for each field of struct history_record, for questions in SQL. Rows are only added.
 * Writers wait up to two seconds for each other.
 */
#ifndef SPILLWAY_CLI_HISTORY_HISTORY_H
#define SPILLWAY_CLI_HISTORY_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct history; /* an open file */

/* In the field's unit; other figures are unknown. */
#define HISTORY_REAL_MIN 1e-15
#define HISTORY_REAL_MAX 1e18

enum { HISTORY_TIME_BYTES = 24, HISTORY_FINGERPRINT_BYTES = 17 };

/* NULL and 0 are unknown unless a comment says otherwise. */
struct history_record {
    int64_t id;                 /* from 1, in the order of writing; ignored when added */
    const char *made_at;        /* UTC, "2026-11-22T09:30:00Z"; not NULL */
    const char *verb;           /* "plan", "simulate" or "run"; not NULL */
    const char *version;        /* of this program */
    const char *command;        /* after `spillway`, each word quoted for a shell */
    const char *file;           /* read: jobs, plan or other */
    const char *fingerprint;    /* of the plan: 16 hexadecimal digits */
    const char *policy;
    const char *networks;       /* "gpt2-xl, llama-7b x 3" */
    const char *hardware;       /* the machine's name ... */
    const char *measured_on;    /* ... and the measured device; may be NULL */
    int64_t jobs, devices;
    double predicted_s;         /* makespan, by simulation */
    double lower_bound_s;       /* of the makespan of all plans */
    double predicted_tokens_per_s;
    double measured_s;          /* of a run */
    double measured_tokens_per_s;
    int64_t complete;           /* 1: every job ended, so both makespans are of the same work; else 0 */
};

/* NULL and 0: no restriction. */
struct history_filter {
    const char *verb, *policy, *hardware;
    const char *since;          /* "2026-11", "2026-11-22", ...: then or later */
    uint32_t last;              /* at most, the latest */
};

/* Writes seconds since 1970 like made_at. */
const char *history_time(int64_t seconds, char text[HISTORY_TIME_BYTES]);

/*
 * Opens `path`; `create` makes a missing file (its folder must exist). The caller closes it; closing NULL is fine.
 * Errors: STATUS_BAD_INPUT if the file is not a history or has another version, STATUS_IO.
 */
MUST_CHECK enum status history_open(const char *path, bool create, struct history **out, struct error *err);
void history_close(struct history *history);

/* Adds a whole record or nothing. Errors: STATUS_IO. */
MUST_CHECK enum status history_add(struct history *history, const struct history_record *record, struct error *err);

/* Left out: no record can have these values. */
struct history_wrong {
    uint64_t rows;
    char text[720]; /* the first: "row 7: 'verb' is 'sleep' (expected ...)", faults separated by semicolons */
};

/* Reads filtered records, the earliest first; texts live as long as `arena`. `wrong` NULL: a wrong row is an error.
 * Errors: STATUS_IO; STATUS_BAD_INPUT with row and column. */
MUST_CHECK enum status history_read(struct history *history, const struct history_filter *filter, struct arena *arena,
                                    struct history_record **out, size_t *count, struct history_wrong *wrong,
                                    struct error *err);

#endif
