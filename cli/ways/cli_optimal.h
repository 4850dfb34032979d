/*
 * `plan --policy optimal`: cuts and orders chosen together.
 *
 * The order search (planner/spill/order/order_search.h) is given one cut after the other: the planner's own
 * choice first, then cuts that differ from the best so far in one respect (regions for streamed state,
 * what is kept for backward passes, states that stay, shards), until none is better. Policies
 * that are no order of streamed units are candidates as well: jobs one after the other, and those whose states stay
 * on devices, settled ones too. What the user has fixed is not varied, and policies that do not go with it are left out. The best by the simulator's clock is searched
 * once more for as long as the limits allow.
 */
#ifndef SPILLWAY_CLI_OPTIMAL_H
#define SPILLWAY_CLI_OPTIMAL_H

#include "cli/ways/cli_candidate.h"

extern const char cli_settled_name[]; /* of plans whose jobs settle, in tables of policies */

/*
 * options->policy is ignored; options->iterations are for each cut. options->time_limit_s is for
 * everything, and kept to but for one candidate, which is always made (0: no limit).
 * Errors: those of cli_field_try() and cli_field_check(); STATUS_BAD_INPUT for jobs or options that have no such orders.
 */
MUST_CHECK enum status cli_optimal(const struct cli_source *source,
                                   const struct planner_options *options, struct cli_field *field,
                                   struct error *err);

/* Cuts and orders of streamed units only. That none fits is an outcome, and no error. *best: the options of the best, where
 * there is one. */
MUST_CHECK enum status cli_optimal_cuts(const struct cli_source *source, const struct planner_options *options,
                                        struct cli_field *field, struct planner_options *best, struct error *err);

/* "optimal, 4 regions, recompute": the policy, and what differs from the options that are `fixed`. */
void cli_optimal_label(const struct planner_options *fixed, const struct planner_options *options,
                       char text[CLI_OUTCOME_NAME_BYTES]);

#endif
