/*
 * Lower bounds on the makespan of any plan for these jobs on this machine, whatever its shards,
 * policy and layout, under the durations of models/cost.h.
 */
#ifndef SPILLWAY_PLANNER_BOUND_H
#define SPILLWAY_PLANNER_BOUND_H

#include "planner/footprint.h"

struct bound {
    double seconds;
    uint32_t kind; /* enum plan_bound_kind */
    char text[256];
};

/* The largest of area, chain and link (see bound.c). */
void bound_makespan(const struct hardware *hardware, const struct job_set *jobs,
                    struct bound *out);

/* Seconds of one minibatch of a job when nothing is recomputed or copied, on its fastest device. */
double bound_minibatch_s(const struct hardware *hardware, const struct job *job);

/* Bytes per second at which all devices together can receive from (or send to) host memory. */
double bound_host_rate(const struct hardware *hardware);

#endif
