/*
 * One run through failures (models/hardware/failures.h): events of devices in the order of time, and work, checkpoints,
 * restarts and waiting between them.
 *
 *   working     until the next checkpoint is due; a failure loses what was done since the last
 *   checkpoint  one that is interrupted is lost
 *   restarting  begins when there are devices enough; a failure begins it anew
 *   waiting     for devices to come back
 *
 * Devices fail whatever the run does, also while it waits. All are new at the start, and what comes back or
 * takes a place is as good as new. A device's chances depend on the seed and its number alone, so that two
 * runs of one seed differ by what is asked and not by chance.
 */
#ifndef SPILLWAY_SIM_SURVIVAL_H
#define SPILLWAY_SIM_SURVIVAL_H

#include "models/hardware/failures.h"

struct survival_case {
    const struct failures *failures;
    uint32_t devices;
    double work_s;             /* undisturbed, on all devices */
    double checkpoint_every_s; /* instead of that of `failures` */
    uint64_t seed;
};

/* Where the time went: all parts together are wall_s. */
struct survival {
    double wall_s;
    double work_s;       /* useful, as fast as if undisturbed */
    double again_s;      /* lost by failures */
    double slow_s;       /* longer for stragglers, or with fewer devices */
    double checkpoint_s; /* with those that were interrupted */
    double restart_s, waiting_s;
    uint32_t interruptions; /* by a device that failed or was taken away, work or not */
    bool ended;          /* false: given up after SURVIVAL_PATIENCE times the work */
};

#define SURVIVAL_PATIENCE 1e3

/* Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status survival_run(const struct survival_case *of, struct survival *out, struct error *err);

#endif
