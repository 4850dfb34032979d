/*
 * How numbers are stored. A job has two precisions: that of its training, and that of the moments of its optimizer.
 *
 *                 weights in passes      activations, their gradients,     gradients of   what the optimizer
 *                                        boundaries                        weights        changes
 *   fp32          fp32                   fp32                              fp32           the weights
 *   bf16          16 bits                16 bits                           fp32           an fp32 master of all weights
 *   bf16-weights  matrices in 16 bits,   fp32                              fp32           an fp32 master of the matrices
 *                 vectors in fp32
 *
 * They mean the same however a job runs: spilled, resident or spread over devices. "bf16" is Megatron-LM's mixed
 * precision; logits, their loss, statistics of norms and attention and the optimizer's moments are fp32. No executor
 * here carries it out yet. "bf16-weights" is what the executor does: matrices (operands of matrix products, and tables
 * whose rows are looked up) are read in bf16, products round their other operand as well and add up in fp32.
 *
 * Attention is two products with a softmax between them, and in bf16-weights rounds like the others what it multiplies:
 *
 *     rounded: q, k, v; exp(score - largest) where it meets v; and back the gradient of the output, the
 *              weights where they meet it, and the gradients of the scores
 *     fp32:    scores, the softmax and its sums, and whatever is added up
 *     rounded when complete: the output and the gradients of q, k and v, which are kept as fp32
 *
 * So say the host's kernels (exec/kernels/kernels_attention.c), those of CUDA (exec/cuda/kernels_cuda_attention.cu) and
 * the graph that cuDNN is given (exec/cuda/attention_cudnn.c). They differ in the largest score that is meant,
 * that of the row or the largest so far, and with it in how single weights are rounded.
 *
 * What the optimizer changes is an fp32 master of the matrices, from which the weights are rounded to
 * nearest after each step (Micikevicius et al., arXiv 1710.03740).
 *
 * Moments in bf16 are rounded at random (base/bf16.h). To nearest, AdamW's second moment would stall:
 * with beta2 = 0.999 a step changes it by at most a thousandth, and bf16 has eight bits, so that every
 * change is less than half the distance to the next number and is rounded away.
 */
#ifndef SPILLWAY_MODELS_PRECISION_H
#define SPILLWAY_MODELS_PRECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json/json_in.h"

enum precision { PRECISION_FP32, PRECISION_BF16, PRECISION_BF16_WEIGHTS, PRECISION_COUNT };
extern const char *const precision_names[PRECISION_COUNT + 1]; /* "fp32", "bf16", "bf16-weights"; ends with NULL */

/* The first of them, which single numbers may have, such as moments. */
enum { PRECISION_NUMBERS = PRECISION_BF16_WEIGHTS };

/*
 * Our name of a precision as PyTorch and others spell it ("bfloat16", "torch.float32"), or as we do; NULL of any other word.
 * "tf32" is fp32, whose products go by it where a device can.
 */
const char *precision_spelled(const char *text);

/* fp16 under any name ("half", "torch.float16"): it has as many bytes as bf16 and its speed, and needs losses scaled, which is
 * neither done nor modelled. */
bool precision_is_fp16(const char *text);

/* A key that may have the first `count` of these; *out stays where it is absent. Errors name ours. */
MUST_CHECK enum status precision_take(struct json_object *object, const char *key, uint32_t count, uint32_t *out,
                                      struct error *err);

/* Returns the bytes of a number of activations, their gradients and boundaries, or of one stored in this precision. */
static inline uint64_t precision_bytes(uint32_t precision)
{
    return precision == PRECISION_BF16 ? 2 : 4;
}

/* Do passes read this weight in 16 bits? Matrices are those that models/network/network.h says. */
static inline bool precision_halves_weight(uint32_t precision, bool matrix)
{
    return precision == PRECISION_BF16 || (precision == PRECISION_BF16_WEIGHTS && matrix);
}

/* Returns the bytes of a matrix's number as passes read it. */
static inline uint64_t precision_weight_bytes(uint32_t precision)
{
    return precision_halves_weight(precision, true) ? 2 : 4;
}

/* What decides what the state of a job is made of. Zeroed but for the optimizer: all fp32. */
struct state_format {
    uint32_t optimizer; /* enum optimizer_kind */
    uint32_t weights;   /* enum precision, of the training */
    uint32_t moments;
};

#endif
