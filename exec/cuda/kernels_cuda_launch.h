/*
 * The launchers of the .cu files, which enqueue on `stream` and return the launch's result. Shapes are as in
 * exec/kernels/kernels.h. All pointers except coefficients are device memory.
 *
 * workspace   WORKSPACE_BYTES of device memory that belong to the stream: partial sums
 */
#ifndef SPILLWAY_EXEC_CUDA_KERNELS_CUDA_LAUNCH_H
#define SPILLWAY_EXEC_CUDA_KERNELS_CUDA_LAUNCH_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifndef KERNELS_NUMBER
#define KERNELS_NUMBER float /* as in kernels_cuda.c */
#endif
#include "exec/kernels/kernels_attention.h"
#include "exec/kernels/kernels_step.h"

/* Recommended for Hopper; partial sums need a few MiB. */
enum { CUDA_WORKSPACE_BYTES = 32 << 20 };

enum { CUDA_HEAD_WIDTH_MAX = 256 };

#ifdef __cplusplus
extern "C" {
#endif

/* Load all kernels of a file onto the current device before the first launch. */
cudaError_t cuda_elementwise_load(void);
cudaError_t cuda_rows_load(void);
cudaError_t cuda_loss_share_load(void);
cudaError_t cuda_embed_load(void);
cudaError_t cuda_attention_load(void);
cudaError_t cuda_rope_load(void);
cudaError_t cuda_images_load(void);
cudaError_t cuda_code_load(void);

/* --- kernels_cuda_elementwise.cu ---------------------------------------------------------------- */

cudaError_t cuda_gelu_forward(cudaStream_t stream, float *y, const float *x, int64_t n,
                              bool tanh_form);
cudaError_t cuda_gelu_backward(cudaStream_t stream, float *dx, const float *dy, const float *x,
                               int64_t n, bool tanh_form);
cudaError_t cuda_relu_forward(cudaStream_t stream, float *y, const float *x, int64_t n);
cudaError_t cuda_relu_backward(cudaStream_t stream, float *dx, const float *dy, const float *x, int64_t n);
cudaError_t cuda_swiglu_forward(cudaStream_t stream, float *y, const float *gate, const float *up,
                                int64_t n);
cudaError_t cuda_swiglu_backward(cudaStream_t stream, float *dgate, float *dup, const float *dy,
                                 const float *gate, const float *up, int64_t n);
cudaError_t cuda_scale(cudaStream_t stream, float *y, const float *x, int64_t n, float factor);
cudaError_t cuda_residual(cudaStream_t stream, float *z, const float *x, const float *y,
                          int64_t n);
cudaError_t cuda_update(cudaStream_t stream, const struct kernel_parameters *parameters,
                        const float *g, int64_t n, const struct kernel_step *step, float scale);
cudaError_t cuda_round(cudaStream_t stream, bf16 *out, const float *x, int64_t n);
/* Convert between an array without gaps and one with rows `stride` apart. */
cudaError_t cuda_round_rows(cudaStream_t stream, bf16 *out, const float *x, int64_t rows,
                            int64_t width, int64_t stride);
cudaError_t cuda_widen_rows(cudaStream_t stream, float *out, const bf16 *x, int64_t rows,
                            int64_t width, int64_t stride);
/* Copies rows of `width` numbers. */
cudaError_t cuda_copy_rows(cudaStream_t stream, float *to, int64_t to_row, const float *from, int64_t from_row,
                           int64_t rows, int64_t width);
/* y(m,n) += bias(n) */
cudaError_t cuda_add_bias(cudaStream_t stream, float *y, const float *bias, int64_t m, int64_t n);
/* Keeps the stream busy in tests. */
cudaError_t cuda_pause(cudaStream_t stream, uint64_t nanoseconds);

/* --- kernels_cuda_rows.cu ------------------------------------------------------------------------ */

cudaError_t cuda_norm_forward(cudaStream_t stream, float *out, float *sum, float *stats,
                              const float *x, const float *y, const float *w, const float *b,
                              int64_t r, int64_t c, float epsilon);
cudaError_t cuda_norm_backward(cudaStream_t stream, float *dx, float *dw, float *db,
                               const float *dout, const float *x, const float *stats,
                               const float *w, const float *added, int64_t r, int64_t c,
                               void *workspace);
cudaError_t cuda_rms_norm_forward(cudaStream_t stream, float *out, float *sum, float *stats,
                                  const float *x, const float *y, const float *w, int64_t r,
                                  int64_t c, float epsilon);
cudaError_t cuda_rms_norm_backward(cudaStream_t stream, float *dx, float *dw, const float *dout,
                                   const float *x, const float *stats, const float *w,
                                   const float *added, int64_t r, int64_t c, void *workspace);
/* add: adds to the contents of `sums` */
cudaError_t cuda_column_sums(cudaStream_t stream, float *sums, const float *x, int64_t m,
                             int64_t n, bool add, void *workspace);
/* As loss_labels: a row's target may be negative. */
struct cuda_loss {
    double *loss;
    float *logits;                       /* rows [first, first + count) of part `part` */
    const int32_t *labels;
    int64_t label_stride, b, t, v;
    int64_t first, count;
    uint32_t part, parts;
    int64_t targets; /* of the minibatch; 0: each part counts its own */
    bool continues;  /* adds to the loss in any case */
};
cudaError_t cuda_loss(cudaStream_t stream, const struct cuda_loss *arguments, void *workspace);
/* *sum = (adds: +=) the sum of squares */
cudaError_t cuda_squares(cudaStream_t stream, double *sum, const float *g, int64_t n, bool adds, void *workspace);
/* *sum += *x */
cudaError_t cuda_add_double(cudaStream_t stream, double *sum, const double *x);

/* --- kernels_cuda_loss_share.cu ------------------------------------------------------------------- */

/* struct kernel_loss_share; `parts` is 1 where `targets` is not 0. */
struct cuda_loss_share {
    float *logits;
    const int32_t *labels;
    int64_t label_stride, b, t, v, first_word;
    bool masked;
    int64_t first, count;
    uint32_t part, parts;
    int64_t targets;
    float *largest, *sums, *at_target;
};
cudaError_t cuda_loss_largest(cudaStream_t stream, const struct cuda_loss_share *share);
cudaError_t cuda_loss_sums(cudaStream_t stream, const struct cuda_loss_share *share);
cudaError_t cuda_loss_gradient(cudaStream_t stream, double *loss, const struct cuda_loss_share *share, void *workspace);

/* --- kernels_cuda_embed.cu ------------------------------------------------------------------------ */

cudaError_t cuda_embed_forward(cudaStream_t stream, float *x, const float *rows,
                               const int32_t *tokens, int64_t token_stride, int64_t b, int64_t t,
                               int64_t c, int64_t v, int64_t first_row, int64_t row_count);

cudaError_t cuda_embed_forward_bf16(cudaStream_t stream, float *x, const bf16 *rows,
                                    const int32_t *tokens, int64_t token_stride, int64_t b,
                                    int64_t t, int64_t c, int64_t v, int64_t first_row,
                                    int64_t row_count);

struct cuda_embed {
    struct kernel_parameters rows; /* of first_row */
    const float *head, *dx;  /* head may be NULL */
    const int32_t *tokens;
    int64_t token_stride, b, t, c, vocabulary, first_row, row_count;
    struct kernel_step step;
    bool skip_idle;          /* rows without a gradient do not change */
    float *gradient;         /* of first_row; where it goes; NULL: it is applied */
    bool continues;          /* `gradient` has the sums of earlier tokens */
    int64_t parts;           /* of the tokens, whose sums are added up as a tree; 1: all in order */
};
/* pairs: room for 2 * b * t numbers of 8 bytes */
cudaError_t cuda_embed_update(cudaStream_t stream, const struct cuda_embed *embed,
                              unsigned long long *pairs, void *workspace);

/* --- kernels_cuda_attention.cu --------------------------------------------------------------------- */

cudaError_t cuda_attention_forward(cudaStream_t stream, const struct kernel_attention *attention);
cudaError_t cuda_attention_backward(cudaStream_t stream, const struct kernel_attention *attention);

/* --- kernels_cuda_rope.cu ----------------------------------------------------------------------------- */

/* Pairs [first, first + count). */
enum { CUDA_ROPE_PAIRS = 128 };
struct cuda_rope {
    float *q, *k;
    int64_t tokens, t, begin, h, kv, d; /* tokens: B T; begin: position of each sample's first */
    int32_t first, count;
    bool back;
    float frequencies[CUDA_ROPE_PAIRS];
};
cudaError_t cuda_rope(cudaStream_t stream, const struct cuda_rope *arguments);

/* --- kernels_cuda_images.cu --------------------------------------------------------------------------- */

cudaError_t cuda_patches(cudaStream_t stream, float *out, const float *images, int64_t b,
                         int64_t channels, int64_t image, int64_t patch);
cudaError_t cuda_join_forward(cudaStream_t stream, float *x, const float *patches,
                              const float *class_token, const float *positions, int64_t b,
                              int64_t t, int64_t c);
cudaError_t cuda_join_backward(cudaStream_t stream, float *dpatches, float *dclass_token,
                               float *dpositions, const float *dx, int64_t b, int64_t t, int64_t c,
                               void *workspace);
cudaError_t cuda_first_forward(cudaStream_t stream, float *out, const float *x, int64_t b,
                               int64_t t, int64_t c);
cudaError_t cuda_first_backward(cudaStream_t stream, float *dx, const float *dout, int64_t b,
                                int64_t t, int64_t c);

/* --- kernels_cuda_code.cu ------------------------------------------------------------------------- */

/* kernels_encode() and kernels_decode(); `halves`: bf16, else int8. Both ends are aligned to four bytes, and are the
 * same or apart. */
cudaError_t cuda_encode(cudaStream_t stream, bool halves, void *out, const float *x, int64_t count);
cudaError_t cuda_decode(cudaStream_t stream, bool halves, float *out, const void *from, int64_t count);

#ifdef __cplusplus
}
#endif

#endif
