/* "cnn" in our form, and transformers' "resnet" (configuration_resnet.py and modeling_resnet.py of 4.57). */
#include "models/network/config/network_config_parts.h"

#include <inttypes.h>

#include "base/json/json_out.h"
#include "base/size.h"
#include "base/try.h"
#include "models/network/network_cnn.h"

enum { IMAGE_DEFAULT = 224 };

/* --- operations ------------------------------------------------------------------------------- */

/* Returns true if the operation chooses its channels. */
static bool has_channels(uint32_t kind)
{
    return kind == GRAPH_CONVOLUTION || kind == GRAPH_UPSAMPLE || kind == GRAPH_LINEAR;
}

static bool has_kernel(uint32_t kind)
{
    return kind == GRAPH_CONVOLUTION || kind == GRAPH_UPSAMPLE || kind == GRAPH_MAX_POOL || kind == GRAPH_MEAN_POOL;
}

static bool has_stride(uint32_t kind) { return kind == GRAPH_CONVOLUTION || kind == GRAPH_MAX_POOL; }

/* Reads "from", the indices that the kind reads; default: the previous operation. */
static enum status read_from(struct json_object *o, uint32_t newest, struct graph_op *op, struct error *err)
{
    const json_t *from = NULL;
    uint32_t reads = graph_op_reads(op->kind);
    for (uint32_t i = 0; i < reads; i++) op->from[i] = newest;
    TRY(json_take_array(o, "from", reads > 1 ? JSON_REQUIRED : JSON_OPTIONAL, &from, err));
    if (!from) return STATUS_OK;
    if (json_array_size(from) != reads)
        return json_fail_key(o->input, o->value, "from", err, "'from' has %zu entries (expected %" PRIu32 ")",
                             json_array_size(from), reads);
    for (uint32_t i = 0; i < reads; i++) {
        uint64_t index;
        TRY(json_item_u64(o->input, from, i, 0, newest, &index, err));
        op->from[i] = (uint32_t)index;
    }
    return STATUS_OK;
}

static enum status read_operation(const struct json_input *in, const json_t *array, size_t index,
                                  struct graph_builder *b, struct error *err)
{
    struct json_object o;
    struct graph_op op = {0};
    const char *layer = NULL;
    size_t kind;
    TRY(json_object_open_at(&o, in, array, index, "an operation", err));
    TRY(json_take_string(&o, "layer", index == 0 ? JSON_REQUIRED : JSON_OPTIONAL, &layer, err));
    TRY(json_take_choice(&o, "kind", JSON_DECIDES, graph_kind_names + 1, GRAPH_KINDS - 1, &kind, err));
    op.kind = (uint32_t)kind + 1;
    TRY(json_take_string(&o, "name", JSON_OPTIONAL, &op.name, err));
    TRY(read_from(&o, graph_newest(b), &op, err));
    if (has_channels(op.kind)) {
        TRY(json_take_u64(&o, "channels", JSON_REQUIRED, 1, NETWORK_VOCABULARY_MAX, &op.channels, err));
        TRY(json_take_bool(&o, "bias", JSON_OPTIONAL, &op.bias, err));
    }
    if (has_kernel(op.kind)) TRY(json_take_u32(&o, "kernel", JSON_REQUIRED, 1, GRAPH_KERNEL_MAX, &op.kernel, err));
    if (has_stride(op.kind)) {
        TRY(json_take_u32(&o, "stride", JSON_OPTIONAL, 1, GRAPH_KERNEL_MAX, &op.stride, err));
        TRY(json_take_u32(&o, "padding", JSON_OPTIONAL, 0, GRAPH_KERNEL_MAX, &op.padding, err));
    }
    if (op.kind == GRAPH_CONVOLUTION)
        TRY(json_take_u32(&o, "groups", JSON_OPTIONAL, 1, NETWORK_WIDTH_MAX, &op.groups, err));
    TRY(json_object_close(&o, err));
    if (layer) graph_layer(b, "%s", layer);
    graph_add(b, op);
    if (b->err->status == STATUS_BAD_INPUT) {
        struct error own = *b->err;
        *err = (struct error){0};
        return json_fail_index(in, array, index, err, "%s", own.text);
    }
    return b->err->status;
}

static enum status read_operations(struct json_object *o, struct arena *arena, struct network *n, struct error *err)
{
    const json_t *array;
    uint64_t channels = 3, image = IMAGE_DEFAULT;
    struct graph_builder b;
    struct error own = {0};
    TRY(json_take_u64(o, "num_channels", JSON_OPTIONAL, 1, NETWORK_CHANNELS_MAX, &channels, err));
    TRY(json_take_u64(o, "image_size", JSON_OPTIONAL, 1, NETWORK_IMAGE_MAX, &image, err));
    TRY(json_take_array(o, "operations", JSON_REQUIRED, &array, err));
    TRY(json_object_close(o, err));
    graph_begin(&b, arena, channels, image, &own);
    for (size_t i = 0; i < json_array_size(array) && !err->status && !own.status; i++)
        if (read_operation(o->input, array, i, &b, err)) own.status = err->status;
    enum status status = graph_end(&b, n);
    if (err->status) return err->status;
    if (status == STATUS_BAD_INPUT) return json_fail_key(o->input, o->value, "operations", err, "%s", own.text);
    if (status) *err = own;
    return status;
}

static enum status read_preset(struct json_object *o, const char *name, struct arena *arena, struct network *n,
                               struct error *err)
{
    struct network made;
    struct error own = {0};
    uint64_t image = 0, classes = 0;
    const struct cnn_preset *preset = cnn_preset_find(name);
    if (!preset)
        return json_fail_key(o->input, o->value, "preset", err, "unknown preset '%.64s' (expected one of family cnn)",
                             name);
    TRY(json_take_u64(o, "image_size", JSON_OPTIONAL, 1, NETWORK_IMAGE_MAX, &image, err));
    TRY(json_take_u64(o, "num_labels", JSON_OPTIONAL, 1, NETWORK_VOCABULARY_MAX, &classes, err));
    TRY(json_object_close(o, err));
    enum status status = cnn_preset_make(preset, image, classes, arena, &made, &own);
    if (status == STATUS_BAD_INPUT) return json_fail_key(o->input, o->value, "image_size", err, "%s", own.text);
    if (status) {
        *err = own;
        return status;
    }
    n->graph = made.graph;
    n->layer_count = made.layer_count;
    n->channels = made.channels;
    n->image = made.image;
    n->classes = made.classes;
    return STATUS_OK;
}

enum status config_parse_cnn(struct json_object *o, struct arena *arena, struct network *n, struct error *err)
{
    const char *preset = NULL;
    json_take_any(o, "name");
    TRY(json_take_string(o, "preset", JSON_OPTIONAL, &preset, err));
    return preset ? read_preset(o, preset, arena, n, err) : read_operations(o, arena, n, err);
}

static void write_operation(const struct network_graph *graph, uint32_t index, struct json_out *out)
{
    const struct graph_op *op = &graph->ops[index];
    uint32_t reads = graph_op_reads(op->kind);
    json_out_object_begin(out, NULL, true);
    if (index == graph->begins[op->layer]) json_out_string(out, "layer", graph->names[op->layer]);
    json_out_string(out, "kind", graph_kind_names[op->kind]);
    if (op->name) json_out_string(out, "name", op->name);
    if (reads > 1 || op->from[0] + 1 != index) {
        json_out_array_begin(out, "from", true);
        for (uint32_t i = 0; i < reads; i++) json_out_u64(out, NULL, op->from[i]);
        json_out_array_end(out);
    }
    if (has_channels(op->kind)) {
        json_out_u64(out, "channels", op->channels);
        json_out_bool(out, "bias", op->bias);
    }
    if (has_kernel(op->kind)) json_out_u64(out, "kernel", op->kernel);
    if (has_stride(op->kind)) {
        json_out_u64(out, "stride", op->stride);
        json_out_u64(out, "padding", op->padding);
    }
    if (op->groups > 1) json_out_u64(out, "groups", op->groups);
    json_out_object_end(out);
}

void config_write_cnn(const struct network *n, struct json_out *out)
{
    json_out_u64(out, "num_channels", n->channels);
    json_out_u64(out, "image_size", n->image);
    json_out_array_begin(out, "operations", false);
    for (uint32_t i = 1; i < n->graph->op_count; i++) write_operation(n->graph, i, out);
    json_out_array_end(out);
}

/* --- resnet ----------------------------------------------------------------------------------- */

/* Reads an array; *count is untouched if the key is absent. */
static enum status read_stages(struct json_object *o, const char *key, uint64_t max, uint32_t *count,
                               uint64_t out[CNN_RESNET_STAGES_MAX], struct error *err)
{
    const json_t *array = NULL;
    TRY(json_take_array(o, key, JSON_OPTIONAL, &array, err));
    if (!array) return STATUS_OK;
    size_t size = json_array_size(array);
    if (size == 0 || size > CNN_RESNET_STAGES_MAX)
        return json_fail_key(o->input, o->value, key, err, "'%s' has %zu entries (expected 1 to %d)", key, size,
                             CNN_RESNET_STAGES_MAX);
    *count = (uint32_t)size;
    for (size_t i = 0; i < size; i++) TRY(json_item_u64(o->input, array, i, 1, max, &out[i], err));
    return STATUS_OK;
}

static enum status read_shape(struct json_object *o, struct cnn_resnet *shape, struct error *err)
{
    static const char *const types[] = {"basic", "bottleneck"}, *const relu[] = {"relu"};
    uint32_t depths = shape->stages;
    size_t type = 1, activation;
    TRY(json_take_u64(o, "embedding_size", JSON_OPTIONAL, 1, NETWORK_WIDTH_MAX, &shape->embedding, err));
    TRY(read_stages(o, "hidden_sizes", NETWORK_WIDTH_MAX, &shape->stages, shape->widths, err));
    TRY(read_stages(o, "depths", NETWORK_LAYERS_MAX, &depths, shape->depths, err));
    if (depths != shape->stages)
        return json_fail_key(o->input, o->value, json_has(o, "depths") ? "depths" : "hidden_sizes", err,
                             "%" PRIu32 " 'depths' and %" PRIu32 " 'hidden_sizes' (expected equal numbers)", depths,
                             shape->stages);
    TRY(json_take_choice(o, "layer_type", JSON_OPTIONAL, types, ARRAY_COUNT(types), &type, err));
    TRY(json_take_choice(o, "hidden_act", JSON_OPTIONAL, relu, 1, &activation, err));
    shape->bottleneck = type == 1;
    for (uint32_t s = 0; s < shape->stages && shape->bottleneck; s++)
        if (shape->widths[s] % 4 != 0)
            return json_fail_key(o->input, o->value, "hidden_sizes", err,
                                 "'hidden_sizes' %" PRIu64 " is not a multiple of 4, as a bottleneck has it",
                                 shape->widths[s]);
    TRY(json_take_bool(o, "downsample_in_first_stage", JSON_OPTIONAL, &shape->halve_first, err));
    return json_take_bool(o, "downsample_in_bottleneck", JSON_OPTIONAL, &shape->halve_in_1x1, err);
}

enum status config_parse_resnet(struct json_object *o, struct arena *arena, struct network *n, struct error *err)
{
    static const char *const architectures[] = {"ResNetForImageClassification", "ResNetModel"};
    struct cnn_resnet shape = {.stages = 4, .embedding = 64, .widths = {256, 512, 1024, 2048},
                                 .depths = {3, 4, 6, 3}, .classes = 2};
    uint64_t channels = 3, image = IMAGE_DEFAULT;
    size_t architecture;
    struct graph_builder b;
    struct error own = {0};
    TRY(config_architecture(o, architectures, ARRAY_COUNT(architectures), &architecture, err));
    TRY(read_shape(o, &shape, err));
    TRY(json_take_u64(o, "num_channels", JSON_OPTIONAL, 1, NETWORK_CHANNELS_MAX, &channels, err));
    TRY(json_take_u64(o, "image_size", JSON_OPTIONAL, 1, NETWORK_IMAGE_MAX, &image, err));
    TRY(config_classes(o, &shape.classes, err));
    n->family = NETWORK_CNN;
    graph_begin(&b, arena, channels, image, &own);
    cnn_build_resnet(&b, &shape);
    enum status status = graph_end(&b, n);
    if (status == STATUS_BAD_INPUT) return json_fail_key(o->input, o->value, "image_size", err, "%s", own.text);
    if (status) *err = own;
    return status;
}
