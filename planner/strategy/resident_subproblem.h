/* Plans jobs on one device or on a few: spilled, resident, or in between, the way that ends first. */
#ifndef SPILLWAY_PLANNER_STRATEGY_RESIDENT_SUBPROBLEM_H
#define SPILLWAY_PLANNER_STRATEGY_RESIDENT_SUBPROBLEM_H

#include "planner/policy/policies.h"
#include "planner/strategy/subproblem.h"

/* Returns true if the options leave open how states stay on devices. */
bool resident_allowed(const struct planner_options *options);

struct resident_company {
    uint32_t busy_devices; /* devices that work at the same time */
    double contention;     /* factor by which copies take longer because of that (planner_options.contention) */
};
struct resident_company resident_company(const struct hardware *hardware, uint32_t busy_devices);

enum { RESIDENT_WAYS_MAX = 4 };

/* Sets the policies by which the subproblem's jobs can run on a device, in the order of trial; NULL means spilled. Jobs
 * that clip need the host's processor, so their states do not stay. Returns their number. */
size_t resident_ways(const struct job *jobs, const struct subproblem *subproblem,
                     const struct policy *ways[RESIDENT_WAYS_MAX]);

/*
 * Plans a subproblem without parallel jobs as subproblem_plan(); on one device in one of these ways, if the options
 * leave that open. `company`: the whole machine's.
 */
MUST_CHECK enum status resident_subproblem_plan(const struct hardware *all, const struct job *from,
                                                const struct subproblem *subproblem,
                                                const struct resident_company *company,
                                                double host_bytes, const struct planner_options *options,
                                                struct plan *out, struct error *err);

#endif
