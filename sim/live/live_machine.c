/* Rates have no effect on timed copies, whose volume is their time multiplied by the rate. */
#include "sim/live/live.h"

#include <stdio.h>

#include "base/try.h"
#include "sim/engine/allocate.h"

static const double link_bytes_per_s = 1e9;

static struct sourced_value assumed(double value)
{
    return (struct sourced_value){
        .value = value, .kind = SOURCE_ASSUMED, .source = "an instance's own machine", .as_of = "2026-11"};
}

enum status sim_live_machine(const struct instance *in, struct hardware *out, struct error *err)
{
    enum status status = STATUS_OK;
    if (in->bridge_bytes_per_tick > 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "the instance's devices share a bridge of %llu bytes per tick, but nothing says how "
                         "fast their own links are: name a machine with both",
                         (unsigned long long)in->bridge_bytes_per_tick);
    if (in->device_count > HARDWARE_DEVICES_MAX)
        return error_set(err, STATUS_LIMIT, "too many devices (limit of a machine is %d)", HARDWARE_DEVICES_MAX);
    out->name = in->name ? in->name : "instance";
    TRY(arena_string(&out->arena, out->name, &out->name, err));
    out->backend = "cuda"; /* a back end without interference between devices */
    out->host_cores = 1;
    out->types = sim_allocate(&out->arena, in->class_count, sizeof *out->types, &status, err);
    out->devices = sim_allocate(&out->arena, in->device_count, sizeof *out->devices, &status, err);
    out->links = sim_allocate(&out->arena, in->device_count, sizeof *out->links, &status, err);
    if (status != STATUS_OK) return status;
    out->type_count = in->class_count;
    out->device_count = out->link_count = in->device_count;
    for (uint32_t c = 0; c < in->class_count; c++) {
        out->types[c] = (struct device_type){.memory_bytes = assumed((double)in->classes[c].memory)};
        TRY(arena_string(&out->arena, in->classes[c].name, &out->types[c].name, err));
    }
    for (uint32_t d = 0; d < in->device_count; d++) {
        char text[64];
        snprintf(text, sizeof text, "link%u", d);
        out->devices[d] = (struct hardware_device){.type = in->device_class[d],
                                                   .memory_bytes = in->classes[in->device_class[d]].memory,
                                                   .path = {d},
                                                   .path_count = 1};
        out->links[d] = (struct hardware_link){.bandwidth = assumed(link_bytes_per_s), .duplex = true};
        TRY(arena_string(&out->arena, text, &out->links[d].name, err));
    }
    return STATUS_OK;
}
