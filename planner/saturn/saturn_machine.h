/*
 * A machine as SPASE sees it: nodes with devices of one class (planner/saturn/spase/spase.h).
 *
 * A node is a set of close devices: devices of one type and memory with the same innermost direct network or, without
 * such networks, with the same first link from the host. Nodes with equal numbers of devices of one type are of one
 * class.
 */
#ifndef SPILLWAY_PLANNER_SATURN_SATURN_MACHINE_H
#define SPILLWAY_PLANNER_SATURN_SATURN_MACHINE_H

#include "models/hardware/hardware.h"

struct saturn_node {
    uint32_t class;
    uint32_t first, count; /* in `devices` */
};

/* Open structure; lives as long as its arena. */
struct saturn_machine {
    const struct hardware *hardware; /* borrowed */
    struct arena arena;
    struct saturn_node *nodes;
    uint32_t node_count, class_count;
    uint32_t *devices;    /* devices of the machine, node by node, in SPASE's numbering */
    uint32_t *class_node; /* (class_count) the first node of each */
};

MUST_CHECK enum status saturn_machine_find(const struct hardware *hardware, struct saturn_machine *out,
                                           struct error *err);
void saturn_machine_release(struct saturn_machine *machine);

#endif
