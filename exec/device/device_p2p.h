/*
 * Direct copies between two devices, used only after a test has shown that they work.
 *
 * A driver may offer direct copies that deliver wrong bytes, for example with an IOMMU that
 * translates. Each pair of devices that the plan copies between is therefore tested before a run.
 */
#ifndef SPILLWAY_EXEC_DEVICE_DEVICE_P2P_H
#define SPILLWAY_EXEC_DEVICE_DEVICE_P2P_H

#include "exec/device/device.h"

enum p2p_way {
    P2P_DIRECT, /* the test's data arrived */
    P2P_STAGED  /* it did not: copies go through host memory */
};

enum { P2P_WHY_BYTES = 160 };

/*
 * Prepares device_copy_p2p() and copies test patterns. If they do not arrive, copies go through
 * host memory, which is tested the same way.
 *
 * to, from   open devices with unused arenas: the first MiB of both is overwritten
 *   why        for P2P_STAGED: the observed fault, for people
 *
 * Errors: STATUS_DEVICE when a device is lost, does not answer, or even staged copies arrive
 * changed.
 */
MUST_CHECK enum status device_link(struct device *to, struct device *from, enum p2p_way *way,
                                   char why[P2P_WHY_BYTES], struct error *err);

#endif
