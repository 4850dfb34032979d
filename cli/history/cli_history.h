/*
 * The user's history: $SPILLWAY_HISTORY, else spillway/history.db in $XDG_STATE_HOME or in $HOME/.local/state; none if
 * SPILLWAY_HISTORY is empty or nothing is set.
 */
#ifndef SPILLWAY_CLI_HISTORY_CLI_HISTORY_H
#define SPILLWAY_CLI_HISTORY_CLI_HISTORY_H

#include "cli/common/cli.h"
#include "cli/history/history.h"
#include "cli/ways/cli_predict.h"
#include "planner/plan.h"

/* NULL and 0: unknown or not measured. */
struct cli_outcome {
    const char *file, *policy;
    const struct plan *plan;             /* may be NULL */
    uint64_t plan_fingerprint;           /* 0: computed when needed */
    const struct hardware *hardware;
    uint32_t job_count;                  /* if plan is NULL */
    double predicted_s, predicted_tokens_per_s, measured_s, measured_tokens_per_s;
    bool complete;
};

/* Returns the history's path; *some is false if there is no place for it. Errors: STATUS_LIMIT. */
MUST_CHECK enum status cli_history_path(char path[CLI_PATH_BYTES], bool *some, struct error *err);

/* Adds a record; only warns if it cannot be written. */
void cli_history_keep(struct cli *cli, const struct cli_outcome *outcome);

#endif
