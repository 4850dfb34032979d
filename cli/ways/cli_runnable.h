/* Where plans are run. */
#ifndef SPILLWAY_CLI_WAYS_CLI_RUNNABLE_H
#define SPILLWAY_CLI_WAYS_CLI_RUNNABLE_H

#include "models/hardware/hardware.h"

/* Returns true for cores of a host or devices found by `measure`, not for data sheets. */
bool cli_runs_here(const struct hardware *hardware);

#endif
