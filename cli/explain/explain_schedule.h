/*
 * The schedule of a plan's operations from durations in a trace, computed again after some durations change.
 *
 * It works like sim/replay.h, but with open arrays: durations and gaps can be changed one by one, and the result has,
 * for each operation, the operation that its begin waited for.
 */
#ifndef SPILLWAY_CLI_EXPLAIN_EXPLAIN_SCHEDULE_H
#define SPILLWAY_CLI_EXPLAIN_EXPLAIN_SCHEDULE_H

#include "planner/plan.h"
#include "traces/trace.h"

#define EXPLAIN_NOBODY UINT64_MAX

/* Arrays indexed by operation number. Several numbers of one operation, such as a collective, have equal values. */
struct explain_times {
    uint64_t count;
    double *seconds; /* measured, with waiting for links */
    double *gap_s;   /* from the end of the last operation that it waited for to its begin; at least 0 */
    double *alone_s; /* time by models/cost/cost.h on the plan's machine without contention; of collectives,
                        `seconds` */
};

/*
 * Takes the times of `trace`, which is of `plan`, complete and with spans. Arrays live as long as `arena`. Errors:
 * STATUS_BAD_INPUT if it is not.
 */
MUST_CHECK enum status explain_times_read(const struct plan *plan, const struct trace *trace, struct arena *arena,
                                          struct explain_times *out, struct error *err);

struct explain_schedule {
    double *end_s;
    uint64_t *decisive;  /* the operation that its begin waited for longest; EXPLAIN_NOBODY: the start of the run */
    uint64_t last;       /* the operation that ends last; EXPLAIN_NOBODY: there are no operations */
    double makespan_s;
};

/* Starts each operation when all that it waits for have ended and its gap is over; the run starts at 0. Cost: a walk
 * over the plan. */
MUST_CHECK enum status explain_schedule_run(const struct plan *plan, const struct explain_times *times, struct arena *arena,
                                            struct explain_schedule *out, struct error *err);

#endif
