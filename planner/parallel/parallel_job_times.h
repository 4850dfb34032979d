/* Seconds of the passes of a parallel job on an idle machine, from which its schedule is made. */
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
    double joined_s;             /* the sum of a tied table's gradients, between the ends of a pipeline */
    double exchange_s;           /* data-parallel collectives of a minibatch during passes, if ranks have shares of
                                    gradients or weights; of the stage with most */
    double lane_s;               /* where states or weights are on hosts: what a device's link to its host, or the
                                    host's processor, does for a minibatch, whichever takes longer, on the stage with
                                    most; else 0 */
    double compute_s;            /* computation of a minibatch on the busiest stage, without collectives */
    uint32_t busiest;            /* stage */
};

/* Fills *out, which lives as long as `arena`. Errors: STATUS_BAD_INPUT if two devices that exchange data do not
 * reach each other. */
MUST_CHECK enum status parallel_job_times_make(struct arena *arena, const struct hardware *hardware,
                                               const struct job *job, struct parallel_job_times *out, struct error *err);

#endif
