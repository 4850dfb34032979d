#include "exec/kernels/kernels_sum.h"

#include "base/clones.h"

enum { LINE_FLOATS = 16 };

CLONES void kernels_sum_add(float *restrict sum, const float *x, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) sum[i] += x[i];
}

uint64_t kernels_sum_slice(uint64_t count, uint32_t member, uint32_t members)
{
    const uint64_t lines = (count + LINE_FLOATS - 1) / LINE_FLOATS, begin = lines * member / members * LINE_FLOATS;
    return begin < count ? begin : count;
}
