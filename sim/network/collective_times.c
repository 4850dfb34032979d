/*
 * Groups follow from the gangs, for sets of axes that operations name.
 *
 *     gang of 2 x 3, axes {data}: groups {0, 2, 4} and {1, 3, 5}
 */
#include "sim/network/collective_times.h"

#include <inttypes.h>

#include "planner/plan_gang.h"
#include "sim/engine/allocate.h"

enum { AXES_SETS = 1 << AXIS_COUNT };

/* A cached time of a collective. */
struct collective_times_known {
    uint64_t bytes;
    double seconds;
    uint32_t job, collective, rounds; /* rounds 0: empty */
};

struct sim_collectives {
    const struct plan *plan;
    struct collective_group *groups;
    uint32_t group_count;
    struct collective_times_known *known; /* by group: its last query */
    uint32_t (*first)[AXES_SETS];         /* per gang: each set's first group */
};

/* Returns operations' sets of axes: bit s is the set s. */
static uint32_t find_sets_used(const struct plan *plan)
{
    uint32_t used = 0;
    for (uint32_t o = 0; o < plan->op_count; o++)
        if (plan->ops[o].kind == OP_COLLECTIVE) used |= 1u << plan->ops[o].axes;
    return used;
}

void sim_collectives_devices(const struct plan *plan, uint32_t gang, uint32_t axes, uint32_t *devices)
{
    const struct plan_gang *of = &plan->gangs[gang];
    plan_gang_order(of, axes, devices);
    for (uint32_t i = 0; i < plan_gang_size(of); i++) devices[i] = plan->gang_devices[of->first + devices[i]];
}

static enum status fill_groups(const struct sim_collectives *c, const struct collective_finder *finder,
                               uint32_t gang, uint32_t axes, uint32_t *scratch,
                               struct collective_group *groups, struct error *err)
{
    const struct plan_gang *of = &c->plan->gangs[gang];
    uint32_t size = plan_gang_size(of), joined = plan_gang_group_size(of, axes), lacking[2];
    sim_collectives_devices(c->plan, gang, axes, scratch);
    if (collective_groups_find(finder, scratch, joined, size / joined, groups, lacking)) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "on machine '%s' device %" PRIu32 " does not reach device %" PRIu32
                     ", but a collective joins them",
                     finder->hardware->name, lacking[0], lacking[1]);
}

enum status sim_collectives_create(struct arena *arena, const struct plan *plan,
                                   const struct hardware *hardware, struct sim_collectives **out,
                                   struct error *err)
{
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    struct collective_finder finder;
    uint32_t used = find_sets_used(plan), groups = 0;
    struct sim_collectives *c = sim_allocate(arena, 1, sizeof *c, &status, err);
    if (status != STATUS_OK) return status;
    c->plan = plan;
    c->first = sim_allocate(arena, plan->gang_count, sizeof *c->first, &status, err);
    uint32_t *devices = sim_allocate(&scratch, plan->hardware.device_count, sizeof *devices, &status, err);
    for (uint32_t g = 0; status == STATUS_OK && g < plan->gang_count; g++)
        for (uint32_t axes = 1; axes < AXES_SETS; axes++) {
            if (!(used & 1u << axes)) continue;
            c->first[g][axes] = groups;
            groups += plan_gang_size(&plan->gangs[g]) / plan_gang_group_size(&plan->gangs[g], axes);
        }
    c->group_count = groups;
    if (status == STATUS_OK) c->groups = sim_allocate(arena, groups, sizeof *c->groups, &status, err);
    c->known = sim_allocate(arena, groups, sizeof *c->known, &status, err);
    if (status == STATUS_OK) status = collective_finder_init(&scratch, hardware, &finder, err);
    for (uint32_t g = 0; status == STATUS_OK && g < plan->gang_count; g++)
        for (uint32_t axes = 1; axes < AXES_SETS && status == STATUS_OK; axes++)
            if (used & 1u << axes)
                status = fill_groups(c, &finder, g, axes, devices,
                                     c->groups + c->first[g][axes], err);
    arena_release(&scratch);
    *out = c;
    return status;
}

uint32_t sim_collectives_group_count(const struct sim_collectives *c)
{
    return c->group_count;
}

const struct collective_group *sim_collectives_at(const struct sim_collectives *c, uint32_t group)
{
    return &c->groups[group];
}

uint32_t sim_collectives_group(const struct sim_collectives *c, uint32_t gang, uint32_t axes,
                               uint32_t group)
{
    return c->first[gang][axes] + group;
}

enum collective_algorithm sim_collectives_algorithm(const struct sim_collectives *c, uint32_t group,
                                                    uint32_t job, const struct plan_op *op)
{
    return collective_algorithm_of(op->collective, parallel_algorithm(&c->plan->jobs.jobs[job].parallel),
                                   &c->groups[group], op->bytes);
}

double sim_collectives_s(const struct sim_collectives *c, uint32_t group, uint32_t job,
                         const struct plan_op *op)
{
    struct collective_times_known *known = &c->known[group];
    if (known->rounds == op->rounds && known->bytes == op->bytes && known->collective == op->collective &&
        known->job == job && op->rounds > 0)
        return known->seconds;
    enum collective_algorithm algorithm = sim_collectives_algorithm(c, group, job, op);
    double seconds = op->rounds * collective_cost(op->collective, algorithm, &c->groups[group], op->bytes).seconds;
    *known = (struct collective_times_known){op->bytes, seconds, job, op->collective, op->rounds};
    return seconds;
}
