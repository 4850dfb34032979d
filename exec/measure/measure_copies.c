/*
 * A sample is a batch of copies with nothing else running, between places that were not touched for a while, as
 * spilled state is.
 */
#include "exec/measure/measure_state.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "base/size.h"
#include "base/try.h"

static const uint64_t copy_sizes[] = {4 << 10,  16 << 10, 64 << 10, 256 << 10,
                                      1 << 20,  4 << 20,  16 << 20, 64 << 20, 256 << 20};
enum { GPU_SIZES = ARRAY_COUNT(copy_sizes), HOST_SIZES = GPU_SIZES - 1 }; /* host: to 64 MiB */
enum { BATCH_MAX = 64, HANDOVERS = 60, HANDOVER_BYTES = 256 };
static const double BATCH_S = 4e-3;

/* Returns the median seconds, over both blocks in turn. */
static double time_copies(struct measure_bench *bench, enum copy_direction direction, char *host,
                          uint64_t bytes, double rate)
{
    uint64_t room;
    char *const device = measure_bench_copies(bench, &room);
    struct device_stream *const stream =
        device_stream(measure_bench_device(bench), direction == COPY_H2D ? STREAM_H2D : STREAM_D2H);
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
    struct measure_samples samples = {.count = 0};
    for (uint32_t i = 1; i < count; i++) /* the first wakes the thread */
        measure_samples_add(&samples, timings[i].end_s - timings[i].start_s);
    return measure_samples_median(&samples);
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

/* Measures from the end of work on one stream to the start on another that waited. */
static double time_handover(struct measure_bench *bench, char *host)
{
    struct device_stream *const first = device_stream(measure_bench_device(bench), STREAM_COMPUTE);
    struct device_stream *const second = device_stream(measure_bench_device(bench), STREAM_D2H);
    double pause_s = 0.5e-3;
    struct device_timing before[HANDOVERS], after[HANDOVERS];
    /* Between streams of a GPU tiny copies represent work. */
    const bool gpu = !measure_bench_backend(bench)->arena_on_host;
    uint64_t room;
    char *const copies = measure_bench_copies(bench, &room);
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

/* --- visits ------------------------------------------------------------------------------------- */

struct measure_copy_visits {
    struct measure *measure;
    struct measure_bench *bench;
    char *host;
    uint64_t host_bytes;
    uint32_t size_count;
    struct measure_series series[2][GPU_SIZES]; /* [direction][size] */
    double rates[2][GPU_SIZES];         /* estimates */
    struct measure_series handovers;
};

enum status measure_copy_visits_open(struct measure *measure, struct measure_bench *bench,
                                     struct measure_copy_visits **out, struct error *err)
{
    struct measure_copy_visits *const visits = alloc_zeroed(1, sizeof *visits);
    if (!visits) return error_memory(err, "the measurement", sizeof *visits);
    visits->measure = measure;
    visits->bench = bench;
    visits->size_count = measure_bench_backend(bench)->arena_on_host ? HOST_SIZES : GPU_SIZES;
    for (uint32_t d = 0; d < 2; d++)
        for (uint32_t i = 0; i < visits->size_count; i++) visits->rates[d][i] = 5e9;
    measure_bench_copies(bench, &visits->host_bytes);
    const enum status status = measure_bench_map_host(bench, visits->host_bytes, &visits->host, err);
    if (status == STATUS_OK) *out = visits;
    else measure_copy_visits_close(visits);
    return status;
}

void measure_copy_visits_close(struct measure_copy_visits *visits)
{
    if (!visits) return;
    measure_bench_unmap_host(visits->bench, visits->host, visits->host_bytes);
    free(visits);
}

void measure_copy_visits_visit(struct measure_copy_visits *visits)
{
    struct measure_watch *const watch = &visits->measure->watch;
    for (uint32_t i = 0; i < visits->size_count; i++)
        for (uint32_t d = 0; d < 2; d++) {
            const double seconds = time_copies(visits->bench, d == 0 ? COPY_H2D : COPY_D2H, visits->host, copy_sizes[i],
                                               visits->rates[d][i]);
            measure_watch_take(watch, &visits->series[d][i], seconds, false);
            visits->rates[d][i] = (double)copy_sizes[i] / seconds;
        }
    measure_watch_take(watch, &visits->handovers, time_handover(visits->bench, visits->host), false);
    measure_watch_judge(watch);
}

enum status measure_copy_visits_keep(struct measure_copy_visits *visits, struct device_type *type,
                                     struct sourced_value *handover_s, struct error *err)
{
    const struct copy_point *kept[2];
    for (uint32_t d = 0; d < 2; d++) {
        struct copy_point *points;
        TRY(ARENA_NEW(&visits->measure->hardware->arena, visits->size_count, points, err));
        for (uint32_t i = 0; i < visits->size_count; i++) {
            const struct measure_samples *const samples = measure_series_samples(&visits->series[d][i]);
            points[i] = (struct copy_point){.bytes = copy_sizes[i],
                                            .seconds = measure_samples_median(samples),
                                            .spread = measure_samples_spread(samples)};
        }
        kept[d] = points;
    }
    type->h2d = kept[0];
    type->d2h = kept[1];
    type->h2d_count = type->d2h_count = visits->size_count;
    const struct measure_samples *const handovers = measure_series_samples(&visits->handovers);
    *handover_s = measure_sourced(visits->measure, measure_samples_median(handovers),
                                  measure_samples_spread(handovers));
    return device_failed(measure_bench_device(visits->bench), err);
}
