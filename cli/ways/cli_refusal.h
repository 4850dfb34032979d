/*
 * Asks whether `run` would carry out a plan that was just made. The executor's own checks answer: it is started as for
 * a run and stops before it takes memory (exec/command_check.c). Reasons are the messages of `run`.
 */
#ifndef SPILLWAY_CLI_WAYS_CLI_REFUSAL_H
#define SPILLWAY_CLI_WAYS_CLI_REFUSAL_H

#include "cli/common/cli.h"
#include "planner/plan.h"

struct cli_refusal {
    bool asked;   /* false: no executor is found, the plan is for another machine, or it is neither kept nor shown */
    bool refused;
    char text[sizeof((struct error *)0)->text]; /* the reason, when refused */
};

/* Asks about a plan. `path`: the file of the plan; NULL when it has none. Without a file and with --json or --quiet,
 * only the refusals that hold for every executor are checked, because programs may plan a thousand times. Errors:
 * STATUS_IO, STATUS_NO_MEMORY; a refusal is not an error. */
MUST_CHECK enum status cli_refusal_ask(const struct cli *cli, const struct plan *plan, const char *path,
                                       struct cli_refusal *out, struct error *err);

#endif
