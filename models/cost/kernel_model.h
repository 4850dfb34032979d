/*
 * Seconds of kernels by formula, for device types whose file describes how kernels fall short of the datasheet
 * (struct kernel_model, models/hardware/hardware.h) and that have no measured points. The hardware part applies to
 * every job. The software part applies if the machine's stack is STACK_FRAMEWORKS (enum hardware_stack).
 *
 * A matrix product is cut into tiles of its result. The multiprocessors take tiles in waves, and a partial wave lasts
 * as long as a full one. The start and end of a tile do no multiplications; they weigh more, the shorter the inner
 * dimension k is:
 *
 *     seconds = least over tile shapes of
 *               waves * multiprocessors * tile's FLOPs / (peak * efficiency * tile's rate) * (1 + depth / k)
 *
 * No product exceeds the rate that the board's power sustains; clocks fall when full waves of long products reach it.
 * A 16-bit product whose matrix rows are not a multiple of 16 bytes has only a fraction of its rate, since libraries
 * then load the matrices in smaller pieces. (GPT-2's vocabulary of 50257 affects all three products of its head.)
 *
 * Frameworks means the software of 2019 to 2022. If scores have bytes, attention consists of products of queries with
 * all keys, including masked keys, and of kernels in between that read and write every score (scale, mask, softmax,
 * dropout). Elementwise work on activations (norms, sums, activation functions) runs more often than the listed
 * kernels, because biases and dropouts are separate kernels. Gaps separate kernels: launches, and small kernels that
 * are not listed. The host dispatches kernels one by one, a few kernels ahead. A pass takes the longer of the
 * device's and the host's sums, where a kernel hides at most KERNEL_MODEL_AHEAD dispatches. A collective that
 * computations wait for is dispatched too (KERNEL_COLLECTIVE, which takes no time itself) and hides dispatches while
 * its members wait for each other. (Tried and dropped, because runs of one node came out worse: the longer of both
 * for each kernel; unlimited dispatch ahead, where a head of milliseconds would hide dispatches that all blocks wait
 * for; collectives during which the host does nothing. A start that grows with a group's members made runs of four
 * ranks worse.)
 *
 * All parameters were fitted to 16-bit runs. On a device whose fp32 products use matrix cores (TF32), the same
 * software parameters apply to fp32 jobs: equally many kernels with the same gaps and dispatches; products with the
 * same efficiencies of TF32's peak, which is half of the 16-bit peak, and (with either stack) slow at the same row
 * lengths; twice the bytes of scores and activations. No measured run was available to check this. (gpt2-xl on two
 * A100s, a step of eight microbatches of one sequence: 914 ms, against 666 ms in bf16.) The software part does not
 * apply to fp32 jobs on devices without matrix cores (V100): published runs of such jobs are long products.
 * Optimizers, losses, 16-bit products with an fp32 result and operations of CNNs have no gaps and no dispatches.
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

/* Rates of a device with efficiencies applied. Unless of_all_shapes is set, effects of shapes are not yet applied. */
struct kernel_rates {
    double flops_per_s, bytes_per_s;
    double sustained_flops_per_s; /* limit for products of any size; 0: flops_per_s */
    double launch_s;              /* launch time of each kernel, on the device */
    bool matrix_cores;            /* fp32 products use them too */
    bool frameworks;              /* the software part applies */
    bool of_all_shapes;           /* flops_per_s was measured for usual shapes; nothing is subtracted for a
                                     product's shape */
};

enum { KERNEL_MODEL_AHEAD = 4 };

/* Seconds of the device and of the host's dispatches, which overlap. */
struct kernel_seconds {
    double device_s, host_s;
    double hiding_s; /* the part of device_s that hides dispatches of this and other kernels */
    bool multiplies; /* more than half of device_s is matrix products */
};

/* Returns the seconds of all `count` executions of one item. */
struct kernel_seconds kernel_model_seconds(const struct kernel_model *model, struct kernel_rates rates,
                                           const struct work_item *item);

#endif
