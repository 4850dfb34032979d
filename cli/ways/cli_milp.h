/* `plan --policy milp`: the best cut that the search finds, its order improved by GLPK
 * (planner/spill/order/order_milp.h). */
#ifndef SPILLWAY_CLI_WAYS_CLI_MILP_H
#define SPILLWAY_CLI_WAYS_CLI_MILP_H

#include "cli/ways/cli_candidate.h"

/*
 * Fills `field` with the cuts of cli_optimal_cuts() and with the best of them by policy milp, so the kept plan is no
 * slower than theirs by simulation. field->milp: the report. options->policy is ignored; options->iterations are
 * programs for GLPK; options->time_limit_s is for the call, half of it for the cuts. Errors: as cli_optimal_cuts() and
 * cli_field_check().
 */
MUST_CHECK enum status cli_milp(const struct cli_source *source, const struct planner_options *options,
                                struct cli_field *field, struct error *err);

#endif
