/*
 * How long each kernel takes, with operands where a training step has them.
 *
 * What is called with what is measure_calls.c's, at which sizes measure_sizes.c's. Kernels that a back
 * end does not have are left out.
 *
 * Protocol. All sizes of all classes are visited in rounds, three or more; so a disturbance spoils
 * one sample of many sizes and no median. A sample is a batch of calls of at least SAMPLE_MIN_S with
 * a warm-up in front when they are short. Samples during which the kernel took a processor away from
 * this process (it counts that) are set aside, and used only where no others came about. Median
 * and half the interquartile range are reported.
 *
 * That is how much samples of one size differ. What makes a whole round slower or faster (a neighbour on the host, the
 * clock, other programs: here nothing is set aside) moves a run as a whole, and is kept as the spread between moments.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/progress.h"
#include "exec/measure_calls.h"
#include "exec/measure_sizes.h"

static const double SAMPLE_MIN_S = 0.4e-3, WARM_UP_MAX_S = 5e-3;
static const double GPU_SAMPLE_MIN_S = 4e-3; /* waiting for the end takes some 50 us */
enum { ROUNDS_MIN = 3 };

struct probe {
    const struct bench *bench;
    const struct kernel_class *class;
    struct work_item item;
    double call_s;  /* estimate; 0: none yet */
    double last_s;  /* the last sample, whatever disturbed it */
    uint64_t turn;
    struct samples clean, disturbed;
};

/* How often the kernel has taken a processor away from a thread of this process. */
static long count_preemptions(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/* Seconds of one call, from a batch of them. */
static double time_calls(struct probe *probe, const struct kernels *kernels, call_function function)
{
    struct call call = {.bench = probe->bench,
                        .kernels = kernels,
                        .m = (int64_t)probe->item.m,
                        .n = (int64_t)probe->item.n,
                        .k = (int64_t)probe->item.k};
    const double least_s = kernels->finish ? GPU_SAMPLE_MIN_S : SAMPLE_MIN_S;
    const double wanted = probe->call_s > 0 ? least_s / probe->call_s : 1;
    const uint64_t count = wanted > 1 ? (uint64_t)ceil(fmin(wanted, 10000)) : 1;
    if (probe->call_s < WARM_UP_MAX_S) {
        call.turn = probe->turn++;
        function(&call);
        kernels_finish(kernels);
    }
    const double start_s = clock_s();
    for (uint64_t i = 0; i < count; i++) {
        call.turn = probe->turn++;
        function(&call);
    }
    kernels_finish(kernels);
    return (clock_s() - start_s) / (double)count;
}

static void take_sample(const struct kernels *kernels, void *argument)
{
    struct probe *const probe = argument;
    const long preemptions = count_preemptions();
    const double with_s = time_calls(probe, kernels, probe->class->call);
    double seconds = with_s;
    if (probe->class->less) {
        /* A difference of two measurements may be noise; a twentieth is as good as nothing. */
        seconds -= time_calls(probe, kernels, probe->class->less);
        seconds = fmax(seconds, with_s / 20);
    }
    const bool first = probe->call_s == 0;
    probe->call_s = with_s;
    probe->last_s = seconds;
    /* The first batch was too short to count, unless one call is enough. */
    if (first && with_s < (kernels->finish ? GPU_SAMPLE_MIN_S : SAMPLE_MIN_S)) return;
    samples_add(count_preemptions() == preemptions ? &probe->clean : &probe->disturbed, seconds);
}

/* Is there anything to measure, and does the device have the kernel? */
static bool is_measured(const struct bench *bench, const struct kernel_class *class)
{
    void (*function)(void) = NULL;
    if (class->gpu_only && bench->backend->arena_on_host) return false;
    if (!class->call || class->need == 0) return class->call != NULL;
    memcpy(&function, (const char *)device_kernels(bench->device) + class->need, sizeof function);
    return function != NULL;
}

static enum status make_probes(const struct bench *bench, struct probe **out, uint32_t *count,
                               struct error *err)
{
    struct work_item items[RATE_POINTS_MAX];
    uint32_t total = 0;
    for (uint32_t kernel = 0; kernel < KERNEL_COUNT; kernel++)
        if (is_measured(bench, &kernel_classes[kernel]))
            total += measure_sizes(kernel, bench->size, items);
    struct probe *const probes = alloc_zeroed(total, sizeof *probes);
    if (!probes) return error_memory(err, "the measurement", total * sizeof *probes);
    uint32_t made = 0;
    for (uint32_t kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        if (!is_measured(bench, &kernel_classes[kernel])) continue;
        const uint32_t sizes = measure_sizes(kernel, bench->size, items);
        for (uint32_t i = 0; i < sizes; i++) {
            struct probe *const probe = &probes[made++];
            probe->bench = bench;
            probe->class = &kernel_classes[kernel];
            probe->item = items[i];
            probe->item.kernel = kernel;
            probe->item.count = 1;
        }
    }
    *out = probes;
    *count = total;
    return STATUS_OK;
}

static const struct samples *samples_of(const struct probe *probe)
{
    return probe->clean.count > 0 ? &probe->clean : &probe->disturbed;
}

/* --- moments ---------------------------------------------------------------------------------- */

double moments_spread(const struct moments *moments)
{
    return moments->count < 2 ? 0 : FIGURE_SPREAD_DEVIATIONS * sqrt(moments->squares / moments->count);
}

static double sum_last(const struct probe *probes, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += probes[i].last_s;
    return sum;
}

/* The first round was to learn how long calls take. */
static void keep_moments(const struct probe *probes, uint32_t count, const double *rounds_s, uint32_t rounds,
                         struct moments *moments)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += samples_median(samples_of(&probes[i]));
    for (uint32_t r = 1; r < rounds; r++) {
        double off = log(rounds_s[r] / sum);
        moments->squares += off * off;
        moments->count++;
    }
}

/* --- points ----------------------------------------------------------------------------------- */

/* Points in the arena of the hardware, by class. */
static enum status keep_points(struct measure *measure, const struct probe *probes, uint32_t count,
                               struct compute_profile *profile, struct error *err)
{
    for (uint32_t first = 0; first < count;) {
        const uint32_t kernel = probes[first].item.kernel;
        uint32_t end = first;
        while (end < count && probes[end].item.kernel == kernel) end++;
        void *memory;
        const enum status status = arena_array(&measure->hardware->arena, end - first,
                                               sizeof(struct rate_point), &memory, err);
        if (status != STATUS_OK) return status;
        struct rate_point *const points = memory;
        for (uint32_t i = first; i < end; i++) {
            const struct probe *const probe = &probes[i];
            const struct samples *const samples = samples_of(probe);
            points[i - first] = (struct rate_point){
                .m = probe->item.m,
                .n = probe->item.n,
                .k = probe->item.k,
                .seconds = samples_median(samples),
                .spread = samples_spread(samples),
            };
        }
        profile->kernels[kernel] = (struct kernel_rate){points, end - first};
        first = end;
    }
    return STATUS_OK;
}

enum status measure_kernels(struct measure *measure, struct bench *bench, double budget_s,
                            struct compute_profile *profile, struct error *err)
{
    struct probe *probes = NULL;
    uint32_t count = 0;
    enum status status = make_probes(bench, &probes, &count, err);
    if (status != STATUS_OK) return status;
    struct device_stream *const stream = device_stream(bench->device, STREAM_COMPUTE);
    const double start_s = clock_s();
    double told_s = 0, rounds_s[SAMPLES_MAX + 1];
    uint32_t rounds = 0;
    /* One round to learn how long calls take, then rounds that count. A machine so slow or so busy
     * that three of them need half as much again as the budget has to do with fewer. */
    for (uint32_t round = 0; round <= SAMPLES_MAX; round++) {
        const double spent_s = clock_s() - start_s;
        if (round > ROUNDS_MIN && spent_s > budget_s) break;
        if (round > 1 && spent_s > 1.5 * budget_s) break;
        for (uint32_t i = 0; i < count; i++)
            device_compute(stream, take_sample, &probes[i], 0, NULL);
        while (!device_synchronize(stream, device_record(stream), 0.1)) {
            const double now_s = fmin(clock_s() - start_s, budget_s);
            char what[64];
            if (profile->threads == 0)
                snprintf(what, sizeof what, "kernels of the GPU");
            else
                snprintf(what, sizeof what, "kernels, %u thread%s", profile->threads,
                         profile->threads == 1 ? "" : "s");
            measure_progress(measure, now_s - told_s, what);
            told_s = now_s;
            if (measure_stopped(measure)) {
                device_stop(bench->device); /* what is queued points to the probes */
                free(probes);
                return error_set(err, STATUS_INTERRUPTED, "stopped before its end");
            }
        }
        rounds_s[rounds++] = sum_last(probes, count);
    }
    measure_progress(measure, budget_s - told_s, "kernels");
    status = device_failed(bench->device, err);
    if (status == STATUS_OK) keep_moments(probes, count, rounds_s, rounds, &measure->moments);
    if (status == STATUS_OK) status = keep_points(measure, probes, count, profile, err);
    free(probes);
    return status;
}
