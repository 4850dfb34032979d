/*
 * Copies from one device to another, alone.
 *
 * Two devices of the back end are opened with nothing but an arena each; the second fetches from the
 * first, batches of copies between places that were not touched for a while, as boundaries are. On
 * the host that is a memcpy by the thread of the one that fetches; between GPUs whatever the driver
 * makes of it, and where what was copied does not arrive (device_p2p.h) there is nothing to measure:
 * such devices are planned without direct copies.
 */
#include <stdlib.h>

#include "base/progress.h"
#include "base/size.h"
#include "exec/device_p2p.h"
#include "exec/measure_state.h"
#include "models/try.h"

static const uint64_t sizes[] = {4 << 10, 16 << 10, 64 << 10, 256 << 10,
                                 1 << 20, 4 << 20,  16 << 20, 64 << 20};
enum { SIZES = ARRAY_COUNT(sizes), BATCH_MAX = 32, ROUNDS_MIN = 3 };
static const uint64_t ARENA_BYTES = UINT64_C(160) << 20;
static const double BATCH_S = 4e-3;

/* Median seconds of copies of `bytes`, one behind the other. */
static double time_copies(struct device *to, struct device *from, uint64_t bytes, double rate)
{
    struct device_stream *const stream = device_stream(to, STREAM_P2P);
    char *const target = device_arena(to), *const source = device_arena(from);
    const double wanted = BATCH_S * rate / (double)bytes;
    const uint32_t count = wanted < 3 ? 3 : wanted > BATCH_MAX ? BATCH_MAX : (uint32_t)wanted;
    const uint64_t step = (ARENA_BYTES - bytes) / count / 64 * 64;
    struct device_timing timings[BATCH_MAX];
    for (uint32_t i = 0; i < count; i++)
        device_copy_p2p(stream, target + i * step, from, source + (count - 1 - i) * step, bytes,
                        (struct device_guard){.limit = NULL}, &timings[i]);
    while (!device_synchronize(stream, device_record(stream), 1))
        ;
    struct samples samples = {.count = 0};
    for (uint32_t i = 1; i < count; i++) /* the first wakes the thread */
        samples_add(&samples, timings[i].end_s - timings[i].start_s);
    return samples_median(&samples);
}

static enum status measure_pair(struct measure *measure, struct device *to, struct device *from,
                                double budget_s, struct device_type *type, struct error *err)
{
    struct samples samples[SIZES] = {{.count = 0}};
    double rate[SIZES];
    void *memory;
    TRY(arena_array(&measure->hardware->arena, SIZES, sizeof(struct copy_point), &memory, err));
    for (uint32_t i = 0; i < SIZES; i++) rate[i] = 5e9;
    const double start_s = clock_s();
    for (uint32_t round = 0; round < SAMPLES_MAX; round++) {
        if (round >= ROUNDS_MIN && clock_s() - start_s > budget_s) break;
        for (uint32_t i = 0; i < SIZES; i++) {
            const double seconds = time_copies(to, from, sizes[i], rate[i]);
            samples_add(&samples[i], seconds);
            rate[i] = (double)sizes[i] / seconds;
        }
        if (measure_stopped(measure))
            return error_set(err, STATUS_INTERRUPTED, "stopped before its end");
    }
    TRY(device_failed(to, err));
    struct copy_point *const points = memory;
    for (uint32_t i = 0; i < SIZES; i++)
        points[i] = (struct copy_point){.bytes = sizes[i],
                                        .seconds = samples_median(&samples[i]),
                                        .spread = samples_spread(&samples[i])};
    type->p2p = points;
    type->p2p_count = SIZES;
    return STATUS_OK;
}

enum status measure_p2p(struct measure *measure, const struct backend *backend, double budget_s,
                        struct device_type *type, struct error *err)
{
    struct device *devices[2] = {NULL, NULL};
    enum p2p_way way;
    char why[P2P_WHY_BYTES];
    enum status status = STATUS_OK;
    for (uint32_t d = 0; d < 2 && status == STATUS_OK; d++) {
        const struct device_options options = {
            .index = d, .arena_bytes = ARENA_BYTES, .threads = 1, .p2p = true};
        status = backend->open(&options, &devices[d], err);
    }
    if (status == STATUS_OK) status = device_link(devices[1], devices[0], &way, why, err);
    if (status == STATUS_OK && way == P2P_DIRECT)
        status = measure_pair(measure, devices[1], devices[0], budget_s, type, err);
    measure_progress(measure, budget_s, "copies between devices");
    for (uint32_t d = 0; d < 2; d++) device_stop(devices[d]);
    for (uint32_t d = 0; d < 2; d++) device_close(devices[d]);
    return status;
}
