/*
 * For s the scale, x(R,in), A(r,in) and B(out,r):
 *
 *     h = s x A^T                 y  += h B^T                    2 R r (in + out) FLOPs
 *     g = s dy B                  dB  = dy^T h,  dA = g^T x,  dx += g A
 *
 * The gradients of A and B have one factor s each: h has it in dB, g in dA. Where the gradients of weights come in a
 * second unit, the first makes g for dx, and the second g again.
 *
 * A tensor group cuts A and B as it cuts W. By columns, B is cut and A is whole: g, of the device's columns of dy, is a
 * part of a sum over the group, as dx is, and dA needs all of it. By rows, A is cut and B is whole: h is a part of a
 * sum, as y is, and dB needs all of it.
 */
#include "exec/network/transformer_adapter.h"

#include <assert.h>

#include "models/network/network_trained.h"

struct transformer_adapter {
    struct transformer_tensor a, b;
    int64_t rank;
    float scale;
    kernel_number *inner, *d_inner; /* (R,rank) */
};

/* Returns false if the layer's weight has no adapter. */
static bool find(const struct transformer_unit *unit, uint64_t layer, const struct transformer_linear *linear,
                 struct transformer_adapter *out)
{
    const struct network *n = unit->network;
    if (!network_is_adapted(n, layer, linear->weight)) return false;
    assert(unit->pieces == 1 && unit->adapter);
    const struct network_trained *trained = n->trained;
    const uint32_t a = trained->layers[layer].tensors + network_adapters_before(n, layer, linear->weight);
    *out = (struct transformer_adapter){.a = transformer_tensor(unit, layer, a),
                                        .b = transformer_tensor(unit, layer, a + 1),
                                        .rank = (int64_t)trained->rank,
                                        .scale = (float)trained->scale,
                                        .inner = unit->adapter,
                                        .d_inner = transformer_number(unit, unit->adapter,
                                                                      linear->rows * (int64_t)trained->rank)};
    return true;
}

static void make_inner(const struct transformer_unit *unit, const kernel_number *x, const struct transformer_linear *l,
                       const struct transformer_adapter *adapter)
{
    const struct kernels *k = unit->kernels;
    k->linear_forward(k, adapter->inner, x, adapter->a.weights.numbers, NULL, l->rows, adapter->rank, l->in, false);
    k->scale(k, adapter->inner, adapter->inner, l->rows * adapter->rank, adapter->scale);
}

void transformer_adapter_forward(const struct transformer_unit *unit, kernel_number *y, const kernel_number *x,
                                 uint64_t layer, const struct transformer_linear *l)
{
    const struct kernels *k = unit->kernels;
    struct transformer_adapter adapter;
    if (!find(unit, layer, l, &adapter)) return;
    make_inner(unit, x, l, &adapter);
    k->linear_input(k, y, adapter.inner, adapter.b.weights.numbers, l->rows, adapter.rank, l->out, true, true);
}

void transformer_adapter_backward(const struct transformer_unit *unit, kernel_number *dx, const kernel_number *dy,
                                  const kernel_number *x, uint64_t layer, const struct transformer_linear *l)
{
    const struct kernels *k = unit->kernels;
    struct transformer_adapter adapter;
    if (!find(unit, layer, l, &adapter)) return;
    const kernel_number *const a = adapter.a.weights.numbers, *const b = adapter.b.weights.numbers;
    k->linear_input(k, adapter.d_inner, dy, b, l->rows, l->out, adapter.rank, false, false);
    k->scale(k, adapter.d_inner, adapter.d_inner, l->rows * adapter.rank, adapter.scale);
    if (dx) k->linear_input(k, dx, adapter.d_inner, a, l->rows, adapter.rank, l->in, false, true);
    if (unit->leaves_weights) return;
    make_inner(unit, x, l, &adapter);
    transformer_sum_numbers(unit, l->by_rows ? adapter.inner : adapter.d_inner, l->rows * adapter.rank);
    k->linear_weight(k, adapter.b.g, NULL, dy, adapter.inner, l->rows, l->out, adapter.rank, false, 0);
    k->linear_weight(k, adapter.a.g, NULL, adapter.d_inner, x, l->rows, adapter.rank, l->in, false, 0);
    transformer_step(unit, &adapter.a, true);
    transformer_step(unit, &adapter.b, true);
}
