/* See machine.h. */
#include "sim/machine.h"

#include <inttypes.h>
#include <math.h>

#include "models/cost.h"

void sim_machine_links(const struct hardware *hardware, struct sim_link *links)
{
    for (uint32_t l = 0; l < hardware->link_count; l++)
        links[l] = (struct sim_link){.bytes_per_s = hardware->links[l].bandwidth.value,
                                     .duplex = hardware->links[l].duplex};
}

void sim_machine_paths(const struct hardware *hardware, const struct sim_interference *interference,
                       const struct sim_link *links, uint32_t flow_limit, struct sim_path *paths)
{
    for (uint32_t p = 0; p < hardware->device_count * 2; p++) {
        const struct hardware_device *device = &hardware->devices[p / 2];
        struct sim_path *path = &paths[p];
        path->hop_count = device->path_count;
        path->flow_limit = flow_limit;
        path->group = sim_interference_group(interference, p / 2);
        path->cap_bytes_per_s =
            fmin(cost_copy_bandwidth(hardware, p / 2, p % 2 == 0 ? COPY_H2D : COPY_D2H),
                 sim_interference_copy_cap(interference, p / 2));
        for (uint32_t h = 0; h < device->path_count; h++) {
            path->hops[h] = (struct sim_hop){.link = device->path[h], .direction = p % 2};
            path->cap_bytes_per_s =
                fmin(path->cap_bytes_per_s, links[device->path[h]].bytes_per_s);
        }
    }
}

void sim_machine_storage(const struct hardware *hardware, struct sim_link *links, struct sim_path *paths)
{
    for (uint32_t i = 0; i < hardware_storage_count(hardware); i++) {
        uint32_t link = hardware->link_count + i;
        links[link] = (struct sim_link){.bytes_per_s = hardware_storage_rate(hardware)};
        for (uint32_t p = 0; p < 2; p++)
            paths[(hardware->device_count + i) * 2 + p] = (struct sim_path){
                .hops = {{.link = link, .direction = p}},
                .hop_count = 1,
                .flow_limit = 1,
                .group = SIM_NO_GROUP,
                .cap_bytes_per_s =
                    cost_storage_bandwidth(hardware, p == 0 ? STORAGE_READ : STORAGE_WRITE)};
    }
}

static bool is_host_copy(const struct plan_op *op)
{
    return op->stream == STREAM_H2D || op->stream == STREAM_D2H;
}

void sim_machine_host_copies(const struct plan *plan, bool *copies)
{
    bool any = false;
    for (uint32_t d = 0; d < plan->hardware.device_count; d++) copies[d] = false;
    for (uint32_t o = 0; o < plan->op_count; o++) any |= is_host_copy(&plan->ops[o]);
    for (uint32_t i = 0; any && i < plan->instance_count; i++) {
        const struct plan_instance *instance = &plan->instances[i];
        const struct plan_unit *unit = &plan->units[instance->unit];
        const struct plan_gang *gang = instance->gang == PLAN_NONE ? NULL : &plan->gangs[instance->gang];
        bool some = false;
        for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
            some |= is_host_copy(&plan->ops[o]);
        if (!some) continue;
        if (!gang) copies[instance->device] = true;
        for (uint32_t k = 0; gang && k < plan_gang_size(gang); k++) copies[plan->gang_devices[gang->first + k]] = true;
    }
}

/* Away from the one device and towards the other. */
struct sim_path sim_machine_p2p_path(const struct hardware *hardware, const struct sim_interference *interference,
                                     const struct sim_link *links, uint32_t from, uint32_t to)
{
    const struct p2p_route route = hardware_p2p_route(hardware, from, to);
    struct sim_path path = {.hop_count = route.up_count + route.down_count,
                            .flow_limit = 1,
                            .group = sim_interference_group(interference, to),
                            .cap_bytes_per_s = fmin(cost_p2p_bandwidth(hardware, from, to),
                                                    sim_interference_copy_cap(interference, to))};
    for (uint32_t h = 0; h < path.hop_count; h++) {
        path.hops[h] = (struct sim_hop){.link = route.links[h], .direction = h < route.up_count ? 1 : 0};
        path.cap_bytes_per_s = fmin(path.cap_bytes_per_s, links[route.links[h]].bytes_per_s);
    }
    return path;
}

enum status sim_machine_suits(const struct plan *plan, const struct hardware *hardware, struct error *err)
{
    if (hardware == &plan->hardware) return STATUS_OK;
    if (hardware->device_count != plan->hardware.device_count)
        return error_set(err, STATUS_BAD_INPUT,
                         "machine '%s' has %" PRIu32 " devices, but the plan is for %" PRIu32,
                         hardware->name, hardware->device_count,
                         plan->hardware.device_count);
    if (hardware_has_storage(&plan->hardware) != hardware_has_storage(hardware))
        return error_set(err, STATUS_BAD_INPUT, "machine '%s' has %s storage, but the plan is for one %s",
                         hardware->name, hardware_has_storage(hardware) ? "a" : "no",
                         hardware_has_storage(&plan->hardware) ? "with" : "without");
    if (hardware_host_count(&plan->hardware) != hardware_host_count(hardware))
        return error_set(err, STATUS_BAD_INPUT, "machine '%s' has %" PRIu32 " nodes with a host of their own, but the plan is "
                         "for %" PRIu32, hardware->name, hardware_host_count(hardware), hardware_host_count(&plan->hardware));
    for (uint32_t d = 0; d < plan->hardware.device_count; d++) {
        if (hardware->devices[d].memory_bytes >= plan->hardware.devices[d].memory_bytes)
            continue; /* the plan fits what it was made for */
        uint64_t needed = plan_device_bytes(plan, d);
        if (needed > hardware->devices[d].memory_bytes)
            return error_set(err, STATUS_BAD_INPUT,
                             "device %" PRIu32 " of machine '%s' has %" PRIu64
                             " bytes of memory, but the plan uses %" PRIu64,
                             d, hardware->name, hardware->devices[d].memory_bytes,
                             needed);
    }
    return STATUS_OK;
}
