/*
 * The optimizer step of one parameter: for the tensors of a layer (kernels_cuda_elementwise.cu) and the
 * rows of tables (kernels_cuda_embed.cu).
 *
 * Formulas and random bits are as on the host (kernels_update.c, base/bf16.h).
 */
#ifndef SPILLWAY_EXEC_CUDA_KERNELS_CUDA_STEP_CUH
#define SPILLWAY_EXEC_CUDA_KERNELS_CUDA_STEP_CUH

#include "exec/kernels/kernels_step.h"

/* 0 for numbers that its kind does not have */
struct step_numbers {
    float p, m, v;
};

__device__ static inline float step_moment(const void *moments, int64_t i, bool rounded)
{
    if (!moments) return 0.0f;
    return rounded ? bf16_widen(((const bf16 *)moments)[i]) : ((const float *)moments)[i];
}

__device__ static inline struct step_numbers step_load(const struct kernel_parameters &parameters,
                                                       int64_t i, const struct kernel_step &s)
{
    struct step_numbers x;
    x.p = parameters.p[i];
    x.m = step_moment(parameters.m, i, s.moments_bf16);
    x.v = step_moment(parameters.v, i, s.moments_bf16);
    return x;
}

__device__ static inline void step_store(const struct kernel_parameters &parameters, int64_t i,
                                         const struct step_numbers &x, const struct kernel_step &s)
{
    parameters.p[i] = x.p;
    if (parameters.rounded) parameters.rounded[i] = bf16_nearest(x.p);
    if (s.moments_bf16) {
        const uint32_t random = bf16_draw(parameters.key, parameters.place + (uint64_t)i);
        if (parameters.m) ((bf16 *)parameters.m)[i] = bf16_random(x.m, random & 0xffffu);
        if (parameters.v) ((bf16 *)parameters.v)[i] = bf16_random(x.v, random >> 16);
        return;
    }
    if (parameters.m) ((float *)parameters.m)[i] = x.m;
    if (parameters.v) ((float *)parameters.v)[i] = x.v;
}

/* Returns a clipped gradient. The product is rounded by itself, so that a factor of 1 changes no bit. */
__device__ static inline float step_scaled(float g, float scale)
{
    return __fmul_rn(g, scale);
}

/* The moments determine the kind of optimizer. */
__device__ static inline void step_apply(struct step_numbers *x, float g, bool has_m, bool has_v,
                                         const struct kernel_step &s)
{
    if (!has_m) {
        x->p = x->p - s.rate * (g + s.keep * x->p);
    } else if (!has_v) {
        const float decayed = g + s.keep * x->p;
        x->m = s.beta1 * x->m + decayed;
        x->p = x->p - s.rate * (s.rest1 * decayed + s.beta2 * x->m);
    } else {
        x->m = s.beta1 * x->m + s.rest1 * g;
        x->v = s.beta2 * x->v + s.rest2 * (g * g);
        const float root = sqrtf(x->v) * s.inverse_root + s.epsilon;
        x->p = x->p * s.keep - s.rate * (x->m / root);
    }
}

#endif
