/*
 * Shared by the parts of the reader of plan files (planner/files/plan_read.c). Errors: STATUS_BAD_INPUT with file, line
 * and column.
 */
#ifndef SPILLWAY_PLANNER_FILES_PLAN_READER_H
#define SPILLWAY_PLANNER_FILES_PLAN_READER_H

#include "base/json/json_stream.h"
#include "planner/plan.h"

/* The long arrays of a plan's file. */
enum plan_table {
    PLAN_TABLE_SHARDS,
    PLAN_TABLE_WORKS,
    PLAN_TABLE_BUFFERS,
    PLAN_TABLE_SLOTS,
    PLAN_TABLE_UNITS,
    PLAN_TABLE_SEGMENTS,
    PLAN_TABLE_CHOICES, /* this one and the later ones are optional */
    PLAN_TABLE_TASKS,
    PLAN_TABLE_LANES,
    PLAN_TABLE_TURNS,
    PLAN_TABLE_COUNT
};

struct plan_reader {
    const struct json_input *in; /* the file's head, or the table's current element */
    struct plan *plan; /* being filled */
    struct error *err;
    struct json_stream *file;
    const char *folder;                     /* folder that relative paths refer to */
    const json_t *tables[PLAN_TABLE_COUNT]; /* in the head, without elements; NULL: missing */
    uint64_t element;                       /* its number, while an element is read */
};

/* --- elements of rows ------------------------------------------------------------------------ */

MUST_CHECK enum status plan_reader_u32(struct plan_reader *r, const json_t *row, size_t index, uint32_t min,
                                       uint32_t max, uint32_t *out);

/* Reads an index into a table of `count`; `what` names its elements. */
MUST_CHECK enum status plan_reader_index(struct plan_reader *r, const json_t *row, size_t index, const char *what,
                                         uint32_t count, uint32_t *out);

/* Reads one of `count` names as its index. */
MUST_CHECK enum status plan_reader_choice(struct plan_reader *r, const json_t *row, size_t index, const char *what,
                                          const char *const *names, uint32_t count, uint32_t *out);

/* Reads a shard of `job`, or null: PLAN_NONE. */
MUST_CHECK enum status plan_reader_shard(struct plan_reader *r, const json_t *row, size_t index, uint32_t job,
                                         uint32_t *out);


/* --- sizes ------------------------------------------------------------------------------------ */

MUST_CHECK enum status plan_reader_limit(struct plan_reader *r, const json_t *array, size_t count, size_t limit,
                                         const char *what);

/* --- tables element by element ---------------------------------------------------------------- */

/* Counts a table's elements. *inner: elements of all arrays in it; other types count as empty. */
MUST_CHECK enum status plan_reader_count(struct plan_reader *r, enum plan_table table, size_t *count, size_t *inner);

/* Handles element r->element, the root of r->in; `context` is the caller's. */
typedef enum status (*plan_reader_take)(struct plan_reader *r, const json_t *element, void *context);
MUST_CHECK enum status plan_reader_each(struct plan_reader *r, enum plan_table table, plan_reader_take take,
                                        void *context);

/* Parses one element. */
MUST_CHECK enum status plan_reader_parse(struct plan_reader *r, const struct json_stream *stream,
                                         const struct json_element *element, plan_reader_take take, void *context);

/* Checks for an array of `length` elements (SIZE_MAX: any number). */
MUST_CHECK enum status plan_reader_row(struct plan_reader *r, const json_t *element, size_t length);

/* --- tables ----------------------------------------------------------------------------------- */

/* Reads units, with operations, accesses and orderings, after works, buffers and slots. */
MUST_CHECK enum status plan_reader_units(struct plan_reader *r);

/* Reads segments, tasks and choices, after units and gangs. */
MUST_CHECK enum status plan_reader_segments(struct plan_reader *r);

#endif
