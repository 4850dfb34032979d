/*
 * Matrix products on a CUDA stream, column-major as in the library: C(m,n) = op(A) op(B), plus a
 * bias for each row of C, or plus C.
 */
#ifndef SPILLWAY_EXEC_CUDA_KERNELS_CUDA_PRODUCTS_H
#define SPILLWAY_EXEC_CUDA_KERNELS_CUDA_PRODUCTS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct cuda_products;

struct cuda_product {
    int64_t m, n, k;
    const void *a, *b;   /* fp32, or bf16 */
    float *c;            /* (m,n), columns m apart */
    const float *bias;   /* m numbers; may be NULL */
    bool transpose_a;    /* A is stored (k,m) instead of (m,k), columns k apart */
    bool transpose_b;    /* B is stored (n,k) instead of (k,n) */
    bool accumulate;     /* not together with a bias */
    bool bf16;           /* of A and B; sums, bias and C are fp32 */
};

/* Creates products. `workspace`: device memory that belongs to the stream. The caller destroys
 * them. Errors: STATUS_DEVICE. */
MUST_CHECK enum status cuda_products_create(cudaStream_t stream, bool tf32, void *workspace,
                                            uint64_t workspace_bytes, struct cuda_products **out,
                                            struct error *err);
void cuda_products_destroy(struct cuda_products *products); /* NULL does nothing */

/* Returns NULL, or the library's error text. */
const char *cuda_products_multiply(struct cuda_products *products,
                                   const struct cuda_product *product);

/* Returns 130100 for 13.1.0; 0: it cannot be loaded. */
uint32_t cuda_products_version(void);

/* Makes and frees a product's descriptors, without a device. Returns NULL, or an error text. */
const char *cuda_products_describe(const struct cuda_product *product, bool tf32);

#endif
