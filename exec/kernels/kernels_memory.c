/* Memory as bytes, and single numbers in it. */
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
