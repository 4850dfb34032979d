/*
 * In each experiment, some devices compute and some streams copy COPY_BYTES at a time, over and over; only the time in
 * which all are active counts. With T the time of a step, r the rate of a copy, D active devices, struct
 * hardware_interference (models/hardware/hardware.h) says
 *
 *     T(D devices)              = T(1 device) (1 + compute_by_compute (D - 1))
 *     T(D devices, copies)      = T(1 device) (1 + compute_by_compute (D - 1)
 *                                                + compute_by_copy sum of r / reference)
 *     r(one copy, D devices)    = reference / (1 + copy_by_compute D)
 *     r(two copies)             = reference / (1 + copy_by_copy)
 *
 * and each experiment gives one unknown. D is the number of devices that fill the cores with their threads, at least
 * two. Copies are measured while these compute, as in plans: when all cores are busy, a copy takes a core's time as
 * well as memory bandwidth.
 *
 * A copy may run on a core of its own, or a thread of the team waits for it. Plans see both, so the mean of the
 * samples is kept, without the highest and the lowest.
 *
 * Copies go through as much memory as those whose rate plans use (measure_copies.c): on a processor with a cache of
 * 300 MiB, copies of 64 MiB in turn were 1.6 times as fast, and plans took a slow copy's core for partly free.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/try.h"
#include "exec/measure/measure_bench.h"

enum { DEVICES_LIMIT = 16, STEPS_LIMIT = 256, COPY_BYTES = 4 << 20 };
static const double EXPERIMENT_S = 0.08, COARSE_S = 0.02;

/* Repeats work on one stream. */
struct repeater {
    struct device_stream *stream;
    struct measure_bench *bench;
    char *host;            /* NULL for a computation */
    bool to_host;
    double once_s;         /* estimate */
    uint32_t count;
    struct device_timing timings[STEPS_LIMIT];
};

static void enqueue_repeats(struct repeater *r, double duration_s)
{
    const double wanted = duration_s / r->once_s;
    r->count = wanted < 4 ? 4 : wanted > STEPS_LIMIT ? STEPS_LIMIT : (uint32_t)wanted;
    uint64_t room;
    char *const device = measure_bench_copies(r->bench, &room);
    const uint64_t places = room / 2 / COPY_BYTES;
    for (uint32_t i = 0; i < r->count; i++) {
        if (!r->host) {
            const struct measure_bench_step step = {r->bench, i};
            device_compute(r->stream, measure_bench_compute_step, &step, sizeof step, &r->timings[i]);
            continue;
        }
        /* half of the blocks for each direction */
        const uint64_t offset = i % places * COPY_BYTES + (r->to_host ? room / 2 : 0);
        if (r->to_host)
            device_copy(r->stream, r->host + offset, device + offset, COPY_BYTES, &r->timings[i]);
        else
            device_copy(r->stream, device + offset, r->host + offset, COPY_BYTES, &r->timings[i]);
    }
}

/* Runs all at once; once_s[i]: mean seconds of the work inside the common time. */
static void run_together(struct repeater *const *repeaters, uint32_t count, double duration_s,
                         double *once_s)
{
    for (uint32_t i = 0; i < count; i++) enqueue_repeats(repeaters[i], duration_s);
    double from_s = 0, to_s = INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        struct repeater *const r = repeaters[i];
        while (!device_synchronize(r->stream, device_record(r->stream), 1))
            ;
        from_s = fmax(from_s, r->timings[0].start_s);
        to_s = fmin(to_s, r->timings[r->count - 1].end_s);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct repeater *const r = repeaters[i];
        double first_s = 0, last_s = 0;
        uint32_t inside = 0;
        for (uint32_t n = 0; n < r->count; n++) {
            if (r->timings[n].start_s < from_s || r->timings[n].end_s > to_s) continue;
            if (inside++ == 0) first_s = r->timings[n].start_s;
            last_s = r->timings[n].end_s;
        }
        /* No work is wholly inside the common time. */
        once_s[i] = inside > 0 ? (last_s - first_s) / inside
                               : (r->timings[r->count - 1].end_s - r->timings[0].start_s) / r->count;
    }
}

struct effects {
    struct measure_series compute_by_compute, compute_by_copy, copy_by_compute, copy_by_copy, reference;
};

struct measure_laboratory {
    struct measure *measure;
    struct measure_bench *benches[DEVICES_LIMIT];
    uint32_t bench_count;  /* 1 for a GPU, else at least 2 */
    uint32_t filling;      /* how many fill the cores */
    struct measure_bench *copies;
    char *host;
    uint64_t host_bytes;
    struct repeater *computing; /* per bench */
    struct repeater *copying;   /* of `copies`: H2D, D2H */
    struct effects effects;
    bool visited;
};

void measure_laboratory_close(struct measure_laboratory *lab)
{
    if (!lab) return;
    if (lab->copies) measure_bench_unmap_host(lab->copies, lab->host, lab->host_bytes);
    for (uint32_t i = 0; i < lab->bench_count; i++) measure_bench_close(lab->benches[i]);
    free(lab->computing);
    free(lab->copying);
    free(lab);
}

static enum status open_benches(struct measure_laboratory *lab, const struct measure_laboratory_options *options,
                                uint32_t devices, struct error *err)
{
    for (uint32_t i = 0; i < devices; i++) {
        const struct measure_bench_options bench = {.backend = options->backend,
                                                    .index = i,
                                                    .threads = options->threads,
                                                    .size = MEASURE_BENCH_SMALL,
                                                    .operands = options->operands
                                                                ? options->operands->benches[i] : NULL};
        TRY(measure_bench_open(&bench, &lab->benches[i], err));
        lab->bench_count++;
        lab->computing[i] = (struct repeater){
            .stream = device_stream(measure_bench_device(lab->benches[i]), STREAM_COMPUTE),
            .bench = lab->benches[i],
            .once_s = 5e-3};
    }
    lab->copies = options->copies ? options->copies : lab->benches[0];
    measure_bench_copies(lab->copies, &lab->host_bytes);
    TRY(measure_bench_map_host(lab->copies, lab->host_bytes, &lab->host, err));
    for (uint32_t d = 0; d < 2; d++)
        lab->copying[d] = (struct repeater){
            .stream = device_stream(measure_bench_device(lab->copies), d == 0 ? STREAM_H2D : STREAM_D2H),
            .bench = lab->copies,
            .host = lab->host,
            .to_host = d == 1,
            .once_s = 1e-3};
    return STATUS_OK;
}

enum status measure_laboratory_open(struct measure *measure, const struct measure_laboratory_options *options,
                                    struct measure_laboratory **out, struct error *err)
{
    struct measure_laboratory *const lab = alloc_zeroed(1, sizeof *lab);
    if (!lab) return error_memory(err, "the measurement", sizeof *lab);
    const bool gpu = !options->backend->arena_on_host;
    lab->measure = measure;
    lab->filling = !gpu && options->cores / options->threads > 0 ? options->cores / options->threads : 1;
    if (lab->filling > DEVICES_LIMIT) lab->filling = DEVICES_LIMIT;
    const uint32_t devices = gpu ? 1 : lab->filling > 2 ? lab->filling : 2;
    assert(!options->operands || options->operands->bench_count >= devices);
    enum status status = STATUS_OK;
    lab->computing = alloc_zeroed(devices, sizeof *lab->computing);
    lab->copying = alloc_zeroed(2, sizeof *lab->copying);
    if (!lab->computing || !lab->copying)
        status = error_memory(err, "the measurement", devices * sizeof *lab->computing);
    if (status == STATUS_OK) status = open_benches(lab, options, devices, err);
    if (status == STATUS_OK) *out = lab;
    else measure_laboratory_close(lab);
    return status;
}

/* Seconds of a step (mean over active devices), rates of the copies. */
struct observation {
    double step_s;
    double copy_bytes_per_s[2];
    double copies_bytes_per_s; /* their sum */
};

static struct observation observe(struct measure_laboratory *lab, uint32_t devices, uint32_t copies,
                                  double duration_s)
{
    struct repeater *all[DEVICES_LIMIT + 2];
    double once_s[DEVICES_LIMIT + 2];
    uint32_t count = 0;
    for (uint32_t i = 0; i < devices; i++) all[count++] = &lab->computing[i];
    for (uint32_t i = 0; i < copies; i++) all[count++] = &lab->copying[i];
    run_together(all, count, duration_s, once_s);
    struct observation out = {0};
    for (uint32_t i = 0; i < devices; i++) {
        out.step_s += once_s[i] / devices;
        lab->computing[i].once_s = once_s[i]; /* a better estimate next time */
    }
    for (uint32_t i = 0; i < copies; i++) {
        out.copy_bytes_per_s[i] = COPY_BYTES / once_s[devices + i];
        out.copies_bytes_per_s += out.copy_bytes_per_s[i];
        lab->copying[i].once_s = once_s[devices + i];
    }
    return out;
}

void measure_laboratory_visit(struct measure_laboratory *lab)
{
    const double duration_s = measure_is_coarse(lab->measure) ? COARSE_S : EXPERIMENT_S;
    const uint32_t all = lab->bench_count, filling = lab->filling;
    struct measure_watch *const watch = &lab->measure->watch;
    if (!lab->visited) observe(lab, 1, 2, duration_s / 4); /* estimates of steps and copies */
    lab->visited = true;
    measure_watch_judge(watch);
    const struct observation one = observe(lab, 1, 0, duration_s);
    const struct observation many = all > 1 ? observe(lab, all, 0, duration_s) : one;
    const struct observation copy = observe(lab, 0, 1, duration_s);
    const struct observation copies = observe(lab, 0, 2, duration_s);
    const struct observation with_one = observe(lab, filling, 1, duration_s);
    const struct observation with_two = observe(lab, filling, 2, duration_s);

    struct effects *const effects = &lab->effects;
    const double reference = copy.copies_bytes_per_s;
    const double by_compute = all > 1 ? (many.step_s / one.step_s - 1) / (all - 1) : 0;
    measure_watch_take(watch, &effects->reference, reference, false);
    measure_watch_take(watch, &effects->compute_by_compute, by_compute, false);
    measure_watch_take(watch, &effects->copy_by_copy, 2 * reference / copies.copies_bytes_per_s - 1, false);
    measure_watch_take(watch, &effects->copy_by_compute, (reference / with_one.copies_bytes_per_s - 1) / filling,
                       false);
    const struct observation *const both[] = {&with_one, &with_two};
    for (uint32_t i = 0; i < 2; i++) {
        const double slowed = both[i]->step_s / one.step_s - 1 - by_compute * (filling - 1);
        measure_watch_take(watch, &effects->compute_by_copy, slowed * reference / both[i]->copies_bytes_per_s, false);
    }
    measure_watch_judge(watch);
}

/* Below zero is noise. */
static struct sourced_value effect(const struct measure *measure, const struct measure_series *series)
{
    const struct measure_samples *const samples = measure_series_samples(series);
    const double mean = measure_samples_mean(samples), median = measure_samples_median(samples);
    const double spread = mean > 0 ? fabs(measure_samples_spread(samples) * median / mean) : 0;
    return measure_sourced(measure, fmax(0, mean), fmin(1, spread));
}

enum status measure_laboratory_keep(struct measure_laboratory *lab, struct hardware_interference *out,
                                    struct error *err)
{
    const struct measure *const measure = lab->measure;
    const struct effects *const effects = &lab->effects;
    const struct measure_samples *const reference = measure_series_samples(&effects->reference);
    *out = (struct hardware_interference){
        .compute_by_compute = effect(measure, &effects->compute_by_compute),
        .compute_by_copy = effect(measure, &effects->compute_by_copy),
        .copy_by_compute = effect(measure, &effects->copy_by_compute),
        .copy_by_copy = effect(measure, &effects->copy_by_copy),
        .copy_reference_rate =
            measure_sourced(measure, measure_samples_median(reference), measure_samples_spread(reference)),
    };
    return device_failed(measure_bench_device(lab->benches[0]), err);
}
