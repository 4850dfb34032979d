/*
 * One function per kind of layer calls put() for each tensor, which counts entries, adds up bytes, or fills a table:
 * the planner's counts and the executor's offsets come from the same lines. Every tensor begins on a 64-byte boundary,
 * so equal blocks are counted once and multiplied: a range of layers takes constant time, except in profiles.
 *
 * Attention keeps one log-sum-exp per row and head, from which the backward pass recomputes scores (Dao et al., arXiv
 * 2205.14135); norms keep mean and 1/std. Per row of a gpt2 block that is 8 C + 2 F + 4 + H floats.
 */
#include "models/job/memory.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/extreme.h"
#include "base/size.h"
#include "base/try.h"
#include "models/network/network_graph.h"
#include "models/network/network_traits.h"

/* --- layouts -------------------------------------------------------------------------------- */

struct memory_layout {
    struct memory_entry *entries; /* NULL: only count */
    uint32_t count;
    uint64_t bytes;
    uint64_t layer;
    uint64_t alignment;
    uint64_t number_bytes; /* of activations; 0: fp32 */
};

static void put_bytes(struct memory_layout *layout, const char *name, uint64_t bytes)
{
    uint64_t offset = size_align(layout->bytes, layout->alignment);
    if (layout->entries) {
        struct memory_entry *entry = &layout->entries[layout->count];
        entry->layer = layout->layer;
        entry->offset_bytes = offset;
        entry->bytes = bytes;
        snprintf(entry->name, sizeof entry->name, "%.95s", name);
    }
    layout->count++;
    layout->bytes = offset + bytes;
}

static void put(struct memory_layout *layout, const char *name, uint64_t elements)
{
    put_bytes(layout, name, elements * sizeof(float));
}

/* "L.what" */
static void put_named(struct memory_layout *layout, const char *what, uint64_t bytes)
{
    char name[64] = "";
    if (layout->entries)
        snprintf(name, sizeof name, "%" PRIu64 ".%s", layout->layer, what);
    put_bytes(layout, name, bytes);
}

/* Puts activations in their precision. */
static void put_kept(struct memory_layout *layout, const char *what, uint64_t elements)
{
    put_named(layout, what, elements * (layout->number_bytes > 0 ? layout->number_bytes : sizeof(float)));
}

/* Puts statistics, fp32 in any precision. */
static void put_statistics(struct memory_layout *layout, const char *what, uint64_t elements)
{
    put_named(layout, what, elements * sizeof(float));
}

static uint64_t end_of(const struct memory_layout *layout)
{
    return size_align(layout->bytes, MEMORY_ALIGNMENT);
}

struct memory_range {
    const struct network *network;
    uint64_t first, count;
    uint64_t microbatch, sequence;
    uint64_t number_bytes;      /* of activations; 0: fp32 */
    uint32_t part;              /* enum state_part */
    struct state_format format; /* of the state */
    void (*lay)(const struct memory_range *range, uint64_t layer, struct memory_layout *layout);
};

/* A layer's tensors depend on these sizes. */
struct memory_sizes {
    uint64_t batch, tokens, rows;
    uint64_t stream; /* handed on */
    uint64_t seen;   /* of an encoder's result, and their tokens */
    uint64_t seen_tokens;
    bool joins;      /* the result is normed by this layer */
    uint64_t width, inner, shared, ff, heads;
};

static struct memory_sizes sizes_of(const struct memory_range *range, uint64_t layer)
{
    const struct network *n = range->network;
    uint64_t tokens = network_layer_tokens(n, layer, range->sequence);
    uint64_t seen = network_crosses(n, layer) ? range->sequence : 0;
    return (struct memory_sizes){.batch = range->microbatch, .tokens = tokens, .rows = range->microbatch * tokens,
                                 .stream = range->microbatch * network_tokens(n, range->sequence),
                                 .seen = range->microbatch * seen, .seen_tokens = seen, .joins = network_joins(n, layer),
                                 .width = n->width, .inner = n->heads * n->head_width,
                                 .shared = network_kv_heads(n) * n->head_width, .ff = n->ff_width,
                                 .heads = n->heads};
}

static void lay_layer(const struct memory_range *range, uint64_t layer, struct memory_layout *layout)
{
    layout->layer = layer;
    layout->alignment = MEMORY_ALIGNMENT;
    layout->number_bytes = range->number_bytes;
    layout->bytes = end_of(layout);
    range->lay(range, layer, layout);
}

/* Returns the end of layers with the same needs as `layer`. The last one has no output and counts separately. */
static uint64_t run_end(const struct memory_range *range, uint64_t layer)
{
    uint64_t last = range->first + range->count - 1, end = network_alike_end(range->network, layer);
    if (layer == last) return last + 1;
    return end < last ? end : last;
}

/* Adds up a range; equal layers are counted once. */
static uint64_t range_bytes(const struct memory_range *range)
{
    uint64_t sum = 0, end = range->first + range->count;
    for (uint64_t layer = range->first, next; layer < end; layer = next) {
        struct memory_layout layout = {0};
        next = run_end(range, layer);
        lay_layer(range, layer, &layout);
        sum += (next - layer) * end_of(&layout);
    }
    return sum;
}

static enum status range_table(const struct memory_range *range, struct arena *arena,
                               struct memory_table *out, struct error *err)
{
    struct memory_layout counted = {0};
    for (uint64_t i = 0; i < range->count; i++) lay_layer(range, range->first + i, &counted);
    struct memory_entry *entries;
    TRY(ARENA_NEW(arena, counted.count, entries, err));
    struct memory_layout layout = {.entries = entries};
    for (uint64_t i = 0; i < range->count; i++) lay_layer(range, range->first + i, &layout);
    assert(layout.count == counted.count);
    *out = (struct memory_table){entries, layout.count, end_of(&layout)};
    return STATUS_OK;
}

static struct memory_range range_of(const struct network *network, uint64_t first, uint64_t count)
{
    assert(count > 0 && first < network->layer_count && count <= network->layer_count - first);
    return (struct memory_range){.network = network, .first = first, .count = count};
}

/* --- parameters ----------------------------------------------------------------------------- */

/* Returns the bytes of one number, for a matrix or another tensor; 0 if the part does not store it. */
static uint64_t element_bytes(struct state_format format, uint32_t part, bool matrix)
{
    const bool rounded = precision_halves_weight(format.weights, matrix);
    switch ((enum state_part)part) {
    case STATE_WEIGHTS: return precision_bytes(rounded ? PRECISION_BF16 : PRECISION_FP32);
    case STATE_MASTER: return rounded ? precision_bytes(PRECISION_FP32) : 0;
    case STATE_FIRST:
    case STATE_SECOND:
        return optimizer_moments(format.optimizer) > part - STATE_FIRST
                   ? precision_bytes(format.moments) : 0;
    case STATE_PARTS: break;
    }
    return 0;
}

static void lay_part(const struct memory_range *range, uint64_t layer, struct memory_layout *layout)
{
    struct tensor_spec tensors[LAYER_TENSORS_MAX];
    uint32_t count = (layout->entries ? network_layer_tensors : network_layer_shapes)(range->network, layer, tensors);
    bool embedding = network_layer_kind(range->network, layer) == LAYER_EMBEDDING;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = element_bytes(range->format, range->part, tensors[i].matrix);
        /* an embedding's tables are cut between any two rows */
        if (embedding && i > 0) layout->alignment = bytes > 0 ? bytes : 1;
        put_bytes(layout, tensors[i].name, tensors[i].elements * bytes);
    }
}

static struct memory_range part_range(const struct network *network, uint64_t first, uint64_t count,
                                      enum state_part part, struct state_format format)
{
    struct memory_range range = range_of(network, first, count);
    range.lay = lay_part;
    range.part = part;
    range.format = format;
    return range;
}

static struct memory_range parameter_range(const struct network *network, uint64_t first, uint64_t count)
{
    return part_range(network, first, count, STATE_WEIGHTS, (struct state_format){0});
}

enum status memory_parameters(const struct network *network, uint64_t first_layer,
                              uint64_t layer_count, struct arena *arena, struct memory_table *out,
                              struct error *err)
{
    struct memory_range range = parameter_range(network, first_layer, layer_count);
    return range_table(&range, arena, out, err);
}

uint64_t memory_tensor_count(const struct network *network, uint64_t first_layer,
                             uint64_t layer_count)
{
    struct tensor_spec specs[LAYER_TENSORS_MAX];
    uint64_t end = first_layer + layer_count, sum = 0;
    for (uint64_t layer = first_layer, next; layer < end; layer = next) {
        next = network_alike_end(network, layer);
        if (next > end) next = end;
        sum += (next - layer) * network_layer_shapes(network, layer, specs);
    }
    return sum;
}

uint64_t memory_parameter_bytes(const struct network *network, uint64_t first_layer,
                                uint64_t layer_count)
{
    struct memory_range range = parameter_range(network, first_layer, layer_count);
    return range_bytes(&range);
}

struct state_layout memory_state(const struct network *network, uint64_t first_layer,
                                 uint64_t layer_count, struct state_format format)
{
    struct state_layout out = {0};
    for (uint32_t part = 0; part < STATE_PARTS; part++) {
        struct memory_range range = part_range(network, first_layer, layer_count, part, format);
        out.parts[part].offset_bytes = out.bytes;
        out.parts[part].bytes = range_bytes(&range);
        out.parts[part].row_bytes = network->width * element_bytes(format, part, true);
        out.bytes += out.parts[part].bytes;
    }
    return out;
}

struct state_layout memory_state_rows(const struct network *network, uint64_t rows,
                                      struct state_format format)
{
    struct state_layout out = {0};
    for (uint64_t bytes = precision_bytes(PRECISION_FP32); bytes > 0; bytes /= 2)
        for (uint32_t part = 0; part < STATE_PARTS; part++) {
            if (element_bytes(format, part, true) != bytes) continue;
            out.parts[part].offset_bytes = out.bytes;
            out.parts[part].row_bytes = network->width * bytes;
            out.parts[part].bytes = rows * out.parts[part].row_bytes;
            out.bytes += out.parts[part].bytes;
        }
    return out;
}

/* Returns the place of a layer's parameter in a part of its state, both from the layer's beginning. */
static uint64_t offset_in_layer(const struct memory_range *parameters, const struct memory_range *part, uint64_t layer,
                                uint64_t at)
{
    struct memory_entry entries[2][LAYER_TENSORS_MAX];
    struct memory_layout all = {.entries = entries[0]}, own = {.entries = entries[1]};
    lay_layer(parameters, layer, &all);
    lay_layer(part, layer, &own);
    for (uint32_t i = 0; i < all.count; i++) {
        const struct memory_entry *from = &entries[0][i], *to = &entries[1][i];
        if (at >= from->offset_bytes + from->bytes) continue;
        if (at <= from->offset_bytes) return to->offset_bytes;
        return to->offset_bytes + (at - from->offset_bytes) / sizeof(float) * (to->bytes / (from->bytes / sizeof(float)));
    }
    return end_of(&own);
}

uint64_t memory_state_offset(const struct network *network, uint64_t first_layer, uint64_t layer_count,
                             struct state_format format, enum state_part part, uint64_t at)
{
    const struct memory_range parameters = parameter_range(network, first_layer, layer_count);
    const struct memory_range range = part_range(network, first_layer, layer_count, part, format);
    uint64_t sum = 0, end = first_layer + layer_count;
    for (uint64_t layer = first_layer, next; layer < end; layer = next) {
        struct memory_layout all = {0}, own = {0};
        next = run_end(&parameters, layer);
        lay_layer(&parameters, layer, &all);
        lay_layer(&range, layer, &own);
        const uint64_t each = end_of(&all), alike = (next - layer) * each;
        if (at < alike) return sum + at / each * end_of(&own) + offset_in_layer(&parameters, &range, layer, at % each);
        at -= alike;
        sum += (next - layer) * end_of(&own);
    }
    return sum;
}

enum status memory_state_tables(const struct network *network, uint64_t first_layer,
                                uint64_t layer_count, struct state_format format,
                                struct arena *arena, struct state_tables *out, struct error *err)
{
    struct state_tables tables = {.layout = memory_state(network, first_layer, layer_count, format)};
    for (uint32_t part = 0; part < STATE_PARTS; part++) {
        struct memory_range range = part_range(network, first_layer, layer_count, part, format);
        TRY(range_table(&range, arena, &tables.parts[part], err));
        assert(tables.parts[part].bytes == tables.layout.parts[part].bytes);
    }
    *out = tables;
    return STATUS_OK;
}

/* --- activations ---------------------------------------------------------------------------- */

static uint64_t norm_stats(const struct network *network, struct memory_sizes s)
{
    return network_traits(network)->no_mean ? s.rows : 2 * s.rows;
}

static void lay_attention(const struct network *network, struct memory_sizes s, struct memory_layout *layout)
{
    if (network_traits(network)->fused_qkv) {
        put_kept(layout, "qkv", s.rows * 3 * s.inner);
    } else {
        put_kept(layout, "q", s.rows * s.inner);
        put_kept(layout, "k", s.rows * s.shared);
        put_kept(layout, "v", s.rows * s.shared);
    }
    if (network_traits(network)->qk_norm) {
        put_kept(layout, "plain_q", s.rows * s.inner);
        put_kept(layout, "plain_k", s.rows * s.shared);
        put_statistics(layout, "qk_stats", s.rows * (s.heads + network_kv_heads(network)));
    }
    put_kept(layout, "attention", s.rows * s.inner);
    put_statistics(layout, "attention_stats", s.rows * s.heads);
}

static void lay_cross(const struct network *network, struct memory_sizes s, struct memory_layout *layout)
{
    if (s.seen == 0) return;
    put_kept(layout, "cross_norm", s.rows * s.width);
    put_statistics(layout, "cross_norm_stats", norm_stats(network, s));
    put_kept(layout, "cross_q", s.rows * s.inner);
    put_kept(layout, "cross_k", s.seen * s.shared);
    put_kept(layout, "cross_v", s.seen * s.shared);
    put_kept(layout, "cross_attention", s.rows * s.inner);
    put_statistics(layout, "cross_attention_stats", s.rows * s.heads);
    put_kept(layout, "cross_middle", s.rows * s.width);
    if (s.joins) put_statistics(layout, "encoded_stats", s.seen);
}

static void lay_block_pre_norm(const struct network *network, struct memory_sizes s,
                               struct memory_layout *layout)
{
    put_kept(layout, "norm1", s.rows * s.width);
    put_statistics(layout, "norm1_stats", norm_stats(network, s));
    lay_attention(network, s, layout);
    const struct network_traits *traits = network_traits(network);
    uint64_t sent = s.rows * network_chosen(network); /* of all feed-forward parts */
    if (!traits->parallel) put_kept(layout, "middle", s.rows * s.width);
    lay_cross(network, s, layout);
    if (!traits->one_norm) {
        put_kept(layout, "norm2", s.rows * s.width);
        put_statistics(layout, "norm2_stats", norm_stats(network, s));
    }
    if (traits->outer_norms) { /* inputs of the norms */
        put_kept(layout, "attended", s.rows * s.width);
        put_kept(layout, "made", s.rows * s.width);
        put_statistics(layout, "outer_stats", 2 * norm_stats(network, s));
    }
    if (network->shared_width > 0) {
        put_kept(layout, "shared_gate", s.rows * network->shared_width);
        put_kept(layout, "shared_up", s.rows * network->shared_width);
        put_kept(layout, "shared_swiglu", s.rows * network->shared_width);
        put_kept(layout, "shared_made", s.rows * (s.width + 1));
    }
    if (network->experts > 0) {
        put_kept(layout, "router", s.rows * network->experts);
        put_kept(layout, "sent", sent * s.width);
        put_kept(layout, "returned", sent * s.width);
    }
    if (traits->gated) {
        put_kept(layout, "gate", sent * s.ff);
        put_kept(layout, "up", sent * s.ff);
        put_kept(layout, "swiglu", sent * s.ff);
    } else {
        put_kept(layout, "fc", sent * s.ff);
        put_kept(layout, "gelu", sent * s.ff);
    }
}

static void lay_block_post_norm(const struct network *network, struct memory_sizes s,
                                struct memory_layout *layout)
{
    lay_attention(network, s, layout);
    put_kept(layout, "middle", s.rows * s.width);
    put_kept(layout, "norm1", s.rows * s.width);
    put_statistics(layout, "norm1_stats", s.rows * 2);
    put_kept(layout, "fc", s.rows * s.ff);
    put_kept(layout, "gelu", s.rows * s.ff);
    put_kept(layout, "sum", s.rows * s.width);
    put_statistics(layout, "norm2_stats", s.rows * 2);
}

static void lay_head(const struct network *network, struct memory_sizes s, struct memory_layout *layout)
{
    if (network->family == NETWORK_BERT && network_classifies(network)) {
        put_kept(layout, "class", s.batch * s.width);
        put_kept(layout, "pooled", s.batch * s.width);
        return;
    }
    if (network->family == NETWORK_BERT) {
        put_kept(layout, "transform", s.rows * s.width);
        put_kept(layout, "gelu", s.rows * s.width);
    }
    if (network->word_width > 0) put_kept(layout, "projected", s.rows * network->word_width);
    if (network->post_norm) return; /* its input is normed already */
    if (network->family == NETWORK_VIT) { /* only the class tokens */
        put_kept(layout, "class", s.batch * s.width);
        put_kept(layout, "normf", s.batch * s.width);
        put_statistics(layout, "normf_stats", s.batch * 2);
        return;
    }
    put_kept(layout, "normf", s.rows * s.width);
    put_statistics(layout, "normf_stats", norm_stats(network, s));
}

static uint64_t words(uint64_t bytes)
{
    return (bytes + sizeof(float) - 1) / sizeof(float);
}

/* Lists a layer. An output that is read after the range is in the boundary. */
static void lay_listed(const struct memory_range *range, uint64_t layer, struct memory_layout *layout)
{
    const struct network *network = range->network;
    if (!network->graph) {
        put_kept(layout, "activations",
                 words(network_profile_share(network, network->profile[layer].activation_bytes, range->microbatch)));
        return;
    }
    const struct graph_kept kept = graph_layer_kept(network->graph, layer, range->microbatch);
    put_kept(layout, "activations", kept.inner);
    put_kept(layout, "output", layer + 1 < range->first + range->count ? kept.output : 0);
}

static void lay_activations(const struct memory_range *range, uint64_t layer, struct memory_layout *layout)
{
    const struct network *network = range->network;
    const struct memory_sizes s = sizes_of(range, layer);
    switch (network_layer_kind(network, layer)) {
    case LAYER_EMBEDDING: break;
    case LAYER_BLOCK:
        if (network_norms_first(network))
            lay_block_pre_norm(network, s, layout);
        else
            lay_block_post_norm(network, s, layout);
        break;
    case LAYER_HEAD: lay_head(network, s, layout); return;
    case LAYER_OPAQUE:
        lay_listed(range, layer, layout);
        return;
    }
    if (layer + 1 == range->first + range->count) return;
    put_kept(layout, "output", s.rows * s.width);
    if (s.joins) put_kept(layout, "encoded", s.seen * s.width);
}

/* `lay` lays out the layers of a pass over a microbatch. */
static struct memory_range pass_range(const struct network *network, uint64_t first, uint64_t count, uint64_t microbatch,
                                      uint64_t sequence, uint64_t number_bytes,
                                      void (*lay)(const struct memory_range *, uint64_t, struct memory_layout *))
{
    struct memory_range range = range_of(network, first, count);
    range.number_bytes = number_bytes;
    range.microbatch = microbatch;
    range.sequence = sequence;
    range.lay = lay;
    return range;
}

enum status memory_activations(const struct network *network, uint64_t first_layer,
                               uint64_t layer_count, uint64_t microbatch, uint64_t sequence,
                               struct arena *arena, struct memory_table *out, struct error *err)
{
    struct memory_range range =
        pass_range(network, first_layer, layer_count, microbatch, sequence, sizeof(float), lay_activations);
    return range_table(&range, arena, out, err);
}

uint64_t memory_activation_bytes(const struct network *network, uint64_t first_layer, uint64_t layer_count,
                                 uint64_t microbatch, uint64_t sequence, uint32_t precision)
{
    struct memory_range range =
        pass_range(network, first_layer, layer_count, microbatch, sequence, precision_bytes(precision), lay_activations);
    return range_bytes(&range);
}

uint64_t memory_boundary_bytes(const struct network *network, uint64_t layer, uint64_t microbatch,
                               uint64_t sequence, uint32_t precision)
{
    assert(layer < network->layer_count);
    if (network->graph)
        return graph_boundary(network->graph, layer, microbatch) * sizeof(float);
    if (network->family == NETWORK_PROFILE)
        return network_profile_share(network, network->profile[layer].boundary_bytes, microbatch);
    return microbatch * network_tokens(network, sequence) * network->width * precision_bytes(precision);
}

/* --- inputs --------------------------------------------------------------------------------- */

/* Lists inputs: a layer's output is the next layer's input. */
static void lay_inputs(const struct memory_range *range, uint64_t layer, struct memory_layout *layout)
{
    if (layer + 1 == range->first + range->count) return;
    const struct memory_sizes s = sizes_of(range, layer);
    uint64_t elements = (s.rows + (s.joins ? s.seen : 0)) * s.width;
    if (range->network->family == NETWORK_PROFILE)
        elements = words(network_profile_share(range->network, range->network->profile[layer].boundary_bytes,
                                               range->microbatch));
    if (range->network->graph)
        elements = graph_layer_kept(range->network->graph, layer, range->microbatch).output;
    layout->layer = layer + 1;
    put_kept(layout, "input", elements);
}

enum status memory_inputs(const struct network *network, uint64_t first_layer,
                          uint64_t layer_count, uint64_t microbatch, uint64_t sequence,
                          struct arena *arena, struct memory_table *out, struct error *err)
{
    struct memory_range range =
        pass_range(network, first_layer, layer_count, microbatch, sequence, sizeof(float), lay_inputs);
    return range_table(&range, arena, out, err);
}

uint64_t memory_input_bytes(const struct network *network, uint64_t first_layer, uint64_t layer_count,
                            uint64_t microbatch, uint64_t sequence, uint32_t precision)
{
    struct memory_range range =
        pass_range(network, first_layer, layer_count, microbatch, sequence, precision_bytes(precision), lay_inputs);
    return range_bytes(&range);
}

/* --- workspace ------------------------------------------------------------------------------ */

/* Elements of each entry. */
struct workspace {
    uint64_t keep, gradients, sums, d_stream, d_stream2, d_qkv, d_wide, scratch, logits, activations;
    uint64_t layer, head, inputs; /* kept by a layer, and by the head; inputs of all */
    uint64_t rounded, d_rounded; /* inputs of linear layers, gradients of outputs */
    uint64_t attention[2]; /* scratch of attention that rounds: forward, backward */
    uint64_t library[2];   /* the same with rounded operands */
    uint64_t d_logits;     /* gradients of 16-bit logits */
};

static uint64_t gradient_words(const struct network *network, uint64_t layer)
{
    bool embedding = network_layer_kind(network, layer) == LAYER_EMBEDDING;
    if (embedding && network_has_plain_tables(network)) return 0;
    if (embedding && network->word_width > 0) return network->width * network->word_width; /* its projection's */
    if (embedding && network->family == NETWORK_BERT) return 4 * network->width; /* its norm's, of two microbatches */
    return words(memory_parameter_bytes(network, layer, 1));
}

/* Leaves out the output, which is a stream. */
static uint64_t keep_words(const struct memory_range *range, uint64_t layer)
{
    struct memory_range one = *range;
    one.first = layer;
    one.count = 1;
    return words(range_bytes(&one));
}

uint64_t memory_attention_tiles(struct attention_sizes s)
{
    uint64_t lanes = s.samples * s.heads, rows = s.tokens;
    if (lanes > MEMORY_ATTENTION_LANES) lanes = MEMORY_ATTENTION_LANES;
    if (rows > MEMORY_ATTENTION_TILE) rows = MEMORY_ATTENTION_TILE;
    return 2 * rows * s.tokens * lanes;
}

uint64_t memory_attention_library(struct attention_sizes s, bool back)
{
    enum { ROUND = 64, SLACK_BYTES = 1024 };
    const uint64_t group = s.heads / s.kv_heads, padded = (s.tokens + ROUND - 1) / ROUND * ROUND;
    const uint64_t each = 2 * padded * padded + (group > 1 ? 4 * s.tokens * s.head_width : 0);
    const uint64_t bytes = (back ? group * each : 0) + SLACK_BYTES;
    return bytes > MEMORY_LIBRARY_BYTES_MAX ? 0 : bytes / sizeof(float);
}

uint64_t memory_attention_workspace(struct attention_sizes s, bool back)
{
    return max_u64(memory_attention_tiles(s), memory_attention_library(s, back));
}

uint64_t memory_attention_copies(struct attention_sizes s, bool back)
{
    const uint64_t rows = s.samples * s.tokens, heads = s.heads + s.kv_heads;
    if (!back) return rows * s.head_width * (heads + s.kv_heads);
    return rows * (2 * s.head_width * heads + s.heads);
}

static void need_attention(const struct network *network, struct memory_sizes s, struct workspace *w)
{
    const struct attention_sizes attention = {.samples = s.batch,
                                              .tokens = max_u64(s.tokens, s.seen_tokens),
                                              .heads = s.heads,
                                              .kv_heads = network_kv_heads(network),
                                              .head_width = network->head_width};
    w->scratch = max_u64(w->scratch, memory_attention_tiles(attention));
    for (int back = 0; back < 2; back++) {
        w->library[back] = max_u64(w->library[back], memory_attention_workspace(attention, back));
        w->attention[back] = max_u64(w->attention[back], memory_attention_workspace(attention, back) +
                                                             memory_attention_copies(attention, back));
    }
}

/* Returns words: two bf16 numbers take one. */
static uint64_t half_words(uint64_t elements)
{
    return elements / 2 + elements % 2;
}

/* Takes the widest linear layer, forward and backward. */
static void need_rounded(const struct network *network, struct memory_sizes s, uint64_t layer,
                         struct workspace *w)
{
    uint64_t rows = s.rows, in = 0, out = 0, qkv = network_traits(network)->fused_qkv ? 3 : 1;
    switch (network_layer_kind(network, layer)) {
    case LAYER_EMBEDDING:
        if (network->word_width > 0) {
            in = network->word_width;
            out = s.width;
        }
        if (network->family != NETWORK_VIT) break;
        rows = s.batch * (s.tokens - 1);
        in = network->channels * network->patch * network->patch;
        out = s.width;
        break;
    case LAYER_BLOCK:
        rows = max_u64(s.rows, s.seen);
        in = max_u64(max_u64(s.width, s.inner), max_u64(s.ff, network->shared_width));
        out = max_u64(max_u64(s.width, qkv * s.inner), max_u64(s.ff, network->shared_width));
        break;
    case LAYER_HEAD:
        rows = network_classifies(network) ? s.batch : s.rows;
        in = s.width;
        out = network->family == NETWORK_VIT ? network->classes : max_u64(s.width, network->classes);
        if (!network_classifies(network)) /* a piece at a time */
            w->d_rounded = max_u64(w->d_rounded, half_words(network_logit_rows(network, rows) *
                                                            network->vocabulary));
        break;
    case LAYER_OPAQUE: return;
    }
    w->rounded = max_u64(w->rounded, half_words(rows * in));
    w->d_rounded = max_u64(w->d_rounded, half_words(rows * out));
}

static uint64_t embedding_words(const struct network *network, struct memory_sizes s)
{
    if (network->family == NETWORK_VIT)
        return s.batch * (s.tokens - 1) *
               (network->channels * network->patch * network->patch + s.width);
    uint64_t norm = network->family == NETWORK_BERT ? 2 * s.rows * s.width + 2 * s.rows : 0;
    return MEMORY_EMBEDDING_WORDS * s.rows + norm + 2 * s.rows * network->word_width; /* and their gradients */
}

/* Counts the gradients that a listed layer works on. */
static uint64_t need_listed(const struct network *network, struct memory_sizes s, uint64_t layer, struct workspace *w)
{
    if (!network->graph)
        return words(network_profile_share(network, network->profile[layer].boundary_bytes, s.batch));
    const struct graph_kept kept = graph_layer_kept(network->graph, layer, s.batch);
    w->logits = max_u64(w->logits, kept.logits);
    return kept.widest;
}

/* Counts gradients as wide as the feed-forward part. */
static uint64_t wide_words(const struct network *network, struct memory_sizes s)
{
    uint64_t each = network_chosen(network) * s.ff * (network_traits(network)->gated ? 2 : 1);
    if (network->experts > 0) each += network->experts + network->experts_chosen * s.width;
    each = max_u64(each, 2 * network->shared_width);
    return s.rows * each;
}

/* Takes maxima: a range needs the largest of each. */
static void need_layer(const struct memory_range *range, uint64_t layer, struct workspace *w)
{
    const struct network *network = range->network;
    const struct memory_sizes s = sizes_of(range, layer);
    uint64_t row_words = s.stream * s.width;
    bool streams = true;
    w->gradients = max_u64(w->gradients, gradient_words(network, layer));
    need_rounded(network, s, layer, w);
    uint64_t keep = keep_words(range, layer);
    bool head = network_layer_kind(network, layer) == LAYER_HEAD;
    w->keep = max_u64(w->keep, keep);
    if (head) w->head = keep;
    else w->layer = max_u64(w->layer, keep);
    switch (network_layer_kind(network, layer)) {
    case LAYER_EMBEDDING:
        w->scratch = max_u64(w->scratch, embedding_words(network, s));
        streams = false;
        break;
    case LAYER_BLOCK:
        w->d_stream2 = max_u64(w->d_stream2, s.rows * s.inner);
        w->d_qkv = max_u64(w->d_qkv, max_u64(s.rows, s.seen) * (s.inner + 2 * s.shared));
        w->d_wide = max_u64(w->d_wide, wide_words(network, s));
        need_attention(network, s, w);
        break;
    case LAYER_HEAD:
        w->logits = network_classifies(network)
                        ? s.batch * network->classes
                        : network_logit_rows(network, s.rows) * network->vocabulary;
        w->d_logits = half_words(w->logits);
        break;
    case LAYER_OPAQUE: row_words = need_listed(network, s, layer, w); break;
    }
    if (!streams) return;
    w->d_stream = max_u64(w->d_stream, row_words);
    w->d_stream2 = max_u64(w->d_stream2, row_words);
}

static struct workspace need_range(const struct memory_range *range)
{
    struct workspace w = {0};
    uint64_t end = range->first + range->count;
    for (uint64_t layer = range->first; layer < end; layer = network_alike_end(range->network, layer))
        need_layer(range, layer, &w);
    return w;
}

static uint64_t scratch_words(const struct workspace *w, uint32_t how, bool forward)
{
    if (how & UNIT_ROUNDED) return max_u64(w->scratch, w->attention[!forward]);
    return how & UNIT_HALF ? max_u64(w->scratch, w->library[!forward]) : w->scratch;
}

/* Numbers have the precision of activations. */
static void put_numbers(struct memory_layout *layout, const char *name, uint64_t elements, uint32_t how)
{
    put(layout, name, how & UNIT_HALF ? half_words(elements) : elements);
}

static void lay_workspace(const struct workspace *w, enum unit_pass pass, uint32_t how,
                          struct memory_layout *layout)
{
    bool forward = pass == UNIT_FORWARD, keep = how & UNIT_KEEP;
    bool streams = !forward || !keep, out = how & UNIT_GRADIENTS_OUT;
    bool accumulate = how & UNIT_ACCUMULATE, inputs = unit_holds_inputs(pass, how);
    if (forward)
        put(layout, "keep", keep && !inputs ? 0 : w->keep);
    else
        put(layout, "gradients", out && !accumulate ? 0 : w->gradients);
    put_numbers(layout, "d_stream", forward && streams ? w->d_stream : 0, how);
    put_numbers(layout, "d_stream2", streams ? w->d_stream2 : 0, how);
    if (!forward) {
        put_numbers(layout, "d_qkv", w->d_qkv, how);
        put_numbers(layout, "d_wide", w->d_wide, how);
    }
    put(layout, "scratch", scratch_words(w, how, forward));
    put(layout, "logits", w->logits);
    if (!forward) put(layout, "activations", inputs ? w->layer : w->activations);
    if (!forward && accumulate) put(layout, "sums", out ? 0 : w->sums);
    if (how & UNIT_ROUNDED) put(layout, "rounded", w->rounded);
    if ((how & UNIT_ROUNDED) && !forward) put(layout, "d_rounded", w->d_rounded);
    if ((how & UNIT_HALF) && !forward) put(layout, "d_rounded", w->d_logits);
    if (forward || !inputs) return;
    put(layout, "head", w->head);
    if (pass == UNIT_LOSS) put(layout, "inputs", w->inputs);
}

enum { WORKSPACE_ENTRIES_MAX = 13 };

static struct workspace need_pass(const struct network *network, uint64_t first, uint64_t count, uint32_t how,
                                  uint64_t microbatch, uint64_t sequence)
{
    uint32_t precision = how & UNIT_HALF ? PRECISION_BF16 : PRECISION_FP32;
    struct memory_range range =
        pass_range(network, first, count, microbatch, sequence, precision_bytes(precision), lay_activations);
    struct workspace w = need_range(&range);
    w.activations = words(range_bytes(&range));
    w.inputs = words(memory_input_bytes(network, first, count, microbatch, sequence, precision));
    w.sums = words(memory_parameter_bytes(network, first, count));
    return w;
}

static struct memory_layout workspace_layout(const struct workspace *need, uint64_t first, enum unit_pass pass, uint32_t how,
                                             struct memory_entry *entries)
{
    struct workspace w = *need;
    bool recompute = pass == UNIT_LOSS || (pass == UNIT_BACKWARD && !(how & UNIT_KEEP));
    if (!recompute) w.activations = 0;
    struct memory_layout layout = {.entries = entries, .layer = first, .alignment = MEMORY_ALIGNMENT};
    lay_workspace(&w, pass, how, &layout);
    assert(layout.count <= WORKSPACE_ENTRIES_MAX);
    return layout;
}

enum status memory_workspace(const struct network *network, uint64_t first_layer,
                             uint64_t layer_count, enum unit_pass pass, uint32_t how,
                             uint64_t microbatch, uint64_t sequence, struct arena *arena,
                             struct memory_table *out, struct error *err)
{
    struct memory_entry *entries;
    TRY(ARENA_NEW(arena, WORKSPACE_ENTRIES_MAX, entries, err));
    struct workspace need = need_pass(network, first_layer, layer_count, how, microbatch, sequence);
    struct memory_layout layout = workspace_layout(&need, first_layer, pass, how, entries);
    *out = (struct memory_table){entries, layout.count, end_of(&layout)};
    return STATUS_OK;
}

uint64_t memory_workspace_bytes(const struct network *network, uint64_t first_layer,
                                uint64_t layer_count, enum unit_pass pass, uint32_t how,
                                uint64_t microbatch, uint64_t sequence)
{
    struct workspace need = need_pass(network, first_layer, layer_count, how, microbatch, sequence);
    struct memory_layout layout = workspace_layout(&need, first_layer, pass, how, NULL);
    return end_of(&layout);
}

void memory_workspaces(const struct network *network, uint64_t first_layer, uint64_t layer_count, uint32_t how,
                       uint64_t microbatch, uint64_t sequence, uint64_t bytes[3][UNIT_WAYS])
{
    struct workspace need = need_pass(network, first_layer, layer_count, how, microbatch, sequence);
    for (uint32_t pass = UNIT_FORWARD; pass <= UNIT_LOSS; pass++)
        for (uint32_t way = 0; way < UNIT_WAYS; way++) {
            struct memory_layout layout = workspace_layout(&need, first_layer, (enum unit_pass)pass, way | how, NULL);
            bytes[pass][way] = end_of(&layout);
        }
}

struct memory_block_gradients memory_block_gradients(const struct network *network, uint64_t layer, uint64_t microbatch,
                                                     uint64_t sequence)
{
    const struct memory_range range =
        pass_range(network, layer, 1, microbatch, sequence, sizeof(float), lay_activations);
    const struct memory_sizes s = sizes_of(&range, layer);
    assert(network_layer_kind(network, layer) == LAYER_BLOCK);
    const uint64_t stream = size_align(s.stream * s.width * sizeof(float), MEMORY_ALIGNMENT);
    const uint64_t qkv = size_align(s.rows * (s.inner + 2 * s.shared) * sizeof(float), MEMORY_ALIGNMENT);
    const uint64_t wide = size_align(wide_words(network, s) * sizeof(float), MEMORY_ALIGNMENT);
    return (struct memory_block_gradients){.d_middle_offset = stream,
                                           .d_qkv_offset = 2 * stream,
                                           .d_wide_offset = 2 * stream + qkv,
                                           .bytes = 2 * stream + qkv + wide};
}

/* --- finding -------------------------------------------------------------------------------- */

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), end_length = strlen(end);
    if (length == end_length) return strcmp(name, end) == 0;
    return length > end_length && name[length - end_length - 1] == '.' &&
           strcmp(name + length - end_length, end) == 0;
}

const struct memory_entry *memory_find(const struct memory_table *table, uint64_t layer,
                                       const char *name)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (table->entries[i].layer == layer && ends_with(table->entries[i].name, name))
            return &table->entries[i];
    return NULL;
}
