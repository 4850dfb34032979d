/* Intervals of means, paired tests, agreement of ranks. */
#ifndef SPILLWAY_CLI_COMMON_CLI_STATISTICS_H
#define SPILLWAY_CLI_COMMON_CLI_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Half the width of the 95 % confidence interval by Student's t (0 with one sample). count > 0. */
struct statistics_mean {
    double mean, half;
};
struct statistics_mean statistics_mean(const double *samples, size_t count);

/*
 * Computes Wilcoxon's signed-rank test of paired differences: *p is the probability of ranks at least this far apart
 * if neither side is better, 1 without differences. Zeros are dropped; equal differences share their mean rank. Exact
 * up to STATISTICS_EXACT_MAX differences, then a normal approximation with the correction for ties.
 *
 * Source: Wilcoxon, Biometrics Bulletin 1 (1945). Exact by dynamic programming over doubled ranks, which are integers
 * even with ties.
 */
enum { STATISTICS_EXACT_MAX = 200 };
MUST_CHECK enum status statistics_wilcoxon(const double *differences, size_t count, double *p,
                                           struct error *err);

/* Computes Kendall's tau-b of two rankings: 1 equal, -1 reversed; false if one side ranks all items equal. Source:
 * Kendall, Biometrika 33 (1945). */
bool statistics_kendall(const double *a, const double *b, size_t count, double *tau);

#endif
