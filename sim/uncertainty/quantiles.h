/* Quantiles of a number from random draws. */
#ifndef SPILLWAY_SIM_UNCERTAINTY_QUANTILES_H
#define SPILLWAY_SIM_UNCERTAINTY_QUANTILES_H

#include <stddef.h>

/* 90 % of the draws are from low to high; half of them are below the median. */
struct quantiles {
    double low, median, high;
};

/* Computes quantiles of count > 0 samples, which it sorts. It interpolates between samples (GSL, type 7). */
struct quantiles quantiles_of(double *samples, size_t count);

/*
 * Computes quantiles for a further sample from few samples: the interval contains a further sample of the same
 * distribution with a probability of at least 90 % (conformal: the sample of rank ceil(0.95 (count + 1)) from either
 * side, or the outermost one for fewer than 39 samples).
 */
struct quantiles quantiles_of_next(double *samples, size_t count);

#endif
