/*
 * Direct copies between two devices, taken into use only when one has been seen to work.
 *
 * A driver may offer them and then deliver other bytes: with an IOMMU that translates, or a switch that
 * sends what devices write to each other through the host's bridge, copies end without an error and
 * without their data. So before a run each pair of devices that its plan copies between is tried.
 */
#ifndef SPILLWAY_EXEC_DEVICE_P2P_H
#define SPILLWAY_EXEC_DEVICE_P2P_H

#include "exec/device/device.h"

/* How copies from one device to another go. */
enum p2p_way {
    P2P_DIRECT, /* what was copied arrived */
    P2P_STAGED  /* it did not: copies go through a buffer in host memory */
};

enum { P2P_WHY_BYTES = 160 };

/*
 * Make `to` ready for device_copy_p2p() from `from`, and copy patterns to see whether they arrive byte
 * for byte; where they do not, through host memory from now on, which is tried in the same way.
 *
 * to, from   open, with arenas that nobody uses yet: the first MiB of both is overwritten
 * why        P2P_STAGED: what was found instead, for people
 *
 * Errors: STATUS_DEVICE when a device is lost, does not answer, or even staged copies arrive changed;
 * STATUS_NO_MEMORY.
 */
MUST_CHECK enum status device_link(struct device *to, struct device *from, enum p2p_way *way,
                                   char why[P2P_WHY_BYTES], struct error *err);

#endif
