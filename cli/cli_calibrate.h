/*
 * Fitting a machine's figures to measured runs: the time of an iteration is that of the plan of the run, simulated.
 *
 * What is fitted are figures of device types and links that a datasheet cannot know (calibration_figure_names). A figure
 * that the machine does not have, 0, stays so. Ratios stay below 0.95 and rates below what the datasheet says.
 *
 * The sum that is least is over sets and runs of rho(log(predicted / measured)) / runs of the set, rho being
 * soft-L1 with a scale of 3 %: runs that no formula explains (stragglers, memory that was short) pull as a constant would.
 * A weak pull towards the figures at the beginning, PULL a factor of e, decides what runs do not.
 *
 * Sources: Huber, Robust Statistics, 1981; More, The Levenberg-Marquardt algorithm, 1978 (GSL's trust region).
 */
#ifndef SPILLWAY_CLI_CALIBRATE_H
#define SPILLWAY_CLI_CALIBRATE_H

#include "cli/cli_runs.h"
#include "models/hardware.h"

enum calibration_figure {
    FIT_MATMUL_EFFICIENCY, FIT_MEMORY_EFFICIENCY, FIT_COLLECTIVE_LATENCY, FIT_MATMUL_DEPTH, FIT_SCORE_BYTES_FORWARD,
    FIT_SCORE_BYTES_BACKWARD, FIT_LOSS_PASSES, FIT_ELEMENTWISE_PASSES, FIT_MATMUL_SUSTAINED, FIT_MISALIGNED_RATE,
    FIT_KERNEL_GAP, FIT_DISPATCH_LATENCY, FIT_NVLINK_BANDWIDTH, FIT_NVLINK_LATENCY, FIT_NIC_BANDWIDTH, FIT_NIC_LATENCY,
    FIT_FIGURES
};
extern const char *const calibration_figure_names[FIT_FIGURES];
extern const enum dimension calibration_figure_dimensions[FIT_FIGURES];

/* What machine `name` has of them, in SI units; of networks between nodes where some run needs several. */
MUST_CHECK enum status calibration_start(const char *name, const struct measured_runs *sets, uint32_t set_count,
                                         double out[FIT_FIGURES], struct error *err);

/* Back into a machine, with kind "fitted"; source NULL: values alone. */
void calibration_put(struct hardware *hardware, const double values[FIT_FIGURES], double spread, const char *source);

/* Seconds of an iteration of a run on as many nodes of machine `name` as it needs, which has these figures (NULL: its
 * own), and memory for it. Errors: those of hardware_find() and planner_plan(). */
MUST_CHECK enum status calibration_predict(const char *name, const double values[FIT_FIGURES],
                                           const struct measured_run *run, double *out_s, struct error *err);

/* Is the run at this place of its file fitted to, or held out? */
struct calibration_half {
    enum { HALF_ALL, HALF_EVEN, HALF_ODD, HALF_BY_SEED } which;
    uint64_t seed;
};
bool calibration_is_fitted(struct calibration_half half, uint32_t index);

/* Change `values`, of which those above 0 are fitted. */
MUST_CHECK enum status calibration_fit(const char *name, const struct measured_runs *sets, uint32_t set_count,
                                       struct calibration_half half, double values[FIT_FIGURES], struct error *err);

/* Of predicted over measured less 1. */
struct calibration_error {
    double mean_absolute, mean, largest; /* ratios */
    uint32_t runs;
};

#endif
