/*
 * Where a chain of layers is cut into stages whose numbers of workers are given, 15-1 say: what is left of
 * planner/parallel/pipeline/stage_partition.h's programmes where workers are not theirs to divide.
 *
 * The slowest of the stages and of what they pass on is as fast as can be. A stage of layers i..j on r workers takes
 *
 *     max( C(i..j), 2 (r - 1) W(i..j) / B ) / r       and passes on 2 a(j) / B
 *
 * of computation C, weights of W bytes, a boundary of a bytes (PipeDream's formula with its workers on one level), and with
 * B infinite computation alone.
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
                                 1f1b does; 0: as much as it takes */
    /* Of stages that differ: see struct stage_request. NULL: the chain's, memory_bytes. */
    const struct stage_chain *const *chain_of_stage;
    const uint64_t *memory_of_stage;
};

/*
 * The best cut, of equal ones that with the shortest stages in front; interval_s is the slowest. Lives as long as `arena`.
 * Cost: O(stages layers^2). Errors: STATUS_INFEASIBLE where nothing fits, or layers are fewer than stages;
 * STATUS_NO_MEMORY.
 */
MUST_CHECK enum status stage_cuts_find(struct arena *arena, const struct stage_chain *chain,
                                       const struct stage_cuts_request *request, struct stage_partition *out,
                                       struct error *err);

#endif
