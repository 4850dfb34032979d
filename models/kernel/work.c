/*
 * One table row per kernel class.
 *
 * FLOPs count only products, as in MFU (PaLM, arXiv 2204.02311, appendix B); a norm or a GELU takes less time than its
 * memory accesses. Causal attention counts half the square of scores. Its backward pass counts the four products that
 * make gradients (dV, dP, dQ, dK), without recomputed scores.
 *
 * With e bytes per element, each operand crosses memory once, for example
 *
 *     matmul m,n,k      e (m k + k n + m n)
 *     norm forward      e 2 m n: in and out; with a preceding residual sum e 4 m n: two in, two out
 *     norm backward     e 3 m n: x, dy in, dx out; with addition to an existing gradient e 4 m n
 *     loss              e 2 m n: logits in, their gradient out (a row stays in cache in between)
 *     adamw             4 (3 m in, 3 m out) + e m: parameters and moments are always fp32; 2-byte moments have
 *                       their own class
 *     matmul of bf16    2 (m k + k n) + e m n
 *     matmul of halves  2 (m k + k n + m n); of weight gradients 2 (m k + k n) + e m n
 */
#include "models/kernel/work.h"

#include <assert.h>

#include "base/size.h"

const char *const kernel_names[] = {
    [KERNEL_MATMUL_FORWARD] = "matmul_forward",
    [KERNEL_MATMUL_INPUT] = "matmul_input",
    [KERNEL_MATMUL_WEIGHT] = "matmul_weight",
    [KERNEL_ATTENTION_FORWARD] = "attention_forward",
    [KERNEL_ATTENTION_BACKWARD] = "attention_backward",
    [KERNEL_NORM_FORWARD] = "norm_forward",
    [KERNEL_NORM_BACKWARD] = "norm_backward",
    [KERNEL_GELU_FORWARD] = "gelu_forward",
    [KERNEL_GELU_BACKWARD] = "gelu_backward",
    [KERNEL_RESIDUAL] = "residual",
    [KERNEL_BIAS_BACKWARD] = "bias_backward",
    [KERNEL_EMBED_FORWARD] = "embed_forward",
    [KERNEL_EMBED_BACKWARD] = "embed_backward",
    [KERNEL_LOSS] = "loss",
    [KERNEL_SGD] = "sgd",
    [KERNEL_ADAMW] = "adamw",
    [KERNEL_MOMENTUM] = "momentum",
    [KERNEL_SQUARES] = "squares",
    [KERNEL_ATTENTION_FULL_FORWARD] = "attention_full_forward",
    [KERNEL_ATTENTION_FULL_BACKWARD] = "attention_full_backward",
    [KERNEL_FIXED] = "fixed",
    [KERNEL_RMS_NORM_FORWARD] = "rms_norm_forward",
    [KERNEL_RMS_NORM_BACKWARD] = "rms_norm_backward",
    [KERNEL_ROPE] = "rope",
    [KERNEL_SWIGLU_FORWARD] = "swiglu_forward",
    [KERNEL_SWIGLU_BACKWARD] = "swiglu_backward",
    [KERNEL_GATHER] = "gather",
    [KERNEL_MATMUL_BF16_FORWARD] = "matmul_bf16_forward",
    [KERNEL_MATMUL_BF16_INPUT] = "matmul_bf16_input",
    [KERNEL_MATMUL_BF16_WEIGHT] = "matmul_bf16_weight",
    [KERNEL_ROUND] = "round",
    [KERNEL_ADAMW_BF16] = "adamw_bf16",
    [KERNEL_MOMENTUM_BF16] = "momentum_bf16",
    [KERNEL_SGD_APART] = "sgd_apart",
    [KERNEL_ADAMW_APART] = "adamw_apart",
    [KERNEL_MOMENTUM_APART] = "momentum_apart",
    [KERNEL_ADAMW_BF16_APART] = "adamw_bf16_apart",
    [KERNEL_MOMENTUM_BF16_APART] = "momentum_bf16_apart",
    [KERNEL_CONVOLUTION_FORWARD] = "convolution_forward",
    [KERNEL_CONVOLUTION_INPUT] = "convolution_input",
    [KERNEL_CONVOLUTION_WEIGHT] = "convolution_weight",
    [KERNEL_CONVOLUTION_3X3_FORWARD] = "convolution_3x3_forward",
    [KERNEL_CONVOLUTION_3X3_INPUT] = "convolution_3x3_input",
    [KERNEL_CONVOLUTION_3X3_WEIGHT] = "convolution_3x3_weight",
    [KERNEL_BATCH_NORM_FORWARD] = "batch_norm_forward",
    [KERNEL_BATCH_NORM_BACKWARD] = "batch_norm_backward",
    [KERNEL_RELU_FORWARD] = "relu_forward",
    [KERNEL_RELU_BACKWARD] = "relu_backward",
    [KERNEL_POOL] = "pool",
    [KERNEL_MATMUL_HALF_FORWARD] = "matmul_half_forward",
    [KERNEL_MATMUL_HALF_INPUT] = "matmul_half_input",
    [KERNEL_MATMUL_HALF_WEIGHT] = "matmul_half_weight",
    [KERNEL_ATTENTION_HALF_FORWARD] = "attention_half_forward",
    [KERNEL_ATTENTION_HALF_BACKWARD] = "attention_half_backward",
    [KERNEL_ATTENTION_FULL_HALF_FORWARD] = "attention_full_half_forward",
    [KERNEL_ATTENTION_FULL_HALF_BACKWARD] = "attention_full_half_backward",
    [KERNEL_NORM_HALF_FORWARD] = "norm_half_forward",
    [KERNEL_NORM_HALF_BACKWARD] = "norm_half_backward",
    [KERNEL_RMS_NORM_HALF_FORWARD] = "rms_norm_half_forward",
    [KERNEL_RMS_NORM_HALF_BACKWARD] = "rms_norm_half_backward",
    [KERNEL_GELU_HALF_FORWARD] = "gelu_half_forward",
    [KERNEL_GELU_HALF_BACKWARD] = "gelu_half_backward",
    [KERNEL_SWIGLU_HALF_FORWARD] = "swiglu_half_forward",
    [KERNEL_SWIGLU_HALF_BACKWARD] = "swiglu_half_backward",
    [KERNEL_RESIDUAL_HALF] = "residual_half",
    [KERNEL_BIAS_HALF_BACKWARD] = "bias_half_backward",
    [KERNEL_ROPE_HALF] = "rope_half",
    [KERNEL_GATHER_HALF] = "gather_half",
    [KERNEL_EMBED_HALF_FORWARD] = "embed_half_forward",
    [KERNEL_EMBED_HALF_BACKWARD] = "embed_half_backward",
    [KERNEL_COLLECTIVE] = "collective",
};
static_assert(ARRAY_COUNT(kernel_names) == KERNEL_COUNT, "a name per kernel");

enum { WORK_TAPS = 9 };

/* Factors of products of sizes. */
struct kernel_formula {
    double flops_mnk, flops_mnnk; /* per m n k and per m n^2 k */
    double mk, kn, mn, mnk, m;    /* elements that cross memory */
    double k_mn;                  /* more of m n for each unit of k (0 or 1) */
    double state_m, stats_mn;     /* fp32: optimizer state, statistics of rows */
    double tap_mk, tap_kn, tap_mn; /* a ninth of these columns */
    double half_mk, half_kn, half_m, half_mn, half_mnk, half_k_mn; /* bf16 values */
};

static const struct kernel_formula formulas[] = {
    [KERNEL_MATMUL_FORWARD] = {.flops_mnk = 2, .mk = 1, .kn = 1, .mn = 1},
    [KERNEL_MATMUL_INPUT] = {.flops_mnk = 2, .mk = 1, .kn = 1, .mn = 1},
    [KERNEL_MATMUL_WEIGHT] = {.flops_mnk = 2, .mk = 1, .kn = 1, .mn = 1},
    /* q, k, v in, one out; backward: also out and its gradient in, three gradients out */
    [KERNEL_ATTENTION_FORWARD] = {.flops_mnnk = 2, .mnk = 4, .stats_mn = 1},
    [KERNEL_ATTENTION_BACKWARD] = {.flops_mnnk = 4, .mnk = 8, .stats_mn = 1},
    [KERNEL_ATTENTION_FULL_FORWARD] = {.flops_mnnk = 4, .mnk = 4, .stats_mn = 1},
    [KERNEL_ATTENTION_FULL_BACKWARD] = {.flops_mnnk = 8, .mnk = 8, .stats_mn = 1},
    [KERNEL_NORM_FORWARD] = {.mn = 2, .k_mn = 2},
    [KERNEL_NORM_BACKWARD] = {.mn = 3, .k_mn = 1},
    [KERNEL_GELU_FORWARD] = {.mn = 2},
    [KERNEL_GELU_BACKWARD] = {.mn = 3},
    [KERNEL_RESIDUAL] = {.mn = 3},
    [KERNEL_BIAS_BACKWARD] = {.mn = 1},
    /* a row of each table in, their sum out; bf16 rows are half as long */
    [KERNEL_EMBED_FORWARD] = {.mn = 3, .k_mn = -1},
    /* a row in, its table row in and out; and every table row once */
    [KERNEL_EMBED_BACKWARD] = {.mn = 3, .kn = 1},
    [KERNEL_LOSS] = {.mn = 2},
    [KERNEL_SGD] = {.m = 1, .state_m = 2, .half_mn = 1},
    [KERNEL_ADAMW] = {.m = 1, .state_m = 6, .half_mn = 1},
    [KERNEL_MOMENTUM] = {.m = 1, .state_m = 4, .half_mn = 1},
    [KERNEL_SQUARES] = {.m = 1},
    [KERNEL_FIXED] = {0},
    [KERNEL_RMS_NORM_FORWARD] = {.mn = 2, .k_mn = 2},
    [KERNEL_RMS_NORM_BACKWARD] = {.mn = 3, .k_mn = 1},
    [KERNEL_ROPE] = {.mn = 2},
    /* gate and up in, one out; backward: both and the gradient in, two gradients out */
    [KERNEL_SWIGLU_FORWARD] = {.mn = 3},
    [KERNEL_SWIGLU_BACKWARD] = {.mn = 5},
    [KERNEL_GATHER] = {.mn = 2},
    [KERNEL_MATMUL_BF16_FORWARD] = {.flops_mnk = 2, .half_mk = 1, .half_kn = 1, .mn = 1},
    [KERNEL_MATMUL_BF16_INPUT] = {.flops_mnk = 2, .half_mk = 1, .half_kn = 1, .mn = 1},
    [KERNEL_MATMUL_BF16_WEIGHT] = {.flops_mnk = 2, .half_mk = 1, .half_kn = 1, .mn = 1},
    [KERNEL_ROUND] = {.m = 1, .half_m = 1},
    [KERNEL_ADAMW_BF16] = {.m = 1, .state_m = 2, .half_m = 4, .half_mn = 1},
    [KERNEL_MOMENTUM_BF16] = {.m = 1, .state_m = 2, .half_m = 2, .half_mn = 1},
    [KERNEL_SGD_APART] = {.m = 1, .state_m = 2, .half_mn = 1},
    [KERNEL_ADAMW_APART] = {.m = 1, .state_m = 6, .half_mn = 1},
    [KERNEL_MOMENTUM_APART] = {.m = 1, .state_m = 4, .half_mn = 1},
    [KERNEL_ADAMW_BF16_APART] = {.m = 1, .state_m = 2, .half_m = 4, .half_mn = 1},
    [KERNEL_MOMENTUM_BF16_APART] = {.m = 1, .state_m = 2, .half_m = 2, .half_mn = 1},
    [KERNEL_CONVOLUTION_FORWARD] = {.flops_mnk = 2, .tap_mk = 1, .kn = 1, .mn = 1},
    [KERNEL_CONVOLUTION_INPUT] = {.flops_mnk = 2, .mk = 1, .kn = 1, .tap_mn = 1},
    [KERNEL_CONVOLUTION_WEIGHT] = {.flops_mnk = 2, .mk = 1, .tap_kn = 1, .mn = 1},
    [KERNEL_CONVOLUTION_3X3_FORWARD] = {.flops_mnk = 2, .tap_mk = 1, .kn = 1, .mn = 1},
    [KERNEL_CONVOLUTION_3X3_INPUT] = {.flops_mnk = 2, .mk = 1, .kn = 1, .tap_mn = 1},
    [KERNEL_CONVOLUTION_3X3_WEIGHT] = {.flops_mnk = 2, .mk = 1, .tap_kn = 1, .mn = 1},
    /* in twice, out; in and the gradient twice, out */
    [KERNEL_BATCH_NORM_FORWARD] = {.mn = 3},
    [KERNEL_BATCH_NORM_BACKWARD] = {.mn = 5},
    [KERNEL_RELU_FORWARD] = {.mn = 2},
    [KERNEL_RELU_BACKWARD] = {.mn = 3},
    [KERNEL_POOL] = {.mn = 1},
    [KERNEL_MATMUL_HALF_FORWARD] = {.flops_mnk = 2, .half_mk = 1, .half_kn = 1, .half_mn = 1},
    [KERNEL_MATMUL_HALF_INPUT] = {.flops_mnk = 2, .half_mk = 1, .half_kn = 1, .half_mn = 1},
    [KERNEL_MATMUL_HALF_WEIGHT] = {.flops_mnk = 2, .half_mk = 1, .half_kn = 1, .mn = 1},
    [KERNEL_ATTENTION_HALF_FORWARD] = {.flops_mnnk = 2, .half_mnk = 4, .stats_mn = 1},
    [KERNEL_ATTENTION_HALF_BACKWARD] = {.flops_mnnk = 4, .half_mnk = 8, .stats_mn = 1},
    [KERNEL_ATTENTION_FULL_HALF_FORWARD] = {.flops_mnnk = 4, .half_mnk = 4, .stats_mn = 1},
    [KERNEL_ATTENTION_FULL_HALF_BACKWARD] = {.flops_mnnk = 8, .half_mnk = 8, .stats_mn = 1},
    [KERNEL_NORM_HALF_FORWARD] = {.half_mn = 2, .half_k_mn = 2},
    [KERNEL_NORM_HALF_BACKWARD] = {.half_mn = 3, .half_k_mn = 1},
    [KERNEL_RMS_NORM_HALF_FORWARD] = {.half_mn = 2, .half_k_mn = 2},
    [KERNEL_RMS_NORM_HALF_BACKWARD] = {.half_mn = 3, .half_k_mn = 1},
    [KERNEL_GELU_HALF_FORWARD] = {.half_mn = 2},
    [KERNEL_GELU_HALF_BACKWARD] = {.half_mn = 3},
    [KERNEL_SWIGLU_HALF_FORWARD] = {.half_mn = 3},
    [KERNEL_SWIGLU_HALF_BACKWARD] = {.half_mn = 5},
    [KERNEL_RESIDUAL_HALF] = {.half_mn = 3},
    [KERNEL_BIAS_HALF_BACKWARD] = {.half_mn = 1},
    [KERNEL_ROPE_HALF] = {.half_mn = 2},
    [KERNEL_GATHER_HALF] = {.half_mn = 2},
    [KERNEL_EMBED_HALF_FORWARD] = {.half_mn = 3},
    /* rows of 16 bits in; the table's gradient is fp32 */
    [KERNEL_EMBED_HALF_BACKWARD] = {.half_mn = 1, .mn = 2, .kn = 1},
    [KERNEL_COLLECTIVE] = {0},
};
static_assert(ARRAY_COUNT(formulas) == KERNEL_COUNT, "a formula per kernel");

/* --- classes of 16 bits ---------------------------------------------------------------------------- */

/* Maps 16-bit classes to wide ones; 0 for others. */
static const uint32_t wide[KERNEL_COUNT] = {
    [KERNEL_MATMUL_HALF_INPUT] = KERNEL_MATMUL_INPUT,
    [KERNEL_MATMUL_HALF_WEIGHT] = KERNEL_MATMUL_WEIGHT,
    [KERNEL_ATTENTION_HALF_FORWARD] = KERNEL_ATTENTION_FORWARD,
    [KERNEL_ATTENTION_HALF_BACKWARD] = KERNEL_ATTENTION_BACKWARD,
    [KERNEL_ATTENTION_FULL_HALF_FORWARD] = KERNEL_ATTENTION_FULL_FORWARD,
    [KERNEL_ATTENTION_FULL_HALF_BACKWARD] = KERNEL_ATTENTION_FULL_BACKWARD,
    [KERNEL_NORM_HALF_FORWARD] = KERNEL_NORM_FORWARD,
    [KERNEL_NORM_HALF_BACKWARD] = KERNEL_NORM_BACKWARD,
    [KERNEL_RMS_NORM_HALF_FORWARD] = KERNEL_RMS_NORM_FORWARD,
    [KERNEL_RMS_NORM_HALF_BACKWARD] = KERNEL_RMS_NORM_BACKWARD,
    [KERNEL_GELU_HALF_FORWARD] = KERNEL_GELU_FORWARD,
    [KERNEL_GELU_HALF_BACKWARD] = KERNEL_GELU_BACKWARD,
    [KERNEL_SWIGLU_HALF_FORWARD] = KERNEL_SWIGLU_FORWARD,
    [KERNEL_SWIGLU_HALF_BACKWARD] = KERNEL_SWIGLU_BACKWARD,
    [KERNEL_RESIDUAL_HALF] = KERNEL_RESIDUAL,
    [KERNEL_BIAS_HALF_BACKWARD] = KERNEL_BIAS_BACKWARD,
    [KERNEL_ROPE_HALF] = KERNEL_ROPE,
    [KERNEL_GATHER_HALF] = KERNEL_GATHER,
    [KERNEL_EMBED_HALF_FORWARD] = KERNEL_EMBED_FORWARD,
    [KERNEL_EMBED_HALF_BACKWARD] = KERNEL_EMBED_BACKWARD,
};
static_assert(KERNEL_MATMUL_FORWARD == 0, "what `wide` has where it says nothing");

static bool is_half(uint32_t kernel)
{
    return kernel == KERNEL_MATMUL_HALF_FORWARD || wide[kernel] != 0;
}

uint32_t kernel_wide(uint32_t kernel)
{
    assert(kernel < KERNEL_COUNT);
    return is_half(kernel) ? wide[kernel] : kernel;
}

uint32_t kernel_half(uint32_t kernel)
{
    assert(kernel < KERNEL_COUNT);
    for (uint32_t half = KERNEL_MATMUL_HALF_FORWARD; half < KERNEL_COUNT; half++)
        if (is_half(half) && wide[half] == kernel) return half;
    return kernel;
}

/* --- FLOPs and bytes -------------------------------------------------------------------------- */

static const struct kernel_formula *formula_of(uint32_t kernel)
{
    assert(kernel < KERNEL_COUNT);
    return &formulas[kernel];
}

double work_item_flops(const struct work_item *item)
{
    const struct kernel_formula *f = formula_of(item->kernel);
    double m = (double)item->m, n = (double)item->n, k = (double)item->k;
    return (double)item->count * m * n * k * (f->flops_mnk + f->flops_mnnk * n);
}

double work_item_bytes(const struct work_item *item, uint32_t element_bytes)
{
    const struct kernel_formula *f = formula_of(item->kernel);
    double m = (double)item->m, n = (double)item->n, k = (double)item->k;
    double elements = f->mk * m * k + f->kn * k * n + (f->mn + f->k_mn * k) * m * n +
                      f->mnk * m * n * k + f->m * m +
                      (f->tap_mk * m * k + f->tap_kn * k * n + f->tap_mn * m * n) / WORK_TAPS;
    double words = f->state_m * m + f->stats_mn * m * n;
    double halves = f->half_mk * m * k + f->half_kn * k * n + f->half_m * m +
                    (f->half_mn + f->half_k_mn * k) * m * n + f->half_mnk * m * n * k;
    return (double)item->count *
           (elements * element_bytes + words * sizeof(float) + halves * sizeof(float) / 2);
}

double work_flops(const struct work_item *items, size_t count)
{
    double flops = 0;
    for (size_t i = 0; i < count; i++) flops += work_item_flops(&items[i]);
    return flops;
}

double work_least_flops(const struct work_item *items, size_t count)
{
    double flops = 0;
    for (size_t i = 0; i < count; i++)
        flops += work_item_flops(&items[i]) / (work_is_convolution_3x3(items[i].kernel) ? WORK_CONVOLUTION_FEWER : 1);
    return flops;
}
