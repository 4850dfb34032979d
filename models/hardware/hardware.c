/*
 * A machine is built once and then changed by the command line. Arrays that grow are allocated again; the old ones
 * stay until the machine is released.
 *
 * hardware_check()'s most useful rule: a measured rate above 105 % of a peak means that one of them is wrong (public
 * tables often list sparse rates as dense ones).
 */
#include "models/hardware/hardware.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "models/hardware/collective_rate.h"
#include "models/hardware/hardware_dilate.h"
#include "models/hardware/software_stack.h"

/* Sources: "up to 0.5" of the peak is what large training reaches (llm-analysis, README); copies reach 0.8 to 0.9
 * of the memory bandwidth. */
const struct sourced_value hardware_default_matmul_efficiency = {
    .value = 0.5, .spread = 0.3, .kind = SOURCE_ASSUMED, .as_of = "2026-11",
    .source = "planning default: large training runs reach up to half of the peak"};
const struct sourced_value hardware_default_memory_efficiency = {
    .value = 0.8, .spread = 0.1, .kind = SOURCE_ASSUMED, .as_of = "2026-11",
    .source = "planning default: kernels bound by memory reach 0.8 to 0.9"};
const struct sourced_value hardware_staged_efficiency = {
    .value = 0.79, .spread = 0.1, .kind = SOURCE_MEASURED, .as_of = "2026-11",
    .source = "copies without peer access: 22.3 of 26 GB/s on PCIe 4 (NVIDIA/nccl issue 814), "
              "37 of 52 on PCIe 5 (issue 1264)"};

static_assert(ARRAY_COUNT(source_kind_names) == SOURCE_KIND_COUNT, "a name per kind");

void hardware_release(struct hardware *hardware)
{
    arena_release(&hardware->arena);
    *hardware = (struct hardware){0};
}

void hardware_note_p2p(struct hardware *hardware)
{
    bool met[HARDWARE_NETWORK_GROUPS_MAX + 1] = {false};
    hardware->p2p = false;
    for (uint32_t d = 0; d < hardware->device_count; d++)
        for (uint32_t n = 0; n < hardware->devices[d].network_count; n++) {
            bool *one = &met[hardware->devices[d].networks[n].group];
            hardware->p2p |= *one;
            *one = true;
        }
}

static bool has_link(const uint32_t *path, uint32_t count, uint32_t link)
{
    for (uint32_t i = 0; i < count; i++)
        if (path[i] == link) return true;
    return false;
}

/* Counts the links up to the last one that `other` also has. */
static uint32_t common_links(const struct hardware_network *path, const struct hardware_network *other)
{
    uint32_t common = path->path_count;
    while (common > 0 && !has_link(other->path, other->path_count, path->path[common - 1])) common--;
    return common;
}

/* Goes out to host memory and in again. */
static struct p2p_route staged_route(const struct hardware_device *from, const struct hardware_device *to)
{
    struct p2p_route route = {.up_count = from->path_count, .down_count = to->path_count, .staged = true};
    for (uint32_t i = 0; i < from->path_count; i++) route.links[i] = from->path[from->path_count - 1 - i];
    for (uint32_t i = 0; i < to->path_count; i++) route.links[from->path_count + i] = to->path[i];
    return route;
}

struct p2p_route hardware_p2p_route(const struct hardware *hardware, uint32_t from, uint32_t to)
{
    assert(hardware_reaches(hardware, from, to));
    if (!hardware_p2p_pair(hardware, from, to)) return staged_route(&hardware->devices[from], &hardware->devices[to]);
    const struct hardware_network *a = hardware_network_of(hardware, from, to);
    const struct hardware_network *b = hardware_network_of(hardware, to, from);
    struct p2p_route route = {.innermost = a == hardware->devices[from].networks &&
                                           b == hardware->devices[to].networks};
    for (uint32_t i = a->path_count, end = common_links(a, b); i > end; i--)
        route.links[route.up_count++] = a->path[i - 1];
    for (uint32_t i = common_links(b, a); i < b->path_count; i++)
        route.links[route.up_count + route.down_count++] = b->path[i];
    return route;
}

uint32_t hardware_route_crossings(const struct hardware *hardware, const struct p2p_route *route, uint32_t hop)
{
    uint32_t link_dir = hardware_route_link_dir(hardware, route, hop), count = 0;
    for (uint32_t h = 0; h < route->up_count + route->down_count; h++)
        count += hardware_route_link_dir(hardware, route, h) == link_dir;
    return count;
}

bool hardware_is_host(const struct hardware *hardware)
{
    return strcmp(hardware->backend, "host") == 0;
}

bool hardware_has_cpu(const struct hardware *hardware)
{
    if (hardware->dilation.source) return false; /* hardware_dilate.h: only parallel jobs step there */
    return hardware_is_host(hardware) || hardware->host_bandwidth.value > 0;
}

/* Above it predictions are less exact. */
static const double LOAD_NOTED = 0.05;

bool hardware_load_text(const struct hardware *hardware, char text[HARDWARE_LOAD_TEXT_BYTES])
{
    const double others = hardware->load.others.value, stolen = hardware->load.stolen.value;
    if (hardware_load_taken(hardware) < LOAD_NOTED) return false;
    if (others >= stolen)
        snprintf(text, HARDWARE_LOAD_TEXT_BYTES, "other programs used %.0f %% of its processors while it was measured",
                 100 * others);
    else
        snprintf(text, HARDWARE_LOAD_TEXT_BYTES,
                 "%.0f %% of its processors went to other machines while it was measured", 100 * stolen);
    return true;
}

double hardware_storage_rate(const struct hardware *hardware)
{
    const struct hardware_storage *storage = &hardware->storage;
    double of_all = storage->both_rate.value > 0 ? storage->both_rate.value
                                                 : fmax(storage->read_rate.value, storage->write_rate.value);
    return hardware_of_host(hardware, of_all);
}

uint32_t hardware_most_on_host(const struct hardware *hardware, uint32_t first, uint32_t count)
{
    uint32_t here[HARDWARE_DEVICES_MAX] = {0}, most = 0; /* devices may have any order */
    for (uint32_t d = first; d < first + count; d++) {
        uint32_t on_host = ++here[hardware->devices[d].host];
        if (on_host > most) most = on_host;
    }
    return most;
}

uint32_t hardware_hosts_in_use(const struct hardware *hardware)
{
    bool used[HARDWARE_DEVICES_MAX] = {false};
    uint32_t count = 0;
    for (uint32_t d = 0; d < hardware->device_count; d++) {
        bool *host = &used[hardware->devices[d].host];
        count += !*host;
        *host = true;
    }
    return count;
}

uint64_t hardware_least_memory(const struct hardware *hardware, uint32_t first, uint64_t count)
{
    uint64_t least = UINT64_MAX;
    for (uint64_t d = first; d < first + count; d++)
        if (hardware->devices[d].memory_bytes < least) least = hardware->devices[d].memory_bytes;
    return least;
}

const struct compute_profile *hardware_profile(const struct hardware *hardware, uint32_t device)
{
    assert(device <= hardware_cpu(hardware));
    const bool cpu = device == hardware_cpu(hardware);
    if (cpu && !hardware_is_host(hardware)) return NULL;
    const uint32_t wanted = cpu && !hardware->dilation.source ? hardware->host_cores : hardware->threads;
    const struct device_type *type =
        &hardware->types[cpu ? 0 : hardware->devices[device].type];
    const struct compute_profile *best = NULL;
    uint32_t best_distance = UINT32_MAX;
    for (uint32_t i = 0; i < type->profile_count; i++) {
        uint32_t threads = type->profiles[i].threads;
        uint32_t distance = threads > wanted ? threads - wanted : wanted - threads;
        if (best && distance >= best_distance) continue;
        best = &type->profiles[i];
        best_distance = distance;
    }
    return best;
}

/* --- what the command line changes ---------------------------------------------------------- */

static struct sourced_value stated(double value)
{
    return (struct sourced_value){.value = value, .kind = SOURCE_ASSUMED, .source = "command line",
                                  .as_of = "this run"};
}

static enum status set_device_count(struct hardware *hardware, uint32_t count, struct error *err)
{
    if (count > HARDWARE_DEVICES_MAX)
        return error_set(err, STATUS_LIMIT, "too many devices (limit is %d)", HARDWARE_DEVICES_MAX);
    if (count > hardware->device_count && !hardware_is_host(hardware))
        return error_set(err, STATUS_BAD_INPUT,
                         "machine '%s' has %" PRIu32 " device%s and not %" PRIu32
                         " (name several as '%" PRIu32 "x NAME')",
                         hardware->name, hardware->device_count, hardware->device_count == 1 ? "" : "s", count, count);
    if (count > hardware->device_count) {
        struct hardware_device *devices;
        TRY(ARENA_NEW(&hardware->arena, count, devices, err));
        for (uint32_t i = 0; i < count; i++)
            devices[i] = hardware->devices[i < hardware->device_count ? i : 0];
        hardware->devices = devices;
    }
    hardware->device_count = count;
    return STATUS_OK;
}

static enum status set_device_memory(struct hardware *hardware, uint64_t bytes, struct error *err)
{
    for (uint32_t i = 0; i < hardware->device_count; i++) {
        const struct device_type *type = &hardware->types[hardware->devices[i].type];
        char wanted[QUANTITY_TEXT_BYTES], usable[QUANTITY_TEXT_BYTES];
        if ((double)bytes > type->usable_bytes.value)
            return error_set(err, STATUS_BAD_INPUT,
                             "device memory %s is more than the %s usable on '%s'",
                             quantity_text((double)bytes, DIMENSION_BYTES, wanted),
                             quantity_text(type->usable_bytes.value, DIMENSION_BYTES, usable),
                             type->name);
    }
    for (uint32_t i = 0; i < hardware->device_count; i++) hardware->devices[i].memory_bytes = bytes;
    return STATUS_OK;
}

/* Returns true if a device before `device` ends in `link`. */
static bool taken(const struct hardware *hardware, uint32_t device, uint32_t link)
{
    for (uint32_t i = 0; i < device; i++) {
        const struct hardware_device *other = &hardware->devices[i];
        if (other->path[other->path_count - 1] == link) return true;
    }
    return false;
}

/* Gives the device a paced link; links[*count] is free for it. */
static enum status pace_device(struct hardware *hardware, uint32_t index,
                               struct hardware_link *links, uint32_t *count, double bytes_per_s,
                               struct error *err)
{
    struct hardware_device *device = &hardware->devices[index];
    uint32_t last = device->path[device->path_count - 1];
    if (links[last].paced && !taken(hardware, index, last)) {
        links[last].bandwidth = stated(bytes_per_s);
        return STATUS_OK;
    }
    if (links[last].paced) device->path_count--; /* copied from another device */
    if (device->path_count == HARDWARE_PATH_LINKS_MAX)
        return error_set(err, STATUS_LIMIT, "too many links on a path (limit is %d)",
                         HARDWARE_PATH_LINKS_MAX);
    char name[32];
    snprintf(name, sizeof name, "paced-%" PRIu32, *count);
    struct hardware_link link = {.bandwidth = stated(bytes_per_s), .latency = stated(0),
                                 .duplex = true, .paced = true};
    TRY(arena_string(&hardware->arena, name, &link.name, err));
    links[*count] = link;
    device->path[device->path_count++] = (*count)++;
    return STATUS_OK;
}

static enum status pace_links(struct hardware *hardware, double bytes_per_s, struct error *err)
{
    struct hardware_link *links;
    uint32_t room = hardware->link_count + hardware->device_count;
    if (room > HARDWARE_LINKS_MAX)
        return error_set(err, STATUS_LIMIT, "too many links (limit is %d)", HARDWARE_LINKS_MAX);
    TRY(ARENA_NEW(&hardware->arena, room, links, err));
    memcpy(links, hardware->links, hardware->link_count * sizeof *hardware->links);
    uint32_t count = hardware->link_count;
    for (uint32_t i = 0; i < hardware->device_count; i++)
        TRY(pace_device(hardware, i, links, &count, bytes_per_s, err));
    hardware->links = links;
    hardware->link_count = count;
    return STATUS_OK;
}

/* Returns true if only copies between devices cross this link. */
static bool only_p2p(const struct hardware *hardware, uint32_t link)
{
    bool crossed = false;
    for (uint32_t i = 0; i < hardware->device_count; i++) {
        const struct hardware_device *device = &hardware->devices[i];
        if (has_link(device->path, device->path_count, link)) return false;
        for (uint32_t n = 0; n < device->network_count; n++)
            crossed |= has_link(device->networks[n].path, device->networks[n].path_count, link);
    }
    return crossed;
}

/* Removes copies measured at the old rate. */
static void set_links(struct hardware *hardware, double bytes_per_s)
{
    for (uint32_t i = 0; i < hardware->type_count; i++)
        hardware->types[i].h2d_count = hardware->types[i].d2h_count = 0;
    const struct hardware_device *first = &hardware->devices[0];
    uint32_t last = first->path[first->path_count - 1];
    double factor = bytes_per_s / hardware->links[last].bandwidth.value;
    for (uint32_t i = 0; i < hardware->link_count; i++)
        if (!only_p2p(hardware, i))
            hardware->links[i].bandwidth = stated(hardware->links[i].bandwidth.value * factor);
    for (uint32_t i = 0; i < hardware->device_count; i++) {
        const struct hardware_device *device = &hardware->devices[i];
        hardware->links[device->path[device->path_count - 1]].bandwidth = stated(bytes_per_s);
    }
}

static void drop_p2p(struct hardware *hardware)
{
    for (uint32_t i = 0; i < hardware->device_count; i++) hardware->devices[i].network_count = 0;
}

static enum status set_p2p(struct hardware *hardware, double bytes_per_s, struct error *err)
{
    uint32_t count = hardware->link_count, room = count + hardware->device_count;
    if (room > HARDWARE_LINKS_MAX)
        return error_set(err, STATUS_LIMIT, "too many links (limit is %d)", HARDWARE_LINKS_MAX);
    struct hardware_link *links;
    TRY(ARENA_NEW(&hardware->arena, room, links, err));
    memcpy(links, hardware->links, count * sizeof *links);
    for (uint32_t i = 0; i < hardware->device_count; i++, count++) {
        char name[32];
        snprintf(name, sizeof name, "p2p-%" PRIu32, count);
        links[count] = (struct hardware_link){.bandwidth = stated(bytes_per_s), .latency = stated(0),
                                              .duplex = true, .paced = hardware_is_host(hardware)};
        TRY(arena_string(&hardware->arena, name, &links[count].name, err));
    }
    drop_p2p(hardware);
    for (uint32_t i = 0; i < hardware->device_count; i++) {
        struct hardware_network *network = hardware_join(&hardware->devices[i], 1);
        network->path[network->path_count++] = hardware->link_count + i;
    }
    /* measured over another link */
    for (uint32_t i = 0; i < hardware->type_count && !hardware_is_host(hardware); i++)
        hardware->types[i].p2p_count = hardware->types[i].ring_count = hardware->types[i].collective_count = 0;
    hardware->links = links;
    hardware->link_count = count;
    return STATUS_OK;
}

/* Returns true if no other copy crosses the network that joins nodes. */
static bool joins_nodes(const struct hardware *hardware, uint32_t link)
{
    if (!only_p2p(hardware, link)) return false;
    for (uint32_t i = 0; i < hardware->device_count; i++) {
        const struct hardware_device *device = &hardware->devices[i];
        for (uint32_t n = 0; n + 1 < device->network_count; n++)
            if (has_link(device->networks[n].path, device->networks[n].path_count, link)) return false;
    }
    return true;
}

/* Returns true if the group has devices at another host bridge. */
static bool spans_nodes(const struct hardware *hardware, const struct hardware_device *device, uint32_t group)
{
    for (uint32_t i = 0; i < hardware->device_count; i++) {
        const struct hardware_device *other = &hardware->devices[i];
        for (uint32_t n = 0; n < other->network_count; n++)
            if (other->networks[n].group == group && other->path[0] != device->path[0]) return true;
    }
    return false;
}

/* Finds its link nearest to the device; false when there is none. */
static bool find_nic(const struct hardware *hardware, const struct hardware_device *device, uint32_t *out)
{
    if (device->network_count == 0) return false;
    const struct hardware_network *network = &device->networks[device->network_count - 1];
    if (!spans_nodes(hardware, device, network->group)) return false;
    for (uint32_t i = network->path_count; i-- > 0;)
        if (joins_nodes(hardware, network->path[i])) {
            *out = network->path[i];
            return true;
        }
    return false;
}

static enum status set_nics(struct hardware *hardware, double bytes_per_s, struct error *err)
{
    uint32_t nic;
    if (!find_nic(hardware, &hardware->devices[0], &nic))
        return error_set(err, STATUS_BAD_INPUT, "machine '%s' has no nodes that NICs join", hardware->name);
    double factor = bytes_per_s / hardware->links[nic].bandwidth.value;
    for (uint32_t i = 0; i < hardware->link_count; i++)
        if (joins_nodes(hardware, i))
            hardware->links[i].bandwidth = stated(hardware->links[i].bandwidth.value * factor);
    for (uint32_t d = 0; d < hardware->device_count; d++)
        if (find_nic(hardware, &hardware->devices[d], &nic)) hardware->links[nic].bandwidth = stated(bytes_per_s);
    return STATUS_OK;
}

static enum status set_threads(struct hardware *hardware, uint32_t threads, struct error *err)
{
    if (!hardware_is_host(hardware))
        return error_set(err, STATUS_BAD_INPUT,
                         "only host machines have threads, and '%s' has back end '%s'",
                         hardware->name, hardware->backend);
    if (threads > hardware->host_cores)
        return error_set(err, STATUS_BAD_INPUT,
                         "%" PRIu32 " threads are more than the %" PRIu32 " cores of '%s'",
                         threads, hardware->host_cores, hardware->name);
    hardware->threads = threads;
    return STATUS_OK;
}

static enum status set_storage(struct hardware *hardware, uint64_t bytes, double bytes_per_s,
                               struct error *err)
{
    struct hardware_storage *storage = &hardware->storage;
    if (!hardware_has_storage(hardware) && (bytes == 0 || bytes_per_s <= 0))
        return error_set(err, STATUS_BAD_INPUT,
                         "machine '%s' has no storage: a new one needs both a size and a rate",
                         hardware->name);
    if (bytes > 0) storage->capacity_bytes = stated((double)bytes);
    if (bytes_per_s <= 0) return STATUS_OK;
    storage->read_rate = storage->write_rate = stated(bytes_per_s);
    storage->both_rate = (struct sourced_value){0};
    return STATUS_OK;
}

/* Holds for all precisions; removes a lower sustained limit. */
static void set_matmul_efficiency(struct device_type *type, double share)
{
    type->matmul_efficiency = stated(share);
    type->fp32_efficiency = (struct sourced_value){0};
    if (type->kernel_model.matmul_sustained.value < share)
        type->kernel_model.matmul_sustained = (struct sourced_value){0};
}

static void drop_tf32(struct device_type *type)
{
    if (!(type->peak_tf32.value > 0)) return;
    type->peak_tf32 = (struct sourced_value){0};
    if (type->fp32_efficiency.value > 0) return;
    type->fp32_efficiency =
        type->matmul_efficiency.value > 0 ? type->matmul_efficiency : hardware_default_matmul_efficiency;
}

enum status hardware_adjust(struct hardware *hardware, const struct hardware_options *options,
                            struct error *err)
{
    assert(hardware->device_count > 0);
    if (options->device_count > 0) TRY(set_device_count(hardware, options->device_count, err));
    if (options->device_memory_bytes > 0)
        TRY(set_device_memory(hardware, options->device_memory_bytes, err));
    if (options->link_bytes_per_s > 0 && hardware_is_host(hardware))
        TRY(pace_links(hardware, options->link_bytes_per_s, err));
    else if (options->link_bytes_per_s > 0)
        set_links(hardware, options->link_bytes_per_s);
    if (options->nic_bytes_per_s > 0) TRY(set_nics(hardware, options->nic_bytes_per_s, err));
    if (options->no_p2p || (options->link_bytes_per_s > 0 && hardware_is_host(hardware))) drop_p2p(hardware);
    if (options->p2p_bytes_per_s > 0 && !options->no_p2p)
        TRY(set_p2p(hardware, options->p2p_bytes_per_s, err));
    hardware_note_p2p(hardware);
    if (options->host_memory_bytes > 0)
        hardware->host_bytes = stated((double)options->host_memory_bytes);
    if (options->storage_bytes > 0 || options->storage_bytes_per_s > 0)
        TRY(set_storage(hardware, options->storage_bytes, options->storage_bytes_per_s, err));
    for (uint32_t t = 0; t < hardware->type_count && options->matmul_efficiency > 0; t++)
        set_matmul_efficiency(&hardware->types[t], options->matmul_efficiency);
    for (uint32_t t = 0; t < hardware->type_count && options->no_tf32; t++) drop_tf32(&hardware->types[t]);
    if (options->stack > 0) software_stack_apply(hardware, (enum hardware_stack)(options->stack - 1));
    if (options->dilation > 0) return hardware_dilate(hardware, options->dilation, err);
    if (options->threads > 0) return set_threads(hardware, options->threads, err);
    if (hardware_is_host(hardware) && !hardware->dilation.source &&
        (options->device_count > 0 || hardware->threads == 0)) {
        uint32_t share = hardware->host_cores / hardware->device_count;
        hardware->threads = share > 0 ? share : 1;
    }
    return STATUS_OK;
}

/* --- physical sense ------------------------------------------------------------------------- */

static const double peak_tolerance = 1.05; /* clocks boost; peaks are measured too */

static enum status check_positive(const char *what, const char *of, double value,
                                  struct error *err)
{
    if (isfinite(value) && value > 0) return STATUS_OK;
    return error_set(err, STATUS_CHECK, "%s of '%s' is %g (expected more than 0)", what, of, value);
}

/* Checks a ratio; 0 means not stated. */
static enum status check_ratio(const char *what, const char *of, double value, struct error *err)
{
    if (value >= 0 && value <= 1) return STATUS_OK;
    return error_set(err, STATUS_CHECK, "%s of '%s' is %g (expected 0 to 1)", what, of, value);
}

static double best_peak(const struct device_type *type)
{
    return fmax(type->peak_fp32.value, fmax(type->peak_tf32.value, type->peak_bf16.value));
}

static enum status check_points(const struct device_type *type, uint32_t kernel,
                                const struct kernel_rate *rate, struct error *err)
{
    for (uint32_t i = 0; i < rate->point_count; i++) {
        const struct rate_point *p = &rate->points[i];
        TRY(check_positive(kernel_names[kernel], type->name, p->seconds, err));
        struct work_item item = {kernel, 1, p->m, p->n, p->k};
        double flops_per_s = work_item_flops(&item) / p->seconds;
        char found[QUANTITY_TEXT_BYTES], peak[QUANTITY_TEXT_BYTES];
        if (flops_per_s > peak_tolerance * best_peak(type))
            return error_set(err, STATUS_CHECK,
                             "%s of '%s' at %" PRIu64 " x %" PRIu64 " x %" PRIu64
                             " runs at %s, above the peak of %s",
                             kernel_names[kernel], type->name, p->m, p->n, p->k,
                             quantity_text(flops_per_s, DIMENSION_FLOP_PER_S, found),
                             quantity_text(best_peak(type), DIMENSION_FLOP_PER_S, peak));
    }
    return STATUS_OK;
}

static enum status check_type(const struct device_type *type, struct error *err)
{
    TRY(check_positive("memory", type->name, type->memory_bytes.value, err));
    TRY(check_positive("usable memory", type->name, type->usable_bytes.value, err));
    TRY(check_positive("peak_fp32", type->name, type->peak_fp32.value, err));
    TRY(check_positive("memory_bandwidth", type->name, type->memory_bandwidth.value, err));
    TRY(check_ratio("matmul_efficiency", type->name, type->matmul_efficiency.value, err));
    TRY(check_ratio("fp32_efficiency", type->name, type->fp32_efficiency.value, err));
    TRY(check_ratio("memory_efficiency", type->name, type->memory_efficiency.value, err));
    char usable[QUANTITY_TEXT_BYTES], nominal[QUANTITY_TEXT_BYTES];
    if (type->usable_bytes.value > type->memory_bytes.value)
        return error_set(err, STATUS_CHECK, "'%s' has %s of usable memory but only %s in total",
                         type->name,
                         quantity_text(type->usable_bytes.value, DIMENSION_BYTES, usable),
                         quantity_text(type->memory_bytes.value, DIMENSION_BYTES, nominal));
    for (uint32_t i = 0; i < type->profile_count; i++)
        for (uint32_t kernel = 0; kernel < KERNEL_COUNT; kernel++)
            TRY(check_points(type, kernel, &type->profiles[i].kernels[kernel], err));
    for (uint32_t i = 0; i < type->h2d_count; i++)
        TRY(check_positive("h2d", type->name, type->h2d[i].seconds, err));
    for (uint32_t i = 0; i < type->d2h_count; i++)
        TRY(check_positive("d2h", type->name, type->d2h[i].seconds, err));
    for (uint32_t i = 0; i < type->p2p_count; i++)
        TRY(check_positive("p2p", type->name, type->p2p[i].seconds, err));
    for (uint32_t i = 0; i < type->ring_count; i++)
        TRY(check_positive("ring", type->name, type->ring[i].seconds, err));
    for (uint32_t i = 0; i < type->collective_count; i++)
        for (uint32_t k = 0; k < type->collectives[i].point_count; k++)
            TRY(check_positive("collectives", type->name, type->collectives[i].points[k].seconds, err));
    return STATUS_OK;
}

static enum status check_device(const struct hardware *hardware, uint32_t index, struct error *err)
{
    const struct hardware_device *device = &hardware->devices[index];
    if (device->type >= hardware->type_count)
        return error_set(err, STATUS_CHECK, "device %" PRIu32 " has no type", index);
    const struct device_type *type = &hardware->types[device->type];
    if (device->path_count == 0 || device->path_count > HARDWARE_PATH_LINKS_MAX)
        return error_set(err, STATUS_CHECK,
                         "device %" PRIu32 " has %" PRIu32 " links to the host (expected 1 to %d)",
                         index, device->path_count, HARDWARE_PATH_LINKS_MAX);
    for (uint32_t i = 0; i < device->path_count; i++)
        if (device->path[i] >= hardware->link_count)
            return error_set(err, STATUS_CHECK, "device %" PRIu32 " has an unknown link", index);
    for (uint32_t n = 0; n < device->network_count; n++)
        for (uint32_t i = 0; i < device->networks[n].path_count; i++)
            if (device->networks[n].path[i] >= hardware->link_count)
                return error_set(err, STATUS_CHECK, "device %" PRIu32 " has an unknown link", index);
    char found[QUANTITY_TEXT_BYTES], usable[QUANTITY_TEXT_BYTES];
    if (device->memory_bytes > 0 && (double)device->memory_bytes <= type->usable_bytes.value)
        return STATUS_OK;
    return error_set(err, STATUS_CHECK,
                     "device %" PRIu32 " offers %s of memory (expected more than 0, at most the %s "
                     "usable on '%s')",
                     index, quantity_text((double)device->memory_bytes, DIMENSION_BYTES, found),
                     quantity_text(type->usable_bytes.value, DIMENSION_BYTES, usable), type->name);
}

/* Checks that devices of one group are in the same groups further out. */
static enum status check_networks(const struct hardware *hardware, struct error *err)
{
    uint32_t first_of[HARDWARE_NETWORK_GROUPS_MAX + 1], place[HARDWARE_NETWORK_GROUPS_MAX + 1];
    for (uint32_t g = 0; g <= HARDWARE_NETWORK_GROUPS_MAX; g++) first_of[g] = UINT32_MAX;
    for (uint32_t d = 0; d < hardware->device_count; d++) {
        const struct hardware_device *device = &hardware->devices[d];
        for (uint32_t n = 0; n < device->network_count; n++) {
            uint32_t group = device->networks[n].group, outer = 0, expected = 0;
            if (first_of[group] == UINT32_MAX) {
                first_of[group] = d;
                place[group] = n;
            }
            const struct hardware_device *first = &hardware->devices[first_of[group]];
            uint32_t at = place[group] + 1;
            if (n + 1 < device->network_count) outer = device->networks[n + 1].group;
            if (at < first->network_count) expected = first->networks[at].group;
            if (outer == expected) continue;
            return error_set(err, STATUS_CHECK,
                             "devices %" PRIu32 " and %" PRIu32 " share network %" PRIu32
                             ", but differ in the next network: %" PRIu32 " and %" PRIu32
                             " (0: none)",
                             first_of[group], d, group, expected, outer);
        }
    }
    return STATUS_OK;
}

/* Checks that both at once do not exceed the sum of both rates. */
static enum status check_storage(const struct hardware *hardware, struct error *err)
{
    const struct hardware_storage *storage = &hardware->storage;
    if (!hardware_has_storage(hardware)) return STATUS_OK;
    TRY(check_positive("storage capacity", hardware->name, storage->capacity_bytes.value, err));
    TRY(check_positive("storage read rate", hardware->name, storage->read_rate.value, err));
    TRY(check_positive("storage write rate", hardware->name, storage->write_rate.value, err));
    double most = storage->read_rate.value + storage->write_rate.value;
    if (storage->both_rate.value > peak_tolerance * most)
        return error_set(err, STATUS_CHECK,
                         "the storage of '%s' reads and writes %g bytes a second at the same time, "
                         "more than the sum of both rates, %g",
                         hardware->name, storage->both_rate.value, most);
    if (isfinite(storage->latency.value) && storage->latency.value >= 0) return STATUS_OK;
    return error_set(err, STATUS_CHECK, "storage latency of '%s' is %g (expected at least 0)",
                     hardware->name, storage->latency.value);
}

enum status hardware_check(const struct hardware *hardware, struct error *err)
{
    if (hardware->device_count == 0)
        return error_set(err, STATUS_CHECK, "machine '%s' has no device", hardware->name);
    TRY(check_positive("host memory", hardware->name, hardware->host_bytes.value, err));
    TRY(check_positive("host cores", hardware->name, hardware->host_cores, err));
    for (uint32_t i = 0; i < hardware->link_count; i++) {
        const struct hardware_link *link = &hardware->links[i];
        TRY(check_positive("bandwidth", link->name, link->bandwidth.value, err));
        if (!isfinite(link->latency.value) || link->latency.value < 0)
            return error_set(err, STATUS_CHECK, "latency of '%s' is %g (expected at least 0)",
                             link->name, link->latency.value);
    }
    for (uint32_t i = 0; i < hardware->type_count; i++)
        TRY(check_type(&hardware->types[i], err));
    for (uint32_t i = 0; i < hardware->device_count; i++) TRY(check_device(hardware, i, err));
    TRY(check_networks(hardware, err));
    return check_storage(hardware, err);
}
