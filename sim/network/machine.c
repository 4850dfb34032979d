#include "sim/network/machine.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "models/cost/cost.h"
#include "sim/engine/allocate.h"

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
    for (uint32_t i = 0; any && i < plan->task_count; i++) {
        const struct plan_task *task = &plan->tasks[i];
        const struct plan_unit *unit = &plan->units[task->unit];
        const struct plan_gang *gang = task->gang == PLAN_NONE ? NULL : &plan->gangs[task->gang];
        bool some = false;
        for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
            some |= is_host_copy(&plan->ops[o]);
        if (!some) continue;
        if (!gang) copies[task->device] = true;
        for (uint32_t k = 0; gang && k < plan_gang_size(gang); k++) copies[plan->gang_devices[gang->first + k]] = true;
    }
}

static int compare_hops(const void *left, const void *right)
{
    const struct sim_crossing *a = left, *b = right;
    if (a->hop.link != b->hop.link) return a->hop.link < b->hop.link ? -1 : 1;
    return a->hop.direction < b->hop.direction ? -1 : a->hop.direction > b->hop.direction;
}

/* Sets crossings of a staged copy that uses a simplex link out and in again, with weight 2: ascending link directions
 * without duplicates. */
static enum status cross_twice(struct arena *arena, const struct hardware *hardware, const struct p2p_route *route,
                               struct sim_path *path, struct error *err)
{
    enum status status = STATUS_OK;
    struct sim_crossing *crossings = sim_allocate(arena, path->hop_count, sizeof *crossings, &status, err);
    uint32_t count = 0;
    if (status != STATUS_OK) return status;
    for (uint32_t h = 0; h < path->hop_count; h++) {
        uint32_t link_dir = hardware_route_link_dir(hardware, route, h), before = 0;
        while (before < h && hardware_route_link_dir(hardware, route, before) != link_dir) before++;
        if (before < h) continue;
        crossings[count++] =
            (struct sim_crossing){{link_dir / 2, link_dir % 2}, hardware_route_crossings(hardware, route, h)};
    }
    qsort(crossings, count, sizeof *crossings, compare_hops);
    path->crossings = crossings;
    path->hop_count = count;
    return STATUS_OK;
}

enum status sim_machine_p2p_path(struct arena *arena, const struct hardware *hardware,
                                 const struct sim_interference *interference, const struct sim_link *links,
                                 uint32_t from, uint32_t to, uint32_t own_group, struct sim_path *out,
                                 struct error *err)
{
    const struct p2p_route route = hardware_p2p_route(hardware, from, to);
    bool twice = false;
    *out = (struct sim_path){.hop_count = route.up_count + route.down_count,
                             .flow_limit = 1,
                             .group = sim_interference_group(interference, to),
                             .cap_bytes_per_s = fmin(cost_p2p_bandwidth(hardware, from, to),
                                                     sim_interference_copy_cap(interference, to))};
    for (uint32_t h = 0; h < out->hop_count; h++) {
        out->hops[h] = (struct sim_hop){.link = route.links[h], .direction = h < route.up_count ? 1 : 0};
        out->cap_bytes_per_s = fmin(out->cap_bytes_per_s, links[route.links[h]].bytes_per_s);
        twice |= hardware_route_crossings(hardware, &route, h) > 1;
    }
    if (!twice) return STATUS_OK;
    out->group = own_group;
    return cross_twice(arena, hardware, &route, out, err);
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
        return error_set(err, STATUS_BAD_INPUT,
                         "machine '%s' has %" PRIu32 " nodes with a host of their own, but the plan is "
                         "for %" PRIu32,
                         hardware->name, hardware_host_count(hardware), hardware_host_count(&plan->hardware));
    for (uint32_t d = 0; d < plan->hardware.device_count; d++) {
        if (hardware->devices[d].memory_bytes >= plan->hardware.devices[d].memory_bytes)
            continue; /* the plan was checked for its own machine */
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
