/*
 * Collectives as flows, which share links with other traffic.
 *
 * A collective has parts (models/cost/collective.h). Each part is a flow over all link directions of its messages, with
 * the number of simultaneous messages as a link direction's weight. A rate is one sending member's. Without other
 * traffic a collective takes its closed form's time.
 */
#ifndef SPILLWAY_SIM_NETWORK_COLLECTIVE_FLOW_H
#define SPILLWAY_SIM_NETWORK_COLLECTIVE_FLOW_H

#include "sim/network/collective_times.h"
#include "sim/network/path_classes.h"

/* The method that gives the seconds of collectives. */
enum sim_collectives_by {
    SIM_COLLECTIVES_CLOSED, /* closed forms */
    SIM_COLLECTIVES_AUTO,   /* flows if other traffic crosses their link directions, else closed forms */
    SIM_COLLECTIVES_FLOWS,
    SIM_COLLECTIVES_BY_COUNT
};
extern const char *const sim_collectives_by_names[SIM_COLLECTIVES_BY_COUNT + 1]; /* "closed", ..., NULL */

struct sim_collective_flows; /* opaque */

/*
 * Creates the flows, which live as long as `arena`; other arguments are borrowed. AUTO decides once for all groups of a
 * gang along one set of axes on one kind of stream. Other traffic means copies, and collectives of other gangs, axes or
 * streams; the closed form includes the gang's other groups. *out: NULL if no collective is a flow.
 */
MUST_CHECK enum status sim_collective_flows_create(struct arena *arena, const struct plan *plan,
                                                   const struct hardware *hardware,
                                                   const struct sim_collectives *collectives,
                                                   enum sim_collectives_by by, struct sim_collective_flows **out,
                                                   struct error *err);

/* Returns the path of a group's collectives on a kind of stream in direction `way`, and its number, or NULL. */
const struct sim_path *sim_collective_flows_path(const struct sim_collective_flows *flows, uint32_t group,
                                                 uint32_t stream, enum collective_way way, uint32_t *number);

/* Returns a group's levels while it is active by itself. Borrowed. */
const struct collective_group *sim_collective_flows_alone(const struct sim_collective_flows *flows, uint32_t group);

/*
 * Drops groups that are not kept (by group), and replaces link l by link_for[l] (sim/symmetry/symmetry.h). Paths get
 * new numbers.
 */
MUST_CHECK enum status sim_collective_flows_fold(struct sim_collective_flows *flows, const bool *kept,
                                                 const uint32_t *link_for, struct error *err);

/* Replaces a path's links; new crossings are in `arena`. */
MUST_CHECK enum status sim_collective_flows_fold_path(struct arena *arena, const uint32_t *link_for,
                                                      struct sim_path *path, struct error *err);

/* Return all paths, each with one flow and a group from first_group on; the caller owns only the array. */
uint32_t sim_collective_flows_path_count(const struct sim_collective_flows *flows);
void sim_collective_flows_paths(const struct sim_collective_flows *flows, uint32_t first_group,
                                struct sim_path *paths);

/* A part of an operation in a group: a latency, then `volume` over a path. */
struct sim_collective_part {
    double latency_s;
    double volume;   /* bytes at the path's cap */
    uint64_t bytes;  /* sent by one member */
    uint32_t path;
};

/* Finds an operation's part, from 0. Returns false if there is none, or no flows do the operation. */
bool sim_collective_flows_part(const struct sim_collective_flows *flows, uint32_t group, uint32_t job,
                               const struct plan_op *op, uint32_t part, struct sim_collective_part *out);

#endif
