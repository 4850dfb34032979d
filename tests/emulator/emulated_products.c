/* A stand-in for exec/cuda/kernels_cuda_products.c: plain loops over the same descriptions. */
#include <stdlib.h>

#include "base/bf16.h"
#include "exec/cuda/kernels_cuda_products.h"

struct cuda_products {
    cudaStream_t stream;
};

enum status cuda_products_create(cudaStream_t stream, bool tf32, void *workspace,
                                 uint64_t workspace_bytes, struct cuda_products **out,
                                 struct error *err)
{
    (void)tf32, (void)workspace, (void)workspace_bytes;
    *out = calloc(1, sizeof **out);
    if (!*out) return error_memory(err, "products", sizeof **out);
    (*out)->stream = stream;
    return STATUS_OK;
}

void cuda_products_destroy(struct cuda_products *products)
{
    free(products);
}

static double number(const void *operand, bool rounded, int64_t i)
{
    return (double)(rounded ? bf16_widen(((const bf16 *)operand)[i]) : ((const float *)operand)[i]);
}

static void multiply(void *argument)
{
    struct cuda_product *const p = argument;
    for (int64_t column = 0; column < p->n; column++)
        for (int64_t row = 0; row < p->m; row++) {
            double sum = p->bias ? (double)p->bias[row] : 0;
            if (p->accumulate) sum += (double)p->c[column * p->m + row];
            for (int64_t i = 0; i < p->k; i++)
                sum += number(p->a, p->bf16, p->transpose_a ? row * p->k + i : i * p->m + row) *
                       number(p->b, p->bf16,
                              p->transpose_b ? i * p->n + column : column * p->k + i);
            p->c[column * p->m + row] = (float)sum;
        }
    free(p);
}

const char *cuda_products_multiply(struct cuda_products *products, const struct cuda_product *p)
{
    struct cuda_product *const copy = malloc(sizeof *copy);
    if (!copy) return "no memory";
    *copy = *p;
    cudaLaunchHostFunc(products->stream, multiply, copy);
    return NULL;
}

uint32_t cuda_products_version(void)
{
    return 0;
}

const char *cuda_products_describe(const struct cuda_product *product, bool tf32)
{
    (void)product, (void)tf32;
    return NULL;
}
