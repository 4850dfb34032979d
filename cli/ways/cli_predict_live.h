/* Live dispatch. */
#ifndef SPILLWAY_CLI_WAYS_CLI_PREDICT_LIVE_H
#define SPILLWAY_CLI_WAYS_CLI_PREDICT_LIVE_H

#include "cli/ways/cli_predict.h"

/*
 * Works as cli_predict(), with `policy`, a name or a file (planner/policy/policy_load.h), asked while the plan runs. A
 * file is tried in a child process first. how->seed is also the policy's; how->live is ignored. Errors: as
 * cli_predict(); STATUS_BAD_INPUT for a policy that is unknown, breaks a rule, or whose process fails.
 */
MUST_CHECK enum status cli_predict_live(const struct plan *plan, const struct hardware *hardware, const char *policy,
                                        const struct cli_predict_options *how, struct cli_prediction *out,
                                        struct error *err);

#endif
