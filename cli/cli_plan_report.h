/* What `plan` prints: one plan in full, or a line for each policy. */
#ifndef SPILLWAY_CLI_PLAN_REPORT_H
#define SPILLWAY_CLI_PLAN_REPORT_H

#include "cli/cli.h"
#include "cli/cli_predict.h"
#include "cli/cli_refusal.h"
#include "planner/order_of_instance.h"
#include "planner/plan.h"
#include "planner/saturn.h"
#include "planner/swap.h"

enum { CLI_POLICIES_MAX = 64, CLI_OUTCOME_NAME_BYTES = 96 };

/* What became of one policy, or of one cut. */
struct cli_policy_outcome {
    char policy[CLI_OUTCOME_NAME_BYTES];
    bool feasible;
    char reason[1024]; /* why not */
    double makespan_s, estimated_makespan_s, lower_bound_s;
    double tokens_per_s, samples_per_s, compute_share;
};

struct cli_plan_report {
    const struct plan *plan;   /* with --policy all: the best one */
    const struct cli_prediction *prediction; /* of `plan` */
    const struct swap_report *swap; /* of `plan`; without jobs where nothing is swapped layer by layer */
    const struct cli_refusal *refusal; /* of `plan` */
    const char *jobs_path, *plan_path; /* plan_path: NULL when it was not written */
    const char *policy;        /* as given on the command line, which may be a file; NULL: all */
    const struct order_claim *claim;   /* --schedule-from; else NULL */
    const struct saturn_report *saturn; /* --policy saturn; else NULL */
    int argc;                          /* the command line, for the next one */
    char **argv;
    const struct cli_policy_outcome *outcomes; /* --policy all; else NULL */
    size_t outcome_count;
    size_t best;               /* index into outcomes */
    bool fitting_only;         /* leave out what does not fit */
};

MUST_CHECK enum status cli_plan_text(struct cli *cli, const struct cli_plan_report *report,
                                     struct error *err);
MUST_CHECK enum status cli_plan_json(struct cli *cli, const struct cli_plan_report *report,
                                     struct error *err);

#endif
