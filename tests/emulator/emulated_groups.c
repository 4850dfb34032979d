/*
 * Collectives by NCCL between emulated GPUs: random groups on overlapping communicators and two streams of each device
 * have the sums and the order that they should. And the emulated library (tests/emulator/nccl) finds each kind of wrong
 * use.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "base/random.h"
#include "exec/device/backend.h"
#include "exec/device/device_groups.h"
#include "exec/device/meeting.h"
#include "exec/nccl/nccl_library.h"
#include "tests/emulator/emulator_faults.h"
#include "tests/support/exec/support_nccl.h"
#include "tests/support/support_seed.h"

enum { DEVICES = 4, LISTS = 4, ROUNDS = 60, COUNT_MAX = 300, WHOLE_MAX = DEVICES * COUNT_MAX };

static struct device *devices[DEVICES];
static struct groups_session *groups;

/* Overlapping ones, in orders of their own. */
static const struct list {
    uint32_t count, devices[DEVICES];
} lists[LISTS] = {{2, {0, 1}}, {3, {2, 1, 3}}, {4, {3, 0, 2, 1}}, {2, {3, 2}}};

static int setup(void **state)
{
    (void)state;
    setenv("SPILLWAY_NCCL", EMULATED_NCCL, 1);
    if (!nccl_open_library()) return -1;
    emulator_set_devices(DEVICES);
    return 0;
}

/* --- groups ----------------------------------------------------------------------------------- */

struct round {
    const struct list *list;
    uint32_t number, kind, type, root, stream;
    uint64_t count;
    bool in_place, adds;
    struct meeting meeting;
    struct device_stream *streams[DEVICES];
    float *from[DEVICES], *to[DEVICES];    /* in arenas */
    float *brought[DEVICES], *got[DEVICES]; /* on the host */
};

struct member_call {
    struct round *round;
    uint32_t communicator, member;
};

static float number_of(const struct round *round, uint32_t member, uint64_t i)
{
    return (float)((round->number * 13 + member * 7 + i * 3) % 97);
}

static void enqueue_all(struct meeting *meeting, void *argument)
{
    (void)meeting;
    const struct member_call *const call = argument;
    const struct round *const r = call->round;
    group_library_nccl.begin(groups, call->communicator, r->streams);
    for (uint32_t m = 0; m < r->list->count; m++)
        group_library_nccl.call(groups,
                                &(struct group_call){.kind = r->kind, .type = r->type, .member = m, .root = r->root,
                                                             .from = r->from[m], .to = r->to[m],
                                                             .count = r->type == GROUP_BYTES
                                                                      ? r->count * sizeof(float) : r->count});
    assert_true(group_library_nccl.end(groups));
}

static void attend(void *argument)
{
    const struct member_call *const call = argument;
    const struct round *const r = call->round;
    if (!meeting_attend(&call->round->meeting, enqueue_all, argument)) return;
    if (r->adds)
        group_library_nccl.accumulate(r->streams[call->member], r->to[call->member], r->to[call->member], r->count);
}

static void draw(struct round *r, uint64_t seed, uint32_t n)
{
    *r = (struct round){.number = n,
                        .list = &lists[random_below(seed, 8 * n, LISTS)],
                        .kind = (uint32_t)random_below(seed, 8 * n + 1, GROUP_BROADCAST + 1),
                        .count = random_below(seed, 8 * n + 2, COUNT_MAX + 1),
                        .stream = random_below(seed, 8 * n + 3, 2) ? STREAM_GROUP : STREAM_DATA,
                        .in_place = random_below(seed, 8 * n + 4, 2)};
    const bool sums = r->kind == GROUP_ALL_REDUCE || r->kind == GROUP_REDUCE_SCATTER || r->kind == GROUP_REDUCE;
    r->type = sums ? GROUP_FP32 : GROUP_BYTES;
    r->adds = r->kind == GROUP_REDUCE_SCATTER && random_below(seed, 8 * n + 5, 2);
    r->root = (uint32_t)random_below(seed, 8 * n + 6, r->list->count);
    assert_true(meeting_init(&r->meeting, r->list->count, true));
}

/* Gives a member's part to its streams: data up, collective, data down. */
static void enqueue_member(struct round *r, uint32_t m)
{
    const uint32_t d = r->list->devices[m];
    float *const arena = (float *)device_arena(devices[d]) + (uint64_t)r->number * 2 * WHOLE_MAX;
    struct device_stream *const up = device_stream(devices[d], STREAM_H2D),
        *const down = device_stream(devices[d], STREAM_D2H);
    struct device_stream *const stream = device_stream(devices[d], r->stream);
    r->streams[m] = stream;
    r->from[m] = arena;
    r->to[m] = r->in_place ? arena : arena + WHOLE_MAX;
    if (r->in_place && r->kind == GROUP_REDUCE_SCATTER) r->to[m] += m * r->count;
    if (r->in_place && r->kind == GROUP_ALL_GATHER) r->from[m] += m * r->count;
    r->brought[m] = malloc(2 * WHOLE_MAX * sizeof(float));
    r->got[m] = r->brought[m] + WHOLE_MAX;
    for (uint64_t i = 0; i < WHOLE_MAX; i++) r->brought[m][i] = number_of(r, m, i);
    const uint64_t held = r->kind == GROUP_REDUCE_SCATTER ? r->count * r->list->count : r->count;
    device_copy(up, r->from[m], r->brought[m], held * sizeof(float), NULL);
    device_wait(stream, up, device_record(up));
    const uint32_t communicator = (uint32_t)(r->list - lists);
    const struct member_call call = {.round = r, .communicator = communicator, .member = m};
    device_call_ahead(stream, attend, &call, sizeof call, NULL);
    device_wait(down, stream, device_record(stream));
    const uint64_t made = r->kind == GROUP_ALL_GATHER ? r->count * r->list->count : r->count;
    device_copy(down, r->got[m], r->to[m], made * sizeof(float), NULL);
}

static float sum_of(const struct round *r, uint64_t i)
{
    float sum = 0;
    for (uint32_t m = 0; m < r->list->count; m++) sum += number_of(r, m, i);
    return sum;
}

static float wanted(const struct round *r, uint32_t m, uint64_t i)
{
    switch ((enum group_call_kind)r->kind) {
    case GROUP_ALL_GATHER: return number_of(r, (uint32_t)(i / r->count), i % r->count);
    case GROUP_BROADCAST: return number_of(r, r->root, i);
    case GROUP_REDUCE_SCATTER: return sum_of(r, m * r->count + i) * (r->adds ? 2 : 1);
    default: return sum_of(r, i);
    }
}

static void compare(const struct round *r)
{
    for (uint32_t m = 0; m < r->list->count; m++) {
        const uint64_t made = r->kind == GROUP_ALL_GATHER ? r->count * r->list->count : r->count;
        for (uint64_t i = 0; i < made && (r->kind != GROUP_REDUCE || m == r->root); i++)
            if (r->got[m][i] != wanted(r, m, i))
                fail_msg("round %u, kind %u: member %u has %g at %u, not %g", r->number, r->kind, m,
                         (double)r->got[m][i], (unsigned)i, (double)wanted(r, m, i));
    }
}

static void open_all(uint64_t seed)
{
    struct error err = {0};
    for (uint32_t d = 0; d < DEVICES; d++) {
        const struct device_options options = {.index = d, .arena_bytes = ROUNDS * 2 * WHOLE_MAX * sizeof(float),
                                               .gangs = true,
                                               .p2p = true, .pageable = true, .poison = true, .delay_seed = seed + d};
        if (backend_cuda.open(&options, &devices[d], &err) != STATUS_OK) fail_msg("%s", err.text);
    }
    if (group_library_nccl.open(devices, DEVICES, false, &groups, &err) != STATUS_OK) fail_msg("%s", err.text);
    for (uint32_t l = 0; l < LISTS; l++) {
        uint32_t number = 99;
        if (group_library_nccl.add(groups, lists[l].devices, lists[l].count, &number, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        assert_int_equal(number, l);
    }
}

static void test_random_groups(void **state)
{
    (void)state;
    static struct round rounds[ROUNDS];
    const uint64_t seed = support_seed("groups on GPUs");
    struct error err = {0};
    nccl_break(NCCL_BREAK_NOTHING, 0);
    open_all(seed);
    for (uint32_t n = 0; n < ROUNDS; n++) {
        draw(&rounds[n], seed, n);
        for (uint32_t m = 0; m < rounds[n].list->count; m++) enqueue_member(&rounds[n], m);
    }
    for (uint32_t d = 0; d < DEVICES; d++) {
        struct device_stream *const down = device_stream(devices[d], STREAM_D2H);
        assert_true(device_synchronize(down, device_record(down), 120));
        if (device_failed(devices[d], &err) != STATUS_OK) fail_msg("%s", err.text);
    }
    assert_string_equal(nccl_finding(), "");
    for (uint32_t n = 0; n < ROUNDS; n++) {
        compare(&rounds[n]);
        for (uint32_t m = 0; m < rounds[n].list->count; m++) free(rounds[n].brought[m]);
        meeting_release(&rounds[n].meeting);
    }
    group_library_nccl.stop(groups);
    for (uint32_t d = 0; d < DEVICES; d++) device_stop(devices[d]);
    group_library_nccl.close(groups);
    for (uint32_t d = 0; d < DEVICES; d++) device_close(devices[d]);
    assert_int_equal(nccl_open(), 0);
}

/* --- wrong uses ------------------------------------------------------------------------------- */

static struct nccl_library library;
static nccl_comm pair[2], triple[3];
static cudaStream_t streams[3], others[3];
static float memory[3][64];

static int open_raw(void **state)
{
    (void)state;
    static const int numbers[] = {0, 1, 2};
    struct error err = {0};
    nccl_break(NCCL_BREAK_NOTHING, 0);
    if (nccl_library_open(&library, &err) != STATUS_OK) return -1;
    for (int d = 0; d < 3; d++) {
        cudaSetDevice(d);
        cudaStreamCreateWithFlags(&streams[d], cudaStreamNonBlocking);
        cudaStreamCreateWithFlags(&others[d], cudaStreamNonBlocking);
    }
    return library.init_all(pair, 2, numbers) || library.init_all(triple, 3, numbers);
}

static int close_raw(void **state)
{
    (void)state;
    for (int r = 0; r < 2; r++) library.abort(pair[r]);
    for (int r = 0; r < 3; r++) library.abort(triple[r]);
    for (int d = 0; d < 3; d++) {
        cudaStreamDestroy(streams[d]);
        cudaStreamDestroy(others[d]);
    }
    return 0;
}

static int reduce(int rank, size_t count, int type, cudaStream_t stream)
{
    return library.all_reduce(memory[rank], memory[rank], count, type, NCCL_SUM, pair[rank], stream);
}

static int outside_of_a_group(void)
{
    return reduce(0, 8, NCCL_FLOAT32, streams[0]);
}

static int group_of(int a, int b)
{
    const int ended = library.group_end();
    return a ? a : b ? b : ended;
}

static int a_rank_is_missing(void)
{
    library.group_start();
    return group_of(reduce(0, 8, NCCL_FLOAT32, streams[0]), 0);
}

static int counts_differ(void)
{
    library.group_start();
    return group_of(reduce(0, 8, NCCL_FLOAT32, streams[0]), reduce(1, 7, NCCL_FLOAT32, streams[1]));
}

static int types_differ(void)
{
    library.group_start();
    return group_of(reduce(0, 8, NCCL_FLOAT32, streams[0]), reduce(1, 8, NCCL_FLOAT64, streams[1]));
}

static int kinds_differ(void)
{
    library.group_start();
    return group_of(reduce(0, 8, NCCL_FLOAT32, streams[0]),
                    library.reduce(memory[1], memory[1], 8, NCCL_FLOAT32, NCCL_SUM, 0, pair[1], streams[1]));
}

static int roots_differ(void)
{
    library.group_start();
    return group_of(library.broadcast(memory[0], memory[0], 8, NCCL_INT8, 0, pair[0], streams[0]),
                    library.broadcast(memory[1], memory[1], 8, NCCL_INT8, 1, pair[1], streams[1]));
}

/* Rank 0 calls for 8 numbers and for 4, rank 1 for 4 and for 8. */
static int orders_differ(void)
{
    library.group_start();
    for (int i = 0; i < 2; i++)
        for (int r = 0; r < 2; r++)
            if (reduce(r, r == i ? 8 : 4, NCCL_FLOAT32, streams[r])) return -1;
    return library.group_end();
}

static int stream_of_another_device(void)
{
    library.group_start();
    return group_of(reduce(0, 8, NCCL_FLOAT32, streams[1]), reduce(1, 8, NCCL_FLOAT32, streams[0]));
}

static int two_streams(void)
{
    library.group_start();
    const int failed = group_of(reduce(0, 8, NCCL_FLOAT32, streams[0]), reduce(1, 8, NCCL_FLOAT32, streams[1]));
    library.group_start();
    return failed ? -1 : group_of(reduce(0, 8, NCCL_FLOAT32, others[0]), reduce(1, 8, NCCL_FLOAT32, streams[1]));
}

static int operands_overlap(void)
{
    library.group_start();
    int failed = 0;
    for (int r = 0; r < 2; r++)
        failed = failed ? failed
                 : library.reduce_scatter(memory[r], memory[r] + 1, 8, NCCL_FLOAT32, NCCL_SUM, pair[r], streams[r]);
    return group_of(failed, 0);
}

static int after_its_end(void)
{
    library.abort(pair[1]);
    library.group_start();
    return group_of(reduce(0, 8, NCCL_FLOAT32, streams[0]), reduce(1, 8, NCCL_FLOAT32, streams[1]));
}

static int ends_twice(void)
{
    library.abort(pair[0]);
    return library.abort(pair[0]);
}

/* Threads that enqueue groups without a lock. */
static void *use_triple(void *pointer)
{
    atomic_bool *const ended = pointer;
    while (!atomic_load(ended)) {
        library.group_start();
        for (int r = 0; r < 3; r++)
            library.all_reduce(memory[r], memory[r], 4, NCCL_FLOAT32, NCCL_SUM, triple[r], streams[r]);
        if (library.group_end()) break;
    }
    return NULL;
}

static int without_a_lock(void)
{
    pthread_t thread;
    atomic_bool ended = false;
    int failed = 0;
    assert_int_equal(pthread_create(&thread, NULL, use_triple, &ended), 0);
    for (int i = 0; i < 2000 && !failed && nccl_finding()[0] == '\0'; i++) {
        library.group_start();
        failed = group_of(reduce(0, 8, NCCL_FLOAT32, streams[0]), reduce(1, 8, NCCL_FLOAT32, streams[1]));
    }
    atomic_store(&ended, true);
    pthread_join(thread, NULL);
    return nccl_finding()[0] ? 5 : 0;
}

static void test_wrong_uses(void **state)
{
    static const struct {
        int (*use)(void);
        const char *found;
    } uses[] = {
        {outside_of_a_group, "rank 0 of a communicator of 2 has a call outside of a group, which waits for ever"},
        {a_rank_is_missing, "ranks 0 and 1 of a communicator have different numbers of calls in a group"},
        {counts_differ, "ranks 0 and 1 of a communicator have different calls in a group"},
        {types_differ, "ranks 0 and 1 of a communicator have different calls in a group"},
        {kinds_differ, "ranks 0 and 1 of a communicator have different calls in a group"},
        {roots_differ, "ranks 0 and 1 of a communicator have different calls in a group"},
        {orders_differ, "ranks 0 and 1 of a communicator have different calls in a group"},
        {stream_of_another_device, "a stream of device "},
        {two_streams, "device 0 has collectives on two streams, which have no order"},
        {operands_overlap, "operands of rank 0 overlap"},
        {after_its_end, "rank 1 of a communicator is used after its end"},
        {ends_twice, "rank 0 of a communicator ends twice"},
        {without_a_lock, "groups have different orders on devices "},
    };
    for (size_t i = 0; i < ARRAY_COUNT(uses); i++) {
        assert_int_equal(open_raw(state), 0);
        assert_string_equal(nccl_finding(), "");
        assert_int_equal(uses[i].use(), 5);
        if (strncmp(nccl_finding(), uses[i].found, strlen(uses[i].found)) != 0)
            fail_msg("use %d: '%s' is not '%s'", (int)i, nccl_finding(), uses[i].found);
        close_raw(state);
    }
    nccl_break(NCCL_BREAK_NOTHING, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_groups), cmocka_unit_test(test_wrong_uses)};
    return cmocka_run_group_tests_name("collectives by NCCL", tests, setup, NULL);
}
