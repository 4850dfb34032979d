/*
 * Reads layers in the format of PipeDream's profiler.
 *
 *     node4 -- Conv2d(64, 64) -- forward_compute_time=46.2, backward_compute_time=113.3, activation_size=1644167168.0,
 *     parameter_size=147712.0 node3 -- node4
 *
 * Values are milliseconds and bytes of a minibatch. A list ([a; b]) is summed. A layer "Input..." is the profiler's
 * wait for data and costs nothing, as in PipeDream's optimizer. A graph becomes a chain in topological order, lowest
 * number first among ready nodes. A cut sends each earlier result that a later layer reads, once. PipeDream cuts
 * graphs in all orders.
 *
 * Source: msr-fiddle/pipedream (MIT), profiler/image_classification/profiles/vgg16/graph.txt, for the format.
 */
#ifndef SPILLWAY_MODELS_NETWORK_PROFILE_TEXT_H
#define SPILLWAY_MODELS_NETWORK_PROFILE_TEXT_H

#include "base/arena.h"
#include "models/network/network.h"

enum { PROFILE_TEXT_LAYERS_MAX = 8192, PROFILE_TEXT_BYTES_MAX = 1 << 24 };

struct profile_text_layer {
    const char *name;
    double forward_s, backward_s;
    uint64_t output_bytes; /* of its result, kept for the backward pass */
    uint64_t cut_bytes;    /* sent by a cut after this layer; last layer: 0 */
    uint64_t weight_bytes;
};

struct profile_text {
    const char *name; /* of the file */
    struct profile_text_layer *layers;
    uint32_t count;   /* at least 1 */
};

/* Read a profile, which lives as long as `arena`.
 * Errors: STATUS_IO; STATUS_BAD_INPUT with file, line and column; STATUS_LIMIT. */
MUST_CHECK enum status profile_text_read(struct arena *arena, const char *path, struct profile_text *out,
                                         struct error *err);
MUST_CHECK enum status profile_text_parse(struct arena *arena, const char *name, const char *text,
                                          struct profile_text *out, struct error *err);

/* Sets family, layers and layer count; weights are whole floats. Errors: STATUS_LIMIT. */
MUST_CHECK enum status profile_text_network(struct arena *arena, const struct profile_text *text, struct network *out,
                                            struct error *err);

#endif
