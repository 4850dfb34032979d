/* The report of `plan`: one plan in full, or a line for each policy. */
#ifndef SPILLWAY_CLI_REPORTS_CLI_PLAN_REPORT_H
#define SPILLWAY_CLI_REPORTS_CLI_PLAN_REPORT_H

#include "cli/common/cli.h"
#include "cli/ways/cli_outcome.h"
#include "cli/ways/cli_predict.h"
#include "cli/ways/cli_refusal.h"
#include "planner/plan.h"
#include "planner/saturn/saturn.h"
#include "planner/spill/order/order_of_instance.h"
#include "planner/swap/swap.h"

struct cli_plan_report {
    const struct plan *plan;   /* with --policy all: the best one */
    const struct cli_prediction *prediction; /* of `plan` */
    const struct swap_report *swap; /* of `plan`; without jobs if nothing is swapped layer by layer */
    const struct cli_refusal *refusal; /* of `plan` */
    const char *jobs_path, *plan_path; /* plan_path: NULL if the plan was not written */
    const char *policy;        /* as given on the command line, which may be a file; NULL: all */
    const struct order_claim *claim;   /* --schedule-from; else NULL */
    const struct saturn_report *saturn; /* --policy saturn; else NULL */
    int argc;                          /* the command line, for the suggested next command */
    char **argv;
    const struct cli_policy_outcome *outcomes; /* of several ways, the fastest first; else NULL */
    size_t outcome_count;
    size_t best;               /* index into outcomes */
    bool plans_only;           /* leave out outcomes without a plan */
    bool by_default;           /* no policy was given */
    const struct planner_search *search; /* the work of the searches for orders; NULL: none */
    double time_limit_s;       /* of the searches, in seconds; at most 0: none */
};

MUST_CHECK enum status cli_plan_text(struct cli *cli, const struct cli_plan_report *report,
                                     struct error *err);
MUST_CHECK enum status cli_plan_json(struct cli *cli, const struct cli_plan_report *report,
                                     struct error *err);

#endif
