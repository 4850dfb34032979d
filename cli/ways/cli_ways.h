/*
 * All known ways to run jobs, each planned and simulated: `plan` without --policy and with --policy all.
 *
 *     spilled     shards of all jobs over all devices, by each built-in policy and by the search of policy optimal
 *     resident    states on the devices: in stages on all of them, jobs one after the other, or resident placement, a
 *                 device for each job (planner/strategy/resident.h)
 *     saturn      parallelism, devices and start of each job chosen together (planner/saturn/saturn.h); also with one
 *                 device for each job, which `run` can carry out
 *     parallel    every job over all devices by one of the ways of `mem` (planner/capacity/feasibility_ways.h):
 *                 replicas, ZeRO, pipelines, tensor groups, and states on the host; jobs on the same devices take turns
 *                 by minibatches. Variants, too: pipelines with schedules zb-h1 and interleaved, tensor groups without
 *                 sequence parallelism
 *     activations each policy with each way of keeping activations; the best of them
 *     one device  for a single job, the ways of `mem` on one device or in stages
 *
 * Variants and activations come last. Variants are simulated unless they take twice as long as the best by the
 * planner's clock, other activations if they are faster than the best by that clock.
 *
 * Options that say how states are spilled leave only spilling. If jobs name devices or parallelism, nothing else is
 * tried. A way that fits is not tried with recomputation.
 *
 * Without `thorough`, large inputs are planned in fewer ways, by counts of operations, jobs and devices and not by the
 * clock. Ways that were not tried are outcomes.
 */
#ifndef SPILLWAY_CLI_WAYS_CLI_WAYS_H
#define SPILLWAY_CLI_WAYS_CLI_WAYS_H

#include "cli/ways/cli_candidate.h"

struct cli_ways_options {
    const struct planner_options *fixed; /* the user's; without policy */
    bool every_policy; /* each built-in policy and each candidate of optimal (cli_optimal.h) is an outcome */
    bool thorough;     /* also for large inputs */
    bool runnable;     /* only ways that `run` can carry out */
};

/*
 * Fills `field`. On machines that can run plans (cli_runnable.h) the best plan that `run` can carry out is kept; if
 * jobs exclude that (precision bf16), the fastest, unless `runnable` is set. If only ways over several devices have a
 * plan, the jobs do not fit, unless they ask for that. `field` is zeroed before, and its outcomes are sorted; the
 * caller releases it, also after an error. Errors: as planner_plan() with spilled states; STATUS_INFEASIBLE only if no
 * other way has a plan either.
 */
MUST_CHECK enum status cli_ways(const struct cli_source *source, const struct cli_ways_options *how,
                                struct cli_field *field, struct error *err);

#endif
