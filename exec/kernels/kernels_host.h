/*
 * Shared by the host's kernels; included only by exec/kernels.
 *
 * A driver holds the OpenMP loop over blocks, whose bounds depend only on the shape; a leaf is plain arithmetic over
 * one block, compiled once per instruction set (base/clones.h). gcc moves the body of a parallel loop into a new
 * function, which would not be cloned.
 */
#ifndef SPILLWAY_EXEC_KERNELS_KERNELS_HOST_H
#define SPILLWAY_EXEC_KERNELS_KERNELS_HOST_H

#include <string.h>

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
    float *widened; /* HOST_WIDENED floats per operand of a bf16 product */
    struct kernels_bf16_library *bf16; /* products by the processor's matrix unit; NULL: it has none */
};

enum { HOST_WIDENED = 1 << 20 };

/* --- leaves of several kernels ---------------------------------------------------------------- */

void host_add_row(float *sum, const float *x, const float *y, int64_t c); /* `sum` may be x or y */
void host_round_row(bf16 *restrict out, const float *restrict x, int64_t n);
void host_widen_row(float *restrict out, const bf16 *restrict x, int64_t n);

/* Calls a leaf on whole chunks of HOST_CHUNK numbers; `leaf` may write over its operands. */
typedef void host_two_operands(float *z, const float *x, const float *y, int64_t chunks);
void host_map_two(const struct kernels *kernels, host_two_operands *leaf, float *z, const float *x,
                  const float *y, int64_t n);

/* --- the kernels, one idea a file ------------------------------------------------------------- */

void host_linear_forward(const struct kernels *kernels, float *y, const float *x, const float *w,
                         const float *bias, int64_t m, int64_t n, int64_t k, bool w_in_out);
void host_linear_input(const struct kernels *kernels, float *dx, const float *dy, const float *w,
                       int64_t m, int64_t n, int64_t k, bool w_in_out, bool accumulate);
void host_linear_weight(const struct kernels *kernels, float *dw, float *dbias, const float *dy,
                        const float *x, int64_t m, int64_t n, int64_t k, bool w_in_out,
                        uint32_t add);

void host_embed_forward(const struct kernels *kernels, float *x, const float *rows,
                        const int32_t *tokens, int64_t token_stride, int64_t b, int64_t t,
                        int64_t c, int64_t v, int64_t first_row, int64_t row_count);
void host_embed_update(const struct kernels *kernels, const struct kernel_parameters *rows,
                       const float *head_gradient, const float *dx, const int32_t *tokens,
                       int64_t token_stride, int64_t b, int64_t t, int64_t c, int64_t v,
                       int64_t first_row, int64_t row_count, const struct job_optimizer *optimizer,
                       uint64_t step, float *scratch);
void host_embed_forward_bf16(const struct kernels *kernels, float *x, const bf16 *rows,
                             const int32_t *tokens, int64_t token_stride, int64_t b, int64_t t,
                             int64_t c, int64_t v, int64_t first_row, int64_t row_count);

void host_round(const struct kernels *kernels, bf16 *out, const float *x, int64_t n);
void host_linear_forward_bf16(const struct kernels *kernels, float *y, const bf16 *x, const bf16 *w,
                              const float *bias, int64_t m, int64_t n, int64_t k, bool w_in_out);
void host_linear_input_bf16(const struct kernels *kernels, float *dx, const bf16 *dy, const bf16 *w,
                            int64_t m, int64_t n, int64_t k, bool w_in_out, bool accumulate);
void host_linear_weight_bf16(const struct kernels *kernels, float *dw, float *dbias,
                             const float *dy, const bf16 *dy_rounded, const bf16 *x, int64_t m,
                             int64_t n, int64_t k, bool w_in_out, uint32_t add);

void host_embed_gradient(const struct kernels *kernels, float *gradient, bool continues, const float *head_gradient,
                         const float *dx, const int32_t *tokens, int64_t token_stride, int64_t b,
                         int64_t t, int64_t c, int64_t v, int64_t first_row, int64_t row_count, int64_t padded,
                         float *scratch);
void host_zero(const struct kernels *kernels, void *at, uint64_t bytes);
void host_copy_rows(const struct kernels *kernels, float *to, int64_t to_row, const float *from, int64_t from_row,
                    int64_t rows, int64_t width);
void host_add_double(const struct kernels *kernels, double *sum, const double *x);
void host_squares(const struct kernels *kernels, double *sum, const float *g, int64_t n, bool adds);
void host_update_scaled(const struct kernels *kernels, const struct kernel_parameters *parameters,
                        const float *g, int64_t n, const struct job_optimizer *optimizer, bool decays,
                        uint64_t step, float scale);

void host_norm_forward(const struct kernels *kernels, float *out, float *sum, float *stats,
                       const float *x, const float *y, const float *w, const float *b, int64_t r,
                       int64_t c, float epsilon);
void host_norm_backward(const struct kernels *kernels, float *dx, float *dw, float *db,
                        const float *dout, const float *x, const float *stats, const float *w,
                        const float *added, int64_t r, int64_t c);

void host_attention_forward(const struct kernels *kernels, const struct kernel_attention *attention);
void host_attention_backward(const struct kernels *kernels, const struct kernel_attention *attention);

void host_gelu_forward(const struct kernels *kernels, float *y, const float *x, int64_t n,
                       bool tanh_form);
void host_gelu_backward(const struct kernels *kernels, float *dx, const float *dy, const float *x,
                        int64_t n, bool tanh_form);
void host_relu_forward(const struct kernels *kernels, float *y, const float *x, int64_t n);
void host_relu_backward(const struct kernels *kernels, float *dx, const float *dy, const float *x, int64_t n);
void host_residual(const struct kernels *kernels, float *z, const float *x, const float *y,
                   int64_t n);

void host_loss(const struct kernels *kernels, double *loss, float *logits, const int32_t *tokens,
               int64_t token_stride, int64_t b, int64_t t, int64_t v, struct kernel_loss_rows rows);

void host_update(const struct kernels *kernels, const struct kernel_parameters *parameters,
                 const float *g, int64_t n, const struct job_optimizer *optimizer, bool decays,
                 uint64_t step);

void host_rms_norm_forward(const struct kernels *kernels, float *out, float *sum, float *stats,
                           const float *x, const float *y, const float *w, int64_t r, int64_t c,
                           float epsilon);
void host_rms_norm_backward(const struct kernels *kernels, float *dx, float *dw, const float *dout,
                            const float *x, const float *stats, const float *w, const float *added,
                            int64_t r, int64_t c);

void host_rope(const struct kernels *kernels, const struct kernel_rope *rope);

void host_swiglu_forward(const struct kernels *kernels, float *y, const float *gate,
                         const float *up, int64_t n);
void host_swiglu_backward(const struct kernels *kernels, float *dgate, float *dup, const float *dy,
                          const float *gate, const float *up, int64_t n);

void host_geglu_forward(const struct kernels *kernels, float *y, const float *gate, const float *up, int64_t n);
void host_geglu_backward(const struct kernels *kernels, float *dgate, float *dup, const float *dy, const float *gate,
                         const float *up, int64_t n);
void host_scale(const struct kernels *kernels, float *y, const float *x, int64_t n, float factor);

void host_loss_largest(const struct kernels *kernels, const struct kernel_loss_share *share);
void host_loss_sums(const struct kernels *kernels, const struct kernel_loss_share *share);
void host_loss_gradient(const struct kernels *kernels, double *loss, const struct kernel_loss_share *share);
void host_loss_labels(const struct kernels *kernels, double *loss, float *logits,
                      const int32_t *labels, int64_t label_stride, int64_t b, int64_t t,
                      int64_t v, struct kernel_loss_rows rows);

void host_patches(const struct kernels *kernels, float *out, const float *images, int64_t b,
                  int64_t channels, int64_t image, int64_t patch);
void host_join_forward(const struct kernels *kernels, float *x, const float *patches,
                       const float *class_token, const float *positions, int64_t b, int64_t t,
                       int64_t c);
void host_join_backward(const struct kernels *kernels, float *dpatches, float *dclass_token,
                        float *dpositions, const float *dx, int64_t b, int64_t t, int64_t c);
void host_first_forward(const struct kernels *kernels, float *out, const float *x, int64_t b,
                        int64_t t, int64_t c);
void host_first_backward(const struct kernels *kernels, float *dx, const float *dout, int64_t b,
                         int64_t t, int64_t c);

/* --- shared functions ------------------------------------------------------------------------- */

/* Steps over n parameters from `at` on, on the calling thread; g is multiplied by `scale` if that is below 1. */
void host_step_apply(const struct kernel_step *step, const struct kernel_parameters *parameters,
                     int64_t at, const float *g, int64_t n, float scale);

/* Sums in an order that depends only on m. */
void host_column_sums(const struct kernels *kernels, float *sums, const float *x, int64_t m,
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

void host_route(const struct kernels *kernels, const struct kernel_routes *routes);
void host_route_backward(const struct kernels *kernels, float *d, const float *dw, const struct kernel_routes *routes);
void host_send(const struct kernels *kernels, float *sent, const float *x, const struct kernel_routes *routes,
               int64_t c);
void host_collect(const struct kernels *kernels, float *out, const float *sent, const struct kernel_routes *routes,
                  int64_t c, bool weighted, bool adds);
void host_collect_backward(const struct kernels *kernels, float *d_sent, float *dw, const float *dout,
                           const float *returned, const struct kernel_routes *routes, int64_t c);
void host_gate_rows(const struct kernels *kernels, float *out, const float *x, const float *gate, int64_t r, int64_t c);
void host_gate_rows_backward(const struct kernels *kernels, float *dx, float *dgate, const float *dout, const float *x,
                             const float *gate, int64_t r, int64_t c);

void host_dropout(const struct kernels *kernels, float *y, const float *x, int64_t rows, int64_t t, int64_t c,
                  const struct kernel_dropout *dropout);

/* A tile of a head's weights, row-major: (rows, keys) from first_query and first_key of the sample on. */
struct host_scores {
    int64_t sample, head, first_query, rows, first_key, keys;
};
void host_drop_scores(float *s, const struct host_scores *at, const struct kernel_dropout *dropout);

#endif
