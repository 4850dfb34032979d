/* Sequences in slices of tokens (terapipe, models/job/parallel.h). */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_SLICES_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_SLICES_H

#include "planner/parallel/parallel_job_layout.h"

MUST_CHECK enum status parallel_job_slices_choose(const struct hardware *hardware, struct job *job, struct error *err);

/*
 * Makes a minibatch's order: all slices forward, then backward microbatch by microbatch, each from its last slice to
 * its first. Steps count slices as microbatches, microbatch * slices + slice. Only the last step has a time. Errors:
 * STATUS_LIMIT.
 */
MUST_CHECK enum status parallel_job_slices_order(struct parallel_job *s, struct arena *arena, struct error *err);

#endif
