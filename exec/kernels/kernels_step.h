/* Operands and coefficients of an optimizer step. */
#ifndef SPILLWAY_EXEC_KERNELS_KERNELS_STEP_H
#define SPILLWAY_EXEC_KERNELS_KERNELS_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bf16.h"

struct job_optimizer;

#ifdef __cplusplus
extern "C" {
#endif

/* Coefficients, computed once in double for every back end. */
struct kernel_step {
    uint32_t kind; /* enum optimizer_kind */
    bool moments_bf16; /* rounded at random */
    float rate;    /* sgd, momentum: lr; adamw: lr / (1 - beta1^step) */
    float keep;    /* sgd, momentum: weight decay; adamw: 1 - lr * weight decay */
    float beta1, rest1, beta2, rest2; /* rest = 1 - beta. momentum: beta1 is the momentum, rest1 and beta2 the shares
                                         of gradient and sum in the step */
    float inverse_root; /* 1 / sqrt(1 - beta2^step) */
    float epsilon;
};

/* The parts of their state may be anywhere. */
struct kernel_parameters {
    float *p;      /* the weights, or the fp32 master of ... */
    bf16 *rounded; /* ... bf16 weights, rounded from it; may be NULL */
    void *m, *v;   /* adamw's moments; momentum's sums are m; else NULL. Format: struct job_optimizer's `moments` */
    uint64_t key;  /* key of the random bits that round bf16 moments (base/bf16.h) */
    uint64_t place; /* the first parameter's number in the layer, which its random bits depend on */
    int64_t padded; /* embed_update: 1 + the token without gradient from lookups; 0: none */
};

/* Returns the parameters from the n-th on. */
static inline struct kernel_parameters kernel_parameters_from(struct kernel_parameters parameters,
                                                              int64_t n, bool moments_bf16)
{
    const int64_t bytes = n * (moments_bf16 ? (int64_t)sizeof(bf16) : (int64_t)sizeof(float));
    parameters.p += n;
    if (parameters.rounded) parameters.rounded += n;
    if (parameters.m) parameters.m = (char *)parameters.m + bytes;
    if (parameters.v) parameters.v = (char *)parameters.v + bytes;
    parameters.place += (uint64_t)n;
    return parameters;
}

struct kernel_step kernel_step_of(const struct job_optimizer *optimizer, bool decays, uint64_t step);

#ifdef __cplusplus
}
#endif

#endif
