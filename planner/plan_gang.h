/*
 * A gang is a device mesh: a grid of devices that carry out a unit together, as in gang scheduling. Its groups are
 * places that differ only along some axes.
 */
#ifndef SPILLWAY_PLANNER_PLAN_GANG_H
#define SPILLWAY_PLANNER_PLAN_GANG_H

#include "planner/plan.h"

/*
 * Lists places group by group, in the order of first places, with earlier axes varying faster within a group. places[0
 * .. size): consecutive plan_gang_group_size() places are a group. With no axis each place is one.
 */
void plan_gang_order(const struct plan_gang *gang, uint32_t axes, uint32_t *places);

static inline uint32_t plan_gang_group_size(const struct plan_gang *gang, uint32_t axes)
{
    uint32_t size = 1;
    for (uint32_t a = 0; a < AXIS_COUNT; a++)
        if (axes & 1u << a) size *= gang->extents[a];
    return size;
}

/* Finds the accesses [*first, *end) of the operation that a place of the gang makes: over a pipeline's ends the first
 * access for the first stage, the second for the last; else all. */
static inline void plan_gang_own_accesses(const struct plan *plan, const struct plan_task *task,
                                          const struct plan_op *op, uint32_t place, uint32_t *first, uint32_t *end)
{
    *first = 0;
    *end = op->access_count;
    if (op->kind != OP_COLLECTIVE || !(op->axes & 1u << AXIS_ENDS)) return;
    const struct parallel *p = &plan->jobs.jobs[plan->units[task->unit].job].parallel;
    *first = place < p->tensor * parallel_replicas(p, 0) ? 0 : 1;
    *end = *first + 1;
}

/* Returns the rank of a task's first device among the devices of its stage: above 0 for a replica that takes turns. */
static inline uint32_t plan_gang_first_rank(const struct plan *plan, const struct plan_task *task)
{
    const struct plan_unit *unit = &plan->units[task->unit];
    const struct parallel *p = &plan->jobs.jobs[unit->job].parallel;
    if (task->gang == PLAN_NONE || p->replicated == 0) return 0;
    const uint32_t stage = parallel_place(p, unit->shard).stage, turns = parallel_turns(p, stage);
    const uint32_t begin = p->tensor * (uint32_t)parallel_replicas_before(p, stage);
    const uint32_t device = plan->gang_devices[plan->gangs[task->gang].first];
    for (uint32_t d = 1; d < turns; d++)
        if (plan_rank_device(plan, unit->job, begin + d * p->tensor) == device) return d * p->tensor;
    return 0;
}

/* The last two gangs that a gang copied from, to visit each pair once: a pipeline's stage copies from its two
 * neighbours. */
struct plan_gang_peers {
    uint32_t last[2];
};
static const struct plan_gang_peers PLAN_GANG_NO_PEERS = {{PLAN_NONE, PLAN_NONE}};

/* Returns true when the gang was among them, and notes it. */
static inline bool plan_gang_peers_note(struct plan_gang_peers *peers, uint32_t gang)
{
    if (peers->last[0] == gang) return true;
    bool known = peers->last[1] == gang;
    peers->last[1] = peers->last[0];
    peers->last[0] = gang;
    return known;
}

#endif
