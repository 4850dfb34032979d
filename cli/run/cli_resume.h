/* Resuming: jobs' progress, and a plan for the rest. */
#ifndef SPILLWAY_CLI_RUN_CLI_RESUME_H
#define SPILLWAY_CLI_RUN_CLI_RESUME_H

#include "base/json/json_in.h"
#include "cli/common/cli.h"
#include "cli/reports/cli_results.h"
#include "planner/plan.h"

struct cli_resume_job {
    uint64_t minibatches;     /* done */
    double first_loss, final_loss;
    bool has_first_loss, has_loss; /* these are finite */
    struct cli_evaluation evaluation;
    const char *weights_path; /* NULL: not complete */
};

struct cli_resume {
    struct json_input *in;    /* owns the strings */
    struct cli_resume_job *jobs; /* per job of the plan; in `arena` */
    struct arena arena;
    uint32_t complete;        /* without remaining minibatches */
    bool begun;               /* some job has a checkpoint */
};

/* Asks the executor for all jobs' progress. `out` is zeroed before; the caller releases it with
 * cli_resume_release(), also after an error. Warns if a job's newest checkpoint is damaged. Errors: the executor's
 * status; it has printed its message. */
MUST_CHECK enum status cli_resume_look(struct cli *cli, const char *plan_path,
                                       const struct plan *plan, const char *folder,
                                       bool write_weights, struct cli_resume *out,
                                       struct error *err);
void cli_resume_release(struct cli_resume *resume);

/*
 * Plans the remaining minibatches, by the same policy on the same machine. The file is read again, because the planner
 * takes jobs over. Some job must not be complete.
 */
MUST_CHECK enum status cli_resume_plan(const char *plan_path, const struct cli_resume *resume,
                                       struct plan *out, struct error *err);

#endif
