#include "models/hardware/hardware_dilate.h"

#include <inttypes.h>
#include <string.h>

#include "base/try.h"

static enum status check(const struct hardware *hardware, struct error *err)
{
    if (strcmp(hardware->backend, "host") != 0)
        return error_set(err, STATUS_BAD_INPUT, "only host devices can be dilated, and '%s' has back end '%s'",
                         hardware->name, hardware->backend);
    if (hardware->dilation.source)
        return error_set(err, STATUS_BAD_INPUT, "machine '%s' is dilated already, by %g", hardware->name,
                         hardware->dilation.value);
    for (uint32_t t = 0; t < hardware->type_count; t++) {
        const struct device_type *type = &hardware->types[t];
        bool known = type->profile_count == 0;
        for (uint32_t i = 0; i < type->profile_count; i++) known |= type->profiles[i].threads == 1;
        if (!known)
            return error_set(err, STATUS_BAD_INPUT,
                             "dilated devices have one thread, and '%s' has no times of one thread (measure again: "
                             "spillway measure)", hardware->name);
    }
    return STATUS_OK;
}

static enum status slow_kernels(struct arena *arena, struct compute_profile *profile, double factor, struct error *err)
{
    for (uint32_t k = 0; k < KERNEL_COUNT; k++) {
        struct kernel_rate *rate = &profile->kernels[k];
        struct rate_point *points;
        TRY(ARENA_NEW(arena, rate->point_count, points, err));
        for (uint32_t i = 0; i < rate->point_count; i++) {
            points[i] = rate->points[i];
            points[i].seconds *= factor;
        }
        if (rate->points) rate->points = points;
    }
    profile->interference.compute_by_compute.value /= factor;
    return STATUS_OK;
}

static enum status slow_type(struct arena *arena, struct device_type *type, double factor, struct error *err)
{
    struct compute_profile *profiles;
    TRY(ARENA_NEW(arena, type->profile_count, profiles, err));
    for (uint32_t i = 0; i < type->profile_count; i++) {
        profiles[i] = type->profiles[i];
        TRY(slow_kernels(arena, &profiles[i], factor, err));
    }
    if (type->profiles) type->profiles = profiles;
    type->peak_fp32.value /= factor;
    type->peak_tf32.value /= factor;
    type->peak_bf16.value /= factor;
    type->memory_bandwidth.value /= factor;
    type->launch_latency.value *= factor;
    return STATUS_OK;
}

enum status hardware_dilate(struct hardware *hardware, double factor, struct error *err)
{
    TRY(check(hardware, err));
    for (uint32_t t = 0; t < hardware->type_count; t++)
        TRY(slow_type(&hardware->arena, &hardware->types[t], factor, err));
    hardware->host_bandwidth.value /= factor;
    hardware->threads = 1;
    hardware->dilation = (struct sourced_value){
        .value = factor, .kind = SOURCE_ASSUMED, .source = "command line", .as_of = "this run"};
    return STATUS_OK;
}
