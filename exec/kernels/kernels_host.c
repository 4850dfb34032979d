/*
 * A matrix library can be slow without saying so, when it does not know the processor. The first creation for a number
 * of threads therefore checks small products against sums in double, times a product of 512 x 512 x 512, and a loop of
 * our own that only multiplies and adds in registers; kernels_host_text() calls a product below a quarter of the loop's
 * rate (scaled by threads) slow. This takes 8 ms, and 30 ms more the first time.
 *
 * Threads. OpenMP's team belongs to the thread that opens a parallel region, so streams do not share a pool.
 * kernels_host_attach() sets its size, which the library asks for.
 *
 * Subnormal numbers. Tokens that never occur get ever smaller probabilities, and the squares of their gradients sink
 * below 2^-126, where many processors take a hundred times longer for a product. All threads of a team therefore
 * treat such numbers as zero, so that bits do not depend on the thread that computes.
 */
#include "exec/kernels/kernels_host.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <omp.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif
#include <oneapi/dnnl/dnnl.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "exec/kernels/kernels_bf16_library.h"
#include "exec/kernels/kernels_convolution_library.h"

enum { PROBE_SIZE = 512, PROBE_REPEATS = 5 };

/* The examination of the library by the last number of threads. */
static struct {
    pthread_mutex_t lock;
    uint32_t threads; /* 0: not examined */
    char text[HOST_TEXT_BYTES];
} examined = {.lock = PTHREAD_MUTEX_INITIALIZER, .text = "no kernels were made"};

/* --- self-test -------------------------------------------------------------------------------- */

/* Compares one product with sums in double: odd sizes, all four forms in turn. */
static bool product_is_right(bool transpose_a, bool transpose_b)
{
    enum { M = 37, N = 29, K = 53 };
    float a[M * K], b[K * N], c[M * N];
    for (int i = 0; i < M * K; i++) a[i] = (float)(i * 7 % 23 - 11) * 0.125f;
    for (int i = 0; i < K * N; i++) b[i] = (float)(i * 5 % 19 - 9) * 0.25f;
    host_multiply(&(struct host_product){.transpose_a = transpose_a,
                                         .transpose_b = transpose_b,
                                         .m = M,
                                         .n = N,
                                         .k = K,
                                         .alpha = 1.0f,
                                         .a = a,
                                         .row_a = transpose_a ? M : K,
                                         .b = b,
                                         .row_b = transpose_b ? K : N,
                                         .c = c,
                                         .row_c = N});
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < K; k++)
                sum += (double)(transpose_a ? a[k * M + i] : a[i * K + k]) *
                       (double)(transpose_b ? b[j * K + k] : b[k * N + j]);
            if (!(fabs(sum - (double)c[i * N + j]) <= 1e-4)) return false;
        }
    return true;
}

/* --- rates ------------------------------------------------------------------------------------ */

/* Returns the FLOP/s of a product of the probe's size on the current team; 0 when there is no memory. */
static double product_rate(void)
{
    size_t elements = (size_t)PROBE_SIZE * PROBE_SIZE;
    float *memory = alloc_zeroed(3 * elements, sizeof *memory);
    if (!memory) return 0;
    for (size_t i = 0; i < 2 * elements; i++) memory[i] = 0.5f;
    struct host_product product = {.m = PROBE_SIZE,
                                   .n = PROBE_SIZE,
                                   .k = PROBE_SIZE,
                                   .alpha = 1.0f,
                                   .a = memory,
                                   .row_a = PROBE_SIZE,
                                   .b = memory + elements,
                                   .row_b = PROBE_SIZE,
                                   .c = memory + 2 * elements,
                                   .row_c = PROBE_SIZE};
    double best_s = INFINITY;
    for (int i = 0; i < PROBE_REPEATS; i++) {
        double start_s = clock_s();
        host_multiply(&product);
        best_s = fmin(best_s, clock_s() - start_s);
    }
    free(memory);
    return 2.0 * PROBE_SIZE * PROBE_SIZE * PROBE_SIZE / best_s;
}

enum { PEAK_LANES = 128, PEAK_ROUNDS = KERNELS_PEAK_FLOPS / (2 * PEAK_LANES) };

CLONES float kernels_peak_loop(float factor)
{
    float lanes[PEAK_LANES];
    for (int l = 0; l < PEAK_LANES; l++) lanes[l] = (float)l;
    for (int round = 0; round < PEAK_ROUNDS; round++)
        for (int l = 0; l < PEAK_LANES; l++) lanes[l] = lanes[l] * factor + 1.0f;
    float sum = 0;
    for (int l = 0; l < PEAK_LANES; l++) sum += lanes[l];
    return sum;
}

/* Returns the FLOP/s of the loop on one thread. */
static double peak_rate(void)
{
    double best_s = INFINITY;
    for (int i = 0; i < PROBE_REPEATS; i++) {
        volatile float factor = 0.5f;
        double start_s = clock_s();
        volatile float sink = kernels_peak_loop(factor);
        (void)sink;
        best_s = fmin(best_s, clock_s() - start_s);
    }
    return KERNELS_PEAK_FLOPS / best_s;
}

static const char *isa_name(void)
{
    switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41: return "sse4.1";
    case dnnl_cpu_isa_avx: return "avx";
    case dnnl_cpu_isa_avx2: return "avx2";
    case dnnl_cpu_isa_avx2_vnni: return "avx2_vnni";
    case dnnl_cpu_isa_avx512_mic: return "avx512_mic";
    case dnnl_cpu_isa_avx512_mic_4ops: return "avx512_mic_4ops";
    case dnnl_cpu_isa_avx512_core: return "avx512_core";
    case dnnl_cpu_isa_avx512_core_vnni: return "avx512_core_vnni";
    case dnnl_cpu_isa_avx512_core_bf16: return "avx512_core_bf16";
    case dnnl_cpu_isa_avx512_core_amx: return "avx512_core_amx";
    case dnnl_cpu_isa_all: return "unknown instruction set";
    }
    return "another instruction set";
}

/* Writes the library's name and rate; under the lock. */
static void describe(uint32_t threads)
{
    const dnnl_version_t *version = dnnl_version();
    double product = product_rate(), peak = peak_rate() * threads;
    char *const line = examined.text;
    int length = snprintf(line, HOST_TEXT_BYTES,
                          "oneDNN %d.%d.%d (%s), %u thread%s, %.0f GFLOP/s in a product of %d^3",
                          version->major, version->minor, version->patch, isa_name(), threads,
                          threads == 1 ? "" : "s", product / 1e9, (int)PROBE_SIZE);
    if (product < peak / 4 && length > 0 && length < HOST_TEXT_BYTES)
        snprintf(line + length, (size_t)(HOST_TEXT_BYTES - length),
                 ": SLOW, a loop in registers reaches %.0f (is the machine busy, or its processor "
                 "unknown to the library?)",
                 peak / 1e9);
}

/* Examines the library with a team of this size, unless the last one was of this size. False: wrong products. */
static bool examine(uint32_t threads)
{
    pthread_mutex_lock(&examined.lock);
    bool right = true;
    if (examined.threads != threads) {
        const int team_before = omp_get_max_threads();
        omp_set_num_threads((int)threads);
        for (int form = 0; form < 4; form++) right = right && product_is_right(form & 1, form & 2);
        if (right) describe(threads);
        kernels_host_detach();
        omp_set_num_threads(team_before);
        examined.threads = right ? threads : 0;
    }
    pthread_mutex_unlock(&examined.lock);
    return right;
}

/* --- public ----------------------------------------------------------------------------------- */

/* The kernels that are the same for all numbers. */
static const struct kernels table = {
    .name = "host",
    .add = host_residual,
    .zero = host_zero,
    .add_double = host_add_double,
    .encode = host_encode,
    .decode = host_decode,
    .loss = host_loss,
    .update = host_update,
    .round = host_round,
    .linear_input_bf16 = host_linear_input_bf16,
    .linear_weight_bf16 = host_linear_weight_bf16,
    .squares = host_squares,
    .update_scaled = host_update_scaled,
    .turns_parts = true,
    .attends_in_windows = true,
    .caps = true,
    .attends_in_rows = true,
    .freezes = true,
    .loss_labels = host_loss_labels,
    .loss_largest = host_loss_largest,
    .loss_sums = host_loss_sums,
    .loss_gradient = host_loss_gradient,
};

static void put_table(struct kernels *kernels, struct host_context *context, uint32_t threads)
{
    *kernels = table;
    kernels->context = context;
    kernels->threads = threads;
    context->half = *kernels;
    half_put_number_kernels(&context->half);
    host_put_number_kernels(kernels);
    kernels->images = &host_images;
    kernels->half = &context->half;
}

static bool make_rooms(struct host_context *context)
{
    context->widened = alloc_resize(NULL, 3 * (size_t)HOST_WIDENED * sizeof *context->widened);
    context->columns = alloc_zeroed(4 * (size_t)HOST_CHANNELS, sizeof *context->columns);
    context->convolutions = kernels_convolution_library_create();
    return context->widened && context->columns && context->convolutions;
}

static void free_context(struct host_context *context)
{
    kernels_bf16_library_destroy(context->bf16);
    kernels_convolution_library_destroy(context->convolutions);
    free(context->widened);
    free(context->columns);
    free(context);
}

enum status kernels_host_create(uint32_t threads, struct kernels **out, struct error *err)
{
    assert(threads >= 1 && threads <= INT_MAX);
    struct kernels *kernels = alloc_zeroed(1, sizeof *kernels);
    struct host_context *context = alloc_zeroed(1, sizeof *context);
    if (!kernels || !context || !make_rooms(context)) {
        if (context) free_context(context);
        free(kernels);
        return error_memory(err, "the host's kernels", sizeof *kernels + sizeof *context);
    }
    put_table(kernels, context, threads);
    context->bf16 = kernels_bf16_library_create();

    /* While it packs and multiplies, the library's code moves the stack pointer into its buffers (seen with 2.6.3),
     * so a signal handler would write its frame over the heap before them. Streams' threads block signals anyway;
     * this blocks them for the calling thread. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool right = examine(threads);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!right) {
        kernels_host_destroy(kernels);
        return error_set(err, STATUS_DEVICE,
                         "oneDNN's sgemm gives wrong products on this machine (%s)", isa_name());
    }
    *out = kernels;
    return STATUS_OK;
}

void kernels_host_destroy(struct kernels *kernels)
{
    if (!kernels) return;
    free_context(kernels->context);
    free(kernels);
}

/* Makes results and operands below 2^-126 zero on the calling thread. */
static void flush_subnormals(void)
{
#ifdef __SSE__
    const unsigned flush_results = 0x8000, flush_operands = 0x0040;
    _mm_setcsr(_mm_getcsr() | flush_results | flush_operands);
#endif
}

void kernels_host_attach(const struct kernels *kernels)
{
    omp_set_num_threads((int)kernels->threads);
    flush_subnormals();
#pragma omp parallel num_threads((int)kernels->threads)
    flush_subnormals();
}

void kernels_host_detach(void)
{
    omp_pause_resource_all(omp_pause_soft); /* of this thread only */
}

const char *kernels_host_machine(void)
{
    static _Thread_local char machine[HOST_TEXT_BYTES];
    const dnnl_version_t *const version = dnnl_version();
    snprintf(machine, sizeof machine, "oneDNN %d.%d.%d (%s)", version->major, version->minor, version->patch,
             isa_name());
    return machine;
}

const char *kernels_host_text(void)
{
    static _Thread_local char copy[HOST_TEXT_BYTES];
    pthread_mutex_lock(&examined.lock);
    memcpy(copy, examined.text, sizeof copy);
    pthread_mutex_unlock(&examined.lock);
    return copy;
}
