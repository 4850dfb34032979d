/* Products of bf16 operands with fp32 results (kernels_bf16.c); included only by exec/kernels. */
#ifndef SPILLWAY_EXEC_KERNELS_KERNELS_BF16_H
#define SPILLWAY_EXEC_KERNELS_KERNELS_BF16_H

#include "exec/kernels/kernels_host.h"

/* A matrix row by row. */
struct kernels_bf16_operand {
    const bf16 *x;
    int64_t columns;
    bool transposed; /* op(X) is the transpose of the stored matrix */
};

struct kernels_bf16_product {
    int64_t m, n, k;
    struct kernels_bf16_operand a, b; /* op(A) is (m,k), op(B) is (k,n) */
    float *c;                         /* (m,n) */
    bool accumulate;
};

/* Computes c = op(A) op(B), or adds it to c. */
void kernels_bf16_multiply(const struct kernels *kernels, const struct kernels_bf16_product *product);

#endif
