/* The prediction of a plan, with checks that no figure exceeds a physical limit. */
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
    double compute_share;    /* share of the time of the compute streams in which they compute */
    double model_flops, least_flops; /* of all jobs (planner/plan_flops.h); least_flops cannot exceed a peak */
    double peak_flops_per_s; /* of all devices, for products in the jobs' precision; 0 when a device has no figure for
                                it */
};

/* The unit of speed of jobs: tokens if a network reads text, else images; samples if networks are profiles, whose
 * inputs are unknown. */
enum cli_unit { CLI_TOKENS, CLI_IMAGES, CLI_SAMPLES };
enum cli_unit cli_unit_of(const struct job_set *jobs);
extern const char *const cli_unit_rates[];    /* by unit: "tokens/s", ... */
extern const char *const cli_unit_headings[]; /* by unit: "TOKENS/S", ... */

struct cli_predict_options {
    const struct plan_dispatch_options *live; /* as in struct sim_options */
    enum sim_collectives_by collectives;
    const double *slow; /* like the next three, as in struct sim_options; NULL: no device is slowed */
    double noise;
    uint64_t seed;
    bool caching;      /* device memory comes from a caching allocator */
    bool demand_first;
    struct trace_writer *writer; /* as in struct sim_options; NULL: no trace is written */
    bool spans;        /* the trace records every operation */
    bool every_device; /* simulate every device and every repetition, also those equal to others */
};

/*
 * Simulates `plan` on `hardware` (NULL: its own) with the options `how` (NULL: all off) and checks the result. Shows a
 * progress bar when it takes longer than a second. `out` is zeroed before; the caller releases it, also after an error.
 * Errors: as sim_run(); STATUS_CHECK when a figure exceeds 100 % of a physical peak.
 */
MUST_CHECK enum status cli_predict(const struct plan *plan, const struct hardware *hardware,
                                   const struct cli_predict_options *how, struct cli_prediction *out, struct error *err);
/* Returns the options of cli_predict() for the simulator, without the progress bar. */
struct sim_options cli_predict_sim_options(const struct hardware *hardware, const struct cli_predict_options *how);

void cli_prediction_release(struct cli_prediction *prediction);

/* Returns the dense FLOP/s of all devices of a machine together, for products in the precision of the plan's jobs; 0
 * when one of them has no figure. Host devices share the cores of one host. */
double cli_peak_flops_per_s(const struct plan *plan, const struct hardware *hardware);

/* Returns the rate of the fastest matrix product, of any shape, among the measured points of a profile; 0: none. */
double cli_best_matmul_flops_per_s(const struct compute_profile *profile);

/* Checks that `part` is at most `whole`, up to rounding. Errors: STATUS_CHECK, naming `what`. */
MUST_CHECK enum status cli_check_peak(const char *what, double part, double whole,
                                      struct error *err);

#endif
