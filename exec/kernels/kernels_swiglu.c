/*
 * Gated units, and their gradients. SwiGLU: y = silu(gate) up, silu(x) = x s(x), s(x) = 1 / (1 + exp(-x)).
 *
 *     d up = dy gate s;  d gate = dy up s (1 + gate (1 - s))
 *
 * GEGLU: y = gelu(gate) up, in GELU's tanh form.
 *
 * Leaves work on whole chunks as in kernels_elementwise.c.
 *
 * Cost: 12 bytes per number forward, 20 backward. Source: Shazeer, "GLU variants improve
 * transformer", arXiv 2002.05202.
 */
#include "exec/kernels/kernels_host.h"

#include "exec/kernels/kernels_math.h"

/* --- leaves: whole chunks --------------------------------------------------------------------- */

/* The unit: y = act(gate) up, where act(x) = x s(x). */
enum gate { GATE_SILU, GATE_GELU };

CLONES_PART float gate_share(enum gate gate, float x)
{
    return gate == GATE_GELU ? math_gelu_gate(x) : math_logistic(x);
}

/* d act / dx, of s = gate_share(gate, x). */
CLONES_PART float gate_slope(enum gate gate, float x, float s)
{
    return gate == GATE_GELU ? math_gelu_slope(x, s) : s + x * s * (1.0f - s);
}

CLONES_PART void gated_part(enum gate kind, float *y, const float *gate, const float *up, int64_t chunks)
{
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        float g[HOST_CHUNK], u[HOST_CHUNK];
        memcpy(g, gate + chunk * HOST_CHUNK, sizeof g);
        memcpy(u, up + chunk * HOST_CHUNK, sizeof u);
        for (int l = 0; l < HOST_CHUNK; l++) g[l] = g[l] * gate_share(kind, g[l]) * u[l];
        memcpy(y + chunk * HOST_CHUNK, g, sizeof g);
    }
}

CLONES_PART void gated_backward_part(enum gate kind, float *dgate, float *dup, const float *dy, const float *gate,
                                     const float *up, int64_t chunks)
{
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        int64_t at = chunk * HOST_CHUNK;
        float g[HOST_CHUNK], u[HOST_CHUNK], d[HOST_CHUNK];
        memcpy(g, gate + at, sizeof g);
        memcpy(u, up + at, sizeof u);
        memcpy(d, dy + at, sizeof d);
        for (int l = 0; l < HOST_CHUNK; l++) {
            float s = gate_share(kind, g[l]), act = g[l] * s;
            g[l] = d[l] * u[l] * gate_slope(kind, g[l], s);
            u[l] = d[l] * act;
        }
        memcpy(dgate + at, g, sizeof g);
        memcpy(dup + at, u, sizeof u);
    }
}

CLONES static void swiglu_chunks(float *y, const float *gate, const float *up, int64_t chunks)
{
    gated_part(GATE_SILU, y, gate, up, chunks);
}

CLONES static void swiglu_backward_chunks(float *dgate, float *dup, const float *dy, const float *gate, const float *up,
                                          int64_t chunks)
{
    gated_backward_part(GATE_SILU, dgate, dup, dy, gate, up, chunks);
}

CLONES static void geglu_chunks(float *y, const float *gate, const float *up, int64_t chunks)
{
    gated_part(GATE_GELU, y, gate, up, chunks);
}

CLONES static void geglu_backward_chunks(float *dgate, float *dup, const float *dy, const float *gate, const float *up,
                                         int64_t chunks)
{
    gated_backward_part(GATE_GELU, dgate, dup, dy, gate, up, chunks);
}

/* --- drivers ---------------------------------------------------------------------------------- */

void host_swiglu_forward(const struct kernels *kernels, float *y, const float *gate,
                         const float *up, int64_t n)
{
    host_map_two(kernels, swiglu_chunks, y, gate, up, n);
}

void host_geglu_forward(const struct kernels *kernels, float *y, const float *gate, const float *up, int64_t n)
{
    host_map_two(kernels, geglu_chunks, y, gate, up, n);
}

typedef void (*gated_backward)(float *dgate, float *dup, const float *dy, const float *gate, const float *up,
                               int64_t chunks);

static void map_backward(const struct kernels *kernels, gated_backward leaf, float *dgate, float *dup, const float *dy,
                         const float *gate, const float *up, int64_t n)
{
    int64_t blocks = host_blocks(n, HOST_BLOCK);
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (n > HOST_SERIAL)
    for (int64_t block = 0; block < blocks; block++) {
        int64_t first = block * HOST_BLOCK;
        int64_t count = host_min(HOST_BLOCK, n - first), rest = count % HOST_CHUNK;
        leaf(dgate + first, dup + first, dy + first, gate + first, up + first, count / HOST_CHUNK);
        if (rest > 0) {
            int64_t last = first + count - rest;
            size_t bytes = (size_t)rest * sizeof *dy;
            float g[HOST_CHUNK] = {0}, u[HOST_CHUNK] = {0}, d[HOST_CHUNK] = {0};
            memcpy(g, gate + last, bytes);
            memcpy(u, up + last, bytes);
            memcpy(d, dy + last, bytes);
            leaf(g, u, d, g, u, 1);
            memcpy(dgate + last, g, bytes);
            memcpy(dup + last, u, bytes);
        }
    }
}

void host_swiglu_backward(const struct kernels *kernels, float *dgate, float *dup, const float *dy,
                          const float *gate, const float *up, int64_t n)
{
    map_backward(kernels, swiglu_backward_chunks, dgate, dup, dy, gate, up, n);
}

void host_geglu_backward(const struct kernels *kernels, float *dgate, float *dup, const float *dy, const float *gate,
                         const float *up, int64_t n)
{
    map_backward(kernels, geglu_backward_chunks, dgate, dup, dy, gate, up, n);
}
