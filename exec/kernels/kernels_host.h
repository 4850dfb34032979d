/*
 * Shared by the host's kernels; included only by exec/kernels.
 *
 * Numbers. A kernel over numbers (exec/kernels/kernels_number.h) has one source, compiled twice: as host_NAME for fp32,
 * and with HOST_HALF as half_NAME for bf16 (CMakeLists.txt). It reads numbers widened to fp32, host_wide(), and rounds
 * a result when it stores it, host_stored(); of fp32 both are the number itself.
 *
 * A driver holds the OpenMP loop over blocks, whose bounds depend only on the shape; a leaf is plain arithmetic over
 * one block, compiled once per instruction set (base/clones.h). gcc moves the body of a parallel loop into a new
 * function, which would not be cloned.
 */
#ifndef SPILLWAY_EXEC_KERNELS_KERNELS_HOST_H
#define SPILLWAY_EXEC_KERNELS_KERNELS_HOST_H

#include <string.h>

#ifdef HOST_HALF
#define KERNELS_NUMBER bf16
#define HOST(name) half_##name
#else
#define KERNELS_NUMBER float
#define HOST(name) host_##name
#endif

#include "base/clones.h"
#include "exec/kernels/kernels.h"
#include "exec/kernels/kernels_step.h"

enum {
    HOST_CHUNK = 64,           /* elementwise leaves work on whole chunks; tails are padded */
    HOST_BLOCK = 16384,        /* a work item: fits L1 and L2 */
    HOST_SERIAL = 8192,        /* below this, waking a team does not pay */
    HOST_LANES = 32,           /* partial sums: hide the latency of addition */
    HOST_LOSS_PARTIALS = 1024, /* blocks of rows, summed apart */
    HOST_TEXT_BYTES = 256
};

struct host_context {
    double loss_partials[HOST_LOSS_PARTIALS];
    float *widened; /* HOST_WIDENED floats per operand of a bf16 product, and for its result before rounding */
    struct kernels half;
    struct kernels_bf16_library *bf16; /* products by the processor's matrix unit; NULL: it has none */
    struct kernels_convolution_library *convolutions;
    double *columns; /* for sums of the columns of images: 4 HOST_CHANNELS */
};

enum { HOST_WIDENED = 1 << 20, HOST_CHANNELS = KERNEL_CHANNELS_MAX };

/* --- numbers ---------------------------------------------------------------------------------- */

#ifdef HOST_HALF
CLONES_PART float host_wide(bf16 x)
{
    return bf16_widen(x);
}

CLONES_PART bf16 host_stored(float x)
{
    return bf16_nearest(x);
}
#else
CLONES_PART float host_wide(float x)
{
    return x;
}

CLONES_PART float host_stored(float x)
{
    return x;
}
#endif

CLONES_PART void host_load_chunk(float out[HOST_CHUNK], const kernel_number *x)
{
    for (int l = 0; l < HOST_CHUNK; l++) out[l] = host_wide(x[l]);
}

CLONES_PART void host_store_chunk(kernel_number *out, const float x[HOST_CHUNK])
{
    for (int l = 0; l < HOST_CHUNK; l++) out[l] = host_stored(x[l]);
}

/* Sets the kernels over fp32 numbers, or over bf16. */
void host_put_number_kernels(struct kernels *kernels);
void half_put_number_kernels(struct kernels *kernels);

/* --- leaves of several kernels ---------------------------------------------------------------- */

/* `sum` may be x or y */
void HOST(add_row)(kernel_number *sum, const kernel_number *x, const kernel_number *y, int64_t c);
void host_round_row(bf16 *restrict out, const float *restrict x, int64_t n);
void host_widen_row(float *restrict out, const bf16 *restrict x, int64_t n);

/* Of attention's tiles (kernels_attention.c). Replaces s(rows, keys) by exp(score - largest of the row); inverse[i]
 * makes row i a softmax. Row i sees its first `seen + i` keys, or the last `window` of these; `seen` may be negative.
 */
void host_softmax_rows(float *restrict s, float *restrict lse, float *restrict inverse, int64_t rows, int64_t keys,
                       int64_t seen, int64_t window);
/* p: scores in, weights out; ds: gradients of the weights in, of the products q . k out. cap: 0 if scores have none. */
void host_softmax_backward_rows(float *restrict p, float *restrict ds, const float *lse, const float *delta,
                                int64_t rows, int64_t keys, int64_t seen, int64_t window, float scale, float cap);
void host_cap_scores(float *s, int64_t n, float cap);
void host_scale_rows(float *restrict out, const float *restrict factors, int64_t rows, int64_t d, int64_t stride);
/* delta[i] = dout row . out row */
void host_row_products(float *restrict delta, const float *dout, const float *out, int64_t rows, int64_t d,
                       int64_t stride);
/* Rounds to bf16, kept in fp32. */
void host_round_rows(float *x, int64_t rows, int64_t columns, int64_t stride);

/* Calls a leaf on whole chunks of HOST_CHUNK numbers; `leaf` may write over its operands. */
typedef void host_two_operands(kernel_number *z, const kernel_number *x, const kernel_number *y, int64_t chunks);
void HOST(map_two)(const struct kernels *kernels, host_two_operands *leaf, kernel_number *z, const kernel_number *x,
                  const kernel_number *y, int64_t n);

/* --- the kernels, one idea a file ------------------------------------------------------------- */

void HOST(linear_forward)(const struct kernels *kernels, kernel_number *y, const kernel_number *x,
                          const kernel_number *w, const kernel_number *bias, int64_t m, int64_t n, int64_t k,
                          bool w_in_out);
void HOST(linear_input)(const struct kernels *kernels, kernel_number *dx, const kernel_number *dy,
                        const kernel_number *w, int64_t m, int64_t n, int64_t k, bool w_in_out, bool accumulate);
void HOST(linear_weight)(const struct kernels *kernels, float *dw, float *dbias, const kernel_number *dy,
                        const kernel_number *x, int64_t m, int64_t n, int64_t k, bool w_in_out,
                        uint32_t add);

void HOST(embed_forward)(const struct kernels *kernels, kernel_number *x, const kernel_number *rows,
                        const int32_t *tokens, int64_t token_stride, int64_t b, int64_t t,
                        int64_t c, int64_t v, int64_t first_row, int64_t row_count);
void HOST(embed_update)(const struct kernels *kernels, const struct kernel_parameters *rows,
                       const float *head_gradient, const kernel_number *dx, const int32_t *tokens,
                       int64_t token_stride, int64_t b, int64_t t, int64_t c, int64_t v,
                       int64_t first_row, int64_t row_count, const struct job_optimizer *optimizer,
                       uint64_t step, int64_t parts, float *scratch);
void HOST(embed_forward_bf16)(const struct kernels *kernels, kernel_number *x, const bf16 *rows,
                             const int32_t *tokens, int64_t token_stride, int64_t b, int64_t t,
                             int64_t c, int64_t v, int64_t first_row, int64_t row_count);

void host_round(const struct kernels *kernels, bf16 *out, const float *x, int64_t n);
void HOST(linear_forward_bf16)(const struct kernels *kernels, float *y, const bf16 *x, const bf16 *w,
                               const kernel_number *bias, int64_t m, int64_t n, int64_t k, bool w_in_out);
void host_linear_input_bf16(const struct kernels *kernels, float *dx, const bf16 *dy, const bf16 *w,
                            int64_t m, int64_t n, int64_t k, bool w_in_out, bool accumulate);
void host_linear_weight_bf16(const struct kernels *kernels, float *dw, float *dbias,
                             const float *dy, const bf16 *dy_rounded, const bf16 *x, int64_t m,
                             int64_t n, int64_t k, bool w_in_out, uint32_t add);

void HOST(embed_gradient)(const struct kernels *kernels, float *gradient, bool continues, const float *head_gradient,
                         const kernel_number *dx, const int32_t *tokens, int64_t token_stride, int64_t b,
                         int64_t t, int64_t c, int64_t v, int64_t first_row, int64_t row_count, int64_t padded,
                         int64_t parts, float *scratch);
void host_zero(const struct kernels *kernels, void *at, uint64_t bytes);
void HOST(copy_rows)(const struct kernels *kernels, kernel_number *to, int64_t to_row, const kernel_number *from,
                     int64_t from_row, int64_t rows, int64_t width);
void host_add_double(const struct kernels *kernels, double *sum, const double *x);
void host_encode(const struct kernels *kernels, enum compression_code code, void *out, const float *x, int64_t n);
void host_decode(const struct kernels *kernels, enum compression_code code, float *out, const void *from, int64_t n);
void HOST(squares)(const struct kernels *kernels, double *sum, const kernel_number *g, int64_t n, bool adds);
void host_update_scaled(const struct kernels *kernels, const struct kernel_parameters *parameters,
                        const float *g, int64_t n, const struct job_optimizer *optimizer, bool decays,
                        uint64_t step, float scale);

void HOST(norm_forward)(const struct kernels *kernels, kernel_number *out, kernel_number *sum, float *stats,
                        const kernel_number *x, const kernel_number *y, const kernel_number *w,
                        const kernel_number *b, int64_t r, int64_t c, float epsilon);
void HOST(norm_backward)(const struct kernels *kernels, kernel_number *dx, float *dw, float *db,
                        const kernel_number *dout, const kernel_number *x, const float *stats, const kernel_number *w,
                        const kernel_number *added, int64_t r, int64_t c);

void HOST(attention_forward)(const struct kernels *kernels, const struct kernel_attention *attention);
void HOST(attention_backward)(const struct kernels *kernels, const struct kernel_attention *attention);

void HOST(gelu_forward)(const struct kernels *kernels, kernel_number *y, const kernel_number *x, int64_t n,
                       bool tanh_form);
void HOST(gelu_backward)(const struct kernels *kernels, kernel_number *dx, const kernel_number *dy,
                         const kernel_number *x, int64_t n, bool tanh_form);
void HOST(relu_forward)(const struct kernels *kernels, kernel_number *y, const kernel_number *x, int64_t n);
void HOST(relu_backward)(const struct kernels *kernels, kernel_number *dx, const kernel_number *dy,
                         const kernel_number *x, int64_t n);
void HOST(residual)(const struct kernels *kernels, kernel_number *z, const kernel_number *x, const kernel_number *y,
                   int64_t n);

void host_loss(const struct kernels *kernels, double *loss, float *logits, const int32_t *tokens,
               int64_t token_stride, int64_t b, int64_t t, int64_t v, struct kernel_loss_rows rows);

void host_update(const struct kernels *kernels, const struct kernel_parameters *parameters,
                 const float *g, int64_t n, const struct job_optimizer *optimizer, bool decays,
                 uint64_t step);

void HOST(rms_norm_forward)(const struct kernels *kernels, kernel_number *out, kernel_number *sum, float *stats,
                           const kernel_number *x, const kernel_number *y, const kernel_number *w, int64_t r, int64_t c,
                           float epsilon);
void HOST(rms_norm_backward)(const struct kernels *kernels, kernel_number *dx, float *dw, const kernel_number *dout,
                             const kernel_number *x, const float *stats, const kernel_number *w,
                             const kernel_number *added, int64_t r, int64_t c);

void HOST(rope)(const struct kernels *kernels, const struct kernel_rope *rope);

void HOST(swiglu_forward)(const struct kernels *kernels, kernel_number *y, const kernel_number *gate,
                         const kernel_number *up, int64_t n);
void HOST(swiglu_backward)(const struct kernels *kernels, kernel_number *dgate, kernel_number *dup,
                           const kernel_number *dy, const kernel_number *gate, const kernel_number *up, int64_t n);

void HOST(geglu_forward)(const struct kernels *kernels, kernel_number *y, const kernel_number *gate,
                         const kernel_number *up, int64_t n);
void HOST(geglu_backward)(const struct kernels *kernels, kernel_number *dgate, kernel_number *dup,
                          const kernel_number *dy, const kernel_number *gate, const kernel_number *up, int64_t n);
void HOST(scale)(const struct kernels *kernels, kernel_number *y, const kernel_number *x, int64_t n, float factor);

void host_loss_largest(const struct kernels *kernels, const struct kernel_loss_share *share);
void host_loss_sums(const struct kernels *kernels, const struct kernel_loss_share *share);
void host_loss_gradient(const struct kernels *kernels, double *loss, const struct kernel_loss_share *share);
void host_loss_labels(const struct kernels *kernels, double *loss, float *logits,
                      const int32_t *labels, int64_t label_stride, int64_t b, int64_t t,
                      int64_t v, struct kernel_loss_rows rows);

void HOST(patches)(const struct kernels *kernels, kernel_number *out, const float *images, int64_t b,
                  int64_t channels, int64_t image, int64_t patch);
void HOST(join_forward)(const struct kernels *kernels, kernel_number *x, const kernel_number *patches,
                       const kernel_number *class_token, const kernel_number *positions, int64_t b, int64_t t,
                       int64_t c);
void HOST(join_backward)(const struct kernels *kernels, kernel_number *dpatches, float *dclass_token,
                        float *dpositions, const kernel_number *dx, int64_t b, int64_t t, int64_t c);
void HOST(first_forward)(const struct kernels *kernels, kernel_number *out, const kernel_number *x, int64_t b,
                        int64_t t, int64_t c);
void HOST(first_backward)(const struct kernels *kernels, kernel_number *dx, const kernel_number *dout, int64_t b,
                         int64_t t, int64_t c);

/* --- shared functions ------------------------------------------------------------------------- */

/* Steps over n parameters from `at` on, on the calling thread; g is multiplied by `scale` if that is below 1. */
void host_step_apply(const struct kernel_step *step, const struct kernel_parameters *parameters,
                     int64_t at, const float *g, int64_t n, float scale);

/* Sums in an order that depends only on m. */
void HOST(column_sums)(const struct kernels *kernels, float *sums, const kernel_number *x, int64_t m,
                      int64_t n, bool add);

/* C(m,n) = alpha op(A) op(B) + beta C, row-major. */
struct host_product {
    bool transpose_a, transpose_b;
    int64_t m, n, k;
    float alpha, beta;
    const float *a, *b;
    float *c;
    int64_t row_a, row_b, row_c; /* distance of stored rows */
};
void host_multiply(const struct host_product *product);

CLONES_PART int64_t host_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

CLONES_PART int64_t host_blocks(int64_t count, int64_t size)
{
    return (count + size - 1) / size;
}

void HOST(route)(const struct kernels *kernels, const struct kernel_routes *routes);
void HOST(route_backward)(const struct kernels *kernels, kernel_number *d, const kernel_number *dw,
                          const struct kernel_routes *routes);
void HOST(send)(const struct kernels *kernels, kernel_number *sent, const kernel_number *x,
                const struct kernel_routes *routes, int64_t c);
void HOST(collect)(const struct kernels *kernels, kernel_number *out, const kernel_number *sent,
                   const struct kernel_routes *routes, int64_t c, bool weighted, bool adds);
void HOST(collect_backward)(const struct kernels *kernels, kernel_number *d_sent, kernel_number *dw,
                            const kernel_number *dout, const kernel_number *returned,
                            const struct kernel_routes *routes, int64_t c);
void HOST(gate_rows)(const struct kernels *kernels, kernel_number *out, const kernel_number *x,
                     const kernel_number *gate, int64_t r, int64_t c);
void HOST(gate_rows_backward)(const struct kernels *kernels, kernel_number *dx, kernel_number *dgate,
                              const kernel_number *dout, const kernel_number *x, const kernel_number *gate,
                              int64_t r, int64_t c);

void HOST(dropout)(const struct kernels *kernels, kernel_number *y, const kernel_number *x, int64_t rows, int64_t t,
                   int64_t c, const struct kernel_dropout *dropout);

/* A tile of a head's weights, row-major: (rows, keys) from first_query and first_key of the sample on. */
struct host_scores {
    int64_t sample, head, first_query, rows, first_key, keys;
};
void host_drop_scores(float *s, const struct host_scores *at, const struct kernel_dropout *dropout);

/* --- convolutional networks --------------------------------------------------------------------- */

extern const struct kernels_images host_images;

void host_bias_backward(const struct kernels *kernels, float *dbias, const float *dy, int64_t rows, int64_t c);
void host_batch_norm(const struct kernels *kernels, float *y, float *stats, const float *x, const float *w,
                     const float *b, int64_t rows, int64_t c, float epsilon);
void host_batch_norm_apply(const struct kernels *kernels, float *y, const float *x, const float *mean,
                           const float *variance, const float *w, const float *b, int64_t rows, int64_t c,
                           float epsilon);
void host_batch_norm_backward(const struct kernels *kernels, float *dx, float *dw, float *db, const float *dy,
                              const float *x, const float *stats, const float *w, int64_t rows, int64_t c, bool adds);
void host_batch_norm_means(const struct kernels *kernels, float *mean, float *variance, const float *stats,
                           int64_t rows, int64_t c, float epsilon);

void host_max_pool(const struct kernels *kernels, float *y, int32_t *index, const float *x,
                   const struct kernel_pool *shape);
void host_max_pool_backward(const struct kernels *kernels, float *dx, const float *dy, const int32_t *index,
                            const struct kernel_pool *shape, bool adds);
void host_mean_pool(const struct kernels *kernels, float *y, const float *x, const struct kernel_pool *shape);
void host_mean_pool_backward(const struct kernels *kernels, float *dx, const float *dy, const struct kernel_pool *shape,
                             bool adds);

#endif
