/* Collectives between processes, measured: an all-reduce over all ranks, and a message from rank 0 to rank 1. */
#ifndef SPILLWAY_EXEC_RANKS_RANK_MEASURE_H
#define SPILLWAY_EXEC_RANKS_RANK_MEASURE_H

#include "exec/ranks/rank_mesh.h"
#include "models/hardware/hardware.h"

/*
 * Called by all ranks with the same budget, also by those whose `machine` is NULL: rank 0 adds the rates to the only
 * device type of its machine. It decides for all when budget_s is over, after a pass over all sizes at least.
 * Afterwards the ranks have been left. Errors: STATUS_DEVICE when a rank fails; STATUS_INTERRUPTED on all ranks when
 * *stop of rank 0 is true.
 */
MUST_CHECK enum status rank_measure(struct ranks *ranks, double budget_s, const volatile bool *stop,
                                    struct hardware *machine, struct error *err);

#endif
