/*
 * The critical path of a plan's simulated run, from spans as they come: as explain_times_read(), explain_schedule_run()
 * and explain_path_find() find it from a whole trace, to the last bit. The newest operations are in memory, earlier
 * ones in a file without a name.
 */
#ifndef SPILLWAY_CLI_EXPLAIN_PLAN_PATH_H
#define SPILLWAY_CLI_EXPLAIN_PLAN_PATH_H

#include "cli/explain/critical_path.h"

struct explain_plan_path; /* opaque */

enum { EXPLAIN_PLAN_WINDOW = 1 << 15 };

/*
 * `window`: operations in memory, a power of two and at least the members of any collective. `plan` is borrowed. The
 * caller frees *out with explain_plan_path_destroy().
 */
MUST_CHECK enum status explain_plan_path_create(const struct plan *plan, uint64_t window,
                                                struct explain_plan_path **out, struct error *err);
void explain_plan_path_destroy(struct explain_plan_path *path); /* NULL does nothing */

/* Adds the next span in the order of their numbers: on_span of struct sim_options, with the path as its context. The
 * run begins at 0. A failure is remembered and reported by explain_plan_path_find(). */
void explain_plan_path_span(void *path, const struct trace_span *span);

/*
 * Finds the path after all spans have come. `trace` has the streams and jobs. Arrays of *out live as long as `arena`.
 * Errors: STATUS_BAD_INPUT if the plan has no operations; STATUS_IO for the file.
 */
MUST_CHECK enum status explain_plan_path_find(struct explain_plan_path *path, const struct trace *trace,
                                              struct arena *arena, struct explain_path *out, struct error *err);

#endif
