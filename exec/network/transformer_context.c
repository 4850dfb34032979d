/*
 * Attention of a slice of tokens (terapipe) to itself and to the earlier slices of its microbatch.
 *
 * A slice's forward pass copies its keys and values, rows of all samples, to their place among those of all tokens, and
 * its queries see these up to its last token. The backward pass of the last slice writes the gradients of all keys and
 * values; those of earlier slices, which follow in reverse order, add theirs. After a slice's backward pass the
 * gradients of its own keys and values are complete, and go on from where attention without slices leaves them.
 *
 *     slices 0 1 2      forward   keys 0 | 0 1 | 0 1 2      backward   dkeys 0 1 2 = | 0 1 += | 0 +=
 */
#include "exec/network/transformer.h"
#include "models/job/chunk_memory.h"

/* Keys, values and their gradients of all tokens: (B, T, K D) each. */
struct transformer_context {
    kernel_number *k, *v, *dk, *dv;
    int64_t tokens; /* of a sample */
};

static struct transformer_context context_of(const struct transformer_unit *unit, uint64_t layer)
{
    const struct unit_arguments *a = unit->arguments;
    const uint64_t first = a->shard->first_layer, block = layer - first;
    kernel_number *const k = transformer_at(a->context, block * CHUNK_CONTEXT_PARTS * a->context_bytes);
    const uint64_t each = a->context_bytes;
    return (struct transformer_context){.k = k, .v = transformer_at(k, each), .dk = transformer_at(k, 2 * each),
                                        .dv = transformer_at(k, 3 * each),
                                        .tokens = (int64_t)parallel_sequence(a->job)};
}

/* Copies the slice's rows between their place among all tokens and `own`, whose rows are `row` apart. */
static void copy_rows(const struct transformer_unit *unit, int64_t tokens, kernel_number *all, kernel_number *own,
                      int64_t row, bool back)
{
    const int64_t begin = transformer_first_token(unit), width = unit->shared;
    for (int64_t sample = 0; sample < unit->b; sample++) {
        kernel_number *const here = transformer_number(unit, own, sample * unit->t * row);
        kernel_number *const there = transformer_number(unit, all, (sample * tokens + begin) * width);
        unit->kernels->copy_rows(unit->kernels, back ? here : there, back ? row : width, back ? there : here,
                                 back ? width : row, unit->t, width);
    }
}

/* Returns attention to the keys and values of all tokens so far. */
static struct kernel_attention seeing(const struct transformer_unit *unit, const struct transformer_context *context,
                                      const struct kernel_attention *attention)
{
    struct kernel_attention all = *attention;
    all.k = context->k;
    all.v = context->v;
    all.row_kv = unit->shared;
    all.scratch = unit->arguments->context_scratch;
    all.earlier = transformer_first_token(unit);
    all.held = context->tokens;
    all.adds = all.earlier + unit->t < context->tokens;
    return all;
}

void transformer_attend(const struct transformer_unit *unit, uint64_t layer, const struct kernel_attention *attention)
{
    const struct kernels *k = unit->kernels;
    for (int64_t p = 0; p < unit->pieces && !unit->arguments->context; p++) {
        const struct kernel_attention part = transformer_piece_of_attention(unit, attention, p);
        k->attention_forward(k, &part);
    }
    if (!unit->arguments->context) return;
    const struct transformer_context context = context_of(unit, layer);
    const struct kernel_attention all = seeing(unit, &context, attention);
    copy_rows(unit, context.tokens, context.k, (kernel_number *)(uintptr_t)attention->k, attention->row_kv, false);
    copy_rows(unit, context.tokens, context.v, (kernel_number *)(uintptr_t)attention->v, attention->row_kv, false);
    k->attention_forward(k, &all);
}

void transformer_attend_backward(const struct transformer_unit *unit, uint64_t layer,
                                 const struct kernel_attention *attention)
{
    const struct kernels *k = unit->kernels;
    for (int64_t p = 0; p < unit->pieces && !unit->arguments->context; p++) {
        const struct kernel_attention part = transformer_piece_of_attention(unit, attention, p);
        k->attention_backward(k, &part);
    }
    if (!unit->arguments->context) return;
    const struct transformer_context context = context_of(unit, layer);
    struct kernel_attention all = seeing(unit, &context, attention);
    all.dk = context.dk;
    all.dv = context.dv;
    k->attention_backward(k, &all);
    copy_rows(unit, context.tokens, context.dk, attention->dk, attention->row_kv, true);
    copy_rows(unit, context.tokens, context.dv, attention->dv, attention->row_kv, true);
}
