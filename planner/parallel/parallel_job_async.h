/*
 * Asynchronous pipelines, pipedream and 2bw (models/job/parallel.h has their semantics): the instances of a whole
 * training. Part of planner/parallel/parallel_job.c; nobody else includes this.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_ASYNC_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_ASYNC_H

#include "planner/parallel/parallel_job_layout.h"

/* In which ticks stages pass over a microbatch, when they have their gangs; how many microbatches are under way. */
uint32_t parallel_job_async_tick(struct parallel_job *s);

/* All minibatches of the job, in segments of their own. */
void parallel_job_async_emit(struct parallel_job *s);

/* Seconds that they take without contention: a pipeline that fills, then its slowest stage. */
double parallel_job_async_estimate_s(const struct parallel_job *s);

#endif
