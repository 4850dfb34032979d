/*
 * A way to make a plan. A strategy may call those below it (planner.c, subproblem.c, direct.c), never planner_plan().
 */
#ifndef SPILLWAY_PLANNER_STRATEGY_STRATEGY_H
#define SPILLWAY_PLANNER_STRATEGY_STRATEGY_H

#include "planner/planner_options.h"

struct planner_strategy {
    const char *name;
    /* NULL: always; the last of a table. */
    bool (*applies)(const struct hardware *hardware, const struct job_set *jobs, const struct planner_options *options);
    /* Takes ownership of hardware and jobs, also after an error. */
    enum status (*plan)(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                        struct plan *out, struct error *err);
};

/* Plans by the first strategy of a table that applies. */
MUST_CHECK static inline enum status planner_strategy_plan(const struct planner_strategy *strategies,
                                                           struct hardware *hardware,
                                                           struct job_set *jobs, const struct planner_options *options,
                                                           struct plan *out, struct error *err)
{
    const struct planner_strategy *strategy = strategies;
    while (strategy->applies && !strategy->applies(hardware, jobs, options)) strategy++;
    return strategy->plan(hardware, jobs, options, out, err);
}

#endif
