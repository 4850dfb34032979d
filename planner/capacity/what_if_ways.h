/*
 * Every way that `spillway whatif` looks at for a job on a machine: those of `mem` (planner/capacity/feasibility_ways.h), on one device at a
 * time with the microbatches of the grid, too, and a grid over
 *
 *     devices        all; of several nodes also those of one
 *     tensor         powers of two up to a node, 8 at most
 *     pipeline       every divisor of the rest up to the blocks; data takes what is left
 *     microbatch     1, 2, 4, ... samples, the minibatch unchanged; of a profile what it was timed at
 *     zero           0 to 3 without stages, in runs of a block; 0 and 1 with them
 *     offload        states with zero 2, weights with zero 3, these on a disk too: where neither tensors nor stages are
 *     schedule       1f1b; with stages zb-h1 and interleaved by 2 too, on machines of few devices
 *
 * Nothing of it changes what is computed: no asynchronous schedule, no compression, no other minibatch. A job that says
 * how it is parallelized is taken at its word.
 */
#ifndef SPILLWAY_PLANNER_WHAT_IF_WAYS_H
#define SPILLWAY_PLANNER_WHAT_IF_WAYS_H

#include "planner/capacity/feasibility_ways.h"

enum { WHAT_IF_WAYS_MAX = 4096 };

struct what_if_way {
    struct feasibility_way fit; /* its name says the microbatch too, where that is not the job's */
    uint64_t microbatch;        /* samples of a pass */
    uint64_t microbatches;      /* of a minibatch */
    bool keeps_less;            /* may recompute where what is kept does not fit */
};

/* In an order that equal input gives again; what parallel_check() refuses is left out. Returns how many. */
uint32_t what_if_ways(const struct hardware *hardware, const struct job *job, struct what_if_way out[WHAT_IF_WAYS_MAX]);

#endif
