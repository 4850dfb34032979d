/* See measure_state.h. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/process/clock.h"
#include "exec/measure/measure_state.h"

void measure_samples_add(struct measure_samples *samples, double value)
{
    if (samples->count < MEASURE_SAMPLES_MAX) samples->values[samples->count++] = value;
}

/* Interpolates sorted values linearly. */
static double quantile(const struct measure_samples *samples, double part)
{
    assert(samples->count > 0);
    double sorted[MEASURE_SAMPLES_MAX];
    memcpy(sorted, samples->values, samples->count * sizeof *sorted);
    qsort(sorted, samples->count, sizeof *sorted, order_double);
    const double at = part * (samples->count - 1);
    const uint32_t low = (uint32_t)at, high = low + 1 < samples->count ? low + 1 : low;
    return sorted[low] + (at - low) * (sorted[high] - sorted[low]);
}

double measure_samples_median(const struct measure_samples *samples)
{
    return quantile(samples, 0.5);
}

double measure_samples_spread(const struct measure_samples *samples)
{
    const double median = measure_samples_median(samples);
    if (samples->count < 2 || !(fabs(median) > 0)) return 0;
    return (quantile(samples, 0.75) - quantile(samples, 0.25)) / 2 / median;
}

double measure_samples_mean(const struct measure_samples *samples)
{
    enum { ENDS_LEFT_OUT_FROM = 5 };
    double sum = 0, least = INFINITY, most = -INFINITY;
    for (uint32_t i = 0; i < samples->count; i++) {
        sum += samples->values[i];
        least = fmin(least, samples->values[i]);
        most = fmax(most, samples->values[i]);
    }
    if (samples->count < ENDS_LEFT_OUT_FROM) return sum / samples->count;
    return (sum - least - most) / (samples->count - 2);
}

bool measure_stopped(const struct measure *measure)
{
    return measure->options->stop && *measure->options->stop;
}

void measure_progress(const struct measure *measure, const char *what)
{
    const double done_s = fmin(clock_s() - measure->begun_s, measure->budget_s);
    if (measure->options->on_progress)
        measure->options->on_progress(measure->options->context, done_s, measure->budget_s, what);
}

struct sourced_value measure_sourced(const struct measure *measure, double value, double spread)
{
    return (struct sourced_value){.value = value,
                                  .spread = spread,
                                  .kind = SOURCE_MEASURED,
                                  .source = "spillway measure",
                                  .as_of = measure->as_of};
}
