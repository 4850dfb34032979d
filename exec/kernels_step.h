/* The coefficients of an optimizer step: worked out on the host, in double, for every back end. */
#ifndef SPILLWAY_EXEC_KERNELS_STEP_H
#define SPILLWAY_EXEC_KERNELS_STEP_H

#include <stdbool.h>
#include <stdint.h>

struct optimizer;

#ifdef __cplusplus
extern "C" {
#endif

/* An optimizer step's coefficients, worked out once in double. */
struct host_step {
    uint32_t kind; /* enum optimizer_kind */
    float rate;    /* sgd, momentum: lr; adamw: lr / (1 - beta1^step) */
    float keep;    /* sgd, momentum: weight decay; adamw: 1 - lr * weight decay */
    float beta1, rest1, beta2, rest2; /* rest = 1 - beta. momentum: beta1 is the momentum, rest1
                                          and beta2 the shares of gradient and sum in the step */
    float inverse_root; /* 1 / sqrt(1 - beta2^step) */
    float epsilon;
};
struct host_step host_step_of(const struct optimizer *optimizer, bool decays, uint64_t step);

#ifdef __cplusplus
}
#endif

#endif
