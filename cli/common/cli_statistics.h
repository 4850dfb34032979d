/* What samples say: intervals of means, paired tests, agreement of ranks. */
#ifndef SPILLWAY_CLI_STATISTICS_H
#define SPILLWAY_CLI_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Mean, and half the width of its 95 % confidence interval by Student's t; 0 with one sample.
 * count > 0. */
struct statistics_mean {
    double mean, half;
};
struct statistics_mean statistics_mean(const double *samples, size_t count);

/*
 * Wilcoxon's signed-rank test of paired differences: the probability, if neither side were better, of
 * ranks at least as far apart as these. Zeros are dropped; equal differences share their mean rank. *p is 1
 * when nothing is left. Exact up to STATISTICS_EXACT_MAX differences, else by the normal approximation
 * with the correction for ties.
 *
 * Errors: STATUS_NO_MEMORY.
 * Source: Wilcoxon, Biometrics Bulletin 1 (1945); the exact distribution by dynamic programming over
 * doubled ranks, which are whole numbers also with ties.
 */
enum { STATISTICS_EXACT_MAX = 200 };
MUST_CHECK enum status statistics_wilcoxon(const double *differences, size_t count, double *p,
                                           struct error *err);

/* Kendall's tau-b of two rankings of the same things: 1 alike, -1 reversed. False where one side ranks
 * nothing above anything else. Source: Kendall, Biometrika 33 (1945). */
bool statistics_kendall(const double *a, const double *b, size_t count, double *tau);

#endif
