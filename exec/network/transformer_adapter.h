/*
 * Low-rank adapters of linear layers (models/network/network_trained.h): y += scale B(A x).
 *
 * A and B have the precision of activations, and so do their products: in bf16 the product with W is rounded before
 * that with B is added. x A is made again in the backward pass: nothing is kept. Each layer's calls depend only on the
 * layer, as all others do.
 */
#ifndef SPILLWAY_EXEC_NETWORK_TRANSFORMER_ADAPTER_H
#define SPILLWAY_EXEC_NETWORK_TRANSFORMER_ADAPTER_H

#include "exec/network/transformer.h"

/* Adds the adapter's part to y(rows,out), if the layer has one. */
void transformer_adapter_forward(const struct transformer_unit *unit, kernel_number *y, const kernel_number *x,
                                 uint64_t layer, const struct transformer_linear *linear);

/* Adds its part to dx(rows,in), which may be NULL, and steps A and B, unless their gradients come later, from
 * dy(rows,out). */
void transformer_adapter_backward(const struct transformer_unit *unit, kernel_number *dx, const kernel_number *dy,
                                  const kernel_number *x, uint64_t layer, const struct transformer_linear *linear);

#endif
