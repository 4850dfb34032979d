/*
 * What of a network is trained: frozen tensors, and low-rank adapters of its linear layers.
 *
 * A frozen tensor has weights, and no gradient, moments or step. An adapter of a layer y = W x + b makes it
 *
 *     y = W x + b + scale B(A x),    A (rank, in), B (out, rank)
 *
 * A and B are tensors of the layer, after its own, in the order of the weights that they belong to. Tensors are named
 * by network_layer_tensors(); an adapter's names are those of PEFT's files: "base_model.model.", the path of the module
 * in transformers, ".lora_A.weight" or ".lora_B.weight".
 *
 * Source: Hu et al., LoRA, arXiv 2106.09685, section 4.1; Kalajdzievski, arXiv 2312.03732 (the scale's root).
 */
#ifndef SPILLWAY_MODELS_NETWORK_NETWORK_TRAINED_H
#define SPILLWAY_MODELS_NETWORK_NETWORK_TRAINED_H

#include "models/network/network.h"

enum { NETWORK_RANK_MAX = 4096 };

/* Of a layer; bit i of a mask is its own tensor i. */
struct network_layer_trained {
    uint32_t frozen;
    uint32_t adapted; /* weights of linear layers that have an adapter */
    uint32_t tensors; /* of its own, before those of adapters */
    uint64_t alike_begin, alike_end; /* layers around it with equal masks */
};

struct network_trained {
    uint64_t rank;       /* of all adapters; 0: none */
    double scale;
    uint64_t first;      /* first layer with a trained tensor; layers before it have no backward pass */
    const struct network_layer_trained *layers; /* (layer_count) */
};

/* Ranges of layers, both ends included, and patterns of tensors' names ('*', '?', '[...]'). */
struct network_freeze {
    const uint64_t (*layers)[2];
    uint32_t layer_count;
    const char *const *tensors;
    uint32_t tensor_count;
};

/* Adapters: the names of targets as PEFT matches them, a module's name or the end of its path after a dot. */
struct network_adapters {
    uint64_t rank; /* 0: none */
    double scale;
    const char *const *targets; /* NULL: all linear layers of blocks */
    uint32_t target_count;
};

/*
 * Works out which tensors are frozen and which have adapters; with adapters all of the network's own are frozen. *out
 * is NULL where everything is trained; it is in the arena, which outlives the network that it becomes a part of.
 * Errors: STATUS_BAD_INPUT: a range past the last layer, a pattern or target that matches nothing, an embedding of
 * which only a part is frozen, nothing that is trained, adapters for a family that has none, with one line that names
 * it.
 */
MUST_CHECK enum status network_train_only(const struct network *network, const struct network_freeze *freeze,
                                          const struct network_adapters *adapters, struct arena *arena,
                                          const struct network_trained **out, struct error *err);

/* Returns the targets that PEFT takes by default for a family; *count is 0 where it has none. */
const char *const *network_default_targets(const struct network *network, uint32_t *count);

/* Returns the first layer with a backward pass. */
static inline uint64_t network_first_trained(const struct network *network)
{
    return network->trained ? network->trained->first : 0;
}

/* Returns the rank of the layer's adapters; 0: it has none. */
static inline uint64_t network_layer_rank(const struct network *network, uint64_t layer)
{
    return network->trained && network->trained->layers[layer].adapted ? network->trained->rank : 0;
}

/* Returns how many tensors of a layer's adapters come before those of its own tensor `index`. */
static inline uint32_t network_adapters_before(const struct network *network, uint64_t layer, uint32_t index)
{
    const uint32_t before = network->trained->layers[layer].adapted & ((UINT32_C(1) << index) - 1);
    return 2 * (uint32_t)__builtin_popcount(before);
}

/* Returns true if the layer's own tensor `index` has an adapter. */
static inline bool network_is_adapted(const struct network *network, uint64_t layer, uint32_t index)
{
    return network->trained && (network->trained->layers[layer].adapted >> index & 1);
}

/* Returns the trained parameters, with adapters; all without a frozen tensor. */
uint64_t network_trained_parameters(const struct network *network);
uint64_t network_layer_trained_parameters(const struct network *network, uint64_t layer);

/* Returns the others of a layer. */
uint64_t network_layer_frozen_parameters(const struct network *network, uint64_t layer);

/* Writes a module's path in transformers from the name of its weight, without ".weight". */
enum { NETWORK_MODULE_BYTES = 96 };
void network_module(const struct network *network, const char *weight, char out[NETWORK_MODULE_BYTES]);

/* Returns a number that differs where masks, rank or scale do; 0: all is trained. */
uint64_t network_trained_fingerprint(const struct network *network);

/* Returns true if both networks, which are equal otherwise, train the same tensors. */
bool network_trains_alike(const struct network *a, const struct network *b);

#endif
