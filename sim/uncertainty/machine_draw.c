#include "sim/uncertainty/machine_draw.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/random.h"
#include "models/hardware/machine_values.h"

double machine_draw_factor(double spread, double share)
{
    return exp(spread / SOURCED_SPREAD_DEVIATIONS * gsl_cdf_ugaussian_Pinv(share));
}

struct machine_draw_drawing {
    uint64_t key; /* of this draw */
    const struct hardware *hardware;
};

static uint64_t identity_of(const char *name, const char *source, double value)
{
    uint64_t hash = hash_bytes(HASH_BEGIN, name, strlen(name));
    if (source) hash = hash_bytes(hash, source, strlen(source));
    return hash_bytes(hash, &value, sizeof value);
}

/* Returns true for measured seconds of kernels, copies and collectives. */
static bool measured_seconds(const struct machine_place *place)
{
    return place->what == MACHINE_KERNELS || (place->what >= MACHINE_H2D && place->what <= MACHINE_RING) ||
           place->what == MACHINE_COLLECTIVES;
}

/* Returns a key that equal values share. Figures with one source and one value are one value in all places; so are
 * all points of a kernel class of a device type, and all copies of a direction. */
static uint64_t identity(const struct machine_draw_drawing *drawing, const struct machine_place *place)
{
    if (!measured_seconds(place)) return identity_of(machine_value_names[place->what], place->source, place->value);
    uint64_t type = identity_of(drawing->hardware->types[place->index].name, NULL, 0);
    return type + 1 + (place->what == MACHINE_KERNELS ? place->kernel : KERNEL_COUNT + place->what);
}

/* Returns a random number above 0 and below 1. */
static double share_of(const struct machine_draw_drawing *drawing, uint64_t of)
{
    return ((double)(random_u64(drawing->key, of) >> 11) + 0.5) * 0x1p-53;
}

/* Returns false for values that the executor controls. */
static bool moves(const struct hardware *hardware, const struct machine_place *place)
{
    bool link = place->what == MACHINE_LINK || place->what == MACHINE_LINK_LATENCY;
    return place->spread > 0 && !(link && hardware->links[place->index].paced);
}

/* Returns the common factor of all measurements of a device type. */
static double moment_factor(const struct machine_draw_drawing *drawing, const struct machine_place *place)
{
    if (!measured_seconds(place)) return 1;
    const struct device_type *type = &drawing->hardware->types[place->index];
    if (!(type->speed.spread > 0)) return 1;
    return machine_draw_factor(type->speed.spread, share_of(drawing, identity_of("speed", type->name, 1)));
}

static double drawn_factor(void *context, const struct machine_place *place)
{
    const struct machine_draw_drawing *drawing = context;
    double moment = moment_factor(drawing, place);
    if (!moves(drawing->hardware, place)) return moment;
    return moment * machine_draw_factor(place->spread, share_of(drawing, identity(drawing, place)));
}

enum status machine_draw(const struct hardware *from, uint64_t seed, uint64_t number, struct hardware *out,
                         struct error *err)
{
    struct machine_draw_drawing drawing = {.key = random_u64(seed, number), .hardware = from};
    return machine_values_move(from, drawn_factor, &drawing, out, err);
}

struct finding {
    const struct hardware *hardware;
    bool some;
};

static void find_spread(void *context, const struct machine_place *place)
{
    struct finding *finding = context;
    finding->some |= moves(finding->hardware, place) ||
                     (measured_seconds(place) && finding->hardware->types[place->index].speed.spread > 0);
}

bool machine_has_spread(const struct hardware *hardware)
{
    struct finding finding = {.hardware = hardware};
    machine_values_visit(hardware, find_spread, &finding);
    return finding.some;
}
