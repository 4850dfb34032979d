/*
 * Families on which searches and bounds are measured.
 *
 * Equal options give equal instances everywhere. A forward pass takes f, uniform; a backward pass 2 f. The last shard's
 * two passes are one unit, so that a minibatch of S shards has 2 S - 1 units (Hydra's chain). Backward units write
 * their parameters.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_INSTANCE_INSTANCE_RANDOM_H
#define SPILLWAY_PLANNER_SOLVE_INSTANCE_INSTANCE_RANDOM_H

#include "planner/solve/instance/instance.h"

enum instance_family {
    INSTANCE_FAMILY_COMPUTE,       /* no copies */
    INSTANCE_FAMILY_HIDDEN,        /* copies of 0.3 to 0.8 f: double buffering hides them */
    INSTANCE_FAMILY_TIGHT,         /* copies of 0.6 to 1.6 f, memory 25 to 65 of 100: many pairs do not fit */
    INSTANCE_FAMILY_COPY,          /* copies of 1.5 to 3 f: the link binds */
    INSTANCE_FAMILY_HOMOGENEOUS,   /* Hydra's Fig. 7: every job has 2000 units and takes 2 h, no copies */
    INSTANCE_FAMILY_HETEROGENEOUS, /* Hydra's Fig. 7: 100 to 10 000 units and 30 min to 4 h, no copies */
    INSTANCE_FAMILY_FEW_LONG,      /* two to three chains longer than the others, copies as HIDDEN */
    INSTANCE_FAMILY_MANY_SHORT,    /* one minibatch each, copies as HIDDEN */
    INSTANCE_FAMILY_BRIDGE,        /* copies as HIDDEN, memory 20 to 75 of 100; a shared bridge, whose necessary copies
                                      take 0.9
                           * to 1.4 times the devices' computation or the longest job */
    INSTANCE_FAMILY_COUNT
};
extern const char *const instance_family_names[INSTANCE_FAMILY_COUNT];

struct instance_range {
    uint32_t min, max;
};

struct instance_random {
    enum instance_family family;
    uint64_t seed;
    struct instance_range devices, jobs, shards; /* shards: drawn for each job */
    struct instance_range minibatches;           /* the same for all jobs */
    struct instance_range forward; /* ticks; {0, 0}: 4 to 20 */
};

/* Makes an instance. Release it with instance_release(). */
MUST_CHECK enum status instance_random(const struct instance_random *options, struct instance *out,
                                       struct error *err);

#endif
