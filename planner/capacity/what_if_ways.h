/*
 * All ways that `spillway whatif` examines: the ways of `mem` (planner/capacity/feasibility_ways.h), on one device at
 * a time also with the grid's microbatches, and a grid over
 *
 *     devices        all; with several nodes also one node's
 *     tensor         powers of two up to a node, 8 at most; without sequence parallelism too, on machines of few
 *                    devices
 *     pipeline       every divisor of the rest up to the blocks; data uses the rest
 *     microbatch     1, 2, 4, ... samples, the minibatch unchanged; for a profile, its timed size
 *     zero           0 to 3 without stages, in runs of a block; 0 and 1 with them
 *     offload        states with zero 2, weights with zero 3, also on a disk: without tensor groups and stages
 *     schedule       1f1b; with stages zb-h1 and interleaved by 2 too, on machines of few devices
 *
 * None changes the computed values: no asynchronous schedule, compression or other minibatch. A job's own parallelism
 * is kept.
 */
#ifndef SPILLWAY_PLANNER_CAPACITY_WHAT_IF_WAYS_H
#define SPILLWAY_PLANNER_CAPACITY_WHAT_IF_WAYS_H

#include "planner/capacity/feasibility_ways.h"

enum { WHAT_IF_WAYS_MAX = 4096 };

struct what_if_way {
    struct feasibility_way fit; /* its name has the microbatch too, where that is not the job's */
    uint64_t microbatch;        /* samples in a pass */
    uint64_t microbatches;      /* number in a minibatch */
    bool keeps_less;            /* may recompute when the kept activations do not fit */
};

/* Lists the ways in a fixed order, without ways that parallel_check() refuses. Returns their number. */
uint32_t what_if_ways(const struct hardware *hardware, const struct job *job, struct what_if_way out[WHAT_IF_WAYS_MAX]);

#endif
