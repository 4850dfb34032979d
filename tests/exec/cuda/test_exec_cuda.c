/*
 * The CUDA back end's devices. Without a GPU: what the library says to our descriptors, the table, the
 * messages. With one: copies, events, clocks, guards, closing (exec/device/device.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/process/clock.h"
#include "base/size.h"
#include "exec/device/backend.h"
#include "tests/support/exec/support_cuda.h"
#include "tests/support/planner/support_p2p.h"

#ifndef SPILLWAY_CUDA

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(support_cuda_left_out)};
    return cmocka_run_group_tests_name("CUDA", tests, NULL, NULL);
}

#else

#include "exec/cuda/kernels_cuda.h"
#include "exec/cuda/kernels_cuda_products.h"

enum { ARENA_BYTES = 5 << 20 };

/* --- without a device ------------------------------------------------------------------------------ */

/* The products of GPT-2 124M on 1024 tokens, of a block and of the head, there and back. */
static void test_descriptors(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{2304, 768}, {768, 768}, {3072, 768}, {768, 3072},
                                       {50257, 768}};
    const float *const some = (const float *)(uintptr_t)CUDA_OPERAND_ALIGNMENT;
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++)
        for (int form = 0; form < 32; form++) {
            const struct cuda_product product = {.m = sizes[i][0],
                                                 .n = 1024,
                                                 .k = sizes[i][1],
                                                 .transpose_a = form & 1,
                                                 .transpose_b = form >> 1 & 1,
                                                 .bias = form >> 2 & 1 ? some : NULL,
                                                 .bf16 = form >> 4};
            const char *const wrong = cuda_products_describe(&product, form >> 3 & 1);
            if (wrong) fail_msg("%s", wrong);
        }
}

static void test_the_table_is_complete(void **state)
{
    (void)state;
    const struct kernels *const table = kernels_cuda_table();
    assert_string_equal(table->name, "cuda");
    /* Whatever is between the first entry and the end is a function, but for what only networks need that train on
     * hosts. */
    const char *at = (const char *)&table->finish;
    const char *const end = (const char *)(table + 1);
    for (; at < end; at += sizeof(void (*)(void))) {
        void (*entry)(void);
        if (at == (const char *)&table->geglu_forward || at == (const char *)&table->geglu_backward ||
            at == (const char *)&table->scale || at == (const char *)&table->attends_in_windows ||
            at == (const char *)&table->turns_parts || at == (const char *)&table->caps ||
            at == (const char *)&table->dropout ||
            (at >= (const char *)&table->route && at <= (const char *)&table->gate_rows_backward))
            continue;
        memcpy(&entry, at, sizeof entry);
        assert_non_null(entry);
    }
}

static void test_no_device(void **state)
{
    (void)state;
    uint32_t count;
    struct error err = {0};
    const struct backend *const cuda = backend_find("cuda");
    assert_non_null(cuda);
    assert_non_null(strstr(backend_names(), "cuda"));
    if (cuda->count(&count, &err) == STATUS_OK) {
        struct device *device = NULL;
        const struct device_options far = {.index = count, .arena_bytes = ARENA_BYTES};
        assert_int_equal(cuda->open(&far, &device, &err), STATUS_DEVICE);
        assert_non_null(strstr(err.text, "there is no CUDA device"));
        return;
    }
    struct error again = {0};
    struct device *device = NULL;
    const struct device_options options = {.arena_bytes = ARENA_BYTES};
    print_message("%s\n", err.text);
    assert_non_null(strstr(err.text, "no CUDA device: "));
    assert_int_equal(cuda->open(&options, &device, &again), STATUS_DEVICE);
    assert_null(device);
    assert_string_equal(again.text, err.text);
}

/* --- the device interface ------------------------------------------------------------------------------ */

static struct device *open_device(struct device_options options)
{
    struct error err = {0};
    struct device *device = NULL;
    if (options.arena_bytes == 0) options.arena_bytes = ARENA_BYTES;
    if (device_open_cuda(&options, &device, &err) != STATUS_OK) fail_msg("%s", err.text);
    return device;
}

static void close_device(struct device *device)
{
    struct error err = {0};
    if (device_failed(device, &err) != STATUS_OK) fail_msg("%s", err.text);
    device_close(device);
}

static void finish(struct device_stream *on)
{
    assert_true(device_synchronize(on, device_record(on), 60));
}

static unsigned char *pinned(uint64_t bytes)
{
    void *memory;
    support_check_cuda(cudaMallocHost(&memory, bytes));
    return memory;
}

/* Copies there and back of odd sizes and places, pinned, pageable, paced and delayed. */
static void check_copies(struct device_options options)
{
    static const struct {
        uint64_t offset, bytes;
    } ranges[] = {{0, 1}, {3, 4093}, {5000, 1}, {8192, 1 << 20}, {3 << 20, (2 << 20) - 7}};
    struct device *const device = open_device(options);
    struct device_stream *const h2d = device_stream(device, STREAM_H2D);
    struct device_stream *const d2h = device_stream(device, STREAM_D2H);
    unsigned char *const arena = device_arena(device);
    unsigned char *const from = options.pageable ? malloc(ARENA_BYTES) : pinned(ARENA_BYTES);
    unsigned char *const back = options.pageable ? malloc(ARENA_BYTES) : pinned(ARENA_BYTES);
    for (uint64_t i = 0; i < ARENA_BYTES; i++) from[i] = (unsigned char)(i * 2654435761u >> 24);
    memset(back, 0x55, ARENA_BYTES);
    for (size_t i = 0; i < ARRAY_COUNT(ranges); i++) {
        device_copy(h2d, arena + ranges[i].offset, from + ranges[i].offset, ranges[i].bytes, NULL);
        device_wait(d2h, h2d, device_record(h2d));
        device_copy(d2h, back + ranges[i].offset, arena + ranges[i].offset, ranges[i].bytes, NULL);
        /* The bytes that came back are copied in again: the host's side is read after the copy has ended. */
        device_wait(h2d, d2h, device_record(d2h));
        device_copy(h2d, arena + ranges[i].offset, back + ranges[i].offset, ranges[i].bytes, NULL);
        device_wait(d2h, h2d, device_record(h2d));
        device_copy(d2h, back + ranges[i].offset, arena + ranges[i].offset, ranges[i].bytes, NULL);
    }
    finish(d2h);
    uint64_t at = 0;
    for (size_t i = 0; i < ARRAY_COUNT(ranges); i++) {
        for (; at < ranges[i].offset; at++) assert_int_equal(back[at], 0x55);
        assert_memory_equal(back + at, from + at, ranges[i].bytes);
        at += ranges[i].bytes;
    }
    close_device(device);
    if (options.pageable) {
        free(from);
        free(back);
    } else {
        cudaFreeHost(from);
        cudaFreeHost(back);
    }
}

static void test_copies(void **state)
{
    (void)state;
    support_need_gpu();
    check_copies((struct device_options){.delay_seed = 0});
    check_copies((struct device_options){.pageable = true});
    check_copies((struct device_options){.h2d_bytes_per_s = 150e6, .d2h_bytes_per_s = 150e6});
    check_copies((struct device_options){.delay_seed = 11});
}

/* With two GPUs: pinned, paced, delayed, and with pageable host memory. */
static void test_copies_between_devices(void **state)
{
    (void)state;
    support_need_gpu();
    uint32_t count = 0;
    struct error err = {0};
    assert_int_equal(backend_find("cuda")->count(&count, &err), STATUS_OK);
    if (count < 2) skip();
    static const struct device_options options[] = {
        {.delay_seed = 0}, {.delay_seed = 17}, {.p2p_bytes_per_s = 300e6}, {.pageable = true}};
    for (size_t i = 0; i < ARRAY_COUNT(options); i++) {
        struct device *pair[2];
        p2p_open_pair(device_open_cuda, options[i], P2P_DIRECT, pair);
        p2p_check_copies(pair);
        p2p_close_pair(pair);
    }
}

/* An event that was not reached when it was asked for counts as an error of the thread that asked,
 * which its next launch would return. */
static void test_opening_leaves_no_error(void **state)
{
    (void)state;
    support_need_gpu();
    cudaGetLastError();
    struct device *const device = open_device((struct device_options){.delay_seed = 0});
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    close_device(device);
}

struct mark {
    uint32_t *order, *count;
    uint32_t value;
};

static void leave_mark(void *argument)
{
    const struct mark *const mark = argument;
    mark->order[(*mark->count)++] = mark->value;
}

/* A token goes round GPU streams and the host's; each hop may only happen after the one before.
 * With and without delays; thrice the queue. */
static void test_events(void **state)
{
    (void)state;
    support_need_gpu();
    for (uint64_t delay = 0; delay < 2; delay++) {
        struct device *const device = open_device((struct device_options){.delay_seed = delay * 7});
        struct device_stream *const ring[] = {
            device_stream(device, STREAM_COMPUTE), device_stream(device, STREAM_H2D),
            device_stream(device, STREAM_HOST), device_stream(device, STREAM_D2H)};
        const uint32_t hops = delay ? 400 : 3 * DEVICE_QUEUE_MAX;
        uint32_t *const order = calloc(hops, sizeof *order), done = 0;
        uint64_t event = 0;
        for (uint32_t i = 0; i < hops; i++) {
            struct device_stream *const on = ring[i % 4];
            if (i > 0) device_wait(on, ring[(i - 1) % 4], event);
            const struct mark mark = {order, &done, i};
            device_call(on, leave_mark, &mark, sizeof mark, NULL);
            event = device_record(on);
        }
        for (int i = 0; i < 4; i++) finish(ring[i]);
        assert_int_equal(done, hops);
        for (uint32_t i = 0; i < hops; i++) assert_int_equal(order[i], i);
        free(order);
        close_device(device);
    }
}

/* An event whose last command is a wait is not reached before the commands before that wait. */
static void test_a_wait_is_a_command(void **state)
{
    (void)state;
    support_need_gpu();
    struct device *const device = open_device((struct device_options){.delay_seed = 3});
    struct device_stream *const h2d = device_stream(device, STREAM_H2D);
    struct device_stream *const d2h = device_stream(device, STREAM_D2H);
    struct device_stream *const host = device_stream(device, STREAM_HOST);
    unsigned char *const from = pinned(1 << 20), *const back = pinned(1 << 20);
    uint32_t order[8], done = 0;
    for (int round = 0; round < 8; round++) {
        memset(from, round + 1, 1 << 20);
        const struct mark mark = {order, &done, 0};
        device_call(host, leave_mark, &mark, sizeof mark, NULL);
        device_copy(h2d, device_arena(device), from, 1 << 20, NULL);
        device_wait(h2d, host, device_record(host));
        device_wait(d2h, h2d, device_record(h2d));
        device_copy(d2h, back, device_arena(device), 1 << 20, NULL);
        finish(d2h);
        for (int i = 0; i < 1 << 20; i += 4099) assert_int_equal(back[i], round + 1);
    }
    cudaFreeHost(from);
    cudaFreeHost(back);
    close_device(device);
}

/* By how much two clocks may disagree about a moment. The emulated one is read by a thread that has to
 * be scheduled first. */
#ifdef SPILLWAY_EMULATED
static const double CLOCKS_S = 15e-3;
#else
static const double CLOCKS_S = 0.2e-3;
#endif

static void test_times(void **state)
{
    (void)state;
    support_need_gpu();
    struct device *const device = open_device((struct device_options){.h2d_bytes_per_s = 200e6});
    struct device_stream *const h2d = device_stream(device, STREAM_H2D);
    struct device_stream *const d2h = device_stream(device, STREAM_D2H);
    unsigned char *const host = pinned(4000000);
    struct device_timing paced[5], plain[5];
    const double before_s = clock_s();
    for (int i = 0; i < 5; i++) {
        device_copy(h2d, device_arena(device), host, 4000000, &paced[i]);
        device_wait(d2h, h2d, device_record(h2d));
        device_copy(d2h, host, device_arena(device), 4000000, &plain[i]);
    }
    finish(d2h);
    const double after_s = clock_s();
    for (int i = 0; i < 5; i++) {
        assert_true(paced[i].start_s >= before_s && plain[i].end_s <= after_s);
        /* 4 MB at 200 MB/s, whenever the first of them was noticed to have started */
        assert_true(paced[i].end_s - before_s >= (i + 1) * 20e-3 * 0.98);
        assert_true(plain[i].start_s >= paced[i].end_s - CLOCKS_S);
        assert_true(plain[i].end_s >= plain[i].start_s);
        if (i > 0) assert_true(paced[i].start_s >= paced[i - 1].end_s);
    }
    cudaFreeHost(host);
    close_device(device);
}

static void test_guards(void **state)
{
    (void)state;
    support_need_gpu();
    struct device *const device = open_device((struct device_options){.delay_seed = 0});
    struct device_stream *const h2d = device_stream(device, STREAM_H2D);
    int *const host = (int *)(void *)pinned(64), *const arena = device_arena(device);
    atomic_uint_fast64_t limit = 2;
    struct device_timing timings[4];
    for (int i = 0; i < 4; i++) {
        host[i] = 11 + i;
        device_copy_guarded(h2d, &arena[i], &host[i], sizeof *host,
                            (struct device_guard){.limit = &limit, .value = (uint64_t)i},
                            &timings[i]);
    }
    device_copy(h2d, &arena[8], &host[0], sizeof *host, NULL);
    finish(h2d);
    int back[4];
    support_check_cuda(cudaMemcpy(back, arena, sizeof back, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(back[i], i < 2 ? 11 + i : 0);
        assert_int_equal(timings[i].left_out, i >= 2);
    }
    cudaFreeHost(host);
    close_device(device);
}

static void test_poison(void **state)
{
    (void)state;
    support_need_gpu();
    for (int poison = 0; poison < 2; poison++) {
        struct device *const device = open_device((struct device_options){.poison = poison != 0});
        struct device_stream *const compute = device_stream(device, STREAM_COMPUTE);
        float *const arena = device_arena(device);
        float back[100];
        support_check_cuda(cudaMemcpy(back, arena, sizeof back, cudaMemcpyDeviceToHost));
        assert_true(poison ? isnan(back[99]) != 0 : back[99] == 0);
        for (int i = 0; i < 100; i++) back[i] = 2.5f;
        support_check_cuda(cudaMemcpy(arena, back, sizeof back, cudaMemcpyHostToDevice));
        device_poison(compute, arena + 10, 20 * sizeof(float));
        finish(compute);
        support_check_cuda(cudaMemcpy(back, arena, sizeof back, cudaMemcpyDeviceToHost));
        for (int i = 0; i < 100; i++)
            assert_true(poison && i >= 10 && i < 30 ? isnan(back[i]) != 0 : back[i] == 2.5f);
        close_device(device);
    }
}

/* Closing waits neither for queued commands nor for a paced copy of 5 000 s. */
static void test_close_with_work_queued(void **state)
{
    (void)state;
    support_need_gpu();
    struct device *const device = open_device((struct device_options){.h2d_bytes_per_s = 1e3});
    struct device_stream *const h2d = device_stream(device, STREAM_H2D);
    struct device_stream *const compute = device_stream(device, STREAM_COMPUTE);
    unsigned char *const host = pinned(ARENA_BYTES);
    uint32_t order[1], done = 0;
    const struct mark mark = {order, &done, 1};
    device_copy(h2d, device_arena(device), host, ARENA_BYTES, NULL);
    device_wait(compute, h2d, device_record(h2d));
    device_call(compute, leave_mark, &mark, sizeof mark, NULL);
    assert_false(device_synchronize(compute, device_record(compute), 10e-3));
    const double before_s = clock_s();
    device_stop(device);
    assert_true(clock_s() - before_s < 5);
    assert_int_equal(done, 0);
    device_close(device);
    cudaFreeHost(host);
}

static void test_too_little_memory(void **state)
{
    (void)state;
    support_need_gpu();
    struct error err = {0};
    struct device *device = NULL;
    const struct device_options options = {.arena_bytes = UINT64_C(1) << 50};
    assert_int_equal(device_open_cuda(&options, &device, &err), STATUS_NO_MEMORY);
    assert_null(device);
    assert_non_null(strstr(err.text, "of device memory"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_the_table_is_complete),
        cmocka_unit_test(test_no_device),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_copies_between_devices),
        cmocka_unit_test(test_opening_leaves_no_error),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_a_wait_is_a_command),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_guards),
        cmocka_unit_test(test_poison),
        cmocka_unit_test(test_close_with_work_queued),
        cmocka_unit_test(test_too_little_memory),
    };
    return cmocka_run_group_tests_name("CUDA", tests, NULL, NULL);
}

#endif
