/*
 * Instances that come soon, brought near.
 *
 * A plan of a large pipeline has tens of megabytes of units, operations and accesses, each found by way of the one in
 * front of it, and whoever goes through the instances meets them in no order that a processor foresees. So their
 * lines are asked for some instances ahead: the unit, then its operations, then the accesses of these.
 */
#ifndef SPILLWAY_PLANNER_PLAN_AHEAD_H
#define SPILLWAY_PLANNER_PLAN_AHEAD_H

#include "planner/plan.h"

enum { PLAN_AHEAD_ACCESSES = 4, PLAN_AHEAD_OPS = 8, PLAN_AHEAD_UNIT = 12, PLAN_LINE_BYTES = 64 };

/* `bytes` from there, one line at least. */
static inline void plan_bring(const void *first, size_t bytes)
{
    for (size_t at = 0; at == 0 || at < bytes; at += PLAN_LINE_BYTES) __builtin_prefetch((const char *)first + at);
}

/* Before instance `index` is looked at, in a walk over instances up to `end`. */
static inline void plan_look_ahead(const struct plan *plan, uint32_t index, uint32_t end)
{
    if (end - index <= PLAN_AHEAD_UNIT) return;
    const struct plan_instance *instances = plan->instances + index;
    const struct plan_unit *far = &plan->units[instances[PLAN_AHEAD_OPS].unit];
    const struct plan_unit *near = &plan->units[instances[PLAN_AHEAD_ACCESSES].unit];
    __builtin_prefetch(&plan->units[instances[PLAN_AHEAD_UNIT].unit]);
    plan_bring(&plan->ops[far->first_op], far->op_count * sizeof *plan->ops);
    const struct plan_op *last = &plan->ops[near->first_op + near->op_count - 1];
    uint32_t first = plan->ops[near->first_op].first_access;
    plan_bring(&plan->accesses[first], (last->first_access + last->access_count - first) * sizeof *plan->accesses);
}

#endif
