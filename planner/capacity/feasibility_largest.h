/*
 * The most blocks with which a network's training fits (planner/capacity/feasibility.h): the papers' "largest model".
 *
 * Needs grow with the blocks, so the search bisects with a plan for each step.
 */
#ifndef SPILLWAY_PLANNER_CAPACITY_FEASIBILITY_LARGEST_H
#define SPILLWAY_PLANNER_CAPACITY_FEASIBILITY_LARGEST_H

#include "planner/capacity/feasibility.h"

enum { FEASIBILITY_BLOCKS_MOST = 4096 }; /* the deepest published network has about 1000 */

struct feasibility_largest {
    uint64_t blocks;                   /* 0: not even one block fits */
    uint64_t parameters;               /* of the network with `blocks` blocks; 0 for none */
    enum feasibility_verdict one_more; /* what one more block lacks; FEASIBILITY_YES: FEASIBILITY_BLOCKS_MOST blocks
                                          fit */
};

/* Finds the most blocks for a way of `job`; with fewer blocks than chunks, there are as many chunks. Errors:
 * STATUS_BAD_INPUT for networks known by a profile, which have no blocks; as feasibility_find(). */
MUST_CHECK enum status feasibility_find_largest(const struct hardware *hardware, const struct job *job,
                                        const struct feasibility_way *way, struct feasibility_largest *out,
                                        struct error *err);

/* Returns `job` with `blocks` blocks (at least 1); everything else is borrowed from it. */
struct job feasibility_job_of_blocks(const struct job *job, uint64_t blocks);

#endif
