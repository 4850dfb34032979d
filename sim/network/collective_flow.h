/*
 * Collectives as flows: what else crosses their links slows them down, and they it.
 *
 * A collective is done in parts (models/cost/collective.h), each of which is a flow over all lanes that its messages
 * cross, with as many times its rate as messages cross a lane at once. Rates are those of a member that sends.
 * On links where nothing else happens it takes as long as the closed form says.
 */
#ifndef SPILLWAY_SIM_COLLECTIVE_FLOW_H
#define SPILLWAY_SIM_COLLECTIVE_FLOW_H

#include "sim/network/joining.h"
#include "sim/network/outline.h"

/* How the seconds of collectives are found. */
enum sim_collectives_by {
    SIM_COLLECTIVES_CLOSED, /* closed forms */
    SIM_COLLECTIVES_AUTO,   /* flows where something else of the plan crosses a lane that they do */
    SIM_COLLECTIVES_FLOWS,
    SIM_COLLECTIVES_BY_COUNT
};
extern const char *const sim_collectives_by_names[SIM_COLLECTIVES_BY_COUNT + 1]; /* "closed", ..., NULL */

struct sim_collective_flows; /* opaque */

/*
 * Lives as long as `arena`; the rest is borrowed. AUTO decides for all groups of a gang along one set of axes
 * and on one kind of stream at once: copies, and collectives of other gangs, axes or streams are something
 * else, groups of the same are not, for the closed form knows of them.
 * *out: NULL where no collective is a flow. Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status sim_collective_flows_create(struct arena *arena, const struct plan *plan,
                                                   const struct hardware *hardware,
                                                   const struct sim_collectives *collectives,
                                                   enum sim_collectives_by by, struct sim_collective_flows **out,
                                                   struct error *err);

/* The path of a group's collectives on a kind of stream that go that way, and its number; NULL: there is none. */
const struct sim_path *sim_collective_flows_path(const struct sim_collective_flows *flows, uint32_t group,
                                                 uint32_t stream, enum collective_way way, uint32_t *number);

/* The group's levels while no other does anything. Borrowed. */
const struct collective_group *sim_collective_flows_alone(const struct sim_collective_flows *flows, uint32_t group);

/*
 * Only the groups that are kept (by group) from now on; what a lane of link l does, that of link_for[l] does
 * (sim/symmetry/symmetry.h). The numbers of paths change. Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status sim_collective_flows_fold(struct sim_collective_flows *flows, const bool *kept,
                                                 const uint32_t *link_for, struct error *err);

/* The same of one path that has crossings; new ones are in `arena`. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status sim_collective_flows_fold_path(struct arena *arena, const uint32_t *link_for,
                                                      struct sim_path *path, struct error *err);

/* Their paths, each of one flow, with groups from first_group on; borrowed but for the array itself. */
uint32_t sim_collective_flows_path_count(const struct sim_collective_flows *flows);
void sim_collective_flows_paths(const struct sim_collective_flows *flows, uint32_t first_group,
                                struct sim_path *paths);

/* A part of the operation of a job in a group: a latency, then `volume` over a path. */
struct sim_collective_part {
    double latency_s;
    double volume;   /* bytes at the path's cap */
    uint64_t bytes;  /* that a member sends */
    uint32_t path;
};

/* The next one, `part` being how many are over; false: there are no more, or it is not done by flows. */
bool sim_collective_flows_part(const struct sim_collective_flows *flows, uint32_t group, uint32_t job,
                               const struct plan_op *op, uint32_t part, struct sim_collective_part *out);

#endif
