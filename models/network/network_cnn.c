/*
 * ResNet-200 has its paper's stages in ResNet-50's order of operations (norm after convolution). ResNet-1001 and the
 * wide networks have norms first. U-Net's convolutions are padded, unlike the paper's, which have the same parameters.
 * Modules of ResNets, VGG16 and AlexNet have torchvision's names.
 *
 * Source: He et al., arXiv 1512.03385, table 1, and 1603.05027; Simonyan and Zisserman, arXiv 1409.1556; Krizhevsky,
 * arXiv 1404.5997 (torchvision's AlexNet); Zagoruyko and Komodakis, arXiv 1605.07146; Ronneberger et al., arXiv
 * 1505.04597.
 */
#include "models/network/network_cnn.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/try.h"

/* --- parts ------------------------------------------------------------------------------------ */

static uint32_t apply(struct graph_builder *b, uint32_t kind, uint32_t from)
{
    return graph_add(b, (struct graph_op){.kind = kind, .from = {from}});
}

/* Names the newest operation's module in files of weights. */
static void name_newest(struct graph_builder *b, const char *format, ...) PRINTF_LIKE(2, 3);
static void name_newest(struct graph_builder *b, const char *format, ...)
{
    char name[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    graph_name(b, name);
}

static uint32_t apply_two(struct graph_builder *b, uint32_t kind, uint32_t first, uint32_t second)
{
    return graph_add(b, (struct graph_op){.kind = kind, .from = {first, second}});
}

/* Pads: with a stride of 1 the image keeps its size. */
static uint32_t convolve(struct graph_builder *b, uint32_t from, uint64_t channels, uint32_t kernel, uint32_t stride)
{
    return graph_add(b, (struct graph_op){.kind = GRAPH_CONVOLUTION, .from = {from}, .channels = channels,
                                          .kernel = kernel, .stride = stride, .padding = kernel / 2});
}

static uint32_t convolve_norm(struct graph_builder *b, uint32_t from, uint64_t channels, uint32_t kernel,
                              uint32_t stride)
{
    return apply(b, GRAPH_BATCH_NORM, convolve(b, from, channels, kernel, stride));
}

static uint32_t norm_relu(struct graph_builder *b, uint32_t from)
{
    return apply(b, GRAPH_RELU, apply(b, GRAPH_BATCH_NORM, from));
}

static uint32_t pool(struct graph_builder *b, uint32_t from, uint32_t kernel, uint32_t stride, uint32_t padding)
{
    return graph_add(b, (struct graph_op){.kind = GRAPH_MAX_POOL, .from = {from}, .kernel = kernel, .stride = stride,
                                          .padding = padding});
}

static uint32_t mean(struct graph_builder *b, uint32_t from, uint32_t side)
{
    return graph_add(b, (struct graph_op){.kind = GRAPH_MEAN_POOL, .from = {from}, .kernel = side});
}

static uint32_t connect(struct graph_builder *b, uint32_t from, uint64_t channels)
{
    return graph_add(b, (struct graph_op){.kind = GRAPH_LINEAR, .from = {from}, .channels = channels, .bias = true});
}

/* Adds the mean of each channel, the classifier and the loss. */
static void classify(struct graph_builder *b, uint64_t classes)
{
    const uint32_t top = connect(b, mean(b, graph_newest(b), 1), b->classes > 0 ? b->classes : classes);
    name_newest(b, "fc");
    apply(b, GRAPH_LOSS, top);
}

/* --- residual networks ------------------------------------------------------------------------ */

static void residual_block(struct graph_builder *b, const struct cnn_resnet *shape, uint64_t width, uint64_t in_width,
                           uint32_t stride)
{
    uint32_t in = graph_newest(b), at = in, shortcut = in;
    uint64_t inner = width / 4;
    if (shape->bottleneck) {
        uint32_t first = shape->halve_in_1x1 ? stride : 1;
        at = apply(b, GRAPH_RELU, convolve_norm(b, at, inner, 1, first));
        at = apply(b, GRAPH_RELU, convolve_norm(b, at, inner, 3, stride / first));
        at = convolve_norm(b, at, width, 1, 1);
    } else {
        at = apply(b, GRAPH_RELU, convolve_norm(b, at, width, 3, stride));
        at = convolve_norm(b, at, width, 3, 1);
    }
    if (stride != 1 || in_width != width) {
        const char *const layer = graph_newest_layer(b);
        shortcut = convolve(b, in, width, 1, stride);
        name_newest(b, "%s.downsample.0", layer);
        shortcut = apply(b, GRAPH_BATCH_NORM, shortcut);
        name_newest(b, "%s.downsample.1", layer);
    }
    apply(b, GRAPH_RELU, apply_two(b, GRAPH_ADD, at, shortcut));
}

void cnn_build_resnet(struct graph_builder *b, const struct cnn_resnet *shape)
{
    uint64_t width = shape->embedding;
    graph_layer(b, "stem");
    uint32_t at = convolve(b, 0, width, 7, 2);
    name_newest(b, "conv1");
    at = apply(b, GRAPH_BATCH_NORM, at);
    name_newest(b, "bn1");
    pool(b, apply(b, GRAPH_RELU, at), 3, 2, 1);
    for (uint32_t s = 0; s < shape->stages; s++)
        for (uint64_t i = 0; i < shape->depths[s] && !b->err->status; i++) {
            graph_layer(b, "layer%" PRIu32 ".%" PRIu64, s + 1, i);
            residual_block(b, shape, shape->widths[s], width, i == 0 && (s > 0 || shape->halve_first) ? 2 : 1);
            width = shape->widths[s];
        }
    graph_layer(b, "head");
    classify(b, shape->classes);
}

/* shape: depths of four stages; a bottleneck? */
static void build_imagenet(struct graph_builder *b, const uint32_t *shape)
{
    struct cnn_resnet resnet = {.stages = 4, .embedding = 64, .bottleneck = shape[4], .classes = 1000};
    for (uint32_t s = 0; s < 4; s++) {
        resnet.depths[s] = shape[s];
        resnet.widths[s] = (UINT64_C(64) << s) * (shape[4] ? 4 : 1);
    }
    cnn_build_resnet(b, &resnet);
}

/* Builds norms and relus first. If the size changes, the shortcut begins after them. */
static void wide_block(struct graph_builder *b, uint64_t width, uint64_t in_width, uint32_t stride, bool bottleneck)
{
    uint32_t in = graph_newest(b), ready = norm_relu(b, in), shortcut = in, at = ready;
    if (stride != 1 || in_width != width) shortcut = convolve(b, ready, width, 1, stride);
    if (bottleneck) {
        at = norm_relu(b, convolve(b, at, width / 4, 1, 1));
        at = norm_relu(b, convolve(b, at, width / 4, 3, stride));
        at = convolve(b, at, width, 1, 1);
    } else {
        at = norm_relu(b, convolve(b, at, width, 3, stride));
        at = convolve(b, at, width, 3, 1);
    }
    apply_two(b, GRAPH_ADD, at, shortcut);
}

/* shape: blocks of each of three stages, width of the first, a bottleneck?, classes. */
static void build_wide(struct graph_builder *b, const uint32_t *shape)
{
    uint64_t width = 16;
    graph_layer(b, "stem");
    convolve(b, 0, width, 3, 1);
    for (uint32_t s = 0; s < 3; s++)
        for (uint32_t i = 0; i < shape[0]; i++) {
            uint64_t next = (uint64_t)shape[1] << s;
            graph_layer(b, "block%" PRIu32 ".%" PRIu32, s + 1, i);
            wide_block(b, next, width, s > 0 && i == 0 ? 2 : 1, shape[2]);
            width = next;
        }
    graph_layer(b, "head");
    norm_relu(b, graph_newest(b));
    classify(b, shape[3]);
}

/* --- chains ----------------------------------------------------------------------------------- */

/* Counts modules of torchvision's "features" in *module: a convolution and a relu; NULL: the names are our own. */
static void convolve_relu(struct graph_builder *b, uint64_t channels, uint32_t kernel, uint32_t stride,
                          uint32_t padding, uint32_t *module)
{
    const uint32_t at = graph_add(b, (struct graph_op){.kind = GRAPH_CONVOLUTION, .from = {graph_newest(b)},
                                                       .channels = channels, .kernel = kernel, .stride = stride,
                                                       .padding = padding, .bias = true});
    if (module) name_newest(b, "features.%" PRIu32, *module);
    if (module) *module += 2;
    apply(b, GRAPH_RELU, at);
}

/* Adds two hidden layers of 4096, and the classes. `modules`: torchvision's numbers of the linear ones. */
static void connect_three(struct graph_builder *b, const uint32_t modules[3])
{
    for (uint32_t i = 0; i < 3; i++) {
        graph_layer(b, "fc%" PRIu32, i + 1);
        const uint32_t at = connect(b, graph_newest(b), i < 2 ? 4096 : b->classes > 0 ? b->classes : 1000);
        name_newest(b, "classifier.%" PRIu32, modules[i]);
        apply(b, i < 2 ? GRAPH_RELU : GRAPH_LOSS, at);
    }
}

/* shape: convolutions of each of five stages. */
static void build_vgg(struct graph_builder *b, const uint32_t *shape)
{
    static const uint64_t widths[] = {64, 128, 256, 512, 512};
    static const uint32_t connected[] = {0, 3, 6};
    uint32_t module = 0;
    for (uint32_t s = 0; s < ARRAY_COUNT(widths); s++)
        for (uint32_t i = 0; i < shape[s]; i++) {
            graph_layer(b, "conv%" PRIu32 ".%" PRIu32, s + 1, i + 1);
            convolve_relu(b, widths[s], 3, 1, 1, &module);
            module += i + 1 == shape[s];
            if (i + 1 == shape[s]) pool(b, graph_newest(b), 2, 2, 0);
            if (i + 1 == shape[s] && s + 1 == ARRAY_COUNT(widths)) mean(b, graph_newest(b), 7);
        }
    connect_three(b, connected);
}

static void build_alexnet(struct graph_builder *b, const uint32_t *shape)
{
    static const struct {
        uint64_t channels;
        uint32_t kernel, stride, padding;
        bool pool;
    } layers[] = {{64, 11, 4, 2, true}, {192, 5, 1, 2, true}, {384, 3, 1, 1, false}, {256, 3, 1, 1, false},
                  {256, 3, 1, 1, true}};
    static const uint32_t connected[] = {1, 4, 6};
    uint32_t module = 0;
    (void)shape;
    for (size_t i = 0; i < ARRAY_COUNT(layers); i++) {
        graph_layer(b, "conv%zu", i + 1);
        convolve_relu(b, layers[i].channels, layers[i].kernel, layers[i].stride, layers[i].padding, &module);
        module += layers[i].pool;
        if (layers[i].pool) pool(b, graph_newest(b), 3, 2, 0);
    }
    mean(b, graph_newest(b), 6);
    connect_three(b, connected);
}

/* --- U-Net ------------------------------------------------------------------------------------ */

enum { UNET_LEVELS = 4 };

/* shape: width of the first level, classes. */
static void build_unet(struct graph_builder *b, const uint32_t *shape)
{
    uint32_t skips[UNET_LEVELS];
    for (uint32_t level = 0; level <= UNET_LEVELS; level++) {
        graph_layer(b, "%s%" PRIu32, level < UNET_LEVELS ? "down" : "bottom", level + 1);
        if (level > 0) pool(b, graph_newest(b), 2, 2, 0);
        for (uint32_t i = 0; i < 2; i++) convolve_relu(b, (uint64_t)shape[0] << level, 3, 1, 1, NULL);
        if (level < UNET_LEVELS) skips[level] = graph_newest(b);
    }
    for (uint32_t level = UNET_LEVELS; level-- > 0;) {
        uint64_t width = (uint64_t)shape[0] << level;
        graph_layer(b, "up%" PRIu32, level + 1);
        graph_add(b, (struct graph_op){.kind = GRAPH_UPSAMPLE, .from = {graph_newest(b)}, .channels = width,
                                       .kernel = 2, .bias = true});
        apply_two(b, GRAPH_CONCAT, skips[level], graph_newest(b));
        for (uint32_t i = 0; i < 2; i++) convolve_relu(b, width, 3, 1, 1, NULL);
    }
    graph_layer(b, "head");
    graph_add(b, (struct graph_op){.kind = GRAPH_CONVOLUTION, .from = {graph_newest(b)},
                                   .channels = b->classes > 0 ? b->classes : shape[1],
                                   .kernel = 1, .bias = true});
    apply(b, GRAPH_LOSS, graph_newest(b));
}

/* --- by name ---------------------------------------------------------------------------------- */

#define RESNET_SOURCE "He et al., arXiv 1512.03385, table 1; torchvision"

static const struct cnn_preset presets[] = {
    {"alexnet", "Krizhevsky, arXiv 1404.5997; torchvision", 3, 224, build_alexnet, {0}},
    {"vgg16", "Simonyan and Zisserman, arXiv 1409.1556, table 1 D", 3, 224, build_vgg, {2, 2, 3, 3, 3}},
    {"resnet-18", RESNET_SOURCE, 3, 224, build_imagenet, {2, 2, 2, 2, false}},
    {"resnet-34", RESNET_SOURCE, 3, 224, build_imagenet, {3, 4, 6, 3, false}},
    {"resnet-50", RESNET_SOURCE, 3, 224, build_imagenet, {3, 4, 6, 3, true}},
    {"resnet-101", RESNET_SOURCE, 3, 224, build_imagenet, {3, 4, 23, 3, true}},
    {"resnet-152", RESNET_SOURCE, 3, 224, build_imagenet, {3, 8, 36, 3, true}},
    {"resnet-200", "He et al., arXiv 1603.05027; norms after convolutions", 3, 224, build_imagenet,
     {3, 24, 36, 3, true}},
    {"resnet-1001", "He et al., arXiv 1603.05027, CIFAR-10", 3, 32, build_wide, {111, 64, true, 10}},
    {"wrn-28-10", "Zagoruyko and Komodakis, arXiv 1605.07146, CIFAR-10", 3, 32, build_wide, {4, 160, false, 10}},
    {"u-net", "Ronneberger et al., arXiv 1505.04597; padded", 1, 512, build_unet, {64, 2}},
};

const struct cnn_preset *cnn_preset(uint32_t index)
{
    return index < ARRAY_COUNT(presets) ? &presets[index] : NULL;
}

const struct cnn_preset *cnn_preset_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(presets); i++)
        if (strcmp(presets[i].name, name) == 0) return &presets[i];
    return NULL;
}

enum status cnn_preset_make(const struct cnn_preset *preset, uint64_t image, uint64_t classes, struct arena *arena,
                            struct network *out, struct error *err)
{
    struct network n = {.family = NETWORK_CNN};
    struct graph_builder b;
    snprintf(n.name, sizeof n.name, "%s", preset->name);
    graph_begin(&b, arena, preset->channels, image > 0 ? image : preset->image, err);
    b.classes = classes;
    preset->build(&b, preset->shape);
    TRY(graph_end(&b, &n));
    *out = n;
    return STATUS_OK;
}
