/*
 * The arguments of attention, for every back end. The CUDA kernels include this file too, so it is
 * plain C.
 *
 * B samples of T tokens; H heads of queries of width D; K heads of keys and values, each shared by
 * H / K consecutive heads of queries. Rows may have any distance, so q, k and v may be columns of
 * one array:
 *
 *     qkv(B,T,3C)                    q = qkv, k = qkv + C, v = qkv + 2 C, row_q = row_kv = 3 C
 *     q(B,T,HD), k and v(B,T,KD)     row_q = H D, row_kv = K D
 *
 * A gradient has the layout of its tensor; out and dout are (B,T,HD).
 */
#ifndef SPILLWAY_EXEC_KERNELS_KERNELS_ATTENTION_H
#define SPILLWAY_EXEC_KERNELS_KERNELS_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_attention {
    float *out;                /* forward writes out and stats, backward reads them */
    float *stats;              /* (B,H,T): log of the sum of exponentials */
    const float *q, *k, *v;
    const float *dout;         /* only for backward, as dq, dk and dv */
    float *dq, *dk, *dv;
    float *scratch;            /* the workspace entry `scratch` (models/job/memory.h) */
    int64_t b, t, h, kv, d;
    int64_t row_q, row_kv;     /* numbers from one token to the next */
    bool causal;               /* a token sees itself and earlier tokens; false: all tokens */
    bool rounded;              /* for bf16 jobs; models/kernel/precision.h lists the rounded
                                  values */
};

#endif
