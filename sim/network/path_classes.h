/*
 * Links and paths, reduced to what can limit a flow.
 *
 * A *link direction* is one direction of a link; a simplex link has one. Those that cannot be full, or have a single
 * flow, are separated from shared ones. Paths with equal shared link directions and caps are one class.
 */
#ifndef SPILLWAY_SIM_NETWORK_PATH_CLASSES_H
#define SPILLWAY_SIM_NETWORK_PATH_CLASSES_H

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
    uint32_t direction; /* 0 or 1; ignored for a simplex link */
};

#define SIM_NO_GROUP UINT32_MAX
enum { SIM_HOPS_MAX = 2 * HARDWARE_PATH_LINKS_MAX }; /* from one device to another */

/* From this share of its bandwidth a link direction counts as full. */
#define SIM_FULL (1 - 1e-9)

enum { SIM_PRIORITIES_MAX = 2 };

/* A flow's use of a link direction: `weight` times its rate. */
struct sim_crossing {
    struct sim_hop hop;
    double weight; /* > 0 */
};

struct sim_path {
    struct sim_hop hops[SIM_HOPS_MAX]; /* no link twice in one direction */
    const struct sim_crossing *crossings; /* NULL: `hops` with weight 1; else any number of ascending link directions.
                                           * Such a path has one flow and its own group */
    uint32_t hop_count;
    double cap_bytes_per_s; /* > 0: one flow's rate on an idle machine */
    uint32_t flow_limit;    /* at least 1 */
    uint32_t times;         /* paths that it stands for, with itself (sim/symmetry/symmetry.h) */
    uint32_t group;         /* paths of different groups are never one class */
    uint32_t priority;      /* also separates classes; below SIM_PRIORITIES_MAX, 0 goes first */
    bool takes_turns;       /* an earlier path has the same hops, cap and flow limit, and of the two only one at a time
                             * has flows; neither has weights */
};

static inline struct sim_crossing sim_path_crossing(const struct sim_path *path, uint32_t hop)
{
    return path->crossings ? path->crossings[hop] : (struct sim_crossing){path->hops[hop], 1};
}

/* One direction of a link. */
static inline uint32_t sim_link_dir(const struct sim_link *links, const struct sim_hop *hop)
{
    return hop->link * 2 + (links[hop->link].duplex ? hop->direction : 0);
}

enum sim_link_dir_role {
    SIM_LINK_DIR_UNUSED,
    SIM_LINK_DIR_OWN,      /* one flow at most: a cap */
    SIM_LINK_DIR_HARMLESS, /* cannot be filled */
    SIM_LINK_DIR_SHARED
};

struct sim_path_classes_link_dir {
    double bytes_per_s;
    double arriving;     /* scratch */
    uint32_t flow_limit; /* of all its paths */
    uint32_t first_path, path_count; /* in link_dir_paths */
    enum sim_link_dir_role role;
};

struct sim_load {
    uint32_t link_dir;
    double weight;
};

struct sim_path_classes {
    const struct sim_link *links; /* borrowed, like paths */
    const struct sim_path *paths;
    uint32_t link_dir_count, path_count, class_count;
    uint32_t hop_count;           /* of all paths together */
    struct sim_path_classes_link_dir *link_dirs; /* 2 per link, see sim_link_dir() */
    uint32_t *link_dir_paths;         /* the paths that cross each link direction */
    double *base_caps;            /* by path: least of its cap and own link directions */
    uint32_t *path_classes;       /* by path, in the order of first paths */
    uint32_t *class_paths;        /* by class: the first of its paths */
    struct sim_load *scratch;     /* room for two paths */
    uint32_t longest;             /* largest number of hops of a path */
};

/* Creates the classes, which lives as long as `arena`. */
MUST_CHECK enum status sim_path_classes_create(struct arena *arena, const struct sim_link *links,
                                               uint32_t link_count, const struct sim_path *paths,
                                               uint32_t path_count, struct sim_path_classes *out,
                                               struct error *err);

/* Lists a path's link directions with this role, ascending, and returns their number. `out` has room for
 * classes->longest. */
uint32_t sim_path_classes_link_dirs(const struct sim_path_classes *classes, uint32_t path,
                                    enum sim_link_dir_role role, struct sim_load *out);

#endif
