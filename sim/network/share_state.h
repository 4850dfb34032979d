/* What share.c solves and share_create.c makes: for these two alone. */
#ifndef SPILLWAY_SIM_SHARE_STATE_H
#define SPILLWAY_SIM_SHARE_STATE_H

#include "sim/network/share.h"

#define NO_LANE SIM_NO_STAR

struct lane {
    double bytes_per_s;
    double demand;     /* of all flows at their limits */
    double left;       /* while filling */
    uint64_t mark;     /* == share->round: in the component at hand */
    uint64_t summed;   /* == share->round: `full` is up to date */
    uint32_t unfixed;  /* flows, while filling ... */
    double unfixed_weight; /* ... and their weights together */
    uint32_t first_class, class_count; /* in share->lane_classes */
    bool contended;    /* when last rated */
    bool full;         /* likewise */
};

struct rate_class {
    double limit;      /* what one flow can do beside the others of the class: the least of its cap
                          and its part of the trunk */
    double rate;
    double trunk_full; /* load from which on it is full */
    uint32_t flow_count;
    uint32_t star;     /* see struct sim_share_limits */
    bool filled;       /* its trunk is full */
    double cap;
    double trunk;      /* the narrowest lane that the class has to itself; infinite: none */
    uint32_t first_private, private_count; /* in share->private_lanes */
    double base_cap;
    uint64_t mark;     /* == share->round: in the component at hand */
    uint32_t first_lane, lane_count; /* shared with others; in share->class_lanes */
    bool touched;      /* in share->touched */
    bool fixed;        /* while filling */
    uint32_t priority;
};

struct path_lanes {
    uint32_t class;
    uint32_t first_own, own_count; /* in share->own_lanes */
};

struct sim_share {
    struct lane *lanes;         /* 2 per link */
    struct rate_class *classes;
    struct path_lanes *paths;
    uint32_t *lane_classes;     /* which classes cross a lane ... */
    double *lane_weights;       /* ... with which weight */
    uint32_t *class_lanes;      /* which lanes a class shares with others ... */
    double *class_weights;      /* ... and its weight there */
    uint32_t *private_lanes;    /* those of a class alone that can be full */
    uint32_t *own_lanes;        /* those of a path with one flow that can be full */
    uint32_t *touched;          /* classes changed since the last solve */
    struct sim_rate *changed;   /* result: classes; while filling the component is at its end */
    uint32_t *component_lanes;  /* its contended lanes */
    uint32_t *turned;           /* result: lanes that became full or no longer are */
    uint32_t lane_count, class_count, path_count;
    uint32_t priority_count;    /* at least 1 */
    uint32_t touched_count, changed_count, component_lane_count, turned_count;
    uint32_t component_first;   /* in changed */
    uint64_t round;             /* of solving components */
};

#endif
