/* The groups of a gang: places that differ along some axes alone. */
#ifndef SPILLWAY_PLANNER_PLAN_GANG_H
#define SPILLWAY_PLANNER_PLAN_GANG_H

#include "planner/plan.h"

/*
 * The gang's places, group by group in the order of their first places, within a group the earlier axes
 * varying faster: places[0 .. size), of which each plan_gang_group_size() are a group. The empty set of axes
 * makes each place a group.
 */
void plan_gang_order(const struct plan_gang *gang, uint32_t axes, uint32_t *places);

static inline uint32_t plan_gang_group_size(const struct plan_gang *gang, uint32_t axes)
{
    uint32_t size = 1;
    for (uint32_t a = 0; a < AXIS_COUNT; a++)
        if (axes & 1u << a) size *= gang->extents[a];
    return size;
}

#endif
