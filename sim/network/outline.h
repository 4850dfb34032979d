/*
 * A graph of links and paths, reduced to what can ever limit a flow.
 *
 * A *lane* is one direction of a link (a simplex link has one lane). Lanes that cannot be full, or
 * that one flow has to itself, are told apart from those that flows have to share; paths that are
 * equal as far as the latter and their caps go are one class.
 */
#ifndef SPILLWAY_SIM_OUTLINE_H
#define SPILLWAY_SIM_OUTLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "models/hardware/hardware.h"

struct sim_link {
    double bytes_per_s; /* > 0 */
    bool duplex;
};

struct sim_hop {
    uint32_t link;
    uint32_t direction; /* 0 or 1; means nothing on a simplex link */
};

#define SIM_NO_GROUP UINT32_MAX
enum { SIM_HOPS_MAX = 2 * PATH_LINKS_MAX }; /* from one device to another */

/* A lane counts as full from this part of its bandwidth on. */
#define SIM_FULL (1 - 1e-9)

enum { SIM_PRIORITIES_MAX = 2 };

/* What a flow takes of a lane: its rate, `weight` times over. */
struct sim_crossing {
    struct sim_hop hop;
    double weight; /* > 0 */
};

struct sim_path {
    struct sim_hop hops[SIM_HOPS_MAX]; /* no link twice in one direction */
    const struct sim_crossing *crossings; /* NULL: `hops`, of weight 1; else instead of them, any number, lanes
                                             in ascending order. Then one flow, and a group of its own */
    uint32_t hop_count;
    double cap_bytes_per_s; /* > 0: what one flow can do on an idle machine */
    uint32_t flow_limit;    /* at least 1 */
    uint32_t times;         /* more than 1: it stands for so many, over other links (sim/symmetry/symmetry.h) */
    uint32_t group;         /* paths of different groups are never one class */
    uint32_t priority;      /* nor are those of different priorities; below SIM_PRIORITIES_MAX, 0 goes first */
};

static inline struct sim_crossing sim_path_crossing(const struct sim_path *path, uint32_t hop)
{
    return path->crossings ? path->crossings[hop] : (struct sim_crossing){path->hops[hop], 1};
}

/* One direction of a link. */
static inline uint32_t sim_lane(const struct sim_link *links, const struct sim_hop *hop)
{
    return hop->link * 2 + (links[hop->link].duplex ? hop->direction : 0);
}

enum sim_lane_role {
    SIM_LANE_UNUSED,
    SIM_LANE_OWN,      /* one flow at most: a cap on it */
    SIM_LANE_HARMLESS, /* cannot be filled */
    SIM_LANE_SHARED
};

struct sim_outline_lane {
    double bytes_per_s;
    double arriving;     /* scratch */
    uint32_t flow_limit; /* of all its paths */
    uint32_t first_path, path_count; /* in lane_paths */
    enum sim_lane_role role;
};

struct sim_load {
    uint32_t lane;
    double weight;
};

struct sim_outline {
    const struct sim_link *links; /* borrowed, like paths */
    const struct sim_path *paths;
    uint32_t lane_count, path_count, class_count;
    uint32_t hop_count;           /* of all paths together */
    struct sim_outline_lane *lanes; /* 2 per link, see sim_lane() */
    uint32_t *lane_paths;         /* the paths that cross each lane */
    double *base_caps;            /* by path: the lowest of its cap and its own lanes */
    uint32_t *path_classes;       /* by path; classes are in the order of their first paths */
    uint32_t *class_paths;        /* by class: the first of its paths */
    struct sim_load *scratch;     /* for two paths */
    uint32_t longest;             /* hops of a path, at most */
};

/* Lives as long as `arena`. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status sim_outline_create(struct arena *arena, const struct sim_link *links,
                                          uint32_t link_count, const struct sim_path *paths,
                                          uint32_t path_count, struct sim_outline *out,
                                          struct error *err);

/* The lanes of a path that have this role, in ascending order; how many. Room for outline->longest. */
uint32_t sim_outline_lanes(const struct sim_outline *outline, uint32_t path,
                           enum sim_lane_role role, struct sim_load *out);

#endif
