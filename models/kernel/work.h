/*
 * The work of a computation: kernels with their sizes.
 *
 * Letters:
 *   B  sequences in a microbatch          T  tokens in a sequence        R = B*T  rows
 *   C  width of the network               H  attention heads             D = C/H  head width
 *   F  width of the feed-forward part     V  vocabulary                  S  shards of a job
 *
 * FLOPs and bytes are computed only here; models/cost/cost.h turns them into seconds. A multiply-add counts as two
 * FLOPs. Each byte crosses the device's memory once. Only products count FLOPs.
 */
#ifndef SPILLWAY_MODELS_KERNEL_WORK_H
#define SPILLWAY_MODELS_KERNEL_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kernel {
    /* m x n = (m x k)(k x n): a linear layer's products, with bias if it has one */
    KERNEL_MATMUL_FORWARD, /* Y(m,n)  = X(m,k) W(n,k)^T  [+ bias]    m = R, n = out, k = in   */
    KERNEL_MATMUL_INPUT,   /* dX(m,n) = dY(m,k) W(k,n)               m = R, n = in,  k = out  */
    KERNEL_MATMUL_WEIGHT,  /* dW(m,n) = dY(k,m)^T X(k,n)             m = out, n = in, k = R   */
    /* causal attention of m = B*H heads, n = T tokens, k = D. Shared keys and values are counted for each head,
     * which reads them. */
    KERNEL_ATTENTION_FORWARD,
    KERNEL_ATTENTION_BACKWARD,
    /* m rows of n */
    KERNEL_NORM_FORWARD,  /* k = 1: preceded by the residual sum, which is kept */
    KERNEL_NORM_BACKWARD, /* k = 1: added to an existing gradient */
    KERNEL_GELU_FORWARD,
    KERNEL_GELU_BACKWARD,
    KERNEL_RESIDUAL,      /* z = x + y */
    KERNEL_BIAS_BACKWARD, /* column sums of m x n */
    KERNEL_EMBED_FORWARD, /* m gathered rows of n; k = 1: from tables in bf16 */
    KERNEL_EMBED_BACKWARD,/* m rows of n added to a table; k rows swept */
    KERNEL_LOSS,          /* with its gradient in place: m rows of n logits */
    /* m parameters; n = 1: also rounds the weights to bf16 */
    KERNEL_SGD,
    KERNEL_ADAMW,
    /* each token sees all others; sizes as for causal attention */
    KERNEL_ATTENTION_FULL_FORWARD,
    KERNEL_ATTENTION_FULL_BACKWARD,
    KERNEL_FIXED,         /* m nanoseconds on any device: a profile */
    /* for llama; m rows of n */
    KERNEL_RMS_NORM_FORWARD,  /* k as for the layer norm */
    KERNEL_RMS_NORM_BACKWARD,
    KERNEL_ROPE,              /* queries and keys in place, forward or backward */
    KERNEL_SWIGLU_FORWARD,    /* silu(gate) * up */
    KERNEL_SWIGLU_BACKWARD,
    KERNEL_GATHER, /* m rows of n moved */
    KERNEL_MOMENTUM,      /* m parameters; n as above */
    KERNEL_SQUARES,       /* of m numbers */
    /* both operands in bf16, the result in fp32; else as above */
    KERNEL_MATMUL_BF16_FORWARD,
    KERNEL_MATMUL_BF16_INPUT,
    KERNEL_MATMUL_BF16_WEIGHT,
    KERNEL_ROUND,         /* m numbers rounded to bf16 */
    /* with moments in bf16; n as above */
    KERNEL_ADAMW_BF16,
    KERNEL_MOMENTUM_BF16,
    /* the same in a pass of its own, in the order above: parameters and gradients come from memory */
    KERNEL_SGD_APART,
    KERNEL_ADAMW_APART,
    KERNEL_MOMENTUM_APART,
    KERNEL_ADAMW_BF16_APART,
    KERNEL_MOMENTUM_BF16_APART,
    /*
     * Convolutions with several taps: a linear layer's products with in = taps * channels. An image is not moved tap
     * by tap: a matrix of `in` columns counts a ninth of them, which is exact for 3 x 3 taps of stride 1. Taps of 7 x
     * 7 with stride 2 share 12.3 reads of a pixel, 11 x 11 with stride 4 share 7.6.
     */
    KERNEL_CONVOLUTION_FORWARD,
    KERNEL_CONVOLUTION_INPUT,
    KERNEL_CONVOLUTION_WEIGHT,
    /* stride 1, computed with fewer multiplications (models/cost/convolution_model.h) */
    KERNEL_CONVOLUTION_3X3_FORWARD,
    KERNEL_CONVOLUTION_3X3_INPUT,
    KERNEL_CONVOLUTION_3X3_WEIGHT,
    KERNEL_BATCH_NORM_FORWARD, /* m pixels of n channels: statistics first, then the norm */
    KERNEL_BATCH_NORM_BACKWARD,
    KERNEL_RELU_FORWARD, /* m rows of n, in place */
    KERNEL_RELU_BACKWARD,
    KERNEL_POOL,         /* forward or backward: m pixels of n channels */
    /* For precision bf16: operands and results of 16 bits, weight gradients fp32. */
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
    KERNEL_COLLECTIVE, /* host work of a collective that computations wait for */
    KERNEL_COUNT
};

/* Minimal filtering of a 3 x 3 convolution: 9 multiplications for each of 16 results become 36 (Lavin and Gray, arXiv
 * 1509.09308). */
enum { WORK_CONVOLUTION_FEWER = 4 };

static inline bool work_is_bf16_matmul(uint32_t kernel)
{
    return (kernel >= KERNEL_MATMUL_BF16_FORWARD && kernel <= KERNEL_MATMUL_BF16_WEIGHT) ||
           (kernel >= KERNEL_MATMUL_HALF_FORWARD && kernel <= KERNEL_MATMUL_HALF_WEIGHT);
}

static inline bool work_is_convolution_3x3(uint32_t kernel)
{
    return kernel >= KERNEL_CONVOLUTION_3X3_FORWARD && kernel <= KERNEL_CONVOLUTION_3X3_WEIGHT;
}

/* "matmul_forward", ...; in plan and hardware files */
extern const char *const kernel_names[KERNEL_COUNT];

/* Return the same computation on 16-bit numbers, and on fp32; or `kernel`. */
uint32_t kernel_half(uint32_t kernel);
uint32_t kernel_wide(uint32_t kernel);

struct work_item {
    uint32_t kernel; /* enum kernel */
    uint32_t count;  /* at least 1 */
    uint64_t m, n, k; /* unused sizes are 0 */
};

double work_item_flops(const struct work_item *item);

/* Returns bytes; `element_bytes` is 4 for fp32, 2 for bf16; for 16-bit classes always 4. */
double work_item_bytes(const struct work_item *item, uint32_t element_bytes);

/* Counts model FLOPs (MFU's numerator if the list recomputes nothing). */
double work_flops(const struct work_item *items, size_t count);

/* Counts 3 x 3 convolutions as a quarter, after minimal filtering: the least without matrix cores
 * (models/cost/convolution_model.h). */
double work_least_flops(const struct work_item *items, size_t count);

#endif
