/* Sums over devices: of gradients, and of parts of products. */
#ifndef SPILLWAY_EXEC_KERNELS_KERNELS_SUM_H
#define SPILLWAY_EXEC_KERNELS_KERNELS_SUM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bf16.h"

/* Adds `count` numbers. */
void kernels_sum_add(float *restrict sum, const float *x, uint64_t count);

/* Returns a member's numbers [at, at + count), in its own memory or written to `room`. */
typedef const float *kernels_sum_member(const void *context, uint32_t member, uint64_t at, uint64_t count, float *room);

/* Adds up all members' numbers [at, at + count) as a tree (parallel_tree_half()). `sum` may be a member's own memory of
 * these numbers. Blocks that `numbers` is asked for begin a multiple of KERNELS_CODE_UNIT after `at`. */
void kernels_sum_tree(kernels_sum_member *numbers, const void *context, uint32_t members, uint64_t at, uint64_t count,
                      float *sum);

/* Adds up all members' numbers [at, at + count) of 16 bits in fp32, in the order of members, and rounds each sum once.
 * `sum` may be a member's own memory of these numbers. */
void kernels_sum_halves(const bf16 *const *values, uint32_t members, uint64_t at, uint64_t count, bf16 *sum);

/* Returns the sum of number i of all members, in their order or as a tree. */
double kernels_sum_doubles(const double *const *values, uint32_t members, uint64_t i, bool tree);

/* Returns the begin of a member's slice of `count` numbers. The borders are lines of 64 bytes, so that no two members
 * write to one. `member` may be `members`: the end. */
uint64_t kernels_sum_slice(uint64_t count, uint32_t member, uint32_t members);

#endif
