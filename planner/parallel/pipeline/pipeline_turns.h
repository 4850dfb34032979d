/*
 * The order of gpipe and 1f1b where stages have numbers of replicas of their own, each of which takes a minibatch's
 * microbatches in turn (models/job/parallel.h): replica d of r has microbatches d, d + r, d + 2 r, ...
 *
 *   gpipe   a replica passes forward over all of its microbatches, then back; on one stage like 1f1b
 *   1f1b    it begins with n - 1 forward passes, parallel_depth() being n, then one forward, one backward in turn: as many
 *           under way as PipeDream has, with as many replicas everywhere those of the pipeline without
 *
 * The passes of a run go through the microbatches of each replica in order; a step of one replica can come in front of one
 * that is about an earlier microbatch of another.
 *
 * Source: PipeDream, Narayanan et al., SOSP 2019, section 3.2 (1F1B-RR); the flush is that of arXiv 2006.09503.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PIPELINE_PIPELINE_TURNS_H
#define SPILLWAY_PLANNER_PARALLEL_PIPELINE_PIPELINE_TURNS_H

#include "planner/parallel/pipeline/pipeline.h"

/* Like pipeline_order(), for a minibatch of `microbatches` in all, no fewer than replicas of any stage. */
MUST_CHECK enum status pipeline_turns_order(struct arena *arena, const struct parallel *parallel, uint32_t microbatches,
                                            const struct pipeline_times *times, struct pipeline_order *out,
                                            struct error *err);

#endif
