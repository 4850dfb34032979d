/*
 * What sim/symmetry/symmetry.c colours: the devices of a plan and all that makes one of them wait for another, as a graph.
 * For that file alone.
 *
 *     device   -- its place in gangs, slowness, type
 *      pair    -- a copy between two devices
 *      group   -- devices that collectives join; a *joint* where these are flows
 *      host    -- a way between a device and host memory, where something is copied over it
 *      link    -- with all flows that cross it, in the order in which they stand in the simulation
 */
#ifndef SPILLWAY_SIM_SYMMETRY_GRAPH_H
#define SPILLWAY_SIM_SYMMETRY_GRAPH_H

#include "sim/symmetry/colouring.h"
#include "sim/symmetry/symmetry.h"

/* Of a copy: which gangs' instances it is of (PLAN_NONE: of single devices). */
struct symmetry_pair {
    uint32_t to, from;
    uint32_t gang, peer_gang;
    uint32_t place;  /* in its gang */
    uint32_t node;   /* the same for all of two devices */
};

/* A flow crosses a lane of a link. */
struct symmetry_crossing {
    uint32_t link, direction;
    uint32_t hop;    /* of a collective's flow 0 */
    uint64_t series; /* those of one may be of one operation: then they begin in the order of places ... */
    uint32_t place;  /* ... of their devices in the gang, or of groups */
    uint32_t node;
    double weight;
};

struct symmetry_graph {
    const struct sim_symmetry_setup *setup;
    struct arena *arena; /* of what lives as long as the graph */
    struct sim_colouring *colouring;
    bool *alone;         /* per device: nobody does what it does */
    uint32_t *axes_used; /* per gang: bit s for the set s of axes, bit 0 where it is used at all */
    uint64_t *gang_pairs; /* to << 32 | from, ascending */
    uint64_t *device_pairs; /* likewise, of single devices */
    size_t gang_pair_count, gang_pair_capacity, device_pair_count, device_pair_capacity;
    struct symmetry_pair *pairs; /* by `to`, `from`, gangs */
    uint32_t pair_count;
    uint32_t *group_nodes; /* by group; PLAN_NONE: it does nothing together */
    struct symmetry_crossing *crossings; /* by link; of one in the order of the simulation's paths */
    size_t crossing_count, crossing_capacity;
    uint32_t *link_nodes;  /* per link; PLAN_NONE: nothing that matters crosses it */
};

/* *possible: false where no device can stand for another. The graph is uncoloured. Released as
 * symmetry_graph_release() does, also after an error. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status symmetry_graph_make(struct arena *arena, const struct sim_symmetry_setup *setup,
                                           struct symmetry_graph *out, bool *possible, struct error *err);
void symmetry_graph_release(struct symmetry_graph *graph);

#endif
