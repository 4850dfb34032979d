/* What a folder of checkpoints has for the jobs of a plan, before the rest of them is planned. */
#ifndef SPILLWAY_EXEC_RESUME_H
#define SPILLWAY_EXEC_RESUME_H

#include <stdbool.h>

#include "exec/checkpoint/checkpoint.h"
#include "planner/plan.h"

struct resume_job {
    struct checkpoint_found found; /* step 0: nothing is there, it begins anew */
    bool complete;                 /* all its minibatches are done */
    const char *weights_path;      /* written again from the checkpoint; borrowed; NULL: not */
    const char *best_path;         /* the same of the best evaluation's */
};

/*
 * The newest whole checkpoint of each job, jobs[0 .. plan->jobs.count). With `write_weights`, those of
 * complete jobs go to their weights_out: the run that trained them may have been killed before.
 * Errors: those of checkpoint_find() and of writing weights.
 */
MUST_CHECK enum status resume_look(const struct plan *plan, const char *folder, bool write_weights,
                                   struct resume_job *jobs, struct error *err);

#endif
