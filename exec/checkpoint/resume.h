/* Reads the checkpoints of a plan's jobs before their remaining work is planned. */
#ifndef SPILLWAY_EXEC_CHECKPOINT_RESUME_H
#define SPILLWAY_EXEC_CHECKPOINT_RESUME_H

#include <stdbool.h>

#include "exec/checkpoint/checkpoint.h"
#include "planner/plan.h"

struct resume_job {
    struct checkpoint_found found; /* step 0: no checkpoint */
    bool complete;                 /* all its minibatches are complete */
    const char *weights_path;      /* written again from the checkpoint; borrowed; may be NULL */
    const char *best_path;
};

/*
 * Finds the newest undamaged checkpoint of each job, jobs[0 .. plan->jobs.count). With
 * `write_weights`, writes the weights_out of complete jobs: the run that trained them may have been
 * killed before it did so.
 * Errors: as checkpoint_find() and as writing weights.
 */
MUST_CHECK enum status resume_look(const struct plan *plan, const char *folder, bool write_weights,
                                   struct resume_job *jobs, struct error *err);

#endif
