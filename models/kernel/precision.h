/*
 * Number formats of a job's training, and of its optimizer's moments.
 *
 *                 weights in passes      activations, their gradients,     gradients of   updated by the
 *                                        boundaries                        weights        optimizer
 *   fp32          fp32                   fp32                              fp32           the weights
 *   bf16          16 bits                16 bits                           fp32           an fp32 master of all
 *                 weights
 *   bf16-weights  matrices in 16 bits,   fp32                              fp32           an fp32 master of the
 *                 matrices vectors in fp32
 *
 * "bf16" is Megatron-LM's mixed precision; logits, their loss, statistics of norms and attention, and moments are
 * fp32. Only hosts carry it out (exec/kernels/kernels_number.h): a kernel reads its operands widened to fp32, computes
 * and adds up in fp32, and rounds a result once, to nearest, when it stores it. So rounded are
 *
 *     each activation, also the residual stream after each sum, and each gradient of an activation
 *     a gradient to which several products add, after each of them
 *     an embedding, after each row that is added to it
 *     the gradient of logits, as an operand of both products
 *     in attention what follows, as in bf16-weights
 *     in a tensor group each device's part of a sum, and the sum of all parts, which are added up in fp32
 *
 * In "bf16-weights" the executor reads matrices (of products, and tables of rows) in bf16; products round their other
 * operand too and add up in fp32.
 *
 * In both attention rounds the operands of its products:
 *
 *     rounded: q, k, v; exp(score - largest) as an operand; backward: the gradient of the output, the weights as its
 *              other operand, and the gradients of the scores
 *     fp32:    scores, the softmax and its sums, and all accumulators
 *     rounded when complete: the output and the gradients of q, k and v, which bf16-weights stores as fp32
 *
 * This holds for the host's kernels, and in bf16-weights for CUDA's and cuDNN's graph
 * (exec/kernels/kernels_attention.c, exec/kernels/number/half_attention.c, exec/cuda/kernels_cuda_attention.cu,
 * exec/cuda/attention_cudnn.c). They subtract the largest score of the row, or the largest so far, and therefore round
 * single weights differently.
 *
 * After each step weights are rounded from the master to nearest (Micikevicius et al., arXiv 1710.03740).
 *
 * Moments in bf16 are rounded at random (base/bf16.h). Rounded to nearest, AdamW's second moment would stall: with
 * beta2 = 0.999 a step changes it by at most a thousandth, less than half a step of bf16's eight bits.
 */
#ifndef SPILLWAY_MODELS_KERNEL_PRECISION_H
#define SPILLWAY_MODELS_KERNEL_PRECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json/json_in.h"

enum precision { PRECISION_FP32, PRECISION_BF16, PRECISION_BF16_WEIGHTS, PRECISION_COUNT };
extern const char *const precision_names[PRECISION_COUNT + 1]; /* ends with NULL */

/* Precisions of single numbers, such as moments. */
enum { PRECISION_NUMBERS = PRECISION_BF16_WEIGHTS };

/*
 * Returns our name for any spelling ("bfloat16", "torch.float32"), or NULL. "tf32" is fp32, whose products use TF32
 * where a device can.
 */
const char *precision_spelled(const char *text);

/* Returns true for fp16 ("half", "torch.float16"), which has bf16's size and speed but needs loss scaling, which is
 * neither carried out nor modelled. */
bool precision_is_fp16(const char *text);

/* Returns true for "tf32", which precision_read() takes as fp32. */
bool precision_is_tf32(const char *text);

/* Takes one of the first `count` precisions; if absent, *out is untouched. */
MUST_CHECK enum status precision_read(struct json_object *object, const char *key, uint32_t count, uint32_t *out,
                                      struct error *err);

/* Returns the bytes of activations, their gradients and boundaries, or of a stored number. */
static inline uint64_t precision_bytes(uint32_t precision)
{
    return precision == PRECISION_BF16 ? 2 : 4;
}

/* Returns true if passes read this weight in 16 bits. */
static inline bool precision_halves_weight(uint32_t precision, bool matrix)
{
    return precision == PRECISION_BF16 || (precision == PRECISION_BF16_WEIGHTS && matrix);
}

/* Returns true if passes read this tensor in 16 bits: adapters beside rounded weights are fp32. */
static inline bool precision_halves_tensor(uint32_t precision, bool matrix, bool adapter)
{
    return precision_halves_weight(precision, matrix && !adapter);
}

/* Returns the bytes of a matrix's number as passes read it. */
static inline uint64_t precision_weight_bytes(uint32_t precision)
{
    return precision_halves_weight(precision, true) ? 2 : 4;
}

/* They determine a job's state. Zeroed: all fp32. */
struct state_format {
    uint32_t optimizer; /* enum optimizer_kind */
    uint32_t weights;   /* enum precision */
    uint32_t moments;
    bool apart; /* frozen weights are in a base that jobs share: models/jobs/job_base.h */
};

#endif
