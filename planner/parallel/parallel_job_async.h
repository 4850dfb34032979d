/* Asynchronous pipelines, pipedream and 2bw (models/job/parallel.h). */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_ASYNC_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_ASYNC_H

#include "planner/parallel/parallel_job_layout.h"

/* Sets the stages' ticks; the gangs exist. Returns the number of microbatches in flight. */
uint32_t parallel_job_async_tick(struct parallel_job *s);

/* Emits all minibatches, in segments of their own. */
void parallel_job_async_emit(struct parallel_job *s);

/* Returns the seconds of all minibatches without contention: filling, then the slowest stage. */
double parallel_job_async_estimate_s(const struct parallel_job *s);

#endif
