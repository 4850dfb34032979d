/*
 * Pass cache. With one place for a chunk's weights and gradients and equal replicas, a pass depends only on the
 * variants of its buffers. There are few combinations and thousands of microbatches: a known combination repeats the
 * earlier task.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_CACHE_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_CACHE_H

#include "planner/parallel/parallel_job_layout.h"

/* Repeats the step's pass if it was emitted before; if false, the caller emits it ... */
bool parallel_job_repeat_pass(struct parallel_job *s, const struct pipeline_step *step);

/* Stores the last appended task as this pass. */
void parallel_job_cache_pass(struct parallel_job *s, const struct pipeline_step *step);

#endif
