/*
 * Tensors, steps and layers that several families have.
 *
 * A weight's gradient is in `gradients`, laid out like the layer's parameters, only until its optimizer step, which
 * follows as soon as the pass has used the weight for the last time: the gradient is still in cache. When the
 * optimizer runs elsewhere, gradients stay and an UPDATE makes the same steps later.
 *
 * Weights in bf16-weights. The other operand of a product with weights is rounded before the product, and in the
 * backward pass the gradient of its result once for both products; the copies are scratch.
 *
 * In bf16 activations are read as they are stored. Only logits and their gradient are fp32: the gradient is rounded
 * once for both products.
 */
#include "exec/network/transformer.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#include "base/random.h"
#include "exec/network/transformer_adapter.h"
#include "models/job/learning_rate.h"
#include "models/network/network_graph.h"
#include "models/network/network_trained.h"
#include "models/network/network_traits.h"

/* --- tensors ---------------------------------------------------------------------------------- */

struct transformer_entries transformer_layer_entries(const struct memory_table *table, uint64_t layer)
{
    uint32_t low = 0, high = table->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (table->entries[middle].layer < layer) low = middle + 1;
        else high = middle;
    }
    struct transformer_entries of = {.first = &table->entries[low]};
    while (low + of.count < table->count && of.first[of.count].layer == layer) of.count++;
    return of;
}

struct transformer_tensor transformer_tensor(const struct transformer_unit *unit, uint64_t layer, uint32_t index)
{
    const struct unit_arguments *a = unit->arguments;
    const struct transformer_entries entries = transformer_layer_entries(&a->tables->parameters, layer);
    const struct memory_entry *const first = entries.first, *const entry = first + index;
    assert(index < entries.count);
    uint64_t tables = layer == 0 ? network_table_rows(unit->network) * unit->network->width : 0;
    uint64_t offset = entry->offset_bytes - first->offset_bytes, skipped = tables * sizeof(float);
    float *g = NULL, *whole = unit->sums ? unit->sums : a->gradient;
    if (whole && !unit->adds)
        g = transformer_at(whole, entry->offset_bytes);
    else if (unit->gradients && offset >= skipped)
        g = transformer_at(unit->gradients, offset - skipped);
    struct transformer_tensor tensor = {.index = (uint32_t)(entry - a->tables->parameters.entries)};
    const struct state_tables *const state = &a->tables->state;
    tensor.frozen = state->parts[STATE_FROZEN].entries[tensor.index].bytes > 0;
    tensor.g = tensor.frozen ? NULL : g;
    const enum state_part part = tensor.frozen ? STATE_FROZEN : STATE_WEIGHTS;
    const struct memory_entry *weights = &state->parts[part].entries[tensor.index];
    const uint64_t at = state->layout.parts[part].offset_bytes + weights->offset_bytes;
    void *const home = tensor.frozen && a->base ? a->base : a->state;
    tensor.weights.is_rounded = weights->rounded && a->job->precision == PRECISION_BF16_WEIGHTS;
    if (!home) return tensor;
    if (!tensor.weights.is_rounded)
        tensor.weights.numbers = transformer_at(home, at);
    else
        tensor.weights.rounded = transformer_at(home, at);
    return tensor;
}

const kernel_number *transformer_vector(const struct transformer_unit *unit, uint64_t layer, uint32_t index)
{
    const struct transformer_tensor vector = transformer_tensor(unit, layer, index);
    assert(vector.weights.numbers);
    return vector.weights.numbers;
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
    return transformer_at(a->state, tables->layout.parts[part].offset_bytes + entry->offset_bytes);
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

void transformer_copy(const struct kernels *kernels, void *to, const void *from, uint64_t bytes)
{
    kernels->first_forward(kernels, to, from, 1, 1, (int64_t)(bytes / kernels->number_bytes));
}

static void shut(struct unit_guard *guard, enum unit_guard_state why)
{
    int open = UNIT_GUARD_OPEN;
    atomic_compare_exchange_strong(&guard->state, &open, why);
}

void transformer_shut_by_loss(const struct unit_arguments *a)
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

/* Returns true if gradients are examined: the guard is open, and the job has not checked its norm to clip. */
static bool is_examined(const struct transformer_unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    if (!a->guard) return false;
    transformer_shut_by_loss(a);
    return atomic_load(&a->guard->state) == UNIT_GUARD_OPEN && !job_clips(a->job);
}

/* Returns true if the guard stays open with a gradient of this sum of squares. */
static bool stays_open(const struct transformer_unit *unit, double squares)
{
    const struct unit_arguments *a = unit->arguments;
    if (!a->guard) return true;
    if (is_examined(unit) && !fits(unit, squares)) shut(a->guard, UNIT_GUARD_GRADIENT);
    return atomic_load(&a->guard->state) == UNIT_GUARD_OPEN;
}

/* Returns true if the guard stays open with this gradient of `count` numbers. */
static bool may_step(const struct transformer_unit *unit, const float *gradient, int64_t count)
{
    double squares = 0;
    if (is_examined(unit)) unit->kernels->squares(unit->kernels, &squares, gradient, count, false);
    return stays_open(unit, squares);
}

/* Does so with a gradient of activations, of which that of rows is a sum. */
static bool may_step_rows(const struct transformer_unit *unit, const kernel_number *dx, int64_t count)
{
    double squares = 0;
    if (is_examined(unit)) unit->kernels->number_squares(unit->kernels, &squares, dx, count, false);
    return stays_open(unit, squares);
}

/* Steps parameters by their gradient, which is scaled when clipped. */
static void update(const struct transformer_unit *unit, const struct kernel_parameters *parameters,
                   const float *gradient, int64_t count, bool decays)
{
    const struct kernels *k = unit->kernels;
    const uint64_t step = unit->arguments->minibatch + 1;
    if (unit->scale >= 1)
        k->update(k, parameters, gradient, count, &unit->optimizer, decays, step);
    else /* also when it is not a number */
        k->update_scaled(k, parameters, gradient, count, &unit->optimizer, decays, step, unit->scale);
}

/* Moves a running mean towards the mean of the microbatches, whose sum is in the place of a gradient. */
static void step_running(const struct transformer_unit *unit, float *running, float *sum, int64_t count)
{
    const struct kernels *k = unit->kernels;
    const double microbatches = (double)(job_samples(unit->arguments->job) / unit->arguments->job->microbatch);
    k->scale(k, sum, sum, count, (float)(GRAPH_MOMENTUM / microbatches));
    k->scale(k, running, running, count, (float)(1 - GRAPH_MOMENTUM));
    k->add(k, running, running, sum, count);
}

void transformer_step(const struct transformer_unit *unit, const struct transformer_tensor *tensor, bool decays)
{
    const struct unit_arguments *a = unit->arguments;
    const struct memory_entry *entry = &a->tables->parameters.entries[tensor->index];
    int64_t count = (int64_t)(entry->bytes / sizeof(float));
    if (tensor->frozen) return;
    if (unit->adds) {
        float *sum = transformer_at(unit->sums, entry->offset_bytes);
        unit->kernels->add(unit->kernels, sum, sum, tensor->g, count);
    }
    if (a->carry && entry->layer > 0) a->carry->add(a->carry->context, entry->offset_bytes, entry->bytes);
    if (unit->sums || (a->gradient && a->pass != PLAN_UPDATE)) return;
    if (!may_step(unit, tensor->g, count)) return;
    const struct kernel_parameters parameters = parameters_of(a, tensor->index);
    if (tensor->running) {
        step_running(unit, parameters.p, tensor->g, count);
        return;
    }
    update(unit, &parameters, tensor->g, count, decays);
}

/* Returns NULL if there is no such part. */
static void *rows_in_part(const struct transformer_unit *unit, const struct state_layout *layout,
                          enum state_part part, int64_t first)
{
    if (layout->parts[part].bytes == 0) return NULL;
    return transformer_at(unit->arguments->state, layout->parts[part].offset_bytes +
                                               (uint64_t)first * layout->parts[part].row_bytes);
}

void transformer_update_rows(const struct kernels *kernels, const struct unit_arguments *a, const float *gradient,
                             uint64_t rows)
{
    const struct job *job = a->job;
    const struct transformer_unit unit = {.kernels = kernels, .arguments = a, .network = &job->network,
                                          .optimizer = optimizer_at(job, a->minibatch),
                                          .scale = transformer_clip_scale(a)};
    const struct state_layout layout = memory_state_rows(&job->network, rows, job_state_format(job));
    const int64_t count = (int64_t)(rows * job->network.width);
    void *const master = rows_in_part(&unit, &layout, STATE_MASTER, 0);
    void *const weights = rows_in_part(&unit, &layout, STATE_WEIGHTS, 0);
    const struct kernel_parameters parameters = {.p = master ? master : weights,
                                                 .rounded = master ? weights : NULL,
                                                 .m = rows_in_part(&unit, &layout, STATE_FIRST, 0),
                                                 .v = rows_in_part(&unit, &layout, STATE_SECOND, 0),
                                                 .key = rounding_key(a, 0)};
    if (may_step(&unit, gradient, count)) update(&unit, &parameters, gradient, count, true);
}

void transformer_update_range(const struct kernels *kernels, const struct job *job, struct kernel_parameters parameters,
                              const float *gradient, const struct transformer_range *range, uint64_t minibatch,
                              struct unit_guard *guard)
{
    const struct unit_arguments a = {.job = job, .minibatch = minibatch, .guard = guard};
    const struct transformer_unit unit = {.kernels = kernels, .arguments = &a, .network = &job->network,
                                          .optimizer = optimizer_at(job, minibatch), .scale = range->scale};
    parameters.key = rounding_key(&a, range->layer);
    parameters.place = range->place;
    if (!may_step(&unit, gradient, (int64_t)range->count)) return;
    update(&unit, &parameters, gradient, (int64_t)range->count, range->decays);
}

/* --- layers that many have -------------------------------------------------------------------- */

/* As transformer_linear_forward() with weights from anywhere, and backward, where dw and dbias, which may be NULL, are
 * written or added to (LINEAR_ADD_...). */
struct transformer_product {
    struct transformer_weights w;
    int64_t rows, out, in;
    bool in_out;
    bool logits; /* y and dy are fp32 */
};

/* Returns true if y and dy are fp32 where other numbers are bf16. */
static bool is_widened(const struct transformer_unit *unit, const struct transformer_product *p)
{
    return p->logits && unit->arguments->job->precision == PRECISION_BF16;
}

static void product_forward(const struct transformer_unit *unit, kernel_number *y, const kernel_number *x,
                            const kernel_number *bias, const struct transformer_product *p)
{
    const struct kernels *k = unit->kernels;
    if (is_widened(unit, p)) {
        k->linear_forward_bf16(k, y, x, p->w.numbers, bias, p->rows, p->out, p->in, p->in_out);
        return;
    }
    if (!p->w.is_rounded) {
        k->linear_forward(k, y, x, p->w.numbers, bias, p->rows, p->out, p->in, p->in_out);
        return;
    }
    k->round(k, unit->rounded, x, p->rows * p->in);
    k->linear_forward_bf16(k, y, unit->rounded, p->w.rounded, bias, p->rows, p->out, p->in, p->in_out);
}

static void product_backward(const struct transformer_unit *unit, kernel_number *dx, bool accumulate_dx, float *dw,
                             uint32_t add, float *dbias, const kernel_number *dy, const kernel_number *x,
                             const struct transformer_product *p)
{
    const struct kernels *k = unit->kernels;
    if (is_widened(unit, p)) {
        if (dx || dw) k->round(k, unit->d_rounded, dy, p->rows * p->out);
        if (dx) k->linear_input(k, dx, unit->d_rounded, p->w.numbers, p->rows, p->out, p->in, p->in_out, accumulate_dx);
        if (dw || dbias)
            k->linear_weight_bf16(k, dw, dbias, dy, unit->d_rounded, x, p->rows, p->out, p->in, p->in_out, add);
        return;
    }
    if (!p->w.is_rounded) {
        if (dx)
            k->linear_input(k, dx, dy, p->w.numbers, p->rows, p->out, p->in, p->in_out, accumulate_dx);
        if (dw || dbias) k->linear_weight(k, dw, dbias, dy, x, p->rows, p->out, p->in, p->in_out, add);
        return;
    }
    if (dx || dw) k->round(k, unit->d_rounded, dy, p->rows * p->out);
    if (dw) k->round(k, unit->rounded, x, p->rows * p->in);
    if (dx)
        k->linear_input_bf16(k, dx, unit->d_rounded, p->w.rounded, p->rows, p->out, p->in, p->in_out,
                             accumulate_dx);
    if (!dw && !dbias) return;
    k->linear_weight_bf16(k, dw, dbias, dy, unit->d_rounded, unit->rounded, p->rows, p->out, p->in,
                          p->in_out, add);
}

void transformer_sum(const struct transformer_unit *unit, float *values, int64_t count)
{
    if (unit->split) transformer_exchange_sum(unit->kernels, unit->split, values, (uint64_t)count);
}

/* A piece of a linear layer: its product, and the places of its operands among all pieces. */
struct piece {
    struct transformer_product product;
    int64_t x, y, weight, bias;
};

static struct piece piece_of(const struct transformer_unit *unit, struct transformer_weights w,
                             const struct transformer_linear *l, int64_t p)
{
    const int64_t out = l->by_rows ? l->out : l->out / unit->pieces, in = l->by_rows ? l->in / unit->pieces : l->in;
    if (w.numbers) w.numbers = transformer_read_number(unit, w.numbers, l->skipped + p * out * in);
    if (w.rounded) w.rounded += l->skipped;
    return (struct piece){.product = {.w = w, .rows = l->rows, .out = out, .in = in, .in_out = l->in_out,
                                      .logits = l->logits},
                          .x = l->by_rows ? p * l->rows * in : 0, .y = p * l->rows * out, .weight = p * out * in,
                          .bias = l->by_rows ? 0 : p * out};
}

void transformer_linear_forward(const struct transformer_unit *unit, kernel_number *y, const kernel_number *x,
                                uint64_t layer, struct transformer_linear l)
{
    const struct transformer_weights w = transformer_tensor(unit, layer, l.weight).weights;
    const bool biased = l.bias && (!l.by_rows || transformer_adds_whole(unit)), completes = l.by_rows && !l.apart;
    const kernel_number *const bias = biased ? transformer_vector(unit, layer, l.weight + 1) : NULL;
    kernel_number *const sum = completes ? transformer_sum_room(unit, y) : y;
    for (int64_t p = 0; p < unit->pieces; p++) {
        const struct piece piece = piece_of(unit, w, &l, p);
        const bool adds = bias && (!l.by_rows || p == 0);
        product_forward(unit, transformer_number(unit, sum, piece.y), transformer_read_number(unit, x, piece.x),
                        adds ? transformer_read_number(unit, bias, piece.bias) : NULL, &piece.product);
    }
    transformer_adapter_forward(unit, sum, x, layer, &l);
    if (completes) transformer_complete_sum(unit, y, sum);
}

void transformer_linear_backward(const struct transformer_unit *unit, kernel_number *dx, const kernel_number *dy,
                                 const kernel_number *x, uint64_t layer, struct transformer_linear l, bool accumulate)
{
    struct transformer_tensor w = transformer_tensor(unit, layer, l.weight), bias = {0};
    if (l.bias) bias = transformer_tensor(unit, layer, l.weight + 1);
    if (l.by_rows && !l.apart) dy = transformer_all_rows(unit, dy);
    if (w.g) w.g += l.skipped;
    if (l.rows == 0) {
        if (w.g && !unit->leaves_weights)
            unit->kernels->zero(unit->kernels, w.g, (uint64_t)(l.out * l.in) * sizeof *w.g);
        return;
    }
    if (dx && !l.by_rows && unit->piece_sums) dx = unit->piece_sums; /* for transformer_own_sum() */
    for (int64_t p = 0; p < unit->pieces; p++) {
        const struct piece piece = piece_of(unit, w.weights, &l, p);
        const int64_t in = l.by_rows ? piece.x : p * l.rows * l.in, out = l.by_rows ? 0 : piece.y;
        float *const d_bias = bias.g && (!l.by_rows || p == 0) ? bias.g + piece.bias : NULL;
        kernel_number *const d_in = dx ? transformer_number(unit, dx, in) : NULL;
        const kernel_number *const d_out = transformer_read_number(unit, dy, out);
        if (unit->leaves_weights)
            product_backward(unit, d_in, accumulate, NULL, 0, NULL, d_out, x, &piece.product);
        else
            product_backward(unit, d_in, accumulate, w.g ? w.g + piece.weight : NULL, 0, d_bias, d_out,
                             transformer_read_number(unit, x, piece.x), &piece.product);
    }
    if (l.part) return;
    transformer_adapter_backward(unit, dx, dy, x, layer, &l);
    if (unit->leaves_weights) return;
    transformer_step(unit, &w, true);
    if (l.bias) transformer_step(unit, &bias, false);
}

void transformer_linear_weight(const struct transformer_unit *unit, const kernel_number *dy, const kernel_number *x,
                               uint64_t layer, struct transformer_linear l)
{
    transformer_linear_backward(unit, NULL, dy, x, layer, l, false);
}

void transformer_norm_forward(const struct transformer_unit *unit, kernel_number *out, kernel_number *sum, float *stats,
                              const kernel_number *x, const kernel_number *y, int64_t rows, uint64_t layer,
                              uint32_t weight)
{
    unit->kernels->norm_forward(unit->kernels, out, sum, stats, x, y,
                                transformer_vector(unit, layer, weight),
                                transformer_vector(unit, layer, weight + 1), rows, unit->c,
                                unit->epsilon);
}

static void layer_norm_pass(const struct transformer_unit *unit, const struct transformer_norm *n)
{
    unit->kernels->norm_backward(unit->kernels, n->dx, n->d_weight, n->d_bias, n->dout, n->x, n->stats, n->weight,
                                 n->added, n->rows, unit->c);
}

void transformer_norm_backward(const struct transformer_unit *unit, kernel_number *dx, const kernel_number *dout,
                               const kernel_number *x, const float *stats, const kernel_number *added, int64_t rows,
                               uint64_t layer, uint32_t weight)
{
    const struct transformer_tensor w = transformer_tensor(unit, layer, weight);
    const struct transformer_tensor bias = transformer_tensor(unit, layer, weight + 1);
    const struct transformer_norm norm = {.dx = dx, .d_weight = w.g, .d_bias = bias.g, .dout = dout, .x = x,
                                          .stats = stats,
                                          .added = added, .weight = w.weights.numbers, .rows = rows};
    transformer_norm_in_parts(unit, &norm, 2, layer_norm_pass);
    transformer_step(unit, &w, false);
    transformer_step(unit, &bias, false);
}

struct kernel_attention transformer_attention(const struct transformer_unit *unit, uint64_t layer,
                                              const kernel_number *q, const kernel_number *k, const kernel_number *v,
                                              kernel_number *out, float *stats)
{
    const double scalar = unit->network->score_scalar;
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
                                     .scale = (float)(scalar > 0 ? 1 / sqrt(scalar) : 0),
                                     .cap = (float)unit->network->score_cap,
                                     .dropout = transformer_dropout(unit, layer, TRANSFORMER_SCORES),
                                     .begins = unit->arguments->begins,
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

/* Returns the bytes before the tables' weights, which are frozen: of other layers in the same state. A pass that only
 * reads rows has only their weights. */
static uint64_t tables_offset(const struct transformer_unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    const bool frozen = network_first_trained(unit->network) > 0;
    return a->row_count > 0 || frozen ? 0 : a->tables->state.layout.parts[STATE_WEIGHTS].offset_bytes;
}

void transformer_gather(const struct transformer_unit *unit, kernel_number *x,
                        const struct transformer_table_rows *rows)
{
    const struct kernels *k = unit->kernels;
    if (rows->split) {
        transformer_gather_split(unit, x, rows);
        return;
    }
    const uint64_t row_bytes = unit->network->width * precision_weight_bytes(unit->arguments->job->precision);
    const struct unit_arguments *const a = unit->arguments;
    const uint64_t at = a->base ? 0 : tables_offset(unit);
    const void *const weights = transformer_at(a->base ? a->base : a->state, at + (uint64_t)rows->first * row_bytes);
    if (unit->arguments->job->precision == PRECISION_BF16_WEIGHTS)
        k->embed_forward_bf16(k, x, weights, rows->tokens, rows->token_stride, unit->b, unit->t,
                              unit->c, rows->vocabulary, rows->first_row, rows->row_count);
    else
        k->embed_forward(k, x, weights, rows->tokens, rows->token_stride, unit->b, unit->t, unit->c,
                         rows->vocabulary, rows->first_row, rows->row_count);
}

static void step_rows(const struct transformer_unit *unit, const struct transformer_table_rows *rows,
                      const float *head_gradient, const kernel_number *dx, float *scratch)
{
    const struct unit_arguments *a = unit->arguments;
    const struct state_layout layout = rows_layout(unit);
    int64_t words = rows->vocabulary - rows->first_row; /* for the head's gradient */
    if (words > rows->row_count) words = rows->row_count;
    if (!may_step_rows(unit, dx, unit->r * unit->c)) return;
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
                                a->minibatch + 1, unit->parts, scratch);
}

int64_t transformer_padded(const struct network *network)
{
    return network->has_padding ? (int64_t)network->padding_token + 1 : 0;
}

/* Returns the unit's tokens in the batch, and the words from one sample to the next. */
static const int32_t *own_tokens(const struct transformer_unit *unit)
{
    return unit->arguments->batch ? unit->arguments->batch + transformer_first_token(unit) : NULL;
}

static int64_t sample_words(const struct transformer_unit *unit)
{
    return (int64_t)job_sample_words(unit->arguments->job);
}

/* Returns the rows of the unit's tables, positions as if they began right after the words. */
static struct transformer_table_rows all_rows(const struct transformer_unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    return (struct transformer_table_rows){.split = unit->split != NULL,
                                           .tokens = own_tokens(unit),
                                           .token_stride = sample_words(unit),
                                           .vocabulary = (int64_t)unit->network->vocabulary +
                                                         transformer_first_token(unit),
                                           .first_row = (int64_t)a->first_row,
                                           .row_count = table_rows(unit),
                                           .padded = transformer_padded(unit->network)};
}

bool transformer_tables_end(const struct transformer_unit *unit)
{
    return (int64_t)unit->arguments->first_row + table_rows(unit) == (int64_t)network_table_rows(unit->network);
}

/* Cuts rows where positions begin, if these follow rows without use, or restart within a sample, as those of packed
 * rows, which are looked up by number; split rows are cut elsewhere. Returns the number of parts, each of which has
 * rows. */
static uint32_t table_parts(const struct transformer_unit *unit, struct transformer_table_rows parts[2])
{
    const uint64_t unused = network_traits(unit->network)->more_positions;
    const struct transformer_table_rows rows = all_rows(unit);
    const int32_t *const numbers = unit->arguments->position_rows;
    const int64_t words = (int64_t)unit->network->vocabulary, end = rows.first_row + rows.row_count;
    uint32_t count = 0;
    if (rows.split || (!numbers && (unused == NETWORK_NO_POSITION_TABLE || unused == 0))) {
        parts[0] = rows;
        return 1;
    }
    if (rows.first_row < words) {
        parts[count] = rows;
        parts[count++].row_count = (end < words ? end : words) - rows.first_row;
    }
    if (end > words) {
        parts[count] = rows;
        parts[count].first = rows.first_row < words ? words - rows.first_row : 0;
        parts[count].first_row = rows.first_row + parts[count].first;
        parts[count].row_count = rows.row_count - parts[count].first;
        parts[count].vocabulary = numbers ? (int64_t)network_table_rows(unit->network)
                                          : rows.vocabulary + (int64_t)unused;
        if (numbers) parts[count].tokens = numbers;
        if (numbers) parts[count].token_stride = unit->t;
        count++;
    }
    return count;
}

void transformer_tables_forward(const struct transformer_unit *unit)
{
    struct transformer_table_rows parts[2];
    const uint32_t count = table_parts(unit, parts);
    for (uint32_t i = 0; i < count; i++) transformer_gather(unit, unit->arguments->boundary_out, &parts[i]);
    if (transformer_tables_end(unit)) transformer_drop(unit, unit->arguments->boundary_out, 0, TRANSFORMER_EMBEDDED);
}

void transformer_rows_backward(const struct transformer_unit *unit, const struct transformer_table_rows *rows,
                               const float *head_gradient, const kernel_number *dx, float *scratch)
{
    float *gradient = unit->arguments->gradient;
    if (!gradient) {
        step_rows(unit, rows, head_gradient, dx, scratch);
        return;
    }
    if (rows->split) {
        assert(!head_gradient);
        transformer_rows_backward_split(unit, rows, dx, scratch);
        return;
    }
    unit->kernels->embed_gradient(unit->kernels, gradient + rows->first * unit->c, unit->adds, head_gradient, dx,
                                  rows->tokens, rows->token_stride, unit->b, unit->t, unit->c, rows->vocabulary,
                                  rows->first_row, rows->row_count, rows->padded, unit->parts, scratch);
}

void transformer_tables_backward(const struct transformer_unit *unit)
{
    kernel_number *const room = unit->scratch + MEMORY_EMBEDDING_WORDS * unit->r;
    transformer_tables_backward_from(
        unit, transformer_dropped_gradient(unit, room, unit->arguments->gradient_in, 0, TRANSFORMER_EMBEDDED));
}

void transformer_tables_backward_from(const struct transformer_unit *unit, const kernel_number *dx)
{
    struct transformer_table_rows parts[2];
    const uint32_t count = table_parts(unit, parts);
    for (uint32_t i = 0; i < count; i++) {
        const bool words = parts[i].first_row < (int64_t)unit->network->vocabulary;
        transformer_rows_backward(unit, &parts[i], words ? unit->arguments->table_gradient : NULL, dx, unit->scratch);
    }
}

static struct transformer_weights word_table(const struct transformer_unit *unit, uint64_t layer, uint32_t own_weight)
{
    const void *const table = unit->arguments->table;
    if (!unit->network->tied_head) return transformer_tensor(unit, layer, own_weight).weights;
    if (unit->arguments->job->precision == PRECISION_BF16_WEIGHTS)
        return (struct transformer_weights){.rounded = table, .is_rounded = true};
    return (struct transformer_weights){.numbers = table};
}

struct transformer_words transformer_next_words(const struct transformer_unit *unit, uint32_t own_weight)
{
    const bool labels = job_has_labels(unit->arguments->job);
    return (struct transformer_words){.own_weight = own_weight,
                                      .bias = TRANSFORMER_WORDS_WITHOUT_BIAS,
                                      .masked = labels,
                                      .labels = own_tokens(unit) +
                                                (labels ? parallel_sequence(unit->arguments->job) : 0),
                                      .stride = sample_words(unit)};
}

/* The output of a head's words. */
struct words_pass {
    struct transformer_weights table;
    const kernel_number *bias; /* may be NULL */
    const kernel_number *normed; /* all rows */
    float *d_table, *d_bias;
    kernel_number *d_normf;
};

static struct transformer_product words_product(const struct transformer_unit *unit, const struct words_pass *pass,
                                                struct transformer_word_piece piece, int64_t rows)
{
    struct transformer_product product = {.w = pass->table, .rows = rows, .out = piece.count, .in = unit->c,
                                          .logits = true};
    if (piece.first > 0)
        product.w.numbers = transformer_read_number(unit, product.w.numbers, piece.first * unit->c);
    return product;
}

static void words_forward(const struct transformer_unit *unit, const struct words_pass *pass,
                          struct kernel_loss_rows rows)
{
    for (int64_t p = 0; p < unit->pieces; p++) {
        const struct transformer_word_piece piece = transformer_word_piece(unit, p);
        const struct transformer_product product = words_product(unit, pass, piece, rows.count);
        if (piece.count == 0) continue;
        product_forward(unit, unit->logits + rows.count * piece.first,
                        transformer_read_number(unit, pass->normed, rows.first * unit->c),
                        pass->bias ? transformer_read_number(unit, pass->bias, piece.first) : NULL, &product);
    }
}

/* `add`: LINEAR_ADD_... */
static void words_backward(const struct transformer_unit *unit, const struct words_pass *pass,
                           struct kernel_loss_rows rows, uint32_t add)
{
    const int64_t c = unit->c;
    for (int64_t p = 0; p < unit->pieces; p++) {
        const struct transformer_word_piece piece = transformer_word_piece(unit, p);
        const struct transformer_product product = words_product(unit, pass, piece, rows.count);
        kernel_number *const sums = unit->piece_sums ? unit->piece_sums : pass->d_normf;
        kernel_number *const dx = transformer_number(unit, sums, (p * unit->r + rows.first) * c);
        if (piece.count == 0) {
            unit->kernels->zero(unit->kernels, dx, transformer_number_bytes(unit, rows.count * c));
            continue;
        }
        float *const d_table = pass->d_table ? pass->d_table + piece.first * c : NULL;
        product_backward(unit, dx, false, d_table, add, pass->d_bias ? pass->d_bias + piece.first : NULL,
                         unit->logits + rows.count * piece.first,
                         transformer_read_number(unit, pass->normed, rows.first * c), &product);
    }
}

kernel_number *transformer_words(const struct transformer_unit *unit, uint64_t layer,
                                 const struct transformer_words *words, const kernel_number *normf,
                                 kernel_number *d_normf)
{
    const struct unit_arguments *a = unit->arguments;
    const struct kernels *k = unit->kernels;
    int64_t piece = (int64_t)network_logit_rows(unit->network, (uint64_t)unit->r);
    bool tied = unit->network->tied_head;
    struct transformer_tensor own = {0}, bias = {0};
    if (!tied) own = transformer_tensor(unit, layer, words->own_weight);
    if (words->bias != TRANSFORMER_WORDS_WITHOUT_BIAS) bias = transformer_tensor(unit, layer, words->bias);
    const struct words_pass pass = {.table = word_table(unit, layer, words->own_weight), .bias = bias.weights.numbers,
                                    .normed = transformer_all_rows(unit, normf),
                                    .d_table = tied ? a->table_gradient : own.g, .d_bias = bias.g, .d_normf = d_normf};
    struct kernel_loss_rows rows = {
        .part = unit->microbatch, .parts = unit->microbatches, .targets = words->masked ? (int64_t)a->targets : 0,
        .cap = (float)unit->network->logit_cap};
    if (a->context) { /* a slice's rows count among the minibatch's */
        if (!words->masked) rows.targets = (int64_t)rows.parts * unit->b * (int64_t)parallel_sequence(a->job);
        rows.continues = a->microbatch.adds;
    }
    for (; rows.first < unit->r; rows.first += piece) {
        rows.count = unit->r - rows.first < piece ? unit->r - rows.first : piece;
        words_forward(unit, &pass, rows);
        if (unit->split)
            transformer_loss_split(unit, words, rows);
        else
            (words->masked ? k->loss_labels : k->loss)(k, a->loss, unit->logits, words->labels,
                                                       words->stride, unit->b, unit->t, unit->v, rows);
        /* The embedding's gradient has the sums of earlier microbatches. */
        bool more = rows.first > 0, weight_more = more || (tied && unit->adds);
        if (d_normf)
            words_backward(unit, &pass, rows,
                           (weight_more ? KERNEL_LINEAR_ADD_WEIGHT : 0) | (more ? KERNEL_LINEAR_ADD_BIAS : 0));
    }
    if (!d_normf) return NULL;
    kernel_number *const d_own = transformer_own_sum(unit, d_normf);
    transformer_zero_padding(unit, tied && unit->adds ? NULL : pass.d_table, bias.g);
    if (!tied) transformer_step(unit, &own, true);
    if (bias.weights.numbers) transformer_step(unit, &bias, false);
    return d_own;
}
