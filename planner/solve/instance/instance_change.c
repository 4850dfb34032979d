/* Each function copies the instance with room for the change, changes the copy and finishes it. */
#include "planner/solve/instance/instance_change.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/try.h"

/* Copies `in`, with `classes_more` classes that the caller fills, and jobs in the order order[] (NULL: unchanged).
 * Not finished. */
static enum status copy(const struct instance *in, uint32_t classes_more, const uint32_t *order,
                        struct instance *out, struct error *err)
{
    uint32_t classes = in->class_count + classes_more, unit = 0;
    TRY(instance_init(out, classes, in->job_count, in->unit_count, err));
    TRY(arena_string(&out->arena, in->name ? in->name : "", &out->name, err));
    out->objective = in->objective;
    out->bridge_bytes_per_tick = in->bridge_bytes_per_tick;
    out->streams = in->streams;
    out->tick_s = in->tick_s;
    for (uint32_t c = 0; c < in->class_count; c++) {
        out->classes[c] = in->classes[c];
        if (in->classes[c].name) TRY(arena_string(&out->arena, in->classes[c].name, &out->classes[c].name, err));
    }
    for (uint32_t i = 0; i < in->job_count; i++) {
        const struct instance_job *from = &in->jobs[order ? order[i] : i];
        struct instance_job *to = &out->jobs[i];
        *to = *from;
        to->first_unit = unit;
        TRY(arena_string(&out->arena, from->name, &to->name, err));
        for (uint32_t u = 0; u < from->unit_count; u++, unit++) {
            out->units[unit] = in->units[from->first_unit + u];
            out->units[unit].job = i;
            memcpy(&out->compute[(size_t)unit * classes],
                   &in->compute[(size_t)(from->first_unit + u) * in->class_count],
                   in->class_count * sizeof *in->compute);
        }
    }
    return STATUS_OK;
}

static enum status finish(struct instance *out, struct error *err)
{
    if (!err->status && instance_finish(out, err)) {}
    if (err->status) instance_release(out);
    return err->status;
}

enum status instance_scale(const struct instance *in, uint32_t factor, struct instance *out,
                           struct error *err)
{
    assert(factor > 0);
    if (copy(in, 0, NULL, out, err)) return finish(out, err);
    for (uint32_t u = 0; u < out->unit_count; u++) {
        out->units[u].in *= factor;
        out->units[u].out *= factor;
        out->units[u].in_bytes *= factor;
        out->units[u].out_bytes *= factor;
    }
    for (size_t i = 0; i < (size_t)out->unit_count * out->class_count; i++) out->compute[i] *= factor;
    for (uint32_t i = 0; i < out->job_count; i++)
        if (out->jobs[i].deadline < INSTANCE_HORIZON_MAX) out->jobs[i].deadline *= factor;
    return finish(out, err);
}

/* Returns a noisy number of ticks, rounded; a positive time stays positive. */
static int64_t noisy(int64_t ticks, double noise, uint64_t seed, uint64_t counter)
{
    double factor = 1 + noise * (2 * random_unit(seed, counter) - 1);
    int64_t changed = (int64_t)((double)ticks * factor + 0.5);
    return ticks > 0 && changed < 1 ? 1 : changed;
}

enum status instance_perturb(const struct instance *in, double noise, uint64_t seed,
                             struct instance *out, struct error *err)
{
    assert(noise >= 0 && noise < 1);
    uint64_t drawn = 0;
    if (copy(in, 0, NULL, out, err)) return finish(out, err);
    for (uint32_t u = 0; u < out->unit_count; u++) {
        out->units[u].in = noisy(out->units[u].in, noise, seed, drawn++);
        out->units[u].out = noisy(out->units[u].out, noise, seed, drawn++);
        for (uint32_t c = 0; c < out->class_count; c++) {
            int64_t *compute = &out->compute[(size_t)u * out->class_count + c];
            *compute = noisy(*compute, noise, seed, drawn++);
        }
    }
    return finish(out, err);
}

enum status instance_reorder(const struct instance *in, uint64_t seed, struct instance *out,
                             struct error *err)
{
    uint32_t *order = alloc_zeroed(in->job_count, sizeof *order);
    if (!order) return error_memory(err, "an order of jobs", in->job_count * sizeof *order);
    for (uint32_t i = 0; i < in->job_count; i++) order[i] = i;
    for (uint32_t i = in->job_count; i > 1; i--) { /* Fisher and Yates */
        uint32_t j = (uint32_t)random_below(seed, i, i), swap = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swap;
    }
    if (copy(in, 0, order, out, err)) {}
    free(order);
    return finish(out, err);
}

/* Returns a memory that a quarter of all units exceeds, on average. */
static uint64_t small_memory(const struct instance *in, uint64_t seed)
{
    uint32_t above = (uint32_t)random_below(seed, 0, in->unit_count);
    uint64_t memory = in->units[above].memory;
    for (uint64_t draw = 1; draw <= 2; draw++) {
        uint64_t other = in->units[random_below(seed, draw, in->unit_count)].memory;
        if (other > memory) memory = other;
    }
    return memory;
}

enum status instance_mix(const struct instance *in, uint64_t seed, struct instance *out,
                         struct error *err)
{
    uint32_t from = in->class_count - 1, has = in->classes[from].device_count;
    uint32_t more = has > 1 && in->class_count < INSTANCE_CLASSES_MAX ? 1 : 0;
    if (copy(in, more, NULL, out, err) || more == 0) return finish(out, err);
    uint32_t moved = 1 + (uint32_t)random_below(seed, 3, has - 1u);
    out->classes[from].device_count = has - moved;
    out->classes[from + 1] =
        (struct instance_class){.name = "fast-and-small", .device_count = moved, .memory = small_memory(in, seed),
                                .slots = in->classes[from].slots, .edges = in->classes[from].edges};
    for (uint32_t u = 0; u < out->unit_count; u++) {
        int64_t *compute = &out->compute[(size_t)u * out->class_count];
        compute[from + 1] = (compute[from] + 1) / 2;
    }
    return finish(out, err);
}
