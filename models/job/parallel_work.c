/*
 * Blocks are computed once and multiplied (models/network/network_work.c).
 *
 * The first product of a pair is split by columns, the second by rows: its results are added up, and so are the
 * gradients of the first product's input. With sequence parallelism each sum leaves a member its own rows
 * (reduce-scatter), and an all-gather precedes the next product, and once more the weight gradients, since each member
 * kept only a share.
 *
 *     tensor      x -> norm -> [qkv attention proj] -> sum + x -> norm -> [fc gelu fc2] -> sum + x
 *                              f                       g                 f                  g
 *     sequence    x -> norm -> gather [ ... ] scatter + x -> norm -> gather [ ... ] scatter + x
 *
 * A token table is split by rows: members look up theirs, use zeros for others, and add up. With learned positions the
 * sum stays whole, as in Megatron-LM; without them it is scattered.
 */
#include "models/job/parallel_work.h"

#include <assert.h>
#include <math.h>

#include "base/extreme.h"
#include "models/job/memory.h"
#include "models/job/parallel_memory.h"
#include "models/kernel/work_list.h"
#include "models/network/network_trained.h"
#include "models/network/network_traits.h"

/* --- chunks of layers --------------------------------------------------------------------------- */

/* Returns true if backward passes recompute it: an embedding and a head only with their stage. */
static bool is_recomputed(const struct job *job, uint32_t recompute, uint64_t layer)
{
    enum layer_kind kind = network_layer_kind(&job->network, layer);
    return recompute == RECOMPUTE_STAGE ||
           (recompute != RECOMPUTE_NONE && (kind == LAYER_BLOCK || kind == LAYER_OPAQUE));
}

/* --- kernels ---------------------------------------------------------------------------------- */

/* Adds attention of a slice's i tokens to the j before as our executor computes it: tiles of queries by keys, as where
 * each token sees all others of sqrt(i j), and copies of the slice's keys and values, or of their gradients. */
static void add_tiles_of_context(struct work_list *list, const struct job *job, uint64_t heads, bool back,
                                 uint64_t times)
{
    const bool half = job->precision == PRECISION_BF16;
    const uint32_t attention = back ? KERNEL_ATTENTION_FULL_BACKWARD : KERNEL_ATTENTION_FULL_FORWARD;
    const uint64_t i = job->parallel.slice_length, j = job->parallel.slice_begin, d = job->network.head_width;
    const struct work_item tiles = {.kernel = half ? kernel_half(attention) : attention, .count = 1, .m = heads,
                                    .n = (uint64_t)llround(sqrt((double)i * (double)j)), .k = d};
    const struct work_item copies = {.kernel = half ? kernel_half(KERNEL_GATHER) : KERNEL_GATHER, .count = 2,
                                     .m = job->microbatch * i,
                                     .n = network_kv_heads(&job->network) / job->parallel.tensor * d};
    if (j > 0) work_list_add(list, &tiles, times);
    work_list_add(list, &copies, times);
}

/* Adds attention of a slice's i tokens to the j before, head by head: two products, four backward. */
static void add_context(struct work_list *list, const struct job *job, uint64_t layer, enum network_pass pass,
                        uint64_t times)
{
    bool half = job->precision == PRECISION_BF16, back = pass == PASS_BACKWARD || pass == PASS_INPUT;
    uint64_t i = job->parallel.slice_length, j = job->parallel.slice_begin, d = job->network.head_width;
    uint64_t heads = job->microbatch * job->network.heads / job->parallel.tensor;
    if (i == 0 || pass == PASS_WEIGHT || network_layer_kind(&job->network, layer) != LAYER_BLOCK) return;
    if (parallel_is_carried_out(&job->parallel)) {
        add_tiles_of_context(list, job, heads, back, times);
        return;
    }
    if (j == 0) return;
    const struct work_item forward[] = {{.m = i, .n = j, .k = d}, {.m = i, .n = d, .k = j}};
    const struct work_item backward[] = {{.m = i, .n = j, .k = d}, {.m = i, .n = d, .k = j},
                                         {.m = j, .n = d, .k = i}, {.m = j, .n = d, .k = i}};
    for (uint32_t p = 0; p < (back ? 4 : 2); p++) {
        struct work_item item = back ? backward[p] : forward[p];
        uint32_t wide = back ? KERNEL_MATMUL_INPUT : KERNEL_MATMUL_FORWARD;
        item.kernel = half ? kernel_half(wide) : wide;
        item.count = 1;
        work_list_add(list, &item, times * heads);
    }
}

/* Adds the rounding of a product's gradient, which both units of a backward pass do where they are carried out. */
static void add_round(struct work_list *list, const struct job *job, const struct work_item *product, uint64_t times)
{
    const struct work_item round = {.kernel = KERNEL_ROUND, .count = product->count, .m = product->m * product->k};
    if (parallel_is_carried_out(&job->parallel) && product->kernel == KERNEL_MATMUL_BF16_INPUT)
        work_list_add(list, &round, times);
}

static void add_pass(struct work_list *list, const struct job *job, uint64_t layer, enum network_pass pass,
                     uint64_t times)
{
    struct work_item items[LAYER_WORK_MAX];
    const struct layer_share share = {.members = job->parallel.tensor,
                                      .pieces = job->parallel.tensor_pieces,
                                      .sequence = job->parallel.sequence,
                                      .precision = job->precision};
    uint32_t count = network_slice_work(&job->network, layer, pass, job->microbatch, job->sequence,
                                        share, items);
    for (uint32_t i = 0; i < count; i++) {
        if (items[i].kernel == KERNEL_FIXED) items[i].m = parallel_slice_share(&job->parallel, items[i].m);
        if (items[i].kernel != KERNEL_FIXED || items[i].m > 0) work_list_add(list, &items[i], times);
        if (pass == PASS_INPUT) add_round(list, job, &items[i], times);
    }
    add_context(list, job, layer, pass, times);
}

/* Adds what comes before a layer's backward pass in this project's executor: it leaves out the products of a block
 * whose output nothing reads, and computes the head, whose logits are not kept. */
static void add_carried_out_again(struct work_list *list, const struct job *job, struct parallel_layers layers,
                                  uint64_t layer, uint64_t count)
{
    const uint32_t recompute = parallel_recompute(job, layers);
    const uint64_t end = layers.first + layers.count;
    const bool head = network_layer_kind(&job->network, layer) == LAYER_HEAD;
    if (!head && !is_recomputed(job, recompute, layer)) return;
    const bool block = network_layer_kind(&job->network, layer) == LAYER_BLOCK;
    const uint64_t unread = !block ? 0 : recompute == RECOMPUTE_FULL ? count : layer + count == end;
    if (count > unread) add_pass(list, job, layer, PASS_FORWARD, count - unread);
    if (unread > 0) add_pass(list, job, layer, PASS_RECOMPUTE, unread);
}

static void add_layers(struct work_list *list, const struct job *job, struct parallel_layers layers,
                       enum parallel_pass pass)
{
    static const enum network_pass passes[] = {[PARALLEL_FORWARD] = PASS_FORWARD,
                                               [PARALLEL_BACKWARD] = PASS_BACKWARD,
                                               [PARALLEL_INPUT] = PASS_INPUT,
                                               [PARALLEL_WEIGHT] = PASS_WEIGHT,
                                               [PARALLEL_EVALUATE] = PASS_FORWARD};
    uint32_t recompute = parallel_recompute(job, layers);
    enum network_pass again = recompute_repeats(recompute) ? PASS_FORWARD : PASS_RECOMPUTE_CORE;
    bool recomputes = pass == PARALLEL_BACKWARD || pass == PARALLEL_INPUT;
    uint64_t end = layers.first + layers.count;
    const bool back = recomputes || pass == PARALLEL_WEIGHT;
    if (back && end <= network_first_trained(&job->network)) return; /* all is frozen, also below */
    for (uint64_t layer = layers.first, next; layer < end; layer = next) {
        next = min_u64(network_alike_end(&job->network, layer), end);
        const bool ours = parallel_is_carried_out(&job->parallel);
        const bool head = ours && network_layer_kind(&job->network, layer) == LAYER_HEAD;
        if (head && (pass == PARALLEL_FORWARD || pass == PARALLEL_WEIGHT)) continue;
        if (recomputes && ours) add_carried_out_again(list, job, layers, layer, next - layer);
        else if (recomputes && is_recomputed(job, recompute, layer)) add_pass(list, job, layer, again, next - layer);
        add_pass(list, job, layer, head && recomputes ? PASS_BACKWARD : passes[pass], next - layer);
    }
}

/* Adds one item: a stage's parameters are contiguous. A profile's update costs nothing. */
static void add_update(struct work_list *list, const struct job *job, struct parallel_layers layers,
                       enum parallel_pass pass)
{
    const bool apart = parallel_is_carried_out(&job->parallel);
    struct work_item item = {.kernel = optimizer_kernel(job_state_format(job), apart), .count = 1,
                             .m = parallel_updated_parameters(job, layers),
                             .n = job->precision != PRECISION_FP32};
    if (pass == PARALLEL_NORM) item.kernel = KERNEL_SQUARES, item.n = 0;
    if (pass == PARALLEL_SUM) item.kernel = KERNEL_RESIDUAL, item.n = 1;
    if (item.m > 0 && job->network.family != NETWORK_PROFILE) work_list_add(list, &item, 1);
}

static void add_codec(struct work_list *list, uint64_t ns)
{
    struct work_item item = {.kernel = KERNEL_FIXED, .count = 1, .m = ns};
    if (ns > 0) work_list_add(list, &item, 1);
}

/* Adds a codec: readers decode a boundary, its producer encodes it. */
static void add_boundary_codec(struct work_list *list, const struct job *job, uint64_t layer, bool encodes)
{
    const struct compression *compression = &job->compression[COMPRESSION_BOUNDARIES];
    if (!parallel_compresses(job, layer)) return;
    uint64_t bytes = parallel_plain_boundary_bytes(job, layer);
    add_codec(list, encodes ? compression_encode_ns(compression, bytes) : compression_decode_ns(compression, bytes));
}

/* Returns the bytes that the executor encodes: of the embedding's output and the other layers' activations. */
static uint64_t carried_out_kept(const struct job *whole, struct parallel_layers layers)
{
    struct job room;
    const struct job *const job = parallel_share_in(whole, &room);
    const uint32_t recompute = parallel_recompute(whole, layers), embedding = layers.first == 0;
    const uint64_t first = layers.first + embedding, count = layers.count - embedding;
    if (recompute == RECOMPUTE_STAGE || count == 0) return 0;
    const uint64_t stream =
        embedding ? memory_boundary_bytes(&job->network, 0, job->microbatch, job->sequence, PRECISION_FP32) : 0;
    return stream + (recompute == RECOMPUTE_FULL ? memory_input_bytes : memory_activation_bytes)(
                        &job->network, first, count, job->microbatch, job->sequence, PRECISION_FP32);
}

static void add_activation_codec(struct work_list *list, const struct job *job, struct parallel_layers layers,
                                 bool encodes, bool decodes)
{
    const struct compression *compression = &job->compression[COMPRESSION_ACTIVATIONS];
    uint64_t bytes = 0;
    if (compression_is_set(compression))
        bytes = parallel_is_carried_out(&job->parallel) ? carried_out_kept(job, layers)
                                                        : parallel_plain_kept_bytes(job, layers, false);
    if (encodes) add_codec(list, compression_encode_ns(compression, bytes));
    if (decodes) add_codec(list, compression_decode_ns(compression, bytes));
}

static void add_codecs(struct work_list *list, const struct job *job, struct parallel_layers layers,
                       enum parallel_pass pass)
{
    const struct compression *gradients = &job->compression[COMPRESSION_GRADIENTS];
    uint64_t end = layers.first + layers.count, whole = parallel_whole_state(job, layers).gradient_bytes;
    bool back = pass == PARALLEL_BACKWARD || pass == PARALLEL_INPUT;
    if (pass == PARALLEL_ENCODE) add_codec(list, compression_encode_ns(gradients, whole));
    if (pass == PARALLEL_ENCODE && !compression_is_set(gradients) && parallel_encodes_gradients(job)) {
        const struct work_item round = {.kernel = KERNEL_ROUND, .count = 1, .m = whole / sizeof(float)};
        work_list_add(list, &round, 1);
    }
    if (pass == PARALLEL_UPDATE && compression_is_set(gradients)) {
        uint64_t own = parallel_updated_parameters(job, layers) * parallel_parameter_bytes(job).gradient;
        add_codec(list, compression_decode_ns(gradients, own));
    }
    add_activation_codec(list, job, layers, pass == PARALLEL_FORWARD, back);
    const bool forward = pass == PARALLEL_FORWARD || pass == PARALLEL_EVALUATE;
    if (!compression_is_set(&job->compression[COMPRESSION_BOUNDARIES]) || (!forward && !back)) return;
    if (layers.first > 0) add_boundary_codec(list, job, layers.first - 1, false);
    if (layers.first > 0 && back) add_boundary_codec(list, job, layers.first - 1, true);
    if (end < job->network.layer_count) add_boundary_codec(list, job, end - 1, !back);
}

/* Adds collectives that computations wait for; they occupy the host like kernels. */
static void add_collectives(struct work_list *list, const struct job *job, struct parallel_layers layers,
                            enum parallel_pass pass)
{
    struct parallel_collective exchanged[PARALLEL_COLLECTIVES_MAX];
    struct work_item item = {.kernel = KERNEL_COLLECTIVE};
    uint32_t count = parallel_collectives(job, layers, pass, exchanged);
    for (uint32_t i = 0; i < count; i++)
        if (!exchanged[i].overlaps) item.count += exchanged[i].count;
    if (item.count == 0) return;
    assert(list->count < list->capacity);
    list->items[list->count++] = item;
}

uint32_t parallel_work(const struct job *job, struct parallel_layers layers, enum parallel_pass pass,
                       struct work_item out[PARALLEL_WORK_MAX])
{
    assert(parallel_is_set(&job->parallel) && pass < PARALLEL_PASS_COUNT && layers.count > 0);
    assert(layers.first <= job->network.layer_count - layers.count);
    struct work_list list = {.items = out, .capacity = PARALLEL_WORK_MAX};
    if (pass == PARALLEL_UPDATE || pass == PARALLEL_SUM || pass == PARALLEL_NORM)
        add_update(&list, job, layers, pass);
    else if (pass != PARALLEL_ENCODE)
        add_layers(&list, job, layers, pass);
    add_codecs(&list, job, layers, pass);
    if (pass == PARALLEL_FORWARD || pass == PARALLEL_BACKWARD || pass == PARALLEL_INPUT || pass == PARALLEL_WEIGHT ||
        pass == PARALLEL_NORM)
        add_collectives(&list, job, layers, pass);
    return list.count;
}

/* --- collectives ------------------------------------------------------------------------------ */

struct exchange {
    struct parallel_collective *items;
    uint32_t count;
    uint64_t row_bytes; /* all rows of C numbers */
    uint64_t statistic_bytes; /* a number for each row */
    uint64_t norm_bytes;      /* the gradients of a norm's weights */
    bool sequence, exposed, overlap;
    bool ours; /* carried out: an embedding has all rows ... */
    bool norms; /* ... and each pass adds up the gradients of its norms, if they are trained */
};

static void exchange(struct exchange *list, enum collective_kind kind, uint64_t times, uint64_t bytes,
                     bool overlaps)
{
    assert(times <= UINT32_MAX);
    overlaps = overlaps && !list->exposed;
    for (uint32_t i = 0; i < list->count; i++) {
        struct parallel_collective *known = &list->items[i];
        if (known->kind != kind || known->bytes != bytes || known->overlaps != overlaps) continue;
        known->count += (uint32_t)times;
        return;
    }
    assert(list->count < PARALLEL_COLLECTIVES_MAX);
    list->items[list->count++] = (struct parallel_collective){
        .kind = kind, .count = (uint32_t)times, .bytes = bytes, .overlaps = overlaps};
}

/* Gathers rows that the next operation needs whole, or the previous one made in parts. */
static void gather(struct exchange *list, uint64_t times, bool overlaps)
{
    if (list->sequence)
        exchange(list, COLLECTIVE_ALL_GATHER, times, list->row_bytes, overlaps);
}

static void sum(struct exchange *list, uint64_t times, bool overlaps)
{
    enum collective_kind kind = list->sequence ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE;
    exchange(list, kind, times, list->row_bytes, overlaps);
}

/* Adds collectives for keys and values of the encoder's result: with sequence parallelism its rows are gathered;
 * gradients are sums. */
static void cross_exchange(struct exchange *list, const struct job *job, uint64_t blocks, enum parallel_pass pass)
{
    struct exchange seen = *list;
    bool back = pass == PARALLEL_BACKWARD || pass == PARALLEL_INPUT;
    bool again = back && recompute_repeats(job->parallel.recompute);
    seen.row_bytes = job->microbatch * job->sequence * job->network.width * precision_bytes(job->precision);
    if (pass == PARALLEL_FORWARD || pass == PARALLEL_EVALUATE || again) gather(&seen, blocks, false);
    if (back) sum(&seen, blocks, true);
    if (pass == PARALLEL_BACKWARD || pass == PARALLEL_WEIGHT) gather(&seen, blocks, true);
    list->count = seen.count;
}

/* Adds up gradients of the weights of each row's experts, and of its factor of the expert of all rows. */
static void choices_exchange(struct exchange *list, const struct job *job, uint64_t layer, uint64_t blocks)
{
    struct network room;
    const struct network *const of = network_of_layer(&job->network, layer, &room);
    const uint64_t values = of->experts_chosen + (of->shared_width > 0);
    if (of->experts > 0) exchange(list, COLLECTIVE_ALL_REDUCE, blocks, values * list->statistic_bytes, false);
}

/* Adds up the input of each adapted layer times A, or its gradient (exec/network/transformer_adapter.c). */
static void adapters_exchange(struct exchange *list, const struct job *job, uint64_t layer, uint64_t blocks)
{
    const struct network_trained *const trained = job->network.trained;
    const uint64_t rows = job->microbatch * network_layer_tokens(&job->network, layer, job->sequence);
    if (!trained || trained->layers[layer].adapted == 0) return;
    exchange(list, COLLECTIVE_ALL_REDUCE, blocks * (uint64_t)__builtin_popcount(trained->layers[layer].adapted),
             rows * trained->rank * precision_bytes(job->precision), false);
}

static void blocks_exchange(struct exchange *list, const struct job *job, uint64_t layer, uint64_t blocks,
                            enum parallel_pass pass)
{
    const struct network_traits *traits = network_traits(&job->network);
    bool crosses = network_crosses(&job->network, layer);
    bool back = pass == PARALLEL_BACKWARD || pass == PARALLEL_INPUT;
    /* a parallel block adds its parts up first; where it has two norms, each gets a gradient of its own */
    uint64_t sums = blocks * (traits->parallel ? 1 : crosses ? 3 : 2);
    uint64_t norms = list->ours && traits->parallel && !traits->one_norm ? 2 * blocks : sums;
    bool again = back && recompute_repeats(job->parallel.recompute);
    /* an output that nothing reads is left out, see add_carried_out_again() */
    bool unread = again && parallel_is_carried_out(&job->parallel) && job->parallel.recompute == RECOMPUTE_FULL &&
                  network_norms_first(&job->network);
    if (pass == PARALLEL_FORWARD || pass == PARALLEL_EVALUATE || again) {
        /* ours does not leave out the first product */
        gather(list, norms - (unread && !list->ours ? blocks : 0), list->overlap);
        sum(list, sums - (unread ? blocks : 0), list->overlap);
    }
    if (pass == PARALLEL_BACKWARD || pass == PARALLEL_WEIGHT) adapters_exchange(list, job, layer, blocks);
    if (back) {
        if (list->sequence && list->norms) exchange(list, COLLECTIVE_ALL_REDUCE, norms, list->norm_bytes, false);
        if (traits->qk_norm && list->norms) /* of q and k: each device has its heads' part */
            exchange(list, COLLECTIVE_ALL_REDUCE, 2 * blocks, job->network.head_width * sizeof(float), false);
        if (list->ours) choices_exchange(list, job, layer, blocks);
        gather(list, sums, list->overlap); /* gradients of the sums */
        sum(list, norms, true);    /* during the products of weights' gradients */
    }
    if (pass == PARALLEL_BACKWARD || pass == PARALLEL_WEIGHT) gather(list, norms, true);
    /* a unit of its own gathers the gradients of the sums again */
    if (pass == PARALLEL_WEIGHT && list->ours && pipeline_has_halves(job->parallel.schedule)) gather(list, sums, true);
    if (crosses) cross_exchange(list, job, blocks, pass);
}

/* Returns true if a layer's norms may be trained: adapters freeze them. */
static bool trains_norms(const struct network *network, uint64_t layer)
{
    if (!network->trained) return true;
    return network->trained->rank == 0 && network_layer_trained_parameters(network, layer) > 0;
}

/* Returns true if the pass includes the forward pass of an embedding or a head, which the executor computes in backward
 * passes. */
static bool goes_forward(const struct job *job, enum parallel_pass pass, bool head)
{
    bool back = pass == PARALLEL_BACKWARD || pass == PARALLEL_INPUT;
    if (pass == PARALLEL_EVALUATE) return true;
    if (head && parallel_is_carried_out(&job->parallel)) return back;
    return pass == PARALLEL_FORWARD || (back && job->parallel.recompute == RECOMPUTE_STAGE);
}

static void embedding_exchange(struct exchange *list, const struct job *job, enum parallel_pass pass)
{
    bool positions = network_traits(&job->network)->more_positions != NETWORK_NO_POSITION_TABLE;
    if (goes_forward(job, pass, false) && job->network.family != NETWORK_VIT) {
        if (positions || list->ours) exchange(list, COLLECTIVE_ALL_REDUCE, 1, list->row_bytes, false);
        else sum(list, 1, false);
    }
    if (pass != PARALLEL_BACKWARD && pass != PARALLEL_WEIGHT) return;
    if (network_first_trained(&job->network) > 0) return;
    /* its backward pass makes the norm's input again */
    if (job->network.family == NETWORK_BERT && parallel_is_carried_out(&job->parallel))
        exchange(list, COLLECTIVE_ALL_REDUCE, 1, list->row_bytes, false);
    gather(list, 1, false);
}

/* The head of a job that is carried out goes forward and back in one pass, and gathers its rows once. BERT's has all
 * rows from there on. */
static void own_head_exchange(struct exchange *list, const struct job *job, enum parallel_pass pass)
{
    const bool words = !network_classifies(&job->network), whole = job->network.family == NETWORK_BERT;
    if (!goes_forward(job, pass, true)) return;
    gather(list, 1, false);
    if (!words) return;
    exchange(list, COLLECTIVE_ALL_REDUCE, 3, list->statistic_bytes, false);
    if (pass == PARALLEL_EVALUATE) return;
    if (whole || !list->sequence) exchange(list, COLLECTIVE_ALL_REDUCE, 1, list->row_bytes, false);
    else sum(list, 1, false);
    if (!whole && list->sequence && list->norms) exchange(list, COLLECTIVE_ALL_REDUCE, 1, list->norm_bytes, false);
}

static void head_exchange(struct exchange *list, const struct job *job, enum parallel_pass pass)
{
    if (list->ours) {
        own_head_exchange(list, job, pass);
        return;
    }
    bool words = !network_classifies(&job->network);
    if (goes_forward(job, pass, true)) {
        if (words) gather(list, 1, false);
        if (!words || job->network.pooler) gather(list, 1, false); /* first tokens of samples */
        if (words) exchange(list, COLLECTIVE_ALL_REDUCE, 3, list->statistic_bytes, false);
    }
    if (!words) return;
    if (pass == PARALLEL_BACKWARD || pass == PARALLEL_INPUT) sum(list, 1, true);
    if (pass == PARALLEL_BACKWARD || pass == PARALLEL_WEIGHT) gather(list, 1, true);
}

/*
 * Adds gradients that each member has whole: norms, biases of results that are added up, and tensors without a split.
 * With sequence parallelism they are sums over a share of the rows; tables of positions see all rows. Jobs that are
 * carried out add them up in passes.
 */
static void update_exchange(struct exchange *list, const struct job *job, struct parallel_layers layers)
{
    if (!list->sequence || list->ours) return;
    struct network whole = job->network;
    whole.pooler = false; /* it, and vit's head, get whole rows */
    whole.heads = whole.kv_heads = whole.ff_width = whole.shared_width = whole.vocabulary = 0;
    uint64_t parameters = 0, end = layers.first + layers.count;
    for (uint64_t layer = layers.first, next; layer < end; layer = next) {
        next = min_u64(network_alike_end(&whole, layer), end);
        enum layer_kind kind = network_layer_kind(&whole, layer);
        if (kind == LAYER_EMBEDDING || (kind == LAYER_HEAD && network_classifies(&whole))) continue;
        parameters += (next - layer) * network_layer_parameters(&whole, layer);
    }
    if (parallel_splits(&job->parallel, ZERO_STATES))
        parameters = (parameters + job->parallel.data - 1) / job->parallel.data;
    if (parameters > 0)
        exchange(list, COLLECTIVE_ALL_REDUCE, 1, parameters * parallel_parameter_bytes(job).gradient,
                 false);
}

uint32_t parallel_collectives(const struct job *job, struct parallel_layers layers,
                              enum parallel_pass pass,
                              struct parallel_collective out[PARALLEL_COLLECTIVES_MAX])
{
    const struct network *network = &job->network;
    assert(parallel_is_set(&job->parallel) && pass < PARALLEL_PASS_COUNT && layers.count > 0);
    if (job->parallel.tensor == 1 || network_is_listed(network)) return 0;
    struct exchange list = {.items = out,
                            .sequence = job->parallel.sequence,
                            .ours = parallel_is_carried_out(&job->parallel),
                            .norm_bytes = network->width * (network_traits(network)->no_mean ? 1 : 2) * sizeof(float),
                            .overlap = job->parallel.overlap,
                            .exposed = job->parallel.exposed || parallel_is_carried_out(&job->parallel)};
    if (pass == PARALLEL_SUM || pass == PARALLEL_ENCODE) return 0;
    if (pass == PARALLEL_NORM) { /* squares of the gradients of tensors */
        exchange(&list, COLLECTIVE_ALL_REDUCE, 1,
                 memory_tensor_count(network, layers.first, layers.count) * sizeof(double), false);
        return list.count;
    }
    if (pass == PARALLEL_UPDATE) {
        update_exchange(&list, job, layers);
        return list.count;
    }
    uint64_t end = layers.first + layers.count;
    for (uint64_t layer = layers.first, next; layer < end; layer = next) {
        next = min_u64(network_alike_end(network, layer), end);
        uint64_t rows = job->microbatch * network_layer_tokens(network, layer, job->sequence);
        list.row_bytes = rows * network->width * precision_bytes(job->precision);
        list.statistic_bytes = rows * precision_bytes(PRECISION_FP32);
        list.norms = list.ours && trains_norms(network, layer);
        switch (network_layer_kind(network, layer)) {
        case LAYER_EMBEDDING: embedding_exchange(&list, job, pass); break;
        case LAYER_BLOCK: blocks_exchange(&list, job, layer, next - layer, pass); break;
        case LAYER_HEAD: head_exchange(&list, job, pass); break;
        case LAYER_OPAQUE: break;
        }
    }
    return list.count;
}
