/*
 * measure_calls.c defines kernels and operands, measure_sizes.c the sizes. Kernels that a back end lacks are left out.
 *
 * Every visit takes one sample of every size of every class, and visits take turns over the whole measurement
 * (measure_rounds.c): a disturbance of seconds spoils one or two samples of each size and no median. A sample is a
 * batch of calls of at least SAMPLE_MIN_S, after a warm-up if short. Disturbed samples (measure_watch.c) are used only
 * where there are no clean ones.
 *
 * The reported half of the interquartile range is the variation among samples of one size. Influences on a whole visit
 * (a neighbour, the clock) are kept as the spread between moments; disturbed samples count there.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "base/try.h"
#include "exec/measure/measure_calls.h"
#include "exec/measure/measure_state.h"

static const double SAMPLE_MIN_S = 0.4e-3, WARM_UP_MAX_S = 5e-3;
static const double GPU_SAMPLE_MIN_S = 4e-3; /* awaiting the end takes some 50 us */
enum { CLEAN_MIN = 3, VISITS_MAX = 64 };

struct probe {
    const struct measure_bench *bench;
    const struct measure_kernel_class *class;
    struct work_item item;
    double call_s;  /* estimate; 0: none yet */
    double last_s;  /* even if disturbed */
    uint64_t operands;
    struct measure_watch *watch;
    struct measure_series series;
};

struct measure_kernel_visits {
    struct measure *measure;
    struct measure_bench *bench;
    struct probe *probes;
    uint32_t probe_count;
    double visits_s[VISITS_MAX]; /* sum of all probes' last_s, by visit */
    uint32_t visit_count;
};

/* Counts preemptions of this process's threads. */
static long count_preemptions(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/* Returns the seconds of one call, from a batch. */
static double time_calls(struct probe *probe, const struct kernels *kernels, measure_call_function function)
{
    struct measure_call call = {.bench = probe->bench,
                                .kernels = kernels,
                                .m = (int64_t)probe->item.m,
                                .n = (int64_t)probe->item.n,
                                .k = (int64_t)probe->item.k};
    const double least_s = kernels->finish ? GPU_SAMPLE_MIN_S : SAMPLE_MIN_S;
    const double wanted = probe->call_s > 0 ? least_s / probe->call_s : 1;
    const uint64_t count = wanted > 1 ? (uint64_t)ceil(fmin(wanted, 10000)) : 1;
    if (probe->call_s < WARM_UP_MAX_S) {
        call.operands = probe->operands++;
        function(&call);
        kernels_finish(kernels);
    }
    const double start_s = clock_s();
    for (uint64_t i = 0; i < count; i++) {
        call.operands = probe->operands++;
        function(&call);
    }
    kernels_finish(kernels);
    return (clock_s() - start_s) / (double)count;
}

static void measure_sample(const struct kernels *kernels, void *argument)
{
    struct probe *const probe = argument;
    const long preemptions = count_preemptions();
    const double with_s = time_calls(probe, kernels, probe->class->call);
    double seconds = with_s;
    if (probe->class->less) {
        /* A difference may be noise; below a twentieth it is nothing. */
        seconds -= time_calls(probe, kernels, probe->class->less);
        seconds = fmax(seconds, with_s / 20);
    }
    const bool first = probe->call_s == 0;
    probe->call_s = with_s;
    probe->last_s = seconds;
    /* too short to count, unless one call is enough */
    if (first && with_s < (kernels->finish ? GPU_SAMPLE_MIN_S : SAMPLE_MIN_S)) return;
    measure_watch_take(probe->watch, &probe->series, seconds, count_preemptions() != preemptions);
}

/* Returns true if the device has the kernel. */
static bool is_measured(const struct measure_bench *bench, const struct measure_kernel_class *class)
{
    void (*function)(void) = NULL;
    if (class->gpu_only && bench->backend->arena_on_host) return false;
    if (!class->call || class->need == 0) return class->call != NULL;
    memcpy(&function, (const char *)device_kernels(bench->device) + class->need, sizeof function);
    return function != NULL;
}

static enum status make_probes(struct measure_kernel_visits *visits, struct error *err)
{
    struct work_item items[HARDWARE_RATE_POINTS_MAX];
    const struct measure_bench *const bench = visits->bench;
    uint32_t total = 0;
    for (uint32_t kernel = 0; kernel < KERNEL_COUNT; kernel++)
        if (is_measured(bench, &measure_kernel_classes[kernel]))
            total += measure_sizes(kernel, bench->size, items);
    visits->probes = alloc_zeroed(total, sizeof *visits->probes);
    if (!visits->probes) return error_memory(err, "the measurement", total * sizeof *visits->probes);
    for (uint32_t kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        if (!is_measured(bench, &measure_kernel_classes[kernel])) continue;
        const uint32_t sizes = measure_sizes(kernel, bench->size, items);
        for (uint32_t i = 0; i < sizes; i++) {
            struct probe *const probe = &visits->probes[visits->probe_count++];
            probe->bench = bench;
            probe->watch = &visits->measure->watch;
            probe->class = &measure_kernel_classes[kernel];
            probe->item = items[i];
            probe->item.kernel = kernel;
            probe->item.count = 1;
        }
    }
    return STATUS_OK;
}

enum status measure_kernel_visits_open(struct measure *measure, struct measure_bench *bench,
                                       struct measure_kernel_visits **out, struct error *err)
{
    struct measure_kernel_visits *const visits = alloc_zeroed(1, sizeof *visits);
    if (!visits) return error_memory(err, "the measurement", sizeof *visits);
    visits->measure = measure;
    visits->bench = bench;
    const enum status status = make_probes(visits, err);
    if (status == STATUS_OK) *out = visits;
    else measure_kernel_visits_close(visits);
    return status;
}

void measure_kernel_visits_close(struct measure_kernel_visits *visits)
{
    if (!visits) return;
    free(visits->probes);
    free(visits);
}

/* --- visits ----------------------------------------------------------------------------------- */

static bool is_lacking(const struct probe *probe)
{
    return probe->series.clean.count < CLEAN_MIN;
}

uint32_t measure_kernel_visits_lacking(const struct measure_kernel_visits *visits)
{
    uint32_t lacking = 0;
    for (uint32_t i = 0; i < visits->probe_count; i++) lacking += is_lacking(&visits->probes[i]);
    return lacking;
}

bool measure_kernel_visits_complete(const struct measure_kernel_visits *visits)
{
    for (uint32_t i = 0; i < visits->probe_count; i++)
        if (!measure_series_has_samples(&visits->probes[i].series)) return false;
    return visits->visit_count > 0;
}

static double sum_last(const struct measure_kernel_visits *visits)
{
    double sum = 0;
    for (uint32_t i = 0; i < visits->probe_count; i++) sum += visits->probes[i].last_s;
    return sum;
}

enum status measure_kernel_visits_visit(struct measure_kernel_visits *visits, bool lacking, struct error *err)
{
    struct device *const device = measure_bench_device(visits->bench);
    struct device_stream *const stream = device_stream(device, STREAM_COMPUTE);
    const uint32_t threads = visits->bench->threads;
    char what[64] = "kernels of the GPU";
    if (threads > 0) snprintf(what, sizeof what, "kernels, %u thread%s", threads, threads == 1 ? "" : "s");
    measure_watch_judge(&visits->measure->watch);
    for (uint32_t i = 0; i < visits->probe_count; i++)
        if (!lacking || is_lacking(&visits->probes[i]))
            device_compute(stream, measure_sample, &visits->probes[i], 0, NULL);
    while (!device_synchronize(stream, device_record(stream), 0.1)) {
        measure_progress(visits->measure, what);
        if (measure_stopped(visits->measure)) {
            device_stop(device); /* work that is queued points to the probes */
            return error_set(err, STATUS_INTERRUPTED, "stopped before its end");
        }
    }
    measure_watch_judge(&visits->measure->watch);
    if (!lacking && visits->visit_count < VISITS_MAX) visits->visits_s[visits->visit_count++] = sum_last(visits);
    return device_failed(device, err);
}

/* --- moments ---------------------------------------------------------------------------------- */

/* The first visit only learns how long calls take. */
static void keep_moments(const struct measure_kernel_visits *visits, struct measure_moments *moments)
{
    double sum = 0;
    for (uint32_t i = 0; i < visits->probe_count; i++)
        sum += measure_samples_median(measure_series_samples(&visits->probes[i].series));
    for (uint32_t v = 1; v < visits->visit_count; v++) {
        const double off = log(visits->visits_s[v] / sum);
        moments->squares += off * off;
        moments->count++;
    }
}

/* --- points ----------------------------------------------------------------------------------- */

/* Points are in the hardware's arena, by class. */
enum status measure_kernel_visits_keep(struct measure_kernel_visits *visits, struct compute_profile *profile,
                                       struct error *err)
{
    struct probe *const probes = visits->probes;
    for (uint32_t first = 0; first < visits->probe_count;) {
        const uint32_t kernel = probes[first].item.kernel;
        uint32_t end = first;
        while (end < visits->probe_count && probes[end].item.kernel == kernel) end++;
        struct rate_point *points;
        TRY(ARENA_NEW(&visits->measure->hardware->arena, end - first, points, err));
        for (uint32_t i = first; i < end; i++) {
            const struct measure_samples *const samples = measure_series_samples(&probes[i].series);
            points[i - first] = (struct rate_point){
                .m = probes[i].item.m,
                .n = probes[i].item.n,
                .k = probes[i].item.k,
                .seconds = measure_samples_median(samples),
                .spread = measure_samples_spread(samples),
            };
        }
        profile->kernels[kernel] = (struct kernel_rate){points, end - first};
        first = end;
    }
    keep_moments(visits, &visits->measure->moments);
    return STATUS_OK;
}
