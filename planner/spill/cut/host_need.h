/*
 * The host memory that jobs need, counted in one place for all decisions: the states that go to storage
 * (partition_storage.h), and the jobs that are in host memory at the same time.
 */
#ifndef SPILLWAY_PLANNER_SPILL_CUT_HOST_NEED_H
#define SPILLWAY_PLANNER_SPILL_CUT_HOST_NEED_H

#include "planner/spill/cut/partition.h"

/* Bytes of host buffers, from above: every boundary and gradient is counted, though some never leave their device. */
struct host_need {
    uint64_t states, others;
    uint64_t buffers; /* number of buffers */
};

/* Adds a job's need with all states in host memory. */
MUST_CHECK enum status host_need_add(const struct job_set *jobs, struct footprints *footprints,
                                     const struct partition *partition, uint32_t job, struct host_need *need,
                                     struct error *err);

/* Returns true when the states of all jobs together exceed the memory of the hosts that have the jobs. */
bool host_states_exceed(const struct hardware *hardware, const struct job_set *jobs, uint32_t hosts);

/*
 * Lets jobs take turns in host memory, each in a range of its own while it is under way: fills partition->host. No
 * state may be on storage. Errors: STATUS_INFEASIBLE for a job that no host has room for, with the shortage and a
 * remedy.
 */
MUST_CHECK enum status host_take_turns(const struct hardware *hardware, const struct job_set *jobs,
                                       struct footprints *footprints, struct partition *partition, struct error *err);

#endif
