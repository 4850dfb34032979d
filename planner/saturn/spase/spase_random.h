/*
 * Random SPASE instances: jobs that train on one device for 1000 to 4000 ticks and, by a parallelism of efficiency e,
 * for that time over k^e on k devices. These are the families on which searches and bounds are measured.
 *
 * Each parallelism has for each job a factor on one device (0.85 to 1.3), an efficiency (0.55 to 0.95) and a least
 * number of devices (1, 2 or 4; the first parallelism starts at 1). Equal options give equal instances on every
 * machine. A second class is 0.4 to 0.7 as fast, job by job.
 */
#ifndef SPILLWAY_PLANNER_SATURN_SPASE_SPASE_RANDOM_H
#define SPILLWAY_PLANNER_SATURN_SPASE_SPASE_RANDOM_H

#include "planner/saturn/spase/spase.h"

struct spase_random {
    uint64_t seed;
    uint32_t jobs, parallelisms;        /* at least 1; at most 8 parallelisms */
    uint32_t nodes, devices;            /* number of nodes; devices of each */
    uint32_t slow_nodes, slow_devices;  /* likewise for a slower class; 0: none */
    bool powers; /* numbers of devices 1, 2, 4 ...; else every number */
    bool spans;  /* the last parallelism spans nodes, with up to twice a node's devices */
};

/* Makes an instance. Release it with spase_release(). Errors: STATUS_LIMIT, STATUS_NO_MEMORY. */
MUST_CHECK enum status spase_random(const struct spase_random *options, struct spase *out, struct error *err);

#endif
