/*
 * A group's ring goes through its devices in the order of the gang and back to the first; its slowest
 * step sets the pace. Which groups there are follows from the gangs; only sets of axes that some operation
 * names are looked at.
 *
 *     gang of 2 x 3, axes {data}: groups {0, 2, 4} and {1, 3, 5}; the ring 0 -> 2 -> 4 -> 0
 */
#include "sim/joining.h"

#include <inttypes.h>

#include "models/cost.h"
#include "planner/plan_gang.h"
#include "sim/take.h"

enum { AXES_SETS = 1 << AXIS_COUNT };

struct sim_collectives {
    const struct plan *plan;
    struct collective_level *rings; /* the steps of each group's ring */
    uint32_t sets_used;           /* by operations: bit s is the set s of axes */
    uint32_t (*first)[AXES_SETS]; /* per gang: the first ring of a set of axes */
};

static uint32_t find_sets_used(const struct plan *plan)
{
    uint32_t used = 0;
    for (uint32_t o = 0; o < plan->op_count; o++)
        if (plan->ops[o].kind == OP_COLLECTIVE) used |= 1u << plan->ops[o].axes;
    return used;
}

static enum status fill_ring(const struct hardware *hardware, const uint32_t *devices, uint32_t count,
                             struct collective_level *ring, struct error *err)
{
    *ring = (struct collective_level){.members = count};
    for (uint32_t i = 0; count > 1 && i < count; i++) {
        uint32_t from = devices[i], to = devices[(i + 1) % count];
        if (!hardware_p2p_pair(hardware, from, to))
            return error_set(err, STATUS_BAD_INPUT,
                             "machine '%s' has no direct link from device %" PRIu32 " to device %" PRIu32
                             ", but a collective joins them",
                             hardware->name, from, to);
        double latency_s = cost_p2p_latency_s(hardware, from, to);
        double bytes_per_s = cost_p2p_bandwidth(hardware, from, to);
        if (i == 0 || latency_s > ring->latency_s) ring->latency_s = latency_s;
        if (i == 0 || bytes_per_s < ring->bytes_per_s) ring->bytes_per_s = bytes_per_s;
    }
    return STATUS_OK;
}

/* All groups of a gang along these axes. */
static enum status fill_rings(const struct sim_collectives *c, const struct hardware *hardware,
                              const struct plan_gang *gang, uint32_t axes, uint32_t *scratch,
                              struct collective_level *rings, struct error *err)
{
    uint32_t size = plan_gang_size(gang), joined = plan_gang_group_size(gang, axes);
    enum status status = STATUS_OK;
    plan_gang_order(gang, axes, scratch);
    for (uint32_t i = 0; i < size; i++) scratch[i] = c->plan->gang_devices[gang->first + scratch[i]];
    for (uint32_t g = 0; g < size / joined && status == STATUS_OK; g++)
        status = fill_ring(hardware, scratch + g * joined, joined, &rings[g], err);
    return status;
}

enum status sim_collectives_create(struct arena *arena, const struct plan *plan,
                                   const struct hardware *hardware, struct sim_collectives **out,
                                   struct error *err)
{
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    uint32_t used = find_sets_used(plan), rings = 0;
    struct sim_collectives *c = sim_take(arena, 1, sizeof *c, &status, err);
    if (status != STATUS_OK) return status;
    c->plan = plan;
    c->sets_used = used;
    c->first = sim_take(arena, plan->gang_count, sizeof *c->first, &status, err);
    uint32_t *devices = sim_take(&scratch, plan->hardware.device_count, sizeof *devices, &status, err);
    for (uint32_t g = 0; status == STATUS_OK && g < plan->gang_count; g++)
        for (uint32_t axes = 1; axes < AXES_SETS; axes++) {
            if (!(used & 1u << axes)) continue;
            c->first[g][axes] = rings;
            rings += plan_gang_size(&plan->gangs[g]) / plan_gang_group_size(&plan->gangs[g], axes);
        }
    if (status == STATUS_OK) c->rings = sim_take(arena, rings, sizeof *c->rings, &status, err);
    for (uint32_t g = 0; status == STATUS_OK && g < plan->gang_count; g++)
        for (uint32_t axes = 1; axes < AXES_SETS && status == STATUS_OK; axes++)
            if (used & 1u << axes)
                status = fill_rings(c, hardware, &plan->gangs[g], axes, devices,
                                    c->rings + c->first[g][axes], err);
    arena_release(&scratch);
    *out = c;
    return status;
}

uint32_t sim_collectives_group(const struct sim_collectives *c, uint32_t gang, uint32_t axes,
                               uint32_t group)
{
    return c->first[gang][axes] + group;
}

static bool rings_equal(const struct collective_level *a, const struct collective_level *b)
{
    return a->members == b->members && !(a->latency_s < b->latency_s) && !(a->latency_s > b->latency_s) &&
           !(a->bytes_per_s < b->bytes_per_s) && !(a->bytes_per_s > b->bytes_per_s);
}

bool sim_collectives_alike(const struct sim_collectives *c, uint32_t gang)
{
    const struct plan_gang *of = &c->plan->gangs[gang];
    for (uint32_t axes = 1; axes < AXES_SETS; axes++) {
        if (!(c->sets_used & 1u << axes)) continue;
        const struct collective_level *rings = &c->rings[c->first[gang][axes]];
        for (uint32_t g = 1; g < plan_gang_size(of) / plan_gang_group_size(of, axes); g++)
            if (!rings_equal(&rings[0], &rings[g])) return false;
    }
    return true;
}

double sim_collectives_s(const struct sim_collectives *c, uint32_t group, const struct plan_op *op)
{
    struct collective_group of = collective_flat(c->rings[group]);
    enum collective_kind kind = op->collective;
    return op->rounds *
           collective_cost(kind, collective_choose(kind, &of, op->bytes), &of, op->bytes).seconds;
}
