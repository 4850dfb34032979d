/*
 * A list of work in which equal kernels of equal sizes are one item.
 *
 * Passes repeat the same few kernels for every layer, so a list stays short however many layers it is
 * for. Durations of KERNEL_FIXED are summed into one item instead: they differ from layer to layer.
 */
#ifndef SPILLWAY_MODELS_WORK_LIST_H
#define SPILLWAY_MODELS_WORK_LIST_H

#include "models/kernel/work.h"

struct work_list {
    struct work_item *items; /* capacity; borrowed from the caller */
    uint32_t count, capacity;
};

/* `item` done `times` times; counts and durations past their type stay at its largest value. The list has
 * room for it: capacities are those of the longest list that their pass can have. */
void work_list_add(struct work_list *list, const struct work_item *item, uint64_t times);

/* Sizes of shapes that limits do not keep within 64 bits: UINT64_MAX where the product is larger. */
uint64_t work_product(uint64_t a, uint64_t b);

#endif
