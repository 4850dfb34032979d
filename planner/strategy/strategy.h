/*
 * A way to make a plan. A strategy may call those below it (planner.c is above part.c, which is above direct.c), never
 * planner_plan().
 */
#ifndef SPILLWAY_PLANNER_STRATEGY_H
#define SPILLWAY_PLANNER_STRATEGY_H

#include "planner/planner_options.h"

struct planner_strategy {
    const char *name;
    bool (*applies)(const struct hardware *hardware, const struct job_set *jobs, const struct planner_options *options);
    /* Takes hardware and jobs over, also on failure. */
    enum status (*plan)(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                        struct plan *out, struct error *err);
};

/* For the last strategy of a table. */
bool planner_strategy_always(const struct hardware *hardware, const struct job_set *jobs,
                             const struct planner_options *options);

#endif
