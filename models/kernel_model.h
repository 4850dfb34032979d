/*
 * Seconds of kernels by formula, where a device type says how its kernels fall short of the datasheet
 * (struct kernel_model, models/hardware.h) and nothing was measured point by point.
 *
 * A matrix product is cut into tiles of its result; the multiprocessors take tiles in waves, and a wave that
 * is not full lasts as long as one that is. A tile begins and ends without multiplying, which weighs more the
 * shorter the inner dimension k is:
 *
 *     seconds = least over tile shapes of
 *               waves * multiprocessors * tile's FLOPs / (peak * efficiency * tile's rate) * (1 + depth / k)
 *
 * Attention of 16-bit jobs that are spread is, where a score has bytes, the software of 2019 to 2022: products
 * of queries with all keys, masked ones included, and kernels in between that read and write every score
 * (scale, mask, softmax, dropout). A kernel of such jobs takes no less than its host needs to dispatch it. (Tried and left:
 * the host ahead of the device by a whole pass. Passes with some small kernels came out a fifth too short.)
 *
 * Source: NVIDIA, Matrix Multiplication Background User's Guide (tiles, waves); Megatron-LM,
 * arXiv 2104.04473, section 4.2 (which kernels were not fused).
 */
#ifndef SPILLWAY_MODELS_KERNEL_MODEL_H
#define SPILLWAY_MODELS_KERNEL_MODEL_H

#include "models/hardware.h"

static inline bool kernel_model_is_set(const struct kernel_model *model)
{
    return model->multiprocessors.value > 0;
}

/* How fast a device multiplies and moves bytes, efficiencies included, but those of shapes. */
struct kernel_rates {
    double flops_per_s, bytes_per_s;
    double launch_s; /* of each kernel, on the device */
};

/* Seconds of one item (all its `count`); *multiplies: most of it are matrix products. */
double kernel_model_s(const struct kernel_model *model, struct kernel_rates rates, const struct work_item *item,
                      bool *multiplies);

#endif
