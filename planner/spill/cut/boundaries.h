/*
 * Cuts a chain of layers into parts with the least sum of costs that fit in memory. Exact, by dynamic programming.
 *
 * A part needs scratch memory, which parts use in turn, and may leave bytes that stay, which add up. So a cut of the
 * first layers is a trade between cost, scratch and staying bytes: a *label*, kept unless another is no worse in all
 * three.
 *
 * Source: shortest path with resources, Desrochers and Soumis, INFOR 26(3), 1988.
 */
#ifndef SPILLWAY_PLANNER_SPILL_CUT_BOUNDARIES_H
#define SPILLWAY_PLANNER_SPILL_CUT_BOUNDARIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { BOUNDARIES_LABELS_MAX = 512 }; /* per layer: a search of milliseconds, not minutes */

struct boundaries_part {
    bool fits;                /* false: no longer part with this last layer fits either */
    double cost;              /* finite */
    uint64_t workspace_bytes; /* scratch while it runs */
    uint64_t keep_bytes;      /* bytes that stay */
};

typedef enum status (*boundaries_function)(void *context, uint64_t first, uint64_t count,
                                           struct boundaries_part *out, struct error *err);

struct boundaries_problem {
    boundaries_function part;
    void *context;
    uint64_t layers;          /* at least 1 */
    uint64_t most;            /* most layers of a part; at least 1 */
    uint64_t memory_bytes;    /* greatest scratch plus all staying bytes */
    uint64_t workspace_bytes; /* least scratch, for any parts */
};

/*
 * Finds the best cut. counts: out, room for `layers` entries: the layers of the *count parts. *found false: nothing
 * fits, or over BOUNDARIES_LABELS_MAX labels were needed; counts are undefined. Errors: STATUS_NO_MEMORY, and errors of
 * `part`. Cost: O(layers * most) parts, each extending all labels before it.
 */
MUST_CHECK enum status boundaries_best(const struct boundaries_problem *problem, uint64_t *counts,
                                       uint32_t *count, bool *found, struct error *err);

#endif
