/* Products of bf16 operands by oneDNN, on processors with a matrix unit (AMX). */
#ifndef SPILLWAY_EXEC_KERNELS_KERNELS_BF16_LIBRARY_H
#define SPILLWAY_EXEC_KERNELS_KERNELS_BF16_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bf16.h"

/* c(m,n) = op(A) op(B) + bias, or added to c; op(A) is (m,k), op(B) is (k,n). Rows are without gaps in what is stored.
 * The result is in fp32 or, rounded once, in bf16. */
struct kernels_bf16_library_product {
    int64_t m, n, k;
    bool transpose_a, transpose_b, accumulate;
    const bf16 *a, *b;
    const bf16 *bias; /* (n); may be NULL */
    float *c;         /* NULL if the result is bf16 */
    bf16 *rounded;    /* NULL if the result is fp32 */
};

struct kernels_bf16_library;

/* Returns NULL where the processor has no such unit, or without memory. */
struct kernels_bf16_library *kernels_bf16_library_create(void);
void kernels_bf16_library_destroy(struct kernels_bf16_library *library);

/* Multiplies on the calling thread's team. Not for several threads at once. Returns false, with c as it was, if the
 * library has no memory for it. Equal shapes on teams of equal size give equal bits. */
bool kernels_bf16_library_multiply(struct kernels_bf16_library *library,
                                   const struct kernels_bf16_library_product *product);

#endif
