/*
 * `simulate --seeds N`: a prediction as an interval.
 *
 * By spreads: the plan is simulated on N machines drawn within values' spreads (sim/uncertainty/machine_draw.h). By
 * runs, which is more reliable: with PREDICTION_RUNS_MIN complete runs on this machine, their ratios of measured to
 * predicted time (sim/uncertainty/prediction_interval.h), which contain every effect, times this prediction.
 */
#ifndef SPILLWAY_CLI_SIMULATE_CLI_INTERVAL_H
#define SPILLWAY_CLI_SIMULATE_CLI_INTERVAL_H

#include "cli/common/cli.h"
#include "cli/ways/cli_predict.h"
#include "planner/plan.h"
#include "sim/sim.h"
#include "sim/uncertainty/quantiles.h"

enum { INTERVAL_RUNS_MAX = 200, INTERVAL_SEEDS_MAX = 100000 };

struct cli_interval {
    uint64_t seeds, seed;      /* seeds 0: not asked for */
    bool spreads;              /* some value has a spread */
    struct quantiles makespan_s, tokens_per_s; /* by spreads */
    uint64_t runs;             /* complete, on this machine, the latest INTERVAL_RUNS_MAX */
    bool by_runs;              /* the next two are valid */
    struct quantiles run_makespan_s, run_tokens_per_s;
};

/*
 * Computes the interval. `options`, `makespan_s` and `tokens_per_s` are the prediction's; out->seeds and out->seed are
 * set before. Errors: as sim_run() except STATUS_INTERRUPTED: a signal ends the program.
 */
MUST_CHECK enum status cli_interval_find(const struct plan *plan, const struct hardware *hardware,
                                         const struct sim_options *options, double makespan_s, double tokens_per_s,
                                         struct cli_interval *out, struct error *err);

/* Prints rates in `unit`; `per_token` converts. */
void cli_interval_print(FILE *out, const struct cli_interval *interval, enum job_unit unit, double per_token);
void cli_interval_json(struct json_out *json, const struct cli_interval *interval); /* the object "interval" */

#endif
