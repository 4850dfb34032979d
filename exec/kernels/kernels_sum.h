/* Sums over devices: of gradients, and of parts of products. */
#ifndef SPILLWAY_EXEC_KERNELS_KERNELS_SUM_H
#define SPILLWAY_EXEC_KERNELS_KERNELS_SUM_H

#include <stdint.h>

/* Adds `count` numbers. */
void kernels_sum_add(float *restrict sum, const float *x, uint64_t count);

/* Returns the begin of a member's slice of `count` numbers. The borders are lines of 64 bytes, so that no two members
 * write to one. `member` may be `members`: the end. */
uint64_t kernels_sum_slice(uint64_t count, uint32_t member, uint32_t members);

#endif
