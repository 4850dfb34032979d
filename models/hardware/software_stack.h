/*
 * Software stacks: what software adds to the times of a machine, apart from the machine's own values.
 *
 * The values of "megatron-core" belong to no device: they replace those of every device type with a kernel model
 * (models/cost/kernel_model.h). The values of "frameworks" were fitted device by device; a device type with a kernel
 * model and no such values gets the A100's. Device types without kernel model have the same times with every stack.
 */
#ifndef SPILLWAY_MODELS_HARDWARE_SOFTWARE_STACK_H
#define SPILLWAY_MODELS_HARDWARE_SOFTWARE_STACK_H

#include "models/hardware/hardware.h"

/* Returns true for software of published runs: states are on the devices from the start, hosts dispatch kernels, and
 * the executor does not carry out jobs. */
static inline bool software_stack_is_published(uint32_t stack)
{
    return stack != STACK_SPILLWAY;
}

/* Sets the machine's stack, and the stack's values in its device types. */
void software_stack_apply(struct hardware *hardware, enum hardware_stack stack);

#endif
