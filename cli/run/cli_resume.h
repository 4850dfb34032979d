/*
 * Going on from checkpoints: how far each job of a plan is, and a plan for the rest.
 */
#ifndef SPILLWAY_CLI_RESUME_H
#define SPILLWAY_CLI_RESUME_H

#include "base/json/json_in.h"
#include "cli/common/cli.h"
#include "cli/reports/cli_results.h"
#include "planner/plan.h"

struct cli_resume_job {
    uint64_t minibatches;     /* done */
    double first_loss, final_loss;
    bool has_loss;            /* they are finite */
    struct cli_evaluation evaluation;
    const char *weights_path; /* written, since the job is complete; NULL: not */
};

struct cli_resume {
    struct json_input *in;    /* owns the strings */
    struct cli_resume_job *jobs; /* per job of the plan; in `arena` */
    struct arena arena;
    uint32_t complete;        /* jobs with nothing left */
    bool begun;               /* some job has a checkpoint */
};

/* Zeroed struct in; release it with cli_resume_release(), also after an error. Warns where the newest
 * checkpoint of a job is damaged. Errors: as the executor has it; its message is above. */
MUST_CHECK enum status cli_resume_look(struct cli *cli, const char *plan_path,
                                       const struct plan *plan, const char *folder,
                                       bool write_weights, struct cli_resume *out,
                                       struct error *err);
void cli_resume_release(struct cli_resume *resume);

/*
 * A plan for what is left of a plan's jobs, by the same policy on the same machine. The plan is read
 * again from its file, for the planner takes over what it plans. At least one job must not be complete.
 */
MUST_CHECK enum status cli_resume_plan(const char *plan_path, const struct cli_resume *resume,
                                       struct plan *out, struct error *err);

#endif
