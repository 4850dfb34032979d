/*
 * Convolutional networks by name, and what they are built of.
 *
 * A residual block is a layer, so is a convolution of those that have none. Shapes are those of the papers and of
 * torchvision, whose parameter counts they have to the last one.
 */
#ifndef SPILLWAY_MODELS_NETWORK_CNN_H
#define SPILLWAY_MODELS_NETWORK_CNN_H

#include "models/network/network_graph.h"

struct cnn_preset {
    const char *name, *source;
    uint32_t channels, image; /* of its images; the latter is the default */
    void (*build)(struct graph_builder *b, const uint32_t *shape);
    uint32_t shape[6]; /* what build() makes of it */
};

/* In the order of the table; NULL past the end. */
const struct cnn_preset *cnn_preset(uint32_t index);
const struct cnn_preset *cnn_preset_find(const char *name); /* NULL: none */

/* image 0: the preset's. Errors: those of graph_end(). */
MUST_CHECK enum status cnn_preset_make(const struct cnn_preset *preset, uint64_t image, struct arena *arena,
                                       struct network *out, struct error *err);

/* A residual network as transformers' ResNetConfig says it. */
enum { RESNET_STAGES_MAX = 16 };
struct resnet_shape {
    uint32_t stages;
    uint64_t embedding, widths[RESNET_STAGES_MAX], depths[RESNET_STAGES_MAX];
    bool bottleneck;       /* 1x1, 3x3, 1x1 with a quarter of the channels inside; else 3x3 twice */
    bool halve_first;      /* the first stage has a stride of 2, too */
    bool halve_in_1x1;     /* a bottleneck's stride is its first convolution's */
    uint64_t classes;
};
void cnn_build_resnet(struct graph_builder *b, const struct resnet_shape *shape);

#endif
