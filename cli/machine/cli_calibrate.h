/*
 * Predicted times of measured runs, as functions of a machine's values: the time of an iteration is the simulated
 * makespan of the run's plan.
 *
 * The fitted values are properties of device types and links that datasheets do not give (calibration_value_names). A
 * value that the machine does not have is 0 and stays 0. cli/machine/cli_calibrate_fit.h fits the others.
 */
#ifndef SPILLWAY_CLI_MACHINE_CLI_CALIBRATE_H
#define SPILLWAY_CLI_MACHINE_CLI_CALIBRATE_H

#include "cli/machine/cli_runs.h"
#include "models/hardware/hardware.h"
#include "models/job/job.h"

enum calibration_value {
    FIT_MATMUL_EFFICIENCY, FIT_MEMORY_EFFICIENCY, FIT_COLLECTIVE_LATENCY, FIT_MATMUL_DEPTH, FIT_SCORE_BYTES_FORWARD,
    FIT_SCORE_BYTES_BACKWARD, FIT_LOSS_PASSES, FIT_ELEMENTWISE_PASSES, FIT_MATMUL_SUSTAINED, FIT_MISALIGNED_RATE,
    FIT_KERNEL_GAP, FIT_DISPATCH_LATENCY, FIT_NVLINK_BANDWIDTH, FIT_NVLINK_LATENCY, FIT_NIC_BANDWIDTH, FIT_NIC_LATENCY,
    FIT_VALUES
};
extern const char *const calibration_value_names[FIT_VALUES];
extern const enum dimension calibration_value_dimensions[FIT_VALUES];

/* Reads the values of machine `name`, in SI units; of networks between nodes if a run needs several nodes. */
MUST_CHECK enum status calibration_start(const char *name, const struct measured_runs *sets, uint32_t set_count,
                                         double out[FIT_VALUES], struct error *err);

/* Makes a machine with enough nodes for `devices` and unlimited memory: the measured runs fitted, whatever a formula
 * says. */
MUST_CHECK enum status calibration_machine(const char *name, uint32_t devices, struct hardware *out, struct error *err);

/* Makes a job with one minibatch from a run. */
MUST_CHECK enum status calibration_job(const struct measured_run *run, struct job_set *out, struct error *err);

/* Writes values to a machine, with kind "fitted"; source NULL: only the values. */
void calibration_put(struct hardware *hardware, const double values[FIT_VALUES], double spread, const char *source);

/* Predicts the seconds of an iteration of a run, on the number of nodes of machine `name` that it needs, with these
 * values (NULL: the machine's own). Errors: as hardware_find() and planner_plan(). */
MUST_CHECK enum status calibration_predict(const char *name, const double values[FIT_VALUES],
                                           const struct measured_run *run, double *out_s, struct error *err);

#endif
