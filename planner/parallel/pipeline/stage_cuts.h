/*
 * Cuts a chain into stages with given numbers of workers, such as 15-1; planner/parallel/pipeline/stage_partition.h
 * divides workers, too.
 *
 * The slowest stage or boundary is as fast as possible. A stage of layers i..j on r workers takes
 *
 *     max( C(i..j), 2 (r - 1) W(i..j) / B ) / r       and passes on 2 a(j) / B
 *
 * with computation C, weights of W bytes, and a boundary of a bytes (PipeDream's formula on one level). If B is
 * infinite, only computation counts.
 *
 * Source: PipeDream, SOSP 2019, section 3.1.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PIPELINE_STAGE_CUTS_H
#define SPILLWAY_PLANNER_PARALLEL_PIPELINE_STAGE_CUTS_H

#include "planner/parallel/pipeline/stage_partition.h"

struct stage_cuts_request {
    const uint32_t *replicas; /* of each stage, at least 1 */
    uint32_t stages;          /* at least 1 */
    double bytes_per_s;       /* B; INFINITY: exchanges and boundaries cost nothing */
    uint64_t memory_bytes;    /* of a worker, which keeps ceil(workers from its stage on / its replicas) minibatches, as
                                 1f1b does; 0: unlimited */
    /* For stages on different devices: see struct stage_request. NULL: `chain` and memory_bytes for all. */
    const struct stage_chain *const *chain_of_stage;
    const uint64_t *memory_of_stage;
};

/*
 * Finds the best cut; among equals, the one with the shortest first stages. interval_s is the slowest stage or
 * boundary. The cut lives as long as `arena`. Cost: O(stages layers^2). Errors: STATUS_INFEASIBLE if nothing fits or
 * there are fewer layers than stages.
 */
MUST_CHECK enum status stage_cuts_find(struct arena *arena, const struct stage_chain *chain,
                                       const struct stage_cuts_request *request, struct stage_partition *out,
                                       struct error *err);

#endif
