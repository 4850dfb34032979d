/* Regrouping of a draft's devices: initial layouts, and small changes of a layout. */
#ifndef SPILLWAY_SIM_PLACEMENT_REGROUP_H
#define SPILLWAY_SIM_PLACEMENT_REGROUP_H

#include "sim/placement/draft.h"

/* Fills `out`, which has room for one per device, with as many groups of the shape as possible, and one for each
 * remaining device. Returns their number. */
uint32_t regroup_even(struct serving_shape shape, uint32_t devices, struct serving_shape *out);

struct regroup_choice {
    uint32_t first, second;     /* groups that are dissolved; may be equal */
    struct serving_shape shape; /* shape of one new group, if there are enough devices */
    struct serving_shape rest;  /* shape of the groups of the remaining devices */
    uint32_t offset;            /* new group that is tried first for each model */
};

/*
 * Sets `to` to `from` with two groups dissolved and new ones at the end. Their models' replicas go to new groups where
 * they fit, else they are dropped. `shapes` is scratch, one per device. Returns the number of old groups.
 */
uint32_t regroup(const struct placement_draft *from, const struct regroup_choice *choice, struct serving_shape *shapes,
                 struct placement_draft *to);

#endif
