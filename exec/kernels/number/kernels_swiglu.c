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

CLONES_PART void gated_part(enum gate kind, kernel_number *y, const kernel_number *gate, const kernel_number *up,
                            int64_t chunks)
{
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        float g[HOST_CHUNK], u[HOST_CHUNK];
        host_load_chunk(g, gate + chunk * HOST_CHUNK);
        host_load_chunk(u, up + chunk * HOST_CHUNK);
        for (int l = 0; l < HOST_CHUNK; l++) g[l] = g[l] * gate_share(kind, g[l]) * u[l];
        host_store_chunk(y + chunk * HOST_CHUNK, g);
    }
}

CLONES_PART void gated_backward_part(enum gate kind, kernel_number *dgate, kernel_number *dup,
                                     const kernel_number *dy, const kernel_number *gate, const kernel_number *up,
                                     int64_t chunks)
{
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        int64_t at = chunk * HOST_CHUNK;
        float g[HOST_CHUNK], u[HOST_CHUNK], d[HOST_CHUNK];
        host_load_chunk(g, gate + at);
        host_load_chunk(u, up + at);
        host_load_chunk(d, dy + at);
        for (int l = 0; l < HOST_CHUNK; l++) {
            float s = gate_share(kind, g[l]), act = g[l] * s;
            g[l] = d[l] * u[l] * gate_slope(kind, g[l], s);
            u[l] = d[l] * act;
        }
        host_store_chunk(dgate + at, g);
        host_store_chunk(dup + at, u);
    }
}

CLONES static void swiglu_chunks(kernel_number *y, const kernel_number *gate, const kernel_number *up, int64_t chunks)
{
    gated_part(GATE_SILU, y, gate, up, chunks);
}

CLONES static void swiglu_backward_chunks(kernel_number *dgate, kernel_number *dup, const kernel_number *dy,
                                          const kernel_number *gate, const kernel_number *up, int64_t chunks)
{
    gated_backward_part(GATE_SILU, dgate, dup, dy, gate, up, chunks);
}

CLONES static void geglu_chunks(kernel_number *y, const kernel_number *gate, const kernel_number *up, int64_t chunks)
{
    gated_part(GATE_GELU, y, gate, up, chunks);
}

CLONES static void geglu_backward_chunks(kernel_number *dgate, kernel_number *dup, const kernel_number *dy,
                                         const kernel_number *gate, const kernel_number *up, int64_t chunks)
{
    gated_backward_part(GATE_GELU, dgate, dup, dy, gate, up, chunks);
}

/* --- drivers ---------------------------------------------------------------------------------- */

void HOST(swiglu_forward)(const struct kernels *kernels, kernel_number *y, const kernel_number *gate,
                         const kernel_number *up, int64_t n)
{
    HOST(map_two)(kernels, swiglu_chunks, y, gate, up, n);
}

void HOST(geglu_forward)(const struct kernels *kernels, kernel_number *y, const kernel_number *gate,
                         const kernel_number *up, int64_t n)
{
    HOST(map_two)(kernels, geglu_chunks, y, gate, up, n);
}

typedef void (*gated_backward)(kernel_number *dgate, kernel_number *dup, const kernel_number *dy,
                               const kernel_number *gate, const kernel_number *up, int64_t chunks);

static void map_backward(const struct kernels *kernels, gated_backward leaf, kernel_number *dgate, kernel_number *dup,
                         const kernel_number *dy, const kernel_number *gate, const kernel_number *up, int64_t n)
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
            kernel_number g[HOST_CHUNK] = {0}, u[HOST_CHUNK] = {0}, d[HOST_CHUNK] = {0};
            memcpy(g, gate + last, bytes);
            memcpy(u, up + last, bytes);
            memcpy(d, dy + last, bytes);
            leaf(g, u, d, g, u, 1);
            memcpy(dgate + last, g, bytes);
            memcpy(dup + last, u, bytes);
        }
    }
}

void HOST(swiglu_backward)(const struct kernels *kernels, kernel_number *dgate, kernel_number *dup,
                           const kernel_number *dy, const kernel_number *gate, const kernel_number *up, int64_t n)
{
    map_backward(kernels, swiglu_backward_chunks, dgate, dup, dy, gate, up, n);
}

void HOST(geglu_backward)(const struct kernels *kernels, kernel_number *dgate, kernel_number *dup,
                          const kernel_number *dy, const kernel_number *gate, const kernel_number *up, int64_t n)
{
    map_backward(kernels, geglu_backward_chunks, dgate, dup, dy, gate, up, n);
}
