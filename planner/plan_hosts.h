/*
 * A plan's use of a machine's hosts, one per node (models/hardware/hardware.h).
 *
 * A plan does not name hosts: a host buffer is at the host of the device whose tasks use it, a parallel job's each
 * rank's own at the rank's host. So states are used on devices of one node only. Each host has its own batch, loss, and
 * boundaries that a resident job's stages hand on over host memory (their way over the network is not timed).
 */
#ifndef SPILLWAY_PLANNER_PLAN_HOSTS_H
#define SPILLWAY_PLANNER_PLAN_HOSTS_H

#include "planner/plan.h"

struct plan_host_use {
    uint64_t memory_bytes; /* host buffers, ranges of jobs, and the arenas of staged buffers */
    uint64_t stored_bytes;
};

/*
 * uses: out, hardware_host_count() entries; with one host the same as plan_host_bytes() and plan_stored_bytes().
 *
 * The plan's tables (tasks, gangs, slots) must be sound. Errors: STATUS_CHECK for a buffer that two hosts would
 * have, STATUS_LIMIT for sums above 2^64.
 */
MUST_CHECK enum status plan_host_uses(const struct plan *plan, struct plan_host_use *uses, struct error *err);

/*
 * offsets: out, device_count + hosts entries: where the staged buffers of the rank on each device begin in
 * plan_staged_bytes(), and then where each host's other users' begin.
 *
 * Errors as plan_host_uses().
 */
MUST_CHECK enum status plan_host_staged(const struct plan *plan, uint64_t *offsets, struct error *err);

/* Returns the use of the fullest host, by memory, then by storage; UINT64_MAX in both for a plan that plan_host_uses()
 * refuses. */
struct plan_host_use plan_host_fullest(const struct plan *plan);

/* Finds the largest number of jobs in host memory at a time: all jobs, or fewer when jobs take turns. */
MUST_CHECK enum status plan_host_jobs(const struct plan *plan, uint32_t *out, struct error *err);

/* Checks that each host has room. Errors: STATUS_INFEASIBLE, naming the node if there are several; also for a buffer
 * that two hosts would have. */
MUST_CHECK enum status plan_host_fits(const struct plan *plan, struct error *err);

#endif
