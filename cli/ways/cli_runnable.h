/* Machines on which plans are run. */
#ifndef SPILLWAY_CLI_RUNNABLE_H
#define SPILLWAY_CLI_RUNNABLE_H

#include "models/hardware/hardware.h"

/* True for devices that are a host's cores, and for what `measure` found. Other machines come from data sheets. */
bool cli_runs_here(const struct hardware *hardware);

#endif
