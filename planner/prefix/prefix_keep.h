/* From jobs to jobs that keep outputs: takers and, after all others, the jobs that make what these take. */
#ifndef SPILLWAY_PLANNER_PREFIX_PREFIX_KEEP_H
#define SPILLWAY_PLANNER_PREFIX_PREFIX_KEEP_H

#include "planner/prefix/prefix_choose.h"

/* Sets `outputs` of the jobs that take, and appends those that make: NAME-outputs, after the first job that takes them.
 * The jobs stay as they are if nothing is kept. Errors: STATUS_NO_MEMORY; STATUS_LIMIT for too many jobs. */
MUST_CHECK enum status prefix_keep(const struct prefix_problem *problem, const struct prefix_choice *choice,
                                   struct job_set *jobs, struct error *err);

/* Takes back what prefix_keep() has done. */
void prefix_forget(struct job_set *jobs);

#endif
