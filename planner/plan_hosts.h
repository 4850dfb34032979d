/*
 * What the hosts of a machine have of a plan, one for each node (models/hardware/hardware.h).
 *
 * Nothing says so in a plan: a host buffer is at the host of the device whose instances use it, and of a
 * parallel job each rank's own at that of the rank's device. So states are used on devices of one node alone. What a
 * minibatch is read from, its loss, and what stages of a resident job hand on over host memory (that this
 * crosses the network between nodes is not timed) are each host's own.
 */
#ifndef SPILLWAY_PLANNER_PLAN_HOSTS_H
#define SPILLWAY_PLANNER_PLAN_HOSTS_H

#include "planner/plan.h"

struct plan_host_use {
    uint64_t memory_bytes; /* host buffers, ranges of jobs, and the arenas of staged buffers */
    uint64_t stored_bytes;
};

/*
 * uses   out: hardware_host_count() of them; of one host what plan_host_bytes() and plan_stored_bytes() say
 *
 * Of a plan whose tables are sound: instances, gangs, slots. Errors: STATUS_CHECK for a buffer that two hosts would
 * have, STATUS_LIMIT for sums above 2^64, STATUS_NO_MEMORY.
 */
MUST_CHECK enum status plan_host_uses(const struct plan *plan, struct plan_host_use *uses, struct error *err);

/* That of the fullest host, by its memory, then by its storage: whoever has no room for these has none for
 * the plan. A plan that plan_host_uses() refuses has UINT64_MAX of both. */
struct plan_host_use plan_host_fullest(const struct plan *plan);

/* How many jobs of the plan have host memory at a time, at most: all of them, or fewer where jobs take turns. */
MUST_CHECK enum status plan_host_jobs(const struct plan *plan, uint32_t *out, struct error *err);

/* Does each host have room for its part? Errors: STATUS_INFEASIBLE, naming the node where there are
 * several; also for a buffer that two would have, such as a resident job's tied table. */
MUST_CHECK enum status plan_host_fits(const struct plan *plan, struct error *err);

#endif
