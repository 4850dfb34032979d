/* Shapes of groups, the cuts of kinds into stages, and the check that a placement fits. */
#ifndef SPILLWAY_SIM_SERVING_PLACEMENT_H
#define SPILLWAY_SIM_SERVING_PLACEMENT_H

#include "sim/serving/stage_cut.h"

/* The cuts of all kinds in the shapes of groups: made once for many placements. */
struct serving_cuts {
    const struct serving *in;
    struct serving_shape *shapes;
    uint32_t shape_count;
    struct stage_cut *cuts; /* (shape_count, kind_count) */
};

/* Makes the cuts, which live as long as `arena`; `shapes` are copied. */
MUST_CHECK enum status serving_cuts_make(struct arena *arena, const struct serving *in,
                                         const struct serving_shape *shapes, uint32_t shape_count,
                                         struct serving_cuts *out, struct error *err);

/* Returns the row of a shape, by kind; NULL: unknown shape. */
const struct stage_cut *serving_cuts_of(const struct serving_cuts *cuts, struct serving_shape shape);

/* Returns the cut of a kind in a shape; NULL: the kind does not have the shape. */
const struct stage_cut *serving_cut(const struct serving_cuts *cuts, struct serving_shape shape, uint32_t kind);

/*
 * Checks that the groups have devices for their shapes, that each model is at most once in a group and has its shape,
 * and that weights fit each stage's memory. `cuts` has all shapes. Errors: STATUS_INFEASIBLE with the reason;
 * STATUS_BAD_INPUT for a model twice in a group.
 */
MUST_CHECK enum status placement_check(const struct serving_cuts *cuts, const struct serving_placement *placement,
                                       struct error *err);

#endif
