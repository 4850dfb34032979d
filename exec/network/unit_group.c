/*
 * An exchange has three meetings, as in exec/group/run_collective.c: all values are there; all slices are computed, and
 * each member copies the others'; nobody reads them any more.
 *
 * A member looks for the others for some microseconds before it sleeps, where there is a core for each of them: waking a
 * thread takes longer than the sum of a small array.
 */
#include "exec/network/unit_group.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clones.h"
#include "base/process/clock.h"
#include "exec/kernels/kernels_sum.h"

enum { PIECE_FLOATS = 4096, SIZES_MAX = 4, LOOKS_MAX = 1000 };

/* Seconds of a member's exchanges by their bytes; the last size has all others. */
struct exchanged {
    uint64_t bytes[SIZES_MAX];
    double seconds[SIZES_MAX];
};

struct unit_group {
    pthread_mutex_t lock;
    pthread_cond_t met;
    uint32_t members, arrived;
    atomic_uint_fast64_t meetings; /* changed under the lock, like `cancelled` */
    atomic_bool cancelled;
    bool looks;         /* before it sleeps */
    bool decision;      /* of the last beginning ... */
    double begun_s;     /* ... and its time */
    void **values;      /* by member */
    struct exchanged *exchanged; /* by member */
};

enum status unit_group_create(uint32_t members, struct unit_group **out, struct error *err)
{
    struct unit_group *const group = alloc_zeroed(1, sizeof *group);
    if (!group) return error_memory(err, "a tensor group", sizeof *group);
    group->members = members;
    group->looks = (long)members <= sysconf(_SC_NPROCESSORS_ONLN);
    pthread_mutex_init(&group->lock, NULL);
    pthread_cond_init(&group->met, NULL);
    group->values = alloc_zeroed(members, sizeof *group->values);
    group->exchanged = alloc_zeroed(members, sizeof *group->exchanged);
    if (!group->values || !group->exchanged) {
        unit_group_destroy(group);
        return error_memory(err, "a tensor group", members * (sizeof *group->values + sizeof *group->exchanged));
    }
    *out = group;
    return STATUS_OK;
}

void unit_group_destroy(struct unit_group *group)
{
    if (!group) return;
    pthread_cond_destroy(&group->met);
    pthread_mutex_destroy(&group->lock);
    free(group->values);
    free(group->exchanged);
    free(group);
}

void unit_group_cancel(struct unit_group *group)
{
    pthread_mutex_lock(&group->lock);
    atomic_store(&group->cancelled, true);
    pthread_cond_broadcast(&group->met);
    pthread_mutex_unlock(&group->lock);
}

static bool waits(const struct unit_group *group, uint64_t meeting)
{
    return atomic_load(&group->meetings) == meeting && !atomic_load(&group->cancelled);
}

/* Returns true when the others came within some microseconds. */
static bool met_soon(const struct unit_group *group, uint64_t meeting)
{
    for (uint32_t i = 0; i < LOOKS_MAX; i++)
        if (!waits(group, meeting)) return true;
    return false;
}

/* Waits for all members; the last one decides, if there is something to decide. Returns false after a cancellation. */
static bool meet(struct unit_group *group, unit_group_decide *decide, void *argument)
{
    pthread_mutex_lock(&group->lock);
    const uint64_t meeting = atomic_load(&group->meetings);
    const bool last = ++group->arrived == group->members;
    if (last) {
        group->arrived = 0;
        if (decide) {
            group->decision = decide(argument);
            group->begun_s = clock_s();
        }
        atomic_store(&group->meetings, meeting + 1);
        pthread_cond_broadcast(&group->met);
    }
    pthread_mutex_unlock(&group->lock);
    if (!last && !(group->looks && met_soon(group, meeting))) {
        pthread_mutex_lock(&group->lock);
        while (waits(group, meeting)) pthread_cond_wait(&group->met, &group->lock);
        pthread_mutex_unlock(&group->lock);
    }
    return !atomic_load(&group->cancelled);
}

bool unit_group_begin(struct unit_group *group, unit_group_decide *decide, void *argument, double *begun_s)
{
    if (!meet(group, decide, argument)) return false;
    *begun_s = group->begun_s; /* no other pass begins before all members have ended this one */
    return group->decision;
}

bool unit_group_began(const struct unit_group *group)
{
    return group->decision;
}

double unit_group_exchanged_s(const struct unit_group *group, uint32_t rank)
{
    double seconds = 0;
    for (uint32_t i = 0; i < SIZES_MAX; i++) seconds += group->exchanged[rank].seconds[i];
    return seconds;
}

double unit_group_take_s(struct unit_group *group, uint32_t rank, uint64_t bytes)
{
    struct exchanged *const exchanged = &group->exchanged[rank];
    double seconds = 0;
    for (uint32_t i = 0; i < SIZES_MAX; i++) {
        if (bytes > 0 && exchanged->bytes[i] != bytes) continue;
        seconds += exchanged->seconds[i];
        exchanged->seconds[i] = 0;
    }
    return seconds;
}

static void count_exchange(struct exchanged *exchanged, uint64_t bytes, double seconds)
{
    uint32_t i = 0;
    while (i + 1 < SIZES_MAX && exchanged->bytes[i] != bytes && exchanged->bytes[i] != 0) i++;
    exchanged->bytes[i] = bytes;
    exchanged->seconds[i] += seconds;
}

/* --- exchanges -------------------------------------------------------------------------------- */

typedef void combine(float *restrict result, const float *x, uint64_t count);
typedef void combine_slice(struct unit_group *group, uint32_t rank, uint64_t begin, uint64_t end);

CLONES static void take_larger(float *restrict largest, const float *x, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) largest[i] = x[i] > largest[i] ? x[i] : largest[i];
}

static void combine_floats(struct unit_group *group, uint32_t rank, uint64_t begin, uint64_t end, combine *each)
{
    float *const *const values = (float *const *)(void *)group->values;
    float result[PIECE_FLOATS];
    for (uint64_t at = begin; at < end; at += PIECE_FLOATS) {
        const uint64_t n = end - at < PIECE_FLOATS ? end - at : PIECE_FLOATS;
        memcpy(result, values[0] + at, n * sizeof *result);
        for (uint32_t m = 1; m < group->members; m++) each(result, values[m] + at, n);
        memcpy(values[rank] + at, result, n * sizeof *result);
    }
}

static void sum_slice(struct unit_group *group, uint32_t rank, uint64_t begin, uint64_t end)
{
    combine_floats(group, rank, begin, end, kernels_sum_add);
}

static void maximum_slice(struct unit_group *group, uint32_t rank, uint64_t begin, uint64_t end)
{
    combine_floats(group, rank, begin, end, take_larger);
}

static void sum_slice_of_doubles(struct unit_group *group, uint32_t rank, uint64_t begin, uint64_t end)
{
    double *const *const values = (double *const *)(void *)group->values;
    for (uint64_t i = begin; i < end; i++) {
        double sum = values[0][i];
        for (uint32_t m = 1; m < group->members; m++) sum += values[m][i];
        values[rank][i] = sum;
    }
}

/* Exchanges `count` numbers of `size` bytes. */
static void exchange(struct unit_group *group, uint32_t rank, void *values, uint64_t count, uint64_t size,
                     combine_slice *combine_own)
{
    const double begun_s = clock_s();
    group->values[rank] = values;
    if (!meet(group, NULL, NULL)) return;
    combine_own(group, rank, kernels_sum_slice(count, rank, group->members), kernels_sum_slice(count, rank + 1, group->members));
    if (!meet(group, NULL, NULL)) return;
    for (uint32_t m = 0; m < group->members; m++) {
        const uint64_t begin = size * kernels_sum_slice(count, m, group->members);
        const uint64_t end = size * kernels_sum_slice(count, m + 1, group->members);
        if (m != rank) memcpy((char *)values + begin, (const char *)group->values[m] + begin, end - begin);
    }
    (void)meet(group, NULL, NULL); /* a member's slice stays until all have it */
    count_exchange(&group->exchanged[rank], count * size, clock_s() - begun_s);
}

void unit_group_sum(struct unit_group *group, uint32_t rank, float *values, uint64_t count)
{
    exchange(group, rank, values, count, sizeof *values, sum_slice);
}

void unit_group_maximum(struct unit_group *group, uint32_t rank, float *values, uint64_t count)
{
    exchange(group, rank, values, count, sizeof *values, maximum_slice);
}

void unit_group_sum_doubles(struct unit_group *group, uint32_t rank, double *values, uint64_t count)
{
    exchange(group, rank, values, count, sizeof *values, sum_slice_of_doubles);
}
