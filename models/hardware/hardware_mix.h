/* One machine from several: devices of different kinds, or nodes of them. Used by models/hardware/hardware_presets.c. */
#ifndef SPILLWAY_MODELS_HARDWARE_MIX_H
#define SPILLWAY_MODELS_HARDWARE_MIX_H

#include "models/hardware/hardware.h"

enum { HARDWARE_PARTS_MAX = 16 };

/*
 * Devices in the order of the parts, each behind the links that its part has, which are numbered on from part to
 * part; host memory, cores and their bandwidth are added up. Devices of two parts copy directly where `joined`, over
 * the outermost network of each, which all devices have then; else over host memory.
 *
 * parts   `count` machines of GPUs, as hardware_build() makes them; borrowed
 * *out is zeroed and released by the caller also after an error. Errors: STATUS_LIMIT, STATUS_NO_MEMORY.
 */
MUST_CHECK enum status hardware_mix(const struct hardware *parts, uint32_t count, const char *name, bool joined,
                                    struct hardware *out, struct error *err);

#endif
