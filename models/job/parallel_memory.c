/*
 * First and last layer count separately, equal blocks once and multiplied.
 *
 * Parameters on a device come from network_slice(). 16-bit jobs with AdamW have 18 bytes per parameter as in
 * Megatron-LM: 2 of weight, 4 of gradient, 12 of states; ZeRO's paper has 16, with gradients of 2.
 */
#include "models/job/parallel_memory.h"

#include <assert.h>

#include "base/extreme.h"
#include "base/size.h"
#include "models/job/chunk_share.h"
#include "models/job/parallel_offload.h"
#include "models/network/network_graph.h"
#include "models/network/network_trained.h"
#include "models/network/network_traits.h"

/* --- chunks ------------------------------------------------------------------------------------- */

static bool is_listed(const struct job *job)
{
    return network_is_listed(&job->network);
}

/* --- parameters ------------------------------------------------------------------------------- */

/* Returns true if the table is tied and both ends are on different stages. */
static bool has_two_tables(const struct job *job)
{
    const struct parallel *p = &job->parallel;
    if (is_listed(job) || !job->network.tied_head) return false;
    return parallel_place(p, 0).stage != parallel_place(p, parallel_chunks(p) - 1).stage;
}

static bool has_table(const struct job *job)
{
    return !is_listed(job) && job->network.tied_head;
}

bool parallel_shares_table(const struct job *job)
{
    return has_table(job) && parallel_chunks(&job->parallel) > 1 && !has_two_tables(job);
}

bool parallel_trains_table(const struct job *job)
{
    return has_table(job) && network_first_trained(&job->network) == 0;
}

/* Counts one device's copy of the table; 0 when there is none. */
static uint64_t copied_parameters(const struct job *job)
{
    struct network slice = network_slice(&job->network, job->parallel.tensor, job->parallel.tensor_pieces);
    return has_two_tables(job) ? slice.vocabulary * network_word_width(&slice) : 0;
}

/* Returns those of them that are trained. */
static uint64_t tied_parameters(const struct job *job)
{
    return parallel_trains_table(job) ? copied_parameters(job) : 0;
}

static uint64_t count_parameters(const struct job *job, struct parallel_layers layers, uint64_t copy,
                                 uint64_t (*count)(const struct network *network, uint64_t layer))
{
    struct network slice = network_slice(&job->network, job->parallel.tensor, job->parallel.tensor_pieces);
    uint64_t sum = 0, end = layers.first + layers.count;
    for (uint64_t layer = layers.first, next; layer < end; layer = next) {
        next = min_u64(network_alike_end(&slice, layer), end);
        sum += (next - layer) * count(&slice, layer);
    }
    return end == slice.layer_count ? sum + copy : sum;
}

uint64_t parallel_parameters(const struct job *job, struct parallel_layers layers)
{
    return count_parameters(job, layers, tied_parameters(job), network_layer_trained_parameters);
}

uint64_t parallel_frozen_parameters(const struct job *job, struct parallel_layers layers)
{
    if (!job->network.trained) return 0;
    return count_parameters(job, layers, copied_parameters(job) - tied_parameters(job),
                            network_layer_frozen_parameters);
}

/* Beside rounded weights, adapters are fp32 (models/kernel/precision.h). */
static uint64_t trained_weight_bytes(const struct job *job)
{
    const bool adapters = job->network.trained && job->network.trained->rank > 0;
    return precision_bytes(precision_halves_tensor(job->precision, true, adapters) ? PRECISION_BF16 : PRECISION_FP32);
}

struct parameter_bytes parallel_parameter_bytes(const struct job *job)
{
    uint64_t moments = optimizer_moments(job->optimizer.kind) * precision_bytes(job->optimizer.moments);
    uint64_t full = precision_bytes(PRECISION_FP32);
    /* the executor's sums are fp32 */
    bool drains = parallel_drains(job), sums = parallel_is_carried_out(&job->parallel);
    return (struct parameter_bytes){
        .weight = trained_weight_bytes(job),
        .gradient = sums ? full : precision_bytes(drains ? job->precision : job->gradients),
        .state = moments + (trained_weight_bytes(job) == full ? 0 : full),
    };
}

uint64_t parallel_tied_bytes(const struct job *job)
{
    return tied_parameters(job) * parallel_parameter_bytes(job).gradient;
}

static uint64_t share_of(uint64_t parameters, uint32_t data)
{
    return parameters / data + (parameters % data > 0);
}

uint64_t parallel_joined_bytes(const struct job *job)
{
    const struct parallel *p = &job->parallel;
    uint64_t parameters = tied_parameters(job);
    if ((pipeline_is_asynchronous(p->schedule) && !parallel_is_carried_out(p)) || parallel_drains(job)) return 0;
    if (parallel_splits(p, ZERO_GRADIENTS)) parameters = share_of(parameters, p->data);
    if (parallel_splits(p, ZERO_GRADIENTS) && parallel_is_carried_out(p))
        parameters = size_align(parameters, CHUNK_SHARE_ROUNDING);
    return parameters * parallel_parameter_bytes(job).gradient;
}

bool parallel_waits_for_first(const struct job *job, uint32_t chunk)
{
    const struct parallel *p = &job->parallel;
    if (!pipeline_is_asynchronous(p->schedule) || !parallel_is_carried_out(p) || p->pipeline == 1) return false;
    if (job_clips(job)) return parallel_place(p, chunk).stage > 0;
    return chunk > 0 && parallel_joins_chunk(job, chunk);
}

uint32_t parallel_chunk_staleness(const struct job *job, uint32_t chunk)
{
    return parallel_staleness(&job->parallel, parallel_waits_for_first(job, chunk) ? 0 : chunk);
}

uint32_t parallel_gradient_count(const struct job *job, uint32_t chunk)
{
    const struct parallel *p = &job->parallel;
    if (!parallel_waits_for_first(job, chunk)) return 1;
    return p->schedule == PIPELINE_2BW ? 2 : 1 + parallel_staleness(p, 0) - parallel_staleness(p, chunk);
}

uint32_t parallel_joined_groups(const struct parallel *parallel)
{
    uint32_t common = parallel_replicas(parallel, 0), rest = parallel_replicas(parallel, parallel->pipeline - 1);
    while (rest > 0) {
        uint32_t next = common % rest;
        common = rest;
        rest = next;
    }
    return common;
}

struct rank_state parallel_zero_state(uint64_t parameters, struct parameter_bytes each, uint32_t data,
                                      uint32_t level)
{
    uint64_t share = share_of(parameters, data);
    return (struct rank_state){
        .weight_bytes = each.weight * (level >= ZERO_WEIGHTS ? share : parameters),
        .gradient_bytes = each.gradient * (level >= ZERO_GRADIENTS ? share : parameters),
        .state_bytes = each.state * (level >= ZERO_STATES ? share : parameters),
    };
}

uint64_t parallel_updated_parameters(const struct job *job, struct parallel_layers layers)
{
    uint64_t all = parallel_parameters(job, layers);
    return parallel_splits(&job->parallel, ZERO_STATES) ? share_of(all, job->parallel.data) : all;
}

struct rank_state parallel_state(const struct job *job, struct parallel_layers layers)
{
    struct rank_state state = parallel_zero_state(parallel_parameters(job, layers), parallel_parameter_bytes(job),
                                                  job->parallel.data, job->parallel.zero);
    const uint64_t frozen = parallel_frozen_parameters(job, layers);
    state.weight_bytes += precision_weight_bytes(job->precision) *
                          (parallel_splits(&job->parallel, ZERO_WEIGHTS) ? share_of(frozen, job->parallel.data)
                                                                         : frozen);
    if (parallel_offloads(&job->parallel)) state.state_bytes = state.gradient_bytes = 0;
    if (job->parallel.offload == OFFLOAD_WEIGHTS) state.weight_bytes = 0;
    return state;
}

struct rank_state parallel_stage_state(const struct job *job, uint32_t stage)
{
    struct rank_state sum = {0};
    for (uint32_t chunk = 0; chunk < parallel_chunks(&job->parallel); chunk++) {
        if (parallel_place(&job->parallel, chunk).stage != stage) continue;
        struct rank_state of = parallel_state(job, parallel_layers(job, chunk));
        sum.weight_bytes += of.weight_bytes;
        sum.gradient_bytes += of.gradient_bytes;
        sum.state_bytes += of.state_bytes;
    }
    return sum;
}

struct rank_state parallel_whole_state(const struct job *job, struct parallel_layers layers)
{
    struct rank_state whole = parallel_zero_state(parallel_parameters(job, layers), parallel_parameter_bytes(job), 1,
                                                  ZERO_NOTHING);
    if (parallel_fetches_weights(&job->parallel))
        whole.weight_bytes += parallel_frozen_parameters(job, layers) * precision_weight_bytes(job->precision);
    return whole;
}

enum compression_code parallel_gradient_code(const struct job *job)
{
    const struct compression *compression = &job->compression[COMPRESSION_GRADIENTS];
    if (!parallel_is_carried_out(&job->parallel)) return COMPRESSION_PLAIN;
    if (compression_is_set(compression)) return compression_code(compression);
    return job->gradients == PRECISION_BF16 ? COMPRESSION_BF16 : COMPRESSION_PLAIN;
}

bool parallel_encodes_gradients(const struct job *job)
{
    return compression_is_set(&job->compression[COMPRESSION_GRADIENTS]) ||
           parallel_gradient_code(job) != COMPRESSION_PLAIN;
}

uint64_t parallel_reduced_bytes(const struct job *job, struct parallel_layers layers)
{
    const enum compression_code code = parallel_gradient_code(job);
    if (code != COMPRESSION_PLAIN)
        return compression_code_bytes(code, parallel_whole_state(job, layers).gradient_bytes / sizeof(float));
    return compression_bytes(&job->compression[COMPRESSION_GRADIENTS],
                             parallel_whole_state(job, layers).gradient_bytes);
}

/* --- activations ------------------------------------------------------------------------------ */

/* Numbers of tensors as wide as the network, for the device's rows and for all rows. */
struct numbers {
    uint64_t element_bytes, tokens, rows, own, whole;
    uint64_t seen, seen_own; /* rows of an encoder's result, as `rows` and `own` */
    bool joins;              /* the result is normed by this layer */
    struct network slice;
    uint64_t layer;
};

static uint64_t sequence_members(const struct parallel *p)
{
    return p->sequence ? p->tensor : 1;
}

static struct numbers numbers_of(const struct job *job, uint64_t layer)
{
    const struct parallel *p = &job->parallel;
    const struct network *n = &job->network;
    struct network room;
    uint64_t tokens = network_layer_tokens(n, layer, job->sequence), rows = job->microbatch * tokens;
    uint64_t seen = network_crosses(n, layer) ? job->microbatch * job->sequence : 0, members = sequence_members(p);
    return (struct numbers){.element_bytes = precision_bytes(job->precision), .tokens = tokens, .rows = rows,
                            .own = rows / members * n->width, .whole = rows * n->width,
                            .seen = seen, .seen_own = seen / members * n->width, .joins = network_joins(n, layer),
                            .slice = network_slice(network_of_layer(n, layer, &room), p->tensor, p->tensor_pieces),
                            .layer = layer};
}

static uint64_t projections(const struct numbers *s)
{
    return s->rows * s->slice.head_width * (s->slice.heads + 2 * network_kv_heads(&s->slice));
}

/* Counts the same for attention to an encoder's result. */
static uint64_t cross_projections(const struct numbers *s)
{
    return s->slice.head_width * (s->rows * s->slice.heads + 2 * s->seen * network_kv_heads(&s->slice));
}

static uint64_t scores(const struct job *job, const struct numbers *s)
{
    uint64_t seen = s->seen > 0 ? job->sequence : 0;
    return s->rows * s->slice.heads * (s->tokens + job->parallel.slice_begin + seen);
}

/* Counts a block's columns per row, `of_each` of the width F each; with experts also rows sent to them and back, and
 * the router's choice. */
static uint64_t wide(const struct job *job, const struct numbers *s, uint64_t of_each)
{
    struct network room;
    const struct network *n = network_of_layer(&job->network, s->layer, &room);
    uint64_t columns = network_chosen(n) * of_each * s->slice.ff_width;
    if (n->experts > 0) columns += n->experts + 2 * n->experts_chosen * n->width;
    if (n->shared_width > 0) columns += of_each * s->slice.shared_width + n->width + 1;
    return s->rows * columns;
}

/* Leaves out the input. */
static uint64_t block_bytes(const struct job *job, const struct numbers *s, uint32_t recompute,
                            bool dropout)
{
    if (recompute == RECOMPUTE_FULL) return 0;
    uint64_t attention = s->rows * s->slice.heads * s->slice.head_width;
    const struct network_traits *traits = network_traits(&job->network);
    uint64_t streams = network_block_norms(&job->network) + (traits->parallel ? 0 : 1); /* norms, middle */
    uint64_t cross = s->seen > 0 ? 2 * s->own + cross_projections(s) + attention : 0;
    uint64_t plain = traits->qk_norm ? projections(s) - s->rows * s->slice.head_width * network_kv_heads(&s->slice) : 0;
    uint64_t bytes = s->element_bytes * (streams * s->own + projections(s) + plain + attention + cross +
                                         wide(job, s, traits->gated ? 3 : 2));
    if (dropout) bytes += (s->seen > 0 ? 3 : 2) * s->own;
    if (recompute == RECOMPUTE_NONE)
        bytes += scores(job, s) * (dropout ? 2 * s->element_bytes + 1 : s->element_bytes);
    return bytes;
}

static uint64_t logits(const struct job *job, const struct numbers *s)
{
    return network_classifies(&job->network) ? job->microbatch * job->network.classes : s->rows * s->slice.vocabulary;
}

static uint64_t head_bytes(const struct job *job, const struct numbers *s)
{
    uint64_t stream = s->own;                                                          /* norm */
    if (job->network.family == NETWORK_BERT) stream = 3 * s->own;                      /* transform, gelu */
    if (job->network.post_norm) stream = 0;
    if (job->network.word_width > 0) stream += s->own / job->network.width * job->network.word_width; /* projected */
    if (network_classifies(&job->network)) stream = 2 * job->microbatch * job->network.width; /* class */
    return s->element_bytes * stream + sizeof(float) * logits(job, s);
}

/* A listed layer. Operations keep their output; a profile counts it among its activations. */
struct listed {
    uint64_t activation_bytes, output_bytes, boundary_bytes, work_bytes;
};

static struct listed listed_of(const struct job *job, uint64_t layer)
{
    const struct network *n = &job->network;
    if (n->graph) {
        struct graph_kept kept = graph_layer_kept(n->graph, layer, job->microbatch);
        return (struct listed){kept.inner * sizeof(float), kept.output * sizeof(float),
                               graph_boundary(n->graph, layer, job->microbatch) * sizeof(float),
                               (2 * kept.widest + kept.logits) * sizeof(float)};
    }
    const struct layer_profile *profile = &n->profile[layer];
    return (struct listed){
        .activation_bytes = network_profile_share(n, profile->activation_bytes, job->microbatch),
        .boundary_bytes = network_profile_share(n, profile->boundary_bytes, job->microbatch)};
}

/* Counts bytes that the stage's next bucket keeps, which must not count twice. */
static uint64_t kept_by_next(const struct job *job, uint64_t last)
{
    if (job->network.graph || parallel_buckets(&job->parallel) == 1 || last + 1 == job->network.layer_count) return 0;
    if (parallel_crosses(job, last)) return 0;
    const struct listed layer = listed_of(job, last);
    return min_u64(layer.boundary_bytes, layer.activation_bytes);
}

static uint64_t listed_kept(const struct job *job, struct parallel_layers layers, uint32_t recompute)
{
    uint64_t sum = 0;
    bool again = recompute == RECOMPUTE_FULL;
    for (uint64_t i = 0; i < layers.count; i++) {
        const struct listed layer = listed_of(job, layers.first + i);
        bool last = i + 1 == layers.count;
        if (!again) sum += layer.activation_bytes + (last ? 0 : layer.output_bytes);
        else if (!last) sum += job->network.graph ? layer.output_bytes : layer.boundary_bytes;
        if (!again && last) sum -= kept_by_next(job, layers.first + i);
    }
    return parallel_slice_share(&job->parallel, sum);
}

static uint64_t listed_workspace(const struct job *job, struct parallel_layers layers, uint32_t recompute)
{
    uint64_t bytes = 0;
    bool again = recompute == RECOMPUTE_FULL;
    for (uint64_t i = 0; i < layers.count; i++) {
        const struct listed layer = listed_of(job, layers.first + i);
        bytes = max_u64(bytes, layer.work_bytes + (again ? layer.activation_bytes : 0));
    }
    return parallel_slice_share(&job->parallel, bytes);
}

uint64_t parallel_boundary_bytes(const struct job *job, uint64_t layer)
{
    const struct compression *compression = &job->compression[COMPRESSION_BOUNDARIES];
    uint64_t bytes = parallel_plain_boundary_bytes(job, layer);
    if (!parallel_compresses(job, layer)) return bytes;
    return compression_bytes(compression, bytes);
}

uint64_t parallel_plain_boundary_bytes(const struct job *job, uint64_t layer)
{
    assert(layer < job->network.layer_count);
    if (is_listed(job)) return parallel_slice_share(&job->parallel, listed_of(job, layer).boundary_bytes);
    uint64_t rows = job->microbatch * network_tokens(&job->network, job->sequence);
    return precision_bytes(job->precision) * (rows / sequence_members(&job->parallel)) * job->network.width;
}

/* Heads divide the width, and tensor groups the heads. */
uint64_t parallel_sent_bytes(const struct job *job, uint64_t layer)
{
    return parallel_boundary_bytes(job, layer) / (job->parallel.scatter ? job->parallel.tensor : 1);
}

uint64_t parallel_kept_bytes(const struct job *job, struct parallel_layers layers, bool dropout)
{
    return compression_bytes(&job->compression[COMPRESSION_ACTIVATIONS],
                             parallel_plain_kept_bytes(job, layers, dropout));
}

/* Counts kept bytes; a recomputed stage has none. */
static uint64_t kept_so(const struct job *job, struct parallel_layers layers, uint32_t recompute, bool dropout)
{
    uint64_t sum = 0, end = layers.first + layers.count;
    if (recompute == RECOMPUTE_STAGE) return 0;
    if (is_listed(job)) return listed_kept(job, layers, recompute);
    for (uint64_t layer = layers.first, next; layer < end; layer = next) {
        next = min_u64(network_alike_end(&job->network, layer), end);
        struct numbers s = numbers_of(job, layer);
        uint64_t outputs = next - layer - (next == end); /* the last one's is the boundary */
        sum += outputs * s.element_bytes * (s.own + (s.joins ? s.seen_own : 0));
        switch (network_layer_kind(&job->network, layer)) {
        case LAYER_EMBEDDING: sum += dropout ? s.own : 0; break;
        case LAYER_BLOCK: sum += (next - layer) * block_bytes(job, &s, recompute, dropout); break;
        case LAYER_HEAD: sum += head_bytes(job, &s); break;
        case LAYER_OPAQUE: break;
        }
    }
    return sum;
}

uint64_t parallel_plain_kept_bytes(const struct job *job, struct parallel_layers layers, bool dropout)
{
    return kept_so(job, layers, parallel_recompute(job, layers), dropout);
}

/* --- workspace -------------------------------------------------------------------------------- */

static uint64_t block_workspace(const struct job *job, const struct numbers *s, uint32_t recompute)
{
    uint64_t gradients = wide(job, s, network_traits(&job->network)->gated ? 2 : 1);
    uint64_t widest = max_u64(projections(s), gradients);
    if (s->seen > 0) widest = max_u64(widest, cross_projections(s));
    uint64_t bytes = s->element_bytes * (s->own + s->seen_own + widest);
    /* rounded */
    if (job->precision == PRECISION_BF16_WEIGHTS) bytes += 2 * precision_weight_bytes(job->precision) * widest;
    if (job->parallel.sequence) bytes += s->element_bytes * max_u64(s->whole, s->seen * job->network.width);
    if (recompute == RECOMPUTE_FULL) bytes += block_bytes(job, s, RECOMPUTE_NONE, false);
    if (recompute == RECOMPUTE_SELECTIVE) bytes += s->element_bytes * scores(job, s);
    return bytes;
}

static uint64_t head_workspace(const struct job *job, const struct numbers *s)
{
    uint64_t rounded = job->precision == PRECISION_FP32 ? 0 : precision_weight_bytes(job->precision) * logits(job, s);
    return s->element_bytes * 2 * s->whole + rounded;
}

static uint64_t decoded_bytes(const struct job *job, struct parallel_layers layers)
{
    uint64_t bytes = 0, end = layers.first + layers.count;
    if (compression_is_set(&job->compression[COMPRESSION_ACTIVATIONS]))
        bytes += parallel_plain_kept_bytes(job, layers, false);
    if (layers.first > 0 && parallel_compresses(job, layers.first - 1))
        bytes += 2 * parallel_plain_boundary_bytes(job, layers.first - 1);
    if (end < job->network.layer_count && parallel_compresses(job, end - 1))
        bytes += parallel_plain_boundary_bytes(job, end - 1);
    return bytes;
}

static uint64_t layers_workspace(const struct job *job, struct parallel_layers layers, uint32_t recompute)
{
    uint64_t bytes = 0, end = layers.first + layers.count;
    if (is_listed(job)) return listed_workspace(job, layers, recompute);
    for (uint64_t layer = layers.first; layer < end; layer = network_alike_end(&job->network, layer)) {
        struct numbers s = numbers_of(job, layer);
        switch (network_layer_kind(&job->network, layer)) {
        case LAYER_EMBEDDING: bytes = max_u64(bytes, s.element_bytes * s.whole); break;
        case LAYER_BLOCK: bytes = max_u64(bytes, block_workspace(job, &s, recompute)); break;
        case LAYER_HEAD: bytes = max_u64(bytes, head_workspace(job, &s)); break;
        case LAYER_OPAQUE: break;
        }
    }
    return bytes;
}

uint64_t parallel_workspace_bytes(const struct job *job, struct parallel_layers layers)
{
    uint32_t recompute = parallel_recompute(job, layers);
    uint64_t decoded = decoded_bytes(job, layers);
    if (recompute != RECOMPUTE_STAGE) return layers_workspace(job, layers, recompute) + decoded;
    return kept_so(job, layers, RECOMPUTE_NONE, false) + layers_workspace(job, layers, RECOMPUTE_NONE) + decoded;
}
