/*
 * The kernels of a back end; the host's are the reference for all others.
 *
 * Letters as in models/kernel/work.h. Matrices are row-major. The order of sums depends only on shapes, so equal calls
 * give equal bits. Elementwise kernels treat their tail exactly like their body.
 *
 * Numbers (exec/kernels/kernels_number.h) are fp32 or bf16; all others, such as gradients of weights and statistics,
 * are fp32. Kernels of bf16 compute and add up in fp32, and round a result once, to nearest, when they store it.
 *
 * NULL kernels: networks that need them are refused before a run begins (unit_missing_kernel()).
 */
#ifndef SPILLWAY_EXEC_KERNELS_KERNELS_H
#define SPILLWAY_EXEC_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/kernels/kernels_attention.h"
#include "exec/kernels/kernels_dropout.h"
#include "exec/kernels/kernels_experts.h"
#include "exec/kernels/kernels_images.h"
#include "exec/kernels/kernels_number.h"
#include "exec/kernels/kernels_step.h"
#include "models/job/job.h"

/* Outputs that linear_weight() adds to. */
enum { KERNEL_LINEAR_ADD_WEIGHT = 1, KERNEL_LINEAR_ADD_BIAS = 2 };

/* Rows of logits: `count` of the B T rows from `first` on, of part `part` of a minibatch in `parts` parts. The loss is
 * the mean over the `targets` of all parts; 0: each part counts its own, and all parts weigh the same. */
struct kernel_loss_rows {
    int64_t first, count;
    uint32_t part, parts;
    int64_t targets;
    bool continues; /* adds to the loss, also in the first rows of part 0 */
    float cap;      /* a logit z becomes cap tanh(z / cap) first; on hosts; 0: it does not */
};

/*
 * A loss whose logits(rows.count, V) are of V of the network's words, from first_word on; the others are on other
 * devices, which share each row's statistics. V may be 0.
 */
struct kernel_loss_share {
    float *logits;
    const int32_t *labels; /* (B,T), numbers of words, label_stride apart; negative: no target */
    int64_t label_stride, b, t, v, first_word;
    bool masked;           /* only rows with a label count */
    struct kernel_loss_rows rows;
    float *largest, *sums, *at_target; /* for each of the rows */
};

/* Rotates q(B,T,H D) and k(B,T,K D) in place (struct network_rope). */
struct kernel_rope {
    kernel_number *q, *k;
    int64_t b, t, h, kv, d;
    int64_t begin;         /* position of the first token */
    const int32_t *begins; /* (B,T): the first token of each token's own row, where positions restart; NULL: one row */
    int64_t row_q, row_k;  /* from one token to the next: H D, and K D, or more */
    int64_t turned;        /* the first ones of a head, an even number up to D */
    bool adjacent;         /* pairs (2 i, 2 i + 1) turn, not (i, i + turned / 2) */
    bool back;             /* by opposite angles */
    const struct network_rope *rope;
};

struct kernels {
    const char *name;
    void *context;     /* owned by the back end */
    uint32_t threads;  /* 0 for GPUs */
    uint32_t number_bytes;       /* of a kernel_number */
    const struct kernels_images *images; /* of convolutional networks; NULL: none */
    const struct kernels *half;  /* the same back end's kernels for numbers of 16 bits; NULL: it has none */

    /* Waits for all calls so far. NULL: a call returns when it is done. */
    void (*finish)(const struct kernels *kernels);

    /* y(m,n) = x(m,k) w + bias(n); w is stored (k,n) when w_in_out, else (n,k). bias may be NULL. */
    void (*linear_forward)(const struct kernels *kernels, kernel_number *y, const kernel_number *x,
                           const kernel_number *w, const kernel_number *bias, int64_t m, int64_t n, int64_t k,
                           bool w_in_out);
    /* dx(m,k) = dy(m,n) w^T; accumulate adds to dx */
    void (*linear_input)(const struct kernels *kernels, kernel_number *dx, const kernel_number *dy,
                         const kernel_number *w, int64_t m, int64_t n, int64_t k, bool w_in_out, bool accumulate);
    /* dw = x^T dy in w's own layout; dbias(n) = column sums of dy; either may be NULL: none. `add`: a sum of
     * LINEAR_ADD_... */
    void (*linear_weight)(const struct kernels *kernels, float *dw, float *dbias, const kernel_number *dy,
                          const kernel_number *x, int64_t m, int64_t n, int64_t k, bool w_in_out,
                          uint32_t add);

    /* x(R,C) = table[token] + positions[t]. `rows` holds rows [first_row, first_row + row_count) of the (V + P)
     * rows of table and positions. The call that has row 0 sets x, later calls add to it. */
    void (*embed_forward)(const struct kernels *kernels, kernel_number *x, const kernel_number *rows,
                          const int32_t *tokens, int64_t token_stride, int64_t b, int64_t t,
                          int64_t c, int64_t v, int64_t first_row, int64_t row_count);
    /* One optimizer step on a range of rows, which starts at first_row: gradient = scattered dx, added in token
     * order, + head (may be NULL; only rows of the token table); the row of rows->padded takes no terms of dx. `parts`
     * above 1: in token order in each of that many equal parts of the samples, whose sums are added as a balanced
     * tree. */
    void (*embed_update)(const struct kernels *kernels, const struct kernel_parameters *rows,
                         const float *head_gradient, const kernel_number *dx, const int32_t *tokens,
                         int64_t token_stride, int64_t b, int64_t t, int64_t c, int64_t v,
                         int64_t first_row, int64_t row_count, const struct job_optimizer *optimizer,
                         uint64_t step, int64_t parts, float *scratch);

    /* sum = x + y (y may be NULL: sum = x and is not written; sum may be y), out = norm(sum) * w + b,
     * stats(R,2) = mean, 1/std */
    void (*norm_forward)(const struct kernels *kernels, kernel_number *out, kernel_number *sum, float *stats,
                         const kernel_number *x, const kernel_number *y, const kernel_number *w,
                         const kernel_number *b, int64_t r, int64_t c, float epsilon);
    /* dx = gradient through the norm, plus `added` unless that is NULL; it may be dx itself. dw, db
     * written, unless NULL. dout must not be dx. */
    void (*norm_backward)(const struct kernels *kernels, kernel_number *dx, float *dw, float *db,
                          const kernel_number *dout, const kernel_number *x, const float *stats, const kernel_number *w,
                          const kernel_number *added, int64_t r, int64_t c);

    /* see exec/kernels/kernels_attention.h */
    bool attends_in_windows; /* attention takes a window */
    bool caps;               /* attention takes a scale and a cap of scores, and the loss a cap of logits */
    bool attends_in_rows;    /* attention and rope take rows' begins */
    bool freezes;            /* gradients of weights may be NULL, and are left out */
    void (*attention_forward)(const struct kernels *kernels, const struct kernel_attention *attention);
    void (*attention_backward)(const struct kernels *kernels, const struct kernel_attention *attention);
    /* Prepares attention of a shape (pointers ignored) before a run: no resources are allocated later, and the
     * implementation does not change. `by`, up to `size` bytes, names it. False: a faster one exists; `by` then
     * says why it is not used. NULL: there is only one. */
    bool (*prepare_attention)(const struct kernels *kernels, const struct kernel_attention *shape, char *by,
                              size_t size);

    void (*gelu_forward)(const struct kernels *kernels, kernel_number *y, const kernel_number *x, int64_t n,
                         bool tanh_form);
    /* dx = dy * gelu'(x); dx may be dy */
    void (*gelu_backward)(const struct kernels *kernels, kernel_number *dx, const kernel_number *dy,
                          const kernel_number *x, int64_t n, bool tanh_form);
    /* y = max(x, 0), and dx = dy where x > 0, else 0; dx may be dy */
    void (*relu_forward)(const struct kernels *kernels, kernel_number *y, const kernel_number *x, int64_t n);
    void (*relu_backward)(const struct kernels *kernels, kernel_number *dx, const kernel_number *dy,
                          const kernel_number *x, int64_t n);
    /* y(rows,c) = x with numbers dropped, t rows to a sample; y may be x. NULL: attention drops none, either */
    void (*dropout)(const struct kernels *kernels, kernel_number *y, const kernel_number *x, int64_t rows, int64_t t,
                    int64_t c, const struct kernel_dropout *dropout);
    /* z = x + y; z may be x or y */
    void (*residual)(const struct kernels *kernels, kernel_number *z, const kernel_number *x, const kernel_number *y,
                     int64_t n);
    /* the same of fp32, such as gradients of weights, in all kernels */
    void (*add)(const struct kernels *kernels, float *z, const float *x, const float *y, int64_t n);

    /* Replaces logits(rows.count,V) by the gradient of the minibatch's mean loss, of which a part's R rows are a share.
     * Adds these rows' share to *loss, which the first rows of part 0 set. */
    void (*loss)(const struct kernels *kernels, double *loss, float *logits, const int32_t *tokens,
                 int64_t token_stride, int64_t b, int64_t t, int64_t v, struct kernel_loss_rows rows);

    /* `step` counts from 1. */
    void (*update)(const struct kernels *kernels, const struct kernel_parameters *parameters,
                   const float *g, int64_t n, const struct job_optimizer *optimizer, bool decays,
                   uint64_t step);

    /* --- weights in bf16; logits and their products in all jobs of 16 bits ------------------ */

    /* to nearest, ties to even */
    void (*round)(const struct kernels *kernels, bf16 *out, const float *x, int64_t n);
    /* Both operands of the product are bf16; accumulation and result are fp32. */
    void (*linear_forward_bf16)(const struct kernels *kernels, float *y, const bf16 *x,
                                const bf16 *w, const kernel_number *bias, int64_t m, int64_t n, int64_t k,
                                bool w_in_out);
    void (*linear_input_bf16)(const struct kernels *kernels, float *dx, const bf16 *dy,
                              const bf16 *w, int64_t m, int64_t n, int64_t k, bool w_in_out,
                              bool accumulate);
    /* dbias: sum of dy before rounding */
    void (*linear_weight_bf16)(const struct kernels *kernels, float *dw, float *dbias,
                               const float *dy, const bf16 *dy_rounded, const bf16 *x, int64_t m,
                               int64_t n, int64_t k, bool w_in_out, uint32_t add);
    void (*embed_forward_bf16)(const struct kernels *kernels, kernel_number *x, const bf16 *rows,
                               const int32_t *tokens, int64_t token_stride, int64_t b, int64_t t,
                               int64_t c, int64_t v, int64_t first_row, int64_t row_count);

    void (*zero)(const struct kernels *kernels, void *at, uint64_t bytes);
    /* Copies rows of `width` numbers; rows begin to_row and from_row numbers apart. */
    void (*copy_rows)(const struct kernels *kernels, kernel_number *to, int64_t to_row, const kernel_number *from,
                      int64_t from_row, int64_t rows, int64_t width);
    /* *sum += *x */
    void (*add_double)(const struct kernels *kernels, double *sum, const double *x);

    /* --- gradients that are not applied at once, and clipping ------------------------------- */

    /* The gradient that embed_update would apply to its range of rows. `continues`: `gradient` has the sums of
     * earlier tokens, and the result those of all tokens (head_gradient NULL, parts 1). */
    void (*embed_gradient)(const struct kernels *kernels, float *gradient, bool continues,
                           const float *head_gradient, const kernel_number *dx, const int32_t *tokens,
                           int64_t token_stride, int64_t b, int64_t t, int64_t c, int64_t v,
                           int64_t first_row, int64_t row_count, int64_t padded, int64_t parts, float *scratch);
    /* *sum = the sum of squares, in an order that depends only on n; `adds`: it is added to *sum. */
    void (*squares)(const struct kernels *kernels, double *sum, const float *g, int64_t n, bool adds);
    void (*number_squares)(const struct kernels *kernels, double *sum, const kernel_number *x, int64_t n, bool adds);
    /* g is multiplied by `scale` */
    void (*update_scaled)(const struct kernels *kernels,
                          const struct kernel_parameters *parameters, const float *g, int64_t n,
                          const struct job_optimizer *optimizer, bool decays, uint64_t step,
                          float scale);

    /* --- llama ---------------------------------------------------------------------------- */

    /* without mean and bias: stats(R) = 1/rms */
    void (*rms_norm_forward)(const struct kernels *kernels, kernel_number *out, kernel_number *sum, float *stats,
                             const kernel_number *x, const kernel_number *y, const kernel_number *w, int64_t r,
                             int64_t c, float epsilon);
    /* dx = gradient through the norm, plus `added` unless that is NULL; it may be `added` or, without `added`, dout. dw
     * may be NULL: none. */
    void (*rms_norm_backward)(const struct kernels *kernels, kernel_number *dx, float *dw,
                              const kernel_number *dout, const kernel_number *x, const float *stats,
                              const kernel_number *w, const kernel_number *added, int64_t r, int64_t c);

    void (*rope)(const struct kernels *kernels, const struct kernel_rope *rope);
    bool turns_parts; /* rope takes rows apart, a part of each head, and adjacent pairs */

    /* y = silu(gate) up */
    void (*swiglu_forward)(const struct kernels *kernels, kernel_number *y, const kernel_number *gate,
                           const kernel_number *up, int64_t n);
    /* dgate may be dy */
    void (*swiglu_backward)(const struct kernels *kernels, kernel_number *dgate, kernel_number *dup,
                            const kernel_number *dy, const kernel_number *gate, const kernel_number *up, int64_t n);

    /* y = factor x; y may be x */
    void (*scale)(const struct kernels *kernels, kernel_number *y, const kernel_number *x, int64_t n, float factor);

    /* --- gemma, only by the host's processor ------------------------------------------------ */

    /* y = gelu(gate) up, in the tanh form */
    void (*geglu_forward)(const struct kernels *kernels, kernel_number *y, const kernel_number *gate,
                          const kernel_number *up, int64_t n);
    /* dgate may be dy */
    void (*geglu_backward)(const struct kernels *kernels, kernel_number *dgate, kernel_number *dup,
                           const kernel_number *dy, const kernel_number *gate, const kernel_number *up, int64_t n);

    /* --- experts (exec/kernels/kernels_experts.h), only by the host's processor ----------------- */

    /* Chooses experts by `probabilities`, which has the router's results, and fills in the rest. */
    void (*route)(const struct kernels *kernels, const struct kernel_routes *routes);
    /* d(R,E): gradients of the router's results, from those of the rows' weights dw(R,k) */
    void (*route_backward)(const struct kernels *kernels, kernel_number *d, const kernel_number *dw,
                           const struct kernel_routes *routes);
    /* sent(R k,C) = each place's row of x(R,C) */
    void (*send)(const struct kernels *kernels, kernel_number *sent, const kernel_number *x,
                 const struct kernel_routes *routes, int64_t c);
    /* out(R,C) = (adds: +=) the sum of a row's places of sent(R k,C), times its weights if `weighted` */
    void (*collect)(const struct kernels *kernels, kernel_number *out, const kernel_number *sent,
                    const struct kernel_routes *routes, int64_t c, bool weighted, bool adds);
    /* The gradients of a weighted sum: of its terms d_sent(R k,C), and of its weights dw(R,k), which alone needs
     * `returned`; either may be NULL. */
    void (*collect_backward)(const struct kernels *kernels, kernel_number *d_sent, kernel_number *dw,
                             const kernel_number *dout, const kernel_number *returned,
                             const struct kernel_routes *routes, int64_t c);
    /* out(R,C) += logistic(gate(R)) x(R,C) */
    void (*gate_rows)(const struct kernels *kernels, kernel_number *out, const kernel_number *x,
                      const kernel_number *gate, int64_t r, int64_t c);
    /* dx or dgate, which alone needs x, may be NULL */
    void (*gate_rows_backward)(const struct kernels *kernels, kernel_number *dx, kernel_number *dgate,
                               const kernel_number *dout, const kernel_number *x, const kernel_number *gate,
                               int64_t r, int64_t c);

    /* --- bert, vit ------------------------------------------------------------------------ */

    /* As loss, over rows whose label is not negative; other gradients are 0. labels(B,T), label_stride apart. The
     * loss is 0 if no row has a label. */
    void (*loss_labels)(const struct kernels *kernels, double *loss, float *logits,
                        const int32_t *labels, int64_t label_stride, int64_t b, int64_t t,
                        int64_t v, struct kernel_loss_rows rows);

    /* --- several devices ------------------------------------------------------------------ */

    /* Codes of fp32 numbers (exec/kernels/kernels_code.h), in place or apart. */
    void (*encode)(const struct kernels *kernels, enum compression_code code, void *out, const float *x, int64_t n);
    void (*decode)(const struct kernels *kernels, enum compression_code code, float *out, const void *from, int64_t n);

    /* Copy between host memory and the device's. to_host() waits for all calls so far and the copy; the caller keeps
     * what to_device() reads until the next to_host(). NULL: the host reads and writes the device's memory. */
    void (*to_host)(const struct kernels *kernels, void *host, const void *at, uint64_t bytes);
    void (*to_device)(const struct kernels *kernels, void *at, const void *host, uint64_t bytes);

    /* The loss in three steps, between which the devices take the maximum of `largest` and add up `sums` and
     * `at_target`: the largest logit of each row (minus infinity without words); the sum of exponentials of logits less
     * the largest, which replace the logits, and the target's logit less the largest, or 0 where it is another
     * device's; the gradient and the loss, as in `loss`. */
    void (*loss_largest)(const struct kernels *kernels, const struct kernel_loss_share *share);
    void (*loss_sums)(const struct kernels *kernels, const struct kernel_loss_share *share);
    void (*loss_gradient)(const struct kernels *kernels, double *loss, const struct kernel_loss_share *share);

    /* --- vit ------------------------------------------------------------------------------ */

    /* images(B,channels,image,image) -> out(B,N,channels,patch,patch), N = (image / patch)^2 patches
     * from left to right, then down. */
    void (*patches)(const struct kernels *kernels, kernel_number *out, const float *images, int64_t b,
                    int64_t channels, int64_t image, int64_t patch);
    /* x(B,T,C) = the class token(C), then patches(B,T-1,C), all + positions(T,C) */
    void (*join_forward)(const struct kernels *kernels, kernel_number *x, const kernel_number *patches,
                         const kernel_number *class_token, const kernel_number *positions, int64_t b, int64_t t,
                         int64_t c);
    /* gradients of all three from dx(B,T,C) */
    void (*join_backward)(const struct kernels *kernels, kernel_number *dpatches, float *dclass_token,
                          float *dpositions, const kernel_number *dx, int64_t b, int64_t t, int64_t c);
    /* out(B,C) = the first token of each sample of x(B,T,C) */
    void (*first_forward)(const struct kernels *kernels, kernel_number *out, const kernel_number *x, int64_t b,
                          int64_t t, int64_t c);
    /* dx(B,T,C): dout(B,C) for the first tokens, 0 for the others */
    void (*first_backward)(const struct kernels *kernels, kernel_number *dx, const kernel_number *dout, int64_t b,
                           int64_t t, int64_t c);
};

/* Returns the kernels of a job's numbers. */
static inline const struct kernels *kernels_of(const struct kernels *kernels, const struct job *job)
{
    return job->precision == PRECISION_BF16 ? kernels->half : kernels;
}

static inline void kernels_finish(const struct kernels *kernels)
{
    if (kernels->finish) kernels->finish(kernels);
}

/* Makes kernels for one compute stream. The caller frees them with kernels_host_destroy(). Errors: STATUS_DEVICE when
 * the matrix library fails its self-test. */
MUST_CHECK enum status kernels_host_create(uint32_t threads, struct kernels **out,
                                           struct error *err);
void kernels_host_destroy(struct kernels *kernels);

/* Makes the steps, squares and sums of all such kernels take turns, for dilated devices. */
void kernels_host_take_turns(struct kernels *kernels);

/* Called first on the thread that runs the kernels: sets its OpenMP team, which flushes subnormal numbers to zero. */
void kernels_host_attach(const struct kernels *kernels);
/* Ends the calling thread's team, until kernels_host_attach() is called again (exec/device/environment.c says why). */
void kernels_host_detach(void);

/* Returns "oneDNN 2.6.3 (avx512_core), 2 threads, 215 GFLOP/s in a product of 512^3" for the kernels created last,
 * with a warning when that is slow. Borrowed by the calling thread until its next call. */
const char *kernels_host_text(void);
/* Returns the library and the instruction set, on which bits depend. As kernels_host_text(). */
const char *kernels_host_machine(void);

/* Multiplies and adds in registers. */
enum { KERNELS_PEAK_FLOPS = 5120000 };
float kernels_peak_loop(float factor);

#endif
