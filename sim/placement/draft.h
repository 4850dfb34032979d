/*
 * Drafts: placements that grow and shrink, replica by replica, and whose devices are divided anew.
 *
 * A *layout* is the shapes of the groups, in their order. A draft has room for any layout of the shapes that it
 * was made for, so that one is copied onto another whatever their layouts are.
 */
#ifndef SPILLWAY_SERVING_DRAFT_H
#define SPILLWAY_SERVING_DRAFT_H

#include "sim/serving/placement.h"

struct draft {
    const struct serving_cuts *cuts;
    const uint32_t *rooms;              /* by shape of `cuts`: models that a group of it has at most */
    struct serving_placement placement; /* each group with room for all models that fit */
    uint64_t *used_bytes;               /* of each stage of each group */
    uint32_t *first_stage;              /* (group_count): into used_bytes */
    uint32_t *models;                   /* the rows of all groups, one behind the other */
    uint32_t attained;                  /* for those who judge: by the last simulation */
    double strain;                      /* decides between placements that attain as many: how little is in reserve */
};

/* How many models a group of each shape has at most. Lives as long as `arena`. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status draft_rooms(struct arena *arena, const struct serving_cuts *cuts, const uint32_t **out,
                                   struct error *err);

/* Without groups. `rooms`: draft_rooms(). Lives as long as `arena`. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status draft_make(struct arena *arena, const struct serving_cuts *cuts, const uint32_t *rooms,
                                  struct draft *out, struct error *err);

/* Groups of these shapes, all among the cuts' and together of no more devices than there are, without models. */
void draft_lay_out(struct draft *draft, const struct serving_shape *shapes, uint32_t count);

/* Of the same cuts. */
void draft_copy(struct draft *to, const struct draft *from);

bool draft_has(const struct draft *draft, uint32_t group, uint32_t model);

/* It is not there, it can be cut so, and there is memory for it. */
bool draft_fits(const struct draft *draft, uint32_t group, uint32_t model);

/* What fits. */
void draft_put(struct draft *draft, uint32_t group, uint32_t model);

/* Take the group's model number `at` out again; which it was. */
uint32_t draft_take(struct draft *draft, uint32_t group, uint32_t at);

#endif
