/*
 * Copies, and how copies and computations slow each other down.
 *
 * A copy's time against its size is taken from batches of copies on an idle machine, each between
 * places that were not touched for a while, as spilled state is.
 *
 * Interference is found by experiments. In each, some devices compute (the load of
 * bench_compute_step(), over and over) and some streams copy (COPY_BYTES at a time, over and over);
 * only what falls into the time in which all of them were at work counts. With T the time of a step,
 * r the rate of a copy, D devices at work, struct interference (models/hardware.h) says
 *
 *     T(D devices)              = T(1 device) (1 + compute_by_compute (D - 1))
 *     T(D devices, copies)      = T(1 device) (1 + compute_by_compute (D - 1)
 *                                                + compute_by_copy sum of r / reference)
 *     r(one copy, D devices)    = reference / (1 + copy_by_compute D)
 *     r(two copies)             = reference / (1 + copy_by_copy)
 *
 * and each experiment gives one unknown. D is the number of devices that fill the cores with their
 * threads, at least two to learn what a second one costs; copies are measured beside as many devices
 * as fill the cores, because that is how plans use a machine: with all cores at work a copy takes
 * a core's time as well as memory bandwidth.
 *
 * Experiments take turns, so that a disturbance spoils one sample of several and no median.
 */
#include "exec/measure_state.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/progress.h"
#include "base/size.h"
#include "exec/host_memory.h"

/* --- one copy alone ------------------------------------------------------------------------------ */

static const uint64_t copy_sizes[] = {4 << 10,  16 << 10, 64 << 10, 256 << 10,
                                      1 << 20,  4 << 20,  16 << 20, 64 << 20, 256 << 20};
enum { GPU_SIZES = ARRAY_COUNT(copy_sizes), HOST_SIZES = GPU_SIZES - 1 }; /* host: to 64 MiB */
enum { BATCH_MAX = 64, HANDOVERS = 60, HANDOVER_BYTES = 256 };
static const double BATCH_S = 4e-3;

/* Median seconds of copies of `bytes`, one behind the other, over both blocks in turn. */
static double time_copies(struct bench *bench, enum copy_direction direction, char *host,
                          uint64_t bytes, double rate)
{
    uint64_t room;
    char *const device = bench_copies(bench, &room);
    struct device_stream *const stream =
        device_stream(bench_device(bench), direction == COPY_H2D ? STREAM_H2D : STREAM_D2H);
    const double wanted = BATCH_S * rate / (double)bytes;
    const uint32_t count = wanted < 3 ? 3 : wanted > BATCH_MAX ? BATCH_MAX : (uint32_t)wanted;
    const uint64_t step = (room - bytes) / count / 64 * 64;
    struct device_timing timings[BATCH_MAX];
    for (uint32_t i = 0; i < count; i++) {
        char *const at = device + i * step, *const from = host + (count - 1 - i) * step;
        if (direction == COPY_H2D)
            device_copy(stream, at, from, bytes, &timings[i]);
        else
            device_copy(stream, from, at, bytes, &timings[i]);
    }
    while (!device_synchronize(stream, device_record(stream), 1))
        ;
    struct samples samples = {.count = 0};
    for (uint32_t i = 1; i < count; i++) /* the first wakes the thread */
        samples_add(&samples, timings[i].end_s - timings[i].start_s);
    return samples_median(&samples);
}

static void do_nothing(void *argument)
{
    (void)argument;
}

static void wait_a_while(void *argument)
{
    const double end_s = clock_s() + *(const double *)argument;
    while (clock_s() < end_s)
        ;
}

/* From the end of work on one stream to the start of work on another that waited for it. */
static double time_handover(struct bench *bench, char *host)
{
    struct device_stream *const first = device_stream(bench_device(bench), STREAM_COMPUTE);
    struct device_stream *const second = device_stream(bench_device(bench), STREAM_D2H);
    double pause_s = 0.5e-3;
    struct device_timing before[HANDOVERS], after[HANDOVERS];
    /* Between streams of a GPU no host function takes part: copies of nearly nothing stand for work. */
    const bool gpu = !bench_backend(bench)->arena_on_host;
    uint64_t room;
    char *const copies = bench_copies(bench, &room);
    for (uint32_t i = 0; i < HANDOVERS; i++) {
        if (gpu) {
            device_copy(first, copies, host, HANDOVER_BYTES, &before[i]);
            device_wait(second, first, device_record(first));
            device_copy(second, host, copies, HANDOVER_BYTES, &after[i]);
            device_wait(first, second, device_record(second));
            continue;
        }
        device_call(first, wait_a_while, &pause_s, 0, &before[i]);
        device_wait(second, first, device_record(first));
        device_call(second, do_nothing, NULL, 0, &after[i]);
        device_wait(first, second, device_record(second));
    }
    while (!device_synchronize(second, device_record(second), 1))
        ;
    double sum = 0;
    for (uint32_t i = 0; i < HANDOVERS; i++) sum += after[i].start_s - before[i].end_s;
    return fmax(0, sum / HANDOVERS);
}

enum status measure_copies(struct measure *measure, struct bench *bench, double budget_s,
                           struct device_type *type, struct figure *handover_s, struct error *err)
{
    const uint32_t sizes = bench_backend(bench)->arena_on_host ? HOST_SIZES : GPU_SIZES;
    uint64_t room;
    bench_copies(bench, &room);
    char *host = NULL;
    void *memory[2];
    enum status status = bench_map_host(bench, room, &host, err);
    for (uint32_t d = 0; d < 2 && status == STATUS_OK; d++)
        status = arena_array(&measure->hardware->arena, sizes, sizeof(struct copy_point),
                             &memory[d], err);
    if (status != STATUS_OK) goto out;

    static struct samples samples[2][GPU_SIZES];
    memset(samples, 0, sizeof samples);
    struct samples handovers = {.count = 0};
    double rate[2][GPU_SIZES];
    for (uint32_t i = 0; i < sizes; i++) rate[0][i] = rate[1][i] = 5e9;
    const double start_s = clock_s();
    for (uint32_t round = 0; round < SAMPLES_MAX; round++) {
        if (round >= 3 && clock_s() - start_s > budget_s) break;
        for (uint32_t i = 0; i < sizes; i++)
            for (uint32_t d = 0; d < 2; d++) {
                const double seconds =
                    time_copies(bench, d == 0 ? COPY_H2D : COPY_D2H, host, copy_sizes[i],
                                rate[d][i]);
                samples_add(&samples[d][i], seconds);
                rate[d][i] = (double)copy_sizes[i] / seconds;
            }
        samples_add(&handovers, time_handover(bench, host));
        if (measure_stopped(measure)) {
            status = error_set(err, STATUS_INTERRUPTED, "stopped before its end");
            goto out;
        }
    }
    for (uint32_t d = 0; d < 2; d++) {
        struct copy_point *const points = memory[d];
        for (uint32_t i = 0; i < sizes; i++)
            points[i] = (struct copy_point){.bytes = copy_sizes[i],
                                            .seconds = samples_median(&samples[d][i]),
                                            .spread = samples_spread(&samples[d][i])};
    }
    type->h2d = memory[0];
    type->d2h = memory[1];
    type->h2d_count = type->d2h_count = sizes;
    *handover_s = measure_figure(measure, samples_median(&handovers), samples_spread(&handovers));
    measure_progress(measure, budget_s, "copies");
    status = device_failed(bench_device(bench), err);
out:
    bench_unmap_host(bench, host, room);
    return status;
}

/* --- experiments ----------------------------------------------------------------------------------- */

enum { DEVICES_LIMIT = 16, STREAMS_LIMIT = 4, STEPS_LIMIT = 256, COPY_BYTES = 4 << 20 };

/* Something that repeats work on one stream. */
struct repeater {
    struct device_stream *stream;
    struct bench *bench;
    char *host;            /* copies only: NULL for a computation */
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
    char *const device = bench_copies(r->bench, &room);
    const uint64_t places = room / 2 / COPY_BYTES;
    for (uint32_t i = 0; i < r->count; i++) {
        if (!r->host) {
            const struct bench_step step = {r->bench, i};
            device_compute(r->stream, bench_compute_step, &step, sizeof step, &r->timings[i]);
            continue;
        }
        /* Each direction has a half of the blocks. */
        const uint64_t offset = i % places * COPY_BYTES + (r->to_host ? room / 2 : 0);
        if (r->to_host)
            device_copy(r->stream, r->host + offset, device + offset, COPY_BYTES, &r->timings[i]);
        else
            device_copy(r->stream, device + offset, r->host + offset, COPY_BYTES, &r->timings[i]);
    }
}

/* Run all at once for about `duration_s`; once_s[i]: mean seconds of what lies in the common time. */
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
        /* Nothing lies wholly inside when the others were done at once: all of it then. */
        once_s[i] = inside > 0 ? (last_s - first_s) / inside
                               : (r->timings[r->count - 1].end_s - r->timings[0].start_s) / r->count;
    }
}

struct laboratory {
    struct bench *benches[DEVICES_LIMIT];
    uint32_t bench_count;  /* at least 2; 1 for a GPU */
    uint32_t filling;      /* how many fill the cores */
    char *host;
    uint64_t host_bytes;
    struct repeater *computing; /* per bench */
    struct repeater *copying;   /* [0] H2D, [1] D2H of the first device */
};

static void close_laboratory(struct laboratory *lab)
{
    if (lab->bench_count > 0) bench_unmap_host(lab->benches[0], lab->host, lab->host_bytes);
    for (uint32_t i = 0; i < lab->bench_count; i++) bench_close(lab->benches[i]);
    free(lab->computing);
    free(lab->copying);
}

static enum status open_laboratory(struct laboratory *lab, const struct backend *backend,
                                   uint32_t threads, uint32_t cores, struct error *err)
{
    const bool gpu = !backend->arena_on_host;
    lab->filling = !gpu && cores / threads > 0 ? cores / threads : 1;
    if (lab->filling > DEVICES_LIMIT) lab->filling = DEVICES_LIMIT;
    const uint32_t devices = gpu ? 1 : lab->filling > 2 ? lab->filling : 2;
    lab->computing = alloc_zeroed(devices, sizeof *lab->computing);
    lab->copying = alloc_zeroed(2, sizeof *lab->copying);
    if (!lab->computing || !lab->copying)
        return error_memory(err, "the measurement", devices * sizeof *lab->computing);
    for (uint32_t i = 0; i < devices; i++) {
        const struct bench_options options = {
            .backend = backend, .index = i, .threads = threads, .size = BENCH_SMALL};
        const enum status status = bench_open(&options, &lab->benches[i], err);
        if (status != STATUS_OK) return status;
        lab->bench_count++;
        lab->computing[i] = (struct repeater){
            .stream = device_stream(bench_device(lab->benches[i]), STREAM_COMPUTE),
            .bench = lab->benches[i],
            .once_s = 5e-3};
    }
    bench_copies(lab->benches[0], &lab->host_bytes);
    const enum status status = bench_map_host(lab->benches[0], lab->host_bytes, &lab->host, err);
    if (status != STATUS_OK) return status;
    for (uint32_t d = 0; d < 2; d++)
        lab->copying[d] = (struct repeater){
            .stream = device_stream(bench_device(lab->benches[0]),
                                    d == 0 ? STREAM_H2D : STREAM_D2H),
            .bench = lab->benches[0],
            .host = lab->host,
            .to_host = d == 1,
            .once_s = 1e-3};
    return STATUS_OK;
}

/* One experiment: seconds of a step (mean over the devices at work), rates of the copies. */
struct observation {
    double step_s;
    double copy_bytes_per_s[2];
    double copies_bytes_per_s; /* their sum */
};

static struct observation observe(struct laboratory *lab, uint32_t devices, uint32_t copies,
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

/* Never below zero: work does not speed other work up, noise does. */
static struct figure effect(const struct measure *measure, const struct samples *samples)
{
    return measure_figure(measure, fmax(0, samples_median(samples)),
                          fmin(1, fabs(samples_spread(samples))));
}

/* One round of experiments adds a sample to each unknown. */
struct effects {
    struct samples compute_by_compute, compute_by_copy, copy_by_compute, copy_by_copy, reference;
};

static void experiment(struct laboratory *lab, double duration_s, struct effects *out)
{
    const uint32_t all = lab->bench_count, filling = lab->filling;
    const struct observation one = observe(lab, 1, 0, duration_s);
    const struct observation many = all > 1 ? observe(lab, all, 0, duration_s) : one;
    const struct observation copy = observe(lab, 0, 1, duration_s);
    const struct observation copies = observe(lab, 0, 2, duration_s);
    const struct observation beside_one = observe(lab, filling, 1, duration_s);
    const struct observation beside_two = observe(lab, filling, 2, duration_s);

    const double reference = copy.copies_bytes_per_s;
    const double by_compute = all > 1 ? (many.step_s / one.step_s - 1) / (all - 1) : 0;
    samples_add(&out->reference, reference);
    samples_add(&out->compute_by_compute, by_compute);
    samples_add(&out->copy_by_copy, 2 * reference / copies.copies_bytes_per_s - 1);
    samples_add(&out->copy_by_compute, (reference / beside_one.copies_bytes_per_s - 1) / filling);
    const struct observation *const beside[] = {&beside_one, &beside_two};
    for (uint32_t i = 0; i < 2; i++) {
        const double slowed = beside[i]->step_s / one.step_s - 1 - by_compute * (filling - 1);
        samples_add(&out->compute_by_copy, slowed * reference / beside[i]->copies_bytes_per_s);
    }
}

enum status measure_interference(struct measure *measure, const struct backend *backend,
                                 uint32_t threads, uint32_t cores, double budget_s,
                                 struct interference *out, struct error *err)
{
    enum { EXPERIMENTS = 6 };
    const uint32_t rounds = measure_is_coarse(measure) ? 1 : 3;
    struct laboratory lab = {.bench_count = 0};
    enum status status = open_laboratory(&lab, backend, threads, cores, err);
    if (status != STATUS_OK) goto out;
    struct effects effects = {.reference = {.count = 0}};
    const double duration_s = fmax(0.02, budget_s / (EXPERIMENTS * (rounds + 0.5)));
    observe(&lab, 1, 2, duration_s / 4); /* estimates of how long steps and copies take */
    for (uint32_t round = 0; round < rounds; round++) {
        experiment(&lab, duration_s, &effects);
        measure_progress(measure, budget_s / rounds, "interference");
        if (measure_stopped(measure)) {
            status = error_set(err, STATUS_INTERRUPTED, "stopped before its end");
            goto out;
        }
    }
    *out = (struct interference){
        .compute_by_compute = effect(measure, &effects.compute_by_compute),
        .compute_by_copy = effect(measure, &effects.compute_by_copy),
        .copy_by_compute = effect(measure, &effects.copy_by_compute),
        .copy_by_copy = effect(measure, &effects.copy_by_copy),
        .copy_reference_rate = measure_figure(measure, samples_median(&effects.reference),
                                              samples_spread(&effects.reference)),
    };
    status = device_failed(bench_device(lab.benches[0]), err);
out:
    close_laboratory(&lab);
    return status;
}
