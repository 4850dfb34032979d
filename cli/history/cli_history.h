/*
 * The history of this user's plans, simulations and runs: $SPILLWAY_HISTORY, else spillway/history.db in
 * $XDG_STATE_HOME or in $HOME/.local/state. With SPILLWAY_HISTORY empty, or without any of them, none is kept.
 */
#ifndef SPILLWAY_CLI_HISTORY_H
#define SPILLWAY_CLI_HISTORY_H

#include "cli/common/cli.h"
#include "cli/history/history.h"
#include "cli/ways/cli_predict.h"
#include "planner/plan.h"

/* What a verb has come to; what is NULL or 0 is not known, or not measured. */
struct cli_outcome {
    const char *file, *policy;
    const struct plan *plan;             /* NULL: jobs without one */
    uint64_t plan_fingerprint;           /* where it is known; 0: it is computed, if need be */
    const struct hardware *hardware;
    uint32_t job_count;                  /* without a plan */
    double predicted_s, predicted_tokens_per_s, measured_s, measured_tokens_per_s;
    bool complete;
};

/* false: there is no place for one. Errors: STATUS_LIMIT. */
MUST_CHECK enum status cli_history_path(char path[CLI_PATH_BYTES], bool *some, struct error *err);

/* Add a record of it. A history that cannot be written is a warning and no more: the work is done. */
void cli_history_keep(struct cli *cli, const struct cli_outcome *outcome);

#endif
