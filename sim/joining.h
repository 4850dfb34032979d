/*
 * Seconds of a plan's collectives: by models/collective.h, with the links between the devices that each
 * joins while all groups of its gang do the same (models/collective_group.h). What else crosses these links
 * meanwhile is not seen.
 */
#ifndef SPILLWAY_SIM_JOINING_H
#define SPILLWAY_SIM_JOINING_H

#include "planner/plan.h"

struct sim_collectives; /* opaque */

/* Lives as long as `arena`; `plan` and `hardware` are borrowed. Errors: STATUS_NO_MEMORY;
 * STATUS_BAD_INPUT when two devices that are joined have no way to each other. */
MUST_CHECK enum status sim_collectives_create(struct arena *arena, const struct plan *plan,
                                              const struct hardware *hardware,
                                              struct sim_collectives **out, struct error *err);

/* The number of a group of a gang (planner/plan_gang.h). */
uint32_t sim_collectives_group(const struct sim_collectives *collectives, uint32_t gang, uint32_t axes,
                               uint32_t group);

/* Do equal collectives take equally long in all groups of the gang? */
bool sim_collectives_alike(const struct sim_collectives *collectives, uint32_t gang);

/* All rounds of the operation of a job, in that group. */
double sim_collectives_s(const struct sim_collectives *collectives, uint32_t group, uint32_t job,
                         const struct plan_op *op);

#endif
