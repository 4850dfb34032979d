/*
 * Seconds of a plan's collectives by models/cost/collective.h. A group shares its links with all groups of its gang,
 * which act at once (models/cost/collective_group.h). Other traffic is ignored; sim/network/collective_flow.h includes
 * it.
 */
#ifndef SPILLWAY_SIM_NETWORK_COLLECTIVE_TIMES_H
#define SPILLWAY_SIM_NETWORK_COLLECTIVE_TIMES_H

#include "models/cost/collective_group.h"
#include "planner/plan.h"

struct sim_collectives; /* opaque */

/* Creates the groups, which live as long as `arena`; `plan` and `hardware` are borrowed. Errors: STATUS_BAD_INPUT for
 * joined devices without a route. */
MUST_CHECK enum status sim_collectives_create(struct arena *arena, const struct plan *plan,
                                              const struct hardware *hardware,
                                              struct sim_collectives **out, struct error *err);

/* Counts the groups of all gangs, along all axes that operations name. */
uint32_t sim_collectives_group_count(const struct sim_collectives *collectives);

/* Returns a group's number (planner/plan_gang.h). */
uint32_t sim_collectives_group(const struct sim_collectives *collectives, uint32_t gang, uint32_t axes,
                               uint32_t group);

/* Returns a group, with the bandwidth that its gang's other groups leave. Borrowed. */
const struct collective_group *sim_collectives_at(const struct sim_collectives *collectives, uint32_t group);

/* Lists the devices of a gang, group by group. */
void sim_collectives_devices(const struct plan *plan, uint32_t gang, uint32_t axes, uint32_t *devices);

/* Returns the algorithm of a job's operation. */
enum collective_algorithm sim_collectives_algorithm(const struct sim_collectives *collectives, uint32_t group,
                                                    uint32_t job, const struct plan_op *op);

/* Returns the seconds of all rounds of an operation in the group. */
double sim_collectives_s(const struct sim_collectives *collectives, uint32_t group, uint32_t job,
                         const struct plan_op *op);

#endif
