/*
 * Predicts measured runs by a machine's values: an iteration is the simulated makespan of the run's plan. Fitted
 * values are properties of device types and links that datasheets lack (calibration_value_names); values that the
 * machine lacks stay 0.
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

/* Reads values in SI units, of networks between nodes if a run needs several nodes. */
MUST_CHECK enum status calibration_start(const char *name, const struct measured_runs *sets, uint32_t set_count,
                                         double out[FIT_VALUES], struct error *err);

/* Makes a machine with nodes for `devices` and unlimited memory: the measured runs fitted, whatever a formula says. */
MUST_CHECK enum status calibration_machine(const char *name, uint32_t devices, struct hardware *out, struct error *err);

/* Makes a job with one minibatch. */
MUST_CHECK enum status calibration_job(const struct measured_run *run, struct job_set *out, struct error *err);

/* Sets the kind "fitted"; source NULL: only the values. */
void calibration_put(struct hardware *hardware, const double values[FIT_VALUES], double spread, const char *source);

/* Predicts an iteration on the nodes of machine `name` that the run needs; values NULL: the machine's own. Errors:
 * as hardware_find() and planner_plan(). */
MUST_CHECK enum status calibration_predict(const char *name, const double values[FIT_VALUES],
                                           const struct measured_run *run, double *out_s, struct error *err);

#endif
