/* See measure_state.h. */
#include <assert.h>

#include "base/process/clock.h"
#include "exec/measure/measure_state.h"

/* /proc/stat counts ticks of 10 ms: on two cores one is 2 % of a window. */
static const double WINDOW_S = 0.25, TAKEN_MAX = 0.05;

const struct measure_samples *measure_series_samples(const struct measure_series *series)
{
    return series->clean.count > 0 ? &series->clean : &series->disturbed;
}

bool measure_series_has_samples(const struct measure_series *series)
{
    return measure_series_samples(series)->count > 0;
}

void measure_watch_begin(struct measure_watch *watch)
{
    *watch = (struct measure_watch){.begun = load_now()};
    watch->window = watch->begun;
}

void measure_watch_judge(struct measure_watch *watch)
{
    const struct load_mark now = load_now();
    const struct load load = load_between(&watch->window, &now);
    const bool taken = load_taken(&load) > TAKEN_MAX;
    for (uint32_t i = 0; i < watch->pending_count; i++) {
        const bool disturbed = taken || watch->pending[i].preempted;
        struct measure_series *const series = watch->pending[i].series;
        measure_samples_add(disturbed ? &series->disturbed : &series->clean, watch->pending[i].value);
        watch->sample_count++;
        watch->disturbed_count += disturbed;
    }
    watch->pending_count = 0;
    watch->window = now;
}

void measure_watch_take(struct measure_watch *watch, struct measure_series *series, double value, bool preempted)
{
    assert(watch->pending_count < MEASURE_WATCH_PENDING_MAX);
    watch->pending[watch->pending_count].series = series;
    watch->pending[watch->pending_count].value = value;
    watch->pending[watch->pending_count++].preempted = preempted;
    if (watch->pending_count == MEASURE_WATCH_PENDING_MAX || clock_s() - watch->window.wall_s >= WINDOW_S)
        measure_watch_judge(watch);
}
