/*
 * What the next run takes over what was predicted of it, learnt from the runs before it.
 *
 * Machines drift (a neighbour on the host, a warm room), so that runs are not of one kind, and an interval from all of them
 * alike is too wide while nothing happens and too narrow once something does. Here
 *
 *     level      the logarithm of measured over predicted, smoothed, the newest run by `rate`; the rate is that of a few
 *                which would have foretold the runs so far best
 *     kind       runs of one plan have an offset of their own to it, by so much as there are runs of it
 *     scores     what each run was off from what was foretold of it then
 *     interval   level, offset, and the conformal quantiles of the scores on either side, which become wider with each run
 *                that fell outside there, and slowly narrower while none does
 *
 * Sources: conformal prediction of what is foretold one step ahead: Xu and Xie, arXiv 2010.09107; widths that follow how
 * often they held: Gibbs and Candes, arXiv 2106.00170 (there the quantile is moved, which ends at the outermost of few
 * scores, so here the width).
 */
#ifndef SPILLWAY_NOISE_DRIFT_H
#define SPILLWAY_NOISE_DRIFT_H

#include "base/arena.h"
#include "base/error.h"
#include "sim/uncertainty/quantiles.h"

/* Intervals of fewer runs than that before them are not looked at: they hold nothing yet. */
enum { DRIFT_RUNS_MIN = 19 };

struct drift_run {
    const char *kind; /* runs of one are more alike than others; NULL: of none */
    double ratio;     /* measured over predicted, above 0 */
};

/* Of `count` runs, at least DRIFT_RUNS_MIN, the earliest first, the ratio of a next one of `kind`. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status drift_next(const struct drift_run *runs, size_t count, const char *kind, struct arena *arena,
                                  struct quantiles *out, struct error *err);

#endif
