/*
 * The least bytes that a partial schedule must still move over the shared bridge, with those it has moved.
 *
 * A task that directly follows another one of its shard on a device copies nothing in. At the beginning every copy
 * out is certain, and the copy in of each shard's first task; a later task may find its shard on the device. It
 * cannot once another task has taken that device. So this bound rises when a device gives up a shard that is still
 * needed, it never falls, and at the end it is the number of bytes moved. A search that keeps it low makes devices
 * wait for the next task of the shard they hold.
 */
#ifndef SPILLWAY_PLANNER_BRIDGE_BYTES_H
#define SPILLWAY_PLANNER_BRIDGE_BYTES_H

#include "planner/solve/instance/instance.h"

/* Returns the bytes of a whole schedule, before anything has started. */
uint64_t bridge_bytes_least(const struct instance *in);

/* The bytes that the job's next task of `unit`'s shard copies in unless the shard is there; `position`: of the job's
 * next task. 0 when no task of the shard is left. */
uint64_t bridge_bytes_owed(const struct instance *in, uint32_t unit, uint32_t position);

/* Ticks for which these bytes keep the bridge busy; 0 without a bridge. */
static inline int64_t bridge_bytes_ticks(const struct instance *in, uint64_t bytes)
{
    uint64_t rate = in->bridge_bytes_per_tick;
    return rate > 0 ? (int64_t)((bytes + rate - 1) / rate) : 0;
}

/*
 * By how much the bound rises when a task of `unit` is put on a device whose last task is of unit `last` (UINT32_MAX:
 * it has none). `held`: another device holds the shard of `unit`; `kept`: another device holds the shard of `last`.
 * `position`: of the next task of the job of `last`, once the new one is put.
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
