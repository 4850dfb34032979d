/*
 * Passes that a parallel job has had before: of planner/parallel/parallel_job_units.c. Nobody else includes this.
 *
 * What a pass over a run is depends on the variants of what it accesses and on nothing else, where the run's weights
 * and gradients have one place and one replica is as another. There are few combinations of variants, and
 * thousands of microbatches: a pass that comes with a known combination is the instance that it was, once more.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_CACHE_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_CACHE_H

#include "planner/parallel/parallel_job_layout.h"

/* The step's pass as it was emitted before. False: it is to be emitted ... */
bool parallel_job_repeat_pass(struct parallel_job *s, const struct pipeline_step *step);

/* ... and it is the instance appended last. */
void parallel_job_cache_pass(struct parallel_job *s, const struct pipeline_step *step);

#endif
