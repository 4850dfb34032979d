/*
 * Joins the layers of a chain into blocks. RaNNC does this before it divides a network into stages, so that the
 * division (planner/parallel/pipeline/stage_partition.h) has few layers, no matter how deep the network is.
 *
 * Blocks are consecutive layers, exactly `most` blocks, or one per layer if there are fewer layers. The heaviest block
 * computes as little as possible; among such cuts, the one that sends the fewest bytes between blocks wins. The times
 * and bytes of a block are the sums over its layers. A block sends the output of its last layer.
 *
 * Cost: O(layers^2 most). Source: Tanaka et al., RaNNC, IPDPS 2021, arXiv 2103.16063.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PIPELINE_STAGE_BLOCKS_H
#define SPILLWAY_PLANNER_PARALLEL_PIPELINE_STAGE_BLOCKS_H

#include "planner/parallel/pipeline/stage_chain.h"

/* Makes the chain of blocks; most > 0. A block has its first layer's name. The chain lives as long as `arena` and
 * `chain`. */
MUST_CHECK enum status stage_blocks_join(struct arena *arena, const struct stage_chain *chain, uint32_t most,
                                         struct stage_chain *out, struct error *err);

#endif
