/* Finds repetition in a plan's order: part of plan_build.c, with an idea of its own. */
#ifndef SPILLWAY_PLANNER_WALK_PLAN_FOLD_H
#define SPILLWAY_PLANNER_WALK_PLAN_FOLD_H

#include "planner/plan.h"

struct plan_folded {
    uint32_t instance_count;       /* instances left, at the beginning of the array */
    struct plan_segment *segments; /* the caller frees them with free() */
    uint32_t segment_count;
};

/*
 * Folds `count` instances in place: a repeated stretch is kept once, with the number of repetitions in its segment.
 * Equal instances have the same unit, device and layout. Cost: O(count); 20 bytes per instance of scratch.
 */
MUST_CHECK enum status plan_fold(struct plan_instance *instances, uint32_t count,
                                 struct plan_folded *out, struct error *err);

/* The instances [first, first + count) are carried out `times` times more. */
struct plan_repeat {
    uint32_t first, count;
    uint64_t times;
};

/* Folds instances some of which repeat, piece by piece between repeats, which are in order and do not overlap. Errors:
 * STATUS_LIMIT. */
MUST_CHECK enum status plan_fold_repeats(struct plan_instance *instances, uint32_t count, const struct plan_repeat *repeats,
                                         uint32_t repeat_count, struct plan_folded *out, struct error *err);

#endif
