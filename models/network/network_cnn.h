/*
 * Convolutional networks by name.
 *
 * A residual block is a layer; without such blocks each convolution is one. Shapes are from the papers and
 * torchvision; parameter counts equal torchvision's exactly.
 */
#ifndef SPILLWAY_MODELS_NETWORK_NETWORK_CNN_H
#define SPILLWAY_MODELS_NETWORK_NETWORK_CNN_H

#include "models/network/network_graph.h"

struct cnn_preset {
    const char *name, *source;
    uint32_t channels, image; /* of its images; `image` is the default */
    void (*build)(struct graph_builder *b, const uint32_t *shape);
    uint32_t shape[6]; /* parameters of build() */
};

/* Returns NULL past the end. */
const struct cnn_preset *cnn_preset(uint32_t index);
const struct cnn_preset *cnn_preset_find(const char *name); /* NULL: none */

/* Makes a network; image 0: the preset's size; classes 0: the preset's. */
MUST_CHECK enum status cnn_preset_make(const struct cnn_preset *preset, uint64_t image, uint64_t classes,
                                       struct arena *arena, struct network *out, struct error *err);

/* It has the fields of transformers' ResNetConfig. */
enum { CNN_RESNET_STAGES_MAX = 16 };
struct cnn_resnet {
    uint32_t stages;
    uint64_t embedding, widths[CNN_RESNET_STAGES_MAX], depths[CNN_RESNET_STAGES_MAX];
    bool bottleneck;       /* 1x1, 3x3, 1x1 with a quarter of the channels; else 3x3 twice */
    bool halve_first;      /* of the first stage too */
    bool halve_in_1x1;     /* a bottleneck's stride is in its first convolution */
    uint64_t classes;
};
void cnn_build_resnet(struct graph_builder *b, const struct cnn_resnet *shape);

#endif
