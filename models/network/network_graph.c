/*
 * An added operation is checked, and derived fields of it and of the operations that it reads are set: a graph is
 * always complete.
 *
 * Worked example, a bottleneck of 256 -> 64 -> 64 -> 256 channels of 56 x 56 = 3136 pixels (P), per sample:
 *
 *     convolution 1x1, norm, relu    norm reads 64 P, the next convolution and the relu 64 P
 *     convolution 3x3, norm, relu    the same
 *     convolution 1x1, norm          norm reads 256 P
 *     add, relu                      256 P: the output, which the next block reads
 *     inner 512 P, output 256 P; and 2 (64 + 64 + 256) of statistics for any number of samples
 */
#include "models/network/network_graph.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/size.h"
#include "base/try.h"
#include "models/network/graph_places.h"

const char *const graph_kind_names[] = {
    [GRAPH_INPUT] = "input",         [GRAPH_CONVOLUTION] = "convolution", [GRAPH_UPSAMPLE] = "upsample",
    [GRAPH_LINEAR] = "linear",       [GRAPH_BATCH_NORM] = "batch_norm",   [GRAPH_RELU] = "relu",
    [GRAPH_MAX_POOL] = "max_pool",   [GRAPH_MEAN_POOL] = "mean_pool",     [GRAPH_ADD] = "add",
    [GRAPH_CONCAT] = "concat",       [GRAPH_LOSS] = "loss",     
};
static_assert(ARRAY_COUNT(graph_kind_names) == GRAPH_KINDS, "a name per kind");

void graph_op_code(const struct graph_op *op, uint64_t code[GRAPH_CODE_WORDS])
{
    const uint64_t words[GRAPH_CODE_WORDS] = {
        (uint64_t)op->kind << 32 | op->layer,    (uint64_t)op->from[0] << 32 | op->from[1],
        (uint64_t)op->kernel << 32 | op->stride, (uint64_t)op->padding << 32 | op->groups,
        op->channels,                            op->side << 1 | op->bias};
    memcpy(code, words, sizeof words);
}

bool graph_is_same(const struct network_graph *a, const struct network_graph *b)
{
    if (a == b) return true;
    if (!a || !b || a->op_count != b->op_count) return false;
    for (uint32_t i = 0; i < a->op_count; i++) {
        uint64_t codes[2][GRAPH_CODE_WORDS];
        graph_op_code(&a->ops[i], codes[0]);
        graph_op_code(&b->ops[i], codes[1]);
        if (memcmp(codes[0], codes[1], sizeof codes[0]) != 0) return false;
    }
    return true;
}

/* --- making one ------------------------------------------------------------------------------- */

void graph_begin(struct graph_builder *b, struct arena *arena, uint64_t channels, uint64_t side,
                 struct error *err)
{
    *b = (struct graph_builder){.arena = arena, .err = err};
    if (array_reserve(&b->ops, &b->op_capacity, 0, sizeof *b->ops, GRAPH_OPS_MAX, "operations", err)) return;
    b->ops[0] = (struct graph_op){.kind = GRAPH_INPUT, .channels = channels, .side = side};
    b->graph.op_count = 1;
}

void graph_layer(struct graph_builder *b, const char *format, ...)
{
    char name[64];
    va_list arguments;
    if (b->err->status) return;
    assert(b->layer_count == 0 || b->ops[graph_newest(b)].layer + 1 == b->layer_count);
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    if (array_reserve(&b->names, &b->name_capacity, b->layer_count, sizeof *b->names, NETWORK_LAYERS_MAX, "layers",
                      b->err) ||
        arena_string(b->arena, name, &b->names[b->layer_count], b->err))
        return;
    b->layer_count++;
    b->layer_begin = b->graph.op_count;
}

/* Returns 0 when the kernel does not fit. */
static uint64_t side_behind(const struct graph_op *op, uint64_t side)
{
    uint64_t padded = side + 2 * (uint64_t)op->padding;
    return padded < op->kernel ? 0 : (padded - op->kernel) / op->stride + 1;
}

static enum status fail(const struct graph_builder *b, const struct graph_op *op, const char *format, ...)
    PRINTF_LIKE(3, 4);
static enum status fail(const struct graph_builder *b, const struct graph_op *op, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return error_set(b->err, STATUS_BAD_INPUT, "operation %" PRIu32 " (%s): %s", b->graph.op_count,
                     graph_kind_names[op->kind], text);
}

static enum status check_kernel(const struct graph_builder *b, const struct graph_op *op, uint64_t side)
{
    if (op->kernel == 0 || op->kernel > GRAPH_KERNEL_MAX)
        return fail(b, op, "a kernel of %" PRIu32 " pixels (expected 1 to %d)", op->kernel, GRAPH_KERNEL_MAX);
    if (2 * op->padding > op->kernel)
        return fail(b, op, "padding %" PRIu32 " of a kernel of %" PRIu32 " (expected at most half of it)", op->padding,
                    op->kernel);
    if (op->kind != GRAPH_MEAN_POOL && side_behind(op, side) == 0)
        return fail(b, op, "a kernel of %" PRIu32 " on images of %" PRIu64 " x %" PRIu64, op->kernel, side, side);
    return STATUS_OK;
}

static enum status check_groups(const struct graph_builder *b, const struct graph_op *op, uint64_t channels)
{
    if (channels % op->groups == 0 && op->channels % op->groups == 0) return STATUS_OK;
    return fail(b, op, "%" PRIu64 " channels in and %" PRIu64 " out in %" PRIu32 " groups (expected multiples)",
                channels, op->channels, op->groups);
}

/* Sets channels and side of the result. */
static enum status derive_size(const struct graph_builder *b, struct graph_op *op)
{
    const struct graph_op *in = &b->ops[op->from[0]], *second = &b->ops[op->from[1]];
    bool chooses = op->kind == GRAPH_CONVOLUTION || op->kind == GRAPH_UPSAMPLE || op->kind == GRAPH_LINEAR;
    op->side = in->side;
    if (!chooses) op->channels = in->channels;
    else if (op->channels == 0 || op->channels > NETWORK_VOCABULARY_MAX)
        return fail(b, op, "%" PRIu64 " channels (expected 1 to %d)", op->channels, NETWORK_VOCABULARY_MAX);
    switch ((enum graph_kind)op->kind) {
    case GRAPH_CONVOLUTION:
        TRY(check_groups(b, op, in->channels));
        /* fall through */
    case GRAPH_MAX_POOL:
        TRY(check_kernel(b, op, in->side));
        op->side = side_behind(op, in->side);
        break;
    case GRAPH_UPSAMPLE:
        TRY(check_kernel(b, op, in->side));
        op->side = in->side * op->kernel;
        break;
    case GRAPH_MEAN_POOL:
        TRY(check_kernel(b, op, in->side));
        op->side = op->kernel;
        break;
    case GRAPH_LINEAR: op->side = 1; break;
    case GRAPH_ADD:
        if (second->side != in->side || second->channels != in->channels)
            return fail(b, op, "results of %" PRIu64 " x %" PRIu64 " x %" PRIu64 " and %" PRIu64 " x %" PRIu64
                        " x %" PRIu64 " (expected equal ones)", in->channels, in->side, in->side, second->channels,
                        second->side, second->side);
        break;
    case GRAPH_CONCAT:
        if (second->side != in->side)
            return fail(b, op, "results of %" PRIu64 " and %" PRIu64 " pixels a side (expected equal ones)", in->side,
                        second->side);
        op->channels = in->channels + second->channels;
        break;
    default: break;
    }
    return STATUS_OK;
}

/* Counts parameters; 0: there is no matrix. */
static uint64_t matrix_elements(const struct graph_builder *b, const struct graph_op *op)
{
    const struct graph_op *in = &b->ops[op->from[0]];
    uint64_t elements = op->channels;
    bool fits = true;
    switch ((enum graph_kind)op->kind) {
    case GRAPH_CONVOLUTION: fits = size_mul(elements, in->channels / op->groups, &elements); break;
    case GRAPH_UPSAMPLE: fits = size_mul(elements, in->channels, &elements); break;
    case GRAPH_LINEAR: fits = size_mul(elements, in->channels * in->side * in->side, &elements); break;
    default: return 0;
    }
    fits = fits && size_mul(elements, op->kernel > 0 ? (uint64_t)op->kernel * op->kernel : 1, &elements);
    return fits ? elements : UINT64_MAX;
}

static enum status check_size(const struct graph_builder *b, const struct graph_op *op)
{
    uint64_t elements = UINT64_MAX;
    if (op->side > NETWORK_IMAGE_MAX)
        return fail(b, op, "a result of %" PRIu64 " pixels a side (limit is %d)", op->side, NETWORK_IMAGE_MAX);
    if (!size_mul(op->channels, op->side * op->side, &elements) || elements > GRAPH_ELEMENTS_MAX)
        return fail(b, op, "a result of %" PRIu64 " numbers (limit is %" PRIu64 ")", elements, GRAPH_ELEMENTS_MAX);
    if (matrix_elements(b, op) > GRAPH_ELEMENTS_MAX)
        return fail(b, op, "a matrix of more than %" PRIu64 " parameters", GRAPH_ELEMENTS_MAX);
    return STATUS_OK;
}

/* Returns true if the backward pass reads the input, or the result. */
static bool keeps_input(uint32_t kind)
{
    switch ((enum graph_kind)kind) {
    case GRAPH_CONVOLUTION:
    case GRAPH_UPSAMPLE:
    case GRAPH_LINEAR:
    case GRAPH_BATCH_NORM: return true;
    default: return false;
    }
}

static bool keeps_result(uint32_t kind) { return kind == GRAPH_RELU; }

static enum status check_reads(const struct graph_builder *b, const struct graph_op *op)
{
    for (uint32_t i = 0; i < graph_op_reads(op->kind); i++)
        if (op->from[i] >= b->graph.op_count)
            return fail(b, op, "reads operation %" PRIu32 " (expected an earlier one)", op->from[i]);
    if (b->layer_count == 0) return fail(b, op, "belongs to no layer");
    if (b->graph.op_count - b->layer_begin >= GRAPH_LAYER_OPS_MAX)
        return fail(b, op, "one operation too many in its layer (limit is %d)", GRAPH_LAYER_OPS_MAX);
    return STATUS_OK;
}

uint32_t graph_add(struct graph_builder *b, struct graph_op op)
{
    if (b->err->status) return 0;
    op.layer = b->layer_count - 1;
    if (op.stride == 0) op.stride = 1;
    if (op.groups == 0) op.groups = 1;
    if (op.kind == GRAPH_UPSAMPLE) op.stride = op.kernel;
    if (check_reads(b, &op) || derive_size(b, &op) || check_size(b, &op) ||
        array_reserve(&b->ops, &b->op_capacity, b->graph.op_count, sizeof op, GRAPH_OPS_MAX, "operations", b->err))
        return 0;
    if (op.name && arena_string(b->arena, op.name, &op.name, b->err)) return 0;
    op.readers = op.own_readers = 0;
    op.last_layer = op.layer;
    op.kept = keeps_result(op.kind);
    for (uint32_t i = 0; i < graph_op_reads(op.kind); i++) {
        struct graph_op *in = &b->ops[op.from[i]];
        in->readers++;
        in->own_readers += in->layer == op.layer;
        in->last_layer = op.layer;
        in->kept = in->kept || keeps_input(op.kind);
    }
    b->ops[b->graph.op_count] = op;
    return b->graph.op_count++;
}

void graph_name(struct graph_builder *b, const char *name)
{
    if (b->err->status || arena_string(b->arena, name, &b->ops[graph_newest(b)].name, b->err)) return;
}

/* Moves arrays from the heap to the arena. */
static enum status keep_arrays(struct graph_builder *b, struct network_graph **out)
{
    struct graph_op *ops;
    const char **names;
    uint32_t *begins;
    uint64_t *crossing, (*scratch)[2];
    TRY(ARENA_NEW(b->arena, 1, *out, b->err));
    TRY(ARENA_NEW(b->arena, b->graph.op_count, ops, b->err));
    TRY(ARENA_NEW(b->arena, b->layer_count, names, b->err));
    TRY(ARENA_NEW(b->arena, (size_t)b->layer_count + 1, begins, b->err));
    memcpy(ops, b->ops, b->graph.op_count * sizeof *b->ops);
    memcpy(names, b->names, b->layer_count * sizeof *b->names);
    for (uint32_t i = b->graph.op_count; i-- > 1;) begins[b->ops[i].layer] = i;
    begins[b->layer_count] = b->graph.op_count;
    TRY(ARENA_NEW(b->arena, b->layer_count, crossing, b->err));
    for (uint32_t i = 1; i < b->graph.op_count; i++)
        for (uint32_t layer = ops[i].layer; layer < ops[i].last_layer; layer++)
            crossing[layer] += ops[i].channels * ops[i].side * ops[i].side;
    TRY(ARENA_NEW(b->arena, b->layer_count, scratch, b->err));
    **out = (struct network_graph){ops, b->graph.op_count, begins, names, crossing, NULL};
    for (uint32_t layer = 0; layer < b->layer_count; layer++) graph_places_count(*out, layer, scratch[layer]);
    (*out)->scratch = scratch;
    return STATUS_OK;
}

/* Limits the different kernels of all passes, and a layer's tensors: sizes of arrays elsewhere. */
enum { GRAPH_WORK_MAX = 4 * LAYER_WORK_MAX - 8 };

static enum status check_lists(struct graph_builder *b, const struct network_graph *graph)
{
    /* per operation two products, sums of gradients and biases, and others, forward and backward */
    enum { EACH_MAX = 8 };
    enum { SAMPLES = 7 };
    struct tensor_spec specs[GRAPH_TENSORS_MAX];
    struct work_item *items = alloc_zeroed((size_t)graph->op_count * EACH_MAX, sizeof *items);
    if (!items) return error_memory(b->err, "a network", (size_t)graph->op_count * EACH_MAX * sizeof *items);
    struct work_list all = {.items = items, .capacity = graph->op_count * EACH_MAX};
    for (uint32_t layer = 0; layer < b->layer_count && !b->err->status; layer++) {
        uint32_t tensors = 0, begin = graph->begins[layer], end = graph->begins[layer + 1];
        struct work_list one = {.items = items + all.count, .capacity = (end - begin) * EACH_MAX};
        for (uint32_t i = begin; i < end; i++) tensors += graph_op_tensors(graph, i, false, specs);
        graph_layer_work(graph, layer, PASS_BACKWARD, SAMPLES, &one);
        if (tensors > LAYER_TENSORS_MAX || one.count > LAYER_WORK_MAX)
            error_set(b->err, STATUS_BAD_INPUT, "layer '%s' has too many operations (%" PRIu32 " tensors, %" PRIu32
                      " kernels; limits are %d and %d)", graph->names[layer], tensors, one.count, LAYER_TENSORS_MAX,
                      LAYER_WORK_MAX);
        graph_layer_work(graph, layer, PASS_FORWARD, SAMPLES, &all);
        graph_layer_work(graph, layer, PASS_BACKWARD, SAMPLES, &all);
        if (all.count > GRAPH_WORK_MAX && !b->err->status)
            error_set(b->err, STATUS_BAD_INPUT, "too many different kernels (limit is %d)", GRAPH_WORK_MAX);
    }
    free(items);
    return b->err->status;
}

static enum status finish(struct graph_builder *b, struct network *out)
{
    struct network_graph *graph;
    TRY(b->err->status);
    const struct graph_op *last = &b->ops[graph_newest(b)];
    if (last->kind != GRAPH_LOSS)
        return error_set(b->err, STATUS_BAD_INPUT, "the last operation is '%s' (expected 'loss')",
                         graph_kind_names[last->kind]);
    TRY(keep_arrays(b, &graph));
    TRY(check_lists(b, graph));
    out->graph = graph;
    out->layer_count = b->layer_count;
    out->channels = b->ops[0].channels;
    out->image = b->ops[0].side;
    out->classes = last->channels;
    return STATUS_OK;
}

enum status graph_end(struct graph_builder *b, struct network *out)
{
    enum status status = finish(b, out);
    free(b->ops);
    free(b->names);
    return status;
}

enum status network_for_image(const struct network *network, uint64_t image, struct arena *arena,
                              struct network *out, struct error *err)
{
    const struct network_graph *graph = network->graph;
    struct graph_builder b;
    if (!graph)
        return error_set(err, STATUS_BAD_INPUT, "an image size for network '%s', which %s", network->name,
                         network->image > 0 ? "has only one size" : "reads no images");
    graph_begin(&b, arena, network->channels, image, err);
    for (uint64_t layer = 0; layer < network->layer_count; layer++) {
        graph_layer(&b, "%s", graph->names[layer]);
        for (uint32_t i = graph->begins[layer]; i < graph->begins[layer + 1]; i++) {
            const struct graph_op op = graph->ops[i];
            graph_add(&b, op);
            /* its parameters would change */
            const struct graph_op *was = &graph->ops[graph->ops[i].from[0]];
            if (!err->status && op.kind == GRAPH_LINEAR && b.ops[op.from[0]].side != was->side)
                error_set(err, STATUS_BAD_INPUT, "network '%s' takes only images of %" PRIu64 " pixels a side",
                          network->name, network->image);
        }
    }
    struct network resized = *network;
    TRY(graph_end(&b, &resized));
    *out = resized;
    return STATUS_OK;
}

/* --- what follows from it --------------------------------------------------------------------- */

struct graph_kept graph_layer_kept(const struct network_graph *graph, uint64_t layer, uint64_t samples)
{
    struct graph_kept kept = {0};
    for (uint32_t i = graph->begins[layer]; i < graph->begins[layer + 1]; i++) {
        const struct graph_op *o = &graph->ops[i];
        uint64_t words = graph_elements(graph, i, samples);
        kept.widest = max_u64(kept.widest, words);
        for (uint32_t r = 0; r < graph_op_reads(o->kind); r++)
            if (o->from[r] > 0) kept.widest = max_u64(kept.widest, graph_elements(graph, o->from[r], samples));
        kept.inner += graph_noted_words(graph, i, samples);
        if (o->last_layer == layer) kept.inner += o->kept ? words : 0;
        else kept.output += words;
        if (o->last_layer > layer && o->own_readers > 0) kept.own += words;
        if (o->kind == GRAPH_LOSS) kept.logits += words;
    }
    return kept;
}

/* Counts from 1 among its kind in its layer. */
static uint32_t number_in_layer(const struct network_graph *graph, uint32_t op)
{
    uint32_t number = 1;
    for (uint32_t i = graph->begins[graph->ops[op].layer]; i < op; i++)
        number += graph->ops[i].kind == graph->ops[op].kind;
    return number;
}

static struct tensor_spec tensor(const struct network_graph *graph, uint32_t op, bool named, const char *what)
{
    static const char *const words[GRAPH_KINDS] = {
        [GRAPH_CONVOLUTION] = "conv", [GRAPH_UPSAMPLE] = "up",   [GRAPH_LINEAR] = "fc",
        [GRAPH_BATCH_NORM] = "bn"};
    const struct graph_op *o = &graph->ops[op];
    struct tensor_spec spec = {.elements = 1, .init = INIT_ZERO, .joined = 1};
    if (named && o->name)
        snprintf(spec.name, sizeof spec.name, "%.60s.%s", o->name, what);
    else if (named)
        snprintf(spec.name, sizeof spec.name, "%.60s.%s%" PRIu32 ".%s", graph->names[o->layer], words[o->kind],
                 number_in_layer(graph, op), what);
    return spec;
}

static void dimension(struct tensor_spec *spec, uint64_t size)
{
    spec->shape[spec->rank++] = size;
    spec->elements *= size;
}

static struct tensor_spec vector(const struct network_graph *graph, uint32_t op, bool named, const char *what,
                                 enum tensor_init init)
{
    struct tensor_spec spec = tensor(graph, op, named, what);
    spec.init = init;
    dimension(&spec, graph->ops[op].channels);
    return spec;
}

/* Returns the numbers of the input that a number of the result is made of, or for an upsampled one the reverse. */
static uint64_t numbers_in(const struct network_graph *graph, uint32_t op)
{
    const struct graph_op *o = &graph->ops[op], *in = &graph->ops[o->from[0]];
    if (o->kind == GRAPH_LINEAR) return in->channels * in->side * in->side;
    return in->channels / o->groups;
}

/* Lists what a batch norm trains, and its running means. */
static uint32_t list_norm(const struct network_graph *graph, uint32_t op, bool named,
                          struct tensor_spec out[GRAPH_TENSORS_MAX])
{
    out[0] = vector(graph, op, named, "weight", INIT_ONE);
    out[1] = vector(graph, op, named, "bias", INIT_ZERO);
    out[2] = vector(graph, op, named, "running_mean", INIT_ZERO);
    out[3] = vector(graph, op, named, "running_var", INIT_ONE);
    out[2].running = out[3].running = true;
    return 4;
}

/* Returns the weight of a product. A convolution's has the deviation that keeps the size of gradients; a linear layer's
 * is uniform. */
static struct tensor_spec weight_of(const struct network_graph *graph, uint32_t op, bool named)
{
    const struct graph_op *o = &graph->ops[op], *in = &graph->ops[o->from[0]];
    const bool kernel = o->kind != GRAPH_LINEAR, up = o->kind == GRAPH_UPSAMPLE; /* stored as (in, out) */
    struct tensor_spec weight = tensor(graph, op, named, "weight");
    weight.matrix = true;
    weight.init = kernel ? INIT_NORMAL_FAN : INIT_UNIFORM;
    weight.fan = kernel ? o->channels * o->kernel * o->kernel : numbers_in(graph, op);
    dimension(&weight, up ? in->channels : o->channels);
    dimension(&weight, up ? o->channels : numbers_in(graph, op));
    for (uint32_t i = 0; i < 2 && kernel; i++) dimension(&weight, o->kernel);
    return weight;
}

uint32_t graph_op_tensors(const struct network_graph *graph, uint32_t op, bool named,
                          struct tensor_spec out[GRAPH_TENSORS_MAX])
{
    const struct graph_op *o = &graph->ops[op];
    const bool linear = o->kind == GRAPH_LINEAR;
    uint32_t count = 0;
    if (o->kind == GRAPH_BATCH_NORM) return list_norm(graph, op, named, out);
    if (linear || o->kind == GRAPH_CONVOLUTION || o->kind == GRAPH_UPSAMPLE)
        out[count++] = weight_of(graph, op, named);
    if (!o->bias) return count;
    out[count] = vector(graph, op, named, "bias", linear ? INIT_UNIFORM : INIT_ZERO);
    out[count].fan = linear ? numbers_in(graph, op) : 0;
    return count + 1;
}
