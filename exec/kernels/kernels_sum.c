#include "exec/kernels/kernels_sum.h"

#include <string.h>

#include "base/clones.h"
#include "exec/kernels/kernels_code.h"
#include "models/job/parallel.h"

enum { LINE_FLOATS = 16, BLOCK_FLOATS = 2 * KERNELS_CODE_UNIT };

CLONES void kernels_sum_add(float *restrict sum, const float *x, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) sum[i] += x[i];
}

/* --- 16 bits ---------------------------------------------------------------------------------- */

CLONES static void add_halves(float *restrict sum, const bf16 *restrict x, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) sum[i] += bf16_widen(x[i]);
}

CLONES static void widen(float *restrict to, const bf16 *restrict from, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) to[i] = bf16_widen(from[i]);
}

CLONES static void round_to(bf16 *restrict to, const float *restrict from, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) to[i] = bf16_nearest(from[i]);
}

void kernels_sum_halves(const bf16 *const *values, uint32_t members, uint64_t at, uint64_t count, bf16 *sum)
{
    float room[BLOCK_FLOATS];
    for (uint64_t done = 0; done < count; done += BLOCK_FLOATS) {
        const uint64_t left = count - done, n = left < BLOCK_FLOATS ? left : BLOCK_FLOATS;
        widen(room, values[0] + at + done, n);
        for (uint32_t m = 1; m < members; m++) add_halves(room, values[m] + at + done, n);
        round_to(sum + done, room, n);
    }
}

/* --- trees ------------------------------------------------------------------------------------ */

struct branches {
    kernels_sum_member *numbers;
    const void *context;
    uint64_t at, count; /* at most BLOCK_FLOATS numbers */
};

/* Returns the sums of members [first, first + members): in a member's own memory or in `room`. */
static const float *branch(const struct branches *b, uint32_t first, uint32_t members, float *room)
{
    if (members == 1) return b->numbers(b->context, first, b->at, b->count, room);
    float right[BLOCK_FLOATS];
    const uint32_t half = parallel_tree_half(members);
    const float *const left = branch(b, first, half, room);
    if (left != room) memcpy(room, left, b->count * sizeof *room);
    kernels_sum_add(room, branch(b, first + half, members - half, right), b->count);
    return room;
}

void kernels_sum_tree(kernels_sum_member *numbers, const void *context, uint32_t members, uint64_t at, uint64_t count,
                      float *sum)
{
    float room[BLOCK_FLOATS];
    for (uint64_t done = 0; done < count; done += BLOCK_FLOATS) {
        const uint64_t left = count - done, n = left < BLOCK_FLOATS ? left : BLOCK_FLOATS;
        const struct branches b = {numbers, context, at + done, n};
        memmove(sum + done, branch(&b, 0, members, room), n * sizeof *sum);
    }
}

static double double_as_tree(const double *const *values, uint64_t i, uint32_t members)
{
    if (members == 1) return values[0][i];
    const uint32_t half = parallel_tree_half(members);
    return double_as_tree(values, i, half) + double_as_tree(values + half, i, members - half);
}

double kernels_sum_doubles(const double *const *values, uint32_t members, uint64_t i, bool tree)
{
    double sum = 0;
    if (tree) return double_as_tree(values, i, members);
    for (uint32_t m = 0; m < members; m++) sum += values[m][i];
    return sum;
}

/* --- slices ----------------------------------------------------------------------------------- */

uint64_t kernels_sum_slice(uint64_t count, uint32_t member, uint32_t members)
{
    const uint64_t lines = (count + LINE_FLOATS - 1) / LINE_FLOATS, begin = lines * member / members * LINE_FLOATS;
    return begin < count ? begin : count;
}
