/*
 * Placements under construction. Replicas are added and removed, and devices regrouped.
 *
 * A *layout* is the list of the groups' shapes. A draft has room for any layout of its shapes, so drafts can be copied
 * onto each other.
 */
#ifndef SPILLWAY_SIM_PLACEMENT_DRAFT_H
#define SPILLWAY_SIM_PLACEMENT_DRAFT_H

#include "sim/serving/placement.h"

struct placement_draft {
    const struct serving_cuts *cuts;
    const uint32_t *rooms;              /* by shape of `cuts`: maximum number of models of a group */
    struct serving_placement placement; /* each group has room for all models that fit */
    uint64_t *used_bytes;               /* of each stage of each group */
    uint32_t *first_stage;              /* (group_count): into used_bytes */
    uint32_t *models;                   /* the rows of all groups, concatenated */
    uint32_t attained;                  /* set by callers: attained requests in the last simulation */
    double strain;                      /* breaks ties between placements: a measure of how close requests are to
                                           failing */
};

/* Computes the most models of a group of each shape. *out lives as long as `arena`. */
MUST_CHECK enum status placement_draft_rooms(struct arena *arena, const struct serving_cuts *cuts, const uint32_t **out,
                                             struct error *err);

/* Makes a draft without groups. `rooms`: from placement_draft_rooms(). It lives as long as `arena`. */
MUST_CHECK enum status placement_draft_make(struct arena *arena, const struct serving_cuts *cuts, const uint32_t *rooms,
                                            struct placement_draft *out, struct error *err);

/* Sets empty groups of these shapes, which must be the cuts' and need no more than the available devices. */
void placement_draft_lay_out(struct placement_draft *draft, const struct serving_shape *shapes, uint32_t count);

/* Copies a draft with the same cuts. */
void placement_draft_copy(struct placement_draft *to, const struct placement_draft *from);

/* Returns true if the model is not in the group, has its shape, and fits into its memory. */
bool placement_draft_fits(const struct placement_draft *draft, uint32_t group, uint32_t model);

/* Adds a model that fits. */
void placement_draft_put(struct placement_draft *draft, uint32_t group, uint32_t model);

/* Removes model number `at` of the group, and returns its index. */
uint32_t placement_draft_remove(struct placement_draft *draft, uint32_t group, uint32_t at);

#endif
