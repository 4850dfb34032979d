/* Merges machines of different kinds into one. */
#ifndef SPILLWAY_MODELS_HARDWARE_HARDWARE_MIX_H
#define SPILLWAY_MODELS_HARDWARE_HARDWARE_MIX_H

#include "models/hardware/hardware.h"

enum { HARDWARE_PARTS_MAX = 16 };

/*
 * Merges machines. Devices keep the order of the parts; links are renumbered. Host memory, cores and their bandwidth
 * are added up. With `joined`, devices of two parts copy directly over the outermost network of each, which every
 * device then has; otherwise through host memory.
 *
 * parts   `count` machines of GPUs, as hardware_build() makes them; borrowed The caller zeroes *out, and releases it
 * also after an error. Errors: STATUS_LIMIT.
 */
MUST_CHECK enum status hardware_mix(const struct hardware *parts, uint32_t count, const char *name, bool joined,
                                    struct hardware *out, struct error *err);

#endif
