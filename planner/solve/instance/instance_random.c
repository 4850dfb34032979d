/* One stream of numbers per instance, drawn in the order of the file. */
#include "planner/solve/instance/instance_random.h"

#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "planner/solve/instance/bridge_bytes.h"

const char *const instance_family_names[INSTANCE_FAMILY_COUNT] = {
    "compute", "hidden", "tight", "copy", "homogeneous", "heterogeneous", "few-long", "many-short",
    "bridge"};

enum { BRIDGE_BYTES_PER_TICK = 64 }; /* of a copy */

struct instance_draw {
    uint64_t key, counter;
};

static uint32_t draw_range(struct instance_draw *draw, struct instance_range range)
{
    return range.min + (uint32_t)random_below(draw->key, draw->counter++, range.max - range.min + 1u);
}

static int64_t draw_scaled(struct instance_draw *draw, int64_t value, double low, double high)
{
    double factor = low + (high - low) * random_unit(draw->key, draw->counter++);
    return (int64_t)((double)value * factor + 0.5);
}

/* Returns the length of copies as a share of the forward pass. */
static void copy_share(enum instance_family family, double *low, double *high)
{
    *low = family == INSTANCE_FAMILY_TIGHT ? 0.6 : family == INSTANCE_FAMILY_COPY ? 1.5 : 0.3;
    *high = family == INSTANCE_FAMILY_TIGHT ? 1.6 : family == INSTANCE_FAMILY_COPY ? 3.0 : 0.8;
    if (family == INSTANCE_FAMILY_COMPUTE) *low = *high = 0;
}

static void fill_job(struct instance *in, const struct instance_random *options, struct instance_draw *draw,
                     uint32_t job, uint32_t shards)
{
    struct instance_range forward = options->forward;
    double low, high;
    if (forward.max == 0) forward = (struct instance_range){4, 20};
    copy_share(options->family, &low, &high);
    uint32_t first = in->jobs[job].first_unit;
    for (uint32_t s = 0; s < shards; s++) {
        uint32_t there = first + s, back = first + 2 * shards - 2 - s;
        int64_t f = draw_range(draw, forward);
        int64_t copy = draw_scaled(draw, f, low, high);
        uint64_t memory = draw_range(draw, (struct instance_range){25, 65});
        if (options->family != INSTANCE_FAMILY_TIGHT) memory = 50;
        if (options->family == INSTANCE_FAMILY_BRIDGE) memory = draw_range(draw, (struct instance_range){20, 75});
        struct instance_unit unit = {.in = copy, .memory = memory, .in_bytes = (uint64_t)copy,
                                     .job = job, .shard = s};
        if (options->family == INSTANCE_FAMILY_BRIDGE) unit.in_bytes *= BRIDGE_BYTES_PER_TICK;
        in->units[there] = unit;
        in->compute[there] = f;
        unit.out = copy;
        unit.out_bytes = unit.in_bytes;
        unit.writes = true;
        in->units[back] = unit;
        in->compute[back] = there == back ? 3 * f : 2 * f;
    }
}

/* Draws a job of Fig. 7: a chain of equal units without copies, in milliseconds. */
static void fill_fig7(struct instance *in, struct instance_draw *draw, uint32_t job, bool homogeneous)
{
    uint32_t units = homogeneous ? 2000 : draw_range(draw, (struct instance_range){100, 10000});
    int64_t ms = homogeneous ? 7200000 : draw_range(draw, (struct instance_range){1800000, 14400000});
    in->jobs[job].repeat = units;
    in->units[job] = (struct instance_unit){.memory = 50, .job = job};
    in->compute[job] = ms / units;
}

/* Sets a bridge that is nearly always the bottleneck, however the work is divided. */
static void set_bridge(struct instance *in, struct instance_draw *draw)
{
    int64_t area = 0, longest = 1;
    for (uint32_t i = 0; i < in->job_count; i++) {
        int64_t chain = 0;
        for (uint32_t u = 0; u < in->jobs[i].unit_count; u++) chain += in->compute[in->jobs[i].first_unit + u];
        chain *= in->jobs[i].repeat;
        area += chain;
        if (chain > longest) longest = chain;
    }
    area /= in->classes[0].device_count;
    int64_t busy = draw_scaled(draw, area > longest ? area : longest, 0.9, 1.4);
    in->bridge_bytes_per_tick = 1; /* so that the bytes that must cross it are known */
    in->bridge_bytes_per_tick = 1 + bridge_bytes_least(in) / (uint64_t)busy;
}

static enum status name_job(struct instance *in, uint32_t job, struct error *err)
{
    char name[32];
    snprintf(name, sizeof name, "job-%u", job);
    return arena_string(&in->arena, name, &in->jobs[job].name, err);
}

enum status instance_random(const struct instance_random *options, struct instance *out,
                            struct error *err)
{
    struct instance in = {0};
    /* the first eight families have keys of their own, which later families must not change */
    uint64_t key = options->seed * 8 + options->family % 8;
    struct instance_draw draw = {options->family < 8 ? key : random_mix(key), 0};
    bool fig7 = options->family == INSTANCE_FAMILY_HOMOGENEOUS || options->family == INSTANCE_FAMILY_HETEROGENEOUS;
    uint32_t devices = draw_range(&draw, options->devices);
    uint32_t jobs = draw_range(&draw, options->jobs), units = 0;
    uint32_t minibatches = draw_range(&draw, options->minibatches);
    struct instance_draw ahead = draw;
    for (uint32_t i = 0; i < jobs; i++) units += fig7 ? 1 : 2 * draw_range(&draw, options->shards) - 1;
    if (instance_init(&in, 1, jobs, units, err)) goto fail;
    in.name = instance_family_names[options->family];
    in.classes[0] = (struct instance_class){.name = "device", .device_count = devices, .memory = 100};
    units = 0;
    for (uint32_t i = 0; i < jobs; i++) {
        uint32_t shards = fig7 ? 1 : draw_range(&ahead, options->shards);
        in.jobs[i] = (struct instance_job){.first_unit = units, .unit_count = 2 * shards - 1,
                                           .repeat = minibatches,
                                           .weight = draw_range(&draw, (struct instance_range){1, 9}),
                                           .deadline = INSTANCE_HORIZON_MAX};
        if (options->family == INSTANCE_FAMILY_FEW_LONG && i < 3) in.jobs[i].repeat *= 4;
        if (options->family == INSTANCE_FAMILY_MANY_SHORT) in.jobs[i].repeat = 1;
        if (fig7) fill_fig7(&in, &draw, i, options->family == INSTANCE_FAMILY_HOMOGENEOUS);
        else fill_job(&in, options, &draw, i, shards);
        units += in.jobs[i].unit_count;
        if (name_job(&in, i, err)) goto fail;
    }
    if (options->family == INSTANCE_FAMILY_BRIDGE) set_bridge(&in, &draw);
    if (instance_finish(&in, err)) goto fail;
    *out = in;
    return STATUS_OK;
fail:
    instance_release(&in);
    return err->status;
}
