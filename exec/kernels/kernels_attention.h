/*
 * The arguments of attention, for every back end; plain C that the CUDA kernels include too.
 *
 * B samples of T tokens; H heads of queries of width D, K heads of keys and values, each of which H / K
 * heads in a row share. Rows lie any distance apart, so q, k and v may be columns of one array:
 *
 *     qkv(B,T,3C)                    q = qkv, k = qkv + C, v = qkv + 2 C, row_q = row_kv = 3 C
 *     q(B,T,HD), k and v(B,T,KD)     row_q = H D, row_kv = K D
 *
 * A gradient lies like what it is the gradient of; out and dout are (B,T,HD).
 */
#ifndef SPILLWAY_EXEC_KERNELS_ATTENTION_H
#define SPILLWAY_EXEC_KERNELS_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

struct attention {
    float *out;                /* forward writes these two, backward reads them */
    float *stats;              /* (B,H,T): log of the sum of exponentials */
    const float *q, *k, *v;
    const float *dout;         /* backward alone, as the three below */
    float *dq, *dk, *dv;
    float *scratch;            /* the workspace entry of that name (models/job/memory.h) */
    int64_t b, t, h, kv, d;
    int64_t row_q, row_kv;     /* numbers from one token to the next */
    bool causal;               /* a token sees itself and those before it, else all */
    bool rounded;              /* of a job in bf16: what that rounds is in models/kernel/precision.h */
};

#endif
