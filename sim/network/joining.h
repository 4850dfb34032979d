/*
 * Seconds of a plan's collectives: by models/cost/collective.h, with the links between the devices that each
 * joins while all groups of its gang do the same (models/cost/collective_group.h). What else crosses these links
 * meanwhile is not seen: that is sim/network/collective_flow.h.
 */
#ifndef SPILLWAY_SIM_JOINING_H
#define SPILLWAY_SIM_JOINING_H

#include "models/cost/collective_group.h"
#include "planner/plan.h"

struct sim_collectives; /* opaque */

/* Lives as long as `arena`; `plan` and `hardware` are borrowed. Errors: STATUS_NO_MEMORY;
 * STATUS_BAD_INPUT when two devices that are joined have no way to each other. */
MUST_CHECK enum status sim_collectives_create(struct arena *arena, const struct plan *plan,
                                              const struct hardware *hardware,
                                              struct sim_collectives **out, struct error *err);

/* The groups of all gangs, along all axes that some operation names. */
uint32_t sim_collectives_group_count(const struct sim_collectives *collectives);

/* The number of a group of a gang (planner/plan_gang.h). */
uint32_t sim_collectives_group(const struct sim_collectives *collectives, uint32_t gang, uint32_t axes,
                               uint32_t group);

/* Borrowed: it while all groups of its gang do the same. */
const struct collective_group *sim_collectives_at(const struct sim_collectives *collectives, uint32_t group);

/* The devices of a gang, group by group. */
void sim_collectives_devices(const struct plan *plan, uint32_t gang, uint32_t axes, uint32_t *devices);

/* The algorithm by which the operation of a job is done. */
enum collective_algorithm sim_collectives_algorithm(const struct sim_collectives *collectives, uint32_t group,
                                                    uint32_t job, const struct plan_op *op);

/* All rounds of the operation of a job, in that group. */
double sim_collectives_s(const struct sim_collectives *collectives, uint32_t group, uint32_t job,
                         const struct plan_op *op);

#endif
