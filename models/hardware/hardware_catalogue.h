/* GPUs and nodes known by name. */
#ifndef SPILLWAY_MODELS_HARDWARE_HARDWARE_CATALOGUE_H
#define SPILLWAY_MODELS_HARDWARE_HARDWARE_CATALOGUE_H

#include "models/hardware/hardware_build.h"

/* Return NULL past the end. The order is the one of `hardware list`. */
const struct hardware_gpu *catalogue_gpu(uint32_t index);
const struct hardware_node *catalogue_node(uint32_t index);

#endif
