/*
 * A block's feed-forward part by experts, with a router and perhaps an expert that all rows also use (qwen2_moe).
 *
 *     x(R,C) --+-- router(R,E) -- routes -- sent(Rk,C) -- gate, up(Rk,F) -- swiglu -- returned(Rk,C) -- weighted sum
 *     --+-- out
 *              +-- gate, up(R,S) -- swiglu -- made(R,C), times logistic(x . w)
 *              -----------------------------------------+
 *
 * Letters as in exec/kernels/kernels_experts.h; S columns of the expert of all rows. An expert's products take its rows
 * only.
 */
#ifndef SPILLWAY_EXEC_NETWORK_EXPERTS_H
#define SPILLWAY_EXEC_NETWORK_EXPERTS_H

#include "exec/network/transformer.h"

/* What is kept, in the order of memory_activations(): first of the expert of all rows, which may be NULL. */
struct experts_kept {
    kernel_number *shared_gate, *shared_up, *shared_swiglu, *shared_made;
    kernel_number *router;
    float *routes;
    kernel_number *sent, *returned, *gate, *up, *swiglu;
};

/* Takes these from `next` on, which it moves. */
struct experts_kept experts_kept_of(const struct transformer_unit *unit, kernel_number *const **next);

/* Counts the tensors, of which `first` below is the first one's number in the layer. */
uint32_t experts_tensor_count(const struct network *network);

/* Fills what is kept, and `out`, the device's own rows, unless it is NULL. x: all rows (R,C) */
void experts_forward(const struct transformer_unit *unit, uint64_t layer, uint32_t first,
                     const struct experts_kept *kept, const kernel_number *x, kernel_number *out);

/* Sets dx(R,C), a part of a sum in a tensor group (transformer_own_sum()); unless the pass leaves weights also steps
 * them. x, dout: the device's own rows. Gradients are in d_wide. */
void experts_backward(const struct transformer_unit *unit, uint64_t layer, uint32_t first,
                      const struct experts_kept *kept, const kernel_number *x, const kernel_number *dout,
                      kernel_number *dx);

/* Computes the weights' gradients that experts_backward() left. */
void experts_weights(const struct transformer_unit *unit, uint64_t layer, uint32_t first,
                     const struct experts_kept *kept, const kernel_number *x, const kernel_number *dout);

#endif
