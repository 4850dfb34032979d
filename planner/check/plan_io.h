/* Plans as JSON files: struct plan without its derived fields. */
#ifndef SPILLWAY_PLANNER_CHECK_PLAN_IO_H
#define SPILLWAY_PLANNER_CHECK_PLAN_IO_H

#include "planner/plan.h"

struct json_out;

/* Reads a plan and checks it with plan_check(). Errors: STATUS_BAD_INPUT with file, line and column (an unknown
 * version, key, name; an index out of range); STATUS_CHECK, with the file's name, when plan_check() refuses the
 * plan. */
MUST_CHECK enum status plan_read(const char *path, struct plan *out, struct error *err);

/* Reads a plan from memory, for tests; `name` stands for the file in messages. */
MUST_CHECK enum status plan_parse(const char *name, const char *text, size_t length,
                                  struct plan *out, struct error *err);

/* Checks a plan with plan_check() and writes it atomically. Paths of the jobs are relative to the folder of `path`, and
 * plan_read() reads them so: a plan can be moved with its folder. */
MUST_CHECK enum status plan_write(const struct plan *plan, const char *path, struct error *err);

/* Writes only the JSON, for a plan that has passed plan_check(); paths are absolute. */
void plan_write_json(const struct plan *plan, struct json_out *out);

#endif
