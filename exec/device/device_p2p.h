/*
 * Direct copies between two devices, used only after a test has shown that they work.
 *
 * A driver may offer direct copies that deliver wrong bytes: with an IOMMU that translates, or a
 * switch that routes writes between devices through the host's bridge, copies end without an error
 * and without their data. Before a run, each pair of devices that the plan copies between is
 * therefore tested.
 */
#ifndef SPILLWAY_EXEC_DEVICE_DEVICE_P2P_H
#define SPILLWAY_EXEC_DEVICE_DEVICE_P2P_H

#include "exec/device/device.h"

/* The route of copies from one device to another. */
enum p2p_way {
    P2P_DIRECT, /* the test's data arrived */
    P2P_STAGED  /* the data did not arrive: copies go through a buffer in host memory */
};

enum { P2P_WHY_BYTES = 160 };

/*
 * Prepares device_copy_p2p() from `from` to `to` and copies test patterns. If they do not arrive
 * byte for byte, copies go through host memory from now on, which is tested the same way.
 *
 * to, from   open devices with unused arenas: the first MiB of both is overwritten
 *   why        for P2P_STAGED: the observed fault, for people
 *
 * Errors: STATUS_DEVICE when a device is lost, does not answer, or even staged copies arrive
 * changed; STATUS_NO_MEMORY.
 */
MUST_CHECK enum status device_link(struct device *to, struct device *from, enum p2p_way *way,
                                   char why[P2P_WHY_BYTES], struct error *err);

#endif
