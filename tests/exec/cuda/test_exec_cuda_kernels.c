/*
 * Every kernel of the CUDA back end against the references of support_kernels.c.
 *
 * Kernels work on the device's memory and the cases on the host's pool, so the table that the cases
 * see copies the pool to the device, calls, and copies it back, each time.
 */
#define KERNELS_NUMBER float
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/device/backend.h"
#include "tests/support/exec/support_cuda.h"
#include "tests/support/kernels/support_kernels.h"

#ifndef SPILLWAY_CUDA

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(support_cuda_left_out)};
    return cmocka_run_group_tests_name("CUDA kernels", tests, NULL, NULL);
}

#else

#include "exec/cuda/kernels_cuda.h"

static cudaStream_t stream;
static struct kernels *inner;
static char *mirror;

static void enter(void)
{
    uint64_t bytes;
    const float *const pool = test_kernels_pool(&bytes);
    support_check_cuda(cudaMemcpy(mirror, pool, bytes, cudaMemcpyHostToDevice));
}

static void leave(void)
{
    uint64_t bytes;
    float *const pool = test_kernels_pool(&bytes);
    inner->finish(inner);
    const char *const failed = kernels_cuda_failure(inner);
    if (failed) fail_msg("%s", failed);
    support_check_cuda(cudaMemcpy(pool, mirror, bytes, cudaMemcpyDeviceToHost));
}

/* Returns the operand's place on the device. */
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
                             const struct job_optimizer *optimizer, uint64_t step, int64_t parts,
                             float *scratch)
{
    (void)k;
    enter();
    const struct kernel_parameters far = far_parameters(*rows);
    inner->embed_update(inner, &far, there(head_gradient), there(dx), there(tokens), token_stride, b, t, c, v,
                        first_row, row_count, optimizer, step, parts, there(scratch));
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

static struct kernel_attention far_attention(const struct kernel_attention *attention)
{
    struct kernel_attention far = *attention;
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

static void far_attention_forward(const struct kernels *k, const struct kernel_attention *attention)
{
    (void)k;
    const struct kernel_attention far = far_attention(attention);
    enter();
    inner->attention_forward(inner, &far);
    leave();
}

static void far_attention_backward(const struct kernels *k, const struct kernel_attention *attention)
{
    (void)k;
    const struct kernel_attention far = far_attention(attention);
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

static void far_relu_forward(const struct kernels *k, float *y, const float *x, int64_t n)
{
    (void)k;
    enter();
    inner->relu_forward(inner, there(y), there(x), n);
    leave();
}

static void far_relu_backward(const struct kernels *k, float *dx, const float *dy, const float *x, int64_t n)
{
    (void)k;
    enter();
    inner->relu_backward(inner, there(dx), there(dy), there(x), n);
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
                     int64_t token_stride, int64_t b, int64_t t, int64_t v, struct kernel_loss_rows rows)
{
    (void)k;
    enter();
    inner->loss(inner, there(loss), there(logits), there(tokens), token_stride, b, t, v, rows);
    leave();
}

static void far_update(const struct kernels *k, const struct kernel_parameters *parameters,
                       const float *g, int64_t n, const struct job_optimizer *optimizer, bool decays,
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

static void far_rope(const struct kernels *kernels, const struct kernel_rope *rope)
{
    struct kernel_rope far = *rope;
    far.q = there(rope->q);
    far.k = there(rope->k);
    (void)kernels;
    enter();
    inner->rope(inner, &far);
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
                            int64_t v, struct kernel_loss_rows rows)
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

static void far_update_scaled(const struct kernels *k, const struct kernel_parameters *parameters,
                              const float *g, int64_t n, const struct job_optimizer *optimizer, bool decays,
                              uint64_t step, float scale)
{
    (void)k;
    const struct kernel_parameters far = far_parameters(*parameters);
    enter();
    inner->update_scaled(inner, &far, there(g), n, optimizer, decays, step, scale);
    leave();
}

static void far_embed_gradient(const struct kernels *k, float *gradient, bool continues, const float *head_gradient,
                               const float *dx, const int32_t *tokens, int64_t token_stride, int64_t b, int64_t t,
                               int64_t c, int64_t v, int64_t first_row, int64_t row_count, int64_t padded,
                               int64_t parts, float *scratch)
{
    (void)k;
    enter();
    inner->embed_gradient(inner, there(gradient), continues, there(head_gradient), there(dx), there(tokens),
                          token_stride, b, t, c, v, first_row, row_count, padded, parts, there(scratch));
    leave();
}

static void far_squares(const struct kernels *k, double *sum, const float *g, int64_t n, bool adds)
{
    (void)k;
    enter();
    inner->squares(inner, there(sum), there(g), n, adds);
    leave();
}

static void far_copy_rows(const struct kernels *k, float *to, int64_t to_row, const float *from, int64_t from_row,
                          int64_t rows, int64_t width)
{
    (void)k;
    enter();
    inner->copy_rows(inner, there(to), to_row, there(from), from_row, rows, width);
    leave();
}

static void far_add_double(const struct kernels *k, double *sum, const double *x)
{
    (void)k;
    enter();
    inner->add_double(inner, there(sum), there(x));
    leave();
}

static void far_encode(const struct kernels *k, enum compression_code code, void *out, const float *x, int64_t n)
{
    (void)k;
    enter();
    inner->encode(inner, code, there(out), there(x), n);
    leave();
}

static void far_decode(const struct kernels *k, enum compression_code code, float *out, const void *from, int64_t n)
{
    (void)k;
    enter();
    inner->decode(inner, code, there(out), there(from), n);
    leave();
}

static struct kernel_loss_share far_share(const struct kernel_loss_share *share)
{
    struct kernel_loss_share far = *share;
    far.logits = there(share->logits);
    far.labels = there(share->labels);
    far.largest = there(share->largest);
    far.sums = there(share->sums);
    far.at_target = there(share->at_target);
    return far;
}

static void far_loss_largest(const struct kernels *k, const struct kernel_loss_share *share)
{
    (void)k;
    const struct kernel_loss_share far = far_share(share);
    enter();
    inner->loss_largest(inner, &far);
    leave();
}

static void far_loss_sums(const struct kernels *k, const struct kernel_loss_share *share)
{
    (void)k;
    const struct kernel_loss_share far = far_share(share);
    enter();
    inner->loss_sums(inner, &far);
    leave();
}

static void far_loss_gradient(const struct kernels *k, double *loss, const struct kernel_loss_share *share)
{
    (void)k;
    const struct kernel_loss_share far = far_share(share);
    enter();
    inner->loss_gradient(inner, there(loss), &far);
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
    .relu_forward = far_relu_forward,
    .relu_backward = far_relu_backward,
    .residual = far_residual,
    .loss = far_loss,
    .update = far_update,
    .update_scaled = far_update_scaled,
    .embed_gradient = far_embed_gradient,
    .squares = far_squares,
    .copy_rows = far_copy_rows,
    .add_double = far_add_double,
    .encode = far_encode,
    .decode = far_decode,
    .loss_largest = far_loss_largest,
    .loss_sums = far_loss_sums,
    .loss_gradient = far_loss_gradient,
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

int main(void)
{
    const struct CMUnitTest kernels[] = {KERNEL_CASES(KERNEL_CASE_TEST)};
    uint32_t count;
    struct error err = {0};
    if (backend_find("cuda")->count(&count, &err) == STATUS_OK)
        return cmocka_run_group_tests_name("CUDA kernels", kernels, open_kernels, close_kernels);
    print_message("skipped, all kernels: %s\n", err.text);
    return 0;
}

#endif
