/*
 * `plan --policy optimal`: cuts and orders chosen together.
 *
 * The order search (planner/spill/order/order_search.h) is given cut after cut: first the planner's own choice, then
 * cuts that differ from the best so far in one respect (weight buffers for spilled state, activations kept for backward
 * passes, states that stay, shards), until no cut is better. Policies that do not order spilled units are candidates
 * as well: jobs one after the other, jobs whose states stay on devices, and resident placement. Options
 * that the user fixed are not varied, and policies that contradict them are left out. The best candidate by simulation
 * is searched once more within the limits.
 */
#ifndef SPILLWAY_CLI_WAYS_CLI_OPTIMAL_H
#define SPILLWAY_CLI_WAYS_CLI_OPTIMAL_H

#include "cli/ways/cli_candidate.h"

extern const char cli_resident_name[]; /* name of plans with resident jobs, in tables of policies */

/*
 * Fills `field` with the candidates of policy optimal. options->policy is ignored; options->iterations are for each
 * cut. options->time_limit_s is for the whole call (0: no limit); one candidate is always made, even past the limit.
 * Errors: as cli_field_try() and cli_field_check(); STATUS_BAD_INPUT for jobs or options without such orders.
 */
MUST_CHECK enum status cli_optimal(const struct cli_source *source,
                                   const struct planner_options *options, struct cli_field *field,
                                   struct error *err);

/* Tries only cuts and orders of spilled units. If none fits, that is an outcome and not an error. *best: the options
 * of the best candidate, if there is one. */
MUST_CHECK enum status cli_optimal_cuts(const struct cli_source *source, const struct planner_options *options,
                                        struct cli_field *field, struct planner_options *best, struct error *err);

/* Returns a label such as "optimal, 4 weight buffers, recompute": the policy, and the options that differ from
 * `fixed`. */
void cli_optimal_label(const struct planner_options *fixed, const struct planner_options *options,
                       char text[CLI_OUTCOME_NAME_BYTES]);

#endif
