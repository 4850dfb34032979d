/* The jobs that share a base (models/jobs/job_base.h). */
#ifndef SPILLWAY_PLANNER_SPILL_SHARED_SHARED_BASE_H
#define SPILLWAY_PLANNER_SPILL_SHARED_SHARED_BASE_H

#include "models/job/job.h"

/* Lets all jobs share their bases with those that have equal ones: sets `shares_base` and `base_owner`. Errors:
 * STATUS_BAD_INPUT, naming a job that freezes nothing or is parallel. */
MUST_CHECK enum status shared_base_mark(struct job_set *jobs, struct error *err);

/* Sets *out[j], in the arena, to the first job with the base of job j. */
MUST_CHECK enum status shared_base_owners(const struct job_set *jobs, struct arena *arena, uint32_t **out,
                                          struct error *err);

#endif
