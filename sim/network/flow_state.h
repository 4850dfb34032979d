/* Shared only by flow.c, flow_create.c and flow_steady.c. */
#ifndef SPILLWAY_SIM_NETWORK_FLOW_STATE_H
#define SPILLWAY_SIM_NETWORK_FLOW_STATE_H

#include "sim/engine/allocate.h"
#include "sim/network/crowd.h"
#include "sim/network/flow.h"
#include "sim/network/bottleneck.h"

#define FLOW_NO_BOTTLENECK UINT32_MAX

/* The clock of a class in no bottleneck or crowd. */
struct flow_class_clock {
    double served;     /* bytes served to each flow by `read_s`, since the clock was zero */
    double read_s;
    double rate;       /* bytes/s; 0 without flows */
    double first_s;    /* the first end at current rates; infinite if unknown */
    double first_end;  /* the least reading at which an active flow ends, and its order */
    uint64_t first_order;
    struct sim_queue *ends; /* owner: the flow's number in the class */
    double full_rate;  /* rates from here on count as the base cap */
    double full_s;     /* seconds at the base cap */
    uint32_t first_member; /* in flows->members */
    uint32_t flow_count;   /* active flows */
    uint32_t bundle;
    bool full;         /* its rate is the base cap */
};

struct flow_state {
    uint32_t path, class;
    uint32_t bottleneck;      /* its bottleneck; from bottleneck_count on, its crowd; or FLOW_NO_BOTTLENECK */
    uint32_t member;    /* number in its class; its place in a bottleneck or crowd */
};

/* For bytes that cross a simplex link both ways. */
enum { FLOW_PATH_BOTH_WAYS = 2 };

/* One cache line with all that a bottleneck's flow needs, except its bottleneck, place and links. */
struct flow_path {
    _Alignas(SIM_LINE) uint64_t bytes; /* of all its flows */
    struct sim_bottleneck_arm arm; /* of paths in a bottleneck */
    uint32_t first_link, link_count; /* in flows->path_links */
    bool has_own_link_dirs;
};
static_assert(sizeof(struct flow_path) == SIM_LINE, "a path is a cache line");

struct flow_link_state {
    uint32_t flow_count;
    double busy_s;      /* minus the current busy time's begin, while busy */
};

struct flow_link_dir_state {
    double full_from_s;
    double full_s;
};

struct sim_flows {
    struct sim_share *share;
    struct flow_class_clock *classes;
    struct flow_state *flows;
    double *full_from_s;       /* by flow outside bottlenecks and crowds: its class's full_s when it began */
    struct flow_path *paths;
    struct flow_link_state *links;
    struct flow_link_dir_state *link_dirs;  /* 2 per link */
    uint32_t *members;         /* the flows of each class */
    uint32_t *path_links;
    uint8_t *path_directions;  /* parallel to path_links; FLOW_PATH_BOTH_WAYS: equal bytes each way */
    double *path_weights;      /* likewise */
    struct sim_bottleneck *bottlenecks;
    uint32_t *bottleneck_link_dirs; /* by bottleneck; SIM_NO_BOTTLENECK: one class, limited by trunk or caps */
    struct sim_bottleneck_flow *bottleneck_places; /* places of all bottlenecks */
    uint32_t *touched_bottlenecks;
    struct sim_crowd *crowds;
    uint32_t *crowd_link_dirs;     /* by crowd */
    struct sim_crowd_arm *crowd_arms; /* of all crowds, and their classes ... */
    uint32_t *crowd_arm_classes;
    struct sim_crowd_flow *crowd_flows; /* ... places of all crowds, with their flows */
    uint32_t *crowd_flow_indexes;
    uint32_t *touched_crowds;
    struct sim_queue *queue;
    const uint32_t *owners;    /* by bundle: its entry in the queue */
    uint32_t *bundle_classes;  /* by bundle, after the bundles of bottlenecks and crowds, which have no class */
    uint32_t bundle_count, bottleneck_count, touched_bottleneck_count, bottleneck_place_count;
    uint32_t crowd_count, touched_crowd_count, crowd_arm_count, crowd_place_count;
    uint32_t class_count, flow_count, path_count, link_count;
    uint64_t work;             /* number of computed rates of classes */
};

/* Makes the crowds, after the bottlenecks. */
MUST_CHECK enum status sim_flow_crowds_create(struct arena *arena, struct sim_flows *flows,
                                              const struct sim_flows_setup *setup, struct error *err);

#endif
