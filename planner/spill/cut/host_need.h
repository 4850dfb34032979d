/*
 * The host memory that jobs need, counted once for all decisions: the states on storage (partition_storage.h), and the
 * jobs in host memory at once.
 */
#ifndef SPILLWAY_PLANNER_SPILL_CUT_HOST_NEED_H
#define SPILLWAY_PLANNER_SPILL_CUT_HOST_NEED_H

#include "planner/spill/cut/partition.h"

/* Bytes of host buffers, from above: boundaries and gradients that never leave their device count, too. */
struct host_need {
    uint64_t states, others;
    uint64_t buffers; /* number of buffers */
};

MUST_CHECK enum status host_need_add(const struct job_set *jobs, struct footprints *footprints,
                                     const struct partition *partition, uint32_t job, struct host_need *need,
                                     struct error *err);

/* Returns true if all states together exceed the memory of the hosts with jobs. */
bool host_states_exceed(const struct hardware *hardware, const struct job_set *jobs, uint32_t hosts);

/*
 * Fills partition->host: jobs take turns in host memory, each in its own range. No state may be on storage. Errors:
 * STATUS_INFEASIBLE for a job that fits no host, with the shortage and a remedy.
 */
MUST_CHECK enum status host_take_turns(const struct hardware *hardware, const struct job_set *jobs,
                                       struct footprints *footprints, struct partition *partition, struct error *err);

#endif
