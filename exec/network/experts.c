/*
 * Gradients of the backward pass are pieces of d_wide (models/job/memory_workspace.c):
 *
 *     d_gate(Rk,F)  d_up(Rk,F)  d_sent(Rk,C)  d_router(R,E)  and of the expert of all rows d_gate(R,S)  d_up(R,S)
 *     d_factor(R)
 *
 * d_sent first has the gradients of returned rows. A backward pass in halves makes these again for the weights. Before
 * that it has the gradient of the shared expert's result.
 *
 * An expert without a row has a gradient of zeros, as one of all experts' tensor has in the reference: its weights step
 * by their moments and decay. All experts' tensor steps at once, after the last expert.
 */
#include "exec/network/experts.h"

#include "models/network/network_traits.h"

enum experts_tensor { ROUTER, GATE_UP, DOWN, SHARED_GATE, SHARED_UP, SHARED_DOWN, SHARED_FACTOR, EXPERTS_TENSORS };

static bool has_shared(const struct transformer_unit *unit)
{
    return unit->network->shared_width > 0;
}

uint32_t experts_tensor_count(const struct network *network)
{
    return network->shared_width > 0 ? EXPERTS_TENSORS : SHARED_GATE;
}

struct experts_kept experts_kept_of(const struct transformer_unit *unit, float *const **next)
{
    struct experts_kept kept = {.router = NULL};
    float *const *at = *next;
    if (has_shared(unit)) {
        kept.shared_gate = *at++;
        kept.shared_up = *at++;
        kept.shared_swiglu = *at++;
        kept.shared_made = *at++;
    }
    kept.router = *at++;
    kept.routes = *at++;
    kept.sent = *at++;
    kept.returned = *at++;
    kept.gate = *at++;
    kept.up = *at++;
    kept.swiglu = *at++;
    *next = at;
    return kept;
}

/* Sizes of all experts, and the pieces of what is kept or of d_wide. */
struct experts {
    int64_t r, c, f, e, k, s; /* s: 0 without an expert of all rows */
    struct kernel_routes routes;
    float *d_gate, *d_up, *d_sent, *d_router, *d_shared_gate, *d_shared_up, *d_factor;
};

static struct experts experts_of(const struct transformer_unit *unit, const struct experts_kept *kept)
{
    const struct network *const n = unit->network;
    struct experts x = {.r = unit->r, .c = unit->c, .f = unit->f, .e = (int64_t)n->experts,
                        .k = (int64_t)n->experts_chosen,
                        .s = (int64_t)n->shared_width};
    const int64_t pairs = x.r * x.k;
    int32_t *const numbers = (int32_t *)(void *)(kept->routes + pairs);
    x.routes = (struct kernel_routes){.r = x.r, .e = x.e, .k = x.k, .normalized = n->experts_normalized,
                                      .probabilities = kept->router, .weights = kept->routes, .experts = numbers,
                                      .places = numbers + pairs, .rows = numbers + 2 * pairs,
                                      .begins = numbers + 3 * pairs};
    x.d_gate = unit->d_wide;
    if (!x.d_gate) return x;
    x.d_up = x.d_gate + pairs * x.f;
    x.d_sent = x.d_up + pairs * x.f;
    x.d_router = x.d_sent + pairs * x.c;
    x.d_shared_gate = x.d_router + x.r * x.e;
    x.d_shared_up = x.d_shared_gate + x.r * x.s;
    x.d_factor = x.d_shared_up + x.r * x.s;
    return x;
}

/* --- the expert of all rows ------------------------------------------------------------------------ */

static struct transformer_linear shared_linear(const struct experts *x, uint32_t first, enum experts_tensor tensor)
{
    const bool down = tensor == SHARED_DOWN;
    const int64_t out = tensor == SHARED_FACTOR ? 1 : down ? x->c : x->s;
    return (struct transformer_linear){.weight = first + tensor, .rows = x->r, .out = out, .in = down ? x->s : x->c};
}

static float *shared_factor(const struct experts *x, const struct experts_kept *kept)
{
    return kept->shared_made + x->r * x->c;
}

static void shared_forward(const struct transformer_unit *unit, uint64_t layer, uint32_t first, const struct experts *x,
                           const struct experts_kept *kept, const float *in)
{
    const struct kernels *k = unit->kernels;
    transformer_linear_forward(unit, kept->shared_gate, in, layer, shared_linear(x, first, SHARED_GATE));
    transformer_linear_forward(unit, kept->shared_up, in, layer, shared_linear(x, first, SHARED_UP));
    k->swiglu_forward(k, kept->shared_swiglu, kept->shared_gate, kept->shared_up, x->r * x->s);
    transformer_linear_forward(unit, kept->shared_made, kept->shared_swiglu, layer,
                               shared_linear(x, first, SHARED_DOWN));
    transformer_linear_forward(unit, shared_factor(x, kept), in, layer, shared_linear(x, first, SHARED_FACTOR));
}

/* Sets dx. */
static void shared_backward(const struct transformer_unit *unit, uint64_t layer, uint32_t first,
                            const struct experts *x, const struct experts_kept *kept, const float *in,
                            const float *dout, float *dx)
{
    const struct kernels *k = unit->kernels;
    float *const d_made = x->d_sent;
    k->gate_rows_backward(k, d_made, x->d_factor, dout, kept->shared_made, shared_factor(x, kept), x->r, x->c);
    transformer_linear_backward(unit, x->d_shared_gate, d_made, kept->shared_swiglu, layer,
                                shared_linear(x, first, SHARED_DOWN), false);
    k->swiglu_backward(k, x->d_shared_gate, x->d_shared_up, x->d_shared_gate, kept->shared_gate, kept->shared_up,
                       x->r * x->s);
    transformer_linear_backward(unit, dx, x->d_shared_gate, in, layer, shared_linear(x, first, SHARED_GATE), false);
    transformer_linear_backward(unit, dx, x->d_shared_up, in, layer, shared_linear(x, first, SHARED_UP), true);
    transformer_linear_backward(unit, dx, x->d_factor, in, layer, shared_linear(x, first, SHARED_FACTOR), true);
}

static void shared_weights(const struct transformer_unit *unit, uint64_t layer, uint32_t first, const struct experts *x,
                           const struct experts_kept *kept, const float *in, const float *dout)
{
    const struct kernels *k = unit->kernels;
    float *const d_made = x->d_sent;
    k->gate_rows_backward(k, d_made, NULL, dout, kept->shared_made, shared_factor(x, kept), x->r, x->c);
    transformer_linear_weight(unit, d_made, kept->shared_swiglu, layer, shared_linear(x, first, SHARED_DOWN));
    transformer_linear_weight(unit, x->d_shared_gate, in, layer, shared_linear(x, first, SHARED_GATE));
    transformer_linear_weight(unit, x->d_shared_up, in, layer, shared_linear(x, first, SHARED_UP));
    transformer_linear_weight(unit, x->d_factor, in, layer, shared_linear(x, first, SHARED_FACTOR));
}

/* --- experts ---------------------------------------------------------------------------------------- */

enum projection { GATE, UP, BACK };

/* Returns an expert's product: a matrix of all experts' tensor. */
static struct transformer_linear expert_linear(const struct experts *x, uint32_t first, int64_t expert,
                                               enum projection of)
{
    const int64_t rows = x->routes.begins[expert + 1] - x->routes.begins[expert], matrix = x->f * x->c;
    struct transformer_linear linear = {.weight = first + DOWN, .rows = rows, .out = x->c, .in = x->f, .part = true,
                                        .skipped = expert * matrix};
    if (of == BACK) return linear;
    linear.weight = first + GATE_UP;
    linear.out = x->f;
    linear.in = x->c;
    linear.skipped = (2 * expert + (of == UP)) * matrix;
    return linear;
}

static struct transformer_linear router_linear(const struct experts *x, uint32_t first)
{
    return (struct transformer_linear){.weight = first + ROUTER, .rows = x->r, .out = x->e, .in = x->c};
}

/* Steps all experts' tensor after the last product. */
static void step_all(const struct transformer_unit *unit, uint64_t layer, uint32_t tensor)
{
    const struct transformer_tensor all = transformer_tensor(unit, layer, tensor);
    transformer_step(unit, &all, true);
}

void experts_forward(const struct transformer_unit *unit, uint64_t layer, uint32_t first,
                     const struct experts_kept *kept, const float *in, float *out)
{
    const struct kernels *k = unit->kernels;
    const struct experts x = experts_of(unit, kept);
    transformer_linear_forward(unit, kept->router, in, layer, router_linear(&x, first));
    k->route(k, &x.routes);
    k->send(k, kept->sent, in, &x.routes, x.c);
    for (int64_t e = 0; e < x.e; e++) {
        const int64_t begin = x.routes.begins[e];
        if (begin == x.routes.begins[e + 1]) continue;
        float *const sent = kept->sent + begin * x.c;
        transformer_linear_forward(unit, kept->gate + begin * x.f, sent, layer, expert_linear(&x, first, e, GATE));
        transformer_linear_forward(unit, kept->up + begin * x.f, sent, layer, expert_linear(&x, first, e, UP));
    }
    k->swiglu_forward(k, kept->swiglu, kept->gate, kept->up, x.r * x.k * x.f);
    for (int64_t e = 0; e < x.e; e++) {
        const int64_t begin = x.routes.begins[e];
        if (begin < x.routes.begins[e + 1])
            transformer_linear_forward(unit, kept->returned + begin * x.c, kept->swiglu + begin * x.f, layer,
                                       expert_linear(&x, first, e, BACK));
    }
    if (has_shared(unit)) shared_forward(unit, layer, first, &x, kept, in);
    if (!out) return;
    k->collect(k, out, kept->returned, &x.routes, x.c, true, false);
    if (has_shared(unit)) k->gate_rows(k, out, kept->shared_made, shared_factor(&x, kept), x.r, x.c);
}

void experts_backward(const struct transformer_unit *unit, uint64_t layer, uint32_t first,
                      const struct experts_kept *kept, const float *in, const float *dout, float *dx)
{
    const struct kernels *k = unit->kernels;
    const struct experts x = experts_of(unit, kept);
    if (has_shared(unit)) shared_backward(unit, layer, first, &x, kept, in, dout, dx);
    k->collect_backward(k, x.d_sent, x.d_router, dout, kept->returned, &x.routes, x.c);
    for (int64_t e = 0; e < x.e; e++) {
        const int64_t begin = x.routes.begins[e];
        transformer_linear_backward(unit, x.d_gate + begin * x.f, x.d_sent + begin * x.c, kept->swiglu + begin * x.f,
                                    layer, expert_linear(&x, first, e, BACK), false);
    }
    k->swiglu_backward(k, x.d_gate, x.d_up, x.d_gate, kept->gate, kept->up, x.r * x.k * x.f);
    for (int64_t e = 0; e < x.e; e++) {
        const int64_t begin = x.routes.begins[e];
        float *const d_sent = x.d_sent + begin * x.c;
        const float *const sent = kept->sent + begin * x.c;
        transformer_linear_backward(unit, d_sent, x.d_gate + begin * x.f, sent, layer,
                                    expert_linear(&x, first, e, GATE), false);
        transformer_linear_backward(unit, d_sent, x.d_up + begin * x.f, sent, layer, expert_linear(&x, first, e, UP),
                                    true);
    }
    k->route_backward(k, x.d_router, &x.routes);
    transformer_linear_backward(unit, dx, x.d_router, in, layer, router_linear(&x, first), has_shared(unit));
    k->collect(k, dx, x.d_sent, &x.routes, x.c, false, true);
    if (unit->leaves_weights) return;
    step_all(unit, layer, first + GATE_UP);
    step_all(unit, layer, first + DOWN);
}

void experts_weights(const struct transformer_unit *unit, uint64_t layer, uint32_t first,
                     const struct experts_kept *kept, const float *in, const float *dout)
{
    const struct kernels *k = unit->kernels;
    const struct experts x = experts_of(unit, kept);
    if (has_shared(unit)) shared_weights(unit, layer, first, &x, kept, in, dout);
    transformer_linear_weight(unit, x.d_router, in, layer, router_linear(&x, first));
    k->collect_backward(k, x.d_sent, NULL, dout, kept->returned, &x.routes, x.c);
    for (int64_t e = 0; e < x.e; e++) {
        const int64_t begin = x.routes.begins[e];
        const float *const sent = kept->sent + begin * x.c;
        transformer_linear_weight(unit, x.d_sent + begin * x.c, kept->swiglu + begin * x.f, layer,
                                  expert_linear(&x, first, e, BACK));
        transformer_linear_weight(unit, x.d_gate + begin * x.f, sent, layer, expert_linear(&x, first, e, GATE));
        transformer_linear_weight(unit, x.d_up + begin * x.f, sent, layer, expert_linear(&x, first, e, UP));
    }
    step_all(unit, layer, first + GATE_UP);
    step_all(unit, layer, first + DOWN);
}
