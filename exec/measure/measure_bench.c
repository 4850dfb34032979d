/*
 * Calls on the same operands measure the cache. In training, an operand is in one of four states, each with a region
 * of memory here:
 *
 *     hot       written by the previous kernel: one place, used again at once
 *     kept      activations of some layers ago: places for a few layers
 *     weights   last read by the previous pass, a model ago
 *     state     parameters and moments of an update, likewise
 *
 * measure_calls.c chooses among them for each call.
 */
#include "exec/measure/measure_bench.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/try.h"
#include "exec/device/host_memory.h"

static const uint64_t MIB = 1 << 20;
static const uint64_t mebibytes[MEASURE_BENCH_SIZES][MEASURE_REGION_COUNT] = {
    [MEASURE_BENCH_WHOLE] = {[MEASURE_HOT] = MEASURE_HOT_SLOTS * 52,
                     [MEASURE_KEPT] = 128, [MEASURE_WEIGHTS] = 192, [MEASURE_STATE] = 192,
                     [MEASURE_COPIES] = 192},
    [MEASURE_BENCH_SMALL] = {[MEASURE_HOT] = MEASURE_HOT_SLOTS * 8,
                     [MEASURE_KEPT] = 32, [MEASURE_WEIGHTS] = 48, [MEASURE_STATE] = 96,
                     [MEASURE_COPIES] = 64},
    [MEASURE_BENCH_GPU] = {[MEASURE_HOT] = MEASURE_HOT_SLOTS * 512,
                   [MEASURE_KEPT] = 2048, [MEASURE_WEIGHTS] = 2048, [MEASURE_STATE] = 2048,
                   [MEASURE_COPIES] = 1024},
};
enum { EXTRA_BYTES = 2 * MEASURE_TOKENS * sizeof(int32_t) + MEMORY_ALIGNMENT }; /* a loss too */

uint64_t measure_bench_bytes(enum measure_bench_size size)
{
    uint64_t bytes = EXTRA_BYTES;
    for (uint32_t r = 0; r < MEASURE_REGION_COUNT; r++) bytes += mebibytes[size][r] * MIB;
    return bytes;
}

/* Fills the memory with values that stay small, neither denormal nor infinite, in every role; then with tokens. */
static enum status fill(struct measure_bench *bench, struct error *err)
{
    enum { BLOCK_FLOATS = 4 << 20 };
    struct device_stream *const stream = device_stream(bench->device, STREAM_H2D);
    uint64_t left = 0;
    for (uint32_t r = 0; r < MEASURE_REGION_COUNT; r++) left += bench->floats[r];
    float *const block = alloc_zeroed(BLOCK_FLOATS, sizeof *block);
    int32_t *const tokens = alloc_zeroed(2 * MEASURE_TOKENS, sizeof *tokens);
    if (!block || !tokens) {
        free(block);
        free(tokens);
        return error_memory(err, "a bench", BLOCK_FLOATS * sizeof *block);
    }
    for (uint32_t i = 0; i < BLOCK_FLOATS; i++)
        block[i] = (float)(i * 2654435761u >> 20) * 1e-5f + 1e-4f;
    for (uint64_t i = 0; i < MEASURE_TOKENS; i++) {
        tokens[i] = (int32_t)random_below(1, i, MEASURE_FEW_WORDS);
        tokens[MEASURE_TOKENS + i] = (int32_t)random_below(2, i, MEASURE_MANY_WORDS);
    }
    float *at = device_arena(bench->device);
    while (left > 0) {
        const uint64_t count = left < BLOCK_FLOATS ? left : BLOCK_FLOATS;
        device_copy(stream, at, block, count * sizeof *at, NULL);
        at += count;
        left -= count;
    }
    device_copy(stream, at, tokens, 2 * MEASURE_TOKENS * sizeof *tokens, NULL);
    while (!device_synchronize(stream, device_record(stream), 1))
        ;
    free(block);
    free(tokens);
    return device_failed(bench->device, err);
}

static enum status place_operands(struct measure_bench *bench, struct error *err)
{
    float *at = device_arena(bench->device);
    for (uint32_t r = 0; r < MEASURE_REGION_COUNT; r++) {
        bench->regions[r] = at;
        bench->floats[r] = mebibytes[bench->size][r] * MIB / sizeof(float);
        at += bench->floats[r];
    }
    bench->few = (const int32_t *)(const void *)at;
    bench->many = bench->few + MEASURE_TOKENS;
    bench->loss = (double *)(void *)(at + 2 * MEASURE_TOKENS);
    return fill(bench, err);
}

static void share_operands(struct measure_bench *bench, const struct measure_bench *from)
{
    memcpy(bench->regions, from->regions, sizeof bench->regions);
    memcpy(bench->floats, from->floats, sizeof bench->floats);
    bench->few = from->few;
    bench->many = from->many;
    bench->loss = from->loss;
}

enum status measure_bench_open(const struct measure_bench_options *options, struct measure_bench **out,
                               struct error *err)
{
    struct measure_bench *bench = alloc_zeroed(1, sizeof *bench);
    if (!bench) return error_memory(err, "a bench", sizeof *bench);
    bench->backend = options->backend;
    bench->size = options->size;
    bench->threads = options->threads;
    const uint64_t bytes = options->operands ? MEMORY_ALIGNMENT : measure_bench_bytes(options->size);
    const struct device_options device = {.index = options->index,
                                          .arena_bytes = bytes,
                                          .threads = options->threads,
                                          .tf32 = options->tf32};
    enum status status = STATUS_OK;
    assert(!options->operands || (options->backend->arena_on_host && options->operands->size == options->size));
    if (options->backend->arena_on_host && bytes > host_memory_available())
        status = error_memory(err, "the operands of the measurement", bytes);
    if (status == STATUS_OK) status = options->backend->open(&device, &bench->device, err);
    if (status == STATUS_OK && options->operands) share_operands(bench, options->operands);
    else if (status == STATUS_OK) status = place_operands(bench, err);
    if (status != STATUS_OK) {
        measure_bench_close(bench);
        return status;
    }
    *out = bench;
    return STATUS_OK;
}

void measure_bench_close(struct measure_bench *bench)
{
    if (!bench) return;
    device_close(bench->device);
    free(bench);
}

struct device *measure_bench_device(struct measure_bench *bench)
{
    return bench->device;
}

uint32_t measure_bench_threads(const struct measure_bench *bench)
{
    return bench->threads;
}

const struct backend *measure_bench_backend(const struct measure_bench *bench)
{
    return bench->backend;
}

enum status measure_bench_map_host(const struct measure_bench *bench, uint64_t bytes, char **out,
                                   struct error *err)
{
    void *host = NULL;
    char why[160];
    TRY(host_memory_map("the copies' host memory", bytes, &host, err));
    if (bench->backend->pin && !bench->backend->pin(host, bytes, why, sizeof why)) {
        host_memory_unmap(host, bytes);
        return error_set(err, STATUS_DEVICE, "host memory cannot be pinned: %s", why);
    }
    *out = host;
    return STATUS_OK;
}

void measure_bench_unmap_host(const struct measure_bench *bench, char *host, uint64_t bytes)
{
    if (!host) return;
    if (bench->backend->unpin) bench->backend->unpin(host);
    host_memory_unmap(host, bytes);
}

char *measure_bench_copies(struct measure_bench *bench, uint64_t *bytes)
{
    *bytes = bench->floats[MEASURE_COPIES] * sizeof(float);
    return (char *)bench->regions[MEASURE_COPIES];
}
