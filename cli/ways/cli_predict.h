/* Predictions, checked against physical limits. */
#ifndef SPILLWAY_CLI_WAYS_CLI_PREDICT_H
#define SPILLWAY_CLI_WAYS_CLI_PREDICT_H

#include "cli/common/cli.h"
#include "planner/plan.h"
#include "sim/sim.h"
#include "traces/trace.h"

struct cli_prediction {
    struct sim_result result;
    struct trace trace;
    double tokens_per_s, samples_per_s; /* of all jobs, over the makespan */
    double compute_share;    /* of the compute streams' time */
    double model_flops, least_flops; /* of all jobs (planner/plan_flops.h); least_flops cannot exceed a peak */
    double hardware_flops;   /* with recomputation (likewise); 0: unknown */
    double peak_flops_per_s; /* of all devices in the jobs' precision; 0: unknown */
};

/* Returns the unit that all jobs have in common: tokens if one reads text. */
enum job_unit cli_unit_of(const struct job_set *jobs);
extern const char *const cli_unit_rates[];    /* by unit */
extern const char *const cli_unit_headings[]; /* by unit */

struct cli_predict_options {
    const struct plan_dispatch_options *live; /* as in struct sim_options */
    enum sim_collectives_by collectives;
    const double *slow; /* as the next three, see struct sim_options; may be NULL */
    double noise;
    uint64_t seed;
    bool caching;      /* a caching allocator */
    bool demand_first;
    struct trace_writer *writer; /* as in struct sim_options; may be NULL */
    void (*on_span)(void *spans, const struct trace_span *span); /* as in struct sim_options; may be NULL */
    void *on_span_context;
    bool spans;        /* of every operation */
    bool every_device; /* and every repetition, also equal ones */
};

/*
 * Simulates on `hardware` (NULL: the plan's) with `how` (NULL: all off) and checks the result, with a progress bar
 * after a second. `out` is zeroed before; the caller releases it, also after an error. Errors: as sim_run();
 * STATUS_CHECK when a figure exceeds 100 % of a physical peak.
 */
MUST_CHECK enum status cli_predict(const struct plan *plan, const struct hardware *hardware,
                                   const struct cli_predict_options *how, struct cli_prediction *out,
                                   struct error *err);
/* Returns the simulator's options, without the progress bar. */
struct sim_options cli_predict_sim_options(const struct hardware *hardware, const struct cli_predict_options *how);

void cli_prediction_release(struct cli_prediction *prediction);

/* Returns the dense FLOP/s of all devices in the precision of the plan's jobs; 0 when one is unknown. Host devices
 * share one host's cores. */
double cli_peak_flops_per_s(const struct plan *plan, const struct hardware *hardware);

/* Returns the fastest measured matrix product of a profile; 0: none. */
double cli_best_matmul_flops_per_s(const struct compute_profile *profile);

/* Allows for rounding. Errors: STATUS_CHECK, naming `what`. */
MUST_CHECK enum status cli_check_peak(const char *what, double part, double whole,
                                      struct error *err);

#endif
