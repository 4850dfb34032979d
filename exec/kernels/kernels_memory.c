/* Memory as bytes, single numbers in it, and codes of numbers. */
#include "exec/kernels/kernels_code.h"
#include "exec/kernels/kernels_host.h"

void host_zero(const struct kernels *kernels, void *at, uint64_t bytes)
{
    (void)kernels;
    memset(at, 0, bytes);
}

void host_add_double(const struct kernels *kernels, double *sum, const double *x)
{
    (void)kernels;
    *sum += *x;
}

void host_encode(const struct kernels *kernels, enum compression_code code, void *out, const float *x, int64_t n)
{
    (void)kernels;
    kernels_encode(code, out, x, (uint64_t)n);
}

void host_decode(const struct kernels *kernels, enum compression_code code, float *out, const void *from, int64_t n)
{
    (void)kernels;
    kernels_decode(code, out, from, (uint64_t)n);
}
