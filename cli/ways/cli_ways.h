/*
 * All ways that we have to run jobs on a machine, each planned and simulated, the best kept: what `plan` does where no
 * policy is asked for, and `--policy all`.
 *
 *     streamed    shards of all jobs over all devices, by each built-in policy, and by the search of policy optimal
 *     resident    states on the devices: in stages on all of them, or jobs one after the other
 *     settled     jobs that each have a device for themselves (planner/strategy/settle.h)
 *     saturn      parallelism, devices and start of each job chosen together (planner/saturn/saturn.h); the same with one
 *                 device for each job, which can be run
 *     spread      every job over all devices by one of the ways of `mem` (planner/capacity/fit_ways.h): replicas, ZeRO, pipelines,
 *                 tensor groups, and states on the host; jobs on the same devices take turns by minibatches
 *     one device  of a single job the ways of `mem` on one device or in stages
 *
 * Options that say how states are streamed leave streaming by policies and the search. What jobs say themselves (devices,
 * parallelism) is done, and nothing else is tried. A way that keeps activations and fits is not tried with recomputation.
 *
 * Without `thorough` large inputs are planned in fewer ways, by counts of operations, jobs and devices and not by the
 * clock, so that equal input gives an equal plan; what was not tried is an outcome that says so.
 */
#ifndef SPILLWAY_CLI_WAYS_H
#define SPILLWAY_CLI_WAYS_H

#include "cli/ways/cli_candidate.h"

struct cli_ways_options {
    const struct planner_options *fixed; /* by the user; the policy is ignored */
    bool every_policy; /* each built-in policy is an outcome, optimal with all that it does (cli_optimal.h) */
    bool thorough;     /* however large the input is */
    bool runnable;     /* only what `run` can carry out */
};

/*
 * On machines that plans are run on (cli_runnable.h) the best plan that `run` can carry out is kept. Where only ways that
 * spread jobs over devices have a plan, the jobs do not fit, unless they say themselves how they are spread. Where `run` can
 * carry out none because of the jobs themselves (such as precision bf16), the fastest is kept, unless `runnable` is set.
 * *field is zeroed before, and its outcomes sorted; the caller releases it, also after an error.
 * Errors: those of planner_plan() of streamed states, STATUS_INFEASIBLE only where there is no plan of another way either.
 */
MUST_CHECK enum status cli_ways(const struct cli_source *source, const struct cli_ways_options *how,
                                struct cli_field *field, struct error *err);

#endif
