/*
 * Replay of a recorded trace with changed durations.
 *
 * Operations take their recorded times, and wait as the plan says. Only the record's durations and gaps are used. A gap
 * is the time from the last end that an operation waited for, or that preceded it on its stream, to its begin: the
 * executor's overhead. gap_scale changes them.
 *
 *     recorded    h2d [ 4 ]          compute waits, begins 0.5 later     h2d scaled by 0.5    [2]
 *                 compute   .5[  6  ]  ends at 10.5                                            .5[  6  ]  8.5
 *
 * Link contention is not computed again: a slowed copy keeps its recorded time.
 */
#ifndef SPILLWAY_SIM_REPLAY_H
#define SPILLWAY_SIM_REPLAY_H

#include "planner/plan.h"
#include "traces/trace.h"

/* Factors of durations. */
struct sim_replay_change {
    double scale[STREAM_KIND_COUNT]; /* operations on streams of a kind; at least 0 */
    double gap_scale;                /* gaps; at least 0 */
    const double *slow;              /* factors of each device's computations; NULL: all 1 */
    const struct hardware *hardware; /* scales each operation by its time without contention (models/cost/cost.h) here
                                      * over that on the plan's machine; NULL: the plan's. The factor is 1 if the latter
                                      * is 0 */
};
/* Returns a change that keeps all durations. */
struct sim_replay_change sim_replay_unchanged(void);

struct sim_replay {
    double makespan_s;
    double gap_s;         /* sum of the record's gaps, and their number */
    uint64_t gap_count;
    double early_s;       /* longest time that an operation began too early; clocks may differ */
    uint64_t early_count; /* such operations: they are replayed without a gap */
    /* The chain that ends last, each operation after the one that it waited for: replayed seconds by stream kind, and
     * gaps. Their sum is the makespan. */
    double path_s[STREAM_KIND_COUNT], path_gap_s;
    uint64_t path_count;
};

/*
 * Replays `record`, a trace of `plan`. *out, zeroed before, becomes the new trace, marked predicted, with the recorded
 * memory peaks; the caller releases it, also after an error. Errors: STATUS_BAD_INPUT for a record of another plan,
 * incomplete or without spans, or if the plan does not run on change->hardware; STATUS_LIMIT.
 */
MUST_CHECK enum status sim_replay_run(const struct plan *plan, const struct trace *record,
                                      const struct sim_replay_change *change, struct trace *out,
                                      struct sim_replay *result, struct error *err);

#endif
