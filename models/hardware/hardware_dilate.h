/*
 * Dilation: host devices that are a number of times slower than they could be, and sleep for the rest of the time. A
 * few cores then stand for many devices that compute at the same time (exec/device/stretch.h).
 */
#ifndef SPILLWAY_MODELS_HARDWARE_HARDWARE_DILATE_H
#define SPILLWAY_MODELS_HARDWARE_HARDWARE_DILATE_H

#include "models/hardware/hardware.h"

/*
 * Makes the host devices `factor` times slower, each with one thread. Links keep their rates. The host's processor,
 * which updates the offloaded states of parallel jobs, has one thread too, and is as slow; other jobs have no use for
 * it (hardware_has_cpu()). Devices that compute at the same time slow each other down less by the same factor, because
 * they meet on the cores that much more rarely.
 *
 * Errors: STATUS_BAD_INPUT for other machines, for a second dilation, and for profiles without times of one thread.
 */
MUST_CHECK enum status hardware_dilate(struct hardware *hardware, double factor, struct error *err);

/* Returns the factor; 1 without dilation. */
static inline double hardware_dilation(const struct hardware *hardware)
{
    return hardware->dilation.source ? hardware->dilation.value : 1;
}

#endif
