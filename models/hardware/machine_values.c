/* One walk over a machine lists its values and, with factors, changes them. It copies tables of measured points before
 * it scales them. */
#include "models/hardware/machine_values.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/size.h"
#include "base/try.h"
#include "models/hardware/collective_rate.h"

const char *const machine_value_names[MACHINE_VALUES] = {
    [MACHINE_PEAK_FP32] = "peak_fp32",
    [MACHINE_PEAK_TF32] = "peak_tf32",
    [MACHINE_PEAK_BF16] = "peak_bf16",
    [MACHINE_MEMORY_BANDWIDTH] = "memory_bandwidth",
    [MACHINE_MATMUL_EFFICIENCY] = "matmul_efficiency",
    [MACHINE_FP32_EFFICIENCY] = "fp32_efficiency",
    [MACHINE_MEMORY_EFFICIENCY] = "memory_efficiency",
    [MACHINE_MATMUL_SUSTAINED] = "matmul_sustained",
    [MACHINE_MISALIGNED_RATE] = "misaligned_rate",
    [MACHINE_LAUNCH_LATENCY] = "launch_latency",
    [MACHINE_COLLECTIVE_LATENCY] = "collective_latency",
    [MACHINE_MATMUL_DEPTH] = "matmul_depth",
    [MACHINE_SCORE_BYTES_FORWARD] = "score_bytes_forward",
    [MACHINE_SCORE_BYTES_BACKWARD] = "score_bytes_backward",
    [MACHINE_LOSS_PASSES] = "loss_passes",
    [MACHINE_ELEMENTWISE_PASSES] = "elementwise_passes",
    [MACHINE_KERNEL_GAP] = "kernel_gap",
    [MACHINE_DISPATCH_LATENCY] = "dispatch_latency",
    [MACHINE_KERNELS] = "kernels",
    [MACHINE_COMPUTE_BY_COMPUTE] = "compute_by_compute",
    [MACHINE_COMPUTE_BY_COPY] = "compute_by_copy",
    [MACHINE_COPY_BY_COMPUTE] = "copy_by_compute",
    [MACHINE_COPY_BY_COPY] = "copy_by_copy",
    [MACHINE_H2D] = "h2d",
    [MACHINE_D2H] = "d2h",
    [MACHINE_P2P] = "p2p",
    [MACHINE_RING] = "ring",
    [MACHINE_LINK] = "link",
    [MACHINE_LINK_LATENCY] = "link_latency",
    [MACHINE_HOST_BANDWIDTH] = "host_bandwidth",
    [MACHINE_STORAGE_READ] = "storage_read",
    [MACHINE_STORAGE_WRITE] = "storage_write",
    [MACHINE_STORAGE_BOTH] = "storage_both",
    [MACHINE_STORAGE_LATENCY] = "storage_latency",
    [MACHINE_COMPUTE_BY_COLLECTIVE] = "compute_by_collective",
    [MACHINE_COLLECTIVES] = "collectives",
    [MACHINE_ATTENTION_EFFICIENCY] = "attention_efficiency",
};

bool machine_value_is_cost(enum machine_value what)
{
    return (what >= MACHINE_LAUNCH_LATENCY && what <= MACHINE_RING) || what == MACHINE_LINK_LATENCY ||
           what == MACHINE_STORAGE_LATENCY || what == MACHINE_COMPUTE_BY_COLLECTIVE || what == MACHINE_COLLECTIVES;
}

bool machine_value_is_share(enum machine_value what)
{
    return (what >= MACHINE_MATMUL_EFFICIENCY && what <= MACHINE_MISALIGNED_RATE) ||
           what == MACHINE_ATTENTION_EFFICIENCY;
}

struct machine_values_walk {
    machine_visitor *visit; /* NULL: move */
    machine_factor *factor;
    void *context;
    struct arena *arena;    /* of the changed machine */
};

/* --- places ----------------------------------------------------------------------------------- */

static void meet(const struct machine_values_walk *w, const struct machine_place *place, double *value)
{
    if (!(place->value > 0)) return;
    if (w->visit) w->visit(w->context, place);
    else *value = place->value * w->factor(w->context, place);
}

static void meet_sourced(const struct machine_values_walk *w, enum machine_value name, uint32_t index,
                         struct sourced_value *sourced)
{
    const struct machine_place place = {.what = name, .index = index, .value = sourced->value,
                                        .spread = sourced->spread,
                                        .kind = sourced->kind, .source = sourced->source};
    bool share = machine_value_is_share(name);
    meet(w, &place, &sourced->value);
    if (share && !w->visit && sourced->value > 1) sourced->value = 1;
}

static void meet_seconds(const struct machine_values_walk *w, enum machine_value name, uint32_t index, uint32_t kernel,
                         double spread, double *seconds)
{
    const struct machine_place place = {.what = name, .index = index, .kernel = kernel, .value = *seconds,
                                        .spread = spread, .kind = SOURCE_MEASURED};
    meet(w, &place, seconds);
}

/* Returns a writable copy when values are changed, else the table. */
static enum status own(const struct machine_values_walk *w, const void *table, size_t count, size_t size, void **out,
                       struct error *err)
{
    void *copied;
    *out = (void *)table;
    if (w->visit || count == 0) return STATUS_OK;
    TRY(arena_array(w->arena, count, size, &copied, err));
    *out = memcpy(copied, table, count * size);
    return STATUS_OK;
}

/* --- device types ------------------------------------------------------------------------------ */

static enum status meet_copies(const struct machine_values_walk *w, enum machine_value name, uint32_t index,
                               const struct copy_point **points, uint32_t count, struct error *err)
{
    void *table;
    TRY(own(w, *points, count, sizeof **points, &table, err));
    struct copy_point *owned = table;
    for (uint32_t p = 0; p < count; p++) meet_seconds(w, name, index, 0, owned[p].spread, &owned[p].seconds);
    if (!w->visit) *points = owned;
    return STATUS_OK;
}

static enum status meet_collectives(const struct machine_values_walk *w, uint32_t index, struct device_type *type,
                                    struct error *err)
{
    void *table;
    TRY(own(w, type->collectives, type->collective_count, sizeof *type->collectives, &table, err));
    struct collective_rate *owned = table;
    for (uint32_t c = 0; c < type->collective_count; c++) {
        struct collective_rate rate = owned[c];
        TRY(meet_copies(w, MACHINE_COLLECTIVES, index, &rate.points, rate.point_count, err));
        if (!w->visit) owned[c] = rate;
    }
    if (!w->visit) type->collectives = owned;
    return STATUS_OK;
}

static enum status meet_kernel(const struct machine_values_walk *w, uint32_t index, uint32_t kernel,
                               struct kernel_rate *rate, struct error *err)
{
    void *table;
    TRY(own(w, rate->points, rate->point_count, sizeof *rate->points, &table, err));
    struct rate_point *owned = table;
    for (uint32_t p = 0; p < rate->point_count; p++)
        meet_seconds(w, MACHINE_KERNELS, index, kernel, owned[p].spread, &owned[p].seconds);
    if (!w->visit) rate->points = owned;
    return STATUS_OK;
}

static enum status meet_profiles(const struct machine_values_walk *w, uint32_t index, struct device_type *type,
                                 struct error *err)
{
    void *table;
    TRY(own(w, type->profiles, type->profile_count, sizeof *type->profiles, &table, err));
    struct compute_profile *owned = table;
    for (uint32_t p = 0; p < type->profile_count; p++) {
        struct hardware_interference *interference = &owned[p].interference;
        for (uint32_t k = 0; k < KERNEL_COUNT; k++) TRY(meet_kernel(w, index, k, &owned[p].kernels[k], err));
        meet_sourced(w, MACHINE_COMPUTE_BY_COMPUTE, index, &interference->compute_by_compute);
        meet_sourced(w, MACHINE_COMPUTE_BY_COPY, index, &interference->compute_by_copy);
        meet_sourced(w, MACHINE_COMPUTE_BY_COLLECTIVE, index, &interference->compute_by_collective);
        meet_sourced(w, MACHINE_COPY_BY_COMPUTE, index, &interference->copy_by_compute);
        meet_sourced(w, MACHINE_COPY_BY_COPY, index, &interference->copy_by_copy);
    }
    if (!w->visit) type->profiles = owned;
    return STATUS_OK;
}

static enum status meet_type(const struct machine_values_walk *w, uint32_t index, struct device_type *type,
                             struct error *err)
{
    static const struct {
        enum machine_value name;
        size_t offset;
    } sourced_values[] = {
        {MACHINE_PEAK_FP32, offsetof(struct device_type, peak_fp32)},
        {MACHINE_PEAK_TF32, offsetof(struct device_type, peak_tf32)},
        {MACHINE_PEAK_BF16, offsetof(struct device_type, peak_bf16)},
        {MACHINE_MEMORY_BANDWIDTH, offsetof(struct device_type, memory_bandwidth)},
        {MACHINE_MATMUL_EFFICIENCY, offsetof(struct device_type, matmul_efficiency)},
        {MACHINE_FP32_EFFICIENCY, offsetof(struct device_type, fp32_efficiency)},
        {MACHINE_MEMORY_EFFICIENCY, offsetof(struct device_type, memory_efficiency)},
        {MACHINE_MATMUL_SUSTAINED, offsetof(struct device_type, kernel_model.matmul_sustained)},
        {MACHINE_MISALIGNED_RATE, offsetof(struct device_type, kernel_model.misaligned_rate)},
        {MACHINE_LAUNCH_LATENCY, offsetof(struct device_type, launch_latency)},
        {MACHINE_COLLECTIVE_LATENCY, offsetof(struct device_type, collective_latency)},
        {MACHINE_MATMUL_DEPTH, offsetof(struct device_type, kernel_model.matmul_depth)},
        {MACHINE_SCORE_BYTES_FORWARD, offsetof(struct device_type, kernel_model.score_bytes_forward)},
        {MACHINE_SCORE_BYTES_BACKWARD, offsetof(struct device_type, kernel_model.score_bytes_backward)},
        {MACHINE_LOSS_PASSES, offsetof(struct device_type, kernel_model.loss_passes)},
        {MACHINE_ELEMENTWISE_PASSES, offsetof(struct device_type, kernel_model.elementwise_passes)},
        {MACHINE_KERNEL_GAP, offsetof(struct device_type, kernel_model.kernel_gap)},
        {MACHINE_DISPATCH_LATENCY, offsetof(struct device_type, kernel_model.dispatch_latency)},
        {MACHINE_ATTENTION_EFFICIENCY, offsetof(struct device_type, kernel_model.attention_efficiency)},
    };
    for (size_t i = 0; i < ARRAY_COUNT(sourced_values); i++)
        meet_sourced(w, sourced_values[i].name, index,
                     (struct sourced_value *)(void *)((char *)type + sourced_values[i].offset));
    TRY(meet_profiles(w, index, type, err));
    TRY(meet_copies(w, MACHINE_H2D, index, &type->h2d, type->h2d_count, err));
    TRY(meet_copies(w, MACHINE_D2H, index, &type->d2h, type->d2h_count, err));
    TRY(meet_copies(w, MACHINE_P2P, index, &type->p2p, type->p2p_count, err));
    TRY(meet_copies(w, MACHINE_RING, index, &type->ring, type->ring_count, err));
    return meet_collectives(w, index, type, err);
}

/* --- machines ---------------------------------------------------------------------------------- */

static enum status walk(const struct machine_values_walk *w, struct hardware *machine, struct error *err)
{
    for (uint32_t t = 0; t < machine->type_count; t++) TRY(meet_type(w, t, &machine->types[t], err));
    for (uint32_t l = 0; l < machine->link_count; l++) {
        meet_sourced(w, MACHINE_LINK, l, &machine->links[l].bandwidth);
        meet_sourced(w, MACHINE_LINK_LATENCY, l, &machine->links[l].latency);
    }
    meet_sourced(w, MACHINE_HOST_BANDWIDTH, 0, &machine->host_bandwidth);
    meet_sourced(w, MACHINE_STORAGE_READ, 0, &machine->storage.read_rate);
    meet_sourced(w, MACHINE_STORAGE_WRITE, 0, &machine->storage.write_rate);
    meet_sourced(w, MACHINE_STORAGE_BOTH, 0, &machine->storage.both_rate);
    meet_sourced(w, MACHINE_STORAGE_LATENCY, 0, &machine->storage.latency);
    return STATUS_OK;
}

void machine_values_visit(const struct hardware *hardware, machine_visitor *visit, void *context)
{
    struct hardware seen = *hardware; /* never written to */
    struct error none = {0};
    const struct machine_values_walk w = {.visit = visit, .context = context};
    enum status status = walk(&w, &seen, &none);
    assert(status == STATUS_OK); /* nothing is allocated */
}

enum status machine_values_move(const struct hardware *from, machine_factor *factor, void *context,
                                struct hardware *out, struct error *err)
{
    struct hardware_link *links;
    struct device_type *types;
    *out = *from;
    out->arena = (struct arena){0};
    const struct machine_values_walk w = {.factor = factor, .context = context, .arena = &out->arena};
    TRY(ARENA_NEW(&out->arena, from->type_count, types, err));
    TRY(ARENA_NEW(&out->arena, from->link_count, links, err));
    out->types = memcpy(types, from->types, from->type_count * sizeof *out->types);
    if (from->link_count > 0) memcpy(links, from->links, from->link_count * sizeof *out->links);
    out->links = links;
    return walk(&w, out, err);
}
