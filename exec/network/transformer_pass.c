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
 * order of the network's tensors: the norm has the same bits in every sharding. A tensor group first adds up the
 * squares of a tensor's parts in the order of its members.
 *
 * Several microbatches go through a shard before the next shard's turn (vertical order): parameters cross the link
 * once. The first one's gradients start the sums, later ones' are added when complete, in the order of microbatches;
 * the steps come at the end. Where sums are a tree, each microbatch's gradients, and its loss, are made at their level
 * of it (exec/network/sum_tree.h), with the bits of replicas that have a branch each.
 *
 * The same bits in every sharding. A layer's calls depend only on the layer: nothing is fused across layers, a block's
 * output is always written out, and addresses change nothing. A recomputation makes the same calls as the forward
 * pass, except those whose result only the next shard needs.
 */
#include "exec/network/transformer_pass.h"

#include <assert.h>
#include <math.h>

#include "base/extreme.h"
#include "exec/network/sum_tree.h"
#include "models/network/network_trained.h"
#include "models/network/network_traits.h"
#include "models/network/tensor_share.h"

/* --- runs of blocks --------------------------------------------------------------------------- */

void pass_blocks_forward(const struct transformer_unit *unit, uint64_t end, kernel_number *all, kernel_number *out)
{
    const kernel_number *in = unit->arguments->boundary_in;
    for (uint64_t layer = unit->arguments->shard->first_layer; layer < end; layer++) {
        kernel_number *kept[TRANSFORMER_KEPT_MAX];
        kernel_number *const kept_output = pass_kept(unit, all, layer, kept);
        kernel_number *const output = kept_output ? kept_output : out;
        unit->transformer->block_forward(unit, layer, kept, in, output);
        in = output;
    }
}

const kernel_number *pass_layer_input(const struct transformer_unit *unit, kernel_number *all, uint64_t layer)
{
    if (layer == unit->arguments->shard->first_layer) return unit->arguments->boundary_in;
    kernel_number *kept[TRANSFORMER_KEPT_MAX];
    return pass_kept(unit, all, layer - 1, kept);
}

uint64_t pass_lowest_layer(const struct unit_arguments *a)
{
    return max_u64(a->shard->first_layer, network_first_trained(&a->job->network));
}

/* Goes from the last block; `d_out` is the gradient of its output. */
static void blocks_backward(const struct transformer_unit *unit, uint64_t end, kernel_number *all,
                            const kernel_number *d_out)
{
    const struct unit_arguments *a = unit->arguments;
    for (uint64_t layer = end; layer-- > pass_lowest_layer(a);) {
        kernel_number *kept[TRANSFORMER_KEPT_MAX];
        (void)pass_kept(unit, all, layer, kept);
        unit->transformer->block_backward(unit, layer, kept, pass_layer_input(unit, all, layer), d_out,
                                          a->gradient_out);
        d_out = a->gradient_out;
    }
}

/* Replaces each layer's activations in `alone` by the next layer's. `inputs` gets the inputs of all layers except
 * the first; may be NULL. */
static void blocks_forward_only(const struct transformer_unit *unit, uint64_t end, kernel_number *alone,
                                kernel_number *inputs)
{
    const struct unit_arguments *a = unit->arguments;
    kernel_number *streams[2] = {unit->d_stream, unit->d_stream2};
    uint64_t shard_end = a->shard->first_layer + a->shard->layer_count;
    const kernel_number *in = a->boundary_in;
    for (uint64_t layer = a->shard->first_layer; layer < end; layer++) {
        kernel_number *kept[TRANSFORMER_KEPT_MAX];
        pass_kept_alone(unit, alone, layer, kept);
        kernel_number *out = layer + 1 == shard_end ? a->boundary_out
                     : inputs               ? pass_held_input(unit, inputs, layer + 1)
                                            : streams[layer % 2];
        unit->transformer->block_forward(unit, layer, kept, in, out);
        in = out;
    }
}

/* Goes from the last block. A block's activations are computed in `alone` just before, unless the last block's are
 * still `fresh`. */
static void blocks_backward_alone(const struct transformer_unit *unit, uint64_t end, kernel_number *alone,
                                  kernel_number *inputs, const kernel_number *d_out, bool fresh)
{
    const struct unit_arguments *a = unit->arguments;
    for (uint64_t layer = end; layer-- > pass_lowest_layer(a);) {
        kernel_number *kept[TRANSFORMER_KEPT_MAX];
        pass_kept_alone(unit, alone, layer, kept);
        const kernel_number *in = pass_held_input(unit, inputs, layer);
        if (!fresh) unit->transformer->block_forward(unit, layer, kept, in, NULL);
        unit->transformer->block_backward(unit, layer, kept, in, d_out, a->gradient_out);
        d_out = a->gradient_out;
        fresh = false;
    }
}

/* --- embeddings and heads --------------------------------------------------------------------- */

/* Where a tensor group cuts rows, the embedding has all of them: its tables' sums do, and so do its norm's and its
 * patches'. */
static void embedding_forward(const struct transformer_unit *unit)
{
    struct unit_arguments a = *unit->arguments;
    struct transformer_unit whole = transformer_with_all_rows(unit);
    if (!unit->gathered) {
        unit->transformer->embedding_forward(unit);
        return;
    }
    whole.arguments = &a;
    a.boundary_out = unit->gathered;
    unit->transformer->embedding_forward(&whole);
    transformer_keep_own_rows(unit, unit->arguments->boundary_out, unit->gathered);
}

static void embedding_backward(const struct transformer_unit *unit)
{
    struct unit_arguments a = *unit->arguments;
    struct transformer_unit whole = transformer_with_all_rows(unit);
    whole.arguments = &a;
    a.gradient_in = transformer_all_rows(unit, a.gradient_in);
    unit->transformer->embedding_backward(&whole);
}

void pass_head(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
               const kernel_number *in, kernel_number *d_in)
{
    if (!unit->gathered || !unit->transformer->whole_head) {
        unit->transformer->head(unit, layer, kept, in, d_in);
        return;
    }
    const struct transformer_unit whole = transformer_with_all_rows(unit);
    kernel_number *const d_all = d_in ? transformer_number(unit, unit->gathered, unit->r * unit->c) : NULL;
    unit->transformer->head(&whole, layer, kept, transformer_all_rows(unit, in), d_all);
    if (d_in) transformer_keep_own_rows(unit, d_in, d_all);
}

/* --- passes ----------------------------------------------------------------------------------- */

/* Returns the end of the shard's blocks. */
static uint64_t blocks_end(const struct unit_arguments *a)
{
    return a->shard->first_layer + a->shard->layer_count - (pass_has_head(a) ? 1 : 0);
}

/* Keeps what the backward pass needs, `all` or the `inputs` of layers; both NULL: nothing. */
static void forward_of_blocks(const struct transformer_unit *unit, kernel_number *all, kernel_number *inputs)
{
    const struct unit_arguments *a = unit->arguments;
    if (all)
        pass_blocks_forward(unit, blocks_end(a), all, a->boundary_out);
    else
        blocks_forward_only(unit, blocks_end(a), pass_piece(a, pass_workspace(a), "keep"), inputs);
}

/* Computes the head forward and backward, and the blocks backward; only the loss in an evaluation. `all` has all kept
 * activations, or with `inputs` a single layer's, the last block's if it is `fresh`. */
static void head_and_back(const struct transformer_unit *unit, kernel_number *all, kernel_number *inputs, bool fresh)
{
    const struct unit_arguments *a = unit->arguments;
    const uint64_t head = blocks_end(a);
    kernel_number *kept[TRANSFORMER_KEPT_MAX], *d_in = a->pass == PLAN_EVALUATE ? NULL : a->gradient_out;
    assert(pass_has_head(a));
    if (pass_holds_inputs(a)) {
        pass_kept_alone(unit, pass_piece(a, pass_workspace(a), "head"), head, kept);
        pass_head(unit, head, kept, pass_held_input(unit, inputs, head), d_in);
        if (d_in) blocks_backward_alone(unit, head, all, inputs, d_in, fresh);
        return;
    }
    (void)pass_kept(unit, all, head, kept);
    pass_head(unit, head, kept, pass_layer_input(unit, all, head), d_in);
    if (d_in) blocks_backward(unit, head, all, d_in);
}

static void compute_loss(const struct transformer_unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    kernel_number *all = pass_piece(a, pass_workspace(a), "activations"), *inputs = NULL;
    if (pass_holds_inputs(a)) {
        inputs = pass_piece(a, pass_workspace(a), "inputs");
        blocks_forward_only(unit, blocks_end(a), all, inputs);
    } else {
        pass_blocks_forward(unit, blocks_end(a), all, NULL);
    }
    head_and_back(unit, all, inputs, true);
}

static void compute_backward(const struct transformer_unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    kernel_number *made = pass_piece(a, pass_workspace(a), "activations");
    kernel_number *all = a->activations && !pass_holds_inputs(a) ? a->activations : made;
    if (!pass_holds_inputs(a) && !a->activations) pass_blocks_forward(unit, blocks_end(a), made, NULL);
    if (pass_has_head(a))
        head_and_back(unit, all, a->activations, false);
    else if (pass_holds_inputs(a))
        blocks_backward_alone(unit, blocks_end(a), made, a->activations, a->gradient_in, false);
    else
        blocks_backward(unit, blocks_end(a), all, a->gradient_in);
}

/* Clips as torch.nn.utils.clip_grad_norm_() does. The mean of several minibatches is not clipped. */
float transformer_clip_scale(const struct unit_arguments *a)
{
    if (a->round > 1) return 1 / (float)a->round;
    if (!job_clips(a->job)) return 1;
    assert(a->norms);
    const double scale = a->job->optimizer.clip / (unit_norm(a->job, a->norms) + 1e-6);
    return scale >= 1 ? 1 : (float)scale;
}

void transformer_join_squares(const struct kernels *kernels, const struct unit_split *split,
                              const struct network *network, uint64_t first_layer, uint64_t layer_count, double *sums)
{
    double *const values = split->room ? split->room : sums;
    const struct network piece = network_piece(split->whole, network);
    uint64_t index = 0;
    if (split->room)
        kernels->to_host(kernels, values, sums, memory_tensor_count(network, first_layer, layer_count) * sizeof *sums);
    for (uint64_t layer = first_layer; layer < first_layer + layer_count; layer++) {
        struct tensor_spec whole[LAYER_TENSORS_MAX], parts[LAYER_TENSORS_MAX];
        const uint32_t count = network_layer_shapes(split->whole, layer, whole);
        (void)network_layer_shapes(&piece, layer, parts);
        for (uint32_t i = 0; i < count; i++) {
            if (whole[i].frozen) continue;
            if (split->rank > 0 && !tensor_share_of(&whole[i], &parts[i], 0).cut) values[index] = 0;
            index++;
        }
    }
    if (index == 0) return; /* all is frozen */
    unit_group_sum_doubles(split->group, split->rank, values, index);
    if (split->room) kernels->to_device(kernels, sums, values, index * sizeof *sums);
}

/* Returns true if entry `index` of the parameters is a running mean, which has no gradient. */
static bool is_running(const struct transformer_unit *unit, const struct memory_entry *entry, uint32_t index)
{
    struct tensor_spec specs[LAYER_TENSORS_MAX];
    const struct memory_entry *const first =
        transformer_layer_entries(&unit->arguments->tables->parameters, entry->layer).first;
    if (!unit->network->graph) return false;
    (void)network_layer_shapes(unit->network, entry->layer, specs);
    return specs[&unit->arguments->tables->parameters.entries[index] - first].running;
}

static void compute_norm(const struct transformer_unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    const struct memory_table *parameters = &a->tables->parameters;
    double *sums = a->norms + memory_tensor_count(unit->network, 0, a->shard->first_layer);
    for (uint32_t i = 0, trained = 0; i < parameters->count; i++) {
        const struct memory_entry *entry = &parameters->entries[i];
        if (a->tables->state.parts[STATE_FROZEN].entries[i].bytes > 0) continue;
        if (is_running(unit, entry, i)) {
            unit->kernels->zero(unit->kernels, &sums[trained++], sizeof *sums);
            continue;
        }
        const float *const gradient = transformer_at(a->gradient, entry->offset_bytes);
        const int64_t count = (int64_t)(entry->bytes / sizeof(float));
        if (unit->pieces > 1 && transformer_is_cut(unit, i))
            sums[trained++] = transformer_piece_squares(unit, gradient, count);
        else unit->kernels->squares(unit->kernels, &sums[trained++], gradient, count, false);
    }
    if (unit->split)
        transformer_join_squares(unit->kernels, unit->split, unit->network, a->shard->first_layer,
                                 a->shard->layer_count, sums);
}

static void compute_update(const struct transformer_unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    for (uint64_t i = 0; i < a->shard->layer_count; i++) {
        uint64_t layer = a->shard->first_layer + i;
        struct tensor_spec specs[LAYER_TENSORS_MAX];
        uint32_t count = network_layer_tensors(unit->network, layer, specs);
        for (uint32_t index = 0; index < count; index++) {
            struct transformer_tensor tensor = transformer_tensor(unit, layer, index);
            tensor.running = specs[index].running;
            transformer_step(unit, &tensor, specs[index].matrix);
        }
    }
}

static void compute_once(const struct transformer_unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    bool embedding = a->shard->first_layer == 0;
    if (unit->transformer->pass && a->pass != PLAN_UPDATE && a->pass != PLAN_NORM) {
        unit->transformer->pass(unit);
        return;
    }
    assert(!embedding || a->shard->layer_count == 1 || unit->transformer->pass);
    switch (a->pass) {
    case PLAN_FORWARD:
        if (embedding)
            embedding_forward(unit);
        else
            forward_of_blocks(unit, a->inputs_only ? NULL : a->activations, a->activations);
        break;
    case PLAN_LOSS: compute_loss(unit); break;
    case PLAN_EVALUATE:
        if (embedding)
            embedding_forward(unit);
        else if (pass_has_head(a))
            compute_loss(unit);
        else
            forward_of_blocks(unit, NULL, NULL);
        break;
    case PLAN_BACKWARD:
        if (embedding)
            embedding_backward(unit);
        else
            compute_backward(unit);
        break;
    case PLAN_BACKWARD_INPUT: pass_input_half(unit, blocks_end(a)); break;
    case PLAN_BACKWARD_WEIGHT: pass_weight_half(unit, blocks_end(a)); break;
    case PLAN_UPDATE: compute_update(unit); break;
    case PLAN_NORM: compute_norm(unit); break;
    default: assert(!"a pass of the compute stream");
    }
}

/* --- several microbatches --------------------------------------------------------------------- */

/* May be NULL. Of images, only the labels are moved: the pixels follow all labels. */
static const int32_t *batch_of_microbatch(const int32_t *batch, const struct job *job, uint32_t index)
{
    const uint64_t words = job_unit(job) == JOB_IMAGES ? job_image_labels(job) : job_sample_words(job);
    return batch ? batch + index * job->microbatch * words : NULL;
}

/* Returns the bytes of a microbatch's boundary before a layer; 0: there is none. */
static uint64_t boundary_bytes(const struct job *job, uint64_t layer)
{
    if (layer == 0 || layer == job->network.layer_count) return 0;
    return memory_boundary_bytes(&job->network, layer - 1, job->microbatch, job->sequence, job->precision);
}

/* Moves each buffer of samples to the microbatch's part. */
static struct unit_arguments arguments_of_microbatch(const struct unit_arguments *whole, uint32_t index)
{
    struct unit_arguments a = *whole;
    const struct job *job = a.job;
    const uint64_t in = index * boundary_bytes(job, a.shard->first_layer);
    const uint64_t out = index * boundary_bytes(job, a.shard->first_layer + a.shard->layer_count);
    const struct memory_table *table = a.inputs_only ? &a.tables->inputs : &a.tables->activations;
    const uint64_t kept = index * table->bytes;
    a.batch = batch_of_microbatch(a.batch, job, index);
    if (a.begins) a.begins += index * job->microbatch * job->sequence;
    if (a.position_rows) a.position_rows += index * job->microbatch * job->sequence;
    if (a.boundary_in) a.boundary_in = transformer_at(a.boundary_in, in);
    if (a.boundary_out) a.boundary_out = transformer_at(a.boundary_out, out);
    if (a.gradient_in) a.gradient_in = (const char *)a.gradient_in + out;
    if (a.gradient_out) a.gradient_out = transformer_at(a.gradient_out, in);
    if (a.activations) a.activations = transformer_at(a.activations, kept);
    return a;
}

/* The sums of a pass over all microbatches as a tree, whose top is where the pass leaves its results. */
struct pass_tree {
    const struct kernels *kernels;
    const struct unit_arguments *whole;
    float *sums;                /* NULL: the pass makes no gradients */
    void *levels;               /* in its workspace; may be NULL if it makes no gradients and no loss */
    struct memory_level level;
    struct sum_tree tree;
};

static void *at_level(const struct pass_tree *t, uint32_t level, void *top, uint64_t offset_bytes)
{
    return level == t->tree.levels ? top : transformer_at(t->levels, level * t->level.bytes + offset_bytes);
}

static float *gradient_at(const struct pass_tree *t, uint32_t level)
{
    return at_level(t, level, t->sums, 0);
}

static float *table_at(const struct pass_tree *t, uint32_t level)
{
    return at_level(t, level, t->whole->table_gradient, t->level.table_offset);
}

static double *loss_at(const struct pass_tree *t, uint32_t level)
{
    return at_level(t, level, t->whole->loss, t->level.loss_offset);
}

static bool has_loss(const struct unit_arguments *a)
{
    return a->loss && pass_has_head(a) && (a->pass == PLAN_LOSS || a->pass == PLAN_EVALUATE);
}

static void add_level(const void *context, uint32_t to, uint32_t from)
{
    const struct pass_tree *const t = context;
    const struct kernels *const k = t->kernels;
    const struct unit_arguments *const a = t->whole;
    const struct network *const n = &a->job->network;
    const int64_t parameters = (int64_t)(a->tables->parameters.bytes / sizeof(float));
    if (t->sums) k->add(k, gradient_at(t, to), gradient_at(t, to), gradient_at(t, from), parameters);
    if (t->sums && a->table_gradient)
        k->add(k, table_at(t, to), table_at(t, to), table_at(t, from),
               (int64_t)(n->vocabulary * network_word_width(n)));
    if (has_loss(a)) k->add_double(k, loss_at(t, to), loss_at(t, from));
}

/* Has a microbatch leave its results at its level of the tree. */
static void make_at_level(const struct pass_tree *t, struct unit_arguments *part, struct transformer_unit *one)
{
    const uint32_t level = sum_tree_level(&t->tree);
    if (t->sums) {
        one->sums = gradient_at(t, level);
        one->adds = false;
        if (part->table_gradient) part->table_gradient = table_at(t, level);
    }
    if (!has_loss(part)) return;
    part->loss = loss_at(t, level);
    t->kernels->zero(t->kernels, part->loss, sizeof *part->loss);
}

static void compute_alone(const struct transformer *transformer, const struct kernels *kernels,
                          const struct unit_arguments *whole)
{
    struct unit_arguments a = *whole;
    const bool part = a.microbatch.held > 0; /* of the minibatch is in `batch` */
    const uint32_t place = part ? a.microbatch.place : a.microbatch.index;
    a.batch = batch_of_microbatch(a.batch, a.job, place);
    struct transformer_unit unit = pass_unit(transformer, kernels, &a);
    if (part) unit.held = a.microbatch.held;
    unit.place = place;
    unit.microbatch = a.microbatch.index;
    unit.adds = a.microbatch.adds && !a.microbatch.apart;
    unit.sums = a.pass == PLAN_BACKWARD || pass_is_half(&a) ? a.gradient : NULL;
    const bool makes_loss = unit.sums || a.pass == PLAN_EVALUATE;
    /* the part of a replica */
    if (makes_loss && a.loss && !a.microbatch.adds) kernels->zero(kernels, a.loss, sizeof *a.loss);
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
    struct transformer_unit unit = pass_unit(transformer, kernels, a);
    bool back = a->pass == PLAN_LOSS || a->pass == PLAN_BACKWARD;
    if (a->pass == PLAN_UPDATE) unit.scale = transformer_clip_scale(a);
    if (unit.microbatches == 1 || a->pass == PLAN_UPDATE || a->pass == PLAN_NORM) {
        compute_once(&unit);
        if (a->pass == PLAN_LOSS) transformer_shut_by_loss(a);
        return;
    }
    float *sums = a->gradient ? a->gradient : pass_piece(a, pass_workspace(a), "sums");
    struct pass_tree tree = {
        .kernels = kernels, .whole = a, .sums = back ? sums : NULL, .levels = unit.levels,
        .level = memory_level(&a->job->network, a->shard->first_layer, a->shard->layer_count),
        .tree = {.levels = job_sum_levels(a->job, unit.microbatches), .count = unit.microbatches}};
    for (uint32_t microbatch = 0; microbatch < unit.microbatches; microbatch++) {
        struct unit_arguments part = arguments_of_microbatch(a, microbatch);
        struct transformer_unit one = pass_unit(transformer, kernels, &part);
        one.microbatch = one.place = microbatch;
        one.adds = back && microbatch > 0;
        one.sums = back ? sums : NULL;
        tree.tree.index = microbatch;
        if (tree.tree.levels > 0) make_at_level(&tree, &part, &one);
        compute_once(&one);
        if (tree.tree.levels > 0) sum_tree_carry(&tree.tree, add_level, &tree);
    }
    if (a->pass == PLAN_LOSS) transformer_shut_by_loss(a);
    if (!back || a->gradient) return;
    struct unit_arguments update = *a;
    update.pass = PLAN_UPDATE;
    update.gradient = sums;
    struct transformer_unit last = pass_unit(transformer, kernels, &update);
    compute_once(&last);
}

double unit_norm(const struct job *job, const double *norms)
{
    const uint64_t tensors = memory_tensor_count(&job->network, 0, job->network.layer_count);
    double sum = 0;
    for (uint64_t i = 0; i < tensors; i++) sum += norms[i];
    return sqrt(sum);
}
