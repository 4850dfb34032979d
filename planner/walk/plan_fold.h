/* Finds repetition in a plan's order: part of plan_build.c, with an idea of its own. */
#ifndef SPILLWAY_PLANNER_WALK_PLAN_FOLD_H
#define SPILLWAY_PLANNER_WALK_PLAN_FOLD_H

#include "planner/plan.h"

struct plan_folded {
    uint32_t task_count;       /* tasks left, at the beginning of the array */
    struct plan_segment *segments; /* the caller frees them with free() */
    uint32_t segment_count;
};

/*
 * Folds `count` tasks in place: a repeated stretch is kept once, with the number of repetitions in its segment.
 * Equal tasks have the same unit, device and layout. Cost: O(count); 20 bytes per task of scratch.
 */
MUST_CHECK enum status plan_fold(struct plan_task *tasks, uint32_t count,
                                 struct plan_folded *out, struct error *err);

/* The tasks [first, first + count) are carried out `times` times more. */
struct plan_repeat {
    uint32_t first, count;
    uint64_t times;
};

/* Folds tasks some of which repeat, piece by piece between repeats, which are in order and do not overlap. Errors:
 * STATUS_LIMIT. */
MUST_CHECK enum status plan_fold_repeats(struct plan_task *tasks, uint32_t count, const struct plan_repeat *repeats,
                                         uint32_t repeat_count, struct plan_folded *out, struct error *err);

#endif
