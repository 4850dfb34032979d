/*
 * Node assignment: the node of each job that is spilled and run on the devices of several nodes: its states are in the memory
 * of one host, which no other node's devices can reach (planner/plan_hosts.h).
 */
#ifndef SPILLWAY_PLANNER_NODE_ASSIGNMENT_H
#define SPILLWAY_PLANNER_NODE_ASSIGNMENT_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"

/* Are the first `devices` on several nodes? */
static inline bool node_assignment_applies(const struct hardware *hardware, uint32_t devices)
{
    for (uint32_t d = 1; d < devices; d++)
        if (hardware->devices[d].host != hardware->devices[0].host) return true;
    return false;
}

/* How many nodes have some of the jobs: each job is on one, and there are no more than have devices. */
static inline uint32_t node_assignment_count(const struct hardware *hardware, const struct job_set *jobs)
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
 * nodes      out: (job count)
 *
 * Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status node_assignment_choose(const struct hardware *hardware, uint32_t devices, const struct job_set *jobs,
                                              const double *seconds, uint32_t *nodes, struct error *err);

#endif
