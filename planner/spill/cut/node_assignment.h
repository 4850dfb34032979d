/*
 * The node of each spilled job: its states are in one host's memory, which other nodes' devices cannot reach
 * (planner/plan_hosts.h).
 */
#ifndef SPILLWAY_PLANNER_SPILL_CUT_NODE_ASSIGNMENT_H
#define SPILLWAY_PLANNER_SPILL_CUT_NODE_ASSIGNMENT_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"

static inline bool node_assignment_applies(const struct hardware *hardware, uint32_t devices)
{
    for (uint32_t d = 1; d < devices; d++)
        if (hardware->devices[d].host != hardware->devices[0].host) return true;
    return false;
}

/* Returns the number of nodes with jobs; only nodes with devices count. */
static inline uint32_t node_assignment_count(const struct hardware *hardware, const struct job_set *jobs)
{
    uint32_t hosts = hardware_hosts_in_use(hardware);
    return jobs->count < hosts ? jobs->count : hosts;
}

/*
 * Assigns the longest job first, each to the node with room for its state that finishes it soonest.
 *
 *     devices    number of used devices, from 0 on
 *     seconds    (job count) each job's whole computation
 *     node_of_job    out: (job count)
 */
MUST_CHECK enum status node_assignment_choose(const struct hardware *hardware, uint32_t devices,
                                              const struct job_set *jobs,
                                              const double *seconds, uint32_t *node_of_job, struct error *err);

#endif
