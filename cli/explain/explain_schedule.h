/*
 * Schedules a plan's operations by durations in a trace, also after changes of some. Like sim/replay.h, but each
 * duration and gap can be changed, and the result has the operation that each begin waited for.
 */
#ifndef SPILLWAY_CLI_EXPLAIN_EXPLAIN_SCHEDULE_H
#define SPILLWAY_CLI_EXPLAIN_EXPLAIN_SCHEDULE_H

#include "planner/plan.h"
#include "traces/trace.h"

#define EXPLAIN_NOBODY UINT64_MAX

/* Indexed by operation; numbers of one operation, such as a collective, have equal values. */
struct explain_times {
    uint64_t count;
    double *seconds; /* measured, with waiting for links */
    double *gap_s;   /* from the last awaited end to its begin; at least 0 */
    double *alone_s; /* by models/cost/cost.h on the plan's machine without contention; of collectives, `seconds` */
    double *waited_s; /* of a member of a collective: for the last one, by the trace or, without waits, by the plan */
    double *spread_s; /* of a collective: from the time when its first member could begin to the last one's; else 0 */
    const double *spread_most_s; /* likewise, the most that a schedule has; NULL: no limit */
};

struct plan_walk_op;
struct sim_durations;

/* Returns the operation's alone_s; `seconds` is its duration. */
double explain_alone_s(const struct plan *plan, struct sim_durations *durations, const struct plan_walk_op *op,
                       double seconds);

/*
 * Takes the times of `trace`, which is of `plan`, complete and with spans. Arrays live as long as `arena`. Errors:
 * STATUS_BAD_INPUT if it is not.
 */
MUST_CHECK enum status explain_times_read(const struct plan *plan, const struct trace *trace, struct arena *arena,
                                          struct explain_times *out, struct error *err);

struct explain_schedule {
    double *end_s;
    uint64_t *decisive;  /* awaited longest; EXPLAIN_NOBODY: the start of the run */
    uint64_t last;       /* ends last; EXPLAIN_NOBODY: no operations */
    double makespan_s;
};

/*
 * Starts operations when all awaited ones have ended and their gap is over. With a limit of spreads a collective begins
 * at most so long after its first member came, as if the late members were not late. Cost: a walk over the plan.
 */
MUST_CHECK enum status explain_schedule_run(const struct plan *plan, const struct explain_times *times,
                                            struct arena *arena, struct explain_schedule *out, struct error *err);

#endif
