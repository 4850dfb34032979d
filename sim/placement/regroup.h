/* Devices of a draft divided into groups anew: layouts to begin with, and one small change of a layout. */
#ifndef SPILLWAY_SERVING_REGROUP_H
#define SPILLWAY_SERVING_REGROUP_H

#include "sim/placement/draft.h"

/* As many groups of the shape as `devices` are enough for; devices that are left stand alone. How many groups;
 * `out` has room for one a device. */
uint32_t regroup_even(struct serving_shape shape, uint32_t devices, struct serving_shape *out);

struct regroup_choice {
    uint32_t first, second;     /* groups whose devices are divided anew; may be one and the same */
    struct serving_shape shape; /* of one group of them if they are enough */
    struct serving_shape rest;  /* of as many as the rest is enough for */
    uint32_t offset;            /* number of the new group that is asked first whether a model fits */
};

/*
 * `to` becomes `from` with those groups divided anew, at the end; their models are put where they fit among the
 * new ones, once for each time that they were there; those that fit nowhere are left out. `shapes` is scratch for
 * one a device. How many groups are not new.
 */
uint32_t regroup(const struct draft *from, const struct regroup_choice *choice, struct serving_shape *shapes,
                 struct draft *to);

#endif
