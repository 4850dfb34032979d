/*
 * Convolutional networks by name, and their building blocks.
 *
 * A residual block is a layer; in networks without residual blocks each convolution is a layer. Shapes are from the
 * papers and from torchvision; parameter counts equal torchvision's exactly.
 */
#ifndef SPILLWAY_MODELS_NETWORK_NETWORK_CNN_H
#define SPILLWAY_MODELS_NETWORK_NETWORK_CNN_H

#include "models/network/network_graph.h"

struct cnn_preset {
    const char *name, *source;
    uint32_t channels, image; /* of its images; `image` is the default size */
    void (*build)(struct graph_builder *b, const uint32_t *shape);
    uint32_t shape[6]; /* parameters of build() */
};

/* Returns a preset in the order of the table; NULL past the end. */
const struct cnn_preset *cnn_preset(uint32_t index);
const struct cnn_preset *cnn_preset_find(const char *name); /* NULL: none */

/* Makes a preset's network. image 0: the preset's size. Errors: as graph_end(). */
MUST_CHECK enum status cnn_preset_make(const struct cnn_preset *preset, uint64_t image, struct arena *arena,
                                       struct network *out, struct error *err);

/* A residual network, as described by transformers' ResNetConfig. */
enum { RESNET_STAGES_MAX = 16 };
struct resnet_shape {
    uint32_t stages;
    uint64_t embedding, widths[RESNET_STAGES_MAX], depths[RESNET_STAGES_MAX];
    bool bottleneck;       /* 1x1, 3x3, 1x1 with a quarter of the channels inside; else 3x3 twice */
    bool halve_first;      /* the first stage has stride 2 too */
    bool halve_in_1x1;     /* a bottleneck has its stride in its first convolution */
    uint64_t classes;
};
void cnn_build_resnet(struct graph_builder *b, const struct resnet_shape *shape);

#endif
