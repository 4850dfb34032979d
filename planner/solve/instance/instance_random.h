/*
 * Instances made from a seed: the families that searches and bounds are measured on.
 *
 * Same options, same instance, on every machine. Durations of a forward pass f are uniform; a
 * backward pass takes 2 f; the last shard's forward and backward pass are one unit, so that a
 * minibatch of S shards is 2 S - 1 units (Hydra's chain). Backward units write their parameters.
 */
#ifndef SPILLWAY_PLANNER_INSTANCE_RANDOM_H
#define SPILLWAY_PLANNER_INSTANCE_RANDOM_H

#include "planner/solve/instance/instance.h"

enum instance_family {
    FAMILY_COMPUTE,       /* no copies */
    FAMILY_HIDDEN,        /* copies of 0.3 to 0.8 f: double buffering hides them */
    FAMILY_TIGHT,         /* copies of 0.6 to 1.6 f, memory 25 to 65 of 100: many pairs do not fit */
    FAMILY_COPY,          /* copies of 1.5 to 3 f: the link binds */
    FAMILY_HOMOGENEOUS,   /* Hydra's Fig. 7: every job 2 h of 2000 units, no copies */
    FAMILY_HETEROGENEOUS, /* Hydra's Fig. 7: 30 min to 4 h of 100 to 10 000 units, no copies */
    FAMILY_FEW_LONG,      /* two to three chains longer than the others, copies as HIDDEN */
    FAMILY_MANY_SHORT,    /* one minibatch each, copies as HIDDEN */
    FAMILY_BRIDGE,        /* copies as HIDDEN, memory 20 to 75 of 100; all devices share a bridge, which needs for
                             what must cross it 0.9 to 1.4 times as long as devices compute or the longest job does */
    FAMILY_COUNT
};
extern const char *const instance_family_names[FAMILY_COUNT];

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

/* Release it with instance_release(). */
MUST_CHECK enum status instance_random(const struct instance_random *options, struct instance *out,
                                       struct error *err);

#endif
