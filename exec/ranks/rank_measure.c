/*
 * A sample is the mean of equal collectives in succession, after all ranks have met; of messages it is half of the way
 * there and back. The numbers of repetitions depend on sizes only, so that all ranks do the same; after each pass rank
 * 0 tells whether another one follows.
 *
 * The work is on a thread of its own: a wait for data of a failed rank ends only when the ranks are left.
 */
#include "exec/ranks/rank_measure.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "base/size.h"
#include "base/try.h"
#include "exec/measure/measure_state.h"
#include "exec/ranks/rank_sum.h"
#include "models/hardware/collective_rate.h"

static const uint64_t sizes[] = {1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
enum { SIZES = ARRAY_COUNT(sizes), FEW_SIZES = SIZES - 2, REPETITIONS_MAX = 32, REPETITIONS_MIN = 2,
      MEETING_FLOATS = 16 };
enum { ALL_REDUCE, SEND, ROWS };
enum decision { GO_ON, END, STOP };
static const double COARSE_S = 3; /* a shorter time has few sizes */
static const uint64_t BATCH_BYTES = UINT64_C(16) << 20;

struct between {
    struct ranks *ranks;
    double end_s;
    uint32_t size_count;
    const volatile bool *stop;
    uint64_t number;   /* of the next message or sum, equal on all ranks */
    uint32_t *ranks_of;
    float **values;    /* by member; of this rank only */
    float *own, *small;
    struct measure_samples samples[ROWS][SIZES];
    enum decision decision;
    bool failed;       /* a wait ended without its data */
    atomic_bool done;
};

static uint32_t repetitions_of(uint64_t bytes)
{
    const uint64_t wanted = BATCH_BYTES / bytes;
    return wanted > REPETITIONS_MAX ? REPETITIONS_MAX : wanted < REPETITIONS_MIN ? REPETITIONS_MIN : (uint32_t)wanted;
}

/* --- collectives ------------------------------------------------------------------------------- */

/* Adds up `count` numbers at `values` over all ranks. */
static bool add_up(struct between *b, float *values, uint64_t count)
{
    b->values[ranks_own(b->ranks)] = values;
    const struct rank_sum sum = {.ranks = b->ranks, .number = b->number++, .members = ranks_count(b->ranks),
                                 .ranks_of = b->ranks_of, .values = b->values, .count = count, .workers = 1};
    return rank_sum_work(&sum, 0);
}

static bool meet(struct between *b)
{
    return add_up(b, b->small, MEETING_FLOATS);
}

static bool move(struct between *b, bool sends, uint32_t peer, void *at, uint64_t bytes)
{
    struct ranks_request request;
    if (sends) ranks_send(b->ranks, peer, b->number, 0, at, bytes, &request);
    else ranks_receive(b->ranks, peer, b->number, 0, at, bytes, &request);
    return ranks_await(b->ranks, &request);
}

/* Sends there and back, between ranks 0 and 1. */
static bool exchange(struct between *b, uint64_t bytes)
{
    const uint32_t own = ranks_own(b->ranks);
    bool moved = true;
    for (uint32_t way = 0; way < 2; way++) {
        if (moved && own < 2) moved = move(b, own == way, 1 - own, b->own, bytes);
        b->number++;
    }
    return moved;
}

/* Takes a sample. Returns false after a failure. */
static bool sample(struct between *b, uint32_t row, uint32_t size)
{
    const uint32_t repetitions = repetitions_of(sizes[size]);
    if (!meet(b)) return false;
    const double begun_s = clock_s();
    for (uint32_t i = 0; i < repetitions; i++)
        if (!(row == SEND ? exchange(b, sizes[size]) : add_up(b, b->own, sizes[size] / sizeof(float)))) return false;
    const double seconds = (clock_s() - begun_s) / repetitions;
    measure_samples_add(&b->samples[row][size], row == SEND ? seconds / 2 : seconds);
    return true;
}

/* Learns from rank 0 whether another pass follows. */
static bool decide(struct between *b)
{
    uint64_t decision = *b->stop ? STOP : clock_s() >= b->end_s ? END : GO_ON;
    bool told = true;
    for (uint32_t r = 1; r < ranks_count(b->ranks) && told; r++) {
        const bool sends = ranks_own(b->ranks) == 0;
        if (sends || ranks_own(b->ranks) == r) told = move(b, sends, sends ? r : 0, &decision, sizeof decision);
    }
    b->number++;
    b->decision = (enum decision)decision;
    return told;
}

static void *measure_passes(void *argument)
{
    struct between *const b = argument;
    while (!b->failed && b->decision == GO_ON) {
        for (uint32_t row = 0; row < ROWS; row++)
            for (uint32_t i = 0; i < b->size_count && !b->failed; i++) b->failed = !sample(b, row, i);
        b->failed = b->failed || !decide(b);
    }
    atomic_store(&b->done, true);
    return NULL;
}

/* --- the ranks ---------------------------------------------------------------------------------- */

static enum status allocate(struct between *b, struct error *err)
{
    const uint32_t count = ranks_count(b->ranks);
    b->ranks_of = alloc_zeroed(count, sizeof *b->ranks_of);
    b->values = alloc_zeroed(count, sizeof *b->values);
    b->own = alloc_zeroed(1, sizes[b->size_count - 1]);
    b->small = alloc_zeroed(MEETING_FLOATS, sizeof *b->small);
    if (!b->ranks_of || !b->values || !b->own || !b->small)
        return error_memory(err, "the measurement", sizes[SIZES - 1]);
    memset(b->own, 0, sizes[b->size_count - 1]);
    for (uint32_t r = 0; r < count; r++) b->ranks_of[r] = r;
    return STATUS_OK;
}

/* Watches the other ranks while the thread measures; leaves them. */
static enum status watch(struct between *b, struct error *err)
{
    static const struct timespec pause = {.tv_nsec = 20000000};
    enum status status = STATUS_OK;
    uint32_t culprit;
    while (status == STATUS_OK && !atomic_load(&b->done)) {
        nanosleep(&pause, NULL);
        status = ranks_failed(b->ranks, &culprit, err);
    }
    if (status == STATUS_OK && b->failed) status = ranks_failed(b->ranks, &culprit, err);
    if (status == STATUS_OK && b->failed)
        status = error_set(err, STATUS_DEVICE, "the ranks were left while they measured");
    if (status == STATUS_OK) return ranks_leave(b->ranks, NULL, err);
    struct error ignored = {0};
    (void)!ranks_leave(b->ranks, err, &ignored);
    return status;
}

static enum status keep(const struct between *b, struct hardware *machine, struct error *err)
{
    static const uint32_t kinds[ROWS] = {[ALL_REDUCE] = COLLECTIVE_ALL_REDUCE, [SEND] = COLLECTIVE_SEND};
    struct device_type *const type = &machine->types[0];
    struct collective_rate *rates;
    TRY(ARENA_NEW(&machine->arena, type->collective_count + ROWS, rates, err));
    if (type->collective_count > 0) memcpy(rates, type->collectives, type->collective_count * sizeof *rates);
    for (uint32_t row = 0; row < ROWS; row++) {
        struct copy_point *points;
        TRY(ARENA_NEW(&machine->arena, b->size_count, points, err));
        for (uint32_t i = 0; i < b->size_count; i++)
            points[i] = (struct copy_point){.bytes = sizes[i],
                                            .seconds = measure_samples_median(&b->samples[row][i]),
                                            .spread = measure_samples_spread(&b->samples[row][i])};
        rates[type->collective_count + row] = (struct collective_rate){
            .kind = kinds[row], .members = row == SEND ? 2 : ranks_count(b->ranks),
            .processes = row == SEND ? 2 : ranks_count(b->ranks), .points = points,
            .point_count = b->size_count};
    }
    type->collectives = rates;
    type->collective_count += ROWS;
    return hardware_check(machine, err);
}

enum status rank_measure(struct ranks *ranks, double budget_s, const volatile bool *stop, struct hardware *machine,
                         struct error *err)
{
    struct between *const b = alloc_zeroed(1, sizeof *b);
    if (!b) return error_memory(err, "the measurement", sizeof *b);
    pthread_t thread;
    b->ranks = ranks;
    b->stop = stop;
    b->end_s = clock_s() + budget_s;
    b->number = 1;
    b->size_count = budget_s < COARSE_S ? FEW_SIZES : SIZES;
    enum status status = allocate(b, err);
    if (status == STATUS_OK && pthread_create(&thread, NULL, measure_passes, b) != 0)
        status = error_set(err, STATUS_DEVICE, "no thread for the measurement");
    if (status == STATUS_OK) {
        status = watch(b, err);
        pthread_join(thread, NULL);
        if (status == STATUS_OK && b->decision == STOP)
            status = error_set(err, STATUS_INTERRUPTED, "stopped before its end");
        if (status == STATUS_OK && machine) status = keep(b, machine, err);
    } else {
        struct error ignored = {0};
        (void)!ranks_leave(ranks, err, &ignored);
    }
    free(b->ranks_of);
    free(b->values);
    free(b->own);
    free(b->small);
    free(b);
    return status;
}
