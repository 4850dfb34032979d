/*
 * Other systems' rules for a chain that does not fit: the baselines.
 *
 *     recompute     every layer
 *     swap-all      vDNN's rule, with copies that no layer waits for at its end, as in vDNN++: every layer but
 *                   the last
 *     karma         KARMA's capacity-based rule: from the end, as many layers as fit stay, and the layers before
 *                   them are swapped; then its second step: from the end, a swapped layer is recomputed where
 *                   that shortens the makespan, until no layer does
 *     capacity      the same rule without its second step
 *     sqrt          Chen's: every k-th layer kept, the layers between recomputed, the best k
 *     checkmate     the best choice between keep and recompute, by dynamic programming (chain_keep.h)
 *     superneurons  when not all layers can be kept: layers that are cheap to compute are dropped and recomputed;
 *                   the others, its checkpoints, are kept until memory runs out and then leave, the least recently
 *                   used first
 *
 * All are judged by chain_makespan().
 *
 * SuperNeurons recognises cheap layers by their kinds (pooling, activation, normalization); its checkpoints are
 * convolutions. A chain has no kinds: a cheap layer takes less than half the chain's average ticks to recompute a byte;
 * of equal layers none is cheap. SuperNeurons recomputes a segment between checkpoints once, holding all of it
 * (speed-centric), or again for each of its layers (memory-centric). A chain's layers keep their boundaries, so each is
 * recomputed once and held by itself.
 *
 * Source: vDNN, arXiv 1602.08124, sec. 3; KARMA, arXiv 2008.11421, sec. III-E and III-F; Chen et al., arXiv 1604.06174;
 * Checkmate, arXiv 1910.02653, restricted to the choices of chain.h; SuperNeurons (Wang et al., PPoPP 2018), arXiv
 * 1801.04380, sec. 3.
 */
#ifndef SPILLWAY_PLANNER_CHAIN_CHAIN_RULES_H
#define SPILLWAY_PLANNER_CHAIN_CHAIN_RULES_H

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
 * Applies a rule. choices: out, (layer_count). *fits false: memory cannot hold the rule's choices, or the chain has no
 * link for them; choices[] and *makespan are then untouched.
 */
MUST_CHECK enum status chain_rule_run(const struct chain *chain, enum chain_rule rule, uint8_t *choices,
                                      int64_t *makespan, bool *fits, struct error *err);

#endif
