/*
 * All known ways to run jobs on a machine, each planned and simulated, with the best kept. `plan` uses them without
 * --policy and with --policy all.
 *
 *     spilled     shards of all jobs over all devices, by each built-in policy and by the search of policy optimal
 *     resident    states on the devices: in stages on all of them, jobs one after the other, or resident placement, a
 *                 device for each job (planner/strategy/resident.h)
 *     saturn      parallelism, devices and start of each job chosen together (planner/saturn/saturn.h); also with one
 *                 device for each job, which `run` can carry out
 *     parallel    every job over all devices by one of the ways of `mem` (planner/capacity/feasibility_ways.h):
 *                 replicas, ZeRO, pipelines, tensor groups, and states on the host; jobs on the same devices take turns
 *                 by minibatches
 *     one device  for a single job, the ways of `mem` on one device or in stages
 *
 * If options say how states are spilled, only spilling by policies and the search remain. If jobs name devices or
 * parallelism themselves, nothing else is tried. If a way that keeps activations fits, it is not tried with
 * recomputation.
 *
 * Without `thorough`, large inputs are planned in fewer ways. The choice depends on counts of operations, jobs and
 * devices and not on the clock, so equal inputs give equal plans. Ways that were not tried are outcomes that say so.
 */
#ifndef SPILLWAY_CLI_WAYS_CLI_WAYS_H
#define SPILLWAY_CLI_WAYS_CLI_WAYS_H

#include "cli/ways/cli_candidate.h"

struct cli_ways_options {
    const struct planner_options *fixed; /* given by the user; the policy is ignored */
    bool every_policy; /* each built-in policy is an outcome, and so is each candidate of optimal (cli_optimal.h) */
    bool thorough;     /* try all ways, even for large inputs */
    bool runnable;     /* try only ways that `run` can carry out */
};

/*
 * Fills `field` with all ways. On machines that can run plans (cli_runnable.h) the best plan that `run` can carry out
 * is kept. If `run` can carry out none because of the jobs themselves (such as precision bf16), the fastest plan is
 * kept, unless `runnable` is set. If only ways that parallel jobs over devices have a plan, the jobs do not fit, unless
 * the jobs ask for that parallelism. `field` is zeroed before, and its outcomes are sorted; the caller releases it,
 * also after an error. Errors: as planner_plan() with spilled states; STATUS_INFEASIBLE only if no other way has
 * a plan either.
 */
MUST_CHECK enum status cli_ways(const struct cli_source *source, const struct cli_ways_options *how,
                                struct cli_field *field, struct error *err);

#endif
