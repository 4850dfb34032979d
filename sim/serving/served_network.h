/* Seconds and bytes of a request's forward pass on a machine's devices, layer by layer. */
#ifndef SPILLWAY_SIM_SERVING_SERVED_NETWORK_H
#define SPILLWAY_SIM_SERVING_SERVED_NETWORK_H

#include "models/hardware/hardware.h"
#include "models/network/network.h"
#include "sim/serving/serving.h"

struct served_network {
    const struct network *network;
    uint64_t sequence;  /* tokens of a request, one sample */
    uint32_t precision; /* enum precision of weights and of activations between stages */
    uint32_t batch_max; /* at least 1 */
};

/*
 * Computes a kind by the cost model: the forward pass without a loss on the machine's first devices. Tensor groups use
 * the fastest collective algorithm. Hops between stages are direct if devices have such links, else through host
 * memory. The kind has every degree of tensor parallelism that is a power of two, divides the network and has enough
 * directly linked devices. Weights are the parameters in `precision`.
 *
 * A batch's growth comes from the whole network's seconds; no batch is faster than a smaller one.
 *
 * The caller sets the kind's name. Its arrays live as long as `arena`. Errors: STATUS_BAD_INPUT for a sequence that the
 * network does not accept; STATUS_LIMIT for too many layers.
 */
MUST_CHECK enum status served_network_kind(struct arena *arena, const struct served_network *served,
                                           const struct hardware *hardware, struct serving_kind *out,
                                           struct error *err);

#endif
