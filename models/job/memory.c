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
#include <string.h>

#include "base/extreme.h"
#include "base/try.h"
#include "models/job/memory_layout.h"
#include "models/network/network_graph.h"
#include "models/network/network_trained.h"
#include "models/network/network_traits.h"

/* --- parameters ----------------------------------------------------------------------------- */

static bool is_rounded(struct state_format format, const struct tensor_spec *spec)
{
    return precision_halves_tensor(format.weights, spec->matrix, spec->adapter);
}

/* Returns the bytes of a tensor's number; 0 if the part does not store it. */
static uint64_t element_bytes(struct state_format format, uint32_t part, const struct tensor_spec *spec)
{
    const bool rounded = is_rounded(format, spec);
    if (spec->frozen != (part == STATE_FROZEN)) return 0;
    if (spec->running && part != STATE_WEIGHTS) return 0;
    switch ((enum state_part)part) {
    case STATE_FROZEN:
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
        uint64_t bytes = element_bytes(range->format, range->part, &tensors[i]);
        layout->rounded = is_rounded(range->format, &tensors[i]);
        /* an embedding's tables are cut between any two rows */
        if (embedding && i > 0) layout->alignment = bytes > 0 ? bytes : 1;
        memory_put_bytes(layout, tensors[i].name, tensors[i].elements * bytes);
    }
}

static struct memory_range part_range(const struct network *network, uint64_t first, uint64_t count,
                                      enum state_part part, struct state_format format)
{
    struct memory_range range = memory_range_of(network, first, count);
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
    return memory_range_table(&range, arena, out, err);
}

uint64_t memory_tensor_count(const struct network *network, uint64_t first_layer,
                             uint64_t layer_count)
{
    struct tensor_spec specs[LAYER_TENSORS_MAX];
    uint64_t end = first_layer + layer_count, sum = 0;
    for (uint64_t layer = first_layer, next; layer < end; layer = next) {
        next = network_alike_end(network, layer);
        if (next > end) next = end;
        const uint32_t count = network_layer_shapes(network, layer, specs);
        for (uint32_t i = 0; i < count; i++) sum += specs[i].frozen ? 0 : next - layer;
    }
    return sum;
}

uint64_t memory_parameter_bytes(const struct network *network, uint64_t first_layer,
                                uint64_t layer_count)
{
    struct memory_range range = parameter_range(network, first_layer, layer_count);
    return memory_range_bytes(&range);
}

/* Returns a row of an embedding's tables, which are frozen together. */
static struct tensor_spec table_row(const struct network *network)
{
    return (struct tensor_spec){.matrix = true, .frozen = network_first_trained(network) > 0};
}

struct state_layout memory_state(const struct network *network, uint64_t first_layer,
                                 uint64_t layer_count, struct state_format format)
{
    const struct tensor_spec row = table_row(network);
    struct state_layout out = {0};
    for (uint32_t part = 0; part < STATE_PARTS; part++) {
        struct memory_range range = part_range(network, first_layer, layer_count, part, format);
        out.parts[part].offset_bytes = out.bytes;
        if (part == STATE_FROZEN && format.apart) continue;
        out.parts[part].bytes = memory_range_bytes(&range);
        out.parts[part].row_bytes = network->width * element_bytes(format, part, &row);
        out.bytes += out.parts[part].bytes;
    }
    return out;
}

struct state_layout memory_state_rows(const struct network *network, uint64_t rows,
                                      struct state_format format)
{
    const struct tensor_spec row = table_row(network);
    struct state_layout out = {0};
    for (uint64_t bytes = precision_bytes(PRECISION_FP32); bytes > 0; bytes /= 2)
        for (uint32_t part = 0; part < STATE_PARTS; part++) {
            if (element_bytes(format, part, &row) != bytes || (part == STATE_FROZEN && format.apart)) continue;
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
    memory_lay_layer(parameters, layer, &all);
    memory_lay_layer(part, layer, &own);
    for (uint32_t i = 0; i < all.count; i++) {
        const struct memory_entry *from = &entries[0][i], *to = &entries[1][i];
        if (at >= from->offset_bytes + from->bytes) continue;
        if (at <= from->offset_bytes) return to->offset_bytes;
        return to->offset_bytes +
               (at - from->offset_bytes) / sizeof(float) * (to->bytes / (from->bytes / sizeof(float)));
    }
    return memory_layout_end(&own);
}

uint64_t memory_state_offset(const struct network *network, uint64_t first_layer, uint64_t layer_count,
                             struct state_format format, enum state_part part, uint64_t at)
{
    const struct memory_range parameters = parameter_range(network, first_layer, layer_count);
    const struct memory_range range = part_range(network, first_layer, layer_count, part, format);
    uint64_t sum = 0, end = first_layer + layer_count;
    for (uint64_t layer = first_layer, next; layer < end; layer = next) {
        struct memory_layout all = {0}, own = {0};
        next = memory_run_end(&parameters, layer);
        memory_lay_layer(&parameters, layer, &all);
        memory_lay_layer(&range, layer, &own);
        const uint64_t each = memory_layout_end(&all), alike = (next - layer) * each;
        if (at < alike)
            return sum + at / each * memory_layout_end(&own) + offset_in_layer(&parameters, &range, layer, at % each);
        at -= alike;
        sum += (next - layer) * memory_layout_end(&own);
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
        TRY(memory_range_table(&range, arena, &tables.parts[part], err));
        assert(tables.parts[part].bytes == tables.layout.parts[part].bytes || (part == STATE_FROZEN && format.apart));
    }
    *out = tables;
    return STATUS_OK;
}

/* --- activations ---------------------------------------------------------------------------- */

static uint64_t norm_stats(const struct network *network, struct memory_sizes s)
{
    return network_traits(network)->no_mean ? s.own : 2 * s.own;
}

static void lay_attention(const struct network *network, struct memory_sizes s, struct memory_layout *layout)
{
    if (network_traits(network)->fused_qkv) {
        memory_put_kept(layout, "qkv", s.rows * 3 * s.inner);
    } else {
        memory_put_kept(layout, "q", s.rows * s.inner);
        memory_put_kept(layout, "k", s.rows * s.shared);
        memory_put_kept(layout, "v", s.rows * s.shared);
    }
    if (network_traits(network)->qk_norm) {
        memory_put_kept(layout, "plain_q", s.rows * s.inner);
        memory_put_kept(layout, "plain_k", s.rows * s.shared);
        memory_put_statistics(layout, "qk_stats", s.rows * (s.heads + network_kv_heads(network)));
    }
    memory_put_kept(layout, "attention", s.rows * s.inner);
    memory_put_statistics(layout, "attention_stats", s.rows * s.heads);
}

static void lay_cross(const struct network *network, struct memory_sizes s, struct memory_layout *layout)
{
    if (s.seen == 0) return;
    memory_put_kept(layout, "cross_norm", s.rows * s.width);
    memory_put_statistics(layout, "cross_norm_stats", norm_stats(network, s));
    memory_put_kept(layout, "cross_q", s.rows * s.inner);
    memory_put_kept(layout, "cross_k", s.seen * s.shared);
    memory_put_kept(layout, "cross_v", s.seen * s.shared);
    memory_put_kept(layout, "cross_attention", s.rows * s.inner);
    memory_put_statistics(layout, "cross_attention_stats", s.rows * s.heads);
    memory_put_kept(layout, "cross_middle", s.rows * s.width);
    if (s.joins) memory_put_statistics(layout, "encoded_stats", s.seen);
}

static void lay_block_pre_norm(const struct network *network, struct memory_sizes s,
                               struct memory_layout *layout)
{
    memory_put_kept(layout, "norm1", s.own * s.width);
    memory_put_statistics(layout, "norm1_stats", norm_stats(network, s));
    lay_attention(network, s, layout);
    const struct network_traits *traits = network_traits(network);
    const uint64_t sent = s.rows * network_chosen(network); /* of all feed-forward parts */
    const uint64_t pieces = max_u64(network->pieces, 1);    /* of a sum, each with all rows */
    if (!traits->parallel) memory_put_kept(layout, "middle", s.own * s.width);
    lay_cross(network, s, layout);
    if (!traits->one_norm) {
        memory_put_kept(layout, "norm2", s.own * s.width);
        memory_put_statistics(layout, "norm2_stats", norm_stats(network, s));
    }
    if (traits->outer_norms) { /* inputs of the norms */
        memory_put_kept(layout, "attended", s.own * s.width);
        memory_put_kept(layout, "made", s.own * s.width);
        memory_put_statistics(layout, "outer_stats", 2 * norm_stats(network, s));
    }
    if (network->shared_width > 0) {
        memory_put_kept(layout, "shared_gate", s.rows * network->shared_width);
        memory_put_kept(layout, "shared_up", s.rows * network->shared_width);
        memory_put_kept(layout, "shared_swiglu", s.rows * network->shared_width);
        memory_put_kept(layout, "shared_made", s.rows * (pieces * s.width + 1));
    }
    if (network->experts > 0) {
        memory_put_kept(layout, "router", s.rows * network->experts);
        memory_put_statistics(layout, "routes", 4 * sent + network->experts + 1); /* struct kernel_routes */
        memory_put_kept(layout, "sent", sent * s.width);
        memory_put_kept(layout, "returned", pieces * sent * s.width);
    }
    if (traits->gated) {
        memory_put_kept(layout, "gate", sent * s.ff);
        memory_put_kept(layout, "up", sent * s.ff);
        memory_put_kept(layout, "swiglu", sent * s.ff);
    } else {
        memory_put_kept(layout, "fc", sent * s.ff);
        memory_put_kept(layout, "gelu", sent * s.ff);
    }
}

static void lay_block_post_norm(const struct network *network, struct memory_sizes s,
                                struct memory_layout *layout)
{
    lay_attention(network, s, layout);
    memory_put_kept(layout, "middle", s.own * s.width);
    memory_put_kept(layout, "norm1", s.own * s.width);
    memory_put_statistics(layout, "norm1_stats", s.own * 2);
    memory_put_kept(layout, "fc", s.rows * s.ff);
    memory_put_kept(layout, "gelu", s.rows * s.ff);
    memory_put_kept(layout, "sum", s.own * s.width);
    memory_put_statistics(layout, "norm2_stats", s.own * 2);
}

static void lay_head(const struct network *network, struct memory_sizes s, struct memory_layout *layout)
{
    if (network->family == NETWORK_BERT && network_classifies(network)) {
        memory_put_kept(layout, "class", s.batch * s.width);
        memory_put_kept(layout, "pooled", s.batch * s.width);
        return;
    }
    if (network->family == NETWORK_BERT) {
        s.own = s.rows; /* every member of a tensor group has all of its head's rows */
        memory_put_kept(layout, "transform", s.rows * s.width);
        memory_put_kept(layout, "gelu", s.rows * s.width);
    }
    if (network->word_width > 0) memory_put_kept(layout, "projected", s.rows * network->word_width);
    if (network->post_norm) return; /* its input is normed already */
    if (network->family == NETWORK_VIT) { /* only the class tokens */
        memory_put_kept(layout, "class", s.batch * s.width);
        memory_put_kept(layout, "normf", s.batch * s.width);
        memory_put_statistics(layout, "normf_stats", s.batch * 2);
        return;
    }
    memory_put_kept(layout, "normf", s.own * s.width);
    memory_put_statistics(layout, "normf_stats", norm_stats(network, s));
}

/* Lists a layer. An output that is read after the range is in the boundary; the layer's own backward pass may read a
 * copy. */
static void lay_listed(const struct memory_range *range, uint64_t layer, struct memory_layout *layout)
{
    const struct network *network = range->network;
    if (!network->graph) {
        memory_put_kept(layout, "activations",
                        memory_words(network_profile_share(network, network->profile[layer].activation_bytes,
                                                           range->microbatch)));
        return;
    }
    const struct graph_kept kept = graph_layer_kept(network->graph, layer, range->microbatch);
    memory_put_kept(layout, "activations", kept.inner);
    memory_put_kept(layout, "output", layer + 1 < range->first + range->count ? kept.output : kept.own);
}

void memory_lay_activations(const struct memory_range *range, uint64_t layer, struct memory_layout *layout)
{
    struct network room;
    const struct network *network = network_of_layer(range->network, layer, &room);
    const struct memory_sizes s = memory_sizes_of(range, layer);
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
    memory_put_kept(layout, "output", s.own * s.width);
    if (s.joins) memory_put_kept(layout, "encoded", s.seen * s.width);
}

enum status memory_activations(const struct network *network, uint64_t first_layer,
                               uint64_t layer_count, uint64_t microbatch, uint64_t sequence, uint32_t precision,
                               struct arena *arena, struct memory_table *out, struct error *err)
{
    struct memory_range range = memory_pass_range(network, first_layer, layer_count, microbatch, sequence,
                                                  precision_bytes(precision), memory_lay_activations);
    return memory_range_table(&range, arena, out, err);
}

uint64_t memory_activation_bytes(const struct network *network, uint64_t first_layer, uint64_t layer_count,
                                 uint64_t microbatch, uint64_t sequence, uint32_t precision)
{
    struct memory_range range = memory_pass_range(network, first_layer, layer_count, microbatch, sequence,
                                                  precision_bytes(precision), memory_lay_activations);
    return memory_range_bytes(&range);
}

uint64_t memory_boundary_bytes(const struct network *network, uint64_t layer, uint64_t microbatch,
                               uint64_t sequence, uint32_t precision)
{
    assert(layer < network->layer_count);
    if (network->graph)
        return graph_boundary(network->graph, layer, microbatch) * sizeof(float);
    if (network->family == NETWORK_PROFILE)
        return network_profile_share(network, network->profile[layer].boundary_bytes, microbatch);
    const uint64_t rows = microbatch * network_tokens(network, sequence) /
                          (network->slices_rows ? network->slice_of : 1);
    return rows * network->width * precision_bytes(precision);
}

/* --- inputs --------------------------------------------------------------------------------- */

/* Lists inputs: a layer's output is the next layer's input. */
static void lay_inputs(const struct memory_range *range, uint64_t layer, struct memory_layout *layout)
{
    if (layer + 1 == range->first + range->count) return;
    const struct memory_sizes s = memory_sizes_of(range, layer);
    uint64_t elements = (s.own + (s.joins ? s.seen : 0)) * s.width;
    if (range->network->family == NETWORK_PROFILE)
        elements = memory_words(network_profile_share(range->network, range->network->profile[layer].boundary_bytes,
                                               range->microbatch));
    if (range->network->graph)
        elements = graph_layer_kept(range->network->graph, layer, range->microbatch).output;
    layout->layer = layer + 1;
    memory_put_kept(layout, "input", elements);
}

enum status memory_inputs(const struct network *network, uint64_t first_layer,
                          uint64_t layer_count, uint64_t microbatch, uint64_t sequence, uint32_t precision,
                          struct arena *arena, struct memory_table *out, struct error *err)
{
    struct memory_range range = memory_pass_range(network, first_layer, layer_count, microbatch, sequence,
                                                  precision_bytes(precision), lay_inputs);
    return memory_range_table(&range, arena, out, err);
}

uint64_t memory_input_bytes(const struct network *network, uint64_t first_layer, uint64_t layer_count,
                            uint64_t microbatch, uint64_t sequence, uint32_t precision)
{
    struct memory_range range = memory_pass_range(network, first_layer, layer_count, microbatch, sequence,
                                                  precision_bytes(precision), lay_inputs);
    return memory_range_bytes(&range);
}

/* --- encoded -------------------------------------------------------------------------------- */

static struct memory_range coded_range(const struct network *network, uint64_t first, uint64_t count, uint32_t how,
                                       uint64_t microbatch, uint64_t sequence, enum compression_code code)
{
    struct memory_range range =
        memory_pass_range(network, first, count, microbatch, sequence, precision_bytes(PRECISION_FP32),
                          how & UNIT_INPUTS ? lay_inputs : memory_lay_activations);
    range.code = code;
    return range;
}

enum status memory_coded(const struct network *network, uint64_t first_layer, uint64_t layer_count, uint32_t how,
                         uint64_t microbatch, uint64_t sequence, enum compression_code code, struct arena *arena,
                         struct memory_table *out, struct error *err)
{
    const struct memory_range range = coded_range(network, first_layer, layer_count, how, microbatch, sequence, code);
    return memory_range_table(&range, arena, out, err);
}

uint64_t memory_coded_bytes(const struct network *network, uint64_t first_layer, uint64_t layer_count, uint32_t how,
                            uint64_t microbatch, uint64_t sequence, enum compression_code code)
{
    const struct memory_range range = coded_range(network, first_layer, layer_count, how, microbatch, sequence, code);
    return memory_range_bytes(&range);
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
