/* Lower bounds on the makespan of instances with streams (planner/solve/instance/dispatch_streams.h). */
#ifndef SPILLWAY_PLANNER_SOLVE_BOUNDS_STREAM_BOUND_H
#define SPILLWAY_PLANNER_SOLVE_BOUNDS_STREAM_BOUND_H

#include "planner/solve/bounds/instance_bound.h"

/*
 * Sets the bounds that apply, in ticks; the others stay.
 *
 *     area     all computation over the devices, after the shortest copy in
 *     link     all copies in over the streams in, before the shortest rest
 *     out      all copies out over the streams out, after the shortest copy in and computation
 *     memory   a task has a buffer while it is copied in, computes and is copied out
 *     host     all work of the host's processor
 *     chain    a job without others; a shard's next minibatch waits for its update
 */
void stream_bound(const struct instance *in, int64_t value[INSTANCE_BOUND_COUNT]);

/* Returns the least ticks from the start of the job's task to the end of all of its later tasks. */
int64_t stream_bound_tail(const struct instance *in, uint32_t job, uint32_t position);

/* Returns the earliest start of the job's task. */
int64_t stream_bound_head(const struct instance *in, uint32_t job, uint32_t position);

#endif
