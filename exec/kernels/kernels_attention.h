/*
 * The arguments of attention; plain C, also for the CUDA kernels.
 *
 * B samples of T tokens; H heads of queries of width D; K heads of keys and values, each shared by
 * H / K consecutive heads of queries. q, k and v may be columns of one array:
 *
 *     qkv(B,T,3C)                    q = qkv, k = qkv + C, v = qkv + 2 C, row_q = row_kv = 3 C
 *     q(B,T,HD), k and v(B,T,KD)     row_q = H D, row_kv = K D
 *
 * A gradient has the layout of its tensor; out and dout are (B,T,HD).
 *
 * The T queries may follow `earlier` tokens of their sample, whose keys and values come before theirs: k, v, dk and dv
 * are (B,held,KD), of which the first earlier + T tokens of a sample count. A token sees itself and all before it, or
 * in a window the last `window` tokens up to itself. In a sample of packed rows it sees none of other rows.
 */
#ifndef SPILLWAY_EXEC_KERNELS_KERNELS_ATTENTION_H
#define SPILLWAY_EXEC_KERNELS_KERNELS_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/kernels/kernels_dropout.h"
#include "exec/kernels/kernels_number.h"

struct kernel_attention {
    kernel_number *out;                /* written by forward, read by backward */
    float *stats;              /* (B,H,T): log of the sum of exponentials */
    const kernel_number *q, *k, *v;
    const kernel_number *dout;         /* only for backward, as dq, dk and dv */
    kernel_number *dq, *dk, *dv;
    float *scratch;            /* the workspace entry `scratch` (models/job/memory.h) */
    int64_t b, t, h, kv, d;
    int64_t row_q, row_kv;     /* from one token to the next */
    int64_t earlier, held;     /* held 0: T, and no earlier tokens */
    int64_t window;            /* only causal, and on hosts; 0: all tokens */
    float scale;               /* of scores; 0: 1 / root of D. On hosts, as ... */
    struct kernel_dropout dropout; /* of weights, after the softmax; on hosts. Samples count from its first one */
    float cap;                 /* ... scores s become cap tanh(s / cap), before keys are hidden; 0: they do not */
    const int32_t *begins;     /* (B,T): the first token of each token's own row; only causal, on hosts, and without
                                  earlier
                                * tokens; NULL: a sample is one row */
    bool adds;                 /* with earlier tokens: to dk and dv, instead of writing them */
    bool causal;               /* a token sees itself and earlier ones; false: all */
    bool rounded;              /* for bf16 jobs (models/kernel/precision.h) */
};

#endif
