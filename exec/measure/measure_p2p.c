/*
 * Two devices are opened, each with only an arena. The second fetches from the first, in batches of copies between
 * places that were not touched for a while. If the data does not arrive (device_p2p.h) nothing is measured: such
 * devices are planned without direct copies.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/size.h"
#include "base/try.h"
#include "exec/device/device_p2p.h"
#include "exec/measure/measure_state.h"

static const uint64_t sizes[] = {4 << 10, 16 << 10, 64 << 10, 256 << 10,
                                 1 << 20, 4 << 20,  16 << 20, 64 << 20};
enum { SIZES = ARRAY_COUNT(sizes), BATCH_MAX = 32 };
static const uint64_t ARENA_BYTES = UINT64_C(160) << 20;
static const double BATCH_S = 4e-3;

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
    struct measure_samples samples = {.count = 0};
    for (uint32_t i = 1; i < count; i++) /* the first wakes the thread */
        measure_samples_add(&samples, timings[i].end_s - timings[i].start_s);
    return measure_samples_median(&samples);
}

struct measure_p2p_visits {
    struct measure *measure;
    struct device *devices[2];
    bool direct; /* copied data arrives */
    struct measure_series series[SIZES];
    double rates[SIZES]; /* estimates */
};

enum status measure_p2p_visits_open(struct measure *measure, const struct backend *backend,
                                    struct measure_p2p_visits **out, struct error *err)
{
    struct measure_p2p_visits *const visits = alloc_zeroed(1, sizeof *visits);
    if (!visits) return error_memory(err, "the measurement", sizeof *visits);
    enum p2p_way way;
    char why[P2P_WHY_BYTES];
    enum status status = STATUS_OK;
    visits->measure = measure;
    for (uint32_t i = 0; i < SIZES; i++) visits->rates[i] = 5e9;
    for (uint32_t d = 0; d < 2 && status == STATUS_OK; d++) {
        const struct device_options options = {
            .index = d, .arena_bytes = ARENA_BYTES, .threads = 1, .p2p = true};
        status = backend->open(&options, &visits->devices[d], err);
    }
    if (status == STATUS_OK) status = device_link(visits->devices[1], visits->devices[0], &way, why, err);
    if (status == STATUS_OK) {
        visits->direct = way == P2P_DIRECT;
        *out = visits;
    } else {
        measure_p2p_visits_close(visits);
    }
    return status;
}

void measure_p2p_visits_close(struct measure_p2p_visits *visits)
{
    if (!visits) return;
    for (uint32_t d = 0; d < 2; d++)
        if (visits->devices[d]) device_stop(visits->devices[d]);
    for (uint32_t d = 0; d < 2; d++) device_close(visits->devices[d]);
    free(visits);
}

void measure_p2p_visits_visit(struct measure_p2p_visits *visits)
{
    struct measure_watch *const watch = &visits->measure->watch;
    for (uint32_t i = 0; i < SIZES && visits->direct; i++) {
        const double seconds = time_copies(visits->devices[1], visits->devices[0], sizes[i], visits->rates[i]);
        measure_watch_take(watch, &visits->series[i], seconds, false);
        visits->rates[i] = (double)sizes[i] / seconds;
    }
    measure_watch_judge(watch);
}

enum status measure_p2p_visits_keep(struct measure_p2p_visits *visits, struct device_type *type, struct error *err)
{
    if (!visits->direct) return STATUS_OK;
    struct copy_point *points;
    TRY(ARENA_NEW(&visits->measure->hardware->arena, SIZES, points, err));
    for (uint32_t i = 0; i < SIZES; i++) {
        const struct measure_samples *const samples = measure_series_samples(&visits->series[i]);
        points[i] = (struct copy_point){
            .bytes = sizes[i], .seconds = measure_samples_median(samples), .spread = measure_samples_spread(samples)};
    }
    type->p2p = points;
    type->p2p_count = SIZES;
    return device_failed(visits->devices[1], err);
}
