/*
 * Products are row-major here and column-major in the library. A row-major matrix (r,c) is the column-major (c,r)
 * without moving a number, so y = x w becomes y' = w' x' with primes for that view. Only the transposition of stored
 * operands has to be derived:
 *
 *     forward   y'(n,m)  = w'(n,k) x'(k,m)      w stored (k,n): as it is;  (n,k): transposed
 *     input     dx'(k,m) = w'(k,n) dy'(n,m)     w stored (k,n): transposed;  (n,k): as it is
 *     weight    w stored (k,n):  dw'(n,k) = dy'(n,m) x'(k,m)^T
 *               w stored (n,k):  dw'(k,n) = x'(k,m) dy'(n,m)^T
 *
 * The bias of the forward product is then one number for each row of the result: the epilogue that
 * the library has.
 *
 * The first error of a launch is kept for the stream's owner: entries of the table return nothing.
 */
#define KERNELS_NUMBER float /* there are no kernels of bf16 numbers */
#include "exec/cuda/kernels_cuda.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#ifdef SPILLWAY_CUDNN
#include "exec/cuda/attention_cudnn.h"
#endif
#include "exec/cuda/gpu_library.h"
#include "exec/cuda/kernels_cuda_launch.h"
#include "exec/cuda/kernels_cuda_products.h"
#include "exec/device/ranges.h"

struct cuda_context {
    cudaStream_t stream;
    struct cuda_products *products;
    void *workspace; /* CUDA_WORKSPACE_BYTES, for products and partial sums in turn */
    int64_t sorted;  /* tokens that were sorted last */
    char failure[160];
#ifdef SPILLWAY_CUDNN
    struct attention_cudnn *cudnn; /* made on first use */
    char no_cudnn[256];            /* why there is none */
#endif
};

static struct cuda_context *context_of(const struct kernels *kernels)
{
    return kernels->context;
}

static void keep_failure(struct cuda_context *context, const char *what, const char *why)
{
    if (context->failure[0] == '\0')
        snprintf(context->failure, sizeof context->failure, "%s: %s", what, why);
}

static void check(struct cuda_context *context, const char *what, cudaError_t status)
{
    if (status != cudaSuccess) keep_failure(context, what, cudaGetErrorString(status));
}

/* Launches in a range named like the launcher. */
#define RUN(launcher, ...)                                                             \
    do {                                                                               \
        ranges_push(#launcher);                                                         \
        check(context, #launcher, launcher(context->stream, __VA_ARGS__));             \
        ranges_pop();                                                                   \
    } while (0)

/* --- linear layers ----------------------------------------------------------------------------------- */

static void multiply(struct cuda_context *context, const char *what,
                     const struct cuda_product *product)
{
    ranges_push(what);
    const char *const failed = cuda_products_multiply(context->products, product);
    ranges_pop();
    if (failed) keep_failure(context, what, failed);
}

/* y = x w', dx = dy w and dw = dy' x of a linear layer; operands are fp32, or `rounded` to bf16. */

static struct cuda_product forward_product(float *y, const void *x, const void *w,
                                           const float *bias, int64_t m, int64_t n, int64_t k,
                                           bool w_in_out, bool rounded)
{
    return (struct cuda_product){.m = n,
                                 .n = m,
                                 .k = k,
                                 .a = w,
                                 .transpose_a = !w_in_out,
                                 .b = x,
                                 .c = y,
                                 .bias = bias,
                                 .bf16 = rounded};
}

static struct cuda_product input_product(float *dx, const void *dy, const void *w, int64_t m,
                                         int64_t n, int64_t k, bool w_in_out, bool accumulate,
                                         bool rounded)
{
    return (struct cuda_product){.m = k,
                                 .n = m,
                                 .k = n,
                                 .a = w,
                                 .transpose_a = w_in_out,
                                 .b = dy,
                                 .c = dx,
                                 .accumulate = accumulate,
                                 .bf16 = rounded};
}

static struct cuda_product weight_product(float *dw, const void *dy, const void *x, int64_t m,
                                          int64_t n, int64_t k, bool w_in_out, uint32_t add,
                                          bool rounded)
{
    return (struct cuda_product){.m = w_in_out ? n : k,
                                 .n = w_in_out ? k : n,
                                 .k = m,
                                 .a = w_in_out ? dy : x,
                                 .b = w_in_out ? x : dy,
                                 .transpose_b = true,
                                 .c = dw,
                                 .accumulate = add & KERNEL_LINEAR_ADD_WEIGHT,
                                 .bf16 = rounded};
}

static void linear_forward(const struct kernels *kernels, float *y, const float *x, const float *w,
                           const float *bias, int64_t m, int64_t n, int64_t k, bool w_in_out)
{
    const struct cuda_product product = forward_product(y, x, w, bias, m, n, k, w_in_out, false);
    multiply(context_of(kernels), "linear_forward", &product);
}

static void linear_forward_bf16(const struct kernels *kernels, float *y, const bf16 *x,
                                const bf16 *w, const float *bias, int64_t m, int64_t n, int64_t k,
                                bool w_in_out)
{
    const struct cuda_product product = forward_product(y, x, w, bias, m, n, k, w_in_out, true);
    multiply(context_of(kernels), "linear_forward_bf16", &product);
}

static void linear_input(const struct kernels *kernels, float *dx, const float *dy, const float *w,
                         int64_t m, int64_t n, int64_t k, bool w_in_out, bool accumulate)
{
    const struct cuda_product product =
        input_product(dx, dy, w, m, n, k, w_in_out, accumulate, false);
    multiply(context_of(kernels), "linear_input", &product);
}

static void linear_input_bf16(const struct kernels *kernels, float *dx, const bf16 *dy,
                              const bf16 *w, int64_t m, int64_t n, int64_t k, bool w_in_out,
                              bool accumulate)
{
    const struct cuda_product product =
        input_product(dx, dy, w, m, n, k, w_in_out, accumulate, true);
    multiply(context_of(kernels), "linear_input_bf16", &product);
}

static void add_up_bias(struct cuda_context *context, float *dbias, const float *dy, int64_t m,
                        int64_t n, uint32_t add)
{
    if (dbias)
        RUN(cuda_column_sums, dbias, dy, m, n, add & KERNEL_LINEAR_ADD_BIAS, context->workspace);
}

static void linear_weight(const struct kernels *kernels, float *dw, float *dbias, const float *dy,
                          const float *x, int64_t m, int64_t n, int64_t k, bool w_in_out,
                          uint32_t add)
{
    struct cuda_context *const context = context_of(kernels);
    const struct cuda_product product = weight_product(dw, dy, x, m, n, k, w_in_out, add, false);
    if (dw) multiply(context, "linear_weight", &product);
    add_up_bias(context, dbias, dy, m, n, add);
}

static void linear_weight_bf16(const struct kernels *kernels, float *dw, float *dbias,
                               const float *dy, const bf16 *dy_rounded, const bf16 *x, int64_t m,
                               int64_t n, int64_t k, bool w_in_out, uint32_t add)
{
    struct cuda_context *const context = context_of(kernels);
    const struct cuda_product product =
        weight_product(dw, dy_rounded, x, m, n, k, w_in_out, add, true);
    if (dw) multiply(context, "linear_weight_bf16", &product);
    add_up_bias(context, dbias, dy, m, n, add);
}

static void round_to_bf16(const struct kernels *kernels, bf16 *out, const float *x, int64_t n)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_round, out, x, n);
}

/* --- the embedding ------------------------------------------------------------------------------------ */

static void embed_forward(const struct kernels *kernels, float *x, const float *rows,
                          const int32_t *tokens, int64_t token_stride, int64_t b, int64_t t,
                          int64_t c, int64_t v, int64_t first_row, int64_t row_count)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_embed_forward, x, rows, tokens, token_stride, b, t, c, v, first_row, row_count);
}

static void embed_forward_bf16(const struct kernels *kernels, float *x, const bf16 *rows,
                               const int32_t *tokens, int64_t token_stride, int64_t b, int64_t t,
                               int64_t c, int64_t v, int64_t first_row, int64_t row_count)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_embed_forward_bf16, x, rows, tokens, token_stride, b, t, c, v, first_row, row_count);
}

/* The sort's kernels depend on the number of tokens. They are loaded when they are first launched. */
static void sort_and_add(const struct kernels *kernels, const struct cuda_embed *embed, float *scratch)
{
    struct cuda_context *const context = context_of(kernels);
    const int64_t tokens = embed->b * embed->t;
    const bool loads = tokens != context->sorted;
    assert((uintptr_t)scratch % sizeof(unsigned long long) == 0);
    if (loads) pthread_mutex_lock(&gpu_library_launching);
    RUN(cuda_embed_update, embed, (unsigned long long *)(void *)scratch, context->workspace);
    if (loads) pthread_mutex_unlock(&gpu_library_launching);
    context->sorted = tokens;
}

static void embed_update(const struct kernels *kernels, const struct kernel_parameters *rows,
                         const float *head_gradient, const float *dx, const int32_t *tokens,
                         int64_t token_stride, int64_t b, int64_t t, int64_t c, int64_t v,
                         int64_t first_row, int64_t row_count, const struct job_optimizer *optimizer,
                         uint64_t step, int64_t parts, float *scratch)
{
    const struct cuda_embed embed = {
        .rows = *rows,
        .head = head_gradient,
        .dx = dx,
        .tokens = tokens,
        .token_stride = token_stride,
        .b = b,
        .t = t,
        .c = c,
        .vocabulary = v,
        .first_row = first_row,
        .row_count = row_count,
        .step = kernel_step_of(optimizer, true, step),
        .skip_idle = optimizer->kind == OPTIMIZER_SGD && optimizer->weight_decay == 0,
        .parts = parts,
    };
    sort_and_add(kernels, &embed, scratch);
}

static void embed_gradient(const struct kernels *kernels, float *gradient, bool continues, const float *head_gradient,
                           const float *dx, const int32_t *tokens, int64_t token_stride, int64_t b, int64_t t,
                           int64_t c, int64_t v, int64_t first_row, int64_t row_count, int64_t padded,
                           int64_t parts, float *scratch)
{
    const struct cuda_embed embed = {.rows.padded = padded,
                                     .head = head_gradient,
                                     .dx = dx,
                                     .tokens = tokens,
                                     .token_stride = token_stride,
                                     .b = b,
                                     .t = t,
                                     .c = c,
                                     .vocabulary = v,
                                     .first_row = first_row,
                                     .row_count = row_count,
                                     .gradient = gradient,
                                     .continues = continues,
                                     .parts = parts};
    assert(!continues || (!head_gradient && parts == 1));
    sort_and_add(kernels, &embed, scratch);
}

/* --- rows and heads ------------------------------------------------------------------------------------- */

static void norm_forward(const struct kernels *kernels, float *out, float *sum, float *stats,
                         const float *x, const float *y, const float *w, const float *b, int64_t r,
                         int64_t c, float epsilon)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_norm_forward, out, sum, stats, x, y, w, b, r, c, epsilon);
}

static void norm_backward(const struct kernels *kernels, float *dx, float *dw, float *db,
                          const float *dout, const float *x, const float *stats, const float *w,
                          const float *added, int64_t r, int64_t c)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_norm_backward, dx, dw, db, dout, x, stats, w, added, r, c, context->workspace);
}

/* Returns NULL when cuDNN computes this shape, else the reason. */
static const char *without_cudnn(struct cuda_context *context, const struct kernel_attention *shape)
{
#ifdef SPILLWAY_CUDNN
    struct error err = {0};
    if (!context->cudnn && context->no_cudnn[0] == '\0' &&
        attention_cudnn_create(context->stream, &context->cudnn, &err) != STATUS_OK)
        snprintf(context->no_cudnn, sizeof context->no_cudnn, "%.250s", err.text);
    return context->cudnn ? attention_cudnn_settle(context->cudnn, shape) : context->no_cudnn;
#else
    (void)context, (void)shape;
    return "this program was built without cuDNN's header";
#endif
}

#ifdef SPILLWAY_CUDNN
static bool by_cudnn(struct cuda_context *context, const struct kernel_attention *attention)
{
    return attention->rounded && attention->held == 0 && !without_cudnn(context, attention);
}
#endif

static void attention_forward(const struct kernels *kernels, const struct kernel_attention *attention)
{
    struct cuda_context *const context = context_of(kernels);
#ifdef SPILLWAY_CUDNN
    if (by_cudnn(context, attention)) {
        ranges_push("cudnn_attention_forward");
        const char *const failed = attention_cudnn_forward(context->cudnn, attention);
        ranges_pop();
        if (failed) keep_failure(context, "attention by cuDNN", failed);
        return;
    }
#endif
    RUN(cuda_attention_forward, attention);
}

static void attention_backward(const struct kernels *kernels, const struct kernel_attention *attention)
{
    struct cuda_context *const context = context_of(kernels);
#ifdef SPILLWAY_CUDNN
    if (by_cudnn(context, attention)) {
        ranges_push("cudnn_attention_backward");
        const char *const failed = attention_cudnn_backward(context->cudnn, attention);
        ranges_pop();
        if (failed) keep_failure(context, "attention by cuDNN", failed);
        return;
    }
#endif
    RUN(cuda_attention_backward, attention);
}

static bool prepare_attention(const struct kernels *kernels, const struct kernel_attention *shape,
                              char *by, size_t size)
{
    struct cuda_context *const context = context_of(kernels);
    const char *const why = shape->rounded ? without_cudnn(context, shape) : NULL;
    snprintf(by, size, "Spillway's own kernels%s%.300s%s", why ? " (" : "", why ? why : "",
             why ? ")" : "");
#ifdef SPILLWAY_CUDNN
    if (by_cudnn(context, shape)) {
        const size_t version = attention_cudnn_version(context->cudnn);
        snprintf(by, size, "cuDNN %zu.%zu.%zu", version / 10000, version / 100 % 100,
                 version % 100);
    }
#endif
    return why == NULL;
}

static void rms_norm_forward(const struct kernels *kernels, float *out, float *sum, float *stats,
                             const float *x, const float *y, const float *w, int64_t r, int64_t c,
                             float epsilon)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_rms_norm_forward, out, sum, stats, x, y, w, r, c, epsilon);
}

static void rms_norm_backward(const struct kernels *kernels, float *dx, float *dw,
                              const float *dout, const float *x, const float *stats,
                              const float *w, const float *added, int64_t r, int64_t c)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_rms_norm_backward, dx, dw, dout, x, stats, w, added, r, c, context->workspace);
}

static void rope(const struct kernels *kernels, const struct kernel_rope *a)
{
    struct cuda_context *const context = context_of(kernels);
    assert(a->row_q == a->h * a->d && a->row_k == a->kv * a->d && a->turned == a->d && !a->adjacent);
    for (int64_t first = 0; first < a->d / 2; first += CUDA_ROPE_PAIRS) {
        struct cuda_rope rotation = {.q = a->q, .k = a->k, .tokens = a->b * a->t, .t = a->t, .begin = a->begin,
                                     .h = a->h,
                                     .kv = a->kv, .d = a->d, .back = a->back};
        rotation.first = (int32_t)first;
        rotation.count = (int32_t)(a->d / 2 - first < CUDA_ROPE_PAIRS ? a->d / 2 - first : CUDA_ROPE_PAIRS);
        for (int32_t i = 0; i < rotation.count; i++)
            rotation.frequencies[i] =
                (float)rope_frequency(a->rope, (uint64_t)(rotation.first + i), (uint64_t)a->d);
        RUN(cuda_rope, &rotation);
    }
}

static void loss_labels(const struct kernels *kernels, double *result, float *logits,
                        const int32_t *labels, int64_t label_stride, int64_t b, int64_t t,
                        int64_t v, struct kernel_loss_rows rows)
{
    struct cuda_context *const context = context_of(kernels);
    const struct cuda_loss arguments = {.loss = result,
                                        .logits = logits,
                                        .labels = labels,
                                        .label_stride = label_stride,
                                        .b = b,
                                        .t = t,
                                        .v = v,
                                        .first = rows.first,
                                        .count = rows.count,
                                        .part = rows.part,
                                        .parts = rows.targets > 0 ? 1 : rows.parts,
                                        .targets = rows.targets,
                                        .continues = rows.continues};
    RUN(cuda_loss, &arguments, context->workspace);
}

static void loss(const struct kernels *kernels, double *result, float *logits,
                 const int32_t *tokens, int64_t token_stride, int64_t b, int64_t t, int64_t v,
                 struct kernel_loss_rows rows)
{
    loss_labels(kernels, result, logits, tokens + 1, token_stride, b, t, v, rows);
}

/* --- the loss of a tensor group ---------------------------------------------------------------------------- */

static struct cuda_loss_share share_of(const struct kernel_loss_share *s)
{
    return (struct cuda_loss_share){.logits = s->logits,
                                    .labels = s->labels,
                                    .label_stride = s->label_stride,
                                    .b = s->b,
                                    .t = s->t,
                                    .v = s->v,
                                    .first_word = s->first_word,
                                    .masked = s->masked,
                                    .first = s->rows.first,
                                    .count = s->rows.count,
                                    .part = s->rows.continues ? 1 : s->rows.part, /* not the first */
                                    .parts = s->rows.targets > 0 ? 1 : s->rows.parts,
                                    .targets = s->rows.targets,
                                    .largest = s->largest,
                                    .sums = s->sums,
                                    .at_target = s->at_target};
}

static void loss_largest(const struct kernels *kernels, const struct kernel_loss_share *share)
{
    struct cuda_context *const context = context_of(kernels);
    const struct cuda_loss_share own = share_of(share);
    RUN(cuda_loss_largest, &own);
}

static void loss_sums(const struct kernels *kernels, const struct kernel_loss_share *share)
{
    struct cuda_context *const context = context_of(kernels);
    const struct cuda_loss_share own = share_of(share);
    RUN(cuda_loss_sums, &own);
}

static void loss_gradient(const struct kernels *kernels, double *result, const struct kernel_loss_share *share)
{
    struct cuda_context *const context = context_of(kernels);
    const struct cuda_loss_share own = share_of(share);
    RUN(cuda_loss_gradient, result, &own, context->workspace);
}

/* --- images ------------------------------------------------------------------------------------------------ */

static void patches(const struct kernels *kernels, float *out, const float *images, int64_t b,
                    int64_t channels, int64_t image, int64_t patch)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_patches, out, images, b, channels, image, patch);
}

static void join_forward(const struct kernels *kernels, float *x, const float *rows,
                         const float *class_token, const float *positions, int64_t b, int64_t t,
                         int64_t c)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_join_forward, x, rows, class_token, positions, b, t, c);
}

static void join_backward(const struct kernels *kernels, float *dpatches, float *dclass_token,
                          float *dpositions, const float *dx, int64_t b, int64_t t, int64_t c)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_join_backward, dpatches, dclass_token, dpositions, dx, b, t, c, context->workspace);
}

static void first_forward(const struct kernels *kernels, float *out, const float *x, int64_t b,
                          int64_t t, int64_t c)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_first_forward, out, x, b, t, c);
}

static void first_backward(const struct kernels *kernels, float *dx, const float *dout, int64_t b,
                           int64_t t, int64_t c)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_first_backward, dx, dout, b, t, c);
}

/* --- elementwise ------------------------------------------------------------------------------------------ */

static void gelu_forward(const struct kernels *kernels, float *y, const float *x, int64_t n,
                         bool tanh_form)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_gelu_forward, y, x, n, tanh_form);
}

static void relu_forward(const struct kernels *kernels, float *y, const float *x, int64_t n)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_relu_forward, y, x, n);
}

static void relu_backward(const struct kernels *kernels, float *dx, const float *dy, const float *x, int64_t n)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_relu_backward, dx, dy, x, n);
}

static void gelu_backward(const struct kernels *kernels, float *dx, const float *dy,
                          const float *x, int64_t n, bool tanh_form)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_gelu_backward, dx, dy, x, n, tanh_form);
}

static void swiglu_forward(const struct kernels *kernels, float *y, const float *gate,
                           const float *up, int64_t n)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_swiglu_forward, y, gate, up, n);
}

static void swiglu_backward(const struct kernels *kernels, float *dgate, float *dup,
                            const float *dy, const float *gate, const float *up, int64_t n)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_swiglu_backward, dgate, dup, dy, gate, up, n);
}

static void residual(const struct kernels *kernels, float *z, const float *x, const float *y,
                     int64_t n)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_residual, z, x, y, n);
}

static void scale(const struct kernels *kernels, float *y, const float *x, int64_t n, float factor)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_scale, y, x, n, factor);
}

static void update_scaled(const struct kernels *kernels, const struct kernel_parameters *parameters,
                          const float *g, int64_t n, const struct job_optimizer *optimizer, bool decays,
                          uint64_t step, float factor)
{
    struct cuda_context *const context = context_of(kernels);
    const struct kernel_step coefficients = kernel_step_of(optimizer, decays, step);
    assert((parameters->m != NULL) == (optimizer_moments(optimizer->kind) > 0));
    assert((parameters->v != NULL) == (optimizer_moments(optimizer->kind) > 1));
    RUN(cuda_update, parameters, g, n, &coefficients, factor);
}

static void update(const struct kernels *kernels, const struct kernel_parameters *parameters,
                   const float *g, int64_t n, const struct job_optimizer *optimizer, bool decays,
                   uint64_t step)
{
    update_scaled(kernels, parameters, g, n, optimizer, decays, step, 1);
}

static void squares(const struct kernels *kernels, double *sum, const float *g, int64_t n, bool adds)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_squares, sum, g, n, adds, context->workspace);
}

static void copy_rows(const struct kernels *kernels, float *to, int64_t to_row, const float *from, int64_t from_row,
                      int64_t rows, int64_t width)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_copy_rows, to, to_row, from, from_row, rows, width);
}

static void add_double(const struct kernels *kernels, double *sum, const double *x)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_add_double, sum, x);
}

static void zero(const struct kernels *kernels, void *at, uint64_t bytes)
{
    struct cuda_context *const context = context_of(kernels);
    check(context, "cudaMemsetAsync", cudaMemsetAsync(at, 0, bytes, context->stream));
}

static void encode(const struct kernels *kernels, enum compression_code code, void *out, const float *x, int64_t n)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_encode, code == COMPRESSION_BF16, out, x, n);
}

static void decode(const struct kernels *kernels, enum compression_code code, float *out, const void *from, int64_t n)
{
    struct cuda_context *const context = context_of(kernels);
    RUN(cuda_decode, code == COMPRESSION_BF16, out, from, n);
}

static void to_host(const struct kernels *kernels, void *host, const void *at, uint64_t bytes)
{
    struct cuda_context *const context = context_of(kernels);
    check(context, "cudaMemcpyAsync", cudaMemcpyAsync(host, at, bytes, cudaMemcpyDeviceToHost, context->stream));
    check(context, "cudaStreamSynchronize", cudaStreamSynchronize(context->stream));
}

static void to_device(const struct kernels *kernels, void *at, const void *host, uint64_t bytes)
{
    struct cuda_context *const context = context_of(kernels);
    check(context, "cudaMemcpyAsync", cudaMemcpyAsync(at, host, bytes, cudaMemcpyHostToDevice, context->stream));
}

static void finish(const struct kernels *kernels)
{
    struct cuda_context *const context = context_of(kernels);
    check(context, "cudaStreamSynchronize", cudaStreamSynchronize(context->stream));
}

/* --- public -------------------------------------------------------------------------------------------------- */

static const struct kernels table = {
    .name = "cuda",
    .number_bytes = sizeof(kernel_number),
    .finish = finish,
    .linear_forward = linear_forward,
    .linear_input = linear_input,
    .linear_weight = linear_weight,
    .embed_forward = embed_forward,
    .embed_update = embed_update,
    .embed_gradient = embed_gradient,
    .norm_forward = norm_forward,
    .norm_backward = norm_backward,
    .attention_forward = attention_forward,
    .attention_backward = attention_backward,
    .prepare_attention = prepare_attention,
    .relu_forward = relu_forward,
    .relu_backward = relu_backward,
    .gelu_forward = gelu_forward,
    .gelu_backward = gelu_backward,
    .residual = residual,
    .add = residual,
    .scale = scale,
    .zero = zero,
    .copy_rows = copy_rows,
    .add_double = add_double,
    .squares = squares,
    .number_squares = squares,
    .update_scaled = update_scaled,
    .loss = loss,
    .update = update,
    .round = round_to_bf16,
    .linear_forward_bf16 = linear_forward_bf16,
    .linear_input_bf16 = linear_input_bf16,
    .linear_weight_bf16 = linear_weight_bf16,
    .embed_forward_bf16 = embed_forward_bf16,
    .rms_norm_forward = rms_norm_forward,
    .rms_norm_backward = rms_norm_backward,
    .rope = rope,
    .swiglu_forward = swiglu_forward,
    .swiglu_backward = swiglu_backward,
    .loss_labels = loss_labels,
    .encode = encode,
    .decode = decode,
    .to_host = to_host,
    .to_device = to_device,
    .loss_largest = loss_largest,
    .loss_sums = loss_sums,
    .loss_gradient = loss_gradient,
    .patches = patches,
    .join_forward = join_forward,
    .join_backward = join_backward,
    .first_forward = first_forward,
    .first_backward = first_backward,
};

const struct kernels *kernels_cuda_table(void)
{
    return &table;
}

static cudaError_t load_kernels(void)
{
    cudaError_t failed = cuda_elementwise_load();
    if (failed == cudaSuccess) failed = cuda_rows_load();
    if (failed == cudaSuccess) failed = cuda_loss_share_load();
    if (failed == cudaSuccess) failed = cuda_embed_load();
    if (failed == cudaSuccess) failed = cuda_attention_load();
    if (failed == cudaSuccess) failed = cuda_rope_load();
    if (failed == cudaSuccess) failed = cuda_images_load();
    if (failed == cudaSuccess) failed = cuda_code_load();
    return failed;
}

enum status kernels_cuda_create(cudaStream_t stream, bool tf32, struct kernels **out,
                                struct error *err)
{
    struct kernels *const kernels = alloc_zeroed(1, sizeof *kernels);
    struct cuda_context *const context = alloc_zeroed(1, sizeof *context);
    if (!kernels || !context) {
        free(kernels);
        free(context);
        return error_memory(err, "the device's kernels", sizeof *kernels + sizeof *context);
    }
    *kernels = table;
    kernels->context = context;
    context->stream = stream;
    enum status status = STATUS_OK;
    cudaError_t failed = cudaMalloc(&context->workspace, CUDA_WORKSPACE_BYTES);
    if (failed != cudaSuccess) {
        cudaGetLastError(); /* it is told here */
        status = error_set(err, STATUS_NO_MEMORY, "no %d bytes of device memory for partial sums: %s",
                           (int)CUDA_WORKSPACE_BYTES, cudaGetErrorString(failed));
    }
    if (status == STATUS_OK && (failed = load_kernels()) != cudaSuccess)
        status = error_set(err, STATUS_DEVICE, "cannot load the kernels: %s",
                           cudaGetErrorString(failed));
    if (status == STATUS_OK)
        status = cuda_products_create(stream, tf32, context->workspace, CUDA_WORKSPACE_BYTES,
                                      &context->products, err);
    if (status != STATUS_OK) {
        kernels_cuda_destroy(kernels);
        return status;
    }
    *out = kernels;
    return STATUS_OK;
}

void kernels_cuda_destroy(struct kernels *kernels)
{
    if (!kernels) return;
    struct cuda_context *const context = context_of(kernels);
    cuda_products_destroy(context->products);
#ifdef SPILLWAY_CUDNN
    attention_cudnn_destroy(context->cudnn);
#endif
    cudaFree(context->workspace);
    free(context);
    free(kernels);
}

void kernels_cuda_leave_out_cudnn(struct kernels *kernels)
{
#ifdef SPILLWAY_CUDNN
    struct cuda_context *const context = context_of(kernels);
    assert(!context->cudnn);
    snprintf(context->no_cudnn, sizeof context->no_cudnn, "cuDNN is left out");
#else
    (void)kernels;
#endif
}

const char *kernels_cuda_failure(const struct kernels *kernels)
{
    const struct cuda_context *const context = context_of(kernels);
    return context->failure[0] ? context->failure : NULL;
}
