/*
 * A pass over the layers of a shard, for any family.
 *
 *     FORWARD   the embedding; or blocks, keeping their activations or not
 *     LOSS      blocks forward, the head forward and backward, blocks backward
 *     BACKWARD  the embedding; or blocks forward again unless their activations were kept, then blocks backward
 *               (if only the inputs of blocks were kept: forward and backward of each block, the last first;
 *               likewise a LOSS that holds only inputs). In pipelines the head's loss comes first, forward and
 *               backward, so that its logits are not kept
 *     BACKWARD_INPUT, BACKWARD_WEIGHT   a BACKWARD of blocks in two: first all but the gradients of linear layers'
 *               weights; later these. The head and the gradients of norms are in the first, whose kernels make them
 *     UPDATE    the steps of all tensors, from gradients that a backward pass left
 *     NORM      the sums of squares of the same gradients, one for each tensor
 *     EVALUATE  forward, with the loss in the head's shard; nothing is kept and nothing changes
 *
 * Clipping. Each tensor's sum of squares has an order that depends only on its size, and the sums are added in the
 * order of the network's tensors: the norm has the same bits in every sharding.
 *
 * Several microbatches go through a shard before the next shard's turn (vertical order): parameters cross the link
 * once. The first one's gradients start the sums, later ones' are added when complete, in the order of microbatches;
 * the steps come at the end.
 *
 * The same bits in every sharding. A layer's calls depend only on the layer: nothing is fused across layers, a block's
 * output is always written out, and addresses change nothing. A recomputation makes the same calls as the forward
 * pass, except those whose result only the next shard needs.
 */
#include "exec/network/transformer.h"

#include <assert.h>
#include <math.h>

#include "models/job/learning_rate.h"

/* --- where things are ------------------------------------------------------------------------- */

/* Returns NULL if this pass has no such piece. */
static void *piece(const struct unit_arguments *a, const struct memory_table *workspace,
                    const char *name)
{
    const struct memory_entry *entry = memory_find(workspace, a->shard->first_layer, name);
    return entry && a->workspace ? transformer_at(a->workspace, entry->offset_bytes) : NULL;
}

static enum unit_pass schedule_unit_pass(uint32_t pass)
{
    switch (pass) {
    case PLAN_FORWARD: return UNIT_FORWARD;
    case PLAN_LOSS: return UNIT_LOSS;
    default:
        assert(pass == PLAN_BACKWARD || pass == PLAN_BACKWARD_INPUT || pass == PLAN_BACKWARD_WEIGHT ||
               pass == PLAN_UPDATE || pass == PLAN_NORM);
        return UNIT_BACKWARD;
    }
}

/* Returns true for a half of a backward pass. */
static bool is_half(const struct unit_arguments *a)
{
    return a->pass == PLAN_BACKWARD_INPUT || a->pass == PLAN_BACKWARD_WEIGHT;
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

/* Counts the inputs of a single layer, the boundary, as kept, although no buffer exists. Both halves of a backward pass
 * have all activations. */
static uint32_t way_of(const struct unit_arguments *a)
{
    if (is_half(a)) return UNIT_KEEP | UNIT_GRADIENTS_OUT;
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
        .split = a->split,
        .b = (int64_t)samples,
        .t = (int64_t)a->job->sequence,
        .r = (int64_t)(samples * a->job->sequence),
        .c = (int64_t)n->width,
        .h = (int64_t)n->heads,
        .d = (int64_t)n->head_width,
        .f = (int64_t)n->ff_width,
        .v = (int64_t)(a->split ? a->split->words : n->vocabulary),
        .inner = (int64_t)(n->heads * n->head_width),
        .shared = (int64_t)(network_kv_heads(n) * n->head_width),
        .epsilon = (float)n->norm_epsilon,
        .optimizer = optimizer_at(a->job, a->minibatch),
        .scale = 1,
        .block_tensors = first_layer_tensors(a),
        .microbatches = (uint32_t)(job_samples(a->job) / samples),
        .held = (uint32_t)(job_samples(a->job) / samples),
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

/* Finds them in `all`, the kept tensors of all layers, laid out as in the table. */
static void kept_of(const struct transformer_unit *unit, float *all, uint64_t layer,
                    float *out[TRANSFORMER_KEPT_MAX])
{
    const struct unit_arguments *a = unit->arguments;
    const struct transformer *transformer = unit->transformer;
    const struct memory_entry *entries =
        transformer_layer_entries(&a->tables->activations, a, layer, transformer->block_kept);
    bool head = layer + 1 == unit->network->layer_count;
    bool last = layer + 1 == a->shard->first_layer + a->shard->layer_count;
    uint32_t count = head ? transformer->head_kept : transformer->block_kept;
    assert(count <= TRANSFORMER_KEPT_MAX);
    for (uint32_t i = 0; i < count; i++) {
        bool output = !head && i + 1 == count;
        out[i] = output && last ? NULL : transformer_at(all, entries[i].offset_bytes);
    }
}

/* Finds them in `alone`, only this layer's, without its output. */
static void kept_alone(const struct transformer_unit *unit, float *alone, uint64_t layer,
                       float *out[TRANSFORMER_KEPT_MAX])
{
    const struct unit_arguments *a = unit->arguments;
    const struct transformer *transformer = unit->transformer;
    const struct memory_entry *entries =
        transformer_layer_entries(&a->tables->activations, a, layer, transformer->block_kept);
    bool head = layer + 1 == unit->network->layer_count;
    uint32_t count = head ? transformer->head_kept : transformer->block_kept - 1;
    assert(count < TRANSFORMER_KEPT_MAX);
    for (uint32_t i = 0; i < count; i++)
        out[i] = transformer_at(alone, entries[i].offset_bytes - entries[0].offset_bytes);
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
    return transformer_at(inputs, entry->offset_bytes);
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

/* --- halves of a backward pass ---------------------------------------------------------------- */

/* Returns all activations, kept by the forward pass or handed over. */
static float *activations_of_halves(const struct unit_arguments *a)
{
    return a->activations && !a->inputs_only ? a->activations : a->handed_activations;
}

static const float *input_of_halves(const struct transformer_unit *unit, uint64_t layer)
{
    const struct unit_arguments *a = unit->arguments;
    return a->inputs_only ? held_input(unit, a->activations, layer) : layer_input(unit, activations_of_halves(a), layer);
}

/* Returns the unit with the block's gradients where they are handed over. */
static struct transformer_unit half_of(const struct transformer_unit *unit, uint64_t layer)
{
    const struct unit_arguments *a = unit->arguments;
    const struct memory_block_gradients at = memory_block_gradients(unit->network, layer, a->job->microbatch, a->job->sequence);
    struct transformer_unit half = *unit;
    half.leaves_weights = a->pass == PLAN_BACKWARD_INPUT;
    half.d_out = transformer_at(a->handed_gradients, (layer - a->shard->first_layer) * at.bytes);
    half.d_middle = transformer_at(half.d_out, at.d_middle_offset);
    half.d_qkv = transformer_at(half.d_out, at.d_qkv_offset);
    half.d_wide = transformer_at(half.d_out, at.d_wide_offset);
    return half;
}

/* Returns where the gradient of a layer's input goes: to the block before, which keeps it unless it ends with a norm. */
static float *d_input_of_half(const struct transformer_unit *unit, uint64_t layer)
{
    const struct unit_arguments *a = unit->arguments;
    if (layer == a->shard->first_layer || unit->transformer->ends_with_norm) return a->gradient_out;
    return half_of(unit, layer - 1).d_out;
}

static void compute_input_half(const struct transformer_unit *unit, uint64_t end)
{
    const struct unit_arguments *a = unit->arguments;
    float *all = activations_of_halves(a), *kept[TRANSFORMER_KEPT_MAX];
    const float *d_out = a->gradient_in;
    if (!a->activations && !a->inputs_only) blocks_forward(unit, end, all, NULL);
    if (end < a->shard->first_layer + a->shard->layer_count) {
        float *d_in = d_input_of_half(unit, end);
        kept_of(unit, all, end, kept);
        unit->transformer->head(unit, end, kept, input_of_halves(unit, end), d_in);
        d_out = d_in;
    }
    for (uint64_t layer = end; layer-- > a->shard->first_layer;) {
        const struct transformer_unit half = half_of(unit, layer);
        const float *in = input_of_halves(unit, layer);
        float *d_in = d_input_of_half(unit, layer);
        kept_of(unit, all, layer, kept);
        if (a->inputs_only) unit->transformer->block_forward(unit, layer, kept, in, NULL);
        unit->transformer->block_backward(&half, layer, kept, in, d_out, d_in);
        d_out = d_in;
    }
}

static void compute_weight_half(const struct transformer_unit *unit, uint64_t end)
{
    const struct unit_arguments *a = unit->arguments;
    const uint64_t last = a->shard->first_layer + a->shard->layer_count - 1;
    for (uint64_t layer = end; layer-- > a->shard->first_layer;) {
        const struct transformer_unit half = half_of(unit, layer);
        float *kept[TRANSFORMER_KEPT_MAX];
        kept_of(unit, activations_of_halves(a), layer, kept);
        unit->transformer->block_weights(&half, layer, kept, input_of_halves(unit, layer),
                                         layer == last ? a->gradient_in : half.d_out);
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
float transformer_clip_scale(const struct unit_arguments *a)
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
        sums[i] = unit->kernels->squares(unit->kernels, transformer_at(a->gradient, entry->offset_bytes),
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
    case PLAN_BACKWARD_INPUT: compute_input_half(unit, blocks_end(a)); break;
    case PLAN_BACKWARD_WEIGHT: compute_weight_half(unit, blocks_end(a)); break;
    case PLAN_UPDATE: compute_update(unit); break;
    case PLAN_NORM: compute_norm(unit); break;
    default: assert(!"a pass of the compute stream");
    }
}

/* --- several microbatches --------------------------------------------------------------------- */

/* May be NULL. Of images, only the labels are moved: the pixels follow all labels. */
static const int32_t *batch_of_microbatch(const int32_t *batch, const struct job *job, uint32_t index)
{
    uint64_t labels = job->network.family == NETWORK_VIT
                          ? 1 : job_batch_bytes(job) / sizeof(int32_t) / job_samples(job);
    return batch ? batch + index * job->microbatch * labels : NULL;
}

/* Moves each buffer of samples to the microbatch's part. */
static struct unit_arguments arguments_of_microbatch(const struct unit_arguments *whole,
                                                     const struct transformer_unit *unit, uint32_t index)
{
    struct unit_arguments a = *whole;
    const struct job *job = a.job;
    uint64_t boundary = index * (uint64_t)(unit->r * unit->c);
    const struct memory_table *table = a.inputs_only ? &a.tables->inputs : &a.tables->activations;
    uint64_t kept = index * table->bytes / sizeof(float);
    a.batch = batch_of_microbatch(a.batch, job, index);
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
    const bool part = a.microbatch.held > 0; /* of the minibatch is in `batch` */
    const uint32_t place = part ? a.microbatch.place : a.microbatch.index;
    a.batch = batch_of_microbatch(a.batch, a.job, place);
    struct transformer_unit unit = unit_of(transformer, kernels, &a);
    if (part) unit.held = a.microbatch.held;
    unit.place = place;
    unit.microbatch = a.microbatch.index;
    unit.adds = a.microbatch.adds && !a.microbatch.apart;
    unit.sums = a.pass == PLAN_BACKWARD || is_half(&a) ? a.gradient : NULL;
    const bool makes_loss = unit.sums || a.pass == PLAN_EVALUATE;
    if (makes_loss && a.loss && !a.microbatch.adds) *a.loss = 0; /* the part of a replica */
    compute_once(&unit);
    if (unit.sums) transformer_shut_by_loss(&a);
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
    if (a->pass == PLAN_UPDATE) unit.scale = transformer_clip_scale(a);
    if (unit.microbatches == 1 || a->pass == PLAN_UPDATE || a->pass == PLAN_NORM) {
        compute_once(&unit);
        if (a->pass == PLAN_LOSS) transformer_shut_by_loss(a);
        return;
    }
    float *sums = a->gradient ? a->gradient : piece(a, workspace_of(a), "sums");
    for (uint32_t microbatch = 0; microbatch < unit.microbatches; microbatch++) {
        struct unit_arguments part = arguments_of_microbatch(a, &unit, microbatch);
        struct transformer_unit one = unit_of(transformer, kernels, &part);
        one.microbatch = one.place = microbatch;
        one.adds = back && microbatch > 0;
        one.sums = back ? sums : NULL;
        compute_once(&one);
    }
    if (a->pass == PLAN_LOSS) transformer_shut_by_loss(a);
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
