/*
 * The ratio of measured to predicted time of the next run, learnt from earlier runs.
 *
 * Machines drift (another program on the host, a warm room), so runs are not equally distributed. A single interval
 * over all runs would be too wide in quiet times and too narrow after a change. This model has
 *
 *     level      the logarithm of measured over predicted, exponentially smoothed; its rate is the one of a few
 *                candidates that would have predicted the runs so far best
 *     kind       an offset for the runs of one plan, with a weight that grows with their number
 *     scores     the error of each run against its prediction from the runs before it
 *     interval   level, offset, and conformal quantiles of the scores on either side; a side widens with each run that
 *                falls outside, and slowly narrows with each run that does not
 *
 * Sources: conformal prediction one step ahead: Xu and Xie, arXiv 2010.09107; widths that adapt to the observed
 * coverage: Gibbs and Candes, arXiv 2106.00170 (they move the quantile, which ends at the outermost of few scores; this
 * model scales the width).
 */
#ifndef SPILLWAY_SIM_UNCERTAINTY_PREDICTION_INTERVAL_H
#define SPILLWAY_SIM_UNCERTAINTY_PREDICTION_INTERVAL_H

#include "base/arena.h"
#include "base/error.h"
#include "sim/uncertainty/quantiles.h"

/* Least number of earlier runs for an interval. */
enum { PREDICTION_RUNS_MIN = 19 };

struct prediction_run {
    const char *kind; /* runs of one kind are more similar; NULL: no kind */
    double ratio;     /* measured over predicted, above 0 */
};

/* Computes the ratio of the next run of `kind` from `count` runs, at least PREDICTION_RUNS_MIN, the earliest first. */
MUST_CHECK enum status prediction_interval_next(const struct prediction_run *runs, size_t count, const char *kind,
                                                struct arena *arena, struct quantiles *out, struct error *err);

#endif
