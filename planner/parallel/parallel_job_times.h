/* Seconds of a parallel job's passes on an idle machine, for its schedule. */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_TIMES_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_TIMES_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"
#include "planner/parallel/pipeline/pipeline.h"

struct parallel_job_times {
    struct pipeline_times *chunks; /* parallel_chunks() entries; passes of slices: the mean */
    double *updates_s;           /* parallel_chunks() entries: the update of each chunk ... */
    double update_s;             /* ... and the longest, with the data-parallel collectives for it and
                                    `joined_s` */
    double joined_s;             /* sum of a tied table's gradients */
    double exchange_s;           /* a minibatch's data-parallel collectives during passes, if ranks have shares of
                                  * gradients or weights; the stage with most */
    double lane_s;               /* with states or weights on hosts: a minibatch's work of a device's link to its
                                  * host, or of the host's processor, whichever takes longer, on the stage with most;
                                  * else 0 */
    double compute_s;            /* a minibatch's computation on the busiest stage, without collectives */
    uint32_t busiest;            /* stage */
};

/* Fills *out, which lives as long as `arena`. Errors: STATUS_BAD_INPUT without a path between devices that exchange
 * data. */
MUST_CHECK enum status parallel_job_times_make(struct arena *arena, const struct hardware *hardware,
                                               const struct job *job, struct parallel_job_times *out,
                                               struct error *err);

#endif
