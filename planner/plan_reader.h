/*
 * What the parts of the reader of plan files (planner/plan_read.c) share: elements of rows, memory of the plan, limits.
 * Nobody else includes this. Each function says where the file is wrong: STATUS_BAD_INPUT with file, line and column.
 */
#ifndef SPILLWAY_PLANNER_PLAN_READER_H
#define SPILLWAY_PLANNER_PLAN_READER_H

#include "base/json_in.h"
#include "planner/plan.h"

struct plan_reader {
    const struct json_input *in;
    struct plan *plan; /* being filled */
    struct error *err;
    const json_t *choices; /* NULL: there are none */
};

/* --- elements of rows ------------------------------------------------------------------------ */

MUST_CHECK enum status plan_reader_u32(struct plan_reader *r, const json_t *row, size_t index, uint32_t min, uint32_t max,
                                       uint32_t *out);

/* An index into a table of `count`; `what` names its elements. */
MUST_CHECK enum status plan_reader_index(struct plan_reader *r, const json_t *row, size_t index, const char *what,
                                         uint32_t count, uint32_t *out);

/* One of `count` names, by its place among them. */
MUST_CHECK enum status plan_reader_choice(struct plan_reader *r, const json_t *row, size_t index, const char *what,
                                          const char *const *names, uint32_t count, uint32_t *out);

/* A shard of `job`, or null, which is PLAN_NONE. */
MUST_CHECK enum status plan_reader_shard(struct plan_reader *r, const json_t *row, size_t index, uint32_t job,
                                         uint32_t *out);

/* How many shards a job has, of a plan whose shards have been read. */
uint32_t plan_reader_shards(const struct plan *plan, uint32_t job);

/* --- sizes ------------------------------------------------------------------------------------ */

/* A zeroed table of the plan; `out` points to any pointer to an object. */
MUST_CHECK enum status plan_reader_allocate(struct plan_reader *r, size_t count, size_t size, void *out);

MUST_CHECK enum status plan_reader_limit(struct plan_reader *r, const json_t *array, size_t count, size_t limit,
                                         const char *what);

/* Elements of all the arrays in `array`, those of other types counted as empty. */
size_t plan_reader_inner(const json_t *array);

/* --- tables ----------------------------------------------------------------------------------- */

/* The units, with operations, accesses and orderings, when works, buffers and slots have been read. */
MUST_CHECK enum status plan_reader_units(struct plan_reader *r, const json_t *array);

#endif
