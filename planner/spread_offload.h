/* What a machine must have for a job that is spread and offloads. */
#ifndef SPILLWAY_PLANNER_SPREAD_OFFLOAD_H
#define SPILLWAY_PLANNER_SPREAD_OFFLOAD_H

#include "models/hardware.h"
#include "models/parallel_offload.h"

/*
 * Errors: STATUS_BAD_INPUT, naming job and machine, where it is not known how fast the host's processor is, where there
 * is no storage for what is to live there, or where the host is that of several nodes and a stage's ranks are not
 * evenly on all of them, so that its figures would be those of nodes that have nothing to do.
 */
MUST_CHECK enum status spread_offload_check(const struct hardware *hardware, const struct job *job, struct error *err);

#endif
