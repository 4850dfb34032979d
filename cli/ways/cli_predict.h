/* A plan's prediction, and the checks that no figure of a report is past what physics allows. */
#ifndef SPILLWAY_CLI_PREDICT_H
#define SPILLWAY_CLI_PREDICT_H

#include "cli/common/cli.h"
#include "planner/plan.h"
#include "sim/sim.h"
#include "traces/trace.h"

struct cli_prediction {
    struct sim_result result;
    struct trace trace;
    double tokens_per_s, samples_per_s; /* of all jobs, over the makespan */
    double compute_share;    /* of the compute streams' time that they compute */
    double model_flops, least_flops; /* of all jobs (planner/plan_flops.h); only the second cannot exceed a peak */
    double peak_flops_per_s; /* of all devices, for products in the jobs' precision; 0 when a device has no
                                figure for it */
};

/* What the speed of jobs is counted in: tokens where some network reads text, else images; samples where networks are
 * profiles, of which nobody says what they read. */
enum cli_unit { CLI_TOKENS, CLI_IMAGES, CLI_SAMPLES };
enum cli_unit cli_unit_of(const struct job_set *jobs);
extern const char *const cli_unit_rates[];    /* by unit: "tokens/s", ... */
extern const char *const cli_unit_headings[]; /* by unit: "TOKENS/S", ... */

struct cli_predict_options {
    const struct plan_dispatch_options *live; /* as in struct sim_options */
    enum sim_collectives_by collectives;
    const double *slow; /* as in struct sim_options, like the three below; NULL: no device is */
    double noise;
    uint64_t seed;
    bool caching;      /* memory of devices comes from a caching allocator */
    bool demand_first;
    bool spans;        /* the trace has every operation */
    bool every_device; /* simulate also those that do what another one does, and every repetition */
};

/*
 * Simulate `plan` on `hardware` (NULL: its own), `how` (NULL: all off), with a progress bar when it takes longer than a
 * second, and check the outcome. Zeroed struct in; release it also after an error.
 * Errors: those of sim_run(); STATUS_CHECK when a figure is past 100 % of a physical peak.
 */
MUST_CHECK enum status cli_predict(const struct plan *plan, const struct hardware *hardware,
                                   const struct cli_predict_options *how, struct cli_prediction *out, struct error *err);
/* What it simulates with, but for the progress bar. */
struct sim_options cli_predict_sim_options(const struct hardware *hardware, const struct cli_predict_options *how);

void cli_prediction_release(struct cli_prediction *prediction);

/* FLOP/s of all devices of a machine together, dense, for products in the precision of the plan's jobs; 0 when one of
 * them has no figure. Host devices share the cores of one host. */
double cli_peak_flops_per_s(const struct plan *plan, const struct hardware *hardware);

/* The fastest matrix product among the measured points of a profile, of whatever shape; 0: none. */
double cli_best_matmul_flops_per_s(const struct compute_profile *profile);

/* Is `part` at most `whole`, up to rounding? STATUS_CHECK names what is past its peak. */
MUST_CHECK enum status cli_check_peak(const char *what, double part, double whole,
                                      struct error *err);

#endif
