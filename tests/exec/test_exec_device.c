/*
 * exec/device/device.h on the host back end: order within streams, events between them, copies that are
 * paced and still right, full queues, closing with work queued, delays and poison.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

#include "base/process/clock.h"
#include "base/random.h"
#include "exec/device/device.h"
#include "exec/device/host_memory.h"
#include "tests/support/planner/support_p2p.h"

enum { PAUSES_MAX = 20, ARENA_BYTES = 5 << 20 };

static struct device *open_device(struct device_options options)
{
    struct error err = {0};
    struct device *device = NULL;
    if (options.arena_bytes == 0) options.arena_bytes = ARENA_BYTES;
    options.threads = 1;
    if (device_open_host(&options, &device, &err) != STATUS_OK) fail_msg("%s", err.text);
    return device;
}

static void finish(struct device_stream *stream)
{
    assert_true(device_synchronize(stream, device_record(stream), 60));
}

/* --- work that leaves marks ------------------------------------------------------------------- */

struct mark {
    uint32_t *order; /* next entry of a list shared by the marks of one stream */
    uint32_t *count;
    uint32_t value;
};

static void leave_mark(void *argument)
{
    const struct mark *mark = argument;
    mark->order[(*mark->count)++] = mark->value;
}

static void compute_mark(const struct kernels *kernels, void *argument)
{
    assert_non_null(kernels);
    leave_mark(argument);
}

static void sleep_ms(void *argument)
{
    const struct timespec pause = {.tv_nsec = *(const int *)argument * 1000000L};
    nanosleep(&pause, NULL);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void test_a_stream_keeps_order(void **state)
{
    (void)state;
    struct device *device = open_device((struct device_options){.delay_seed = 0});
    struct device_stream *stream = device_stream(device, STREAM_COMPUTE);
    /* Three times the queue, so that enqueueing has to wait for room. */
    const uint32_t count = 3 * DEVICE_QUEUE_MAX + 17;
    uint32_t *order = calloc(count, sizeof *order), done = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct mark mark = {order, &done, i};
        if (i % 3 == 0)
            device_call(stream, leave_mark, &mark, sizeof mark, NULL);
        else
            device_compute(stream, compute_mark, &mark, sizeof mark, NULL);
    }
    finish(stream);
    assert_int_equal(done, count);
    for (uint32_t i = 0; i < count; i++) assert_int_equal(order[i], i);
    free(order);
    device_close(device);
}

static void test_arguments_are_copied_or_borrowed(void **state)
{
    (void)state;
    struct device *device = open_device((struct device_options){.delay_seed = 0});
    struct device_stream *stream = device_stream(device, STREAM_D2H);
    uint32_t order[2], done = 0;
    struct mark copied = {order, &done, 7}, borrowed = {order, &done, 7};
    int pause = 20;
    device_call(stream, sleep_ms, &pause, 0, NULL);
    device_call(stream, leave_mark, &copied, sizeof copied, NULL);
    device_call(stream, leave_mark, &borrowed, 0, NULL);
    copied.value = 9; /* the call has its own; the borrowed one is changed before it is looked at */
    borrowed.value = 9;
    finish(stream);
    assert_int_equal(order[0], 7);
    assert_int_equal(order[1], 9);
    device_close(device);
}

/* A token goes round three streams 300 times; each hop must follow the previous one. */
static void test_events_order_streams(void **state)
{
    (void)state;
    struct device *device = open_device((struct device_options){.delay_seed = 0});
    struct device *other = open_device((struct device_options){.index = 1});
    struct device_stream *const ring[] = {device_stream(device, STREAM_COMPUTE),
                                          device_stream(other, STREAM_H2D),
                                          device_stream(device, STREAM_HOST)};
    enum { HOPS = 900 };
    uint32_t order[HOPS], done = 0;
    uint64_t event = 0;
    for (uint32_t i = 0; i < HOPS; i++) {
        struct device_stream *const stream = ring[i % 3];
        if (i > 0) device_wait(stream, ring[(i - 1) % 3], event);
        const struct mark mark = {order, &done, i};
        device_call(stream, leave_mark, &mark, sizeof mark, NULL);
        event = device_record(stream);
    }
    for (int i = 0; i < 3; i++) finish(ring[i]);
    assert_int_equal(done, HOPS);
    for (uint32_t i = 0; i < HOPS; i++) assert_int_equal(order[i], i);
    assert_null(device_stream(other, STREAM_HOST));
    device_stop(device);
    device_stop(other);
    device_close(device);
    device_close(other);
}

static void test_timing_and_timeout(void **state)
{
    (void)state;
    struct device *device = open_device((struct device_options){.delay_seed = 0});
    struct device_stream *stream = device_stream(device, STREAM_H2D);
    int pause = 30;
    struct device_timing first, second;
    device_call(stream, sleep_ms, &pause, 0, &first);
    device_call(stream, sleep_ms, &pause, 0, &second);
    const uint64_t event = device_record(stream);
    assert_false(device_reached(stream, event));
    assert_false(device_synchronize(stream, event, 5e-3)); /* 60 ms of work, 5 ms of patience */
    assert_true(device_synchronize(stream, event, 60));
    assert_true(device_reached(stream, event));
    assert_int_equal(device_passed(stream), event);
    assert_true(first.end_s - first.start_s >= 30e-3);
    assert_true(second.start_s >= first.end_s);
    assert_true(second.end_s - second.start_s >= 30e-3);
    device_close(device);
}

/* Copies of odd sizes and places, there and back, paced or not: every byte arrives, and no other byte changes. */
static void check_copies(double bytes_per_s)
{
    struct device *device = open_device((struct device_options){
        .h2d_bytes_per_s = bytes_per_s, .d2h_bytes_per_s = bytes_per_s});
    struct device_stream *h2d = device_stream(device, STREAM_H2D);
    struct device_stream *d2h = device_stream(device, STREAM_D2H);
    unsigned char *from = malloc(ARENA_BYTES), *back = malloc(ARENA_BYTES);
    for (size_t i = 0; i < ARENA_BYTES; i++) from[i] = (unsigned char)random_u64(11, i);
    memset(back, 0x55, ARENA_BYTES);
    char *arena = device_arena(device);
    static const struct {
        uint64_t offset, bytes;
    } ranges[] = {{0, 1}, {3, 4093}, {8192, 1 << 20}, {1 << 21, (1 << 21) + 12345}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        device_copy(h2d, arena + ranges[i].offset, from + ranges[i].offset, ranges[i].bytes, NULL);
        device_wait(d2h, h2d, device_record(h2d));
        device_copy(d2h, back + ranges[i].offset, arena + ranges[i].offset, ranges[i].bytes, NULL);
    }
    finish(d2h);
    size_t at = 0;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        for (; at < ranges[i].offset; at++) assert_int_equal(back[at], 0x55);
        assert_memory_equal(back + at, from + at, ranges[i].bytes);
        at += ranges[i].bytes;
    }
    for (; at < ARENA_BYTES; at++) assert_int_equal(back[at], 0x55);
    free(from);
    free(back);
    device_close(device);
}

static void test_copies_are_exact(void **state)
{
    (void)state;
    check_copies(0);
    check_copies(150e6);
}

/* A guard is read when the copy's turn comes, not when it is enqueued. */
static void test_guarded_copies(void **state)
{
    (void)state;
    struct device *device = open_device((struct device_options){.delay_seed = 0});
    struct device_stream *h2d = device_stream(device, STREAM_H2D);
    int pause = 20, from[4] = {11, 12, 13, 14}, to[4] = {0};
    atomic_uint_fast64_t limit = 4;
    struct device_timing timings[4];
    device_call(h2d, sleep_ms, &pause, 0, NULL);
    for (uint64_t i = 0; i < 4; i++)
        device_copy_guarded(h2d, &to[i], &from[i], sizeof to[i],
                            (struct device_guard){.limit = &limit, .value = i}, &timings[i]);
    atomic_store(&limit, 2);
    finish(h2d);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(to[i], i < 2 ? from[i] : 0);
        assert_int_equal(timings[i].left_out, i >= 2);
        assert_true(timings[i].end_s >= timings[i].start_s);
    }
    device_close(device);
}

/* Twenty copies of 1 MB at 200 MB/s are 100 ms of link time; a link cannot be faster. */
static void test_pacing_never_exceeds_the_rate(void **state)
{
    (void)state;
    struct device *device = open_device((struct device_options){.h2d_bytes_per_s = 200e6});
    struct device_stream *h2d = device_stream(device, STREAM_H2D);
    unsigned char *from = calloc(1, 1000000);
    struct device_timing first, last;
    for (int i = 0; i < 20; i++)
        device_copy(h2d, device_arena(device), from, 1000000, i == 0 ? &first : &last);
    finish(h2d);
    assert_true(last.end_s - first.start_s >= 100e-3 * 0.999);

    /* After a pause the link does not owe anything: a copy takes its whole 5 ms. Where the thread had lost its
     * processor for all of the pause there was none, so there are several. */
    const struct timespec pause = {.tv_nsec = 20000000};
    bool whole = false;
    for (uint32_t i = 0; i < PAUSES_MAX && !whole; i++) {
        nanosleep(&pause, NULL);
        device_copy(h2d, device_arena(device), from, 1000000, &last);
        finish(h2d);
        whole = last.end_s - last.start_s >= 5e-3 * 0.999;
    }
    assert_true(whole);
    free(from);
    device_close(device);
}

static double processor_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Computes for about 2 ms, and says how much of the processor that was. */
static void use_processor(const struct kernels *kernels, void *argument)
{
    (void)kernels;
    const double begin_s = processor_s();
    volatile double x = 1;
    while (processor_s() < begin_s + 2e-3) x = x * 1.0000001;
    **(double **)argument = processor_s() - begin_s;
}

static void wait_30_ms(const struct kernels *kernels, void *argument)
{
    (void)kernels;
    (void)argument;
    const int ms = 30;
    sleep_ms((void *)&ms);
}

/* A computation never ends before its dilated time. One that uses little of the processor and lasts long was held up:
 * it counts as late. */
static void test_dilation(void **state)
{
    (void)state;
    struct device *device = open_device((struct device_options){.dilation = 5});
    struct device_stream *compute = device_stream(device, STREAM_COMPUTE);
    struct device_timing timings[4];
    double used_s[3], all_s = 0, *at;
    for (int i = 0; i < 3; i++) {
        at = &used_s[i];
        device_compute(compute, use_processor, &at, sizeof at, &timings[i]);
    }
    finish(compute);
    for (int i = 0; i < 3; i++) all_s += used_s[i];
    assert_true(timings[2].end_s - timings[0].start_s >= 5 * all_s);
    const struct device_pacing before = device_pacing(device);
    assert_true(before.asked_s >= 5 * all_s && before.late_s >= 0);
    device_compute(compute, wait_30_ms, NULL, 0, &timings[3]);
    finish(compute);
    const struct device_pacing after = device_pacing(device);
    assert_true(after.late_s - before.late_s >= 20e-3);
    assert_true(device_pacing_late(&after) > 0 && device_pacing_late(&after) <= 1);
    device_close(device);
}

/* Takes scratch as a product does, and returns the page faults. */
static void use_scratch(const struct kernels *kernels, void *argument)
{
    long *const faults = *(long **)argument;
    struct rusage before, after;
    (void)kernels;
    getrusage(RUSAGE_THREAD, &before);
    void *volatile scratch = aligned_alloc(4096, 5 << 20);
    if (!scratch) abort();
    memset(scratch, 1, 5 << 20);
    free(scratch);
    getrusage(RUSAGE_THREAD, &after);
    *faults = after.ru_minflt - before.ru_minflt;
}

/* A thread that computes finds the scratch of its first product touched: without it there are 1280 faults. */
static void test_scratch_is_touched(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* their malloc() keeps nothing */
#endif
    struct device *device = open_device((struct device_options){.dilation = 5});
    long faults[2], *at;
    for (int i = 0; i < 2; i++) {
        at = &faults[i];
        device_compute(device_stream(device, STREAM_COMPUTE), use_scratch, &at, sizeof at, NULL);
    }
    finish(device_stream(device, STREAM_COMPUTE));
    assert_in_range(faults[0], 0, 64);
    assert_in_range(faults[1], 0, 64);
    device_close(device);
}

/* Closing waits neither for queued commands, nor for a paced copy of 5 000 s, nor for events. */
static void test_close_with_work_queued(void **state)
{
    (void)state;
    struct device *device = open_device((struct device_options){.h2d_bytes_per_s = 1e3});
    struct device *other = open_device((struct device_options){.index = 1});
    struct device_stream *h2d = device_stream(device, STREAM_H2D);
    struct device_stream *compute = device_stream(other, STREAM_COMPUTE);
    unsigned char *from = calloc(1, ARENA_BYTES);
    device_copy(h2d, device_arena(device), from, ARENA_BYTES, NULL);
    uint32_t order[1], done = 0;
    const struct mark mark = {order, &done, 1};
    device_wait(compute, h2d, device_record(h2d));
    device_compute(compute, compute_mark, &mark, sizeof mark, NULL);
    assert_false(device_synchronize(compute, device_record(compute), 10e-3));
    const double before_s = clock_s();
    device_stop(other);
    device_stop(device);
    assert_true(clock_s() - before_s < 5);
    assert_int_equal(done, 0);
    device_close(other);
    device_close(device);
    free(from);
    device_close(NULL);
    device_stop(NULL);
}

static void test_poison(void **state)
{
    (void)state;
    for (int poison = 0; poison < 2; poison++) {
        struct device *device = open_device((struct device_options){.poison = poison != 0});
        struct device_stream *stream = device_stream(device, STREAM_COMPUTE);
        float *arena = device_arena(device);
        /* Fresh memory is poisoned as well: a read of memory that was never written shows. */
        assert_true(poison ? isnan(arena[123]) != 0 : arena[123] == 0);
        for (int i = 0; i < 100; i++) arena[i] = 2.5f;
        device_poison(stream, arena + 10, 20 * sizeof(float));
        finish(stream);
        for (int i = 0; i < 100; i++) {
            if (poison && i >= 10 && i < 30)
                assert_true(isnan(arena[i]));
            else
                assert_true(arena[i] == 2.5f);
        }
        device_close(device);
    }
}

/* Delays change times and not results: the same chain with delays gives the same order. */
static void test_delays(void **state)
{
    (void)state;
    struct device *device = open_device((struct device_options){.delay_seed = 42});
    struct device_stream *h2d = device_stream(device, STREAM_H2D);
    struct device_stream *compute = device_stream(device, STREAM_COMPUTE);
    enum { ROUNDS = 40 };
    int from[ROUNDS], to[ROUNDS];
    struct device_timing timings[ROUNDS];
    const double start_s = clock_s();
    for (int i = 0; i < ROUNDS; i++) {
        from[i] = i * 3 + 1;
        device_wait(h2d, compute, device_record(compute));
        device_copy(h2d, &to[i], &from[i], sizeof to[i], NULL);
        device_wait(compute, h2d, device_record(h2d));
        device_copy(compute, i + 1 < ROUNDS ? &from[i + 1] : &to[i], &to[i], sizeof to[i],
                    &timings[i]);
    }
    finish(compute);
    /* 80 pauses of 0.11 ms on average; that they sum to less than 2 ms is more than three deviations away, for one
     * seed. */
    assert_true(timings[ROUNDS - 1].end_s - start_s > 2e-3);
    for (int i = 0; i < ROUNDS; i++) assert_int_equal(to[i], 1); /* the first value, handed on */
    device_close(device);
}

static void test_memory(void **state)
{
    (void)state;
    struct error err = {0};
    void *memory = &err;
    assert_int_equal(host_memory_map("nothing", 0, &memory, &err), STATUS_OK);
    assert_null(memory);
    assert_int_equal(host_memory_map("a block", 3000001, &memory, &err), STATUS_OK);
    assert_int_equal((uintptr_t)memory % (2 << 20), 0);
    for (int i = 0; i < 3000001; i += 1000) assert_int_equal(((char *)memory)[i], 0);
    host_memory_unmap(memory, 3000001);
    assert_int_equal(host_memory_map("too much", UINT64_MAX - 5, &memory, &err), STATUS_NO_MEMORY);
    assert_true(host_memory_available() > 1 << 20);
    assert_true(host_memory_total() > 1 << 20);
}

static void test_open_without_memory(void **state)
{
    (void)state;
    struct error err = {0};
    struct device *device = NULL;
    const struct device_options options = {.arena_bytes = UINT64_MAX / 2, .threads = 1};
    assert_int_equal(device_open_host(&options, &device, &err), STATUS_NO_MEMORY);
    assert_null(device);
    assert_non_null(strstr(err.text, "arena"));
}

static void test_copies_between_devices(void **state)
{
    (void)state;
    struct device *pair[2];
    p2p_open_pair(device_open_host, (struct device_options){.delay_seed = 0}, P2P_DIRECT, pair);
    p2p_check_copies(pair);
    p2p_close_pair(pair);
    p2p_open_pair(device_open_host, (struct device_options){.delay_seed = 5}, P2P_DIRECT, pair);
    p2p_check_copies(pair);
    p2p_close_pair(pair);
}

/* 3 MiB at 100 MB/s take 31.457 ms or more; the pacing of host links does not matter. */
static void test_copies_between_devices_are_paced(void **state)
{
    (void)state;
    struct device *pair[2];
    p2p_open_pair(device_open_host, (struct device_options){.p2p_bytes_per_s = 100e6}, P2P_DIRECT,
                  pair);
    bool whole = false;
    for (uint32_t i = 0; i < PAUSES_MAX && !whole; i++) whole = p2p_check_copies(pair) > 31.4e-3;
    assert_true(whole);
    p2p_close_pair(pair);
}

/* Trying a link takes no time of the emulated links, and leaves their paces: p2p_check_copies() copies 10 MiB to each
 * device, 5 MiB back and over 3 MiB between them. */
static void test_a_link_is_tried_unpaced(void **state)
{
    (void)state;
    const struct device_options paced = {.h2d_bytes_per_s = 1e9, .d2h_bytes_per_s = 1e9, .p2p_bytes_per_s = 1e9};
    struct device *pair[2];
    p2p_open_pair(device_open_host, paced, P2P_DIRECT, pair);
    for (uint32_t d = 0; d < 2; d++) assert_true(!(device_pacing(pair[d]).asked_s > 0));
    p2p_check_copies(pair);
    for (uint32_t d = 0; d < 2; d++) assert_true(device_pacing(pair[d]).asked_s > 18 * 1048576 / 1e9);
    p2p_close_pair(pair);
}

/* After trying a link, the arena is as when it was opened: full of NaN if poison is set. */
static void test_a_link_leaves_poison(void **state)
{
    (void)state;
    struct device *pair[2];
    p2p_open_pair(device_open_host, (struct device_options){.poison = true}, P2P_DIRECT, pair);
    for (uint32_t d = 0; d < 2; d++)
        for (uint32_t i = 0; i < (2 << 20) / sizeof(float); i++)
            assert_true(isnan(((const float *)device_arena(pair[d]))[i]));
    assert_null(device_stream(pair[0], STREAM_CPU));
    p2p_close_pair(pair);
    struct device *device = open_device((struct device_options){.delay_seed = 0});
    assert_null(device_stream(device, STREAM_P2P)); /* unless it is asked for */
    device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stream_keeps_order),
        cmocka_unit_test(test_arguments_are_copied_or_borrowed),
        cmocka_unit_test(test_events_order_streams),
        cmocka_unit_test(test_timing_and_timeout),
        cmocka_unit_test(test_copies_are_exact),
        cmocka_unit_test(test_guarded_copies),
        cmocka_unit_test(test_pacing_never_exceeds_the_rate),
        cmocka_unit_test(test_dilation),
        cmocka_unit_test(test_scratch_is_touched),
        cmocka_unit_test(test_close_with_work_queued),
        cmocka_unit_test(test_poison),
        cmocka_unit_test(test_delays),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_open_without_memory),
        cmocka_unit_test(test_copies_between_devices),
        cmocka_unit_test(test_copies_between_devices_are_paced),
        cmocka_unit_test(test_a_link_is_tried_unpaced),
        cmocka_unit_test(test_a_link_leaves_poison),
    };
    return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
