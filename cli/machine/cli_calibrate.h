/*
 * What a machine's figures make of measured runs: the time of an iteration is that of the plan of the run, simulated.
 *
 * The figures are those of device types and links that a datasheet cannot know (calibration_figure_names). A figure that the
 * machine does not have is 0 and stays so. cli/machine/cli_calibrate_fit.h moves them.
 */
#ifndef SPILLWAY_CLI_CALIBRATE_H
#define SPILLWAY_CLI_CALIBRATE_H

#include "cli/machine/cli_runs.h"
#include "models/hardware/hardware.h"
#include "models/job/job.h"

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

/* As many of its nodes as have `devices`, with memory for everything: whatever a formula says, the run had it. */
MUST_CHECK enum status calibration_machine(const char *name, uint32_t devices, struct hardware *out, struct error *err);

/* The run as one job with one minibatch. */
MUST_CHECK enum status calibration_job(const struct measured_run *run, struct job_set *out, struct error *err);

/* Back into a machine, with kind "fitted"; source NULL: values alone. */
void calibration_put(struct hardware *hardware, const double values[FIT_FIGURES], double spread, const char *source);

/* Seconds of an iteration of a run on as many nodes of machine `name` as it needs, which has these figures (NULL: its
 * own). Errors: those of hardware_find() and planner_plan(). */
MUST_CHECK enum status calibration_predict(const char *name, const double values[FIT_FIGURES],
                                           const struct measured_run *run, double *out_s, struct error *err);

#endif
