/* Statistics of samples: intervals of means, paired tests, agreement of ranks. */
#ifndef SPILLWAY_CLI_COMMON_CLI_STATISTICS_H
#define SPILLWAY_CLI_COMMON_CLI_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* A mean, and half the width of its 95 % confidence interval by Student's t (0 with one sample). count > 0. */
struct statistics_mean {
    double mean, half;
};
struct statistics_mean statistics_mean(const double *samples, size_t count);

/*
 * Computes Wilcoxon's signed-rank test of paired differences. *p is the probability of ranks at least this far apart if
 * neither side is better. Zeros are dropped; equal differences share their mean rank. *p is 1 when no difference is
 * left. The test is exact up to STATISTICS_EXACT_MAX differences; beyond that it uses the normal approximation with the
 * correction for ties.
 *
 * Source: Wilcoxon, Biometrics Bulletin 1 (1945). The exact distribution comes from dynamic programming over doubled
 * ranks, which are integers even with ties.
 */
enum { STATISTICS_EXACT_MAX = 200 };
MUST_CHECK enum status statistics_wilcoxon(const double *differences, size_t count, double *p,
                                           struct error *err);

/* Computes Kendall's tau-b of two rankings of the same items: 1 equal, -1 reversed. Returns false if one side ranks all
 * items equal. Source: Kendall, Biometrika 33 (1945). */
bool statistics_kendall(const double *a, const double *b, size_t count, double *tau);

#endif
