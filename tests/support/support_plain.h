/* A machine by its datasheet, without values fitted to measured runs: for closed forms. */
#ifndef SPILLWAY_TESTS_SUPPORT_SUPPORT_PLAIN_H
#define SPILLWAY_TESTS_SUPPORT_SUPPORT_PLAIN_H

#include "models/hardware/hardware.h"

static inline void support_plain(struct hardware *hardware)
{
    for (uint32_t t = 0; t < hardware->type_count; t++) {
        struct device_type *type = &hardware->types[t];
        type->kernel_model = (struct kernel_model){.multiprocessors = {.value = 0}};
        type->matmul_efficiency = hardware_default_matmul_efficiency;
        type->fp32_efficiency = (struct sourced_value){.value = 0};
        type->memory_efficiency = hardware_default_memory_efficiency;
        type->launch_latency.value = 5e-6;
        type->collective_latency.value = 0;
    }
}

#endif
