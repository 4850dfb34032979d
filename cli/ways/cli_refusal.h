/*
 * Would `run` carry out a new plan? The executor's checks answer: it stops before it takes memory
 * (exec/command_check.c). Reasons are `run`'s.
 */
#ifndef SPILLWAY_CLI_WAYS_CLI_REFUSAL_H
#define SPILLWAY_CLI_WAYS_CLI_REFUSAL_H

#include "cli/common/cli.h"
#include "planner/plan.h"

struct cli_refusal {
    bool asked;   /* false: no executor, another machine, or the plan is neither kept nor shown */
    bool refused;
    char text[sizeof((struct error *)0)->text]; /* when refused */
};

/* Asks about a plan. `path`: its file; may be NULL. Then, with --json or --quiet, only refusals of every executor
 * are checked, because programs may plan a thousand times. Errors: STATUS_IO; a refusal is not an error. */
MUST_CHECK enum status cli_refusal_ask(const struct cli *cli, const struct plan *plan, const char *path,
                                       struct cli_refusal *out, struct error *err);

#endif
