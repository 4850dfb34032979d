/*
 * The order of gpipe and 1f1b if stages differ in replicas, which take a minibatch's microbatches in turn
 * (models/job/parallel.h): replica d of r has microbatches d, d + r, d + 2 r, ...
 *
 *   gpipe   a replica passes forward over all its microbatches, then backward; on one stage like 1f1b
 *   1f1b    a replica begins with parallel_depth() - 1 forward passes, then alternates one forward, one backward. The
 *           number of microbatches in flight is PipeDream's; with equal replicas it is the plain pipeline's
 *
 * A chunk's passes go through each replica's microbatches in order, but one replica's step can come before another's
 * with an earlier microbatch.
 *
 * Source: PipeDream, Narayanan et al., SOSP 2019, section 3.2 (1F1B-RR); arXiv 2006.09503 (the flush).
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PIPELINE_PIPELINE_TURNS_H
#define SPILLWAY_PLANNER_PARALLEL_PIPELINE_PIPELINE_TURNS_H

#include "planner/parallel/pipeline/pipeline.h"

/* As pipeline_order(). `microbatches` counts all replicas together, at least the replicas of any stage. */
MUST_CHECK enum status pipeline_turns_order(struct arena *arena, const struct parallel *parallel, uint32_t microbatches,
                                            const struct pipeline_times *times, struct pipeline_order *out,
                                            struct error *err);

#endif
