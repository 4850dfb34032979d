/*
 * A lower bound on the bytes that a partial schedule, completed, moves over the shared bridge.
 *
 * A task that directly follows another of its shard copies nothing in. An empty schedule is certain of every copy out
 * and each shard's first copy in; a later task may find its shard on the device, but not once another task has taken
 * it. So the bound rises when a device gives up a shard that is still needed, never falls, and ends at the bytes moved.
 * A search that keeps it low makes devices wait for their shard's next task.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_INSTANCE_BRIDGE_BYTES_H
#define SPILLWAY_PLANNER_SOLVE_INSTANCE_BRIDGE_BYTES_H

#include "planner/solve/instance/instance.h"

/* Returns the bytes of a whole schedule, before anything has started. */
uint64_t bridge_bytes_least(const struct instance *in);

/* Returns the bytes that the job's next task of `unit`'s shard copies in unless a device holds it; 0 when none is left.
 * `position`: of the job's next task. */
uint64_t bridge_bytes_owed(const struct instance *in, uint32_t unit, uint32_t position);

/* Returns the ticks for which `bytes` keep the bridge busy; 0 without a bridge. */
static inline int64_t bridge_bytes_ticks(const struct instance *in, uint64_t bytes)
{
    uint64_t rate = in->bridge_bytes_per_tick;
    return rate > 0 ? (int64_t)((bytes + rate - 1) / rate) : 0;
}

/*
 * Returns by how much the bound rises when a task of `unit` goes to a device whose last task is of unit `last`
 * (UINT32_MAX: empty). `held`, `kept`: another device holds the shard of `unit`, of `last`. `position`: of the next
 * task of `last`'s job after that.
 */
static inline uint64_t bridge_bytes_rise(const struct instance *in, uint32_t last, uint32_t unit, bool held, bool kept,
                                         uint32_t position)
{
    uint64_t bytes = 0;
    if (last != UINT32_MAX && instance_resident(&in->units[last], &in->units[unit])) return 0;
    if (held) bytes += in->units[unit].in_bytes;
    if (last != UINT32_MAX && !kept) bytes += bridge_bytes_owed(in, last, position);
    return bytes;
}

#endif
