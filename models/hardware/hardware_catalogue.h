/* GPUs and nodes known by name; models/hardware/hardware_presets.c builds machines from them. */
#ifndef SPILLWAY_MODELS_HARDWARE_HARDWARE_CATALOGUE_H
#define SPILLWAY_MODELS_HARDWARE_HARDWARE_CATALOGUE_H

#include "models/hardware/hardware_build.h"

/* Return entry `index` in the order of `hardware list`; NULL past the end. */
const struct hardware_gpu *catalogue_gpu(uint32_t index);
const struct hardware_node *catalogue_node(uint32_t index);

#endif
