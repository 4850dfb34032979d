/*
 * Moving a machine's figures until its runs take what was measured.
 *
 * The sum that is least is
 *
 *     sum over files of weight / runs * sum over its runs of rho(log(predicted / measured))
 *
 * rho being soft-L1: nearly the error itself, which is what is told afterwards, and smooth where it is least. Runs that no
 * formula explains (stragglers, memory that was short) pull as a constant would. A weak pull towards the figures at the
 * beginning decides what runs do not. Ratios stay below 0.98, rates below what the datasheet says.
 *
 * Predicted is simulated; but a solver asks thousands of times. It is given a closed form of the run instead
 * (planner/capacity/what_if_floor.h: passes, sends and exchanges of a pipeline, added up), times what the simulation of the run
 * takes to its closed form. With the figures that come out all runs are simulated anew, the factors with them, and so on until
 * the sum, of simulated times, is no longer less. Equal input gives equal figures.
 *
 * Sources: Huber, Robust Statistics, 1981; More, The Levenberg-Marquardt algorithm, 1978 (GSL's trust region); Bandler and
 * others, Space Mapping: The State of the Art, IEEE T-MTT 52(1), 2004.
 */
#ifndef SPILLWAY_CLI_CALIBRATE_FIT_H
#define SPILLWAY_CLI_CALIBRATE_FIT_H

#include "cli/machine/cli_calibrate.h"
#include "cli/machine/cli_calibrate_split.h"

struct calibration_problem {
    const char *machine;              /* name */
    const struct measured_runs *sets; /* (set_count) */
    uint32_t set_count;
    const double *weights;  /* (set_count), above 0; NULL: 1 each */
    bool keep[FIT_FIGURES]; /* as they are */
};

/* Change `values`, of which those above 0 are fitted. Errors: STATUS_BAD_INPUT for too few runs; those of
 * calibration_predict(). */
MUST_CHECK enum status calibration_fit(const struct calibration_problem *problem, const struct calibration_split *split,
                                       double values[FIT_FIGURES], struct error *err);

#endif
