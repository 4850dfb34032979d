/*
 * Joins a chain's layers into blocks, as RaNNC does before it divides a network into stages, so that the division
 * (planner/parallel/pipeline/stage_partition.h) has few layers.
 *
 * There are exactly `most` blocks, or one per layer if fewer. The heaviest computes as little as possible; then the
 * fewest bytes are sent between blocks. A block's times and bytes are sums; it sends its last layer's output.
 *
 * Cost: O(layers^2 most). Source: Tanaka et al., RaNNC, IPDPS 2021, arXiv 2103.16063.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PIPELINE_STAGE_BLOCKS_H
#define SPILLWAY_PLANNER_PARALLEL_PIPELINE_STAGE_BLOCKS_H

#include "planner/parallel/pipeline/stage_chain.h"

/* most > 0. A block has its first layer's name. The chain lives as long as `arena` and `chain`. */
MUST_CHECK enum status stage_blocks_join(struct arena *arena, const struct stage_chain *chain, uint32_t most,
                                         struct stage_chain *out, struct error *err);

#endif
