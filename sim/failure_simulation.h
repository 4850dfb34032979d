/*
 * One run with failures (models/hardware/failures.h): device events by time, and work, checkpoints, restarts and
 * waiting between them.
 *
 *   working     until the next checkpoint is due; a failure loses the work since the last checkpoint
 *   checkpoint  lost if it is interrupted
 *   restarting  begins when enough devices are there; a failure begins it again
 *   waiting     for devices to come back
 *
 * Devices fail in every state of the run. All are new at the start, as good as new after a return or replacement. A
 * device's random events depend only on the seed and its number, so two runs of a seed differ only by their options.
 */
#ifndef SPILLWAY_SIM_FAILURE_SIMULATION_H
#define SPILLWAY_SIM_FAILURE_SIMULATION_H

#include "models/hardware/failures.h"

struct failure_simulation_case {
    const struct failures *failures;
    uint32_t devices;
    double work_s;             /* without failures, on all devices */
    double checkpoint_every_s; /* replaces the interval of `failures` */
    uint64_t seed;
};

/* Parts of the run's time add up to wall_s. */
struct failure_simulation {
    double wall_s;
    double work_s;       /* useful work at full speed */
    double again_s;      /* work lost by failures */
    double slow_s;       /* extra time due to stragglers or missing devices */
    double checkpoint_s; /* interrupted checkpoints included */
    double restart_s, waiting_s;
    uint32_t interruptions; /* failures and preemptions of devices, working or not */
    bool ended;          /* false: stopped after FAILURE_SIMULATION_PATIENCE times the work */
};

#define FAILURE_SIMULATION_PATIENCE 1e3

/* Simulates one run. */
MUST_CHECK enum status failure_simulation_run(const struct failure_simulation_case *of, struct failure_simulation *out,
                                              struct error *err);

#endif
