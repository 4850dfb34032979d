/* What is known of a figure by many draws of it. */
#ifndef SPILLWAY_NOISE_QUANTILES_H
#define SPILLWAY_NOISE_QUANTILES_H

#include <stddef.h>

/* 90 % of the draws are from low to high; half of them below the median. */
struct quantiles {
    double low, median, high;
};

/* Of count > 0 samples, which are sorted on return. Between samples quantiles are interpolated (GSL's, type 7). */
struct quantiles quantiles_of(double *samples, size_t count);

/*
 * The same of few samples, for what comes next: the interval that holds a further sample of the same kind with at least
 * 90 % (conformal: the sample of rank ceil(0.95 (count + 1)) from either side, the outermost where there are too few,
 * which is below 39).
 */
struct quantiles quantiles_of_next(double *samples, size_t count);

#endif
