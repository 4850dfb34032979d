/*
 * Sums over microbatches as a balanced tree (models/job/parallel.h), one microbatch after the other.
 *
 * As when counting in binary: a sum of 2^k microbatches waits at level k, and a second one carries to level k + 1. The
 * highest level is the result's own place. In the end the levels that are left are added, the lowest first.
 *
 *     microbatch   0       1            2          3                  4
 *     level 0      g0      -            g2         -                  g4
 *     level 1              g0 + g1      g0 + g1    -                  -
 *     level 2                                      (0 + 1) + (2 + 3)  (0 + 1) + (2 + 3), and at the end + g4
 */
#ifndef SPILLWAY_EXEC_NETWORK_SUM_TREE_H
#define SPILLWAY_EXEC_NETWORK_SUM_TREE_H

#include <stdint.h>

struct sum_tree {
    uint32_t levels;       /* below the result's: job_sum_levels() */
    uint32_t index, count; /* of the microbatch, and their number */
};

/* Returns the level at which the microbatch's own value is made, and its sum left: the carries of its number. */
uint32_t sum_tree_level(const struct sum_tree *tree);

/* Adds the value at level `from` to that at level `to`. */
typedef void sum_tree_add(const void *context, uint32_t to, uint32_t from);

/* Adds a microbatch's value, which was made at its level, to the tree; the last one completes the sum. */
void sum_tree_carry(const struct sum_tree *tree, sum_tree_add *add, const void *context);

#endif
