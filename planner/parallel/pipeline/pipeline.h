/*
 * In which order the stages of a pipeline pass microbatches forward and backward.
 *
 *   gpipe        all forward, then all backward
 *   1f1b         stage p of P begins with P - 1 - p forward passes, then one forward, one backward in turn
 *   interleaved  the same with v chunks: microbatches in groups of P, chunk by chunk, and (P - 1 - p) 2 +
 *                (v - 1) P forward passes to begin with
 *   zb-h1, -h2   backward passes in two: gradients of weights are computed when there is nothing else to
 *                do. At most P (2 P - 1) microbatches are kept on each stage
 *   zb-v         the same with two chunks there and back, at most 2 P of them kept
 *
 * One stage has nobody to wait for: but with zero-bubble schedules each microbatch goes forward through all
 * its chunks and back, one microbatch after the other.
 *
 * The passes of a run go through its microbatches in order. Synchronous all: every microbatch of a minibatch
 * is computed with the weights as the minibatch before left them. Those that are not are
 * planner/parallel/parallel_job_async.h's, slices of sequences planner/parallel/parallel_job_slices.h's, replicas that take
 * turns planner/parallel/pipeline/pipeline_turns.h's, and buckets, over which a stage's passes go one behind the other,
 * planner/parallel/pipeline/pipeline_buckets.h's.
 *
 * Sources: GPipe, arXiv 1811.06965; PipeDream-Flush, arXiv 2006.09503; interleaving, arXiv 2104.04473;
 * zero bubble, arXiv 2401.10241.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PIPELINE_PIPELINE_H
#define SPILLWAY_PLANNER_PARALLEL_PIPELINE_PIPELINE_H

#include "base/arena.h"
#include "models/job/parallel.h"

enum pipeline_pass { PIPELINE_FORWARD, PIPELINE_BACKWARD, PIPELINE_INPUT, PIPELINE_WEIGHT, PIPELINE_PASSES };

/* Are backward passes in two, PIPELINE_INPUT and PIPELINE_WEIGHT? */
bool pipeline_splits(const struct parallel *parallel);

/*
 * Seconds of the passes over a run, by enum pipeline_pass, and of a boundary from it to the next run; its gradient takes as
 * long on its way back. Where stages block (models/job/parallel.h) that belongs to the pass which needs it.
 */
struct pipeline_times {
    double pass_s[PIPELINE_PASSES];
    double send_s;
};

struct pipeline_step {
    uint32_t pass; /* enum pipeline_pass */
    uint32_t run;
    uint32_t microbatch; /* of the minibatch */
    double start_s, end_s; /* by these times; where stages block, what is fetched for it comes in front */
};

struct pipeline_order {
    struct pipeline_step *steps; /* every step behind those that it needs: by start, those of a stage's buckets together */
    uint64_t count;
    double end_s;
};

/*
 * One minibatch of `microbatches` on each replica, or, where these take turns, in all. `times`: parallel_runs() entries.
 * Lives as long as `arena`.
 * Errors: STATUS_NO_MEMORY; STATUS_LIMIT for more than PIPELINE_STEPS_MAX steps.
 */
enum { PIPELINE_STEPS_MAX = 1 << 26 };
MUST_CHECK enum status pipeline_order(struct arena *arena, const struct parallel *parallel,
                                      uint32_t microbatches, const struct pipeline_times *times,
                                      struct pipeline_order *out, struct error *err);

#endif
