/*
 * Lower bounds on the makespan of any plan for these jobs, for any shards, policy and layout, under the durations of
 * models/cost/cost.h. All but the chain's hold for parallel jobs as well.
 */
#ifndef SPILLWAY_PLANNER_SPILL_CUT_BOUND_H
#define SPILLWAY_PLANNER_SPILL_CUT_BOUND_H

#include "planner/spill/cut/footprint.h"

struct bound {
    double seconds; /* for plans that compute each job on one device at a time */
    double any_s;   /* for every plan; at most `seconds` */
    uint32_t kind;  /* enum plan_bound_kind, of `seconds`; only BOUND_CHAIN may be above any_s */
    uint32_t any_kind; /* of any_s */
    char text[256], any_text[256]; /* the proofs */
};

/* Computes the largest of area, chain, link and storage (bound.c); any_s leaves the chain out. `cpu`: the host's
 * processor may have optimizers (hardware_has_cpu()). */
void bound_makespan(const struct hardware *hardware, const struct job_set *jobs, bool cpu,
                    struct bound *out);

/* Returns the bytes per second at which all devices together receive from (or send to) host memory. */
double bound_host_rate(const struct hardware *hardware);

#endif
