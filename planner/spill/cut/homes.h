/*
 * On which node each job is that is spilled and run on the devices of several: its states are in the memory of one host,
 * which no other node's devices can reach (planner/plan_hosts.h).
 */
#ifndef SPILLWAY_PLANNER_HOMES_H
#define SPILLWAY_PLANNER_HOMES_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"

/* Are the first `devices` on several nodes? */
static inline bool homes_apply(const struct hardware *hardware, uint32_t devices)
{
    for (uint32_t d = 1; d < devices; d++)
        if (hardware->devices[d].host != hardware->devices[0].host) return true;
    return false;
}

/* How many nodes have some of the jobs: each job is on one, and there are no more than have devices. */
static inline uint32_t homes_count(const struct hardware *hardware, const struct job_set *jobs)
{
    uint32_t hosts = hardware_hosts_in_use(hardware);
    return jobs->count < hosts ? jobs->count : hosts;
}

/*
 * Longest job first, each to the node that would be done with it soonest, of those whose memory has room
 * for its state.
 *
 * devices    those from 0 on that are used
 * seconds    (job count) what each computes in all
 * homes      out: (job count)
 *
 * Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status homes_choose(const struct hardware *hardware, uint32_t devices, const struct job_set *jobs,
                                    const double *seconds, uint32_t *homes, struct error *err);

#endif
