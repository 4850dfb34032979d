/*
 * Asynchronous pipelines, pipedream and 2bw (models/job/parallel.h has their semantics): the instances of a whole
 * training. Part of planner/parallel/spread.c; nobody else includes this.
 */
#ifndef SPILLWAY_PLANNER_SPREAD_ASYNC_H
#define SPILLWAY_PLANNER_SPREAD_ASYNC_H

#include "planner/parallel/spread_places.h"

/* In which ticks stages pass over a microbatch, when they have their gangs; how many microbatches are under way. */
uint32_t spread_async_tick(struct spread *s);

/* All minibatches of the job, in segments of their own. */
void spread_async_emit(struct spread *s);

/* Seconds that they take without contention: a pipeline that fills, then its slowest stage. */
double spread_async_estimate_s(const struct spread *s);

#endif
