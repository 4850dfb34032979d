/* GSL's error handler is never called: arguments are in range. */
#include "cli/common/cli_statistics.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"

struct statistics_mean statistics_mean(const double *samples, size_t count)
{
    assert(count > 0);
    struct statistics_mean result = {.mean = gsl_stats_mean(samples, 1, count)};
    if (count < 2) return result;
    double error = gsl_stats_sd_m(samples, 1, count, result.mean) / sqrt((double)count);
    result.half = error * gsl_cdf_tdist_Pinv(0.975, (double)(count - 1));
    return result;
}

/* --- signed ranks ---------------------------------------------------------------------------- */

static int compare_size(const void *left, const void *right)
{
    double a = fabs(*(const double *)left), b = fabs(*(const double *)right);
    return (a > b) - (a < b);
}

/* Doubles ranks; *ties: sum of t^3 - t over groups of t equal ones. */
static void double_ranks(const double *sorted, size_t count, uint32_t *ranks, double *ties)
{
    *ties = 0;
    for (size_t i = 0; i < count;) {
        size_t end = i;
        while (end < count && fabs(sorted[end]) <= fabs(sorted[i])) end++;
        for (size_t k = i; k < end; k++) ranks[k] = (uint32_t)(i + 1 + end); /* mean of i + 1 .. end */
        double equal = (double)(end - i);
        *ties += equal * equal * equal - equal;
        i = end;
    }
}

/* Computes P(sum of doubled ranks with random signs <= `least`). */
static enum status exact_tail(const uint32_t *ranks, size_t count, size_t least, double *tail,
                              struct error *err)
{
    double *chance = alloc_zeroed(least + 1, sizeof *chance); /* of each sum so far */
    if (!chance) return error_memory(err, "a test of ranks", (least + 1) * sizeof *chance);
    chance[0] = 1;
    for (size_t i = 0; i < count; i++)
        for (size_t sum = least + 1; sum-- > 0;)
            chance[sum] = 0.5 * (chance[sum] + (sum >= ranks[i] ? chance[sum - ranks[i]] : 0));
    *tail = 0;
    for (size_t sum = 0; sum <= least; sum++) *tail += chance[sum];
    free(chance);
    return STATUS_OK;
}

enum status statistics_wilcoxon(const double *differences, size_t count, double *p, struct error *err)
{
    double *sorted = alloc_zeroed(count + 1, sizeof *sorted), ties;
    uint32_t *ranks = alloc_zeroed(count + 1, sizeof *ranks);
    size_t left = 0, above = 0, all = 0;
    double tail = 1;
    if (!sorted || !ranks) {
        error_memory(err, "a test of ranks", count * sizeof *sorted);
        goto out;
    }
    for (size_t i = 0; i < count; i++)
        if (fabs(differences[i]) > 0) sorted[left++] = differences[i];
    qsort(sorted, left, sizeof *sorted, compare_size);
    double_ranks(sorted, left, ranks, &ties);
    for (size_t i = 0; i < left; i++) {
        all += ranks[i];
        if (sorted[i] > 0) above += ranks[i];
    }
    size_t least = above < all - above ? above : all - above;
    if (left > 0 && left <= STATISTICS_EXACT_MAX) {
        if (exact_tail(ranks, left, least, &tail, err)) goto out;
    } else if (left > 0) {
        double n = (double)left, mean = n * (n + 1) / 4;
        double variance = n * (n + 1) * (2 * n + 1) / 24 - ties / 48;
        tail = gsl_cdf_ugaussian_P(((double)least / 2 + 0.5 - mean) / sqrt(variance));
    }
    *p = fmin(1, 2 * tail);
out:
    free(sorted);
    free(ranks);
    return err->status;
}

/* --- ranks ----------------------------------------------------------------------------------- */

bool statistics_kendall(const double *a, const double *b, size_t count, double *tau)
{
    double alike = 0, in_a = 0, in_b = 0; /* pairs: concordant minus discordant; not tied */
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++) {
            int x = (a[i] > a[j]) - (a[i] < a[j]), y = (b[i] > b[j]) - (b[i] < b[j]);
            alike += x * y;
            in_a += x != 0;
            in_b += y != 0;
        }
    if (!(in_a > 0) || !(in_b > 0)) return false;
    *tau = alike / sqrt(in_a * in_b);
    return true;
}
