/*
 * Attention in bf16 by cuDNN, by our own kernels and by the host's, on the same operands.
 *
 * An operand has the same offset on device and host. Times are the best of a few calls, each awaited.
 */
#include "exec/cuda/gpu_attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "base/alloc.h"
#include "base/json/json_out.h"
#include "base/process/clock.h"
#include "base/random.h"
#include "base/size.h"
#include "base/try.h"
#include "exec/cuda/kernels_cuda.h"
#include "models/job/memory.h"
#include "models/kernel/work.h"

enum { REPEATS = 8 };
enum array { Q, K, V, DOUT, OUT, STATS, DQ, DK, DV, SCRATCH, ARRAYS };

struct gpu_attention_bench {
    const struct gpu_attention_shape *shape;
    uint64_t numbers[ARRAYS], first[ARRAYS], total;
    float *host, *expected, *device; /* of `total` numbers; expected: by the host */
    double host_s[2];
};

/* Alignment of arrays, a multiple of the alignment of workspace entries. */
enum { ALIGNMENT = 64 };

static void lay_out(struct gpu_attention_bench *bench, const struct gpu_attention_shape *s)
{
    const struct attention_sizes sizes = {(uint64_t)s->b, (uint64_t)s->t, (uint64_t)s->h,
                                          (uint64_t)s->kv, (uint64_t)s->d};
    const uint64_t queries = sizes.samples * sizes.tokens * sizes.heads * sizes.head_width;
    const uint64_t keys = queries / sizes.heads * sizes.kv_heads;
    for (int i = 0; i < ARRAYS; i++)
        bench->numbers[i] = i == K || i == V || i == DK || i == DV ? keys : queries;
    bench->numbers[STATS] = sizes.samples * sizes.tokens * sizes.heads;
    bench->numbers[SCRATCH] =
        memory_attention_copies(sizes, true) + memory_attention_workspace(sizes, true);
    bench->shape = s;
    bench->total = 0;
    for (int i = 0; i < ARRAYS; i++) {
        bench->first[i] = bench->total;
        bench->total += size_align(bench->numbers[i], ALIGNMENT);
    }
}

static struct kernel_attention attention_at(const struct gpu_attention_bench *bench, float *memory, bool back)
{
    const struct gpu_attention_shape *const s = bench->shape;
    const uint64_t *const first = bench->first;
    return (struct kernel_attention){.out = memory + first[OUT],
                                     .stats = memory + first[STATS],
                                     .q = memory + first[Q],
                                     .k = memory + first[K],
                                     .v = memory + first[V],
                                     .dout = back ? memory + first[DOUT] : NULL,
                                     .dq = back ? memory + first[DQ] : NULL,
                                     .dk = back ? memory + first[DK] : NULL,
                                     .dv = back ? memory + first[DV] : NULL,
                                     .scratch = memory + first[SCRATCH],
                                     .b = s->b,
                                     .t = s->t,
                                     .h = s->h,
                                     .kv = s->kv,
                              .d = s->d,
                              .row_q = s->h * s->d,
                              .row_kv = s->kv * s->d,
                              .causal = s->causal,
                              .rounded = true};
}

/* Draws numbers in [-1, 1). */
static void fill(struct gpu_attention_bench *bench)
{
    for (int array = Q; array <= DOUT; array++)
        for (uint64_t i = 0; i < bench->numbers[array]; i++)
            bench->host[bench->first[array] + i] =
                (float)(random_u64((uint64_t)array + 1, i) >> 40) / 8388608.0f - 1.0f;
}

/* --- calling -------------------------------------------------------------------------------------- */

static double time_one(const struct kernels *kernels, const struct kernel_attention *attention, int repeats)
{
    double best_s = INFINITY;
    for (int i = 0; i < repeats; i++) {
        const double start_s = clock_s();
        if (attention->dout)
            kernels->attention_backward(kernels, attention);
        else
            kernels->attention_forward(kernels, attention);
        kernels_finish(kernels);
        best_s = fmin(best_s, clock_s() - start_s);
    }
    return best_s;
}

static enum status run_host(struct gpu_attention_bench *bench, struct error *err)
{
    struct kernels *kernels = NULL;
    TRY(kernels_host_create((uint32_t)omp_get_num_procs(), &kernels, err));
    kernels_host_attach(kernels);
    memcpy(bench->expected, bench->host, bench->total * sizeof *bench->host);
    for (int back = 0; back < 2; back++) {
        const struct kernel_attention attention = attention_at(bench, bench->expected, back);
        bench->host_s[back] = time_one(kernels, &attention, 1);
    }
    kernels_host_destroy(kernels);
    return STATUS_OK;
}

static enum status copied(cudaError_t failed, struct error *err)
{
    if (failed == cudaSuccess) return STATUS_OK;
    return error_set(err, STATUS_DEVICE, "cannot copy operands of attention: %s",
                     cudaGetErrorString(failed));
}

/* Runs both directions: seconds[0] forward, [1] backward. */
static enum status run_device(struct gpu_attention_bench *bench, const struct kernels *kernels,
                              double seconds[2], struct error *err)
{
    const size_t bytes = bench->total * sizeof(float);
    enum status status =
        copied(cudaMemcpy(bench->device, bench->host, bytes, cudaMemcpyHostToDevice), err);
    for (int back = 0; back < 2 && status == STATUS_OK; back++) {
        const struct kernel_attention attention = attention_at(bench, bench->device, back);
        seconds[back] = time_one(kernels, &attention, REPEATS);
        const char *const failed = kernels_cuda_failure(kernels);
        if (failed) status = error_set(err, STATUS_DEVICE, "%s", failed);
    }
    if (status == STATUS_OK)
        status = copied(cudaMemcpy(bench->host, bench->device, bytes, cudaMemcpyDeviceToHost), err);
    return status;
}

/* --- writing -------------------------------------------------------------------------------------- */

static double flops_of(const struct gpu_attention_shape *s, bool back)
{
    const struct work_item item = {
        .kernel = s->causal ? (back ? KERNEL_ATTENTION_BACKWARD : KERNEL_ATTENTION_FORWARD)
                            : (back ? KERNEL_ATTENTION_FULL_BACKWARD : KERNEL_ATTENTION_FULL_FORWARD),
        .count = 1,
        .m = (uint64_t)(s->b * s->h),
        .n = (uint64_t)s->t,
        .k = (uint64_t)s->d};
    return work_item_flops(&item);
}

static void put_rates(struct json_out *json, const struct gpu_attention_bench *bench, const double seconds[2])
{
    json_out_double(json, "forward_flops_per_s", flops_of(bench->shape, false) / seconds[0]);
    json_out_double(json, "backward_flops_per_s", flops_of(bench->shape, true) / seconds[1]);
}

/* Writes the difference; leaves out NaN and infinity, which the test treats as a failure. */
static void put_difference(struct json_out *json, const struct gpu_attention_bench *bench, enum array array,
                           const char *name)
{
    double largest = 0, apart = 0;
    for (uint64_t i = 0; i < bench->numbers[array]; i++) {
        const double expected = (double)bench->expected[bench->first[array] + i];
        largest = fmax(largest, fabs(expected));
        const double off = fabs((double)bench->host[bench->first[array] + i] - expected);
        if (!(off <= apart)) apart = off;
    }
    if (isfinite(apart / largest)) json_out_double(json, name, apart / largest);
}

static enum status put_way(struct json_out *json, struct gpu_attention_bench *bench, const char *key,
                           const struct kernels *kernels, struct error *err)
{
    char by[400];
    double seconds[2];
    const struct kernel_attention attention = attention_at(bench, bench->device, true);
    kernels->prepare_attention(kernels, &attention, by, sizeof by);
    TRY(run_device(bench, kernels, seconds, err));
    json_out_object_begin(json, key, false);
    json_out_string(json, "by", by);
    put_rates(json, bench, seconds);
    if (bench->shape->beside_host) {
        put_difference(json, bench, OUT, "out_from_host");
        put_difference(json, bench, DQ, "dq_from_host");
        put_difference(json, bench, DK, "dk_from_host");
        put_difference(json, bench, DV, "dv_from_host");
    }
    json_out_object_end(json);
    return STATUS_OK;
}

static enum status put_shape(struct json_out *json, struct gpu_attention_bench *bench,
                             const struct kernels *usual, const struct kernels *own,
                             struct error *err)
{
    const struct gpu_attention_shape *const s = bench->shape;
    TRY(s->beside_host ? run_host(bench, err) : STATUS_OK);
    json_out_object_begin(json, NULL, false);
    json_out_u64(json, "samples", (uint64_t)s->b);
    json_out_u64(json, "tokens", (uint64_t)s->t);
    json_out_u64(json, "heads", (uint64_t)s->h);
    json_out_u64(json, "kv_heads", (uint64_t)s->kv);
    json_out_u64(json, "head_width", (uint64_t)s->d);
    json_out_bool(json, "causal", s->causal);
    enum status status = put_way(json, bench, "usual", usual, err);
    if (status == STATUS_OK) status = put_way(json, bench, "own", own, err);
    if (status == STATUS_OK && s->beside_host) {
        json_out_object_begin(json, "host", false);
        put_rates(json, bench, bench->host_s);
        json_out_object_end(json);
    }
    json_out_object_end(json);
    return status;
}

static enum status measure_shape(struct json_out *json, const struct gpu_attention_shape *shape,
                                 const struct kernels *usual, const struct kernels *own,
                                 struct error *err)
{
    struct gpu_attention_bench bench = {0};
    lay_out(&bench, shape);
    bench.host = alloc_zeroed(bench.total, sizeof *bench.host);
    bench.expected = alloc_zeroed(bench.total, sizeof *bench.expected);
    void *device = NULL;
    enum status status = STATUS_OK;
    if (!bench.host || !bench.expected ||
        cudaMalloc(&device, bench.total * sizeof *bench.device) != cudaSuccess)
        status = error_memory(err, "operands of attention", bench.total * sizeof *bench.host);
    if (status == STATUS_OK) {
        bench.device = device;
        fill(&bench);
        status = put_shape(json, &bench, usual, own, err);
    }
    cudaFree(device);
    free(bench.host);
    free(bench.expected);
    return status;
}

enum status gpu_attention_write(struct json_out *json, const char *key,
                                const struct gpu_attention_shape *shapes, uint32_t count,
                                struct error *err)
{
    cudaStream_t stream = NULL;
    struct kernels *usual = NULL, *own = NULL;
    const cudaError_t failed = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (failed != cudaSuccess)
        return error_set(err, STATUS_DEVICE, "cannot make a stream: %s", cudaGetErrorString(failed));
    enum status status = kernels_cuda_create(stream, false, &usual, err);
    if (status == STATUS_OK) status = kernels_cuda_create(stream, false, &own, err);
    if (status == STATUS_OK) kernels_cuda_leave_out_cudnn(own);
    json_out_array_begin(json, key, false);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++)
        status = measure_shape(json, &shapes[i], usual, own, err);
    json_out_array_end(json);
    kernels_cuda_destroy(usual);
    kernels_cuda_destroy(own);
    cudaStreamDestroy(stream);
    return status;
}
