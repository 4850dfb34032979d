/*
 * What a computation consists of: a short list of kernels with their sizes.
 *
 * Letters used in all of models, planner, sim and exec:
 *   B  sequences in a microbatch          T  tokens in a sequence        R = B*T  rows
 *   C  width of the network               H  attention heads             D = C/H  head width
 *   F  width of the feed-forward part     V  vocabulary                  S  shards of a job
 *
 * A work item names a kernel class and its sizes; FLOPs and bytes follow from them here and nowhere
 * else, and models/cost/cost.h turns them into seconds. Multiply-adds count as two FLOPs. Bytes are what
 * must cross the device's memory once, with nothing cached between kernels. FLOPs are those of the
 * products; norms, GELU and the like have bytes only.
 */
#ifndef SPILLWAY_MODELS_WORK_H
#define SPILLWAY_MODELS_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kernel {
    /* m x n = (m x k)(k x n), the three products of a linear layer, with bias where there is one */
    KERNEL_MATMUL_FORWARD, /* Y(m,n)  = X(m,k) W(n,k)^T  [+ bias]    m = R, n = out, k = in   */
    KERNEL_MATMUL_INPUT,   /* dX(m,n) = dY(m,k) W(k,n)               m = R, n = in,  k = out  */
    KERNEL_MATMUL_WEIGHT,  /* dW(m,n) = dY(k,m)^T X(k,n)             m = out, n = in, k = R   */
    /* causal attention of m = B*H heads, n = T tokens, k = D (each token sees those before it). Keys
     * and values that heads share are counted for each: they are read for each. */
    KERNEL_ATTENTION_FORWARD,
    KERNEL_ATTENTION_BACKWARD,
    /* m rows of n */
    KERNEL_NORM_FORWARD,  /* layer norm; k = 1: with the residual sum in front, which is kept too */
    KERNEL_NORM_BACKWARD, /* k = 1: added to a gradient that is there already */
    KERNEL_GELU_FORWARD,
    KERNEL_GELU_BACKWARD,
    KERNEL_RESIDUAL,      /* z = x + y */
    KERNEL_BIAS_BACKWARD, /* column sums of m x n */
    KERNEL_EMBED_FORWARD, /* m rows of n gathered; k = 1: from tables in bf16 */
    KERNEL_EMBED_BACKWARD,/* m rows of n added into a table; k table rows swept */
    KERNEL_LOSS,          /* softmax, cross-entropy and its gradient in place: m rows of n logits */
    /* m parameters; n = 1: of which the weights are rounded to bf16 as well */
    KERNEL_SGD,
    KERNEL_ADAMW,
    /* attention where each token sees all others; sizes as for the causal one */
    KERNEL_ATTENTION_FULL_FORWARD,
    KERNEL_ATTENTION_FULL_BACKWARD,
    KERNEL_FIXED,         /* m nanoseconds on any device: networks known by measured profile only */
    /* llama's; m rows of n */
    KERNEL_RMS_NORM_FORWARD,  /* root-mean-square norm; k as for the layer norm */
    KERNEL_RMS_NORM_BACKWARD,
    KERNEL_ROPE,              /* queries and keys turned in place, there or back */
    KERNEL_SWIGLU_FORWARD,    /* silu(gate) * up */
    KERNEL_SWIGLU_BACKWARD,
    KERNEL_GATHER, /* m rows of n moved: pixels to patches, class tokens out of their samples */
    KERNEL_MOMENTUM,      /* m parameters; n as above */
    KERNEL_SQUARES,       /* m numbers squared and added up */
    /* with both operands in bf16 and the result in fp32; bias, column sums and sizes as above */
    KERNEL_MATMUL_BF16_FORWARD,
    KERNEL_MATMUL_BF16_INPUT,
    KERNEL_MATMUL_BF16_WEIGHT,
    KERNEL_ROUND,         /* m numbers rounded to bf16 */
    /* with moments in bf16; n as above */
    KERNEL_ADAMW_BF16,
    KERNEL_MOMENTUM_BF16,
    /*
     * Convolutions of images by more than a pixel (those of one are products of matrices): the three products
     * of a linear layer, where in = taps * channels. An image is not moved tap by tap: what has `in` columns
     * counts a ninth of them, which is exact for 3 x 3 taps of stride 1; 7 x 7 of stride 2 share 12.3
     * reads of a pixel, 11 x 11 of stride 4 share 7.6.
     */
    KERNEL_CONVOLUTION_FORWARD,
    KERNEL_CONVOLUTION_INPUT,
    KERNEL_CONVOLUTION_WEIGHT,
    /* the same of 3 x 3 taps with a stride of 1, which libraries make with fewer multiplications
     * (models/cost/convolution_model.h) */
    KERNEL_CONVOLUTION_3X3_FORWARD,
    KERNEL_CONVOLUTION_3X3_INPUT,
    KERNEL_CONVOLUTION_3X3_WEIGHT,
    KERNEL_BATCH_NORM_FORWARD, /* m pixels of n channels: statistics of each channel first, then its norm */
    KERNEL_BATCH_NORM_BACKWARD,
    KERNEL_RELU_FORWARD, /* m rows of n, in place */
    KERNEL_RELU_BACKWARD,
    KERNEL_POOL,         /* there or back: m pixels of n channels that are read or written */
    /* Classes of jobs of precision bf16 (models/kernel/precision.h): operands and results of 16 bits, but for gradients of
     * weights, which are fp32. */
    KERNEL_MATMUL_HALF_FORWARD,
    KERNEL_MATMUL_HALF_INPUT,
    KERNEL_MATMUL_HALF_WEIGHT,
    KERNEL_ATTENTION_HALF_FORWARD,
    KERNEL_ATTENTION_HALF_BACKWARD,
    KERNEL_ATTENTION_FULL_HALF_FORWARD,
    KERNEL_ATTENTION_FULL_HALF_BACKWARD,
    KERNEL_NORM_HALF_FORWARD,
    KERNEL_NORM_HALF_BACKWARD,
    KERNEL_RMS_NORM_HALF_FORWARD,
    KERNEL_RMS_NORM_HALF_BACKWARD,
    KERNEL_GELU_HALF_FORWARD,
    KERNEL_GELU_HALF_BACKWARD,
    KERNEL_SWIGLU_HALF_FORWARD,
    KERNEL_SWIGLU_HALF_BACKWARD,
    KERNEL_RESIDUAL_HALF,
    KERNEL_BIAS_HALF_BACKWARD,
    KERNEL_ROPE_HALF,
    KERNEL_GATHER_HALF,
    KERNEL_EMBED_HALF_FORWARD,
    KERNEL_EMBED_HALF_BACKWARD,
    KERNEL_COLLECTIVE, /* what the host does for a collective that computations wait for; the collective is its own op */
    KERNEL_COUNT
};

/* Multiplications that minimal filtering leaves of a convolution of 3 x 3 taps: 9 for each of 16 results become 36
 * (Lavin and Gray, arXiv 1509.09308). */
enum { CONVOLUTION_FEWER = 4 };

static inline bool work_is_convolution_3x3(uint32_t kernel)
{
    return kernel >= KERNEL_CONVOLUTION_3X3_FORWARD && kernel <= KERNEL_CONVOLUTION_3X3_WEIGHT;
}

/* "matmul_forward", ...; in plan and hardware files. */
extern const char *const kernel_names[KERNEL_COUNT];

/* The class of the same computation on numbers of 16 bits, and in fp32; the class itself where there is no such. */
uint32_t kernel_half(uint32_t kernel);
uint32_t kernel_wide(uint32_t kernel);

struct work_item {
    uint32_t kernel; /* enum kernel */
    uint32_t count;  /* how often, at least 1 */
    uint64_t m, n, k; /* sizes as the table above says; unused ones are 0 */
};

double work_item_flops(const struct work_item *item);

/* `element_bytes`: 4 for fp32, 2 for bf16; classes of 16 bits say it themselves and are given 4. */
double work_item_bytes(const struct work_item *item, uint32_t element_bytes);

/* The model FLOPs of a list (MFU's numerator when nothing in it is recomputed). */
double work_flops(const struct work_item *items, size_t count);

/* The same, 3 x 3 convolutions by the multiplications that minimal filtering leaves of them, a quarter: what devices
 * without matrix cores may do of them (models/cost/convolution_model.h). */
double work_least_flops(const struct work_item *items, size_t count);

#endif
