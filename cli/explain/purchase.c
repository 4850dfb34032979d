/*
 * The changed machine is a copy (models/hardware/machine_values.h). A link's bandwidth is also in measured copies,
 * which the cost model prefers: a device whose bottleneck is the link gets a type of its own with copies faster by the
 * same factor.
 */
#include "cli/explain/purchase.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "models/cost/cost.h"
#include "models/hardware/machine_values.h"
#include "planner/plan_flops.h"
#include "sim/engine/allocate.h"
#include "sim/sim.h"

const char *const explain_resource_names[EXPLAIN_RESOURCE_COUNT] = {"compute", "link", "host memory rate", "storage",
                                                                    "memory"};

/* --- improved machines --------------------------------------------------------------------------- */

/* Names differ only in digits, with one bandwidth; or one link. */
struct link_group {
    const struct hardware *hardware;
    uint32_t first;
    bool alone;
};

static bool same_but_digits(const char *a, const char *b)
{
    for (;;) {
        while (isdigit((unsigned char)*a)) a++;
        while (isdigit((unsigned char)*b)) b++;
        if (*a != *b) return false;
        if (!*a) return true;
        a++;
        b++;
    }
}

static bool in_group(const struct link_group *group, uint32_t link)
{
    const struct hardware_link *links = group->hardware->links;
    if (group->alone || link == group->first) return link == group->first;
    double difference = links[link].bandwidth.value - links[group->first].bandwidth.value;
    return !(difference > 0 || difference < 0) && same_but_digits(links[link].name, links[group->first].name);
}

/* Returns true if these links' bottleneck is in the group. */
static bool tightest(const struct link_group *group, const uint32_t *path, uint32_t count)
{
    double least = INFINITY, of_group = INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        double value = group->hardware->links[path[i]].bandwidth.value;
        least = fmin(least, value);
        if (in_group(group, path[i])) of_group = fmin(of_group, value);
    }
    return count > 0 && of_group <= least;
}

/* Multiplies by `factor`; for links, also the types whose copies they limit. */
struct better {
    const struct link_group *group; /* if it is a link */
    uint32_t resource;              /* enum explain_resource */
    double factor;
    bool *copies, *peers;           /* by type */
};

static double better_link(const struct better *better, const struct machine_place *place)
{
    switch (place->what) {
    case MACHINE_LINK: return in_group(better->group, place->index) ? better->factor : 1;
    case MACHINE_H2D:
    case MACHINE_D2H: return better->copies[place->index] ? 1 / better->factor : 1;
    case MACHINE_P2P: return better->peers[place->index] ? 1 / better->factor : 1;
    default: return 1;
    }
}

static double better_by(void *context, const struct machine_place *place)
{
    const struct better *better = context;
    if (better->resource == EXPLAIN_LINK) return better_link(better, place);
    bool storage = place->what == MACHINE_STORAGE_READ || place->what == MACHINE_STORAGE_WRITE ||
                   place->what == MACHINE_STORAGE_BOTH;
    bool moves = better->resource == EXPLAIN_HOST_RATE ? place->what == MACHINE_HOST_BANDWIDTH : storage;
    return moves ? better->factor : 1;
}

/* Gives devices whose measured copies the group limits a type of their own. */
static enum status split_types(const struct hardware *hardware, struct better *better, struct arena *arena,
                               struct hardware *out, struct error *err)
{
    enum status status = STATUS_OK;
    size_t most = (size_t)hardware->type_count + hardware->device_count;
    out->types = sim_allocate(arena, most, sizeof *out->types, &status, err);
    out->devices = sim_allocate(arena, hardware->device_count, sizeof *out->devices, &status, err);
    better->copies = sim_allocate(arena, most, sizeof *better->copies, &status, err);
    better->peers = sim_allocate(arena, most, sizeof *better->peers, &status, err);
    if (status != STATUS_OK) return status;
    memcpy(out->types, hardware->types, hardware->type_count * sizeof *out->types);
    memcpy(out->devices, hardware->devices, hardware->device_count * sizeof *out->devices);
    for (uint32_t d = 0; d < out->device_count; d++) {
        struct hardware_device *device = &out->devices[d];
        struct device_type type = out->types[device->type];
        bool host = tightest(better->group, device->path, device->path_count) && type.h2d_count + type.d2h_count > 0;
        bool peers = device->network_count > 0 && type.p2p_count > 0 &&
                     tightest(better->group, device->networks[0].path, device->networks[0].path_count);
        if (!host && !peers) continue;
        device->type = out->type_count++;
        out->types[device->type] = type;
        better->copies[device->type] = host;
        better->peers[device->type] = peers;
    }
    return STATUS_OK;
}

/* --- simulations --------------------------------------------------------------------------------- */

static enum status simulate(const struct plan *plan, const struct hardware *hardware, const double *slow, double *out,
                            struct error *err)
{
    struct sim_result result = {0};
    struct trace trace = {0};
    const struct sim_options options = {.hardware = hardware, .slow = slow};
    enum status status = sim_run(plan, &options, &result, &trace, err);
    if (status == STATUS_OK) *out = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    return status;
}

static void judge(struct explain_purchase *purchase, double more)
{
    double ratio = purchase->after_s > 0 ? purchase->before_s / purchase->after_s : 1;
    purchase->gain = ratio - 1;
    purchase->derivative = log(ratio) / log1p(more);
}

static enum status try_compute(const struct plan *plan, double more, struct arena *arena, struct explain_purchase *out,
                               struct error *err)
{
    enum status status = STATUS_OK;
    const struct hardware *hardware = &plan->hardware;
    double *slow = sim_allocate(arena, hardware->device_count, sizeof *slow, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t d = 0; d < hardware->device_count; d++)
        slow[d] = hardware->devices[d].type == out->first ? 1 / (1 + more) : 1;
    return simulate(plan, NULL, slow, &out->after_s, err);
}

static enum status try_one(const struct plan *plan, double more, struct arena *arena, struct explain_purchase *out,
                           struct error *err)
{
    struct hardware split = plan->hardware, moved = {0}; /* shares unchanged parts with the plan's machine; never
                                                            released */
    const struct link_group group = {.hardware = &plan->hardware, .first = out->first,
                                     .alone = plan->hardware.link_count <= EXPLAIN_LINKS_MAX};
    struct better better = {.group = &group, .resource = out->resource, .factor = 1 + more};
    if (out->resource == EXPLAIN_COMPUTE) return try_compute(plan, more, arena, out, err);
    if (out->resource == EXPLAIN_LINK) TRY(split_types(&plan->hardware, &better, arena, &split, err));
    enum status status = machine_values_move(&split, better_by, &better, &moved, err);
    if (!status) status = simulate(plan, &moved, NULL, &out->after_s, err);
    hardware_release(&moved);
    return status;
}

/* --- the list of resources ----------------------------------------------------------------------- */

static void list(struct explain_purchase *out, uint32_t *count, struct explain_purchase purchase)
{
    if (*count < EXPLAIN_PURCHASES_MAX) out[(*count)++] = purchase;
}

static enum status list_links(const struct hardware *hardware, struct arena *arena, struct explain_purchase *out,
                              uint32_t *count, struct error *err)
{
    bool alone = hardware->link_count <= EXPLAIN_LINKS_MAX;
    for (uint32_t l = 0; l < hardware->link_count; l++) {
        const struct link_group group = {.hardware = hardware, .first = l, .alone = alone};
        uint32_t members = 0, first = l;
        for (uint32_t k = 0; k < hardware->link_count; k++) {
            if (!in_group(&group, k)) continue;
            if (k < first) first = k;
            members++;
        }
        if (first < l) continue; /* listed with the first of its kind */
        struct explain_purchase purchase = {.resource = EXPLAIN_LINK, .first = l, .name = hardware->links[l].name,
                                            .value = hardware->links[l].bandwidth.value,
                                            .dimension = DIMENSION_BYTES_PER_S};
        char name[200];
        snprintf(name, sizeof name, "%s and %" PRIu32 " like it", hardware->links[l].name, members - 1);
        if (members > 1) TRY(arena_string(arena, name, &purchase.name, err));
        list(out, count, purchase);
    }
    return STATUS_OK;
}

static bool uses_stream(const struct plan *plan, uint32_t kind)
{
    for (uint32_t i = 0; i < plan->op_count; i++)
        if (plan->ops[i].stream == kind) return true;
    return false;
}

static enum status list_all(const struct plan *plan, struct arena *arena, struct explain_purchase *out, uint32_t *count,
                            struct error *err)
{
    const struct hardware *hardware = &plan->hardware;
    for (uint32_t t = 0; t < hardware->type_count; t++) {
        uint32_t d = 0;
        while (d < hardware->device_count && hardware->devices[d].type != t) d++;
        if (d < hardware->device_count)
            list(out, count, (struct explain_purchase){.resource = EXPLAIN_COMPUTE, .first = t,
                                                       .name = hardware->types[t].name,
                                                       .value = plan_peak_flops_per_s(plan, &hardware->types[t]) *
                                                                 cost_host_share(hardware, d),
                                                       .dimension = DIMENSION_FLOP_PER_S});
    }
    TRY(list_links(hardware, arena, out, count, err));
    /* host devices have their own profiles */
    if (hardware->host_bandwidth.value > 0 && strcmp(hardware->backend, "host") != 0 && uses_stream(plan, STREAM_CPU))
        list(out, count, (struct explain_purchase){.resource = EXPLAIN_HOST_RATE, .name = "host memory",
                                                   .value = hardware->host_bandwidth.value,
                                                   .dimension = DIMENSION_BYTES_PER_S});
    if (hardware_has_storage(hardware))
        list(out, count, (struct explain_purchase){.resource = EXPLAIN_STORAGE, .name = "storage",
                                                   .value = hardware->storage.read_rate.value,
                                                   .dimension = DIMENSION_BYTES_PER_S});
    return STATUS_OK;
}

static int by_gain(const void *a, const void *b)
{
    const struct explain_purchase *x = a, *y = b;
    if (x->gain > y->gain || x->gain < y->gain) return x->gain > y->gain ? -1 : 1;
    if (x->resource != y->resource) return x->resource < y->resource ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

void explain_purchases_sort(struct explain_purchase *purchases, uint32_t count)
{
    qsort(purchases, count, sizeof *purchases, by_gain);
}

enum status explain_purchases(const struct plan *plan, double more, struct arena *arena, struct explain_purchase *out,
                              uint32_t *count, struct error *err)
{
    double before_s = 0;
    *count = 0;
    TRY(list_all(plan, arena, out, count, err));
    TRY(simulate(plan, NULL, NULL, &before_s, err));
    for (uint32_t i = 0; i < *count; i++) {
        out[i].before_s = before_s;
        TRY(try_one(plan, more, arena, &out[i], err));
        judge(&out[i], more);
    }
    explain_purchases_sort(out, *count);
    return STATUS_OK;
}
