/*
 * The CUDA back end. Without a GPU: what the library says to our descriptors, the table, the
 * messages. With one: every kernel against the references of support_kernels.c, the device
 * interface, and the contract of training (spilled is resident, to the last bit).
 *
 * Kernels work on the device's memory and the cases on the host's pool, so the table that the cases
 * see copies the pool to the device, calls, and copies it back, each time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "base/size.h"
#include "exec/backend.h"
#include "exec/run.h"
#include "planner/planner.h"
#include "tests/support_p2p.h"
#include "tests/support_kernels.h"
#include "tests/support_memory.h"
#include "tests/support_planner.h"

#ifndef SPILLWAY_CUDA

static void test_left_out(void **state)
{
    (void)state;
    print_message("built without CUDA\n");
    assert_null(backend_find("cuda"));
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_left_out)};
    return cmocka_run_group_tests_name("CUDA", tests, NULL, NULL);
}

#else

#include <cuda_runtime_api.h>

#include "exec/kernels_cuda.h"
#include "exec/kernels_cuda_launch.h"
#include "exec/kernels_cuda_products.h"

enum { ARENA_BYTES = 5 << 20 };

/* Skips the test when there is no GPU. */
static void need_device(void)
{
    uint32_t count;
    struct error err = {0};
    if (backend_find("cuda")->count(&count, &err) == STATUS_OK) return;
    print_message("skipped: %s\n", err.text);
    skip();
}

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
    /* Whatever is between the first entry and the end is a function, but for what only the host's
     * processor does. */
    const char *at = (const char *)&table->finish;
    const char *const end = (const char *)(table + 1);
    for (; at < end; at += sizeof(void (*)(void))) {
        void (*entry)(void);
        if (at == (const char *)&table->embed_gradient || at == (const char *)&table->squares ||
            at == (const char *)&table->update_scaled)
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

/* --- kernels, mirrored -------------------------------------------------------------------------------- */

static cudaStream_t stream;
static struct kernels *inner;
static char *mirror;

static void check_cuda(cudaError_t status)
{
    if (status != cudaSuccess) fail_msg("%s", cudaGetErrorString(status));
}

static void enter(void)
{
    uint64_t bytes;
    const float *const pool = test_kernels_pool(&bytes);
    check_cuda(cudaMemcpy(mirror, pool, bytes, cudaMemcpyHostToDevice));
}

static void leave(void)
{
    uint64_t bytes;
    float *const pool = test_kernels_pool(&bytes);
    inner->finish(inner);
    const char *const failed = kernels_cuda_failure(inner);
    if (failed) fail_msg("%s", failed);
    check_cuda(cudaMemcpy(pool, mirror, bytes, cudaMemcpyDeviceToHost));
}

/* Where an operand is on the device. */
static void *there(const void *operand)
{
    uint64_t bytes;
    const char *const pool = (const char *)test_kernels_pool(&bytes);
    if (!operand) return NULL;
    assert_true((const char *)operand >= pool && (const char *)operand < pool + bytes);
    return mirror + ((const char *)operand - pool);
}

static void far_linear_forward(const struct kernels *k, float *y, const float *x, const float *w,
                               const float *bias, int64_t m, int64_t n, int64_t d, bool w_in_out)
{
    (void)k;
    enter();
    inner->linear_forward(inner, there(y), there(x), there(w), there(bias), m, n, d, w_in_out);
    leave();
}

static void far_linear_input(const struct kernels *k, float *dx, const float *dy, const float *w,
                             int64_t m, int64_t n, int64_t d, bool w_in_out, bool accumulate)
{
    (void)k;
    enter();
    inner->linear_input(inner, there(dx), there(dy), there(w), m, n, d, w_in_out, accumulate);
    leave();
}

static void far_linear_weight(const struct kernels *k, float *dw, float *dbias, const float *dy,
                              const float *x, int64_t m, int64_t n, int64_t d, bool w_in_out,
                              uint32_t add)
{
    (void)k;
    enter();
    inner->linear_weight(inner, there(dw), there(dbias), there(dy), there(x), m, n, d, w_in_out,
                         add);
    leave();
}

static void far_embed_forward(const struct kernels *k, float *x, const float *rows,
                              const int32_t *tokens, int64_t token_stride, int64_t b, int64_t t,
                              int64_t c, int64_t v, int64_t first_row, int64_t row_count)
{
    (void)k;
    enter();
    inner->embed_forward(inner, there(x), there(rows), there(tokens), token_stride, b, t, c, v,
                         first_row, row_count);
    leave();
}

static struct kernel_parameters far_parameters(struct kernel_parameters parameters)
{
    parameters.p = there(parameters.p);
    parameters.rounded = there(parameters.rounded);
    parameters.m = there(parameters.m);
    parameters.v = there(parameters.v);
    return parameters;
}

static void far_embed_update(const struct kernels *k, const struct kernel_parameters *rows,
                             const float *head_gradient, const float *dx, const int32_t *tokens,
                             int64_t token_stride, int64_t b, int64_t t, int64_t c, int64_t v,
                             int64_t first_row, int64_t row_count,
                             const struct optimizer *optimizer, uint64_t step, float *scratch)
{
    (void)k;
    enter();
    const struct kernel_parameters far = far_parameters(*rows);
    inner->embed_update(inner, &far, there(head_gradient), there(dx), there(tokens), token_stride, b, t, c, v, first_row, row_count, optimizer, step,
                        there(scratch));
    leave();
}

static void far_norm_forward(const struct kernels *k, float *out, float *sum, float *stats,
                             const float *x, const float *y, const float *w, const float *b,
                             int64_t r, int64_t c, float epsilon)
{
    (void)k;
    enter();
    inner->norm_forward(inner, there(out), there(sum), there(stats), there(x), there(y), there(w),
                        there(b), r, c, epsilon);
    leave();
}

static void far_norm_backward(const struct kernels *k, float *dx, float *dw, float *db,
                              const float *dout, const float *x, const float *stats,
                              const float *w, const float *added, int64_t r, int64_t c)
{
    (void)k;
    enter();
    inner->norm_backward(inner, there(dx), there(dw), there(db), there(dout), there(x),
                         there(stats), there(w), there(added), r, c);
    leave();
}

static struct attention far_attention(const struct attention *attention)
{
    struct attention far = *attention;
    far.out = there(attention->out);
    far.stats = there(attention->stats);
    far.q = there(attention->q);
    far.k = there(attention->k);
    far.v = there(attention->v);
    far.dout = there(attention->dout);
    far.dq = there(attention->dq);
    far.dk = there(attention->dk);
    far.dv = there(attention->dv);
    far.scratch = there(attention->scratch);
    return far;
}

static void far_attention_forward(const struct kernels *k, const struct attention *attention)
{
    (void)k;
    const struct attention far = far_attention(attention);
    enter();
    inner->attention_forward(inner, &far);
    leave();
}

static void far_attention_backward(const struct kernels *k, const struct attention *attention)
{
    (void)k;
    const struct attention far = far_attention(attention);
    enter();
    inner->attention_backward(inner, &far);
    leave();
}

static void far_gelu_forward(const struct kernels *k, float *y, const float *x, int64_t n,
                             bool tanh_form)
{
    (void)k;
    enter();
    inner->gelu_forward(inner, there(y), there(x), n, tanh_form);
    leave();
}

static void far_gelu_backward(const struct kernels *k, float *dx, const float *dy, const float *x,
                              int64_t n, bool tanh_form)
{
    (void)k;
    enter();
    inner->gelu_backward(inner, there(dx), there(dy), there(x), n, tanh_form);
    leave();
}

static void far_residual(const struct kernels *k, float *z, const float *x, const float *y,
                         int64_t n)
{
    (void)k;
    enter();
    inner->residual(inner, there(z), there(x), there(y), n);
    leave();
}

static void far_loss(const struct kernels *k, double *loss, float *logits, const int32_t *tokens,
                     int64_t token_stride, int64_t b, int64_t t, int64_t v, struct loss_rows rows)
{
    (void)k;
    enter();
    inner->loss(inner, there(loss), there(logits), there(tokens), token_stride, b, t, v, rows);
    leave();
}

static void far_update(const struct kernels *k, const struct kernel_parameters *parameters,
                       const float *g, int64_t n, const struct optimizer *optimizer, bool decays,
                       uint64_t step)
{
    (void)k;
    const struct kernel_parameters far = far_parameters(*parameters);
    enter();
    inner->update(inner, &far, there(g), n, optimizer, decays, step);
    leave();
}

static void far_rms_norm_forward(const struct kernels *kernels, float *out, float *sum,
                                 float *stats, const float *x, const float *y, const float *w,
                                 int64_t r, int64_t c, float epsilon)
{
    (void)kernels;
    enter();
    inner->rms_norm_forward(inner, there(out), there(sum), there(stats), there(x), there(y),
                            there(w), r, c, epsilon);
    leave();
}

static void far_rms_norm_backward(const struct kernels *kernels, float *dx, float *dw,
                                  const float *dout, const float *x, const float *stats,
                                  const float *w, const float *added, int64_t r, int64_t c)
{
    (void)kernels;
    enter();
    inner->rms_norm_backward(inner, there(dx), there(dw), there(dout), there(x), there(stats),
                             there(w), there(added), r, c);
    leave();
}

static void far_rope(const struct kernels *kernels, float *q, float *k, int64_t b, int64_t t,
                     int64_t h, int64_t kv, int64_t d, const struct rope *rope, bool back)
{
    (void)kernels;
    enter();
    inner->rope(inner, there(q), there(k), b, t, h, kv, d, rope, back);
    leave();
}

static void far_swiglu_forward(const struct kernels *kernels, float *y, const float *gate,
                               const float *up, int64_t n)
{
    (void)kernels;
    enter();
    inner->swiglu_forward(inner, there(y), there(gate), there(up), n);
    leave();
}

static void far_swiglu_backward(const struct kernels *kernels, float *dgate, float *dup,
                                const float *dy, const float *gate, const float *up, int64_t n)
{
    (void)kernels;
    enter();
    inner->swiglu_backward(inner, there(dgate), there(dup), there(dy), there(gate), there(up), n);
    leave();
}

static void far_loss_labels(const struct kernels *kernels, double *loss, float *logits,
                            const int32_t *labels, int64_t label_stride, int64_t b, int64_t t,
                            int64_t v, struct loss_rows rows)
{
    (void)kernels;
    enter();
    inner->loss_labels(inner, there(loss), there(logits), there(labels), label_stride, b, t, v,
                       rows);
    leave();
}

static void far_patches(const struct kernels *kernels, float *out, const float *images, int64_t b,
                        int64_t channels, int64_t image, int64_t patch)
{
    (void)kernels;
    enter();
    inner->patches(inner, there(out), there(images), b, channels, image, patch);
    leave();
}

static void far_join_forward(const struct kernels *kernels, float *x, const float *patches,
                             const float *class_token, const float *positions, int64_t b,
                             int64_t t, int64_t c)
{
    (void)kernels;
    enter();
    inner->join_forward(inner, there(x), there(patches), there(class_token), there(positions), b,
                        t, c);
    leave();
}

static void far_join_backward(const struct kernels *kernels, float *dpatches, float *dclass_token,
                              float *dpositions, const float *dx, int64_t b, int64_t t, int64_t c)
{
    (void)kernels;
    enter();
    inner->join_backward(inner, there(dpatches), there(dclass_token), there(dpositions), there(dx),
                         b, t, c);
    leave();
}

static void far_first_forward(const struct kernels *kernels, float *out, const float *x, int64_t b,
                              int64_t t, int64_t c)
{
    (void)kernels;
    enter();
    inner->first_forward(inner, there(out), there(x), b, t, c);
    leave();
}

static void far_first_backward(const struct kernels *kernels, float *dx, const float *dout,
                               int64_t b, int64_t t, int64_t c)
{
    (void)kernels;
    enter();
    inner->first_backward(inner, there(dx), there(dout), b, t, c);
    leave();
}

static void far_round(const struct kernels *kernels, bf16 *out, const float *x, int64_t n)
{
    (void)kernels;
    enter();
    inner->round(inner, there(out), there(x), n);
    leave();
}

static void far_linear_forward_bf16(const struct kernels *kernels, float *y, const bf16 *x,
                                    const bf16 *w, const float *bias, int64_t m, int64_t n,
                                    int64_t k, bool w_in_out)
{
    (void)kernels;
    enter();
    inner->linear_forward_bf16(inner, there(y), there(x), there(w), there(bias), m, n, k, w_in_out);
    leave();
}

static void far_linear_input_bf16(const struct kernels *kernels, float *dx, const bf16 *dy,
                                  const bf16 *w, int64_t m, int64_t n, int64_t k, bool w_in_out,
                                  bool accumulate)
{
    (void)kernels;
    enter();
    inner->linear_input_bf16(inner, there(dx), there(dy), there(w), m, n, k, w_in_out, accumulate);
    leave();
}

static void far_linear_weight_bf16(const struct kernels *kernels, float *dw, float *dbias,
                                   const float *dy, const bf16 *dy_rounded, const bf16 *x,
                                   int64_t m, int64_t n, int64_t k, bool w_in_out, uint32_t add)
{
    (void)kernels;
    enter();
    inner->linear_weight_bf16(inner, there(dw), there(dbias), there(dy), there(dy_rounded), there(x),
                              m, n, k, w_in_out, add);
    leave();
}

static void far_embed_forward_bf16(const struct kernels *kernels, float *x, const bf16 *rows,
                                   const int32_t *tokens, int64_t token_stride, int64_t b,
                                   int64_t t, int64_t c, int64_t v, int64_t first_row,
                                   int64_t row_count)
{
    (void)kernels;
    enter();
    inner->embed_forward_bf16(inner, there(x), there(rows), there(tokens), token_stride, b, t, c, v,
                              first_row, row_count);
    leave();
}

static const struct kernels far_table = {
    .name = "cuda, mirrored",
    .linear_forward = far_linear_forward,
    .linear_input = far_linear_input,
    .linear_weight = far_linear_weight,
    .embed_forward = far_embed_forward,
    .embed_update = far_embed_update,
    .norm_forward = far_norm_forward,
    .norm_backward = far_norm_backward,
    .attention_forward = far_attention_forward,
    .attention_backward = far_attention_backward,
    .gelu_forward = far_gelu_forward,
    .gelu_backward = far_gelu_backward,
    .residual = far_residual,
    .loss = far_loss,
    .update = far_update,
    .round = far_round,
    .linear_forward_bf16 = far_linear_forward_bf16,
    .linear_input_bf16 = far_linear_input_bf16,
    .linear_weight_bf16 = far_linear_weight_bf16,
    .embed_forward_bf16 = far_embed_forward_bf16,
    .rms_norm_forward = far_rms_norm_forward,
    .rms_norm_backward = far_rms_norm_backward,
    .rope = far_rope,
    .swiglu_forward = far_swiglu_forward,
    .swiglu_backward = far_swiglu_backward,
    .loss_labels = far_loss_labels,
    .patches = far_patches,
    .join_forward = far_join_forward,
    .join_backward = far_join_backward,
    .first_forward = far_first_forward,
    .first_backward = far_first_backward,
};

enum { POOL_BYTES_MAX = 64 << 20 };

/* The slack: products add up in another order, exponentials are the device's. */
static int open_kernels(void **state)
{
    (void)state;
    uint32_t count;
    struct error err = {0};
    if (backend_find("cuda")->count(&count, &err) != STATUS_OK) {
        print_message("skipped, all kernels: %s\n", err.text);
        return 0;
    }
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
        cudaMalloc((void **)&mirror, POOL_BYTES_MAX) != cudaSuccess ||
        kernels_cuda_create(stream, false, &inner, &err) != STATUS_OK)
        return -1;
    return kernel_cases_setup(&(struct kernel_cases){
        .first = &far_table,
        .second = &far_table,
        .shift = CUDA_OPERAND_ALIGNMENT / sizeof(float),
        .slack = 4});
}

static int close_kernels(void **state)
{
    (void)state;
    if (!inner) return 0;
    kernels_cuda_destroy(inner);
    cudaFree(mirror);
    cudaStreamDestroy(stream);
    kernel_cases_teardown();
    return 0;
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
    check_cuda(cudaMallocHost(&memory, bytes));
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
        /* What came back goes there again: the host's side is read after the copy has ended. */
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
    need_device();
    check_copies((struct device_options){.delay_seed = 0});
    check_copies((struct device_options){.pageable = true});
    check_copies((struct device_options){.h2d_bytes_per_s = 150e6, .d2h_bytes_per_s = 150e6});
    check_copies((struct device_options){.delay_seed = 11});
}

/* Where there are two GPUs: pinned, paced, delayed, beside pageable memory of the host. */
static void test_copies_between_devices(void **state)
{
    (void)state;
    need_device();
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
    need_device();
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
    need_device();
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

/* An event whose last command is a wait is not reached before what stands in front of that wait. */
static void test_a_wait_is_a_command(void **state)
{
    (void)state;
    need_device();
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
    need_device();
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
    need_device();
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
    check_cuda(cudaMemcpy(back, arena, sizeof back, cudaMemcpyDeviceToHost));
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
    need_device();
    for (int poison = 0; poison < 2; poison++) {
        struct device *const device = open_device((struct device_options){.poison = poison != 0});
        struct device_stream *const compute = device_stream(device, STREAM_COMPUTE);
        float *const arena = device_arena(device);
        float back[100];
        check_cuda(cudaMemcpy(back, arena, sizeof back, cudaMemcpyDeviceToHost));
        assert_true(poison ? isnan(back[99]) != 0 : back[99] == 0);
        for (int i = 0; i < 100; i++) back[i] = 2.5f;
        check_cuda(cudaMemcpy(arena, back, sizeof back, cudaMemcpyHostToDevice));
        device_poison(compute, arena + 10, 20 * sizeof(float));
        finish(compute);
        check_cuda(cudaMemcpy(back, arena, sizeof back, cudaMemcpyDeviceToHost));
        for (int i = 0; i < 100; i++)
            assert_true(poison && i >= 10 && i < 30 ? isnan(back[i]) != 0 : back[i] == 2.5f);
        close_device(device);
    }
}

/* Closing does not wait for what is queued, nor for a paced copy of 5 000 s. */
static void test_close_with_work_queued(void **state)
{
    (void)state;
    need_device();
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
    need_device();
    struct error err = {0};
    struct device *device = NULL;
    const struct device_options options = {.arena_bytes = UINT64_C(1) << 50};
    assert_int_equal(device_open_cuda(&options, &device, &err), STATUS_NO_MEMORY);
    assert_null(device);
    assert_non_null(strstr(err.text, "of device memory"));
}

/* --- the contract ----------------------------------------------------------------------------------------- */

#ifdef SPILLWAY_EMULATED /* each run takes seconds */
enum { STEPS = 2 };
#else
enum { STEPS = 4 };
#endif
enum { JOBS = 3, SIZES_MAX = 5, FP32 = PRECISION_FP32, BF16 = PRECISION_BF16 };

/* What trains, and on how small a device. */
static const struct subject {
    const char *config;
    uint64_t memory_bytes[SIZES_MAX]; /* up to the first 0 */
    uint64_t emulated_bytes[SIZES_MAX];
    uint32_t weights[JOBS], moments[JOBS]; /* enum precision */
} subjects[] = {
    {"{\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 64, \"n_head\": 4, "
     "\"n_positions\": 32, \"vocab_size\": 131}",
     {16000000, 4000000, 2000000, 1000000, 700000}, {2000000, 700000}, {0}, {0}},
    {"{\"model_type\": \"llama\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 14, "
     "\"intermediate_size\": 77, \"max_position_embeddings\": 32, \"vocab_size\": 131}",
     {1200000, 500000, 250000}, {500000}, {0}, {0}},
    {"{\"model_type\": \"bert\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 4, \"intermediate_size\": 101, "
     "\"max_position_embeddings\": 32, \"vocab_size\": 131}",
     {1200000, 500000, 250000}, {500000}, {0}, {0}},
    {"{\"model_type\": \"vit\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 3, \"head_dim\": 12, \"intermediate_size\": 133, "
     "\"image_size\": 16, \"patch_size\": 4, \"qkv_bias\": false, \"num_labels\": 10}",
     {1200000, 500000, 250000}, {500000}, {0}, {0}},
    {"{\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 33, \"n_head\": 3, "
     "\"n_positions\": 32, \"vocab_size\": 131}",
     {4000000, 1000000, 600000}, {1000000, 600000}, {BF16, BF16, FP32}, {FP32, BF16, BF16}},
};

struct outcome {
    double losses[JOBS][STEPS];
    uint64_t weights[JOBS];
};

/* False when no plan fits. */
static bool outcome_of(const struct subject *subject, const char *backend, uint64_t memory_bytes,
                       const char *policy, uint32_t activations, uint64_t delay_seed, bool tf32,
                       struct outcome *out)
{
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    const struct planner_options options = {.policy = policy, .activations = activations, .seed = 1};
    const struct run_options run = {.poison = true, .delay_seed = delay_seed, .tf32 = tf32};
    test_hardware(&hardware, 1, memory_bytes, 1e9);
    hardware.backend = backend;
    hardware.threads = strcmp(backend, "host") == 0;
    hardware.host_bytes.value = 1e9;
    test_network_jobs(&jobs, JOBS, subject->config, STEPS);
    jobs.jobs[1].microbatches = 2;
    for (uint32_t j = 0; j < JOBS; j++) {
        jobs.jobs[j].precision = subject->weights[j];
        jobs.jobs[j].optimizer.moments = subject->moments[j];
    }
    enum status status = planner_plan(&hardware, &jobs, &options, &plan, &err);
    if (status == STATUS_INFEASIBLE) return false;
    if (!status) status = run_plan(&plan, &run, &result, &trace, &err);
    if (status) fail_msg("%s", err.text);
    assert_memory_as_planned(&plan, &result);
    if (strcmp(backend, "cuda") == 0) {
        assert_int_equal(result.devices[0].taken.workspace_bytes, CUDA_WORKSPACE_BYTES);
#ifdef SPILLWAY_EMULATED /* which has nothing of its own on the device */
        assert_int_equal(result.devices[0].taken.driver_bytes, 0);
#endif
    }
    for (uint32_t j = 0; j < JOBS; j++) {
        assert_int_equal(result.jobs[j].minibatches, STEPS);
        memcpy(out->losses[j], result.jobs[j].losses, sizeof out->losses[j]);
        out->weights[j] = result.jobs[j].weights_fingerprint;
    }
    run_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
    return true;
}

/* Returns how many plans there were. */
static uint32_t check_contract(const struct subject *subject, bool tf32)
{
    struct outcome alone, host;
    uint32_t ran = 0;
#ifdef SPILLWAY_EMULATED
    const uint64_t *const sizes = subject->emulated_bytes;
#else
    const uint64_t *const sizes = subject->memory_bytes;
#endif
    assert_true(
        outcome_of(subject, "cuda", 1 << 26, "model-parallel", PLANNER_AUTO, 0, tf32, &alone));
    assert_true(
        outcome_of(subject, "host", 1 << 26, "model-parallel", PLANNER_AUTO, 0, false, &host));
    for (int j = 0; j < JOBS; j++) {
        /* a few steps do not carry rounding far, but in bf16 some numbers are rounded the other way */
        const double most = tf32 || subject->weights[j] == BF16 ? 2e-3 : 1e-4;
        for (int i = 0; i < STEPS; i++)
            if (!(fabs(alone.losses[j][i] - host.losses[j][i]) <= most))
                fail_msg("%s: job %d step %d: loss %.9g on the GPU, %.9g on the host",
                         subject->config, j, i, alone.losses[j][i], host.losses[j][i]);
    }
    for (size_t m = 0; m < SIZES_MAX && sizes[m] > 0; m++)
        for (uint32_t mode = 0; mode <= ACTIVATIONS_COUNT; mode++) {
            struct outcome outcome;
            const uint32_t activations = mode < ACTIVATIONS_COUNT ? mode : PLANNER_AUTO;
            if (!outcome_of(subject, "cuda", sizes[m], "sharded-lrtf", activations,
                            m * 10 + mode + 1, tf32, &outcome))
                continue;
            ran++;
            if (memcmp(&outcome, &alone, sizeof alone) != 0)
                fail_msg("%s: %llu bytes, activations %u, tf32 %d: other bits than alone (loss "
                         "%.17g, %.17g)",
                         subject->config, (unsigned long long)sizes[m], mode, tf32,
                         outcome.losses[0][1], alone.losses[0][1]);
        }
    return ran;
}

static void test_contract(void **state)
{
    (void)state;
    need_device();
#ifdef SPILLWAY_EMULATED /* its products are the same in both ways */
    enum { TF32_END = 1 };
#else
    enum { TF32_END = 2 };
#endif
    for (size_t i = 0; i < ARRAY_COUNT(subjects); i++)
        for (int tf32 = 0; tf32 < TF32_END; tf32++) {
            const uint32_t ran = check_contract(&subjects[i], tf32);
            print_message("%.22s...: %u plans, the same bits\n", subjects[i].config, ran);
            assert_true(ran >= 2);
        }
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
        cmocka_unit_test(test_contract),
    };
    const struct CMUnitTest kernels[] = {KERNEL_CASES(KERNEL_CASE_TEST)};
    int failed = cmocka_run_group_tests_name("CUDA", tests, NULL, NULL);
    uint32_t count;
    struct error err = {0};
    if (backend_find("cuda")->count(&count, &err) == STATUS_OK)
        failed += cmocka_run_group_tests_name("CUDA kernels", kernels, open_kernels, close_kernels);
    else
        print_message("skipped, all kernels: %s\n", err.text);
    return failed;
}

#endif
