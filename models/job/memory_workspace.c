/* Workspace of a pass: each entry has the largest need of its layers. */
#include <assert.h>

#include "base/extreme.h"
#include "base/size.h"
#include "base/try.h"
#include "models/job/memory_layout.h"
#include "models/network/network_graph.h"
#include "models/network/network_trained.h"
#include "models/network/network_traits.h"

/* Elements of each entry. */
struct workspace {
    uint64_t keep, gradients, sums, d_stream, d_stream2, d_qkv, d_wide, scratch, logits, activations;
    uint64_t layer, head, inputs; /* kept by a layer, and by the head; inputs of all */
    uint64_t rounded, d_rounded; /* inputs of linear layers, gradients of outputs */
    uint64_t attention[2]; /* scratch of attention that rounds: forward, backward */
    uint64_t half[2];      /* the same of bf16 numbers */
    uint64_t graph[2];     /* scratch of operations: forward, and either way */
    bool two_gradients;    /* of the cuts before and after a layer of operations */
    uint64_t d_logits;     /* gradients of 16-bit logits */
    uint64_t gathered, norm_parts; /* of a tensor group's member */
    uint64_t pieces;       /* sums of rows of each piece */
    uint64_t adapter;              /* the input of a linear layer times A */
    uint64_t level;                /* a partial sum of a tree */
};

static uint64_t gradient_words(const struct network *network, uint64_t layer)
{
    bool embedding = network_layer_kind(network, layer) == LAYER_EMBEDDING;
    if (embedding && network_first_trained(network) > 0) return 0;
    if (embedding && network_has_plain_tables(network)) return 0;
    if (embedding && network->word_width > 0) return network->width * network->word_width; /* its projection's */
    if (embedding && network->family == NETWORK_BERT) return 4 * network->width; /* its norm's, of two microbatches */
    return memory_words(memory_parameter_bytes(network, layer, 1));
}

/* Leaves out the output, which is a stream. */
static uint64_t keep_words(const struct memory_range *range, uint64_t layer)
{
    struct memory_range one = *range;
    one.first = layer;
    one.count = 1;
    return memory_words(memory_range_bytes(&one));
}

uint64_t memory_attention_tiles(struct attention_sizes s)
{
    uint64_t lanes = s.samples * s.heads, rows = s.tokens;
    if (lanes > MEMORY_ATTENTION_LANES) lanes = MEMORY_ATTENTION_LANES;
    if (rows > MEMORY_ATTENTION_TILE) rows = MEMORY_ATTENTION_TILE;
    return 2 * rows * s.tokens * lanes;
}

uint64_t memory_attention_half_tiles(struct attention_sizes s)
{
    const uint64_t lanes = min_u64(s.samples * s.heads, MEMORY_ATTENTION_LANES);
    const uint64_t rows = min_u64(s.tokens, MEMORY_ATTENTION_TILE);
    return memory_attention_tiles(s) + MEMORY_ATTENTION_HALF_TILES * rows * s.head_width * lanes;
}

uint64_t memory_attention_after(struct attention_sizes s, uint64_t earlier, uint32_t precision)
{
    const uint64_t lanes = min_u64(s.samples * s.heads, MEMORY_ATTENTION_LANES), seen = earlier + s.tokens;
    const uint64_t copies = 2 * s.samples * s.head_width * (s.heads * s.tokens + s.kv_heads * seen);
    const uint64_t tiles = MEMORY_ATTENTION_HALF_TILES * min_u64(seen, MEMORY_ATTENTION_TILE) * s.head_width * lanes;
    return 2 * min_u64(s.tokens, MEMORY_ATTENTION_TILE) * seen * lanes +
           (precision == PRECISION_BF16_WEIGHTS ? copies : precision == PRECISION_BF16 ? tiles : 0);
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
        w->half[back] = max_u64(w->half[back], max_u64(memory_attention_half_tiles(attention),
                                                       memory_attention_library(attention, back)));
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
        out = max_u64(max_u64(s.width, qkv * s.inner), max_u64(s.ff, max_u64(network->shared_width, network->experts)));
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
    const bool other = network_traits(network)->less_one || network_dropout(network, NETWORK_DROPS_EMBEDDING) > 0;
    if (other) norm = s.rows * s.width; /* the scaled gradient, or after dropout */
    return MEMORY_EMBEDDING_WORDS * s.rows + norm + 2 * s.rows * network->word_width; /* and their gradients */
}

/* Counts the boundary that a layer of the range hands on to the next one, or its gradient. */
static uint64_t need_listed(const struct memory_range *range, struct memory_sizes s, uint64_t layer,
                            struct workspace *w)
{
    const struct network *const network = range->network;
    if (!network->graph)
        return memory_words(network_profile_share(network, network->profile[layer].boundary_bytes, s.batch));
    const struct graph_kept kept = graph_layer_kept(network->graph, layer, s.batch);
    const uint64_t *const scratch = network->graph->scratch[layer];
    w->two_gradients = true;
    w->logits = max_u64(w->logits, kept.logits);
    w->graph[0] = max_u64(w->graph[0], s.batch * scratch[0]);
    w->graph[1] = max_u64(w->graph[1], s.batch * max_u64(scratch[0], scratch[1]));
    return layer + 1 < range->first + range->count ? graph_boundary(network->graph, layer, s.batch) : 0;
}

/* Counts gradients as wide as the feed-forward part. */
static uint64_t wide_words(const struct network *network, struct memory_sizes s)
{
    uint64_t each = network_chosen(network) * s.ff * (network_traits(network)->gated ? 2 : 1);
    if (network->experts > 0) each += network->experts + network->experts_chosen * s.width;
    if (network->experts > 0) /* of weights and of the factor, of each piece */
        each += max_u64(network->pieces, 1) * (network->experts_chosen + (network->shared_width > 0));
    each += 2 * network->shared_width;
    if (network_traits(network)->outer_norms) each = max_u64(each, s.width); /* the gradient of attention's result */
    return s.rows * each;
}

/* Counts what the members of a tensor group exchange. Heads of bert and vit have all rows, and their gradients. */
static void need_group(const struct network *network, struct memory_sizes s, uint64_t layer, struct workspace *w)
{
    const bool whole = network->family == NETWORK_BERT || network->family == NETWORK_VIT;
    const bool twice = whole && network_layer_kind(network, layer) == LAYER_HEAD;
    if (network->slice_of == 0) return;
    if (network->pieces > 1) w->pieces = max_u64(w->pieces, network->pieces * s.rows * s.width);
    w->norm_parts = 2 * s.width;
    if (!network->slices_rows) return;
    w->gathered = max_u64(w->gathered, (twice ? 2 : 1) * s.rows * s.width);
    w->d_stream2 = max_u64(w->d_stream2, s.rows * s.width);
}

/* Takes maxima: a range needs the largest of each. */
static void need_layer(const struct memory_range *range, uint64_t layer, struct workspace *w)
{
    struct network room;
    const struct network *network = network_of_layer(range->network, layer, &room);
    const struct memory_sizes s = memory_sizes_of(range, layer);
    uint64_t row_words = s.stream * s.width;
    bool streams = true;
    w->gradients = max_u64(w->gradients, gradient_words(network, layer));
    need_rounded(network, s, layer, w);
    need_group(network, s, layer, w);
    w->adapter = max_u64(w->adapter, s.rows * network_layer_rank(network, layer));
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
        /* the first part's results */
        if (network_traits(network)->parallel || network_dropout(network, NETWORK_DROPS_RESULTS) > 0)
            w->scratch = max_u64(w->scratch, max_u64(network->pieces, 1) * s.rows * s.width);
        need_attention(network, s, w);
        break;
    case LAYER_HEAD:
        w->logits = network_classifies(network)
                        ? s.batch * network->classes
                        : network_logit_rows(network, s.rows) * network->vocabulary;
        w->d_logits = half_words(w->logits);
        break;
    case LAYER_OPAQUE: row_words = need_listed(range, s, layer, w); break;
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
    if (how & UNIT_HALF) return max_u64(w->scratch, w->half[!forward]);
    return max_u64(w->scratch, w->graph[!forward]);
}

/* Numbers have the precision of activations. */
static void put_numbers(struct memory_layout *layout, const char *name, uint64_t elements, uint32_t how)
{
    memory_put(layout, name, how & UNIT_HALF ? half_words(elements) : elements);
}

static void lay_workspace(const struct workspace *w, enum unit_pass pass, uint32_t how,
                          struct memory_layout *layout)
{
    bool forward = pass == UNIT_FORWARD, keep = how & UNIT_KEEP;
    bool streams = !forward || !keep, out = how & UNIT_GRADIENTS_OUT;
    bool accumulate = how & UNIT_ACCUMULATE, inputs = unit_holds_inputs(pass, how);
    const uint32_t levels = how / UNIT_LEVEL;
    const bool apart = accumulate && levels > 0; /* each microbatch's gradients are a level */
    if (forward)
        memory_put(layout, "keep", keep && !inputs ? 0 : w->keep);
    else
        memory_put(layout, "gradients", (out && !accumulate) || apart ? 0 : w->gradients);
    put_numbers(layout, "d_stream", (forward ? streams : w->two_gradients) ? w->d_stream : 0, how);
    put_numbers(layout, "d_stream2", streams ? w->d_stream2 : 0, how);
    if (!forward) {
        put_numbers(layout, "d_qkv", w->d_qkv, how);
        put_numbers(layout, "d_wide", w->d_wide, how);
    }
    if (w->adapter > 0) put_numbers(layout, "adapter", (forward ? 1 : 2) * w->adapter, how);
    if (w->gathered > 0) put_numbers(layout, "gathered", w->gathered, how);
    if (w->norm_parts > 0 && !forward) memory_put(layout, "norm_parts", w->norm_parts);
    if (w->pieces > 0) memory_put(layout, "pieces", w->pieces);
    memory_put(layout, "scratch", scratch_words(w, how, forward));
    memory_put(layout, "logits", w->logits);
    if (!forward) memory_put(layout, "activations", inputs ? w->layer : w->activations);
    if (!forward && accumulate) memory_put(layout, "sums", out ? 0 : w->sums);
    if (how & UNIT_ROUNDED) memory_put(layout, "rounded", w->rounded);
    if ((how & UNIT_ROUNDED) && !forward) memory_put(layout, "d_rounded", w->d_rounded);
    if ((how & UNIT_HALF) && !forward) memory_put(layout, "d_rounded", w->d_logits);
    if (levels > 0 && !forward) memory_put(layout, "levels", levels * w->level);
    if (forward || !inputs) return;
    memory_put(layout, "head", w->head);
    if (pass == UNIT_LOSS) memory_put(layout, "inputs", w->inputs);
}

struct memory_level memory_level(const struct network *network, uint64_t first_layer, uint64_t layer_count)
{
    const bool tables = first_layer == 0 && network_layer_kind(network, 0) == LAYER_EMBEDDING &&
                        network->family != NETWORK_VIT;
    const bool normed = tables && network->family == NETWORK_BERT;
    const bool head = first_layer + layer_count == network->layer_count;
    const bool table = head && network->tied_head && network_first_trained(network) == 0;
    const uint64_t gradients = tables ? (normed ? 2 * network->width * sizeof(float) : 0)
                                      : memory_parameter_bytes(network, first_layer, layer_count);
    const uint64_t table_bytes =
        table ? network->vocabulary * network_word_width(network) * sizeof(float) : 0;
    struct memory_level level = {.table_offset = size_align(gradients, MEMORY_ALIGNMENT)};
    level.loss_offset = level.table_offset + size_align(table_bytes, MEMORY_ALIGNMENT);
    level.bytes = level.loss_offset + (head ? MEMORY_ALIGNMENT : 0);
    return level;
}

enum { WORKSPACE_ENTRIES_MAX = 18 };

static struct workspace need_pass(const struct network *network, uint64_t first, uint64_t count, uint32_t how,
                                  uint64_t microbatch, uint64_t sequence)
{
    uint32_t precision = how & UNIT_HALF ? PRECISION_BF16 : PRECISION_FP32;
    struct memory_range range = memory_pass_range(network, first, count, microbatch, sequence,
                                                  precision_bytes(precision), memory_lay_activations);
    struct workspace w = need_range(&range);
    w.activations = memory_words(memory_range_bytes(&range));
    w.inputs = memory_words(memory_input_bytes(network, first, count, microbatch, sequence, precision));
    w.sums = memory_words(memory_parameter_bytes(network, first, count));
    if (how >= UNIT_LEVEL) w.level = memory_words(memory_level(network, first, count).bytes);
    return w;
}

static struct memory_layout workspace_layout(const struct workspace *need, uint64_t first, enum unit_pass pass,
                                             uint32_t how, struct memory_entry *entries)
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
    *out = (struct memory_table){entries, layout.count, memory_layout_end(&layout)};
    return STATUS_OK;
}

uint64_t memory_workspace_bytes(const struct network *network, uint64_t first_layer,
                                uint64_t layer_count, enum unit_pass pass, uint32_t how,
                                uint64_t microbatch, uint64_t sequence)
{
    struct workspace need = need_pass(network, first_layer, layer_count, how, microbatch, sequence);
    struct memory_layout layout = workspace_layout(&need, first_layer, pass, how, NULL);
    return memory_layout_end(&layout);
}

void memory_workspaces(const struct network *network, uint64_t first_layer, uint64_t layer_count, uint32_t how,
                       uint64_t microbatch, uint64_t sequence, uint64_t bytes[3][UNIT_WAYS])
{
    struct workspace need = need_pass(network, first_layer, layer_count, how, microbatch, sequence);
    for (uint32_t pass = UNIT_FORWARD; pass <= UNIT_LOSS; pass++)
        for (uint32_t way = 0; way < UNIT_WAYS; way++) {
            struct memory_layout layout = workspace_layout(&need, first_layer, (enum unit_pass)pass, way | how, NULL);
            bytes[pass][way] = memory_layout_end(&layout);
        }
}

/* Takes the larger of blocks with and without experts. */
static uint64_t widest_words(const struct network *network, struct memory_sizes s)
{
    const uint64_t dense = network->dense_width > 0 ? s.rows * network->dense_width * 2 : 0;
    s.ff = network->ff_width;
    return max_u64(wide_words(network, s), dense);
}

struct memory_block_gradients memory_block_gradients(const struct network *network, uint64_t layer, uint64_t microbatch,
                                                     uint64_t sequence, uint32_t precision)
{
    const uint64_t number = precision_bytes(precision);
    const struct memory_range range =
        memory_pass_range(network, layer, 1, microbatch, sequence, number, memory_lay_activations);
    const struct memory_sizes s = memory_sizes_of(&range, layer);
    assert(network_layer_kind(network, layer) == LAYER_BLOCK);
    const uint64_t stream = size_align(s.stream * s.width * number, MEMORY_ALIGNMENT);
    const uint64_t qkv = size_align(s.rows * (s.inner + 2 * s.shared) * number, MEMORY_ALIGNMENT);
    const uint64_t wide = size_align(widest_words(network, s) * number, MEMORY_ALIGNMENT);
    return (struct memory_block_gradients){.d_middle_offset = stream,
                                           .d_qkv_offset = 2 * stream,
                                           .d_wide_offset = 2 * stream + qkv,
                                           .bytes = 2 * stream + qkv + wide};
}
