/* Sequences in slices of tokens (terapipe, models/job/parallel.h): part of planner/parallel/parallel_job.c, nobody else
 * includes this. */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_SLICES_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_SLICES_H

#include "planner/parallel/parallel_job_layout.h"

/* Slices for a job that leaves them to the planner. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status parallel_job_slices_choose(const struct hardware *hardware, struct job *job, struct error *err);

/*
 * The order of a minibatch: all slices of all microbatches forward, then microbatch by microbatch back, slices from the
 * end. Steps count slices as microbatches, microbatch * slices + slice, and have no times but the end's.
 * Errors: STATUS_NO_MEMORY; STATUS_LIMIT.
 */
MUST_CHECK enum status parallel_job_slices_order(struct parallel_job *s, struct arena *arena, struct error *err);

#endif
