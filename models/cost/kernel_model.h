/*
 * Seconds of kernels by formula, for device types with a struct kernel_model and without measured points. The software
 * part applies to stacks of published runs (models/hardware/software_stack.h).
 *
 * Multiprocessors take a product's tiles in waves; a partial wave lasts as long as a full one. The start and end of a
 * tile do no multiplications:
 *
 *     seconds = least over tile shapes of
 *               waves * multiprocessors * tile's FLOPs / (peak * efficiency * tile's rate) * (1 + depth / k)
 *
 * No product exceeds the rate that the board's power sustains. A 16-bit product whose rows are not a multiple of 16
 * bytes has a fraction of its rate (GPT-2's vocabulary of 50257 affects its head's products).
 *
 * Frameworks means the software of 2019 to 2022. If scores have bytes, attention multiplies queries with all keys,
 * also masked ones, and separate kernels read and write every score (scale, mask, softmax, dropout). Elementwise work
 * runs more often than the listed kernels (biases, dropouts). Gaps separate kernels. The host dispatches kernels one
 * by one, a few ahead: a pass takes the longer of the device's and the host's sums, where a kernel hides at most
 * KERNEL_MODEL_AHEAD dispatches. A collective that computations wait for is dispatched too (KERNEL_COLLECTIVE) and
 * hides dispatches meanwhile. (Tried and dropped, because runs of one node came out worse: the longer of both for each
 * kernel; unlimited dispatch ahead; collectives during which the host does nothing. A start that grows with a group's
 * members made runs of four ranks worse.)
 *
 * All parameters were fitted to 16-bit runs. On a device whose fp32 products use matrix cores (TF32), they apply to
 * fp32 jobs with the same gaps, dispatches and efficiencies of TF32's peak, and twice the bytes of scores and
 * activations; no measured run was available to check this. They do not apply to fp32 jobs without matrix cores
 * (V100): published runs are long products. Optimizers, losses, 16-bit products with an fp32 result and operations of
 * CNNs have no gaps and no dispatches.
 *
 * Sources: NVIDIA, Matrix Multiplication Background User's Guide (tiles, waves, 16 bytes); Megatron-LM, arXiv
 * 2104.04473, section 4.2 (kernels that were not fused).
 */
#ifndef SPILLWAY_MODELS_COST_KERNEL_MODEL_H
#define SPILLWAY_MODELS_COST_KERNEL_MODEL_H

#include "models/hardware/hardware.h"

static inline bool kernel_model_is_set(const struct kernel_model *model)
{
    return model->multiprocessors.value > 0;
}

/* Rates with efficiencies applied; without effects of shapes unless of_all_shapes is set. */
struct kernel_rates {
    double flops_per_s, bytes_per_s;
    double sustained_flops_per_s; /* limit of all products; 0: flops_per_s */
    double attention_flops_per_s; /* of attention in one kernel; 0: flops_per_s */
    double launch_s;              /* of each kernel, on the device */
    bool matrix_cores;            /* for fp32 products too */
    bool frameworks;              /* the software part applies, whatever stack has its values */
    bool of_all_shapes;           /* flops_per_s was measured for usual shapes */
};

enum { KERNEL_MODEL_AHEAD = 4 };

/* The device and the host's dispatches overlap. */
struct kernel_seconds {
    double device_s, host_s;
    double hiding_s; /* part of device_s that hides dispatches */
    bool multiplies; /* more than half of device_s */
};

/* Returns the seconds of all executions of an item. */
struct kernel_seconds kernel_model_seconds(const struct kernel_model *model, struct kernel_rates rates,
                                           const struct work_item *item);

#endif
