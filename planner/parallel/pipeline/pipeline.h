/*
 * The order in which a pipeline's stages pass microbatches forward and backward.
 *
 *   gpipe        all forward, then all backward
 *   1f1b         stage p of P begins with P - 1 - p forward passes, then one forward, one backward in turn
 *   interleaved  the same with v chunks: microbatches in groups of P, chunk by chunk, starting with
 *                (P - 1 - p) 2 + (v - 1) P forward passes
 *   zb-h1, -h2   backward passes in two parts: gradients of weights are computed when a stage would be idle. At
 *                most P (2 P - 1) microbatches are kept on each stage
 *   zb-v         the same with two chunks there and back, at most 2 P of them kept
 *
 * A single stage never waits. Except with zero-bubble schedules, each microbatch then goes through all chunks and back
 * in turn.
 *
 * A chunk's passes go through its microbatches in order. These schedules are synchronous: a minibatch uses the weights
 * that the previous one left. See also parallel_job_async.h, parallel_job_slices.h, pipeline_turns.h (replicas that
 * take turns) and pipeline_buckets.h.
 *
 * Sources: GPipe, arXiv 1811.06965; PipeDream-Flush, arXiv 2006.09503; interleaving, arXiv 2104.04473; zero bubble,
 * arXiv 2401.10241.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PIPELINE_PIPELINE_H
#define SPILLWAY_PLANNER_PARALLEL_PIPELINE_PIPELINE_H

#include "base/arena.h"
#include "models/job/parallel.h"

enum pipeline_pass { PIPELINE_FORWARD, PIPELINE_BACKWARD, PIPELINE_INPUT, PIPELINE_WEIGHT, PIPELINE_PASSES };

/* Returns true if backward passes are in two parts, PIPELINE_INPUT and PIPELINE_WEIGHT. */
bool pipeline_splits(const struct parallel *parallel);

/*
 * Seconds of a chunk's passes, by enum pipeline_pass, and of sending its boundary on; its gradient takes as long on the
 * way back. If stages block (models/job/parallel.h), sending is part of the pass that needs the boundary.
 */
struct pipeline_times {
    double pass_s[PIPELINE_PASSES];
    double send_s;
};

struct pipeline_step {
    uint32_t pass; /* enum pipeline_pass */
    uint32_t chunk;
    uint32_t microbatch; /* of the minibatch */
    double start_s, end_s; /* by these times; if stages block, fetching its input comes before start_s */
};

struct pipeline_order {
    struct pipeline_step *steps; /* by start, each after the steps that it needs; a stage's buckets stay together */
    uint64_t count;
    double end_s;
};

/*
 * Makes the order of one minibatch of `microbatches` on each replica, or in all if replicas take turns. `times` has
 * parallel_chunks() entries. The order lives as long as `arena`. Errors: STATUS_LIMIT for over PIPELINE_STEPS_MAX
 * steps.
 */
enum { PIPELINE_STEPS_MAX = 1 << 26 };
MUST_CHECK enum status pipeline_order(struct arena *arena, const struct parallel *parallel,
                                      uint32_t microbatches, const struct pipeline_times *times,
                                      struct pipeline_order *out, struct error *err);

#endif
