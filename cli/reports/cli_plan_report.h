/* The report of `plan`: one plan, or a line per policy. */
#ifndef SPILLWAY_CLI_REPORTS_CLI_PLAN_REPORT_H
#define SPILLWAY_CLI_REPORTS_CLI_PLAN_REPORT_H

#include "cli/common/cli.h"
#include "cli/ways/cli_keep.h"
#include "cli/ways/cli_outcome.h"
#include "cli/ways/cli_predict.h"
#include "cli/ways/cli_refusal.h"
#include "planner/plan.h"
#include "planner/saturn/saturn.h"
#include "planner/spill/order/order_of_instance.h"
#include "planner/swap/swap.h"

struct cli_plan_report {
    const struct plan *plan;   /* with --policy all: the best */
    const struct cli_prediction *prediction; /* of `plan` */
    const struct swap_report *swap; /* without jobs if no layers are swapped */
    const struct cli_refusal *refusal; /* of `plan` */
    const char *jobs_path, *plan_path; /* plan_path: may be NULL */
    const char *policy;        /* as given; NULL: all */
    const struct order_claim *claim;   /* --schedule-from; else NULL */
    const struct saturn_report *saturn; /* --policy saturn; else NULL */
    int argc;                          /* for the suggested next command */
    char **argv;
    const struct cli_policy_outcome *outcomes; /* of several ways, fastest first; else NULL */
    size_t outcome_count;
    size_t best;               /* index into outcomes */
    bool plans_only;           /* leave out failures */
    bool by_default;           /* no policy was given */
    const struct planner_search *search; /* for orders; may be NULL */
    const struct planner_milp *milp;     /* of policy milp; may be NULL */
    const struct cli_keep *keep;         /* --keep-outputs; else NULL */
    double time_limit_s;       /* of searches; at most 0: none */
};

MUST_CHECK enum status cli_plan_text(struct cli *cli, const struct cli_plan_report *report,
                                     struct error *err);
MUST_CHECK enum status cli_plan_json(struct cli *cli, const struct cli_plan_report *report,
                                     struct error *err);

#endif
