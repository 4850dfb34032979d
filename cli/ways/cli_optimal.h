/*
 * `plan --policy optimal`: cuts and orders chosen together.
 *
 * The order search (planner/spill/order/order_search.h) gets cut after cut: first the planner's own, then cuts that
 * differ from the best in one respect (weight buffers, activations kept, states that stay, shards), until none is
 * better. Jobs one after the other, jobs whose states stay on devices, and resident placement are
 * candidates too. The user's options are not varied; policies that contradict them are left out. The best by
 * simulation is searched once more.
 */
#ifndef SPILLWAY_CLI_WAYS_CLI_OPTIMAL_H
#define SPILLWAY_CLI_WAYS_CLI_OPTIMAL_H

#include "cli/ways/cli_candidate.h"

extern const char cli_resident_name[]; /* plans with resident jobs */

/*
 * Fills `field`. options->policy is ignored; options->iterations are for each cut. options->time_limit_s is for the
 * call (0: no limit); one candidate is always made. Errors: as cli_field_try() and cli_field_check(); STATUS_BAD_INPUT
 * for jobs or options without such orders.
 */
MUST_CHECK enum status cli_optimal(const struct cli_source *source,
                                   const struct planner_options *options, struct cli_field *field,
                                   struct error *err);

/* Tries only spilled units. That none fits is an outcome. *best: the best candidate's options, if any. */
MUST_CHECK enum status cli_optimal_cuts(const struct cli_source *source, const struct planner_options *options,
                                        struct cli_field *field, struct planner_options *best, struct error *err);

/* Writes "optimal, 4 weight buffers, recompute": options that differ from `fixed`. */
void cli_optimal_label(const struct planner_options *fixed, const struct planner_options *options,
                       char text[CLI_OUTCOME_NAME_BYTES]);

#endif
