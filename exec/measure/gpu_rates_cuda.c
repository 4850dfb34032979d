/*
 * Plain rates, for comparison with a datasheet: each is the best of a few batches.
 *
 * Copies are timed by the device's events. Kernels are timed by the clock around an awaited batch, which is long
 * enough.
 */
#define KERNELS_NUMBER float
#include "base/try.h"
#include "exec/measure/gpu_rates.h"

#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/json/json_out.h"
#include "base/process/clock.h"
#include "base/size.h"
#include "exec/cuda/gpu_attention.h"
#include "exec/device/backend.h"
#include "exec/device/host_memory.h"
#include "exec/kernels/kernels.h"

enum { BATCHES = 5, COPIES_MAX = 64 };
static const double BATCH_S = 20e-3;
static const uint64_t ARENA_BYTES = UINT64_C(4) << 30, HOST_BYTES = UINT64_C(512) << 20;

struct bench_gpu {
    struct device *device;
    char *host; /* HOST_BYTES, pinned */
    struct json_out *json;
};

static void await(struct device_stream *stream)
{
    while (!device_synchronize(stream, device_record(stream), 1))
        ;
}

/* --- copies ------------------------------------------------------------------------------------------ */

/* Returns bytes per second in one direction, or the sum of both at once. */
static double copy_rate(struct bench_gpu *bench, uint64_t bytes, bool in, bool out)
{
    struct device_stream *const streams[] = {device_stream(bench->device, STREAM_H2D),
                                             device_stream(bench->device, STREAM_D2H)};
    const bool wanted[] = {in, out};
    struct device_timing timings[2][COPIES_MAX];
    char *const arena = device_arena(bench->device);
    const uint64_t half = HOST_BYTES / 2;
    uint32_t count = (uint32_t)(BATCH_S * 40e9 / (double)bytes);
    count = count < 4 ? 4 : count > COPIES_MAX ? COPIES_MAX : count;
    double best = 0;
    for (int batch = 0; batch < BATCHES; batch++) {
        for (uint32_t i = 0; i < count; i++) {
            const uint64_t offset = half > bytes ? i * bytes % (half - bytes + 1) : 0;
            if (in) device_copy(streams[0], arena + offset, bench->host + offset, bytes,
                                &timings[0][i]);
            if (out) device_copy(streams[1], bench->host + half + offset, arena + half + offset,
                                 bytes, &timings[1][i]);
        }
        double start_s = INFINITY, end_s = 0;
        for (int d = 0; d < 2; d++) {
            if (!wanted[d]) continue;
            await(streams[d]);
            start_s = fmin(start_s, timings[d][0].start_s);
            end_s = fmax(end_s, timings[d][count - 1].end_s);
        }
        best = fmax(best, (double)bytes * count * (in + out) / (end_s - start_s));
    }
    return best;
}

static void put_copies(struct bench_gpu *bench)
{
    static const uint64_t mebibytes[] = {1, 16, 64, 256};
    struct json_out *const json = bench->json;
    json_out_array_begin(json, "copies", false);
    for (size_t i = 0; i < ARRAY_COUNT(mebibytes); i++) {
        const uint64_t bytes = mebibytes[i] << 20;
        json_out_object_begin(json, NULL, true);
        json_out_u64(json, "bytes", bytes);
        json_out_double(json, "h2d_bytes_per_s", copy_rate(bench, bytes, true, false));
        json_out_double(json, "d2h_bytes_per_s", copy_rate(bench, bytes, false, true));
        json_out_double(json, "both_bytes_per_s", copy_rate(bench, bytes, true, true));
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

/* --- kernels ----------------------------------------------------------------------------------------- */

struct kernel_call {
    void (*call)(const struct kernels *kernels, const struct kernel_call *call);
    float *arena;
    int64_t m, n, k;
    double seconds; /* out */
};

static void time_kernel(const struct kernels *kernels, void *argument)
{
    struct kernel_call *const call = argument;
    uint32_t count = 1;
    call->seconds = INFINITY;
    call->call(kernels, call);
    kernels_finish(kernels);
    for (int batch = 0; batch < BATCHES; batch++) {
        const double start_s = clock_s();
        for (uint32_t i = 0; i < count; i++) call->call(kernels, call);
        kernels_finish(kernels);
        const double each_s = (clock_s() - start_s) / count;
        call->seconds = fmin(call->seconds, each_s);
        count = (uint32_t)fmin(1000, fmax(1, BATCH_S / call->seconds));
    }
}

static double seconds_of(struct device *device, struct kernel_call call)
{
    struct device_stream *const stream = device_stream(device, STREAM_COMPUTE);
    call.arena = device_arena(device);
    device_compute(stream, time_kernel, &call, 0, NULL);
    await(stream);
    return call.seconds;
}

/* Returns an array; the distance allows three or four of floats. */
static float *array(const struct kernel_call *call, int64_t index)
{
    return call->arena + index * (int64_t)(ARENA_BYTES / sizeof(float) / 4);
}

static void call_sum(const struct kernels *k, const struct kernel_call *c)
{
    k->residual(k, array(c, 0), array(c, 1), array(c, 2), c->m);
}

static void call_adamw(const struct kernels *k, const struct kernel_call *c)
{
    static const struct job_optimizer adamw = {.kind = OPTIMIZER_ADAMW,
                                               .learning_rate = 1e-6,
                                               .beta1 = 0.9,
                                               .beta2 = 0.95,
                                               .epsilon = 1e-8};
    const struct kernel_parameters parameters = {
        .p = array(c, 0), .m = array(c, 1), .v = array(c, 2)};
    k->update(k, &parameters, array(c, 3), c->m, &adamw, true, 1);
}

static void call_sgd(const struct kernels *k, const struct kernel_call *c)
{
    static const struct job_optimizer sgd = {.kind = OPTIMIZER_SGD, .learning_rate = 1e-6};
    const struct kernel_parameters parameters = {.p = array(c, 0)};
    k->update(k, &parameters, array(c, 3), c->m, &sgd, true, 1);
}

static void call_forward(const struct kernels *k, const struct kernel_call *c)
{
    k->linear_forward(k, array(c, 0), array(c, 1), array(c, 2), array(c, 3), c->m, c->n, c->k, true);
}

static void call_input(const struct kernels *k, const struct kernel_call *c)
{
    k->linear_input(k, array(c, 1), array(c, 0), array(c, 2), c->m, c->n, c->k, true, false);
}

static void call_weight(const struct kernels *k, const struct kernel_call *c)
{
    k->linear_weight(k, array(c, 2), NULL, array(c, 0), array(c, 1), c->m, c->n, c->k, true, 0);
}

static const bf16 *halves(const struct kernel_call *c, int64_t index)
{
    return (const bf16 *)(const void *)array(c, index);
}

static void call_forward_bf16(const struct kernels *k, const struct kernel_call *c)
{
    k->linear_forward_bf16(k, array(c, 0), halves(c, 1), halves(c, 2), array(c, 3), c->m, c->n, c->k,
                           true);
}

static void call_input_bf16(const struct kernels *k, const struct kernel_call *c)
{
    k->linear_input_bf16(k, array(c, 1), halves(c, 0), halves(c, 2), c->m, c->n, c->k, true, false);
}

static void call_weight_bf16(const struct kernels *k, const struct kernel_call *c)
{
    k->linear_weight_bf16(k, array(c, 2), NULL, NULL, halves(c, 0), halves(c, 1), c->m, c->n, c->k,
                          true, false);
}

static void call_round(const struct kernels *k, const struct kernel_call *c)
{
    k->round(k, (bf16 *)(void *)array(c, 0), array(c, 1), c->m);
}

struct product_calls {
    void (*forward)(const struct kernels *kernels, const struct kernel_call *call);
    void (*input)(const struct kernels *kernels, const struct kernel_call *call);
    void (*weight)(const struct kernels *kernels, const struct kernel_call *call);
};
static const struct product_calls products_fp32 = {call_forward, call_input, call_weight};
static const struct product_calls products_bf16 = {call_forward_bf16, call_input_bf16,
                                                   call_weight_bf16};

/* m = B, n = T, k = C, heads 64 wide */
static struct kernel_attention attention_of(const struct kernel_call *c)
{
    const float *const qkv = array(c, 2);
    return (struct kernel_attention){.out = array(c, 0),
                                     .stats = array(c, 1),
                                     .q = qkv,
                                     .k = qkv + c->k,
                                     .v = qkv + 2 * c->k,
                                     .b = c->m,
                                     .t = c->n,
                                     .h = c->k / 64,
                                     .kv = c->k / 64,
                                     .d = 64,
                                     .row_q = 3 * c->k,
                                     .row_kv = 3 * c->k,
                                     .causal = true};
}

static void call_attention_forward(const struct kernels *k, const struct kernel_call *c)
{
    const struct kernel_attention attention = attention_of(c);
    k->attention_forward(k, &attention);
}

static void call_attention_backward(const struct kernels *k, const struct kernel_call *c)
{
    struct kernel_attention attention = attention_of(c);
    attention.dout = array(c, 0);
    attention.dq = array(c, 3);
    attention.dk = attention.dq + c->k;
    attention.dv = attention.dq + 2 * c->k;
    k->attention_backward(k, &attention);
}

static void put_memory(struct bench_gpu *bench)
{
    const int64_t n = 200 << 20;
    struct json_out *const json = bench->json;
    const double sum_s = seconds_of(bench->device, (struct kernel_call){.call = call_sum, .m = n});
    const double adamw_s =
        seconds_of(bench->device, (struct kernel_call){.call = call_adamw, .m = n});
    const double round_s =
        seconds_of(bench->device, (struct kernel_call){.call = call_round, .m = n});
    const double sgd_s = seconds_of(bench->device, (struct kernel_call){.call = call_sgd, .m = n});
    json_out_object_begin(json, "memory", false);
    json_out_double(json, "sum_of_two_bytes_per_s", 12.0 * (double)n / sum_s);
    json_out_double(json, "adamw_bytes_per_s", 28.0 * (double)n / adamw_s);
    json_out_double(json, "adamw_parameters_per_s", (double)n / adamw_s);
    json_out_double(json, "sgd_bytes_per_s", 12.0 * (double)n / sgd_s);
    json_out_double(json, "round_bytes_per_s", 6.0 * (double)n / round_s);
    json_out_object_end(json);
}

/* Measures GPT-2's products, small to XL, and square ones. */
static void put_products(struct bench_gpu *bench, const char *key, const struct product_calls *calls)
{
    static const int64_t shapes[][3] = {{1024, 2304, 768},  {8192, 2304, 768},  {8192, 3072, 768},
                                        {8192, 768, 3072},  {8192, 4800, 1600}, {8192, 6400, 1600},
                                        {8192, 1600, 6400}, {4096, 4096, 4096}, {8192, 8192, 8192}};
    struct json_out *const json = bench->json;
    json_out_array_begin(json, key, false);
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) {
        struct kernel_call call = {.m = shapes[i][0], .n = shapes[i][1], .k = shapes[i][2]};
        const double flops = 2.0 * (double)call.m * (double)call.n * (double)call.k;
        json_out_object_begin(json, NULL, true);
        json_out_u64(json, "m", (uint64_t)(call.m));
        json_out_u64(json, "n", (uint64_t)(call.n));
        json_out_u64(json, "k", (uint64_t)(call.k));
        call.call = calls->forward;
        json_out_double(json, "forward_flops_per_s", flops / seconds_of(bench->device, call));
        call.call = calls->input;
        json_out_double(json, "input_flops_per_s", flops / seconds_of(bench->device, call));
        call.call = calls->weight;
        json_out_double(json, "weight_flops_per_s", flops / seconds_of(bench->device, call));
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

/* Counts FLOPs as models/kernel/work.c does. */
static void put_attention(struct bench_gpu *bench)
{
    static const int64_t shapes[][3] = {{8, 1024, 768}, {8, 1024, 1600}, {4, 2048, 1600}};
    struct json_out *const json = bench->json;
    json_out_array_begin(json, "attention", false);
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) {
        struct kernel_call call = {.m = shapes[i][0], .n = shapes[i][1], .k = shapes[i][2]};
        const double square = (double)call.m * (double)call.n * (double)call.n * (double)call.k;
        json_out_object_begin(json, NULL, true);
        json_out_u64(json, "samples", (uint64_t)(call.m));
        json_out_u64(json, "tokens", (uint64_t)(call.n));
        json_out_u64(json, "width", (uint64_t)(call.k));
        call.call = call_attention_forward;
        json_out_double(json, "forward_flops_per_s", 2 * square / seconds_of(bench->device, call));
        call.call = call_attention_backward;
        json_out_double(json, "backward_flops_per_s", 5 * square / seconds_of(bench->device, call));
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

/* A small shape for the host, GPT-2 124M, Llama 3 8B short and long, BERT base. */
static const struct gpu_attention_shape attention_shapes[] = {
    {1, 1001, 8, 2, 64, true, true},    {8, 1024, 12, 12, 64, true, false},
    {2, 2048, 32, 8, 128, true, false}, {1, 4096, 32, 8, 128, true, false},
    {8, 512, 12, 12, 64, false, false}};

/* --- the device ---------------------------------------------------------------------------------------- */

static int attribute(enum cudaDeviceAttr which)
{
    int value = 0;
    return cudaDeviceGetAttribute(&value, which, 0) == cudaSuccess ? value : 0;
}

static enum status put_device(struct json_out *json, struct error *err)
{
    struct cudaDeviceProp properties;
    int driver = 0, runtime = 0;
    size_t available = 0, total = 0;
    cudaError_t failed = cudaGetDeviceProperties(&properties, 0);
    if (failed == cudaSuccess) failed = cudaSetDevice(0);
    if (failed == cudaSuccess) failed = cudaMemGetInfo(&available, &total);
    if (failed == cudaSuccess) failed = cudaDriverGetVersion(&driver);
    if (failed == cudaSuccess) failed = cudaRuntimeGetVersion(&runtime);
    if (failed != cudaSuccess)
        return error_set(err, STATUS_DEVICE, "cannot ask about the GPU: %s",
                         cudaGetErrorString(failed));
    json_out_object_begin(json, "device", false);
    json_out_string(json, "name", properties.name);
    json_out_u64(json, "compute_capability", (uint64_t)(properties.major * 10 + properties.minor));
    json_out_u64(json, "multiprocessors", (uint64_t)(properties.multiProcessorCount));
    json_out_u64(json, "memory_bytes", total);
    json_out_u64(json, "free_bytes", available);
    json_out_double(json, "clock_max_hz", 1e3 * attribute(cudaDevAttrClockRate));
    json_out_double(json, "memory_clock_max_hz", 1e3 * attribute(cudaDevAttrMemoryClockRate));
    json_out_u64(json, "memory_bus_bits", (uint64_t)(attribute(cudaDevAttrGlobalMemoryBusWidth)));
    json_out_u64(json, "copy_engines", (uint64_t)(attribute(cudaDevAttrAsyncEngineCount)));
    json_out_u64(json, "driver", (uint64_t)(driver));
    json_out_u64(json, "runtime", (uint64_t)(runtime));
    json_out_object_end(json);
    return STATUS_OK;
}

static enum status open_gpu(struct bench_gpu *bench, bool tf32, struct error *err)
{
    const struct device_options options = {.arena_bytes = ARENA_BYTES, .tf32 = tf32};
    return device_open_cuda(&options, &bench->device, err);
}

enum status gpu_rates_write(struct json_out *json, struct error *err)
{
    struct bench_gpu bench = {.json = json};
    uint32_t count;
    char why[160];
    void *host = NULL;
    TRY(backend_cuda.count(&count, err));
    json_out_object_begin(json, NULL, false);
    json_out_u64(json, "spillway_gpu_rates", 1);
    json_out_string(json, "version", SPILLWAY_VERSION);
    enum status status = put_device(json, err);
    if (status == STATUS_OK) status = host_memory_map("the copies' host memory", HOST_BYTES, &host, err);
    if (status == STATUS_OK) status = open_gpu(&bench, false, err);
    bench.host = host;
    bool pinned = false;
    if (status == STATUS_OK) {
        pinned = backend_cuda.pin(host, HOST_BYTES, why, sizeof why);
        json_out_string(json, "libraries", backend_cuda.text());
        if (pinned) put_copies(&bench);
        put_memory(&bench);
        put_products(&bench, "products_fp32", &products_fp32);
        put_products(&bench, "products_bf16", &products_bf16);
        put_attention(&bench);
        status = device_failed(bench.device, err);
    }
    device_close(bench.device);
    bench.device = NULL;
    if (status == STATUS_OK)
        status = gpu_attention_write(json, "attention_bf16", attention_shapes,
                                     ARRAY_COUNT(attention_shapes), err);
    if (status == STATUS_OK) status = open_gpu(&bench, true, err);
    if (status == STATUS_OK) {
        put_products(&bench, "products_tf32", &products_fp32);
        status = device_failed(bench.device, err);
    }
    device_close(bench.device);
    if (pinned) backend_cuda.unpin(host);
    host_memory_unmap(host, HOST_BYTES);
    json_out_object_end(json);
    return status;
}
