#include "sim/uncertainty/quantiles.h"

#include <assert.h>
#include <gsl/gsl_sort_double.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

static const double low_share = 0.05, high_share = 0.95;

struct quantiles quantiles_of(double *samples, size_t count)
{
    assert(count > 0);
    gsl_sort(samples, 1, count);
    return (struct quantiles){gsl_stats_quantile_from_sorted_data(samples, 1, count, low_share),
                              gsl_stats_median_from_sorted_data(samples, 1, count),
                              gsl_stats_quantile_from_sorted_data(samples, 1, count, high_share)};
}

struct quantiles quantiles_of_next(double *samples, size_t count)
{
    assert(count > 0);
    gsl_sort(samples, 1, count);
    size_t rank = (size_t)ceil(high_share * (double)(count + 1)); /* from 1 */
    if (rank > count) rank = count;
    return (struct quantiles){samples[count - rank], gsl_stats_median_from_sorted_data(samples, 1, count),
                              samples[rank - 1]};
}
