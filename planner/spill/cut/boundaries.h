/*
 * Cuts a chain of layers into parts with the least sum of costs, among all cuts whose memory fits. Exact, by dynamic
 * programming over the layers.
 *
 * A part needs scratch memory, which the parts use in turn, and may leave bytes that stay, which add up. So the state
 * of a cut of the first layers is not one number but a trade between cost, scratch and staying bytes: a *label*, kept
 * unless another is no worse in all three.
 *
 * Source: labels and dominance of the shortest path with resources, Desrochers and Soumis, INFOR 26(3), 1988; without
 * bytes that stay it is the contiguous partition of a chain with additive costs.
 */
#ifndef SPILLWAY_PLANNER_SPILL_CUT_BOUNDARIES_H
#define SPILLWAY_PLANNER_SPILL_CUT_BOUNDARIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { BOUNDARIES_LABELS_MAX = 512 }; /* per layer: a search of milliseconds, not minutes */

struct boundaries_part {
    bool fits;                /* false: no longer part with the same last layer fits either */
    double cost;              /* finite */
    uint64_t workspace_bytes; /* scratch while it runs */
    uint64_t keep_bytes;      /* bytes that stay */
};

/* Computes the part of layers [first, first + count). */
typedef enum status (*boundaries_function)(void *context, uint64_t first, uint64_t count,
                                           struct boundaries_part *out, struct error *err);

struct boundaries_problem {
    boundaries_function part;
    void *context;
    uint64_t layers;          /* at least 1 */
    uint64_t most;            /* most layers of a part; at least 1 */
    uint64_t memory_bytes;    /* for the greatest scratch and all bytes that stay */
    uint64_t workspace_bytes; /* least scratch, for any parts */
};

/*
 * Finds the best cut. counts: out, room for `layers` entries: the layers of each part, in order; *count parts. *found
 * false: no cut fits, or more than BOUNDARIES_LABELS_MAX labels would be needed; counts are undefined then. Errors:
 * STATUS_NO_MEMORY, and errors of `part`. Cost: O(layers * most) parts, each extending all labels before it.
 */
MUST_CHECK enum status boundaries_best(const struct boundaries_problem *problem, uint64_t *counts,
                                       uint32_t *count, bool *found, struct error *err);

#endif
