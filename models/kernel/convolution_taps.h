/*
 * Taps of a convolution that meet its image; the others lie in the padding.
 *
 * On small images many do: of 3 x 3 taps on one pixel eight, on 2 x 2 pixels 20 of 36, on 4 x 4 pixels 44 of 144.
 * Where it is a quarter or more, they are not computed (exec/kernels/kernels_convolution_taps.h), nor counted as work.
 */
#ifndef SPILLWAY_MODELS_KERNEL_CONVOLUTION_TAPS_H
#define SPILLWAY_MODELS_KERNEL_CONVOLUTION_TAPS_H

#include <stdbool.h>
#include <stdint.h>

/* One side: the other one is equal. */
struct convolution_side {
    int64_t in, out, kernel, stride, padding; /* pixels of image and result; taps */
};

/* Pixels that a tap meets: `count` of the result from `out` on, which read the image from `in` on, every stride-th. */
struct convolution_met {
    int64_t count, out, in;
};

static inline struct convolution_met convolution_met(const struct convolution_side *side, int64_t tap)
{
    const int64_t offset = tap - side->padding, last = side->in - 1 - offset;
    const int64_t first = offset < 0 ? (side->stride - 1 - offset) / side->stride : 0;
    int64_t end = last < 0 ? 0 : last / side->stride + 1;
    if (end > side->out) end = side->out;
    return (struct convolution_met){end > first ? end - first : 0, first, first * side->stride + offset};
}

/* Counts pixels of the result, for all taps of a side. */
static inline int64_t convolution_met_by_all(const struct convolution_side *side)
{
    int64_t met = 0;
    for (int64_t tap = 0; tap < side->kernel; tap++) met += convolution_met(side, tap).count;
    return met;
}

/* Returns true if a quarter of the taps lies in the padding. */
static inline bool convolution_is_padded(const struct convolution_side *side)
{
    const int64_t met = convolution_met_by_all(side), all = side->kernel * side->out;
    return 4 * met * met <= 3 * all * all;
}

#endif
