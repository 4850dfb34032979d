/* What flow.c keeps, flow_create.c makes and flow_steady.c reads: for these alone. */
#ifndef SPILLWAY_SIM_FLOW_STATE_H
#define SPILLWAY_SIM_FLOW_STATE_H

#include "sim/engine/take.h"
#include "sim/network/crowd.h"
#include "sim/network/flow.h"
#include "sim/network/star.h"

#define NO_STAR UINT32_MAX

/* Of a class that is of no star. */
struct class_clock {
    double served;     /* bytes, at `read_s`, to each flow since the clock was at zero */
    double read_s;
    double rate;       /* bytes/s; 0 without flows: the clock stands still */
    double first_s;    /* when the first of them ends as things are; infinite where that is not known yet */
    double first_end;  /* of the flows under way: the least reading, and the order there */
    uint64_t first_order;
    struct sim_queue *ends; /* owner: the flow's number in the class */
    double full_rate;  /* from here on it goes at its base cap */
    double full_s;     /* spent at the base cap */
    uint32_t first_member; /* in flows->members */
    uint32_t flow_count;   /* under way */
    uint32_t bundle;
    bool full;         /* goes at its base cap */
};

struct flow_state {
    uint32_t path, class;
    uint32_t star;      /* or, counted after these, its crowd; or NO_STAR */
    uint32_t member;    /* number in its class; of a star or a crowd: its place */
};

/* In place of a direction, of bytes that go both ways over a simplex link. */
enum { PATH_BOTH_WAYS = 2 };

/* A cache line: all that a flow of a star looks at but its star, its place there and its links. */
struct flow_path {
    _Alignas(SIM_LINE) uint64_t bytes; /* of all its flows */
    struct sim_star_arm arm; /* of paths that are of a star */
    uint32_t first_link, link_count; /* in flows->path_links */
    bool has_own_lanes;
};
static_assert(sizeof(struct flow_path) == SIM_LINE, "a path is a cache line");

struct link_state {
    uint32_t flow_count;
    double busy_s;      /* less the time from which on it is busy, while it is */
};

struct lane_state {
    double full_from_s;
    double full_s;
};

struct sim_flows {
    struct sim_share *share;
    struct class_clock *classes;
    struct flow_state *flows;
    double *full_from_s;       /* by flow, of no star or crowd: its class's full_s when it began */
    struct flow_path *paths;
    struct link_state *links;
    struct lane_state *lanes;  /* 2 per link */
    uint32_t *members;         /* the flows of each class */
    uint32_t *path_links;
    uint8_t *path_directions;  /* beside path_links; PATH_BOTH_WAYS: as much out as in */
    double *path_weights;      /* likewise */
    struct sim_star *stars;
    uint32_t *star_lanes;      /* by star; SIM_NO_STAR: a class alone, whose trunk or caps are all that limits it */
    struct sim_star_flow *star_places; /* those of all stars */
    uint32_t *touched_stars;
    struct sim_crowd *crowds;
    uint32_t *crowd_lanes;     /* by crowd */
    struct sim_crowd_arm *crowd_arms; /* those of all crowds, and which class each is ... */
    uint32_t *crowd_arm_classes;
    struct sim_crowd_flow *crowd_flows; /* ... and the places of all crowds, and which flow each is */
    uint32_t *crowd_flow_indexes;
    uint32_t *touched_crowds;
    struct sim_queue *queue;
    const uint32_t *owners;    /* by bundle: its entry in the queue */
    uint32_t *bundle_classes;  /* by bundle, of those that are no stars or crowds, which are the first ones */
    uint32_t bundle_count, star_count, touched_star_count, star_place_count;
    uint32_t crowd_count, touched_crowd_count, crowd_arm_count, crowd_place_count;
    uint32_t class_count, flow_count, path_count, link_count;
    uint64_t work;             /* rates of classes found */
};

/* After the stars. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status sim_flow_crowds_create(struct arena *arena, struct sim_flows *flows,
                                              const struct sim_flows_setup *setup, struct error *err);

#endif
