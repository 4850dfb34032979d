/* Machines on which plans are run. */
#ifndef SPILLWAY_CLI_WAYS_CLI_RUNNABLE_H
#define SPILLWAY_CLI_WAYS_CLI_RUNNABLE_H

#include "models/hardware/hardware.h"

/* Returns true if devices are cores of a host or were found by `measure`. Other machines come from data sheets. */
bool cli_runs_here(const struct hardware *hardware);

#endif
