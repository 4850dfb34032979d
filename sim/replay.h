/*
 * A recorded trace once more, with something changed.
 *
 * Its operations take the seconds that they took, and wait for what the plan says: of the record only its durations and
 * its gaps count. A gap is what passed between the end of the last operation that one waited for, or that was in front
 * of it on its stream, and its begin: the executor's own time, which a plan knows nothing of. Gaps stay what they were,
 * unless they are what changes.
 *
 *     recorded    h2d [ 4 ]          compute waits, begins 0.5 later     h2d scaled by 0.5    [2]
 *                 compute   .5[  6  ]  ends at 10.5                                            .5[  6  ]  8.5
 *
 * Links are not shared anew: a copy that was slowed by another one takes as long as it did.
 */
#ifndef SPILLWAY_SIM_REPLAY_H
#define SPILLWAY_SIM_REPLAY_H

#include "planner/plan.h"
#include "traces/trace.h"

/* How many times as long things take. */
struct sim_replay_change {
    double scale[STREAM_KIND_COUNT]; /* operations on streams of a kind; at least 0 */
    double gap_scale;                /* gaps; at least 0 */
    const double *slow;              /* computations of each device; NULL: 1 each */
    const struct hardware *hardware; /* what models/cost/cost.h says of an operation alone on this machine, over what it
                                        says of it on the plan's; NULL: the plan's. Where that is nothing: 1 */
};
/* Nothing changed. */
struct sim_replay_change sim_replay_unchanged(void);

struct sim_replay {
    double makespan_s;
    double gap_s;         /* of the record, all together, and how many */
    uint64_t gap_count;
    double early_s;       /* the most that an operation began before it could by the record; clocks may differ */
    uint64_t early_count; /* such operations: they are replayed without a gap */
    /* The chain of operations that ends last, each behind the one that it waited for: its seconds by stream kind, and
     * the gaps in it, as replayed. Their sum is the makespan. */
    double path_s[STREAM_KIND_COUNT], path_gap_s;
    uint64_t path_count;
};

/*
 * Replay `record`, a trace of `plan`. *out (zeroed) becomes the new trace, predicted, with peaks of memory as recorded;
 * release it, also after an error.
 * Errors: STATUS_BAD_INPUT where the record is of another plan, not complete or without spans, or the plan does not run
 * on change->hardware; STATUS_LIMIT; STATUS_NO_MEMORY.
 */
MUST_CHECK enum status sim_replay_run(const struct plan *plan, const struct trace *record,
                                      const struct sim_replay_change *change, struct trace *out,
                                      struct sim_replay *result, struct error *err);

#endif
