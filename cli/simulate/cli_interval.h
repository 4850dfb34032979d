/*
 * `simulate --seeds N`: a prediction as an interval.
 *
 * By spreads: the plan is simulated on N machines drawn within the spreads of this one's figures (sim/uncertainty/machine_draw.h).
 * By runs: where the history has DRIFT_RUNS_MIN complete runs on this machine or more, what they took over what was
 * predicted of them (sim/uncertainty/drift.h), times this prediction: that has everything in it that moves runs, known or not. Both
 * are printed; the second is the one to lean on.
 */
#ifndef SPILLWAY_CLI_INTERVAL_H
#define SPILLWAY_CLI_INTERVAL_H

#include "cli/common/cli.h"
#include "cli/ways/cli_predict.h"
#include "planner/plan.h"
#include "sim/sim.h"
#include "sim/uncertainty/quantiles.h"

enum { INTERVAL_RUNS_MAX = 200, INTERVAL_SEEDS_MAX = 100000 };

struct cli_interval {
    uint64_t seeds, seed;      /* 0 seeds: nobody asked */
    bool spreads;              /* false: no figure of the machine has one */
    struct quantiles makespan_s, tokens_per_s; /* by spreads */
    uint64_t runs;             /* in the history, on this machine, the latest INTERVAL_RUNS_MAX at most */
    bool by_runs;              /* the next two are there */
    struct quantiles run_makespan_s, run_tokens_per_s;
};

/*
 * `options` as for the prediction itself, whose makespan and throughput are given; out->seeds and out->seed are set.
 * Errors: those of sim_run(); STATUS_INTERRUPTED is not among them: a signal ends the program.
 */
MUST_CHECK enum status cli_interval_find(const struct plan *plan, const struct hardware *hardware,
                                         const struct sim_options *options, double makespan_s, double tokens_per_s,
                                         struct cli_interval *out, struct error *err);

/* Prints rates in `unit`, of which there are `per_token` for each token. */
void cli_interval_print(FILE *out, const struct cli_interval *interval, enum cli_unit unit, double per_token);
void cli_interval_json(struct json_out *json, const struct cli_interval *interval); /* the object "interval" */

#endif
