/* Finding repetition in a plan's order: part of plan_build.c, apart because it is an idea of its
 * own. */
#ifndef SPILLWAY_PLANNER_PLAN_FOLD_H
#define SPILLWAY_PLANNER_PLAN_FOLD_H

#include "planner/plan.h"

struct plan_folded {
    uint32_t instance_count;       /* left at the front of the array */
    struct plan_segment *segments; /* the caller frees them with free() */
    uint32_t segment_count;
};

/*
 * Fold `count` instances in place: what repeats is kept once and its segment says how often.
 * Expanding the segments gives the original sequence. Instances are equal when unit, device and
 * layout are.
 * Cost: O(count), whatever the sequence; 20 bytes per instance of scratch.
 * Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status plan_fold(struct plan_instance *instances, uint32_t count,
                                 struct plan_folded *out, struct error *err);

#endif
