/* What an optimizer step works on, and its coefficients: worked out on the host, in double, for every
 * back end. */
#ifndef SPILLWAY_EXEC_KERNELS_STEP_H
#define SPILLWAY_EXEC_KERNELS_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bf16.h"

struct optimizer;

#ifdef __cplusplus
extern "C" {
#endif

/* An optimizer step's coefficients, worked out once in double. */
struct host_step {
    uint32_t kind; /* enum optimizer_kind */
    bool moments_bf16; /* they are rounded at random */
    float rate;    /* sgd, momentum: lr; adamw: lr / (1 - beta1^step) */
    float keep;    /* sgd, momentum: weight decay; adamw: 1 - lr * weight decay */
    float beta1, rest1, beta2, rest2; /* rest = 1 - beta. momentum: beta1 is the momentum, rest1
                                          and beta2 the shares of gradient and sum in the step */
    float inverse_root; /* 1 / sqrt(1 - beta2^step) */
    float epsilon;
};

/* Parameters that are stepped, wherever the parts of their state lie. */
struct kernel_parameters {
    float *p;      /* values: the weights themselves, or the fp32 master of ... */
    bf16 *rounded; /* ... weights in bf16, rounded from it to nearest; NULL: there are none */
    void *m, *v;   /* adamw's first and second moments; momentum's sums are m; NULL where a kind has
                      none. Numbers as struct optimizer's `moments` says */
    uint64_t key;  /* of the bits that round moments in bf16 at random (base/bf16.h): of job, step and
                      layer */
    uint64_t place; /* the first parameter's number within the layer: its bits', so that they do not
                       depend on where a range begins */
    int64_t padded; /* embed_update: 1 + the token whose row takes no gradient from lookups; 0: none */
};

/* The parameters from the n-th on. */
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

struct host_step host_step_of(const struct optimizer *optimizer, bool decays, uint64_t step);

#ifdef __cplusplus
}
#endif

#endif
