/*
 * What others do when a chain does not fit, as choices for its layers: the baselines.
 *
 *   recompute   every layer
 *   swap-all    vDNN's rule, with copies that nobody waits for at the end of a layer, as vDNN++ has it:
 *               every layer but the last
 *   karma       KARMA's capacity-based rule: as many layers from the end as fit stay, those in front of
 *               them are swapped; then its second step: from the back, a swapped layer is recomputed
 *               where that shortens the makespan, until none does
 *   capacity    that rule without its second step
 *   sqrt        Chen's: every k-th layer kept, those between recomputed, the best k
 *   checkmate   the best choice between keep and recompute, by dynamic programming (chain_keep.h)
 *   superneurons   where not all layers can be kept: those that are cheap to compute are dropped and
 *               recomputed; the others, its checkpoints, are kept until memory runs out and then leave,
 *               the least recently used first
 *
 * Each is judged by chain_makespan() like everything else.
 *
 * SuperNeurons knows its cheap layers by their kinds (pooling, activation, normalization), its checkpoints
 * are convolutions. A chain has no kinds: cheap is what takes less than half the ticks to recompute for a
 * byte that the chain does on average, and of equal layers none is. Whether a segment between checkpoints is recomputed
 * once, all of it held (speed-centric), or for each of its layers anew (memory-centric), a chain does not
 * ask: its layers keep their boundaries, so that each is recomputed once and held alone.
 *
 * Source: vDNN, arXiv 1602.08124, sec. 3; KARMA, arXiv 2008.11421, sec. III-E and III-F; Chen et al.,
 * arXiv 1604.06174; Checkmate, arXiv 1910.02653, restricted to the choices of chain.h; SuperNeurons
 * (Wang et al., PPoPP 2018), arXiv 1801.04380, sec. 3.
 */
#ifndef SPILLWAY_PLANNER_CHAIN_RULES_H
#define SPILLWAY_PLANNER_CHAIN_RULES_H

#include "planner/chain/chain_schedule.h"

enum chain_rule {
    CHAIN_RULE_RECOMPUTE,
    CHAIN_RULE_SWAP_ALL,
    CHAIN_RULE_KARMA,
    CHAIN_RULE_SQRT,
    CHAIN_RULE_CHECKMATE,
    CHAIN_RULE_SUPERNEURONS,
    CHAIN_RULE_CAPACITY,
    CHAIN_RULES
};
extern const char *const chain_rule_names[CHAIN_RULES];

/*
 * choices: out, (layer_count). *fits false: memory cannot hold what the rule asks for, or the chain has
 * no link; choices[] and *makespan are then untouched. Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status chain_rule_run(const struct chain *chain, enum chain_rule rule, uint8_t *choices,
                                      int64_t *makespan, bool *fits, struct error *err);

#endif
