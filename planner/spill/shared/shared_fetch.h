/*
 * The pieces of a base that each unit fetches.
 *
 * A shard of a base that stays is fetched by the first unit that uses it. Others visit: consecutive units of a device
 * with one shard are a visit. With two places and more in turn, a visit's shard is fetched ahead, in one piece by each
 * unit from the last visit's first unit on, so copies of jobs' own data do not wait for a whole shard. With one place
 * the visit's first unit fetches it.
 *
 *     device   | visit of shard 3           | visit of shard 4        |
 *     units    | job 1   | job 2   | job 3   | job 1   | ...
 *     fetches  | 1/3 of 4| 1/3 of 4| 1/3 of 4| 1/3 of 5| ...
 */
#ifndef SPILLWAY_PLANNER_SPILL_SHARED_SHARED_FETCH_H
#define SPILLWAY_PLANNER_SPILL_SHARED_SHARED_FETCH_H

#include "planner/spill/order/schedule.h"

/* Fills schedule->bases. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status shared_fetch_plan(const struct job_set *jobs, const struct partition *partition,
                                         uint32_t device_count, struct schedule *schedule, struct error *err);

/* Returns the bytes that a unit of the job reads of its base's shard on a device; 0: none, or the host reads them. */
uint64_t shared_fetch_bytes(const struct job_set *jobs, const struct partition *partition, uint32_t job,
                            uint32_t shard);

#endif
