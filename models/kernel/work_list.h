/*
 * A list of work in which equal kernels of equal sizes are one item.
 *
 * Passes repeat the same few kernels for every layer, so a list stays short for any number of layers. Durations of
 * KERNEL_FIXED differ from layer to layer; they are summed into one item.
 */
#ifndef SPILLWAY_MODELS_KERNEL_WORK_LIST_H
#define SPILLWAY_MODELS_KERNEL_WORK_LIST_H

#include "models/kernel/work.h"

struct work_list {
    struct work_item *items; /* capacity; borrowed from the caller */
    uint32_t count, capacity;
};

/* Adds `item`, executed `times` times. Counts and durations saturate at the largest value of their type. The list
 * must have room: its capacity is the length of the longest list of its pass. */
void work_list_add(struct work_list *list, const struct work_item *item, uint64_t times);

/* Multiplies sizes that limits do not keep within 64 bits; returns UINT64_MAX on overflow. */
uint64_t work_product(uint64_t a, uint64_t b);

#endif
