/*
 * What was predicted and what was measured, kept: a row for each plan, simulation and run in a file of SQLite.
 *
 * Version 2 of the file has constraints: every value is in the range that is given here. A file of version 1 is read as it is
 * and brought to version 2 when a record is added; rows that break a constraint then stay in a table `records_1`.
 *
 * One table, `records`, whose columns are the fields of struct history_record under the same names, so that whoever
 * wants another question answered asks it in SQL. The file names itself by its application id and its version; rows are
 * only ever added. Several programs may write at once: each waits up to two seconds for the others.
 */
#ifndef SPILLWAY_HISTORY_HISTORY_H
#define SPILLWAY_HISTORY_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct history; /* opaque: an open file */

/* Figures are from the one to the other; a figure out of this range is not known. */
#define HISTORY_REAL_MIN 1e-15
#define HISTORY_REAL_MAX 1e18

enum { HISTORY_TIME_BYTES = 24, HISTORY_FINGERPRINT_BYTES = 17 };

/* Texts may be NULL, which is not known, and so is a figure that is 0, but for the two that say otherwise. */
struct history_record {
    int64_t id;                 /* in the order of writing, from 1; of no meaning when one is added */
    const char *made_at;        /* UTC, "2026-11-22T09:30:00Z"; never NULL */
    const char *verb;           /* "plan", "simulate" or "run"; never NULL */
    const char *version;        /* of this program */
    const char *command;        /* the words behind `spillway`, each ready for a shell */
    const char *file;           /* jobs, plan or whatever was read */
    const char *fingerprint;    /* of the plan: 16 hexadecimal digits, in predictions and runs of it the same */
    const char *policy;
    const char *networks;       /* "gpt2-xl, llama-7b x 3" */
    const char *hardware;       /* the machine's name ... */
    const char *measured_on;    /* ... and what its figures were measured on; NULL: they were not */
    int64_t jobs, devices;
    double predicted_s;         /* the makespan, by simulation */
    double lower_bound_s;       /* that no plan can beat */
    double predicted_tokens_per_s;
    double measured_s;          /* of a run */
    double measured_tokens_per_s;
    int64_t complete;           /* 1: every job came to its end, so that the two makespans are of the same work; else 0 */
};

/* Which records; NULL and 0: whichever. */
struct history_filter {
    const char *verb, *policy, *hardware;
    const char *since;          /* "2026-11", "2026-11-22", ...: made then or later */
    uint32_t last;              /* as many at most, the latest ones */
};

/* `seconds` since 1970 as made_at has it. */
const char *history_time(int64_t seconds, char text[HISTORY_TIME_BYTES]);

/*
 * Open `path`, or make it (`create`; its folder must be there). The caller closes it; closing NULL is fine.
 * Errors: STATUS_BAD_INPUT when it is no history or one of another version, STATUS_IO.
 */
MUST_CHECK enum status history_open(const char *path, bool create, struct history **out, struct error *err);
void history_close(struct history *history);

/* Add a record, whole or not at all. Errors: STATUS_IO. */
MUST_CHECK enum status history_add(struct history *history, const struct history_record *record, struct error *err);

/* Rows that have a value which no record has: they are left out. */
struct history_wrong {
    uint64_t rows;
    char text[720]; /* "row 7: 'verb' is 'sleep' (expected ...)", of the first of them, with semicolons between */
};

/* Those that pass, the earliest first; texts live as long as `arena`. `wrong` NULL: such a row is an error. Errors:
 * STATUS_IO, STATUS_NO_MEMORY; STATUS_BAD_INPUT with row and column. */
MUST_CHECK enum status history_read(struct history *history, const struct history_filter *filter, struct arena *arena,
                                    struct history_record **out, size_t *count, struct history_wrong *wrong,
                                    struct error *err);

#endif
