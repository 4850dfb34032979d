/*
 * A pass over the layers of a shard, for any family.
 *
 *     FORWARD   the embedding; or blocks, keeping their activations or not
 *     LOSS      blocks forward, the head forward and backward, blocks backward
 *     BACKWARD  the embedding; or blocks forward again unless their activations were kept, then blocks backward
 *               (if only the inputs of blocks were kept: forward and backward of each block, the last first;
 *               likewise a LOSS that holds only inputs). In pipelines the head's loss comes first, forward and
 *               backward, so that its logits are not kept
 *     UPDATE    the steps of all tensors, from gradients that a backward pass left
 *     NORM      the sums of squares of the same gradients, one for each tensor
 *     EVALUATE  forward, with the loss in the head's shard; nothing is kept and nothing changes
 *
 * A weight's gradient is in `gradients`, laid out like the layer's parameters, only until its optimizer step, which
 * follows as soon as the pass has used the weight for the last time: the gradient is still in cache. When the
 * optimizer runs elsewhere, gradients stay and an UPDATE makes the same steps later.
 *
 * Clipping. Each tensor's sum of squares has an order that depends only on its size, and the sums are added in the
 * order of the network's tensors: the norm has the same bits in every sharding.
 *
 * Several microbatches go through a shard before the next shard's turn (vertical order): parameters cross the link
 * once. The first one's gradients start the sums, later ones' are added when complete, in the order of microbatches;
 * the steps come at the end.
 *
 * Weights in bf16. The other operand of a product with weights is rounded before the product, and in the backward pass
 * the gradient of its result once for both products; the copies are scratch.
 *
 * The same bits in every sharding. A layer's calls depend only on the layer: nothing is fused across layers, a block's
 * output is always written out, and addresses change nothing. A recomputation makes the same calls as the forward
 * pass, except those whose result only the next shard needs.
 */
#include "exec/network/transformer.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#include "base/random.h"
#include "models/job/learning_rate.h"

/* --- where things are ------------------------------------------------------------------------- */

static void *at_byte(void *base, uint64_t offset_bytes)
{
    return (char *)base + offset_bytes;
}

/* Returns NULL if this pass has no such piece. */
static void *piece(const struct unit_arguments *a, const struct memory_table *workspace,
                    const char *name)
{
    const struct memory_entry *entry = memory_find(workspace, a->shard->first_layer, name);
    return entry && a->workspace ? at_byte(a->workspace, entry->offset_bytes) : NULL;
}

static enum unit_pass schedule_unit_pass(uint32_t pass)
{
    switch (pass) {
    case PLAN_FORWARD: return UNIT_FORWARD;
    case PLAN_LOSS: return UNIT_LOSS;
    default:
        assert(pass == PLAN_BACKWARD || pass == PLAN_UPDATE || pass == PLAN_NORM);
        return UNIT_BACKWARD;
    }
}

static bool has_head(const struct unit_arguments *a)
{
    return a->shard->first_layer + a->shard->layer_count == a->job->network.layer_count;
}

/* Returns the workspace of a LOSS whose gradients go elsewhere, or of a forward pass that keeps nothing. */
static const struct memory_table *evaluation_workspace(const struct unit_arguments *a)
{
    uint32_t how = UNIT_GRADIENTS_OUT | (a->inputs_only ? UNIT_INPUTS : 0);
    return has_head(a) ? &a->tables->workspace[UNIT_LOSS][how]
                       : &a->tables->workspace[UNIT_FORWARD][0];
}

/* Counts the inputs of a single layer, the boundary, as kept, although no buffer exists. */
static uint32_t way_of(const struct unit_arguments *a)
{
    bool kept = a->activations || (a->inputs_only && a->tables->inputs.bytes == 0);
    return (kept && a->pass != PLAN_LOSS ? UNIT_KEEP : 0) | (a->inputs_only ? UNIT_INPUTS : 0) |
           (a->gradient ? UNIT_GRADIENTS_OUT : 0);
}

static const struct memory_table *workspace_of(const struct unit_arguments *a)
{
    if (a->pass == PLAN_EVALUATE) return evaluation_workspace(a);
    uint32_t how = way_of(a);
    assert(how < UNIT_WAYS);
    return &a->tables->workspace[schedule_unit_pass(a->pass)][how];
}

static bool holds_inputs(const struct unit_arguments *a)
{
    if (a->pass == PLAN_EVALUATE) return a->inputs_only && has_head(a);
    return unit_holds_inputs(schedule_unit_pass(a->pass), way_of(a));
}

static uint32_t first_layer_tensors(const struct unit_arguments *a)
{
    const struct memory_table *table = &a->tables->parameters;
    uint32_t count = 0;
    while (count < table->count && table->entries[count].layer == a->shard->first_layer) count++;
    return count;
}

static struct transformer_unit unit_of(const struct transformer *transformer, const struct kernels *kernels,
                                       const struct unit_arguments *a)
{
    const struct network *n = &a->job->network;
    const struct memory_table *workspace = workspace_of(a);
    bool alone = a->microbatch.alone;
    uint64_t samples = alone ? a->job->microbatch : job_pass_samples(a->job, a->shard->first_layer);
    return (struct transformer_unit){
        .kernels = kernels,
        .arguments = a,
        .network = n,
        .transformer = transformer,
        .b = (int64_t)samples,
        .t = (int64_t)a->job->sequence,
        .r = (int64_t)(samples * a->job->sequence),
        .c = (int64_t)n->width,
        .h = (int64_t)n->heads,
        .d = (int64_t)n->head_width,
        .f = (int64_t)n->ff_width,
        .v = (int64_t)n->vocabulary,
        .inner = (int64_t)(n->heads * n->head_width),
        .shared = (int64_t)(network_kv_heads(n) * n->head_width),
        .epsilon = (float)n->norm_epsilon,
        .optimizer = optimizer_at(a->job, a->minibatch),
        .scale = 1,
        .block_tensors = first_layer_tensors(a),
        .turns = (uint32_t)(job_samples(a->job) / samples),
        .gradients = piece(a, workspace, "gradients"),
        .d_stream = piece(a, workspace, "d_stream"),
        .d_stream2 = piece(a, workspace, "d_stream2"),
        .d_qkv = piece(a, workspace, "d_qkv"),
        .d_wide = piece(a, workspace, "d_wide"),
        .scratch = piece(a, workspace, "scratch"),
        .logits = piece(a, workspace, "logits"),
        .rounded = piece(a, workspace, "rounded"),
        .d_rounded = piece(a, workspace, "d_rounded"),
    };
}

/* Earlier layers, all blocks, have `per_block` entries. */
static const struct memory_entry *layer_entries(const struct memory_table *table,
                                                const struct unit_arguments *a, uint64_t layer,
                                                uint32_t per_block)
{
    uint64_t index = (layer - a->shard->first_layer) * per_block;
    assert(index < table->count && table->entries[index].layer == layer);
    return &table->entries[index];
}

/* Finds them in `all`, the kept tensors of all layers, laid out as in the table. */
static void kept_of(const struct transformer_unit *unit, float *all, uint64_t layer,
                    float *out[TRANSFORMER_KEPT_MAX])
{
    const struct unit_arguments *a = unit->arguments;
    const struct transformer *transformer = unit->transformer;
    const struct memory_entry *entries =
        layer_entries(&a->tables->activations, a, layer, transformer->block_kept);
    bool head = layer + 1 == unit->network->layer_count;
    bool last = layer + 1 == a->shard->first_layer + a->shard->layer_count;
    uint32_t count = head ? transformer->head_kept : transformer->block_kept;
    assert(count <= TRANSFORMER_KEPT_MAX);
    for (uint32_t i = 0; i < count; i++) {
        bool output = !head && i + 1 == count;
        out[i] = output && last ? NULL : at_byte(all, entries[i].offset_bytes);
    }
}

/* Finds them in `alone`, only this layer's, without its output. */
static void kept_alone(const struct transformer_unit *unit, float *alone, uint64_t layer,
                       float *out[TRANSFORMER_KEPT_MAX])
{
    const struct unit_arguments *a = unit->arguments;
    const struct transformer *transformer = unit->transformer;
    const struct memory_entry *entries =
        layer_entries(&a->tables->activations, a, layer, transformer->block_kept);
    bool head = layer + 1 == unit->network->layer_count;
    uint32_t count = head ? transformer->head_kept : transformer->block_kept - 1;
    assert(count < TRANSFORMER_KEPT_MAX);
    for (uint32_t i = 0; i < count; i++)
        out[i] = at_byte(alone, entries[i].offset_bytes - entries[0].offset_bytes);
    if (!head) out[count] = NULL;
}

/* Finds it in `inputs`, of all layers except the first. */
static float *held_input(const struct transformer_unit *unit, float *inputs, uint64_t layer)
{
    const struct unit_arguments *a = unit->arguments;
    uint64_t index = layer - a->shard->first_layer;
    if (index == 0) return a->boundary_in;
    const struct memory_entry *entry = &a->tables->inputs.entries[index - 1];
    assert(index <= a->tables->inputs.count && entry->layer == layer);
    return at_byte(inputs, entry->offset_bytes);
}

/* --- tensors ---------------------------------------------------------------------------------- */

struct transformer_tensor transformer_tensor(const struct transformer_unit *unit, uint64_t layer, uint32_t index)
{
    const struct unit_arguments *a = unit->arguments;
    const struct memory_entry *first =
        layer_entries(&a->tables->parameters, a, layer, unit->block_tensors);
    const struct memory_entry *entry = first + index;
    assert(entry->layer == layer);
    uint64_t tables = layer == 0 ? network_table_rows(unit->network) * unit->network->width : 0;
    uint64_t offset = entry->offset_bytes - first->offset_bytes, skipped = tables * sizeof(float);
    float *g = NULL, *whole = unit->sums ? unit->sums : a->gradient;
    if (whole && !unit->adds)
        g = at_byte(whole, entry->offset_bytes);
    else if (unit->gradients && offset >= skipped)
        g = at_byte(unit->gradients, offset - skipped);
    struct transformer_tensor tensor = {.g = g, .index = (uint32_t)(entry - a->tables->parameters.entries)};
    const struct memory_entry *weights = &a->tables->state.parts[STATE_WEIGHTS].entries[tensor.index];
    if (weights->bytes == entry->bytes)
        tensor.weights.fp32 = at_byte(a->state, weights->offset_bytes);
    else
        tensor.weights.rounded = at_byte(a->state, weights->offset_bytes);
    return tensor;
}

const float *transformer_vector(const struct transformer_unit *unit, uint64_t layer, uint32_t index)
{
    const struct transformer_tensor vector = transformer_tensor(unit, layer, index);
    assert(vector.weights.fp32);
    return vector.weights.fp32;
}

/* --- steps ------------------------------------------------------------------------------------ */

/* Returns the key of the stochastic-rounding stream of (layer, step). */
static uint64_t rounding_key(const struct unit_arguments *a, uint64_t layer)
{
    return random_u64(random_u64(a->job->seed, a->minibatch + 1), layer);
}

/* Returns NULL if the part does not store the tensor. */
static void *in_part(const struct unit_arguments *a, enum state_part part, uint32_t index)
{
    const struct state_tables *tables = &a->tables->state;
    const struct memory_entry *entry = &tables->parts[part].entries[index];
    if (entry->bytes == 0) return NULL;
    return at_byte(a->state, tables->layout.parts[part].offset_bytes + entry->offset_bytes);
}

/* The state must be whole. */
static struct kernel_parameters parameters_of(const struct unit_arguments *a, uint32_t index)
{
    const struct memory_entry *entries = a->tables->parameters.entries;
    const uint64_t layer = entries[index].layer;
    void *const master = in_part(a, STATE_MASTER, index);
    void *const weights = in_part(a, STATE_WEIGHTS, index);
    struct kernel_parameters out = {.p = master ? master : weights,
                                    .rounded = master ? weights : NULL,
                                    .m = in_part(a, STATE_FIRST, index),
                                    .v = in_part(a, STATE_SECOND, index),
                                    .key = rounding_key(a, layer)};
    for (uint32_t i = index; i-- > 0 && entries[i].layer == layer;)
        out.place += entries[i].bytes / sizeof(float);
    return out;
}

static void shut(struct unit_guard *guard, enum unit_guard_state why)
{
    int open = UNIT_GUARD_OPEN;
    atomic_compare_exchange_strong(&guard->state, &open, why);
}

static void shut_by_loss(const struct unit_arguments *a)
{
    if (a->guard && a->loss && !isfinite(*a->loss)) shut(a->guard, UNIT_GUARD_LOSS);
}

/* Returns true if a step with gradients of this sum of squares stays finite: AdamW squares gradients in float, other
 * kinds multiply them by the rate, with a power of ten to spare. */
static bool fits(const struct transformer_unit *unit, double squares)
{
    const double most = (double)FLT_MAX / 10, rate = unit->optimizer.learning_rate;
    if (unit->optimizer.kind == OPTIMIZER_ADAMW) return squares <= most;
    return squares <= most * most && squares * rate * rate <= most * most;
}

/* Returns true if the guard stays open with this gradient of `count` numbers. A job that clips has checked its norm. */
static bool may_step(const struct transformer_unit *unit, const float *gradient, int64_t count)
{
    const struct unit_arguments *a = unit->arguments;
    if (!a->guard) return true;
    shut_by_loss(a);
    if (atomic_load(&a->guard->state) == UNIT_GUARD_OPEN && !job_clips(a->job) &&
        !fits(unit, unit->kernels->squares(unit->kernels, gradient, count)))
        shut(a->guard, UNIT_GUARD_GRADIENT);
    return atomic_load(&a->guard->state) == UNIT_GUARD_OPEN;
}

void transformer_step(const struct transformer_unit *unit, const struct transformer_tensor *tensor, bool decays)
{
    const struct unit_arguments *a = unit->arguments;
    const struct memory_entry *entry = &a->tables->parameters.entries[tensor->index];
    int64_t count = (int64_t)(entry->bytes / sizeof(float));
    if (unit->adds) {
        float *sum = at_byte(unit->sums, entry->offset_bytes);
        unit->kernels->residual(unit->kernels, sum, sum, tensor->g, count);
    }
    if (unit->sums || (a->gradient && a->pass != PLAN_UPDATE)) return;
    if (!may_step(unit, tensor->g, count)) return;
    const struct kernel_parameters parameters = parameters_of(a, tensor->index);
    const struct kernels *k = unit->kernels;
    if (unit->scale >= 1)
        k->update(k, &parameters, tensor->g, count, &unit->optimizer, decays, a->minibatch + 1);
    else /* also when it is not a number */
        k->update_scaled(k, &parameters, tensor->g, count, &unit->optimizer, decays,
                         a->minibatch + 1, unit->scale);
}

/* Returns NULL if there is no such part. */
static void *rows_in_part(const struct transformer_unit *unit, const struct state_layout *layout,
                          enum state_part part, int64_t first)
{
    if (layout->parts[part].bytes == 0) return NULL;
    return at_byte(unit->arguments->state, layout->parts[part].offset_bytes +
                                               (uint64_t)first * layout->parts[part].row_bytes);
}

void transformer_update_rows(const struct kernels *kernels, const struct job *job, void *state, const float *gradient,
                             uint64_t rows, uint64_t minibatch, struct unit_guard *guard)
{
    const struct unit_arguments a = {.job = job, .minibatch = minibatch, .guard = guard, .state = state};
    const struct transformer_unit unit = {.kernels = kernels, .arguments = &a, .network = &job->network,
                                          .optimizer = optimizer_at(job, minibatch)};
    const struct state_layout layout = memory_state_rows(&job->network, rows, job_state_format(job));
    const int64_t count = (int64_t)(rows * job->network.width);
    void *const master = rows_in_part(&unit, &layout, STATE_MASTER, 0);
    void *const weights = rows_in_part(&unit, &layout, STATE_WEIGHTS, 0);
    const struct kernel_parameters parameters = {.p = master ? master : weights,
                                                 .rounded = master ? weights : NULL,
                                                 .m = rows_in_part(&unit, &layout, STATE_FIRST, 0),
                                                 .v = rows_in_part(&unit, &layout, STATE_SECOND, 0),
                                                 .key = rounding_key(&a, 0)};
    if (!may_step(&unit, gradient, count)) return;
    kernels->update(kernels, &parameters, gradient, count, &unit.optimizer, true, minibatch + 1);
}

/* --- layers that many have -------------------------------------------------------------------- */

/* As transformer_linear_forward() with weights from anywhere, and backward, where dw and dbias (may be NULL) are
 * written or added to (LINEAR_ADD_...). */
struct transformer_product {
    struct transformer_weights w;
    int64_t rows, out, in;
    bool in_out;
};

static void product_forward(const struct transformer_unit *unit, float *y, const float *x, const float *bias,
                            const struct transformer_product *p)
{
    const struct kernels *k = unit->kernels;
    if (p->w.fp32) {
        k->linear_forward(k, y, x, p->w.fp32, bias, p->rows, p->out, p->in, p->in_out);
        return;
    }
    k->round(k, unit->rounded, x, p->rows * p->in);
    k->linear_forward_bf16(k, y, unit->rounded, p->w.rounded, bias, p->rows, p->out, p->in, p->in_out);
}

static void product_backward(const struct transformer_unit *unit, float *dx, bool accumulate_dx, float *dw,
                             uint32_t add, float *dbias, const float *dy, const float *x,
                             const struct transformer_product *p)
{
    const struct kernels *k = unit->kernels;
    if (p->w.fp32) {
        if (dx)
            k->linear_input(k, dx, dy, p->w.fp32, p->rows, p->out, p->in, p->in_out, accumulate_dx);
        k->linear_weight(k, dw, dbias, dy, x, p->rows, p->out, p->in, p->in_out, add);
        return;
    }
    k->round(k, unit->d_rounded, dy, p->rows * p->out);
    k->round(k, unit->rounded, x, p->rows * p->in);
    if (dx)
        k->linear_input_bf16(k, dx, unit->d_rounded, p->w.rounded, p->rows, p->out, p->in, p->in_out,
                             accumulate_dx);
    k->linear_weight_bf16(k, dw, dbias, dy, unit->d_rounded, unit->rounded, p->rows, p->out, p->in,
                          p->in_out, add);
}

static struct transformer_product product_of(struct transformer_weights w, const struct transformer_linear *l)
{
    return (struct transformer_product){.w = w, .rows = l->rows, .out = l->out, .in = l->in, .in_out = l->in_out};
}

void transformer_linear_forward(const struct transformer_unit *unit, float *y, const float *x, uint64_t layer,
                                struct transformer_linear l)
{
    const struct transformer_product product = product_of(transformer_tensor(unit, layer, l.weight).weights, &l);
    const float *bias = l.bias ? transformer_vector(unit, layer, l.weight + 1) : NULL;
    product_forward(unit, y, x, bias, &product);
}

void transformer_linear_backward(const struct transformer_unit *unit, float *dx, const float *dy, const float *x,
                                 uint64_t layer, struct transformer_linear l, bool accumulate)
{
    struct transformer_tensor w = transformer_tensor(unit, layer, l.weight), bias = {0};
    if (l.bias) bias = transformer_tensor(unit, layer, l.weight + 1);
    const struct transformer_product product = product_of(w.weights, &l);
    product_backward(unit, dx, accumulate, w.g, 0, bias.g, dy, x, &product);
    transformer_step(unit, &w, true);
    if (l.bias) transformer_step(unit, &bias, false);
}

void transformer_norm_forward(const struct transformer_unit *unit, float *out, float *sum, float *stats,
                              const float *x, const float *y, int64_t rows, uint64_t layer,
                              uint32_t weight)
{
    unit->kernels->norm_forward(unit->kernels, out, sum, stats, x, y,
                                transformer_vector(unit, layer, weight),
                                transformer_vector(unit, layer, weight + 1), rows, unit->c,
                                unit->epsilon);
}

void transformer_norm_backward(const struct transformer_unit *unit, float *dx, const float *dout, const float *x,
                               const float *stats, const float *added, int64_t rows, uint64_t layer,
                               uint32_t weight)
{
    const struct transformer_tensor w = transformer_tensor(unit, layer, weight);
    const struct transformer_tensor bias = transformer_tensor(unit, layer, weight + 1);
    unit->kernels->norm_backward(unit->kernels, dx, w.g, bias.g, dout, x, stats, w.weights.fp32, added, rows,
                                 unit->c);
    transformer_step(unit, &w, false);
    transformer_step(unit, &bias, false);
}

struct kernel_attention transformer_attention(const struct transformer_unit *unit, const float *q, const float *k,
                                              const float *v, float *out, float *stats)
{
    return (struct kernel_attention){.out = out,
                                     .stats = stats,
                                     .q = q,
                                     .k = k,
                                     .v = v,
                                     .scratch = unit->scratch,
                                     .b = unit->b,
                                     .t = unit->t,
                                     .h = unit->h,
                                     .kv = unit->shared / unit->d,
                                     .d = unit->d,
                                     .row_q = unit->inner,
                                     .row_kv = unit->shared,
                                     .causal = unit->network->causal,
                              .rounded = unit->arguments->job->precision == PRECISION_BF16_WEIGHTS};
}

static int64_t table_rows(const struct transformer_unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    return (int64_t)(a->row_count > 0 ? a->row_count : network_table_rows(unit->network));
}

/* Describes an embedding's rows. */
static struct state_layout rows_layout(const struct transformer_unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    return a->row_count > 0 ? memory_state_rows(unit->network, a->row_count, job_state_format(a->job))
                            : a->tables->state.layout;
}

void transformer_gather(const struct transformer_unit *unit, float *x, const struct transformer_table_rows *rows)
{
    const struct kernels *k = unit->kernels;
    /* A pass that only reads has only the weights. */
    const uint64_t row_bytes = unit->network->width * precision_weight_bytes(unit->arguments->job->precision);
    const void *const weights = at_byte(unit->arguments->state, (uint64_t)rows->first * row_bytes);
    if (unit->arguments->job->precision == PRECISION_BF16_WEIGHTS)
        k->embed_forward_bf16(k, x, weights, rows->tokens, rows->token_stride, unit->b, unit->t,
                              unit->c, rows->vocabulary, rows->first_row, rows->row_count);
    else
        k->embed_forward(k, x, weights, rows->tokens, rows->token_stride, unit->b, unit->t, unit->c,
                         rows->vocabulary, rows->first_row, rows->row_count);
}

static void step_rows(const struct transformer_unit *unit, const struct transformer_table_rows *rows,
                      const float *head_gradient, const float *dx, float *scratch)
{
    const struct unit_arguments *a = unit->arguments;
    const struct state_layout layout = rows_layout(unit);
    int64_t words = rows->vocabulary - rows->first_row; /* for the head's gradient */
    if (words > rows->row_count) words = rows->row_count;
    if (!may_step(unit, dx, unit->r * unit->c)) return;
    if (head_gradient && words > 0 && !may_step(unit, head_gradient, words * unit->c)) return;
    void *const master = rows_in_part(unit, &layout, STATE_MASTER, rows->first);
    void *const weights = rows_in_part(unit, &layout, STATE_WEIGHTS, rows->first);
    const struct kernel_parameters parameters = {
        .p = master ? master : weights,
        .rounded = master ? weights : NULL,
        .m = rows_in_part(unit, &layout, STATE_FIRST, rows->first),
        .v = rows_in_part(unit, &layout, STATE_SECOND, rows->first),
        .key = rounding_key(a, 0),
        .place = (a->first_row + (uint64_t)rows->first) * unit->network->width,
        .padded = rows->padded};
    unit->kernels->embed_update(unit->kernels, &parameters, head_gradient, dx, rows->tokens,
                                rows->token_stride, unit->b, unit->t, unit->c, rows->vocabulary,
                                rows->first_row, rows->row_count, &unit->optimizer,
                                a->minibatch + 1, scratch);
}

int64_t transformer_padded(const struct network *network)
{
    return network->has_padding ? (int64_t)network->padding_token + 1 : 0;
}

static struct transformer_table_rows all_rows(const struct transformer_unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    return (struct transformer_table_rows){.tokens = a->batch,
                                           .token_stride = unit->t + 1,
                                           .vocabulary = unit->v,
                                           .first_row = (int64_t)a->first_row,
                                           .row_count = table_rows(unit),
                                           .padded = transformer_padded(unit->network)};
}

void transformer_tables_forward(const struct transformer_unit *unit)
{
    const struct transformer_table_rows rows = all_rows(unit);
    transformer_gather(unit, unit->arguments->boundary_out, &rows);
}

void transformer_rows_backward(const struct transformer_unit *unit, const struct transformer_table_rows *rows,
                               const float *head_gradient, const float *dx, float *scratch)
{
    float *gradient = unit->arguments->gradient;
    if (!gradient) {
        step_rows(unit, rows, head_gradient, dx, scratch);
        return;
    }
    unit->kernels->embed_gradient(unit->kernels, gradient + rows->first * unit->c, unit->adds, head_gradient, dx,
                                  rows->tokens, rows->token_stride, unit->b, unit->t, unit->c, rows->vocabulary,
                                  rows->first_row, rows->row_count, rows->padded, scratch);
}

void transformer_tables_backward(const struct transformer_unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    const struct transformer_table_rows rows = all_rows(unit);
    transformer_rows_backward(unit, &rows, a->table_gradient, a->gradient_in, unit->scratch);
}

static struct transformer_weights word_table(const struct transformer_unit *unit, uint64_t layer, uint32_t own_weight)
{
    const void *const table = unit->arguments->table;
    if (!unit->network->tied_head) return transformer_tensor(unit, layer, own_weight).weights;
    if (unit->arguments->job->precision == PRECISION_BF16_WEIGHTS) return (struct transformer_weights){.rounded = table};
    return (struct transformer_weights){.fp32 = table};
}

struct transformer_words transformer_next_words(const struct transformer_unit *unit, uint32_t own_weight)
{
    return (struct transformer_words){.own_weight = own_weight,
                                      .bias = TRANSFORMER_WORDS_WITHOUT_BIAS,
                                      .labels = unit->arguments->batch,
                                      .stride = unit->t + 1};
}

void transformer_words(const struct transformer_unit *unit, uint64_t layer, const struct transformer_words *words,
                       const float *normf, float *d_normf)
{
    const struct unit_arguments *a = unit->arguments;
    const struct kernels *k = unit->kernels;
    int64_t c = unit->c, v = unit->v;
    int64_t piece = (int64_t)network_logit_rows(unit->network, (uint64_t)unit->r);
    bool tied = unit->network->tied_head;
    struct transformer_tensor own = {0}, bias = {0};
    if (!tied) own = transformer_tensor(unit, layer, words->own_weight);
    float *d_table = tied ? a->table_gradient : own.g;
    if (words->bias != TRANSFORMER_WORDS_WITHOUT_BIAS) bias = transformer_tensor(unit, layer, words->bias);

    struct kernel_loss_rows rows = {.part = unit->turn, .parts = unit->turns};
    for (; rows.first < unit->r; rows.first += piece) {
        rows.count = unit->r - rows.first < piece ? unit->r - rows.first : piece;
        const float *x = normf + rows.first * c;
        const struct transformer_product product = {.w = word_table(unit, layer, words->own_weight),
                                                    .rows = rows.count,
                                                    .out = v,
                                                    .in = c};
        product_forward(unit, unit->logits, x, bias.weights.fp32, &product);
        (words->masked ? k->loss_labels : k->loss)(k, a->loss, unit->logits, words->labels,
                                                   words->stride, unit->b, unit->t, v, rows);
        if (!d_normf) continue;
        /* The embedding's gradient has the sums of earlier microbatches. */
        bool more = rows.first > 0, weight_more = more || (tied && unit->adds);
        product_backward(unit, d_normf + rows.first * c, false, d_table,
                                (weight_more ? KERNEL_LINEAR_ADD_WEIGHT : 0) | (more ? KERNEL_LINEAR_ADD_BIAS : 0),
                                bias.g, unit->logits, x, &product);
    }
    if (!d_normf) return;
    if (!tied) transformer_step(unit, &own, true);
    if (bias.weights.fp32) transformer_step(unit, &bias, false);
}

/* --- runs of blocks --------------------------------------------------------------------------- */

/* Keeps all activations. The last output goes to `out`; NULL: nowhere. */
static void blocks_forward(const struct transformer_unit *unit, uint64_t end, float *all, float *out)
{
    const float *in = unit->arguments->boundary_in;
    for (uint64_t layer = unit->arguments->shard->first_layer; layer < end; layer++) {
        float *kept[TRANSFORMER_KEPT_MAX];
        kept_of(unit, all, layer, kept);
        float *kept_output = kept[unit->transformer->block_kept - 1];
        float *output = kept_output ? kept_output : out;
        unit->transformer->block_forward(unit, layer, kept, in, output);
        in = output;
    }
}

/* Returns the boundary, or the previous layer's kept output. */
static const float *layer_input(const struct transformer_unit *unit, float *all, uint64_t layer)
{
    if (layer == unit->arguments->shard->first_layer) return unit->arguments->boundary_in;
    float *kept[TRANSFORMER_KEPT_MAX];
    kept_of(unit, all, layer - 1, kept);
    return kept[unit->transformer->block_kept - 1];
}

/* Goes from the last block; `d_out` is the gradient of its output. */
static void blocks_backward(const struct transformer_unit *unit, uint64_t end, float *all, const float *d_out)
{
    const struct unit_arguments *a = unit->arguments;
    for (uint64_t layer = end; layer-- > a->shard->first_layer;) {
        float *kept[TRANSFORMER_KEPT_MAX];
        kept_of(unit, all, layer, kept);
        unit->transformer->block_backward(unit, layer, kept, layer_input(unit, all, layer), d_out,
                                          a->gradient_out);
        d_out = a->gradient_out;
    }
}

/* Replaces each layer's activations in `alone` by the next layer's. `inputs` gets the inputs of all layers except
 * the first; may be NULL. */
static void blocks_forward_only(const struct transformer_unit *unit, uint64_t end, float *alone, float *inputs)
{
    const struct unit_arguments *a = unit->arguments;
    float *streams[2] = {unit->d_stream, unit->d_stream2};
    uint64_t shard_end = a->shard->first_layer + a->shard->layer_count;
    const float *in = a->boundary_in;
    for (uint64_t layer = a->shard->first_layer; layer < end; layer++) {
        float *kept[TRANSFORMER_KEPT_MAX];
        kept_alone(unit, alone, layer, kept);
        float *out = layer + 1 == shard_end ? a->boundary_out
                     : inputs               ? held_input(unit, inputs, layer + 1)
                                            : streams[layer % 2];
        unit->transformer->block_forward(unit, layer, kept, in, out);
        in = out;
    }
}

/* Goes from the last block. A block's activations are computed in `alone` just before, unless the last block's are
 * still `fresh`. */
static void blocks_backward_alone(const struct transformer_unit *unit, uint64_t end, float *alone,
                                  float *inputs, const float *d_out, bool fresh)
{
    const struct unit_arguments *a = unit->arguments;
    for (uint64_t layer = end; layer-- > a->shard->first_layer;) {
        float *kept[TRANSFORMER_KEPT_MAX];
        kept_alone(unit, alone, layer, kept);
        const float *in = held_input(unit, inputs, layer);
        if (!fresh) unit->transformer->block_forward(unit, layer, kept, in, NULL);
        unit->transformer->block_backward(unit, layer, kept, in, d_out, a->gradient_out);
        d_out = a->gradient_out;
        fresh = false;
    }
}

/* --- passes ----------------------------------------------------------------------------------- */

/* Returns the end of the shard's blocks. */
static uint64_t blocks_end(const struct unit_arguments *a)
{
    return a->shard->first_layer + a->shard->layer_count - (has_head(a) ? 1 : 0);
}

/* Keeps what the backward pass needs, `all` or the `inputs` of layers; both NULL: nothing. */
static void forward_of_blocks(const struct transformer_unit *unit, float *all, float *inputs)
{
    const struct unit_arguments *a = unit->arguments;
    if (all)
        blocks_forward(unit, blocks_end(a), all, a->boundary_out);
    else
        blocks_forward_only(unit, blocks_end(a), piece(a, workspace_of(a), "keep"), inputs);
}

/* Computes the head forward and backward, and the blocks backward; only the loss in an evaluation. `all` has all kept
 * activations, or with `inputs` a single layer's, the last block's if it is `fresh`. */
static void head_and_back(const struct transformer_unit *unit, float *all, float *inputs, bool fresh)
{
    const struct unit_arguments *a = unit->arguments;
    const uint64_t head = blocks_end(a);
    float *kept[TRANSFORMER_KEPT_MAX], *d_in = a->pass == PLAN_EVALUATE ? NULL : a->gradient_out;
    assert(has_head(a));
    if (holds_inputs(a)) {
        kept_alone(unit, piece(a, workspace_of(a), "head"), head, kept);
        unit->transformer->head(unit, head, kept, held_input(unit, inputs, head), d_in);
        if (d_in) blocks_backward_alone(unit, head, all, inputs, d_in, fresh);
        return;
    }
    kept_of(unit, all, head, kept);
    unit->transformer->head(unit, head, kept, layer_input(unit, all, head), d_in);
    if (d_in) blocks_backward(unit, head, all, d_in);
}

static void compute_loss(const struct transformer_unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    float *all = piece(a, workspace_of(a), "activations"), *inputs = NULL;
    if (holds_inputs(a)) {
        inputs = piece(a, workspace_of(a), "inputs");
        blocks_forward_only(unit, blocks_end(a), all, inputs);
    } else {
        blocks_forward(unit, blocks_end(a), all, NULL);
    }
    head_and_back(unit, all, inputs, true);
}

static void compute_backward(const struct transformer_unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    float *made = piece(a, workspace_of(a), "activations");
    float *all = a->activations && !holds_inputs(a) ? a->activations : made;
    if (!holds_inputs(a) && !a->activations) blocks_forward(unit, blocks_end(a), made, NULL);
    if (has_head(a))
        head_and_back(unit, all, a->activations, false);
    else if (holds_inputs(a))
        blocks_backward_alone(unit, blocks_end(a), made, a->activations, a->gradient_in, false);
    else
        blocks_backward(unit, blocks_end(a), all, a->gradient_in);
}

/* Clips as torch.nn.utils.clip_grad_norm_() does. */
static float clip_scale(const struct unit_arguments *a)
{
    if (!job_clips(a->job)) return 1;
    assert(a->norms);
    const double scale = a->job->optimizer.clip / (unit_norm(a->job, a->norms) + 1e-6);
    return scale >= 1 ? 1 : (float)scale;
}

static void compute_norm(const struct transformer_unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    const struct memory_table *parameters = &a->tables->parameters;
    double *sums = a->norms + memory_tensor_count(unit->network, 0, a->shard->first_layer);
    for (uint32_t i = 0; i < parameters->count; i++) {
        const struct memory_entry *entry = &parameters->entries[i];
        sums[i] = unit->kernels->squares(unit->kernels, at_byte(a->gradient, entry->offset_bytes),
                                         (int64_t)(entry->bytes / sizeof(float)));
    }
}

static void compute_update(const struct transformer_unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    for (uint64_t i = 0; i < a->shard->layer_count; i++) {
        uint64_t layer = a->shard->first_layer + i;
        struct tensor_spec specs[LAYER_TENSORS_MAX];
        uint32_t count = network_layer_tensors(unit->network, layer, specs);
        for (uint32_t index = 0; index < count; index++) {
            const struct transformer_tensor tensor = transformer_tensor(unit, layer, index);
            transformer_step(unit, &tensor, specs[index].matrix);
        }
    }
}

static void compute_once(const struct transformer_unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    bool embedding = a->shard->first_layer == 0;
    assert(!embedding || a->shard->layer_count == 1);
    switch (a->pass) {
    case PLAN_FORWARD:
        if (embedding)
            unit->transformer->embedding_forward(unit);
        else
            forward_of_blocks(unit, a->inputs_only ? NULL : a->activations, a->activations);
        break;
    case PLAN_LOSS: compute_loss(unit); break;
    case PLAN_EVALUATE:
        if (embedding)
            unit->transformer->embedding_forward(unit);
        else if (has_head(a))
            compute_loss(unit);
        else
            forward_of_blocks(unit, NULL, NULL);
        break;
    case PLAN_BACKWARD:
        if (embedding)
            unit->transformer->embedding_backward(unit);
        else
            compute_backward(unit);
        break;
    case PLAN_UPDATE: compute_update(unit); break;
    case PLAN_NORM: compute_norm(unit); break;
    default: assert(!"a pass of the compute stream");
    }
}

/* --- several microbatches --------------------------------------------------------------------- */

/* May be NULL. Of images, only the labels are moved: the pixels follow all labels. */
static const int32_t *batch_of_turn(const int32_t *batch, const struct job *job, uint32_t turn)
{
    uint64_t labels = job->network.family == NETWORK_VIT
                          ? 1 : job_batch_bytes(job) / sizeof(int32_t) / job_samples(job);
    return batch ? batch + turn * job->microbatch * labels : NULL;
}

/* Moves each buffer of samples to the microbatch's part. */
static struct unit_arguments arguments_of_turn(const struct unit_arguments *whole,
                                               const struct transformer_unit *unit, uint32_t turn)
{
    struct unit_arguments a = *whole;
    const struct job *job = a.job;
    uint64_t boundary = turn * (uint64_t)(unit->r * unit->c);
    const struct memory_table *table = a.inputs_only ? &a.tables->inputs : &a.tables->activations;
    uint64_t kept = turn * table->bytes / sizeof(float);
    a.batch = batch_of_turn(a.batch, job, turn);
    if (a.boundary_in) a.boundary_in += boundary;
    if (a.boundary_out) a.boundary_out += boundary;
    if (a.gradient_in) a.gradient_in += boundary;
    if (a.gradient_out) a.gradient_out += boundary;
    if (a.activations) a.activations += kept;
    return a;
}

static void compute_alone(const struct transformer *transformer, const struct kernels *kernels,
                          const struct unit_arguments *whole)
{
    struct unit_arguments a = *whole;
    a.batch = batch_of_turn(a.batch, a.job, a.microbatch.index);
    struct transformer_unit unit = unit_of(transformer, kernels, &a);
    unit.turn = a.microbatch.index;
    unit.adds = a.microbatch.adds;
    unit.sums = a.pass == PLAN_BACKWARD ? a.gradient : NULL;
    compute_once(&unit);
    if (a.pass == PLAN_BACKWARD) shut_by_loss(&a);
}

void transformer_compute(const struct transformer *transformer, const struct kernels *kernels,
                         const struct unit_arguments *a)
{
    if (a->microbatch.alone) {
        compute_alone(transformer, kernels, a);
        return;
    }
    struct transformer_unit unit = unit_of(transformer, kernels, a);
    bool back = a->pass == PLAN_LOSS || a->pass == PLAN_BACKWARD;
    if (a->pass == PLAN_UPDATE) unit.scale = clip_scale(a);
    if (unit.turns == 1 || a->pass == PLAN_UPDATE || a->pass == PLAN_NORM) {
        compute_once(&unit);
        if (a->pass == PLAN_LOSS) shut_by_loss(a);
        return;
    }
    float *sums = a->gradient ? a->gradient : piece(a, workspace_of(a), "sums");
    for (uint32_t turn = 0; turn < unit.turns; turn++) {
        struct unit_arguments part = arguments_of_turn(a, &unit, turn);
        struct transformer_unit one = unit_of(transformer, kernels, &part);
        one.turn = turn;
        one.adds = back && turn > 0;
        one.sums = back ? sums : NULL;
        compute_once(&one);
    }
    if (a->pass == PLAN_LOSS) shut_by_loss(a);
    if (!back || a->gradient) return;
    struct unit_arguments update = *a;
    update.pass = PLAN_UPDATE;
    update.gradient = sums;
    struct transformer_unit last = unit_of(transformer, kernels, &update);
    compute_once(&last);
}

double unit_norm(const struct job *job, const double *norms)
{
    const uint64_t tensors = memory_tensor_count(&job->network, 0, job->network.layer_count);
    double sum = 0;
    for (uint64_t i = 0; i < tensors; i++) sum += norms[i];
    return sqrt(sum);
}
