/*
 * Seconds to bring resident states to their devices and back, for every way of running a job.
 *
 * States are in host memory before a job's first minibatch and after its last. LOAD and STORE units copy the states of
 * a resident job and of shards that stay. A parallel job's LOADs and STOREs are computations without work; each lasts
 * as long as its stage's copies would, while all the job's devices copy and share the links to the host. Spilled shards
 * have no such units. With the software stack "frameworks" (enum hardware_stack) these take no time: iterations are
 * timed with states in place.
 */
#ifndef SPILLWAY_PLANNER_PLAN_CHARGES_H
#define SPILLWAY_PLANNER_PLAN_CHARGES_H

#include "base/arena.h"
#include "models/cost/cost.h"
#include "models/job/job.h"

/* Returns true when charges count on this machine. */
static inline bool plan_charges_count(const struct hardware *hardware)
{
    return hardware->stack == STACK_SPILLWAY;
}

/* Returns the bytes of weights and states that each device of a parallel job's stage holds throughout. */
uint64_t plan_charges_bytes(const struct job *job, uint32_t stage);

/* Adds the device's copy to the links of its path. link_bytes: one entry for each link. */
void plan_charges_add(const struct hardware *hardware, uint32_t device, uint64_t bytes, double *link_bytes);

/* Sets the bytes of these links to 0. */
void plan_charges_clear(const struct hardware *hardware, uint32_t device, double *link_bytes);

/* Returns the seconds of the device's copy while all copies in `link_bytes` go in the same direction; 0 for 0 bytes. */
double plan_charges_s(const struct hardware *hardware, uint32_t device, enum copy_direction direction, uint64_t bytes,
                 const double *link_bytes);

/* Computes the seconds of the devices of the first stage of a parallel job, numbered from parallel.first_device on. */
MUST_CHECK enum status plan_charges_first_stage(struct arena *arena, const struct hardware *hardware,
                                                const struct job *job,
                                           double *in_s, double *out_s, struct error *err);

#endif
