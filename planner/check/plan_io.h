/* Plans as JSON files: everything in struct plan but what follows from the rest. */
#ifndef SPILLWAY_PLANNER_PLAN_IO_H
#define SPILLWAY_PLANNER_PLAN_IO_H

#include "planner/plan.h"

struct json_out;

/*
 * Read and plan_check() a plan. Zeroed struct in; release with plan_release(), also after an error.
 * Errors: STATUS_BAD_INPUT with file, line and column (an unknown version, key, name; an index out
 * of range); STATUS_CHECK, in front of which the file's name stands, for what plan_check() refuses.
 */
MUST_CHECK enum status plan_read(const char *path, struct plan *out, struct error *err);

/* The same from memory, for tests; `name` stands for the file in messages. */
MUST_CHECK enum status plan_parse(const char *name, const char *text, size_t length,
                                  struct plan *out, struct error *err);

/* plan_check() and write, atomically. Paths of the jobs are as seen from the folder of `path`, and plan_read() reads them so:
 * a plan can be moved with its folder. */
MUST_CHECK enum status plan_write(const struct plan *plan, const char *path, struct error *err);

/* Writes only the JSON, for a plan that has passed plan_check(); paths are absolute. */
void plan_write_json(const struct plan *plan, struct json_out *out);

#endif
