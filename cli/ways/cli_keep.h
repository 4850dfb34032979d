/*
 * Plans that keep outputs of frozen first layers: `plan --keep-outputs`.
 *
 * The jobs are planned as they are, by all ways or the user's policy, and with the outputs that
 * planner/prefix/prefix_choose.h chooses to keep, by the policies that spill states. What ends first by simulation
 * wins.
 */
#ifndef SPILLWAY_CLI_WAYS_CLI_KEEP_H
#define SPILLWAY_CLI_WAYS_CLI_KEEP_H

#include "cli/ways/cli_candidate.h"
#include "planner/prefix/prefix_choose.h"

struct cli_keep {
    double budget_bytes; /* host memory for outputs */
    struct arena arena;
    struct prefix_problem problem;
    struct prefix_choice choice;
    double without_s, with_s; /* simulated, of the best plans; 0: none */
};

/* Adds the ways to run the jobs as they are, which may be a whole cli_ways(). */
typedef enum status (*cli_keep_plan)(void *context, struct cli_field *field, struct error *err);

/* Fills the field. Only options->policy, a policy that spills, or all of these. `keep` has its budget, is zeroed else,
 * and the caller releases it. Errors: as `plan`, and of prefix_problem_make(). */
MUST_CHECK enum status cli_keep(const struct cli_source *source, const struct planner_options *options,
                                cli_keep_plan plan, void *context, struct cli_keep *keep, struct cli_field *field,
                                struct error *err);
void cli_keep_release(struct cli_keep *keep);

#endif
