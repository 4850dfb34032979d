/* The file of a plan: written, and read with the check of every rule (planner/check/plan_check.h). */
#ifndef SPILLWAY_PLANNER_FILES_PLAN_IO_H
#define SPILLWAY_PLANNER_FILES_PLAN_IO_H

#include "planner/plan.h"

struct json_out;

/* Reads a plan and checks it with plan_check(). Errors: STATUS_BAD_INPUT with file, line and column (unknown version,
 * key or name; index out of range); STATUS_CHECK, with the file's name, if plan_check() refuses it. */
MUST_CHECK enum status plan_read(const char *path, struct plan *out, struct error *err);

/* Reads from memory, for tests; `name` stands for the file in messages. */
MUST_CHECK enum status plan_parse(const char *name, const char *text, size_t length,
                                  struct plan *out, struct error *err);

/* Checks a plan with plan_check() and writes it atomically. The jobs' paths are relative to `path`'s folder, also for
 * plan_read(): a plan can be moved with its folder. */
MUST_CHECK enum status plan_write(const struct plan *plan, const char *path, struct error *err);

/* Writes JSON of a checked plan; paths are absolute. */
void plan_write_json(const struct plan *plan, struct json_out *out);

#endif
