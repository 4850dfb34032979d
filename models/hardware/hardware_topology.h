/* Links and devices of hardware files: the graph of a machine. Used by models/hardware/hardware_io.c alone. */
#ifndef SPILLWAY_MODELS_HARDWARE_TOPOLOGY_H
#define SPILLWAY_MODELS_HARDWARE_TOPOLOGY_H

#include "base/json/json_out.h"
#include "models/hardware/hardware.h"

/* The keys "links" and "devices"; out->types are there already. */
MUST_CHECK enum status topology_take(struct json_object *object, struct hardware *out, struct error *err);

void topology_write(const struct hardware *hardware, struct json_out *out);

#endif
