/*
 * GPT-2: forward, loss, backward and update over any run of its layers.
 *
 * Letters as in models/work.h: B samples of T tokens make R rows; C width, H heads, F = 4 C, V words.
 * Weights are stored (in, out). A block, with the names of what it keeps (models/memory.h):
 *
 *     in(R,C) --+-- norm1 -- qkv(R,3C) -- attention(R,C) -- projection --+
 *               +--------------------------------------------------------+-- middle(R,C) --+
 *               +-- norm2 -- fc(R,F) -- gelu(R,F) -- projection --+                        |
 *               +-------------------------------------------------+-- out(R,C)        <----+
 *
 * The head is a norm and the product with the token table (tied) or a matrix of its own.
 *
 * One gradient runs along the residual stream, from the boundary gradient that comes in to the one
 * that goes out. Each branch makes its own gradient from it and the norm at the branch's root adds
 * the result to it:
 *
 *     d_in -> dgelu (d_wide) -> through gelu in place -> dnorm2 (d_stream2) -> d_middle = d_in + ...
 *     d_middle -> dattention (d_stream2) -> d_qkv -> dnorm1 (d_stream2) -> d_in' = d_middle + ...
 *
 * A weight's gradient stands in the `gradients` buffer, laid out like the layer's parameters, only
 * until that weight's optimizer step, which follows as soon as the weight was used for the last
 * time in this step (it was used to carry the gradient through). So the gradient is still in cache.
 * When the optimizer runs elsewhere, gradients stay in a buffer as large as the shard's parameters
 * and an UPDATE makes the same steps later: each element's step depends on nothing but itself.
 *
 * The same bits in every sharding. The calls made for a layer, with their shapes, are a function of
 * the layer alone: nothing is fused across layers, a block's output is always written out, and where
 * operands lie changes nothing (exec/kernels.h). When a backward pass recomputes, it makes the very
 * calls of the forward pass, less those whose result only the next shard needs: the last layer's
 * second projection.
 *
 * FLOPs of a block: forward 24 R C^2 in the four products and 2 B T^2 C in causal attention; backward
 * twice and two and a half times that.
 */
#include "exec/gpt2.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* The tensors of a layer, in the order of network_layer_tensors(). */
enum block_tensor {
    NORM1_WEIGHT, NORM1_BIAS, QKV_WEIGHT, QKV_BIAS, PROJECTION_WEIGHT, PROJECTION_BIAS,
    NORM2_WEIGHT, NORM2_BIAS, FC_WEIGHT, FC_BIAS, OUT_WEIGHT, OUT_BIAS,
    BLOCK_TENSORS
};
enum head_tensor { NORMF_WEIGHT, NORMF_BIAS, HEAD_WEIGHT };

/* What a layer keeps, in the order of memory_activations(). */
enum block_kept {
    KEPT_NORM1, KEPT_NORM1_STATS, KEPT_QKV, KEPT_ATTENTION, KEPT_ATTENTION_STATS, KEPT_MIDDLE,
    KEPT_NORM2, KEPT_NORM2_STATS, KEPT_FC, KEPT_GELU,
    KEPT_OUTPUT, /* not of the last layer */
    BLOCK_KEPT
};
enum head_kept { KEPT_NORMF, KEPT_NORMF_STATS };

/* One computation: the arguments with the sizes and the pieces of workspace worked out. */
struct unit {
    const struct kernels *kernels;
    const struct unit_arguments *arguments;
    const struct network *network;
    int64_t b, t, r, c, h, f, v;
    float epsilon;
    int64_t part;      /* floats from parameters to first moments to second moments */
    float *gradients;  /* these are NULL or empty where the pass has none */
    float *d_stream2, *d_qkv, *d_wide, *scratch, *logits;
};

/* --- where things are ------------------------------------------------------------------------- */

static float *at_byte(float *base, uint64_t offset_bytes)
{
    return (float *)(void *)((char *)base + offset_bytes);
}

/* A piece of the workspace; NULL when this pass has none of that name. */
static float *piece(const struct unit_arguments *a, const struct memory_table *workspace,
                    const char *name)
{
    const struct memory_entry *entry = memory_find(workspace, a->shard->first_layer, name);
    return entry && a->workspace ? at_byte(a->workspace, entry->offset_bytes) : NULL;
}

static enum unit_pass unit_pass_of(uint32_t pass)
{
    switch (pass) {
    case PLAN_FORWARD: return UNIT_FORWARD;
    case PLAN_LOSS: return UNIT_LOSS;
    default: assert(pass == PLAN_BACKWARD || pass == PLAN_UPDATE); return UNIT_BACKWARD;
    }
}

static const struct memory_table *workspace_of(const struct unit_arguments *a)
{
    bool kept = a->activations && a->pass != PLAN_LOSS;
    uint32_t how = (kept ? UNIT_KEEP : 0) | (a->gradient ? UNIT_GRADIENTS_OUT : 0);
    return &a->tables->workspace[unit_pass_of(a->pass)][how];
}

static struct unit unit_of(const struct kernels *kernels, const struct unit_arguments *a)
{
    const struct network *n = &a->job->network;
    const struct memory_table *workspace = workspace_of(a);
    uint64_t part = a->row_count > 0 ? a->row_count * n->width
                                     : a->tables->parameters.bytes / sizeof(float);
    return (struct unit){
        .kernels = kernels,
        .arguments = a,
        .network = n,
        .b = (int64_t)a->job->microbatch,
        .t = (int64_t)a->job->sequence,
        .r = (int64_t)(a->job->microbatch * a->job->sequence),
        .c = (int64_t)n->width,
        .h = (int64_t)n->heads,
        .f = (int64_t)n->ff_width,
        .v = (int64_t)n->vocabulary,
        .epsilon = (float)n->norm_epsilon,
        .part = (int64_t)part,
        .gradients = piece(a, workspace, "gradients"),
        .d_stream2 = piece(a, workspace, "d_stream2"),
        .d_qkv = piece(a, workspace, "d_qkv"),
        .d_wide = piece(a, workspace, "d_wide"),
        .scratch = piece(a, workspace, "scratch"),
        .logits = piece(a, workspace, "logits"),
    };
}

/* Entries of a layer in a table where each layer in front of it, all blocks, has `per_block`. */
static const struct memory_entry *layer_entries(const struct memory_table *table,
                                                const struct unit_arguments *a, uint64_t layer,
                                                uint32_t per_block)
{
    uint64_t index = (layer - a->shard->first_layer) * per_block;
    assert(index < table->count && table->entries[index].layer == layer);
    return &table->entries[index];
}

/* One tensor of a layer, its gradient, and its optimizer step. */
struct tensor {
    float *p, *g;
    const struct memory_entry *entry;
};

static struct tensor tensor_of(const struct unit *unit, uint64_t layer, uint32_t index)
{
    const struct unit_arguments *a = unit->arguments;
    const struct memory_entry *first =
        layer_entries(&a->tables->parameters, a, layer, BLOCK_TENSORS);
    const struct memory_entry *entry = first + index;
    assert(entry->layer == layer);
    float *g = NULL;
    if (a->gradient) g = at_byte(a->gradient, entry->offset_bytes);
    else if (unit->gradients)
        g = at_byte(unit->gradients, entry->offset_bytes - first->offset_bytes);
    return (struct tensor){at_byte(a->state, entry->offset_bytes), g, entry};
}

/* In a backward pass whose gradients are applied elsewhere, nothing. */
static void step(const struct unit *unit, const struct tensor *tensor, bool decays)
{
    const struct unit_arguments *a = unit->arguments;
    if (a->gradient && a->pass != PLAN_UPDATE) return;
    bool moments = optimizer_state_words(a->job->optimizer.kind) == 2;
    unit->kernels->update(unit->kernels, tensor->p, moments ? tensor->p + unit->part : NULL,
                          moments ? tensor->p + 2 * unit->part : NULL, tensor->g,
                          (int64_t)(tensor->entry->bytes / sizeof(float)), &a->job->optimizer,
                          decays, a->minibatch + 1);
}

/* What a layer keeps; `kept` points to what all layers keep, laid out as the table says. */
static void block_kept(const struct unit *unit, float *kept, uint64_t layer,
                       float *out[BLOCK_KEPT])
{
    const struct unit_arguments *a = unit->arguments;
    const struct memory_entry *entries =
        layer_entries(&a->tables->activations, a, layer, BLOCK_KEPT);
    bool last = layer + 1 == a->shard->first_layer + a->shard->layer_count;
    for (uint32_t i = 0; i < BLOCK_KEPT; i++)
        out[i] = i == KEPT_OUTPUT && last ? NULL : at_byte(kept, entries[i].offset_bytes);
}

/* --- linear layers ---------------------------------------------------------------------------- */

/* y(R,out) = x(R,in) w + bias */
static void linear_forward(const struct unit *unit, float *y, const float *x, uint64_t layer,
                           uint32_t weight, int64_t out, int64_t in)
{
    struct tensor w = tensor_of(unit, layer, weight), bias = tensor_of(unit, layer, weight + 1);
    unit->kernels->linear_forward(unit->kernels, y, x, w.p, bias.p, unit->r, out, in, true);
}

/* dx(R,in) from dy(R,out), then the weight's and the bias's gradients and steps. */
static void linear_backward(const struct unit *unit, float *dx, const float *dy, const float *x,
                            uint64_t layer, uint32_t weight, int64_t out, int64_t in)
{
    struct tensor w = tensor_of(unit, layer, weight), bias = tensor_of(unit, layer, weight + 1);
    const struct kernels *k = unit->kernels;
    k->linear_input(k, dx, dy, w.p, unit->r, out, in, true, false);
    k->linear_weight(k, w.g, bias.g, dy, x, unit->r, out, in, true);
    step(unit, &w, true);
    step(unit, &bias, false);
}

static void norm_forward(const struct unit *unit, float *out, float *sum, float *stats,
                         const float *x, const float *y, uint64_t layer, uint32_t weight)
{
    struct tensor w = tensor_of(unit, layer, weight), bias = tensor_of(unit, layer, weight + 1);
    unit->kernels->norm_forward(unit->kernels, out, sum, stats, x, y, w.p, bias.p, unit->r,
                                unit->c, unit->epsilon);
}

static void norm_backward(const struct unit *unit, float *dx, const float *dout, const float *x,
                          const float *stats, const float *added, uint64_t layer, uint32_t weight)
{
    struct tensor w = tensor_of(unit, layer, weight), bias = tensor_of(unit, layer, weight + 1);
    unit->kernels->norm_backward(unit->kernels, dx, w.g, bias.g, dout, x, stats, w.p, added,
                                 unit->r, unit->c);
    step(unit, &w, false);
    step(unit, &bias, false);
}

/* --- a block ---------------------------------------------------------------------------------- */

/* `out` NULL: only what the backward pass needs. */
static void block_forward(const struct unit *unit, uint64_t layer, float *const kept[BLOCK_KEPT],
                          const float *in, float *out)
{
    const struct kernels *k = unit->kernels;
    int64_t c = unit->c;
    float *branch = out ? out : unit->d_stream2;
    norm_forward(unit, kept[KEPT_NORM1], NULL, kept[KEPT_NORM1_STATS], in, NULL, layer,
                 NORM1_WEIGHT);
    linear_forward(unit, kept[KEPT_QKV], kept[KEPT_NORM1], layer, QKV_WEIGHT, 3 * c, c);
    k->attention_forward(k, kept[KEPT_ATTENTION], kept[KEPT_ATTENTION_STATS], kept[KEPT_QKV],
                         unit->b, unit->t, c, unit->h, true, unit->scratch);
    linear_forward(unit, branch, kept[KEPT_ATTENTION], layer, PROJECTION_WEIGHT, c, c);
    norm_forward(unit, kept[KEPT_NORM2], kept[KEPT_MIDDLE], kept[KEPT_NORM2_STATS], in, branch,
                 layer, NORM2_WEIGHT);
    linear_forward(unit, kept[KEPT_FC], kept[KEPT_NORM2], layer, FC_WEIGHT, unit->f, c);
    k->gelu_forward(k, kept[KEPT_GELU], kept[KEPT_FC], unit->r * unit->f,
                    unit->network->gelu_tanh);
    if (!out) return;
    linear_forward(unit, out, kept[KEPT_GELU], layer, OUT_WEIGHT, c, unit->f);
    k->residual(k, out, kept[KEPT_MIDDLE], out, unit->r * c);
}

/* `d_out` is the gradient of the block's output, `d_in` (may be d_out) becomes that of its input. */
static void block_backward(const struct unit *unit, uint64_t layer, float *const kept[BLOCK_KEPT],
                           const float *in, const float *d_out, float *d_in)
{
    const struct kernels *k = unit->kernels;
    int64_t c = unit->c, f = unit->f;
    linear_backward(unit, unit->d_wide, d_out, kept[KEPT_GELU], layer, OUT_WEIGHT, c, f);
    k->gelu_backward(k, unit->d_wide, unit->d_wide, kept[KEPT_FC], unit->r * f,
                     unit->network->gelu_tanh);
    linear_backward(unit, unit->d_stream2, unit->d_wide, kept[KEPT_NORM2], layer, FC_WEIGHT, f, c);
    norm_backward(unit, d_in, unit->d_stream2, kept[KEPT_MIDDLE], kept[KEPT_NORM2_STATS], d_out,
                  layer, NORM2_WEIGHT);

    linear_backward(unit, unit->d_stream2, d_in, kept[KEPT_ATTENTION], layer, PROJECTION_WEIGHT, c,
                    c);
    k->attention_backward(k, unit->d_qkv, unit->d_stream2, kept[KEPT_QKV], kept[KEPT_ATTENTION],
                          kept[KEPT_ATTENTION_STATS], unit->b, unit->t, c, unit->h, true,
                          unit->scratch);
    linear_backward(unit, unit->d_stream2, unit->d_qkv, kept[KEPT_NORM1], layer, QKV_WEIGHT, 3 * c,
                    c);
    norm_backward(unit, d_in, unit->d_stream2, in, kept[KEPT_NORM1_STATS], d_in, layer,
                  NORM1_WEIGHT);
}

/* --- runs of blocks --------------------------------------------------------------------------- */

/* Blocks [first, end) of the shard with all they keep; the last one's output goes to `out`, or
 * nowhere (NULL) when only the backward pass follows. */
static void blocks_forward(const struct unit *unit, uint64_t end, float *kept, float *out)
{
    const float *in = unit->arguments->boundary_in;
    for (uint64_t layer = unit->arguments->shard->first_layer; layer < end; layer++) {
        float *parts[BLOCK_KEPT];
        block_kept(unit, kept, layer, parts);
        float *output = parts[KEPT_OUTPUT] ? parts[KEPT_OUTPUT] : out;
        block_forward(unit, layer, parts, in, output);
        in = output;
    }
}

/* The input of a layer: the boundary, or what the layer in front of it kept as its output. */
static const float *layer_input(const struct unit *unit, float *kept, uint64_t layer)
{
    if (layer == unit->arguments->shard->first_layer) return unit->arguments->boundary_in;
    float *parts[BLOCK_KEPT];
    block_kept(unit, kept, layer - 1, parts);
    return parts[KEPT_OUTPUT];
}

/* Blocks [first, end), the last first; `d_out` is the gradient of the last one's output. */
static void blocks_backward(const struct unit *unit, uint64_t end, float *kept,
                            const float *d_out)
{
    const struct unit_arguments *a = unit->arguments;
    for (uint64_t layer = end; layer-- > a->shard->first_layer;) {
        float *parts[BLOCK_KEPT];
        block_kept(unit, kept, layer, parts);
        block_backward(unit, layer, parts, layer_input(unit, kept, layer), d_out,
                       a->gradient_out);
        d_out = a->gradient_out;
    }
}

/* Forward without keeping: each layer's activations replace those of the one in front of it. */
static void blocks_forward_only(const struct unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    const struct memory_table *workspace = workspace_of(a);
    float *streams[2] = {piece(a, workspace, "d_stream"), unit->d_stream2};
    float *keep = piece(a, workspace, "keep");
    uint64_t end = a->shard->first_layer + a->shard->layer_count;
    const float *in = a->boundary_in;
    for (uint64_t layer = a->shard->first_layer; layer < end; layer++) {
        const struct memory_entry *entries =
            layer_entries(&a->tables->activations, a, layer, BLOCK_KEPT);
        float *parts[BLOCK_KEPT];
        for (uint32_t i = 0; i < KEPT_OUTPUT; i++)
            parts[i] = at_byte(keep, entries[i].offset_bytes - entries[0].offset_bytes);
        parts[KEPT_OUTPUT] = NULL;
        float *out = layer + 1 == end ? a->boundary_out : streams[layer % 2];
        block_forward(unit, layer, parts, in, out);
        in = out;
    }
}

/* --- embedding and head ----------------------------------------------------------------------- */

static int64_t embedding_rows(const struct unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    if (a->row_count > 0) return (int64_t)a->row_count;
    return unit->v + (int64_t)unit->network->positions;
}

static void embedding_forward(const struct unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    unit->kernels->embed_forward(unit->kernels, a->boundary_out, a->state, a->batch, unit->t + 1,
                                 unit->b, unit->t, unit->c, unit->v, (int64_t)a->first_row,
                                 embedding_rows(unit));
}

static void embedding_backward(const struct unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    unit->kernels->embed_update(unit->kernels, a->state, unit->part, a->table_gradient,
                                a->gradient_in, a->batch, unit->t + 1, unit->b, unit->t, unit->c,
                                unit->v, (int64_t)a->first_row, embedding_rows(unit),
                                &a->job->optimizer, a->minibatch + 1, unit->scratch);
}

/* The head, there and back: the gradient of its input goes to gradient_out. */
static void head_loss(const struct unit *unit, uint64_t layer, float *kept)
{
    const struct unit_arguments *a = unit->arguments;
    const struct kernels *k = unit->kernels;
    const struct memory_entry *entries =
        layer_entries(&a->tables->activations, a, layer, BLOCK_KEPT);
    float *normf = at_byte(kept, entries[KEPT_NORMF].offset_bytes);
    float *stats = at_byte(kept, entries[KEPT_NORMF_STATS].offset_bytes);
    const float *in = layer_input(unit, kept, layer);

    struct tensor own = {0};
    bool tied = unit->network->tied_head;
    if (!tied) own = tensor_of(unit, layer, HEAD_WEIGHT);
    const float *table = tied ? a->table : own.p;
    float *table_gradient = tied ? a->table_gradient : own.g;

    norm_forward(unit, normf, NULL, stats, in, NULL, layer, NORMF_WEIGHT);
    k->linear_forward(k, unit->logits, normf, table, NULL, unit->r, unit->v, unit->c, false);
    k->loss(k, a->loss, unit->logits, a->batch, unit->t + 1, unit->b, unit->t, unit->v);
    k->linear_input(k, unit->d_stream2, unit->logits, table, unit->r, unit->v, unit->c, false,
                    false);
    k->linear_weight(k, table_gradient, NULL, unit->logits, normf, unit->r, unit->v, unit->c,
                     false);
    if (!tied) step(unit, &own, true);
    norm_backward(unit, a->gradient_out, unit->d_stream2, in, stats, NULL, layer, NORMF_WEIGHT);
}

/* --- public ----------------------------------------------------------------------------------- */

static void compute_loss(const struct unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    uint64_t head = unit->network->layer_count - 1;
    assert(a->shard->first_layer + a->shard->layer_count == head + 1);
    float *kept = piece(a, workspace_of(a), "activations");
    blocks_forward(unit, head, kept, NULL);
    head_loss(unit, head, kept);
    blocks_backward(unit, head, kept, a->gradient_out);
}

static void compute_backward(const struct unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    uint64_t end = a->shard->first_layer + a->shard->layer_count;
    float *kept = a->activations;
    if (!kept) {
        kept = piece(a, workspace_of(a), "activations");
        blocks_forward(unit, end, kept, NULL);
    }
    blocks_backward(unit, end, kept, a->gradient_in);
}

/* The optimizer's step of all layers, from gradients that a backward pass left. */
static void compute_update(const struct unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    const uint64_t head = unit->network->layer_count - 1;
    for (uint64_t i = 0; i < a->shard->layer_count; i++) {
        const uint64_t layer = a->shard->first_layer + i;
        const bool own_head = !unit->network->tied_head;
        const uint32_t count = layer < head ? BLOCK_TENSORS : own_head ? HEAD_WEIGHT + 1 : HEAD_WEIGHT;
        for (uint32_t index = 0; index < count; index++) {
            const struct tensor tensor = tensor_of(unit, layer, index);
            const bool matrix = layer < head ? index == QKV_WEIGHT || index == PROJECTION_WEIGHT ||
                                                   index == FC_WEIGHT || index == OUT_WEIGHT
                                             : index == HEAD_WEIGHT;
            step(unit, &tensor, matrix);
        }
    }
}

void gpt2_compute(const struct kernels *kernels, const struct unit_arguments *arguments)
{
    struct unit unit = unit_of(kernels, arguments);
    const struct plan_shard *shard = arguments->shard;
    uint64_t end = shard->first_layer + shard->layer_count;
    bool embedding = shard->first_layer == 0;
    assert(!embedding || shard->layer_count == 1);
    switch (arguments->pass) {
    case PLAN_FORWARD:
        if (embedding)
            embedding_forward(&unit);
        else if (arguments->activations)
            blocks_forward(&unit, end, arguments->activations, arguments->boundary_out);
        else
            blocks_forward_only(&unit);
        break;
    case PLAN_LOSS: compute_loss(&unit); break;
    case PLAN_BACKWARD:
        if (embedding)
            embedding_backward(&unit);
        else
            compute_backward(&unit);
        break;
    case PLAN_UPDATE:
        assert(!embedding);
        compute_update(&unit);
        break;
    default: assert(!"a pass of the compute stream");
    }
}

const char *gpt2_unsupported(const struct job *job)
{
    const struct network *n = &job->network;
    if (n->heads * n->head_width != n->width)
        return "its heads do not make up its width";
    if (!n->causal) return "its attention is not causal";
    return NULL;
}
