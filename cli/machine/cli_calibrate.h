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
    CALIBRATION_MATMUL_EFFICIENCY, CALIBRATION_MEMORY_EFFICIENCY, CALIBRATION_COLLECTIVE_LATENCY,
        CALIBRATION_MATMUL_DEPTH, CALIBRATION_SCORE_BYTES_FORWARD,
    CALIBRATION_SCORE_BYTES_BACKWARD, CALIBRATION_LOSS_PASSES, CALIBRATION_ELEMENTWISE_PASSES,
    CALIBRATION_MATMUL_SUSTAINED, CALIBRATION_MISALIGNED_RATE,
    CALIBRATION_KERNEL_GAP, CALIBRATION_DISPATCH_LATENCY, CALIBRATION_NVLINK_BANDWIDTH, CALIBRATION_NVLINK_LATENCY,
    CALIBRATION_NIC_BANDWIDTH, CALIBRATION_NIC_LATENCY,
    CALIBRATION_VALUES
};
extern const char *const calibration_value_names[CALIBRATION_VALUES];
extern const enum dimension calibration_value_dimensions[CALIBRATION_VALUES];

/* Reads values in SI units, of networks between nodes if a run needs several nodes. Runs of several software stacks
 * are an error, because the values differ. */
MUST_CHECK enum status calibration_start(const char *name, const struct measured_runs *sets, uint32_t set_count,
                                         double out[CALIBRATION_VALUES], struct error *err);

/* Makes a machine with nodes for the run's devices, its software stack and unlimited memory: the measured runs fitted,
 * whatever a formula says. */
MUST_CHECK enum status calibration_machine(const char *name, const struct measured_run *run, struct hardware *out,
                                           struct error *err);

/* Makes a job with one minibatch. */
MUST_CHECK enum status calibration_job(const struct measured_run *run, struct job_set *out, struct error *err);

/* Sets the kind "fitted"; source NULL: only the values. */
void calibration_put(struct hardware *hardware, const double values[CALIBRATION_VALUES], double spread,
                     const char *source);

/* Predicts an iteration on the nodes of machine `name` that the run needs; values NULL: the machine's own. Errors:
 * as hardware_find() and planner_plan(). */
MUST_CHECK enum status calibration_predict(const char *name, const double values[CALIBRATION_VALUES],
                                           const struct measured_run *run, double *out_s, struct error *err);

#endif
