/*
 * Layers as PipeDream's profiler writes them.
 *
 *     node4 -- Conv2d(64, 64) -- forward_compute_time=46.2, backward_compute_time=113.3, activation_size=1644167168.0, parameter_size=147712.0
 *     	node3 -- node4
 *
 * milliseconds and bytes of a minibatch, an activation_size may be a list ([a; b]: their sum); a layer named "Input..." is
 * what the profiler waited for data, and costs nothing, as in PipeDream's optimizer. A graph becomes a chain in
 * topological order, of ready nodes the one with the lowest number first. A cut behind layer i then sends what every
 * layer in front makes and some layer behind reads, each once; PipeDream cuts graphs in all orders, which for graphs
 * without branches is the same.
 *
 * Source: msr-fiddle/pipedream (MIT), profiler/image_classification/profiles/vgg16/graph.txt, for the format.
 */
#ifndef SPILLWAY_MODELS_PROFILE_TEXT_H
#define SPILLWAY_MODELS_PROFILE_TEXT_H

#include "base/arena.h"
#include "models/network/network.h"

enum { PROFILE_TEXT_LAYERS_MAX = 8192, PROFILE_TEXT_BYTES_MAX = 1 << 24 };

struct profile_text_layer {
    const char *name;
    double forward_s, backward_s;
    uint64_t output_bytes; /* of its result, which is kept for the backward pass */
    uint64_t cut_bytes;    /* sent forward where the chain is cut behind this layer; the last one's is 0 */
    uint64_t weight_bytes;
};

struct profile_text {
    const char *name; /* of the file */
    struct profile_text_layer *layers;
    uint32_t count;   /* at least 1 */
};

/* Both live as long as `arena`. Errors: STATUS_IO; STATUS_BAD_INPUT with file, line and column; STATUS_LIMIT;
 * STATUS_NO_MEMORY. */
MUST_CHECK enum status profile_text_read(struct arena *arena, const char *path, struct profile_text *out,
                                         struct error *err);
MUST_CHECK enum status profile_text_parse(struct arena *arena, const char *name, const char *text,
                                          struct profile_text *out, struct error *err);

/* Family, layers and layer count of `out`; weights are whole floats. Errors: STATUS_LIMIT; STATUS_NO_MEMORY. */
MUST_CHECK enum status profile_text_network(struct arena *arena, const struct profile_text *text, struct network *out,
                                            struct error *err);

#endif
