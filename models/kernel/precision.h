/*
 * Number formats. A job has two precisions: one of its training, and one of its optimizer's moments.
 *
 *                 weights in passes      activations, their gradients,     gradients of   updated by the
 *                                        boundaries                        weights        optimizer
 *   fp32          fp32                   fp32                              fp32           the weights
 *   bf16          16 bits                16 bits                           fp32           an fp32 master of all
 *                 weights
 *   bf16-weights  matrices in 16 bits,   fp32                              fp32           an fp32 master of the
 *                 matrices vectors in fp32
 *
 * They have the same meaning for spilled, resident and parallel jobs. "bf16" is Megatron-LM's mixed precision;
 * logits, their loss, statistics of norms and attention, and the optimizer's moments are fp32. No executor here
 * carries it out yet. The executor trains in "bf16-weights": it reads matrices (operands of matrix products, and
 * tables whose rows are looked up) in bf16; products round their other operand too and add up in fp32.
 *
 * Attention consists of two products with a softmax between them. In bf16-weights it rounds the operands of its
 * products:
 *
 *     rounded: q, k, v; exp(score - largest) as an operand; backward: the gradient of the output, the weights as its
 *              other operand, and the gradients of the scores
 *     fp32:    scores, the softmax and its sums, and all accumulators
 *     rounded when complete: the output and the gradients of q, k and v, which are stored as fp32
 *
 * This holds for the host's kernels (exec/kernels/kernels_attention.c), CUDA's (exec/cuda/kernels_cuda_attention.cu)
 * and the graph given to cuDNN (exec/cuda/attention_cudnn.c). They differ in the largest score that they subtract,
 * the largest of the row or the largest so far, and therefore in the rounding of single weights.
 *
 * The optimizer updates an fp32 master of the matrices; after each step the weights are rounded from it to nearest
 * (Micikevicius et al., arXiv 1710.03740).
 *
 * Moments in bf16 are rounded at random (base/bf16.h). With rounding to nearest, AdamW's second moment would stall:
 * with beta2 = 0.999 a step changes it by at most a thousandth. bf16 has eight bits, so every change is less than
 * half the distance to the next number and would be rounded away.
 */
#ifndef SPILLWAY_MODELS_KERNEL_PRECISION_H
#define SPILLWAY_MODELS_KERNEL_PRECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json/json_in.h"

enum precision { PRECISION_FP32, PRECISION_BF16, PRECISION_BF16_WEIGHTS, PRECISION_COUNT };
extern const char *const precision_names[PRECISION_COUNT + 1]; /* "fp32", "bf16", "bf16-weights"; ends with NULL */

/* The number of precisions that single numbers, such as moments, can have. */
enum { PRECISION_NUMBERS = PRECISION_BF16_WEIGHTS };

/*
 * Returns our name of a precision in PyTorch's or other spelling ("bfloat16", "torch.float32") or in ours; NULL for
 * any other word. "tf32" is fp32, whose products use TF32 where a device can.
 */
const char *precision_spelled(const char *text);

/* Returns true for fp16 under any name ("half", "torch.float16"). fp16 has the size and speed of bf16 but needs loss
 * scaling, which is neither carried out nor modelled. */
bool precision_is_fp16(const char *text);

/* Takes a key whose value is one of the first `count` precisions; if absent, *out is untouched. Errors list our
 * names. */
MUST_CHECK enum status precision_read(struct json_object *object, const char *key, uint32_t count, uint32_t *out,
                                      struct error *err);

/* Returns the bytes of a number in activations, their gradients and boundaries, or of a number stored in this
 * precision. */
static inline uint64_t precision_bytes(uint32_t precision)
{
    return precision == PRECISION_BF16 ? 2 : 4;
}

/* Returns true when passes read this weight in 16 bits. models/network/network.h defines matrices. */
static inline bool precision_halves_weight(uint32_t precision, bool matrix)
{
    return precision == PRECISION_BF16 || (precision == PRECISION_BF16_WEIGHTS && matrix);
}

/* Returns the bytes of a matrix's number as passes read it. */
static inline uint64_t precision_weight_bytes(uint32_t precision)
{
    return precision_halves_weight(precision, true) ? 2 : 4;
}

/* The formats that determine a job's state. Zeroed except for the optimizer: all fp32. */
struct state_format {
    uint32_t optimizer; /* enum optimizer_kind */
    uint32_t weights;   /* enum precision, of the training */
    uint32_t moments;
};

#endif
