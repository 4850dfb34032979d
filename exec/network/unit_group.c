/*
 * An exchange has three meetings, as in exec/group/run_collective.c: all values are there; all slices are computed, and
 * each member copies the others'; nobody reads them any more.
 */
#include "exec/network/unit_group.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clones.h"
#include "base/process/clock.h"
#include "exec/device/meeting.h"
#include "exec/kernels/kernels_sum.h"

enum { PIECE_FLOATS = 4096, SIZES_MAX = 12 };

/* A member's exchanges by their kind and bytes; the last entry, of 0 bytes, has all others. */
struct exchanged {
    enum collective_kind kinds[SIZES_MAX];
    uint64_t bytes[SIZES_MAX];
    struct unit_group_seconds seconds[SIZES_MAX];
    double processor_s;      /* of all exchanges, if paced */
};

struct unit_group {
    struct meeting meeting;
    uint32_t members;
    bool paced;
    bool tree;          /* of sums */
    bool decision;      /* of the last beginning ... */
    double begun_s;     /* ... and its time */
    double met_s;       /* when the last member came to the last exchange over memory or links */
    void **values;      /* by member */
    unit_group_reach *reach; /* to members of other processes; NULL: there are none */
    void *context;           /* of that */
    const bool *here;        /* by member: of this process */
    uint64_t met;            /* number of the last exchange */
    struct exchanged *exchanged; /* by member */
};

enum status unit_group_create(uint32_t members, bool looks, bool paced, struct unit_group **out, struct error *err)
{
    struct unit_group *const group = alloc_zeroed(1, sizeof *group);
    if (!group) return error_memory(err, "a tensor group", sizeof *group);
    group->members = members;
    group->paced = paced;
    if (!meeting_init(&group->meeting, members, looks)) {
        free(group);
        return error_memory(err, "a tensor group", sizeof *group);
    }
    group->values = alloc_zeroed(members, sizeof *group->values);
    group->exchanged = alloc_zeroed(members, sizeof *group->exchanged);
    if (!group->values || !group->exchanged) {
        unit_group_destroy(group);
        return error_memory(err, "a tensor group", members * (sizeof *group->values + sizeof *group->exchanged));
    }
    *out = group;
    return STATUS_OK;
}

void unit_group_add_as_tree(struct unit_group *group)
{
    assert((group->members & (group->members - 1)) == 0);
    group->tree = true;
}

void unit_group_divide(struct unit_group *group, const bool *here, unit_group_reach *reach, void *context)
{
    group->reach = reach;
    group->context = context;
    group->here = here;
    group->meeting.members = 0;
    for (uint32_t m = 0; m < group->members; m++) group->meeting.members += here[m];
}

void unit_group_destroy(struct unit_group *group)
{
    if (!group) return;
    meeting_release(&group->meeting);
    free(group->values);
    free(group->exchanged);
    free(group);
}

void unit_group_cancel(struct unit_group *group)
{
    meeting_cancel(&group->meeting);
}

struct beginning {
    struct unit_group *group;
    unit_group_decide *decide;
    void *argument;
};

static void begin(struct meeting *meeting, void *argument)
{
    const struct beginning *const beginning = argument;
    (void)meeting;
    beginning->group->decision = beginning->decide(beginning->argument);
    beginning->group->begun_s = clock_s();
}

static bool meet(struct unit_group *group)
{
    return meeting_attend(&group->meeting, NULL, NULL);
}

bool unit_group_begin(struct unit_group *group, unit_group_decide *decide, void *argument, double *begun_s)
{
    struct beginning beginning = {group, decide, argument};
    if (!meeting_attend(&group->meeting, begin, &beginning)) return false;
    *begun_s = group->begun_s; /* no other pass begins before all members have ended this one */
    return group->decision;
}

bool unit_group_began(const struct unit_group *group)
{
    return group->decision;
}

bool unit_group_is_paced(const struct unit_group *group)
{
    return group->paced;
}

static void note_last(struct meeting *meeting, void *group)
{
    (void)meeting;
    ((struct unit_group *)group)->met_s = clock_s();
    ((struct unit_group *)group)->met++;
}

bool unit_group_meet(struct unit_group *group, double *met_s)
{
    if (!meeting_attend(&group->meeting, note_last, group)) return false;
    *met_s = group->met_s; /* no other meeting is held before this member comes to it */
    return true;
}

double unit_group_exchanged_s(const struct unit_group *group, uint32_t rank)
{
    double seconds = 0;
    for (uint32_t i = 0; i < SIZES_MAX; i++)
        seconds += group->exchanged[rank].seconds[i].waited_s + group->exchanged[rank].seconds[i].moved_s;
    return seconds;
}

struct unit_group_seconds unit_group_take(struct unit_group *group, uint32_t rank, enum collective_kind kind,
                                          uint64_t bytes)
{
    struct exchanged *const exchanged = &group->exchanged[rank];
    struct unit_group_seconds taken = {0};
    for (uint32_t i = 0; i < SIZES_MAX; i++) {
        if (bytes > 0 && (exchanged->bytes[i] != bytes || exchanged->kinds[i] != kind)) continue;
        taken.waited_s += exchanged->seconds[i].waited_s;
        taken.moved_s += exchanged->seconds[i].moved_s;
        taken.count += exchanged->seconds[i].count;
        exchanged->seconds[i] = (struct unit_group_seconds){0};
        if (bytes == 0) exchanged->bytes[i] = 0; /* the next pass may have other sizes */
    }
    return taken;
}

double unit_group_take_processor_s(struct unit_group *group, uint32_t rank)
{
    const double seconds = group->exchanged[rank].processor_s;
    group->exchanged[rank].processor_s = 0;
    return seconds;
}

/* A member's exchange that goes on. */
struct moving {
    struct unit_group *group;
    uint32_t rank;
    enum collective_kind kind;
    uint64_t bytes;
    double begun_s, met_s;
};

/* Begins an exchange when all members have come. Returns false after a cancellation. */
static bool begin_exchange(struct moving *moving, void *values)
{
    struct unit_group *const group = moving->group;
    moving->begun_s = group->paced ? clock_thread_s() : clock_s();
    group->values[moving->rank] = values;
    return unit_group_meet(group, &moving->met_s);
}

/* Counts an exchange that ends now. */
static void count_exchange(const struct moving *moving)
{
    struct exchanged *const exchanged = &moving->group->exchanged[moving->rank];
    uint32_t i = 0;
    if (moving->group->paced) {
        exchanged->processor_s += clock_thread_s() - moving->begun_s;
        return;
    }
    while (i + 1 < SIZES_MAX && exchanged->bytes[i] != 0 &&
           (exchanged->bytes[i] != moving->bytes || exchanged->kinds[i] != moving->kind))
        i++;
    if (i + 1 < SIZES_MAX) {
        exchanged->bytes[i] = moving->bytes;
        exchanged->kinds[i] = moving->kind;
    }
    exchanged->seconds[i].waited_s += moving->met_s - moving->begun_s;
    exchanged->seconds[i].moved_s += clock_s() - moving->met_s;
    exchanged->seconds[i].count++;
}

/* --- exchanges -------------------------------------------------------------------------------- */

typedef void combine_slice(struct unit_group *group, uint32_t rank, uint64_t begin, uint64_t end);

CLONES static void take_larger(float *restrict largest, const float *x, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) largest[i] = x[i] > largest[i] ? x[i] : largest[i];
}

static const float *numbers_of(const void *context, uint32_t member, uint64_t at, uint64_t count, float *room)
{
    const struct unit_group *const group = context;
    (void)count, (void)room;
    return (const float *)group->values[member] + at;
}

/* Combines all members' numbers from `begin` on, in `own`. */
static void combine_floats(struct unit_group *group, float *own, uint64_t begin, uint64_t end, unit_group_combine *each)
{
    float *const *const values = (float *const *)(void *)group->values;
    float result[PIECE_FLOATS];
    for (uint64_t at = begin; at < end; at += PIECE_FLOATS) {
        const uint64_t n = end - at < PIECE_FLOATS ? end - at : PIECE_FLOATS;
        memcpy(result, values[0] + at, n * sizeof *result);
        for (uint32_t m = 1; m < group->members; m++) each(result, values[m] + at, n);
        memcpy(own + (at - begin), result, n * sizeof *result);
    }
}

static void sum_slice(struct unit_group *group, uint32_t rank, uint64_t begin, uint64_t end)
{
    float *const own = (float *)group->values[rank] + begin;
    if (group->tree) kernels_sum_tree(numbers_of, group, group->members, begin, end - begin, own);
    else combine_floats(group, own, begin, end, kernels_sum_add);
}

static void maximum_slice(struct unit_group *group, uint32_t rank, uint64_t begin, uint64_t end)
{
    combine_floats(group, (float *)group->values[rank] + begin, begin, end, take_larger);
}

static void sum_slice_of_halves(struct unit_group *group, uint32_t rank, uint64_t begin, uint64_t end)
{
    kernels_sum_halves((const bf16 *const *)(void *)group->values, group->members, begin, end - begin,
                       (bf16 *)group->values[rank] + begin);
}

static void sum_slice_of_doubles(struct unit_group *group, uint32_t rank, uint64_t begin, uint64_t end)
{
    double *const *const values = (double *const *)(void *)group->values;
    for (uint64_t i = begin; i < end; i++)
        values[rank][i] = kernels_sum_doubles((const double *const *)values, group->members, i, group->tree);
}

/* Returns the begin of a member's slice of numbers of `size` bytes. */
static uint64_t slice_begin(const struct unit_group *group, uint64_t count, uint64_t size, uint32_t member)
{
    const uint64_t each = size < sizeof(float) ? sizeof(float) / size : 1; /* slices are whole lines */
    const uint64_t begin = each * kernels_sum_slice((count + each - 1) / each, member, group->members);
    return begin < count ? begin : count;
}

/* Combines values over the memory of this process. */
static void exchange_here(struct unit_group *group, uint32_t rank, void *values, uint64_t count, uint64_t size,
                          combine_slice *combine_own)
{
    combine_own(group, rank, slice_begin(group, count, size, rank), slice_begin(group, count, size, rank + 1));
    if (!meet(group)) return;
    for (uint32_t m = 0; m < group->members; m++) {
        const uint64_t begin = size * slice_begin(group, count, size, m);
        const uint64_t end = size * slice_begin(group, count, size, m + 1);
        if (m != rank) memcpy((char *)values + begin, (const char *)group->values[m] + begin, end - begin);
    }
}

/* Combines values with other processes; bf16 numbers if `halves`. */
static void exchange_afar(struct unit_group *group, uint32_t rank, uint64_t count, unit_group_combine *combine,
                          bool halves)
{
    struct unit_group_exchange exchange = {.number = group->met, .combine = combine, .values = group->values,
                                           .count = count, .halves = halves};
    exchange.tree = group->tree && (!combine || combine == kernels_sum_add);
    for (uint32_t m = 0; m < rank; m++) exchange.worker += group->here[m];
    (void)group->reach(group->context, &exchange); /* after a cancellation the meeting that follows ends, too */
}

/* Exchanges `count` numbers of `size` bytes. */
static void exchange(struct unit_group *group, uint32_t rank, void *values, uint64_t count, uint64_t size,
                     combine_slice *combine_own, unit_group_combine *combine)
{
    struct moving moving = {.group = group, .rank = rank, .kind = COLLECTIVE_ALL_REDUCE, .bytes = count * size};
    if (group->members == 1) return;
    if (!begin_exchange(&moving, values)) return;
    if (group->reach) exchange_afar(group, rank, count, combine, size == sizeof(bf16));
    else exchange_here(group, rank, values, count, size, combine_own);
    (void)meet(group); /* a member's slice stays until all have it */
    count_exchange(&moving);
}

/* Adds up the numbers of a member's own part. */
static void sum_part(struct unit_group *group, void *own, uint64_t begin, uint64_t end, uint32_t number_bytes)
{
    if (number_bytes == sizeof(float)) combine_floats(group, own, begin, end, kernels_sum_add);
    else kernels_sum_halves((const bf16 *const *)(void *)group->values, group->members, begin, end - begin, own);
}

void unit_group_scatter(struct unit_group *group, uint32_t rank, void *values, uint64_t count, uint32_t number_bytes,
                        void *own)
{
    const uint64_t part = count / group->members, bytes = part * number_bytes;
    char *const from = (char *)values + rank * bytes;
    struct moving moving = {.group = group, .rank = rank, .kind = COLLECTIVE_REDUCE_SCATTER,
                            .bytes = count * number_bytes};
    assert(count % group->members == 0);
    if (!begin_exchange(&moving, values)) return;
    if (group->reach) exchange_afar(group, rank, count, kernels_sum_add, number_bytes == sizeof(bf16));
    else sum_part(group, own, rank * part, (rank + 1) * part, number_bytes);
    if (!meet(group)) return; /* a member's numbers stay until all have added them up */
    if (group->reach && own != from) memcpy(own, from, bytes);
    count_exchange(&moving);
}

/* Parts that a member does not have are zero, so the result has each number's bits. */
CLONES static void join_bits(float *restrict result, const float *x, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits[2];
        memcpy(&bits[0], &result[i], sizeof bits[0]);
        memcpy(&bits[1], &x[i], sizeof bits[1]);
        bits[0] |= bits[1];
        memcpy(&result[i], &bits[0], sizeof bits[0]);
    }
}

/* Gathers parts of `bytes` each also from members in other processes. Words of bits are joined, of which the last one
 * may reach beyond the values. */
static void gather_afar(struct moving *moving, const void *own, char *values, uint64_t bytes)
{
    struct unit_group *const group = moving->group;
    const uint64_t first = moving->rank * bytes, end = group->members * bytes;
    if (own != values + first) memcpy(values + first, own, bytes);
    memset(values, 0, first);
    memset(values + first + bytes, 0, end - first - bytes);
    if (!begin_exchange(moving, values)) return;
    exchange_afar(group, moving->rank, (end + sizeof(float) - 1) / sizeof(float), join_bits, false);
    (void)meet(group);
    count_exchange(moving);
}

void unit_group_gather(struct unit_group *group, uint32_t rank, const void *own, void *values, uint64_t count,
                       uint32_t number_bytes)
{
    const uint64_t bytes = count / group->members * number_bytes;
    char *const all = values;
    struct moving moving = {.group = group, .rank = rank, .kind = COLLECTIVE_ALL_GATHER,
                            .bytes = count * number_bytes};
    assert(count % group->members == 0);
    if (group->reach) {
        gather_afar(&moving, own, all, bytes);
        return;
    }
    if (!begin_exchange(&moving, (void *)(uintptr_t)own)) return;
    for (uint32_t m = 0; m < group->members; m++)
        if (group->values[m] != all + m * bytes) memcpy(all + m * bytes, group->values[m], bytes);
    (void)meet(group);
    count_exchange(&moving);
}

void unit_group_sum(struct unit_group *group, uint32_t rank, float *values, uint64_t count)
{
    exchange(group, rank, values, count, sizeof *values, sum_slice, kernels_sum_add);
}

void unit_group_sum_numbers(struct unit_group *group, uint32_t rank, void *values, uint64_t count,
                            uint32_t number_bytes)
{
    const bool halves = number_bytes == sizeof(bf16);
    exchange(group, rank, values, count, number_bytes, halves ? sum_slice_of_halves : sum_slice, kernels_sum_add);
}

void unit_group_maximum(struct unit_group *group, uint32_t rank, float *values, uint64_t count)
{
    exchange(group, rank, values, count, sizeof *values, maximum_slice, take_larger);
}

void unit_group_sum_doubles(struct unit_group *group, uint32_t rank, double *values, uint64_t count)
{
    exchange(group, rank, values, count, sizeof *values, sum_slice_of_doubles, NULL);
}
