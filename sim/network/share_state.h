/* Shared only by share.c and share_create.c. */
#ifndef SPILLWAY_SIM_NETWORK_SHARE_STATE_H
#define SPILLWAY_SIM_NETWORK_SHARE_STATE_H

#include "sim/network/share.h"

#define SHARE_NO_LINK_DIR SIM_NO_BOTTLENECK

struct share_link_dir {
    double bytes_per_s;
    double demand;     /* of all flows at their limits */
    double left;       /* while filling */
    uint64_t mark;     /* == share->round: in the current component */
    uint64_t summed;   /* == share->round: `full` is up to date */
    uint32_t unfixed;  /* flows, while filling ... */
    double unfixed_weight; /* ... and their weights together */
    uint32_t first_class, class_count; /* in share->link_dir_classes */
    uint32_t flow_limit; /* of all its paths */
    bool contended;    /* when last rated */
    bool full;         /* likewise */
};

struct share_class {
    double limit;      /* one flow's rate next to its class's others: the least of its cap and its part of the trunk */
    double rate;
    double trunk_full; /* load from which on the trunk is full */
    uint32_t flow_count;
    uint32_t bottleneck, partner; /* see struct sim_share_limits */
    uint32_t shared_trunk;   /* the link direction shared with the partner */
    bool filled;       /* its trunk is full */
    double cap;
    double trunk;      /* the narrowest link direction of its own; infinite: none */
    uint32_t first_private, private_count; /* in share->private_link_dirs */
    double base_cap;
    uint64_t mark;     /* == share->round: in the current component */
    uint32_t first_link_dir, link_dir_count; /* link directions shared with other classes, in share->class_link_dirs */
    bool touched;      /* in share->touched */
    bool fixed;        /* while filling */
    uint32_t priority;
};

struct share_path_link_dirs {
    uint32_t class;
    uint32_t first_own, own_count; /* in share->own_link_dirs */
};

struct sim_share {
    struct share_link_dir *link_dirs;         /* 2 per link */
    struct share_class *classes;
    struct share_path_link_dirs *paths;
    uint32_t *link_dir_classes;     /* classes that cross a link direction ... */
    double *link_dir_weights;       /* ... with their weights */
    uint32_t *class_link_dirs;      /* link directions that a class shares with others ... */
    double *class_weights;      /* ... with its weights */
    uint32_t *private_link_dirs;    /* link directions of one class's own that can be full */
    uint32_t *own_link_dirs;        /* the same, of a path with one flow */
    uint32_t *touched;          /* classes changed since the last solve */
    struct sim_rate *changed;   /* result: classes; while filling, the component is at its end */
    uint32_t *component_link_dirs;  /* its contended link directions */
    uint32_t *turned;           /* result: link directions that became full or not full */
    uint32_t link_dir_count, class_count, path_count;
    uint32_t priority_count;    /* at least 1 */
    uint32_t touched_count, changed_count, component_link_dir_count, turned_count;
    uint32_t component_first;   /* in changed */
    uint64_t round;             /* of solving components */
};

#endif
