/* The devices of a run, before its first step. */
#ifndef SPILLWAY_EXEC_RUN_RUN_DEVICES_H
#define SPILLWAY_EXEC_RUN_RUN_DEVICES_H

#include "exec/state/run_state.h"

/* Pins host memory, whose copies overlap with all other work; a run works without (device_cuda.c). */
void run_devices_pin(struct run *run);

/* Opens the plan's devices and the host's processor, and links devices that copy from each other. */
MUST_CHECK enum status run_devices_open(struct run *run, struct error *err);

#endif
