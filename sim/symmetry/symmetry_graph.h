/*
 * The graph that sim/symmetry/symmetry.c colours: the devices of a plan and everything that makes one of them wait for
 * another. Private to that file.
 *
 *     device   -- its place in gangs, slowness, type
 *      pair    -- a copy between two devices
 *      group   -- devices that collectives join; a *joint* if the collectives are flows
 *      host    -- a route between a device and host memory that the plan uses
 *      link    -- with all flows that cross it, in the simulation's order
 */
#ifndef SPILLWAY_SIM_SYMMETRY_SYMMETRY_GRAPH_H
#define SPILLWAY_SIM_SYMMETRY_SYMMETRY_GRAPH_H

#include "sim/symmetry/refinement.h"
#include "sim/symmetry/symmetry.h"

/* A copy between two devices, and the gangs of its tasks (PLAN_NONE: single devices). */
struct symmetry_pair {
    uint32_t to, from;
    uint32_t gang, peer_gang;
    uint32_t place;  /* in its gang */
    uint32_t node;   /* one node for all copies between two devices */
};

/* A flow that crosses a link direction. */
struct symmetry_crossing {
    uint32_t link, direction;
    uint32_t hop;    /* 0 for a flow of a collective */
    uint64_t series; /* flows of one series may be of one operation: then they begin in the order of places ... */
    uint32_t place;  /* ... of their devices in the gang, or of groups */
    uint32_t node;
    double weight;
};

struct symmetry_graph {
    const struct sim_symmetry_setup *setup;
    struct arena *arena; /* owns everything that lives as long as the graph */
    struct sim_refinement *refinement;
    bool *alone;         /* per device: no other device does the same */
    uint32_t *axes_used; /* per gang: bit s for the set s of axes, bit 0 if the gang is used */
    uint64_t *gang_pairs; /* to << 32 | from, ascending */
    uint64_t *device_pairs; /* likewise, for single devices */
    size_t gang_pair_count, gang_pair_capacity, device_pair_count, device_pair_capacity;
    struct symmetry_pair *pairs; /* by `to`, `from`, gangs */
    uint32_t pair_count;
    uint32_t *group_nodes; /* by group; PLAN_NONE: it has no collectives */
    struct symmetry_crossing *crossings; /* by link; within a link in the order of the simulation's paths */
    size_t crossing_count, crossing_capacity;
    uint32_t *link_nodes;  /* per link; PLAN_NONE: no relevant flow crosses it */
};

/* Makes the uncoloured graph. *possible: false if no device can stand for another. The caller releases it with
 * symmetry_graph_release(), also after an error. */
MUST_CHECK enum status symmetry_graph_make(struct arena *arena, const struct sim_symmetry_setup *setup,
                                           struct symmetry_graph *out, bool *possible, struct error *err);
void symmetry_graph_release(struct symmetry_graph *graph);

#endif
