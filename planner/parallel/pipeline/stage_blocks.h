/*
 * Layers of a chain joined into blocks: what RaNNC does before it divides a network into stages, so that the programme
 * which does that (planner/parallel/pipeline/stage_partition.h) has few layers however deep the network is.
 *
 * Blocks are consecutive layers, exactly `most` of them, or the layers themselves where there are no more. The heaviest
 * computes as little as can be; of all such cuts the one that sends the fewest bytes from block to block is taken. A
 * block's figures are the sums of its layers', and it sends what its last layer does.
 *
 * RaNNC's phases are heuristics on a graph of operators: atomic components, blocks of equal computation merged level by
 * level, stages. A chain's layers are atomic components already, and both rules are met exactly.
 *
 * Cost: O(layers^2 most). Source: Tanaka et al., RaNNC, IPDPS 2021, arXiv 2103.16063.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PIPELINE_STAGE_BLOCKS_H
#define SPILLWAY_PLANNER_PARALLEL_PIPELINE_STAGE_BLOCKS_H

#include "planner/parallel/pipeline/stage_chain.h"

/* most > 0. Names are those of the blocks' first layers. Lives as long as `arena` and `chain`. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status stage_blocks_join(struct arena *arena, const struct stage_chain *chain, uint32_t most,
                                         struct stage_chain *out, struct error *err);

#endif
