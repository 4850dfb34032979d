/* Divides the devices of a plan among ranks. */
#ifndef SPILLWAY_EXEC_RANKS_RANK_PLACE_H
#define SPILLWAY_EXEC_RANKS_RANK_PLACE_H

#include "models/hardware/hardware.h"

/*
 * Returns the rank that has a device. A rank has the devices of a node, or of several consecutive nodes if there are
 * fewer ranks than nodes. The devices of a machine of one node are divided among the ranks in order, as evenly as
 * possible.
 */
uint32_t rank_of_device(const struct hardware *hardware, uint32_t ranks, uint32_t device);

/* Errors: STATUS_BAD_INPUT when a rank would have no devices. */
MUST_CHECK enum status rank_place_check(const struct hardware *hardware, uint32_t ranks, struct error *err);

#endif
