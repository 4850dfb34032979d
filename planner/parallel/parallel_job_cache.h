/*
 * Pass cache: reuses passes that a parallel job has emitted before.
 *
 * A pass over a chunk depends only on the variants of the buffers that it accesses, if the chunk's weights and
 * gradients have one place and all replicas are equal. There are few combinations of variants and thousands of
 * microbatches: a pass with a known combination repeats the earlier instance.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_CACHE_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_CACHE_H

#include "planner/parallel/parallel_job_layout.h"

/* Repeats the step's pass if it was emitted before. If false, the caller emits it ... */
bool parallel_job_repeat_pass(struct parallel_job *s, const struct pipeline_step *step);

/* Stores the last appended instance as this pass. */
void parallel_job_cache_pass(struct parallel_job *s, const struct pipeline_step *step);

#endif
