/*
 * SPASE instances made from a seed: jobs that train on one device for 1000 to 4000 ticks and, by a
 * parallelism of efficiency e, for that over k^e on k; the families that searches and bounds are
 * measured on.
 *
 * Each parallelism has for each job a factor on one device (0.85 to 1.3), an efficiency (0.55 to
 * 0.95) and a least number of devices (1, 2 or 4; the first parallelism starts at 1). Same options,
 * same instance, on every machine. A second class is 0.4 to 0.7 as fast, job by job.
 */
#ifndef SPILLWAY_PLANNER_SPASE_RANDOM_H
#define SPILLWAY_PLANNER_SPASE_RANDOM_H

#include "planner/saturn/spase/spase.h"

struct spase_random {
    uint64_t seed;
    uint32_t jobs, parallelisms;        /* at least 1; at most 8 parallelisms */
    uint32_t nodes, devices;            /* so many nodes of so many devices */
    uint32_t slow_nodes, slow_devices;  /* and of a slower class; 0: none */
    bool powers; /* counts of devices 1, 2, 4 ...; else every count */
    bool spans;  /* the last parallelism spans nodes, on counts up to twice a node's */
};

/* Release it with spase_release(). Errors: STATUS_LIMIT, STATUS_NO_MEMORY. */
MUST_CHECK enum status spase_random(const struct spase_random *options, struct spase *out, struct error *err);

#endif
