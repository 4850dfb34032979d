/*
 * Gradients of the backward pass are pieces of d_wide (models/job/memory_workspace.c):
 *
 *     d_gate(Rk,F)  d_up(Rk,F)  d_sent(Rk,C)  d_router(R,E)  and of the expert of all rows d_gate(R,S)  d_up(R,S)
 *     d_chosen(R,k)  d_factor(R)
 *
 * d_sent first has the gradients of returned rows. A backward pass in halves makes these again for the weights. Before
 * that it has the gradient of the shared expert's result.
 *
 * An expert without a row has a gradient of zeros, as one of all experts' tensor has in the reference: its weights step
 * by their moments and decay. All experts' tensor steps at once, after the last expert.
 *
 * In a tensor group every device has all experts and rows, and a part of each expert's columns F, also of S; router and
 * factor are whole everywhere. A device's weighted sum of returned rows is a part of the block's. Of the gradients of
 * weights and factors, which are products with returned rows, each device and piece has a part, too: d_chosen and
 * d_factor are added up, so that router and factor have the same gradients everywhere. Their own part of dx is added
 * once, like a bias. Gate, up and swiglu are arrays (Rk,F) of a piece, and so are the matrices of its experts.
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

struct experts_kept experts_kept_of(const struct transformer_unit *unit, kernel_number *const **next)
{
    struct experts_kept kept = {.router = NULL};
    kernel_number *const *at = *next;
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
    int64_t r, c, f, e, k, s; /* f: of a piece; s: 0 without an expert of all rows */
    int64_t pairs, pieces;
    struct kernel_routes routes;
    kernel_number *d_gate, *d_up, *d_sent, *d_router, *d_shared_gate, *d_shared_up, *d_chosen, *d_factor;
};

/* Returns the numbers of d_chosen and d_factor, which are exchanged together. */
static int64_t exchanged(const struct experts *x)
{
    return x->r * (x->k + (x->s > 0));
}

static struct experts experts_of(const struct transformer_unit *unit, const struct experts_kept *kept)
{
    const struct network *const n = unit->network;
    struct experts x = {.r = unit->r, .c = unit->c, .f = unit->f / unit->pieces, .e = (int64_t)n->experts,
                        .k = (int64_t)n->experts_chosen, .s = (int64_t)n->shared_width, .pieces = unit->pieces};
    x.pairs = x.r * x.k;
    int32_t *const numbers = (int32_t *)(void *)(kept->routes + x.pairs);
    x.routes = (struct kernel_routes){.r = x.r, .e = x.e, .k = x.k, .normalized = n->experts_normalized,
                                      .probabilities = kept->router, .weights = kept->routes, .experts = numbers,
                                      .places = numbers + x.pairs, .rows = numbers + 2 * x.pairs,
                                      .begins = numbers + 3 * x.pairs};
    x.d_gate = unit->d_wide;
    if (!x.d_gate) return x;
    x.d_up = transformer_number(unit, x.d_gate, x.pairs * unit->f);
    x.d_sent = transformer_number(unit, x.d_up, x.pairs * unit->f);
    x.d_router = transformer_number(unit, x.d_sent, x.pairs * x.c);
    x.d_shared_gate = transformer_number(unit, x.d_router, x.r * x.e);
    x.d_shared_up = transformer_number(unit, x.d_shared_gate, x.r * x.s);
    x.d_chosen = transformer_number(unit, x.d_shared_up, x.r * x.s);
    x.d_factor = transformer_number(unit, x.d_chosen, x.pairs);
    return x;
}

/* Returns the unit for a product that is whole, or of a piece. */
static struct transformer_unit undivided(const struct transformer_unit *unit)
{
    struct transformer_unit one = *unit;
    one.pieces = 1;
    one.piece_sums = NULL;
    return one;
}

/* Goes back through a product whose weight every device has: its part of dx is added once. */
static void whole_backward(const struct transformer_unit *unit, kernel_number *dx, const kernel_number *dy,
                           const kernel_number *in, uint64_t layer, struct transformer_linear linear, bool accumulate)
{
    const struct transformer_unit one = undivided(unit);
    kernel_number *const to = transformer_adds_whole(unit) ? dx : NULL;
    if (to || !unit->leaves_weights) transformer_linear_backward(&one, to, dy, in, layer, linear, accumulate);
}

/* --- the expert of all rows ------------------------------------------------------------------------ */

static struct transformer_linear shared_linear(const struct experts *x, uint32_t first, enum experts_tensor tensor)
{
    const bool down = tensor == SHARED_DOWN;
    const int64_t out = tensor == SHARED_FACTOR ? 1 : down ? x->c : x->s;
    return (struct transformer_linear){.weight = first + tensor, .rows = x->r, .out = out, .in = down ? x->s : x->c,
                                       .by_rows = down, .apart = down};
}

static kernel_number *shared_factor(const struct transformer_unit *unit, const struct experts *x,
                                    const struct experts_kept *kept)
{
    return transformer_number(unit, kept->shared_made, x->pieces * x->r * x->c);
}

static void shared_forward(const struct transformer_unit *unit, uint64_t layer, uint32_t first, const struct experts *x,
                           const struct experts_kept *kept, const kernel_number *in)
{
    const struct kernels *k = unit->kernels;
    const struct transformer_unit one = undivided(unit);
    transformer_linear_forward(unit, kept->shared_gate, in, layer, shared_linear(x, first, SHARED_GATE));
    transformer_linear_forward(unit, kept->shared_up, in, layer, shared_linear(x, first, SHARED_UP));
    k->swiglu_forward(k, kept->shared_swiglu, kept->shared_gate, kept->shared_up, x->r * x->s);
    transformer_linear_forward(unit, kept->shared_made, kept->shared_swiglu, layer,
                               shared_linear(x, first, SHARED_DOWN));
    transformer_linear_forward(&one, shared_factor(unit, x, kept), in, layer, shared_linear(x, first, SHARED_FACTOR));
}

/* Goes back to the gradients of gate and up. */
static void shared_down_backward(const struct transformer_unit *unit, uint64_t layer, uint32_t first,
                                 const struct experts *x, const struct experts_kept *kept, const kernel_number *dout)
{
    const struct kernels *k = unit->kernels;
    kernel_number *const d_made = x->d_sent;
    k->gate_rows_backward(k, d_made, NULL, dout, NULL, shared_factor(unit, x, kept), x->r, x->c);
    transformer_linear_backward(unit, x->d_shared_gate, d_made, kept->shared_swiglu, layer,
                                shared_linear(x, first, SHARED_DOWN), false);
    k->swiglu_backward(k, x->d_shared_gate, x->d_shared_up, x->d_shared_gate, kept->shared_gate, kept->shared_up,
                       x->r * x->s);
}

/* Goes on from there, and sets dx. */
static void shared_up_backward(const struct transformer_unit *unit, uint64_t layer, uint32_t first,
                               const struct experts *x, const kernel_number *in, kernel_number *dx)
{
    transformer_linear_backward(unit, dx, x->d_shared_gate, in, layer, shared_linear(x, first, SHARED_GATE), false);
    transformer_linear_backward(unit, dx, x->d_shared_up, in, layer, shared_linear(x, first, SHARED_UP), true);
    whole_backward(unit, unit->piece_sums ? unit->piece_sums : dx, x->d_factor, in, layer,
                   shared_linear(x, first, SHARED_FACTOR), true);
}

static void shared_down_weights(const struct transformer_unit *unit, uint64_t layer, uint32_t first,
                                const struct experts *x, const struct experts_kept *kept, const kernel_number *dout)
{
    const struct kernels *k = unit->kernels;
    kernel_number *const d_made = x->d_sent;
    k->gate_rows_backward(k, d_made, NULL, dout, NULL, shared_factor(unit, x, kept), x->r, x->c);
    transformer_linear_weight(unit, d_made, kept->shared_swiglu, layer, shared_linear(x, first, SHARED_DOWN));
}

static void shared_up_weights(const struct transformer_unit *unit, uint64_t layer, uint32_t first,
                              const struct experts *x, const kernel_number *in)
{
    transformer_linear_weight(unit, x->d_shared_gate, in, layer, shared_linear(x, first, SHARED_GATE));
    transformer_linear_weight(unit, x->d_shared_up, in, layer, shared_linear(x, first, SHARED_UP));
    whole_backward(unit, NULL, x->d_factor, in, layer, shared_linear(x, first, SHARED_FACTOR), false);
}

/* --- experts ---------------------------------------------------------------------------------------- */

enum projection { GATE, UP, BACK };

/* An expert's rows in a piece: places among all pairs, numbers from the piece's beginning. */
struct expert {
    int64_t piece, number, begin, rows;
};

static struct expert expert_of(const struct experts *x, int64_t piece, int64_t number)
{
    const int64_t begin = x->routes.begins[number];
    return (struct expert){.piece = piece, .number = number, .begin = begin,
                           .rows = x->routes.begins[number + 1] - begin};
}

/* Returns the expert's rows of an array (Rk,F) or (Rk,C) of each piece. */
static int64_t rows_at(const struct experts *x, const struct expert *expert, int64_t width)
{
    return (expert->piece * x->pairs + expert->begin) * width;
}

/* Returns an expert's product: a matrix of all experts' tensor. */
static struct transformer_linear expert_linear(const struct experts *x, uint32_t first, const struct expert *expert,
                                               enum projection of)
{
    const int64_t matrix = x->f * x->c, number = expert->piece * x->e + expert->number;
    struct transformer_linear linear = {.weight = first + DOWN, .rows = expert->rows, .out = x->c, .in = x->f,
                                        .part = true, .skipped = number * matrix};
    if (of == BACK) return linear;
    linear.weight = first + GATE_UP;
    linear.out = x->f;
    linear.in = x->c;
    linear.skipped = (2 * number + (of == UP)) * matrix;
    return linear;
}

static struct transformer_linear router_linear(const struct experts *x, uint32_t first)
{
    return (struct transformer_linear){.weight = first + ROUTER, .rows = x->r, .out = x->e, .in = x->c};
}

/* Steps all experts' tensors after the last product. */
static void step_all(const struct transformer_unit *unit, uint64_t layer, uint32_t first)
{
    static const enum experts_tensor tensors[] = {GATE_UP, DOWN};
    for (uint32_t i = 0; i < 2; i++) {
        const struct transformer_tensor all = transformer_tensor(unit, layer, first + tensors[i]);
        transformer_step(unit, &all, true);
    }
}

/* Takes sent rows to returned ones, piece by piece. */
static void expert_rows_forward(const struct transformer_unit *unit, uint64_t layer, uint32_t first,
                                const struct experts *x, const struct experts_kept *kept)
{
    const struct kernels *k = unit->kernels;
    const struct transformer_unit one = undivided(unit);
    for (int64_t i = 0; i < x->pieces * x->e; i++) {
        const struct expert e = expert_of(x, i / x->e, i % x->e);
        const int64_t at = rows_at(x, &e, x->f);
        const kernel_number *const sent = transformer_read_number(unit, kept->sent, e.begin * x->c);
        if (e.rows == 0) continue;
        transformer_linear_forward(&one, transformer_number(unit, kept->gate, at), sent, layer,
                                   expert_linear(x, first, &e, GATE));
        transformer_linear_forward(&one, transformer_number(unit, kept->up, at), sent, layer,
                                   expert_linear(x, first, &e, UP));
    }
    k->swiglu_forward(k, kept->swiglu, kept->gate, kept->up, x->pieces * x->pairs * x->f);
    for (int64_t i = 0; i < x->pieces * x->e; i++) {
        const struct expert e = expert_of(x, i / x->e, i % x->e);
        if (e.rows > 0)
            transformer_linear_forward(&one, transformer_number(unit, kept->returned, rows_at(x, &e, x->c)),
                                       transformer_read_number(unit, kept->swiglu, rows_at(x, &e, x->f)), layer,
                                       expert_linear(x, first, &e, BACK));
    }
}

void experts_forward(const struct transformer_unit *unit, uint64_t layer, uint32_t first,
                     const struct experts_kept *kept, const kernel_number *in, kernel_number *out)
{
    const struct kernels *k = unit->kernels;
    const struct experts x = experts_of(unit, kept);
    const struct transformer_unit one = undivided(unit);
    transformer_linear_forward(&one, kept->router, in, layer, router_linear(&x, first));
    k->route(k, &x.routes);
    k->send(k, kept->sent, in, &x.routes, x.c);
    expert_rows_forward(unit, layer, first, &x, kept);
    if (has_shared(unit)) shared_forward(unit, layer, first, &x, kept, in);
    if (!out) return;
    kernel_number *const sums = transformer_sum_room(unit, out); /* `in` is read no more */
    for (int64_t p = 0; p < x.pieces; p++) {
        kernel_number *const sum = transformer_number(unit, sums, p * x.r * x.c);
        k->collect(k, sum, transformer_read_number(unit, kept->returned, p * x.pairs * x.c), &x.routes, x.c, true,
                   false);
        if (has_shared(unit))
            k->gate_rows(k, sum, transformer_read_number(unit, kept->shared_made, p * x.r * x.c),
                         shared_factor(unit, &x, kept), x.r, x.c);
    }
    transformer_complete_sum(unit, out, sums);
}

/* Makes the gradients of the chosen ones' weights and of factors, complete on every device, and the router's. */
static void choice_backward(const struct transformer_unit *unit, const struct experts *x,
                            const struct experts_kept *kept, const kernel_number *dout)
{
    const struct kernels *k = unit->kernels;
    for (int64_t p = 0; p < x->pieces; p++) {
        const int64_t at = p * exchanged(x);
        k->collect_backward(k, NULL, transformer_number(unit, x->d_chosen, at), dout,
                            transformer_read_number(unit, kept->returned, p * x->pairs * x->c), &x->routes, x->c);
        if (has_shared(unit))
            k->gate_rows_backward(k, NULL, transformer_number(unit, x->d_factor, at), dout,
                                  transformer_read_number(unit, kept->shared_made, p * x->r * x->c),
                                  shared_factor(unit, x, kept), x->r, x->c);
    }
    transformer_add_pieces(unit, x->d_chosen, x->d_chosen, exchanged(x));
    transformer_sum_numbers(unit, x->d_chosen, exchanged(x));
    k->route_backward(k, x->d_router, x->d_chosen, &x->routes);
}

/* Takes the gradient of returned rows to those of gate and up, or only makes weights' gradients. */
static void expert_down_backward(const struct transformer_unit *unit, uint64_t layer, uint32_t first,
                                 const struct experts *x, const struct experts_kept *kept, const kernel_number *dout,
                                 bool only_weights)
{
    const struct kernels *k = unit->kernels;
    const struct transformer_unit one = undivided(unit);
    k->collect_backward(k, x->d_sent, NULL, dout, NULL, &x->routes, x->c);
    for (int64_t i = 0; i < x->pieces * x->e; i++) {
        const struct expert e = expert_of(x, i / x->e, i % x->e);
        const int64_t at = rows_at(x, &e, x->f);
        transformer_linear_backward(&one, only_weights ? NULL : transformer_number(unit, x->d_gate, at),
                                    transformer_read_number(unit, x->d_sent, e.begin * x->c),
                                    transformer_read_number(unit, kept->swiglu, at), layer,
                                    expert_linear(x, first, &e, BACK), false);
    }
    if (!only_weights)
        k->swiglu_backward(k, x->d_gate, x->d_up, x->d_gate, kept->gate, kept->up, x->pieces * x->pairs * x->f);
}

/* Goes on from there: adds a piece's gradient of sent rows to dx, or sets dx. */
static void expert_up_backward(const struct transformer_unit *unit, uint64_t layer, uint32_t first,
                               const struct experts *x, const struct experts_kept *kept, int64_t piece,
                               kernel_number *dx, bool adds)
{
    const struct kernels *k = unit->kernels;
    const struct transformer_unit one = undivided(unit);
    for (int64_t i = 0; i < x->e; i++) {
        const struct expert e = expert_of(x, piece, i);
        const int64_t at = rows_at(x, &e, x->f);
        kernel_number *const d_sent = transformer_number(unit, x->d_sent, e.begin * x->c);
        const kernel_number *const sent = transformer_read_number(unit, kept->sent, e.begin * x->c);
        transformer_linear_backward(&one, d_sent, transformer_read_number(unit, x->d_gate, at), sent, layer,
                                    expert_linear(x, first, &e, GATE), false);
        transformer_linear_backward(&one, d_sent, transformer_read_number(unit, x->d_up, at), sent, layer,
                                    expert_linear(x, first, &e, UP), true);
    }
    k->collect(k, dx, x->d_sent, &x->routes, x->c, false, adds);
}

void experts_backward(const struct transformer_unit *unit, uint64_t layer, uint32_t first,
                      const struct experts_kept *kept, const kernel_number *in, const kernel_number *dout,
                      kernel_number *dx)
{
    const struct experts x = experts_of(unit, kept);
    const kernel_number *const d_all = transformer_all_rows(unit, dout);
    kernel_number *const sums = unit->piece_sums ? unit->piece_sums : dx;
    choice_backward(unit, &x, kept, d_all);
    if (has_shared(unit)) shared_down_backward(unit, layer, first, &x, kept, d_all);
    expert_down_backward(unit, layer, first, &x, kept, d_all, false);
    const kernel_number *const all = transformer_rows_for_weights(unit, in); /* d_all is read no more */
    if (has_shared(unit)) shared_up_backward(unit, layer, first, &x, all, dx);
    whole_backward(unit, sums, x.d_router, all, layer, router_linear(&x, first), has_shared(unit));
    for (int64_t p = 0; p < x.pieces; p++)
        expert_up_backward(unit, layer, first, &x, kept, p, transformer_number(unit, sums, p * x.r * x.c),
                           has_shared(unit) || (p == 0 && transformer_adds_whole(unit)));
    if (!unit->leaves_weights) step_all(unit, layer, first);
}

void experts_weights(const struct transformer_unit *unit, uint64_t layer, uint32_t first,
                     const struct experts_kept *kept, const kernel_number *in, const kernel_number *dout)
{
    const struct experts x = experts_of(unit, kept);
    const struct transformer_unit one = undivided(unit);
    const kernel_number *const d_all = transformer_all_rows(unit, dout);
    if (has_shared(unit)) shared_down_weights(unit, layer, first, &x, kept, d_all);
    expert_down_backward(unit, layer, first, &x, kept, d_all, true);
    for (int64_t i = 0; i < x.pieces * x.e; i++) {
        const struct expert e = expert_of(&x, i / x.e, i % x.e);
        const int64_t at = rows_at(&x, &e, x.f);
        const kernel_number *const sent = transformer_read_number(unit, kept->sent, e.begin * x.c);
        transformer_linear_weight(&one, transformer_read_number(unit, x.d_gate, at), sent, layer,
                                  expert_linear(&x, first, &e, GATE));
        transformer_linear_weight(&one, transformer_read_number(unit, x.d_up, at), sent, layer,
                                  expert_linear(&x, first, &e, UP));
    }
    const kernel_number *const all = transformer_all_rows(unit, in); /* d_all is read no more */
    if (has_shared(unit)) shared_up_weights(unit, layer, first, &x, all);
    whole_backward(unit, NULL, x.d_router, all, layer, router_linear(&x, first), false);
    step_all(unit, layer, first);
}
