/* See machine_draw.h. */
#include "noise/machine_draw.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/random.h"

/* Of a standard normal error, the middle half reaches as far as this on either side. */
static const double middle_half = 0.67448975019608171;

double noise_factor(double spread, double share) { return exp(spread / middle_half * gsl_cdf_ugaussian_Pinv(share)); }

struct drawing {
    uint64_t key;  /* of this draw */
    bool any_spread;
    struct arena *arena;
};

/* Figures with one source and one value are one figure, wherever they stand. */
static uint64_t identity_of(const char *name, const char *source, double value)
{
    uint64_t hash = hash_bytes(HASH_BEGIN, name, strlen(name));
    if (source) hash = hash_bytes(hash, source, strlen(source));
    return hash_bytes(hash, &value, sizeof value);
}

/* Above 0 and below 1, whatever is drawn. */
static double share_of(const struct drawing *drawing, uint64_t identity)
{
    return ((double)(random_u64(drawing->key, identity) >> 11) + 0.5) * 0x1p-53;
}

static void move(struct drawing *drawing, const char *name, struct figure *figure)
{
    if (!(figure->spread > 0) || !(figure->value > 0)) return;
    drawing->any_spread = true;
    figure->value *= noise_factor(figure->spread, share_of(drawing, identity_of(name, figure->source, figure->value)));
}

/* A share of a peak stays one. */
static void move_share(struct drawing *drawing, const char *name, struct figure *figure)
{
    move(drawing, name, figure);
    if (figure->value > 1) figure->value = 1;
}

/* A copy that may be moved; NULL when memory ends. */
static void *copy(struct drawing *drawing, const void *from, size_t count, size_t size, struct error *err)
{
    void *copied;
    if (arena_array(drawing->arena, count, size, &copied, err) != STATUS_OK) return NULL;
    return count > 0 ? memcpy(copied, from, count * size) : copied;
}

/* --- device types ---------------------------------------------------------------------------- */

static enum status move_points(struct drawing *drawing, const struct copy_point **points, uint32_t count, double share,
                               struct error *err)
{
    struct copy_point *moved = copy(drawing, *points, count, sizeof *moved, err);
    if (!moved) return err->status;
    for (uint32_t p = 0; p < count; p++) {
        drawing->any_spread |= moved[p].spread > 0;
        moved[p].seconds *= noise_factor(moved[p].spread, share);
    }
    *points = moved;
    return STATUS_OK;
}

static enum status move_kernel(struct drawing *drawing, struct kernel_rate *rate, double share, struct error *err)
{
    if (rate->point_count == 0) return STATUS_OK;
    struct rate_point *moved = copy(drawing, rate->points, rate->point_count, sizeof *moved, err);
    if (!moved) return err->status;
    for (uint32_t p = 0; p < rate->point_count; p++) {
        drawing->any_spread |= moved[p].spread > 0;
        moved[p].seconds *= noise_factor(moved[p].spread, share);
    }
    rate->points = moved;
    return STATUS_OK;
}

static enum status move_profiles(struct drawing *drawing, struct device_type *type, uint64_t identity, struct error *err)
{
    struct compute_profile *profiles = copy(drawing, type->profiles, type->profile_count, sizeof *profiles, err);
    if (!profiles) return err->status;
    for (uint32_t p = 0; p < type->profile_count; p++) {
        struct interference *interference = &profiles[p].interference;
        for (uint32_t k = 0; k < KERNEL_COUNT; k++)
            if (move_kernel(drawing, &profiles[p].kernels[k], share_of(drawing, identity + 1 + k), err) != STATUS_OK)
                return err->status;
        move(drawing, "compute_by_compute", &interference->compute_by_compute);
        move(drawing, "compute_by_copy", &interference->compute_by_copy);
        move(drawing, "copy_by_compute", &interference->copy_by_compute);
        move(drawing, "copy_by_copy", &interference->copy_by_copy);
    }
    type->profiles = profiles;
    return STATUS_OK;
}

static enum status move_type(struct drawing *drawing, struct device_type *type, struct error *err)
{
    uint64_t identity = identity_of(type->name, NULL, 0);
    move(drawing, "memory_bandwidth", &type->memory_bandwidth);
    move_share(drawing, "matmul_efficiency", &type->matmul_efficiency);
    move_share(drawing, "memory_efficiency", &type->memory_efficiency);
    move(drawing, "launch_latency", &type->launch_latency);
    move(drawing, "collective_latency", &type->collective_latency);
    move(drawing, "matmul_depth", &type->kernel_model.matmul_depth);
    move(drawing, "score_bytes_forward", &type->kernel_model.score_bytes_forward);
    move(drawing, "score_bytes_backward", &type->kernel_model.score_bytes_backward);
    move(drawing, "loss_passes", &type->kernel_model.loss_passes);
    move(drawing, "dispatch_latency", &type->kernel_model.dispatch_latency);
    /* each direction of copies is a measurement with an error of its own */
    if (move_profiles(drawing, type, identity, err) != STATUS_OK ||
        move_points(drawing, &type->h2d, type->h2d_count, share_of(drawing, identity ^ 1), err) != STATUS_OK ||
        move_points(drawing, &type->d2h, type->d2h_count, share_of(drawing, identity ^ 2), err) != STATUS_OK)
        return err->status;
    if (move_points(drawing, &type->p2p, type->p2p_count, share_of(drawing, identity ^ 3), err) != STATUS_OK)
        return err->status;
    return move_points(drawing, &type->ring, type->ring_count, share_of(drawing, identity ^ 4), err);
}

/* --- the machine ----------------------------------------------------------------------------- */

static enum status move_all(struct drawing *drawing, struct hardware *machine, struct error *err)
{
    struct device_type *types = copy(drawing, machine->types, machine->type_count, sizeof *types, err);
    struct hardware_link *links = types ? copy(drawing, machine->links, machine->link_count, sizeof *links, err) : NULL;
    if (!links) return err->status;
    machine->types = types;
    machine->links = links;
    for (uint32_t t = 0; t < machine->type_count; t++)
        if (move_type(drawing, &machine->types[t], err) != STATUS_OK) return err->status;
    for (uint32_t l = 0; l < machine->link_count; l++) {
        if (machine->links[l].paced) continue; /* the executor sees to it */
        move(drawing, "link", &machine->links[l].bandwidth);
        move(drawing, "link latency", &machine->links[l].latency);
    }
    move(drawing, "host bandwidth", &machine->host_bandwidth);
    move(drawing, "storage read", &machine->storage.read_rate);
    move(drawing, "storage write", &machine->storage.write_rate);
    move(drawing, "storage both", &machine->storage.both_rate);
    return STATUS_OK;
}

static enum status draw(const struct hardware *from, uint64_t seed, uint64_t number, struct hardware *out, bool *any_spread,
                        struct error *err)
{
    *out = *from;
    out->arena = (struct arena){0};
    struct drawing drawing = {.key = random_u64(seed, number), .arena = &out->arena};
    enum status status = move_all(&drawing, out, err);
    *any_spread = drawing.any_spread;
    return status;
}

enum status machine_draw(const struct hardware *from, uint64_t seed, uint64_t number, struct hardware *out,
                         struct error *err)
{
    bool any_spread;
    return draw(from, seed, number, out, &any_spread, err);
}

bool machine_has_spread(const struct hardware *hardware)
{
    struct hardware drawn = {0};
    struct error err = {0};
    bool any_spread = false;
    if (draw(hardware, 0, 0, &drawn, &any_spread, &err) != STATUS_OK) any_spread = true; /* the real draw will say */
    hardware_release(&drawn);
    return any_spread;
}
