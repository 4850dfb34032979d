/* Where the tensors of a pass are. */
#include <assert.h>

#include "exec/network/transformer_pass.h"
#include "models/job/learning_rate.h"

void *pass_piece(const struct unit_arguments *a, const struct memory_table *workspace,
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

bool pass_is_half(const struct unit_arguments *a)
{
    return a->pass == PLAN_BACKWARD_INPUT || a->pass == PLAN_BACKWARD_WEIGHT;
}

bool pass_has_head(const struct unit_arguments *a)
{
    return a->shard->first_layer + a->shard->layer_count == a->job->network.layer_count;
}

/* Returns the workspace of a LOSS whose gradients go elsewhere, or of a forward pass that keeps nothing. */
static const struct memory_table *evaluation_workspace(const struct unit_arguments *a)
{
    uint32_t how = UNIT_GRADIENTS_OUT | (a->inputs_only ? UNIT_INPUTS : 0);
    return pass_has_head(a) ? &a->tables->workspace[UNIT_LOSS][how]
                       : &a->tables->workspace[UNIT_FORWARD][0];
}

/* Counts the inputs of a single layer, the boundary, as kept, although no buffer exists. Both halves of a backward pass
 * have all activations. */
static uint32_t way_of(const struct unit_arguments *a)
{
    if (pass_is_half(a)) return UNIT_KEEP | UNIT_GRADIENTS_OUT;
    bool kept = a->activations || (a->inputs_only && a->tables->inputs.bytes == 0);
    return (kept && a->pass != PLAN_LOSS ? UNIT_KEEP : 0) | (a->inputs_only ? UNIT_INPUTS : 0) |
           (a->gradient ? UNIT_GRADIENTS_OUT : 0);
}

const struct memory_table *pass_workspace(const struct unit_arguments *a)
{
    if (a->pass == PLAN_EVALUATE) return evaluation_workspace(a);
    uint32_t how = way_of(a);
    assert(how < UNIT_WAYS);
    return &a->tables->workspace[schedule_unit_pass(a->pass)][how];
}

bool pass_holds_inputs(const struct unit_arguments *a)
{
    if (a->pass == PLAN_EVALUATE) return a->inputs_only && pass_has_head(a);
    return unit_holds_inputs(schedule_unit_pass(a->pass), way_of(a));
}

struct transformer_unit pass_unit(const struct transformer *transformer, const struct kernels *kernels,
                                  const struct unit_arguments *a)
{
    const struct network *n = &a->job->network;
    const struct memory_table *workspace = pass_workspace(a);
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
        .own = (int64_t)(samples * a->job->sequence / (n->slices_rows ? n->slice_of : 1)),
        .gathered = n->slices_rows ? pass_piece(a, workspace, "gathered") : NULL,
        .norm_parts = n->slice_of > 0 ? pass_piece(a, workspace, "norm_parts") : NULL,
        .pieces = n->pieces > 1 ? n->pieces : 1,
        .piece_sums = n->pieces > 1 ? pass_piece(a, workspace, "pieces") : NULL,
        .h = (int64_t)n->heads,
        .d = (int64_t)n->head_width,
        .f = (int64_t)n->ff_width,
        .v = (int64_t)(a->split ? a->split->words : n->vocabulary),
        .inner = (int64_t)(n->heads * n->head_width),
        .shared = (int64_t)(network_kv_heads(n) * n->head_width),
        .epsilon = (float)n->norm_epsilon,
        .optimizer = optimizer_at(a->job, a->round > 0 ? (a->minibatch + 1) * a->round - 1 : a->minibatch),
        .scale = 1,
        .microbatches = (uint32_t)(job_samples(a->job) / samples),
        .held = (uint32_t)(job_samples(a->job) / samples),
        .gradients = pass_piece(a, workspace, "gradients"),
        .levels = pass_piece(a, workspace, "levels"),
        .parts = job_sums_as_tree(a->job) ? (int64_t)(samples / a->job->microbatch) : 1,
        .d_stream = pass_piece(a, workspace, "d_stream"),
        .d_stream2 = pass_piece(a, workspace, "d_stream2"),
        .d_qkv = pass_piece(a, workspace, "d_qkv"),
        .d_wide = pass_piece(a, workspace, "d_wide"),
        .scratch = pass_piece(a, workspace, "scratch"),
        .logits = pass_piece(a, workspace, "logits"),
        .rounded = pass_piece(a, workspace, "rounded"),
        .d_rounded = pass_piece(a, workspace, "d_rounded"),
        .adapter = n->trained ? pass_piece(a, workspace, "adapter") : NULL,
    };
}

static bool is_head(const struct transformer_unit *unit, uint64_t layer)
{
    return layer + 1 == unit->network->layer_count;
}

/* The output of the shard's last layer is the next shard's. */
static bool has_output(const struct transformer_unit *unit, uint64_t layer)
{
    const struct plan_shard *const shard = unit->arguments->shard;
    return !is_head(unit, layer) && layer + 1 < shard->first_layer + shard->layer_count;
}

kernel_number *pass_kept(const struct transformer_unit *unit, kernel_number *all, uint64_t layer,
                         kernel_number *out[TRANSFORMER_KEPT_MAX])
{
    const struct transformer_entries kept = transformer_layer_entries(&unit->arguments->tables->activations, layer);
    assert(kept.count > 0 && kept.count <= TRANSFORMER_KEPT_MAX);
    for (uint32_t i = 0; i < kept.count; i++) out[i] = transformer_at(all, kept.first[i].offset_bytes);
    return has_output(unit, layer) ? out[kept.count - 1] : NULL;
}

void pass_kept_alone(const struct transformer_unit *unit, kernel_number *alone, uint64_t layer,
                     kernel_number *out[TRANSFORMER_KEPT_MAX])
{
    const struct transformer_entries kept = transformer_layer_entries(&unit->arguments->tables->activations, layer);
    assert(kept.count > 0 && kept.count <= TRANSFORMER_KEPT_MAX);
    for (uint32_t i = 0; i + has_output(unit, layer) < kept.count; i++)
        out[i] = transformer_at(alone, kept.first[i].offset_bytes - kept.first[0].offset_bytes);
}

kernel_number *pass_held_input(const struct transformer_unit *unit, kernel_number *inputs, uint64_t layer)
{
    const struct unit_arguments *a = unit->arguments;
    uint64_t index = layer - a->shard->first_layer;
    if (index == 0) return a->boundary_in;
    const struct memory_entry *entry = &a->tables->inputs.entries[index - 1];
    assert(index <= a->tables->inputs.count && entry->layer == layer);
    return transformer_at(inputs, entry->offset_bytes);
}
