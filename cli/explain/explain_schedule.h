/*
 * A plan's operations once more: how long each took by a trace, and when each would begin if others took.
 *
 * The same idea as sim/replay.h, laid open: durations and gaps are arrays, to be changed one by one, and of each
 * operation is known what its begin waited for.
 */
#ifndef SPILLWAY_EXPLAIN_EXPLAIN_SCHEDULE_H
#define SPILLWAY_EXPLAIN_EXPLAIN_SCHEDULE_H

#include "planner/plan.h"
#include "traces/trace.h"

#define EXPLAIN_NOBODY UINT64_MAX

/* By operation number; of operations that are one, as a collective is, all have the same. */
struct explain_times {
    uint64_t count;
    double *seconds; /* as it ran, waiting for links included */
    double *gap_s;   /* between the end of the last one that it waited for and its begin; at least 0 */
    double *alone_s; /* what models/cost/cost.h says on the plan's machine with nothing else running; of collectives `seconds` */
};

/*
 * Of `trace`, which is of `plan`, complete and with spans. Arrays live as long as `arena`.
 * Errors: STATUS_BAD_INPUT where it is not; STATUS_NO_MEMORY.
 */
MUST_CHECK enum status explain_times_take(const struct plan *plan, const struct trace *trace, struct arena *arena,
                                          struct explain_times *out, struct error *err);

struct explain_schedule {
    double *end_s;
    uint64_t *decisive;  /* whose end the begin waited for, longest; EXPLAIN_NOBODY: the run's begin */
    uint64_t last;       /* ends last; EXPLAIN_NOBODY: there are no operations */
    double makespan_s;
};

/* Begin at 0; begin each when all that it waits for have ended and its gap is over. Cost: a walk over the plan. */
MUST_CHECK enum status explain_schedule_run(const struct plan *plan, const struct explain_times *times, struct arena *arena,
                                            struct explain_schedule *out, struct error *err);

#endif
