/* The plan that is made where no policy is asked for. */
#ifndef SPILLWAY_CLI_DEFAULT_H
#define SPILLWAY_CLI_DEFAULT_H

#include "cli/cli_candidate.h"

extern const char cli_settled_name[]; /* of plans whose jobs settle, in tables of policies */

/*
 * What planner_plan() makes with these options and `settle`, whatever they say of that; and where that is
 * another plan than the streamed one, the one of these two that is simulated to end first: the planner's
 * clock knows of less that is in each other's way.
 *
 * field    zeroed in; `kept` is the plan. Empty otherwise where there was nothing to choose, and only if
 *          `predict` is what is kept simulated then. The caller releases it, also after an error.
 *
 * Errors: those of cli_candidate_make().
 */
MUST_CHECK enum status cli_default_make(const struct cli_source *source,
                                        const struct planner_options *options, bool predict,
                                        struct cli_field *field, struct error *err);

#endif
