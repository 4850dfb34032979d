/*
 * Collectives among 2, 4 and 8 members, by kind and size, with nothing else running and while a device of one thread
 * computes. A sample is a batch of equal collectives. There are more points than a round has time for, so each visit
 * goes on where the last one ended; a budget below 15 s has only groups of two and a few sizes.
 */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/process/clock.h"
#include "base/size.h"
#include "base/try.h"
#include "exec/device/host_memory.h"
#include "exec/measure/measure_members.h"
#include "exec/measure/measure_state.h"
#include "models/hardware/collective_rate.h"

static const uint64_t sizes[] = {1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
static const uint64_t few_sizes[] = {4 << 10, 64 << 10, 1 << 20, 4 << 20};
static const uint64_t busy_sizes[] = {64 << 10, 1 << 20, 16 << 20};
static const uint32_t groups[] = {2, 4, 8};
static const enum collective_kind kinds[] = {COLLECTIVE_ALL_REDUCE, COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_ALL_GATHER,
                                             COLLECTIVE_BROADCAST, COLLECTIVE_SEND};
enum { ROWS_MAX = 2 * ARRAY_COUNT(groups) * ARRAY_COUNT(kinds), SIZES_MAX = ARRAY_COUNT(sizes), STEPS_MAX = 64 };
static const double BATCH_S = 4e-3, VISIT_SHARE = 0.02;
static const uint64_t MEMORY_BYTES = UINT64_C(256) << 20, COARSE_MEMORY_BYTES = UINT64_C(8) << 20;

struct collective_row {
    enum collective_kind kind;
    uint32_t members, computing;
    const uint64_t *sizes;
    uint32_t size_count;
    struct measure_series series[SIZES_MAX];
    double seconds[SIZES_MAX]; /* estimates; 0: none yet */
};

struct measure_collective_visits {
    struct measure *measure;
    struct measure_bench *bench; /* computes meanwhile */
    double step_s;               /* estimate of its step */
    void *memory;
    uint64_t memory_bytes;
    struct collective_row rows[ROWS_MAX];
    uint32_t row_count;
    uint32_t row, size; /* the next point */
};

/* Adds a row with the sizes for which there is memory. */
static void add_row(struct measure_collective_visits *visits, enum collective_kind kind, uint32_t members,
                    uint32_t computing, const uint64_t *of, uint32_t count)
{
    uint32_t fitting = 0;
    while (fitting < count && of[fitting] <= visits->memory_bytes / members) fitting++;
    if (fitting > 0)
        visits->rows[visits->row_count++] = (struct collective_row){
            .kind = kind, .members = members, .computing = computing, .sizes = of, .size_count = fitting};
}

static void add_rows(struct measure_collective_visits *visits)
{
    const bool coarse = measure_is_coarse(visits->measure);
    for (uint32_t g = 0; g < (coarse ? 1 : ARRAY_COUNT(groups)); g++)
        for (uint32_t k = 0; k < ARRAY_COUNT(kinds); k++) {
            if (kinds[k] == COLLECTIVE_SEND && groups[g] > 2) continue;
            if (coarse) add_row(visits, kinds[k], groups[g], 0, few_sizes, ARRAY_COUNT(few_sizes));
            else add_row(visits, kinds[k], groups[g], 0, sizes, ARRAY_COUNT(sizes));
            if (!coarse) add_row(visits, kinds[k], groups[g], 1, busy_sizes, ARRAY_COUNT(busy_sizes));
        }
}

enum status measure_collective_visits_open(struct measure *measure, struct measure_bench *bench,
                                           struct measure_collective_visits **out, struct error *err)
{
    struct measure_collective_visits *const visits = alloc_zeroed(1, sizeof *visits);
    if (!visits) return error_memory(err, "the measurement", sizeof *visits);
    visits->measure = measure;
    visits->bench = bench;
    visits->step_s = 5e-3;
    const uint64_t wanted = measure_is_coarse(measure) ? COARSE_MEMORY_BYTES : MEMORY_BYTES;
    visits->memory_bytes = min_u64(wanted, host_memory_available() / 8 / 4096 * 4096);
    const enum status status = host_memory_map("the measurement of collectives", visits->memory_bytes, &visits->memory,
                                               err);
    if (status == STATUS_OK) {
        add_rows(visits);
        *out = visits;
    } else {
        measure_collective_visits_close(visits);
    }
    return status;
}

void measure_collective_visits_close(struct measure_collective_visits *visits)
{
    if (!visits) return;
    host_memory_unmap(visits->memory, visits->memory_bytes);
    free(visits);
}

/* --- samples ------------------------------------------------------------------------------------ */

/* Keeps the bench computing for at least these seconds. */
static uint32_t enqueue_steps(struct measure_collective_visits *visits, double seconds, struct device_timing *timings)
{
    struct device_stream *const stream = device_stream(measure_bench_device(visits->bench), STREAM_COMPUTE);
    const double wanted = ceil(seconds / visits->step_s) + 1;
    const uint32_t count = wanted < STEPS_MAX ? (uint32_t)wanted : STEPS_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const struct measure_bench_step step = {visits->bench, i};
        device_compute(stream, measure_bench_compute_step, &step, sizeof step, &timings[i]);
    }
    return count;
}

static void await_steps(struct measure_collective_visits *visits, uint32_t count, const struct device_timing *timings)
{
    struct device_stream *const stream = device_stream(measure_bench_device(visits->bench), STREAM_COMPUTE);
    while (!device_synchronize(stream, device_record(stream), 1))
        ;
    visits->step_s = (timings[count - 1].end_s - timings[0].start_s) / count;
}

/* Takes a sample of the row's point. */
static enum status visit_point(struct measure_collective_visits *visits, struct collective_row *row, uint32_t size,
                               struct error *err)
{
    enum { REPETITIONS_MIN = 3, REPETITIONS_MAX = 64 };
    struct device_timing timings[STEPS_MAX];
    const double estimate_s = row->seconds[size] > 0 ? row->seconds[size] : 50e-6 + 3e-10 * (double)row->sizes[size];
    const double repetitions = fmin(fmax(BATCH_S / estimate_s, REPETITIONS_MIN), REPETITIONS_MAX);
    struct measure_members about = {
        .kind = row->kind, .members = row->members, .bytes = row->sizes[size], .repetitions = (uint32_t)repetitions};
    for (uint32_t m = 0; m < row->members; m++)
        about.memory[m] = (char *)visits->memory + m * (visits->memory_bytes / row->members / 4096 * 4096);
    double seconds = 0;
    const uint32_t steps = row->computing > 0 ? enqueue_steps(visits, 1.5 * about.repetitions * estimate_s, timings)
                                              : 0;
    const enum status status = measure_members_run(&about, &seconds, err);
    if (steps > 0) await_steps(visits, steps, timings);
    if (status != STATUS_OK) return status;
    row->seconds[size] = seconds;
    measure_watch_take(&visits->measure->watch, &row->series[size], seconds, false);
    return STATUS_OK;
}

enum status measure_collective_visits_visit(struct measure_collective_visits *visits, struct error *err)
{
    const double end_s = clock_s() + VISIT_SHARE * visits->measure->budget_s;
    uint32_t points = 0;
    for (uint32_t r = 0; r < visits->row_count; r++) points += visits->rows[r].size_count;
    for (uint32_t i = 0; i < points && (i == 0 || clock_s() < end_s); i++) {
        struct collective_row *const row = &visits->rows[visits->row];
        TRY(visit_point(visits, row, visits->size, err));
        if (++visits->size < row->size_count) continue;
        visits->size = 0;
        visits->row = (visits->row + 1) % visits->row_count;
    }
    measure_watch_judge(&visits->measure->watch);
    return STATUS_OK;
}

bool measure_collective_visits_complete(const struct measure_collective_visits *visits)
{
    for (uint32_t r = 0; r < visits->row_count; r++)
        for (uint32_t i = 0; i < visits->rows[r].size_count; i++)
            if (!measure_series_has_samples(&visits->rows[r].series[i])) return false;
    return true;
}

static struct copy_point point_of(const struct collective_row *row, uint32_t size)
{
    const struct measure_samples *const samples = measure_series_samples(&row->series[size]);
    return (struct copy_point){.bytes = row->sizes[size],
                               .seconds = measure_samples_median(samples),
                               .spread = measure_samples_spread(samples)};
}

enum status measure_collective_visits_keep(const struct measure_collective_visits *visits, struct device_type *type,
                                           struct error *err)
{
    struct arena *const arena = &visits->measure->hardware->arena;
    struct collective_rate *rates;
    TRY(ARENA_NEW(arena, visits->row_count, rates, err));
    type->collectives = rates;
    for (uint32_t r = 0; r < visits->row_count; r++) {
        const struct collective_row *const row = &visits->rows[r];
        struct copy_point *points;
        TRY(ARENA_NEW(arena, row->size_count, points, err));
        for (uint32_t i = 0; i < row->size_count; i++) points[i] = point_of(row, i);
        rates[r] = (struct collective_rate){.kind = row->kind,
                                            .members = row->members,
                                            .computing = row->computing,
                                            .points = points,
                                            .point_count = row->size_count};
    }
    type->collective_count = visits->row_count;
    return device_failed(measure_bench_device(visits->bench), err);
}
