/*
 * Equal kernels of equal sizes are one item, so a list stays short for any number of layers. Durations of KERNEL_FIXED
 * are summed into one item.
 */
#ifndef SPILLWAY_MODELS_KERNEL_WORK_LIST_H
#define SPILLWAY_MODELS_KERNEL_WORK_LIST_H

#include "models/kernel/work.h"

struct work_list {
    struct work_item *items; /* borrowed from the caller */
    uint32_t count, capacity;
};

/* Adds `times` executions. Counts and durations saturate. The list must have room for its pass's longest list. */
void work_list_add(struct work_list *list, const struct work_item *item, uint64_t times);

/* Returns UINT64_MAX on overflow. */
uint64_t work_product(uint64_t a, uint64_t b);

#endif
