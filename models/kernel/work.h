/*
 * The work of a computation: a short list of kernels with their sizes.
 *
 * Letters used in all of models, planner, sim and exec:
 *   B  sequences in a microbatch          T  tokens in a sequence        R = B*T  rows
 *   C  width of the network               H  attention heads             D = C/H  head width
 *   F  width of the feed-forward part     V  vocabulary                  S  shards of a job
 *
 * A work item names a kernel class and its sizes. FLOPs and bytes are computed from these only here;
 * models/cost/cost.h turns them into seconds. A multiply-add counts as two FLOPs. Bytes must each cross the device's
 * memory once, without caching between kernels. Only products count FLOPs; norms, GELU and the like have only bytes.
 */
#ifndef SPILLWAY_MODELS_KERNEL_WORK_H
#define SPILLWAY_MODELS_KERNEL_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kernel {
    /* m x n = (m x k)(k x n): the three products of a linear layer, with bias if it has one */
    KERNEL_MATMUL_FORWARD, /* Y(m,n)  = X(m,k) W(n,k)^T  [+ bias]    m = R, n = out, k = in   */
    KERNEL_MATMUL_INPUT,   /* dX(m,n) = dY(m,k) W(k,n)               m = R, n = in,  k = out  */
    KERNEL_MATMUL_WEIGHT,  /* dW(m,n) = dY(k,m)^T X(k,n)             m = out, n = in, k = R   */
    /* causal attention of m = B*H heads, n = T tokens, k = D (each token sees the tokens before it). Keys and values
     * shared by several heads are counted for each head, because each head reads them. */
    KERNEL_ATTENTION_FORWARD,
    KERNEL_ATTENTION_BACKWARD,
    /* m rows of n */
    KERNEL_NORM_FORWARD,  /* layer norm; k = 1: preceded by the residual sum, which is kept too */
    KERNEL_NORM_BACKWARD, /* k = 1: added to an existing gradient */
    KERNEL_GELU_FORWARD,
    KERNEL_GELU_BACKWARD,
    KERNEL_RESIDUAL,      /* z = x + y */
    KERNEL_BIAS_BACKWARD, /* column sums of m x n */
    KERNEL_EMBED_FORWARD, /* m gathered rows of n; k = 1: from tables in bf16 */
    KERNEL_EMBED_BACKWARD,/* m rows of n added into a table; k table rows swept */
    KERNEL_LOSS,          /* softmax, cross-entropy and its gradient in place: m rows of n logits */
    /* m parameters; n = 1: also rounds the weights to bf16 */
    KERNEL_SGD,
    KERNEL_ADAMW,
    /* full attention, where each token sees all others; sizes as for causal attention */
    KERNEL_ATTENTION_FULL_FORWARD,
    KERNEL_ATTENTION_FULL_BACKWARD,
    KERNEL_FIXED,         /* m nanoseconds on any device: networks known only by a measured profile */
    /* for llama; m rows of n */
    KERNEL_RMS_NORM_FORWARD,  /* root-mean-square norm; k as for the layer norm */
    KERNEL_RMS_NORM_BACKWARD,
    KERNEL_ROPE,              /* rotates queries and keys in place, forward or backward */
    KERNEL_SWIGLU_FORWARD,    /* silu(gate) * up */
    KERNEL_SWIGLU_BACKWARD,
    KERNEL_GATHER, /* m rows of n moved: pixels to patches, class tokens out of samples */
    KERNEL_MOMENTUM,      /* m parameters; n as above */
    KERNEL_SQUARES,       /* sum of squares of m numbers */
    /* both operands in bf16, the result in fp32; bias, column sums and sizes as above */
    KERNEL_MATMUL_BF16_FORWARD,
    KERNEL_MATMUL_BF16_INPUT,
    KERNEL_MATMUL_BF16_WEIGHT,
    KERNEL_ROUND,         /* m numbers rounded to bf16 */
    /* with moments in bf16; n as above */
    KERNEL_ADAMW_BF16,
    KERNEL_MOMENTUM_BF16,
    /*
     * Convolutions with more than one tap (convolutions of one pixel are matrix products): the three products of a
     * linear layer with in = taps * channels. An image is not moved tap by tap, so a matrix of `in` columns counts a
     * ninth of them. This is exact for 3 x 3 taps of stride 1. Taps of 7 x 7 with stride 2 share 12.3 reads of a
     * pixel, 11 x 11 with stride 4 share 7.6.
     */
    KERNEL_CONVOLUTION_FORWARD,
    KERNEL_CONVOLUTION_INPUT,
    KERNEL_CONVOLUTION_WEIGHT,
    /* 3 x 3 taps with stride 1, which libraries compute with fewer multiplications (models/cost/convolution_model.h) */
    KERNEL_CONVOLUTION_3X3_FORWARD,
    KERNEL_CONVOLUTION_3X3_INPUT,
    KERNEL_CONVOLUTION_3X3_WEIGHT,
    KERNEL_BATCH_NORM_FORWARD, /* m pixels of n channels: statistics of each channel first, then the norm */
    KERNEL_BATCH_NORM_BACKWARD,
    KERNEL_RELU_FORWARD, /* m rows of n, in place */
    KERNEL_RELU_BACKWARD,
    KERNEL_POOL,         /* forward or backward: m pixels of n channels that are read or written */
    /* Classes for jobs of precision bf16 (models/kernel/precision.h): operands and results of 16 bits, except weight
     * gradients, which are fp32. */
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
    KERNEL_COLLECTIVE, /* host work of a collective that computations wait for; the collective itself is a separate
                          operation */
    KERNEL_COUNT
};

/* Factor by which minimal filtering reduces the multiplications of a 3 x 3 convolution: 9 for each of 16 results
 * become 36 (Lavin and Gray, arXiv 1509.09308). */
enum { CONVOLUTION_FEWER = 4 };

static inline bool work_is_convolution_3x3(uint32_t kernel)
{
    return kernel >= KERNEL_CONVOLUTION_3X3_FORWARD && kernel <= KERNEL_CONVOLUTION_3X3_WEIGHT;
}

/* "matmul_forward", ...; the names in plan and hardware files */
extern const char *const kernel_names[KERNEL_COUNT];

/* Return the class of the same computation on 16-bit numbers, and on fp32; `kernel` itself if there is none. */
uint32_t kernel_half(uint32_t kernel);
uint32_t kernel_wide(uint32_t kernel);

struct work_item {
    uint32_t kernel; /* enum kernel */
    uint32_t count;  /* number of executions, at least 1 */
    uint64_t m, n, k; /* sizes as in the table above; unused sizes are 0 */
};

double work_item_flops(const struct work_item *item);

/* Returns the bytes of an item. `element_bytes` is 4 for fp32, 2 for bf16; for 16-bit classes it is always 4, and the
 * class implies the size. */
double work_item_bytes(const struct work_item *item, uint32_t element_bytes);

/* Returns the model FLOPs of a list (the numerator of MFU if the list recomputes nothing). */
double work_flops(const struct work_item *items, size_t count);

/* Returns the FLOPs of a list with 3 x 3 convolutions counted after minimal filtering, as a quarter: the least that
 * devices without matrix cores may compute (models/cost/convolution_model.h). */
double work_least_flops(const struct work_item *items, size_t count);

#endif
