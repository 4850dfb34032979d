/*
 * Seconds of kernels by formula, where a device type says how its kernels fall short of the datasheet
 * (struct kernel_model, models/hardware/hardware.h) and nothing was measured point by point. The hardware's part counts for
 * every job; the part of the software counts where the machine's stack is that of frameworks (enum hardware_stack).
 *
 * A matrix product is cut into tiles of its result; the multiprocessors take tiles in waves, and a wave that
 * is not full lasts as long as one that is. A tile begins and ends without multiplying, which weighs more the
 * shorter the inner dimension k is:
 *
 *     seconds = least over tile shapes of
 *               waves * multiprocessors * tile's FLOPs / (peak * efficiency * tile's rate) * (1 + depth / k)
 *
 * but no product is faster than the rate that the board's power sustains, which full waves of long products pass: clocks
 * fall there. And a product of 16 bits whose matrices have rows of no whole 16 bytes has a part of its rate only: libraries
 * then load them in smaller pieces. (GPT-2's vocabulary of 50257 makes all three products of its head such.)
 *
 * Frameworks are the software of 2019 to 2022. Attention is, where a score has bytes,
 * products of queries with all keys, masked ones included, and kernels in between that read and write every score
 * (scale, mask, softmax, dropout). What goes over activations element by element (norms, sums, activation functions) does
 * so more often than the kernels that are listed: biases and dropouts are kernels of their own. Between kernels are gaps:
 * starts, and small kernels that nobody lists. Their host dispatches them one by one, a few kernels ahead: a pass takes the
 * longer of both sums, where a kernel hides no more than KERNEL_MODEL_AHEAD dispatches. A collective that computations wait for
 * is dispatched too (KERNEL_COLLECTIVE, which takes no time of its own), and hides dispatches while its members wait for each
 * other. (Tried and left: each kernel the longer of both, and any number ahead, by which a head of milliseconds would hide what
 * all blocks wait for; collectives beside which the host stands still; a start that grows with a group's members. Runs of one
 * node came out worse, by the last those of four ranks.)
 *
 * All of it was fitted to runs of 16 bits. On a device whose products in fp32 go by matrix cores (TF32) the same software runs
 * jobs in fp32: as many kernels with the same gaps and dispatches; products at the same efficiencies of TF32's peak, which
 * is a half of that of 16 bits, and (with either stack) slow at the same counts of a row's numbers; twice the bytes of scores and
 * activations. No run was seen to hold that against. (gpt2-xl on two A100s, a step of eight microbatches of one sequence: 914 ms,
 * 666 in bf16.) Without matrix cores (V100) jobs in fp32 have none of it: what was published of such is long products.
 * Optimizers, losses, products of 16 bits with a result in fp32 and operations of CNNs have no gaps and no dispatches.
 *
 * Sources: NVIDIA, Matrix Multiplication Background User's Guide (tiles, waves, 16 bytes); Megatron-LM,
 * arXiv 2104.04473, section 4.2 (which kernels were not fused).
 */
#ifndef SPILLWAY_MODELS_KERNEL_MODEL_H
#define SPILLWAY_MODELS_KERNEL_MODEL_H

#include "models/hardware/hardware.h"

static inline bool kernel_model_is_set(const struct kernel_model *model)
{
    return model->multiprocessors.value > 0;
}

/* How fast a device multiplies and moves bytes, efficiencies included, but (unless it is said) those of shapes. */
struct kernel_rates {
    double flops_per_s, bytes_per_s;
    double sustained_flops_per_s; /* of products, however large; 0: flops_per_s is */
    double launch_s;              /* of each kernel, on the device */
    bool matrix_cores;            /* products in fp32 go by them too */
    bool frameworks;              /* the software's part counts */
    bool of_all_shapes;           /* flops_per_s is what products of usual shapes came to: nothing is taken off it for theirs */
};

enum { KERNEL_MODEL_AHEAD = 4 };

/* What the host dispatches and what the device does run side by side. */
struct kernel_seconds {
    double device_s, host_s;
    double hiding_s; /* of device_s, what hides dispatches, of itself and of others */
    bool multiplies; /* most of device_s are matrix products */
};

/* Of one item (all its `count`). */
struct kernel_seconds kernel_model_seconds(const struct kernel_model *model, struct kernel_rates rates,
                                           const struct work_item *item);

#endif
