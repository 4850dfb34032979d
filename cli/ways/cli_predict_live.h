/* The prediction of a plan that is dispatched live. */
#ifndef SPILLWAY_CLI_CLI_PREDICT_LIVE_H
#define SPILLWAY_CLI_CLI_PREDICT_LIVE_H

#include "cli/ways/cli_predict.h"

/*
 * As cli_predict(), asking `policy`, a name or a file (planner/policy/policy_load.h). A file is tried in a process of
 * its own first, so that one that crashes or loops is an error. how->seed is the policy's as well, and how->live is
 * not looked at. Errors: those of cli_predict() too; STATUS_BAD_INPUT for a policy that is unknown, breaks a rule, or
 * whose process fails.
 */
MUST_CHECK enum status cli_predict_live(const struct plan *plan, const struct hardware *hardware, const char *policy,
                                        const struct cli_predict_options *how, struct cli_prediction *out,
                                        struct error *err);

#endif
