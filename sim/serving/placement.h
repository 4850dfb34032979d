/* Groups of devices and what is placed on them: the shapes that groups may have, and whether it all fits. */
#ifndef SPILLWAY_SERVING_PLACEMENT_H
#define SPILLWAY_SERVING_PLACEMENT_H

#include "sim/serving/stage_cut.h"

/* How kinds are cut in the shapes that groups may have: made once, for many placements. */
struct serving_cuts {
    const struct serving *in;
    struct serving_shape *shapes;
    uint32_t shape_count;
    struct stage_cut *cuts; /* (shape_count, kind_count) */
};

/* Lives as long as `arena`; `shapes` are copied. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status serving_cuts_make(struct arena *arena, const struct serving *in,
                                         const struct serving_shape *shapes, uint32_t shape_count,
                                         struct serving_cuts *out, struct error *err);

/* The row of a shape, by kind; NULL: it is none of them. */
const struct stage_cut *serving_cuts_of(const struct serving_cuts *cuts, struct serving_shape shape);

/* NULL: the kind does not have the shape. */
const struct stage_cut *serving_cut(const struct serving_cuts *cuts, struct serving_shape shape, uint32_t kind);

/*
 * Are the groups what their devices can hold? Each shape's devices, models each once in a group and cut as the
 * group is, weights within the memory of each stage. `cuts` has all shapes. Errors: STATUS_INFEASIBLE, in
 * words; STATUS_BAD_INPUT where a model is twice in a group.
 */
MUST_CHECK enum status placement_check(const struct serving_cuts *cuts, const struct serving_placement *placement,
                                       struct error *err);

#endif
