#include "exec/network/sum_tree.h"

#include <assert.h>

uint32_t sum_tree_level(const struct sum_tree *tree)
{
    assert(tree->index < tree->count);
    return (uint32_t)__builtin_ctz(~tree->index);
}

void sum_tree_carry(const struct sum_tree *tree, sum_tree_add *add, const void *context)
{
    const uint32_t made = sum_tree_level(tree);
    for (uint32_t level = 0; level < made; level++) add(context, made, level);
    if (tree->index + 1 < tree->count) return;
    uint32_t lowest = (uint32_t)__builtin_ctz(tree->count);
    for (uint32_t level = lowest + 1; level <= tree->levels; level++) {
        if (!(tree->count >> level & 1)) continue;
        add(context, level, lowest);
        lowest = level;
    }
}
