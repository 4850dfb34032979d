/*
 * How deep a network of a shape may be for its training to fit (planner/capacity/feasibility.h): the papers' "largest model".
 *
 * Blocks are added to the network as it is, the rest of the job stays. What a way takes grows with the blocks, so one
 * halves between the most that is known to fit and the least that is known not to: a plan for each question.
 */
#ifndef SPILLWAY_PLANNER_FEASIBILITY_LARGEST_H
#define SPILLWAY_PLANNER_FEASIBILITY_LARGEST_H

#include "planner/capacity/feasibility.h"

enum { FEASIBILITY_BLOCKS_MOST = 4096 }; /* the deepest published network has about 1000 */

struct feasibility_largest {
    uint64_t blocks;                   /* 0: not even one fits */
    uint64_t parameters;               /* of the network with so many; 0 for none */
    enum feasibility_verdict one_more; /* what is missing for a block more; FEASIBILITY_YES: FEASIBILITY_BLOCKS_MOST fit */
};

/* Of a way of `job`; with fewer blocks than its chunks, these are as many. Networks known by a profile have no blocks.
 * Errors: STATUS_BAD_INPUT for these; those of feasibility_find(). */
MUST_CHECK enum status feasibility_find_largest(const struct hardware *hardware, const struct job *job,
                                        const struct feasibility_way *way, struct feasibility_largest *out, struct error *err);

/* `job` with so many blocks (at least 1); what else it has is borrowed. */
struct job feasibility_job_of_blocks(const struct job *job, uint64_t blocks);

#endif
