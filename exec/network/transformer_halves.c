/* Backward passes in halves. */
#include "exec/network/transformer_pass.h"

/* Returns all activations, kept by the forward pass or handed over. */
static kernel_number *activations_of_halves(const struct unit_arguments *a)
{
    return a->activations && !a->inputs_only ? a->activations : a->handed_activations;
}

static const kernel_number *input_of_halves(const struct transformer_unit *unit, uint64_t layer)
{
    const struct unit_arguments *a = unit->arguments;
    return a->inputs_only ? pass_held_input(unit, a->activations, layer)
                          : pass_layer_input(unit, activations_of_halves(a), layer);
}

/* Returns the unit with the block's gradients where they are handed over. */
static struct transformer_unit half_of(const struct transformer_unit *unit, uint64_t layer)
{
    const struct unit_arguments *a = unit->arguments;
    const struct memory_block_gradients at =
        memory_block_gradients(unit->network, layer, a->job->microbatch, a->job->sequence, a->job->precision);
    struct transformer_unit half = *unit;
    half.leaves_weights = a->pass == PLAN_BACKWARD_INPUT;
    half.d_out = transformer_at(a->handed_gradients, (layer - a->shard->first_layer) * at.bytes);
    half.d_middle = transformer_at(half.d_out, at.d_middle_offset);
    half.d_qkv = transformer_at(half.d_out, at.d_qkv_offset);
    half.d_wide = transformer_at(half.d_out, at.d_wide_offset);
    return half;
}

/* Returns where the gradient of a layer's input goes: to the block before, which keeps it unless it ends with a
 * norm. */
static kernel_number *d_input_of_half(const struct transformer_unit *unit, uint64_t layer)
{
    const struct unit_arguments *a = unit->arguments;
    if (layer == a->shard->first_layer || unit->transformer->ends_with_norm) return a->gradient_out;
    return half_of(unit, layer - 1).d_out;
}

void pass_input_half(const struct transformer_unit *unit, uint64_t end)
{
    const struct unit_arguments *a = unit->arguments;
    kernel_number *all = activations_of_halves(a), *kept[TRANSFORMER_KEPT_MAX];
    const kernel_number *d_out = a->gradient_in;
    if (!a->activations && !a->inputs_only) pass_blocks_forward(unit, end, all, NULL);
    if (end < a->shard->first_layer + a->shard->layer_count) {
        kernel_number *d_in = d_input_of_half(unit, end);
        (void)pass_kept(unit, all, end, kept);
        pass_head(unit, end, kept, input_of_halves(unit, end), d_in);
        d_out = d_in;
    }
    for (uint64_t layer = end; layer-- > pass_lowest_layer(a);) {
        const struct transformer_unit half = half_of(unit, layer);
        const kernel_number *in = input_of_halves(unit, layer);
        kernel_number *d_in = d_input_of_half(unit, layer);
        (void)pass_kept(unit, all, layer, kept);
        if (a->inputs_only) unit->transformer->block_forward(unit, layer, kept, in, NULL);
        unit->transformer->block_backward(&half, layer, kept, in, d_out, d_in);
        d_out = d_in;
    }
}

void pass_weight_half(const struct transformer_unit *unit, uint64_t end)
{
    const struct unit_arguments *a = unit->arguments;
    const uint64_t last = a->shard->first_layer + a->shard->layer_count - 1;
    for (uint64_t layer = end; layer-- > pass_lowest_layer(a);) {
        const struct transformer_unit half = half_of(unit, layer);
        kernel_number *kept[TRANSFORMER_KEPT_MAX];
        (void)pass_kept(unit, activations_of_halves(a), layer, kept);
        unit->transformer->block_weights(&half, layer, kept, input_of_halves(unit, layer),
                                         layer == last ? a->gradient_in : half.d_out);
    }
}
