/* Links and devices of hardware files, for models/hardware/hardware_io.c. */
#ifndef SPILLWAY_MODELS_HARDWARE_HARDWARE_TOPOLOGY_H
#define SPILLWAY_MODELS_HARDWARE_HARDWARE_TOPOLOGY_H

#include "base/json/json_out.h"
#include "models/hardware/hardware.h"

/* Reads links and devices; out->types is already filled. */
MUST_CHECK enum status topology_read(struct json_object *object, struct hardware *out, struct error *err);

void topology_write(const struct hardware *hardware, struct json_out *out);

#endif
