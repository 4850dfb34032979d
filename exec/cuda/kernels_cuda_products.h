/*
 * Matrix products on a CUDA stream, column-major as the library has them: C(m,n) = op(A) op(B), plus
 * a bias for each row of C, or plus C.
 */
#ifndef SPILLWAY_EXEC_KERNELS_CUDA_PRODUCTS_H
#define SPILLWAY_EXEC_KERNELS_CUDA_PRODUCTS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct cuda_products;

struct cuda_product {
    int64_t m, n, k;
    const void *a, *b;   /* fp32, or bf16 */
    float *c;            /* (m,n), columns m apart */
    const float *bias;   /* m numbers; NULL: none */
    bool transpose_a;    /* A is stored (k,m) instead of (m,k), columns k apart */
    bool transpose_b;    /* B is stored (n,k) instead of (k,n) */
    bool accumulate;     /* C += ...; not together with a bias */
    bool bf16;           /* A and B are; sums, bias and C are fp32 in any case */
};

/* workspace: device memory that belongs to the stream. The caller destroys it. Errors:
 * STATUS_NO_MEMORY, STATUS_DEVICE. */
MUST_CHECK enum status cuda_products_create(cudaStream_t stream, bool tf32, void *workspace,
                                            uint64_t workspace_bytes, struct cuda_products **out,
                                            struct error *err);
void cuda_products_destroy(struct cuda_products *products); /* NULL is fine */

/* NULL, or what the library says is wrong. */
const char *cuda_products_multiply(struct cuda_products *products,
                                   const struct cuda_product *product);

/* Of the library: 130100 is 13.1.0. */
uint32_t cuda_products_version(void);

/* Descriptors and layouts for a product, made and forgotten: what can be tried without a device.
 * NULL, or what is wrong. */
const char *cuda_products_describe(const struct cuda_product *product, bool tf32);

#endif
