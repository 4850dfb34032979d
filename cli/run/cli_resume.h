/*
 * Resuming from checkpoints: the progress of each job of a plan, and a plan for the remaining minibatches.
 */
#ifndef SPILLWAY_CLI_RUN_CLI_RESUME_H
#define SPILLWAY_CLI_RUN_CLI_RESUME_H

#include "base/json/json_in.h"
#include "cli/common/cli.h"
#include "cli/reports/cli_results.h"
#include "planner/plan.h"

struct cli_resume_job {
    uint64_t minibatches;     /* done */
    double first_loss, final_loss;
    bool has_loss;            /* both losses are finite */
    struct cli_evaluation evaluation;
    const char *weights_path; /* NULL: not written, because the job is not complete */
};

struct cli_resume {
    struct json_input *in;    /* owns the strings */
    struct cli_resume_job *jobs; /* per job of the plan; in `arena` */
    struct arena arena;
    uint32_t complete;        /* jobs without remaining minibatches */
    bool begun;               /* some job has a checkpoint */
};

/* Asks the executor for the progress of all jobs. `out` is zeroed before; the caller releases it with
 * cli_resume_release(), also after an error. Warns if the newest checkpoint of a job is damaged. Errors: the executor's
 * status; the executor has printed its message. */
MUST_CHECK enum status cli_resume_look(struct cli *cli, const char *plan_path,
                                       const struct plan *plan, const char *folder,
                                       bool write_weights, struct cli_resume *out,
                                       struct error *err);
void cli_resume_release(struct cli_resume *resume);

/*
 * Makes a plan for the remaining minibatches of a plan's jobs, by the same policy on the same machine. The plan is read
 * from its file again, because the planner takes its jobs over. At least one job must not be complete.
 */
MUST_CHECK enum status cli_resume_plan(const char *plan_path, const struct cli_resume *resume,
                                       struct plan *out, struct error *err);

#endif
