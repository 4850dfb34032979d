/*
 * Optimizer steps: AdamW as PyTorch's (decoupled decay, epsilon outside the root), SGD, and SGD with
 * momentum as PyTorch's (without dampening, the learning rate outside the sum).
 *
 *     adamw     p = p (1 - lr wd);  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
 *               p = p - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + epsilon)
 *     sgd       p = p - lr (g + wd p)
 *     momentum  d = g + wd p;  m = mu m + d;  p = p - lr m, or with Nesterov's p - lr (d + mu m)
 *
 * Memory limits the speed: AdamW moves 28 bytes per parameter (16 read, 12 written), momentum 20, SGD 12; at 40 GB/s
 * the 124 million parameters of GPT-2 take 87 ms. Leaves take whole chunks; a padded tail goes through the same code.
 *
 * With bf16 state or clipping, a step goes by pieces through the stack: moments are widened and gradients scaled
 * before each piece, moments are rounded at random and weights to nearest after it. Memory moves no more bytes. A
 * moment's random bits depend on job, step, layer and place in the layer, not on blocks or slices; their lower half
 * rounds the first moment, the upper half the second.
 *
 * Clipping: the norm of all gradients is the root of their tensors' sums of squares (kernels_squares.c). A scaled
 * gradient (g s) is rounded once, as in torch.nn.utils.clip_grad_norm_().
 *
 * Sources: Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019; the order of operations is
 * torch.optim. AdamW's. Sutskever et al., "On the importance of initialization and momentum in deep learning", ICML
 * 2013; torch.optim.SGD.
 */
#include "exec/kernels/kernels_host.h"

#include <assert.h>
#include <math.h>

enum { STEP_PIECE = 4096 };

/* --- leaves ----------------------------------------------------------------------------------- */

CLONES static void adamw_chunks(const struct kernel_step *step, float *restrict p,
                                     float *restrict m, float *restrict v, const float *restrict g,
                                     int64_t chunks)
{
    const struct kernel_step s = *step;
    for (int64_t i = 0; i < chunks * HOST_CHUNK; i++) {
        float first = s.beta1 * m[i] + s.rest1 * g[i];
        float second = s.beta2 * v[i] + s.rest2 * (g[i] * g[i]);
        m[i] = first;
        v[i] = second;
        float root = sqrtf(second) * s.inverse_root + s.epsilon;
        p[i] = p[i] * s.keep - s.rate * (first / root);
    }
}

CLONES static void sgd_chunks(const struct kernel_step *step, float *restrict p,
                                   const float *restrict g, int64_t chunks)
{
    const struct kernel_step s = *step;
    for (int64_t i = 0; i < chunks * HOST_CHUNK; i++) p[i] -= s.rate * (g[i] + s.keep * p[i]);
}

CLONES static void momentum_chunks(const struct kernel_step *step, float *restrict p,
                                   float *restrict m, const float *restrict g, int64_t chunks)
{
    const struct kernel_step s = *step;
    for (int64_t i = 0; i < chunks * HOST_CHUNK; i++) {
        float decayed = g[i] + s.keep * p[i];
        float sum = s.beta1 * m[i] + decayed;
        m[i] = sum;
        p[i] -= s.rate * (s.rest1 * decayed + s.beta2 * sum);
    }
}

/* --- steps ------------------------------------------------------------------------------------ */

struct kernel_step kernel_step_of(const struct job_optimizer *o, bool decays, uint64_t step)
{
    assert(step > 0);
    double decay = decays || o->decay == DECAY_ALL ? o->weight_decay : 0;
    struct kernel_step s = {.kind = o->kind, .moments_bf16 = o->moments == PRECISION_BF16};
    if (o->kind != OPTIMIZER_ADAMW) {
        s.rate = (float)o->learning_rate;
        s.keep = (float)decay;
        s.beta1 = (float)o->momentum;
        s.rest1 = o->nesterov ? 1 : 0;
        s.beta2 = o->nesterov ? (float)o->momentum : 1;
        return s;
    }
    s.rate = (float)(o->learning_rate / (1 - pow(o->beta1, (double)step)));
    s.keep = (float)(1 - o->learning_rate * decay);
    s.beta1 = (float)o->beta1;
    s.rest1 = (float)(1 - o->beta1);
    s.beta2 = (float)o->beta2;
    s.rest2 = (float)(1 - o->beta2);
    s.inverse_root = (float)(1 / sqrt(1 - pow(o->beta2, (double)step)));
    s.epsilon = (float)o->epsilon;
    return s;
}

static void apply_chunks(const struct kernel_step *step, float *p, float *m, float *v, const float *g, int64_t chunks)
{
    switch ((enum optimizer_kind)step->kind) {
    case OPTIMIZER_SGD: sgd_chunks(step, p, g, chunks); break;
    case OPTIMIZER_ADAMW: adamw_chunks(step, p, m, v, g, chunks); break;
    case OPTIMIZER_MOMENTUM: momentum_chunks(step, p, m, g, chunks); break;
    case OPTIMIZER_COUNT: assert(false);
    }
}

/* `m` and `v` are NULL for optimizers without them. */
static void apply_fp32(const struct kernel_step *step, float *p, float *m, float *v, const float *g,
                       int64_t n)
{
    const int64_t rest = n % HOST_CHUNK, last = n - rest;
    apply_chunks(step, p, m, v, g, n / HOST_CHUNK);
    if (rest == 0) return;
    const size_t bytes = (size_t)rest * sizeof *p;
    float tail_p[HOST_CHUNK] = {0}, tail_m[HOST_CHUNK] = {0}, tail_v[HOST_CHUNK] = {0}, tail_g[HOST_CHUNK] = {0};
    memcpy(tail_p, p + last, bytes);
    memcpy(tail_g, g + last, bytes);
    if (m) memcpy(tail_m, m + last, bytes);
    if (v) memcpy(tail_v, v + last, bytes);
    apply_chunks(step, tail_p, tail_m, tail_v, tail_g, 1);
    memcpy(p + last, tail_p, bytes);
    if (m) memcpy(m + last, tail_m, bytes);
    if (v) memcpy(v + last, tail_v, bytes);
}

/* --- steps through the stack ------------------------------------------------------------------ */

CLONES static void scale_piece(float *restrict out, const float *restrict g, float scale, int64_t n)
{
    for (int64_t i = 0; i < n; i++) out[i] = g[i] * scale;
}

/* Places count from `place`; each number is rounded by the random bits above `shift`. */
CLONES static void round_piece_at_random(bf16 *restrict out, const float *restrict x, int64_t n,
                                         uint64_t key, uint64_t place, uint32_t shift)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = bf16_random(x[i], bf16_draw(key, place + (uint64_t)i) >> shift & 0xffffu);
}

/* Steps at most STEP_PIECE parameters. */
static void piece_apply(const struct kernel_step *step, const struct kernel_parameters *piece,
                        const float *g, int64_t n, float scale)
{
    float scaled[STEP_PIECE], first[STEP_PIECE], second[STEP_PIECE];
    float *m = piece->m, *v = piece->v;
    if (!(scale >= 1)) { /* or not a number */
        scale_piece(scaled, g, scale, n);
        g = scaled;
    }
    if (m && step->moments_bf16) host_widen_row(m = first, piece->m, n);
    if (v && step->moments_bf16) host_widen_row(v = second, piece->v, n);
    apply_fp32(step, piece->p, m, v, g, n);
    if (m == first) round_piece_at_random(piece->m, first, n, piece->key, piece->place, 0);
    if (v == second) round_piece_at_random(piece->v, second, n, piece->key, piece->place, 16);
    if (piece->rounded) host_round_row(piece->rounded, piece->p, n);
}

void host_step_apply(const struct kernel_step *step, const struct kernel_parameters *parameters,
                     int64_t at, const float *g, int64_t n, float scale)
{
    if (scale >= 1 && !step->moments_bf16 && !parameters->rounded) {
        float *const m = parameters->m, *const v = parameters->v;
        apply_fp32(step, parameters->p + at, m ? m + at : NULL, v ? v + at : NULL, g, n);
        return;
    }
    for (int64_t done = 0; done < n; done += STEP_PIECE) {
        const struct kernel_parameters piece =
            kernel_parameters_from(*parameters, at + done, step->moments_bf16);
        piece_apply(step, &piece, g + done, host_min(STEP_PIECE, n - done), scale);
    }
}

void host_update_scaled(const struct kernels *kernels, const struct kernel_parameters *parameters,
                        const float *g, int64_t n, const struct job_optimizer *optimizer, bool decays,
                        uint64_t step, float scale)
{
    assert(parameters->m || optimizer_moments(optimizer->kind) < 1);
    assert(parameters->v || optimizer_moments(optimizer->kind) < 2);
    struct kernel_step coefficients = kernel_step_of(optimizer, decays, step);
    int64_t blocks = host_blocks(n, HOST_BLOCK);
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (n > HOST_SERIAL)
    for (int64_t block = 0; block < blocks; block++) {
        int64_t first = block * HOST_BLOCK;
        host_step_apply(&coefficients, parameters, first, g + first,
                        host_min(HOST_BLOCK, n - first), scale);
    }
}

void host_update(const struct kernels *kernels, const struct kernel_parameters *parameters,
                 const float *g, int64_t n, const struct job_optimizer *optimizer, bool decays,
                 uint64_t step)
{
    host_update_scaled(kernels, parameters, g, n, optimizer, decays, step, 1);
}
