/*
 * Fits a machine's values to measured run times.
 *
 * It minimises
 *
 *     sum over files of weight / runs * sum over its runs of rho(log(predicted / measured))
 *
 * rho is soft-L1: smooth at its minimum, nearly proportional to the error, and limits the pull of runs that no formula
 * explains (stragglers, short memory). A weak pull towards the initial values decides undetermined ones. Ratios stay
 * below 0.98, rates below the datasheet's.
 *
 * A solver evaluates thousands of predictions: a closed form (planner/capacity/what_if_floor.h: the sum of a
 * pipeline's passes, sends and exchanges) times the ratio of simulated time to it. Fitted runs are simulated again,
 * which updates the ratios, until the sum no longer decreases. Equal inputs give equal values.
 *
 * Sources: Huber, Robust Statistics, 1981; More, The Levenberg-Marquardt algorithm, 1978 (GSL's trust region); Bandler
 * and others, Space Mapping: The State of the Art, IEEE T-MTT 52(1), 2004.
 */
#ifndef SPILLWAY_CLI_MACHINE_CLI_CALIBRATE_FIT_H
#define SPILLWAY_CLI_MACHINE_CLI_CALIBRATE_FIT_H

#include "cli/machine/cli_calibrate.h"
#include "cli/machine/cli_calibrate_split.h"

struct calibration_problem {
    const char *machine;              /* name */
    const struct measured_runs *sets; /* (set_count) */
    uint32_t set_count;
    const double *weights;  /* (set_count), above 0; NULL: 1 each */
    bool keep[CALIBRATION_VALUES]; /* not fitted */
};

/* Fits values above 0. Errors: STATUS_BAD_INPUT for too few runs; as calibration_predict(). */
MUST_CHECK enum status calibration_fit(const struct calibration_problem *problem, const struct calibration_split *split,
                                       double values[CALIBRATION_VALUES], struct error *err);

#endif
