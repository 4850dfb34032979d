/*
 * Where to cut a chain of layers into parts: the parts whose costs add up to the least, of all whose
 * memory fits. Exact, by dynamic programming over the layers.
 *
 * A part needs scratch, which the parts have in turn, and may leave bytes that stay, which add up. So
 * what is known of the first layers' best cut is not one number but one for each trade between the
 * three: a *label*, kept unless another is no worse in cost, scratch and bytes that stay.
 *
 * Source: labels and dominance of the shortest path with resources, Desrochers and Soumis, INFOR 26(3),
 * 1988; without bytes that stay it is the contiguous partition of a chain with additive costs.
 */
#ifndef SPILLWAY_PLANNER_BOUNDARIES_H
#define SPILLWAY_PLANNER_BOUNDARIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { BOUNDARIES_LABELS_MAX = 512 }; /* behind one layer: what takes milliseconds, not minutes */

struct boundaries_part {
    bool fits;                /* false: nor does any longer part with the same last layer */
    double cost;              /* finite */
    uint64_t workspace_bytes; /* while it runs */
    uint64_t keep_bytes;      /* stay */
};

/* The part of layers [first, first + count). */
typedef enum status (*boundaries_function)(void *context, uint64_t first, uint64_t count,
                                           struct boundaries_part *out, struct error *err);

struct boundaries_problem {
    boundaries_function part;
    void *context;
    uint64_t layers;          /* at least 1 */
    uint64_t most;            /* layers of a part; at least 1 */
    uint64_t memory_bytes;    /* for the greatest scratch and all that stays */
    uint64_t workspace_bytes; /* scratch that is taken whatever the parts need */
};

/*
 * counts: out, room for `layers` entries: the layers of each part, in order; *count of them.
 * *found false: no cut fits, or more than BOUNDARIES_LABELS_MAX labels would be needed; counts are
 * undefined then. Errors: STATUS_NO_MEMORY, and those of `part`.
 * Cost: O(layers * most) parts, for each of them as many labels as there are in front of it.
 */
MUST_CHECK enum status boundaries_best(const struct boundaries_problem *problem, uint64_t *counts,
                                       uint32_t *count, bool *found, struct error *err);

#endif
