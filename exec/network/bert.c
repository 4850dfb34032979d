/*
 * BERT with its masked-language head.
 *
 * Letters as in models/kernel/work.h. Weights are stored (out, in). A block norms after each sum; with the names of
 * kept tensors (models/job/memory.h):
 *
 *     in(R,C) --+-- q, k, v(R,HD) -- attention(R,HD) -- projection --+
 *               +-------------------------------------------------- middle(R,C) -- norm1(R,C)
 *
 *     norm1   --+-- fc(R,F) -- gelu(R,F) -- projection --+
 *               +---------------------------------------- sum(R,C) -- out(R,C)
 *
 * Every token attends to every other one. Each gradient goes through a norm before it splits, and the products that
 * lead back to the stream add to it.
 *
 *     d_out -> d_sum (d_stream2) -> d_gelu (d_wide), d_fc in place -> d_norm1 = d_sum + ... in place
 *     d_norm1 -> d_middle (d_in) -> d_attention (d_stream2) -> d_qkv -> d_in = d_middle + ...
 *
 * The embedding norms the sum of the rows of token, position and token type. It keeps nothing; its backward pass
 * recomputes sum and statistics. Token types are rows of the tables, from the third part of the batch.
 *
 * The head, for tokens with a label: dense, gelu, norm, and the product with the token table (tied) or a matrix of its
 * own, with a bias.
 *
 * Source: Devlin et al., arXiv 1810.04805; modeling_bert.py of transformers (BertForMaskedLM).
 */
#include "exec/network/sum_tree.h"
#include "exec/network/transformer.h"

/* In the order of network_layer_tensors(). */
enum block_tensor {
    Q_WEIGHT, Q_BIAS, K_WEIGHT, K_BIAS, V_WEIGHT, V_BIAS, PROJECTION_WEIGHT, PROJECTION_BIAS,
    NORM1_WEIGHT, NORM1_BIAS, FC_WEIGHT, FC_BIAS, OUT_WEIGHT, OUT_BIAS, NORM2_WEIGHT, NORM2_BIAS
};
enum head_tensor {
    WORD_BIAS, TRANSFORM_WEIGHT, TRANSFORM_BIAS, NORMF_WEIGHT, NORMF_BIAS, HEAD_WEIGHT
};

/* In the order of memory_activations(). */
enum block_kept {
    KEPT_Q, KEPT_K, KEPT_V, KEPT_ATTENTION, KEPT_ATTENTION_STATS, KEPT_MIDDLE, KEPT_NORM1,
    KEPT_NORM1_STATS, KEPT_FC, KEPT_GELU, KEPT_SUM, KEPT_NORM2_STATS
};
enum head_kept { KEPT_TRANSFORM, KEPT_TRANSFORM_GELU, KEPT_NORMF, KEPT_NORMF_STATS };

static struct transformer_linear linear_of(const struct transformer_unit *unit, uint32_t weight, int64_t out,
                                           int64_t in)
{
    return (struct transformer_linear){
        .weight = weight, .rows = unit->r, .out = out, .in = in, .bias = true};
}

/* --- embedding -------------------------------------------------------------------------------- */

enum { BATCH_PARTS = 3 }; /* tokens, labels, token types */

/* The pieces of the embedding's scratch. */
struct embedding {
    float *pairs; /* what embed_update sorts */
    kernel_number *sum, *other; /* (R,C) */
    float *stats; /* (R,2) */
};

static struct embedding embedding_of(const struct transformer_unit *unit)
{
    float *sum = unit->scratch + MEMORY_EMBEDDING_WORDS * unit->r;
    float *other = sum + unit->r * unit->c;
    return (struct embedding){unit->scratch, sum, other, other + unit->r * unit->c};
}

/* The norm follows the tables. */
static uint32_t norm_index(const struct transformer_unit *unit)
{
    return unit->network->token_types > 0 ? 3 : 2;
}

static int64_t text_rows(const struct transformer_unit *unit)
{
    return (int64_t)(unit->network->vocabulary + unit->network->positions);
}

/* Tokens and positions. */
static struct transformer_table_rows words_of(const struct transformer_unit *unit)
{
    return (struct transformer_table_rows){.split = unit->split != NULL,
                                           .tokens = unit->arguments->batch,
                                           .token_stride = BATCH_PARTS * unit->t,
                                           .vocabulary = (int64_t)unit->network->vocabulary,
                                           .row_count = text_rows(unit),
                                           .padded = transformer_padded(unit->network)};
}

static struct transformer_table_rows types_of(const struct transformer_unit *unit)
{
    int64_t types = (int64_t)unit->network->token_types;
    int64_t rows = transformer_all_words(unit) + (int64_t)unit->network->positions; /* in the batch */
    return (struct transformer_table_rows){.first = text_rows(unit),
                                           .tokens = unit->arguments->batch + 2 * unit->t,
                                           .token_stride = BATCH_PARTS * unit->t,
                                           .vocabulary = rows + types,
                                           .first_row = rows,
                                           .row_count = types};
}

static void embed(const struct transformer_unit *unit, const struct embedding *e, kernel_number *out)
{
    const struct transformer_table_rows words = words_of(unit), types = types_of(unit);
    transformer_gather(unit, e->sum, &words);
    if (types.row_count > 0) transformer_gather(unit, e->sum, &types);
    transformer_norm_forward(unit, out, NULL, e->stats, e->sum, NULL, unit->r, 0, norm_index(unit));
}

static void embedding_forward(const struct transformer_unit *unit)
{
    struct embedding e = embedding_of(unit);
    embed(unit, &e, unit->arguments->boundary_out);
}

/* Sums of the gradients of the norm's parameters: level `levels` of a tree is in the unit's gradients. */
struct norm_sums {
    const struct transformer_unit *unit;
    uint64_t level_bytes;
    uint32_t levels;
};

static float *norm_at(const struct norm_sums *s, uint32_t level)
{
    return level == s->levels ? s->unit->gradients : transformer_at(s->unit->levels, level * s->level_bytes);
}

static void add_norm(const void *context, uint32_t to, uint32_t from)
{
    const struct norm_sums *const s = context;
    const struct kernels *const k = s->unit->kernels;
    k->add(k, norm_at(s, to), norm_at(s, to), norm_at(s, from), 2 * s->unit->c);
}

/* Computes the gradient of the norm's input, microbatch by microbatch: its parameters' gradients are added up as in the
 * blocks, although the tables take all samples at once. */
static void norm_backward(const struct transformer_unit *unit, const struct embedding *e, kernel_number *d_sum)
{
    const struct kernels *k = unit->kernels;
    const struct job *const job = unit->arguments->job;
    const int64_t c = unit->c, rows = (int64_t)(job->microbatch * job->sequence), values = 2 * c;
    const kernel_number *weight = transformer_vector(unit, 0, norm_index(unit));
    const struct norm_sums sums = {.unit = unit, .level_bytes = memory_level(unit->network, 0, 1).bytes,
                                   .levels = job_sum_levels(job, job->microbatches)};
    struct sum_tree tree = {.levels = sums.levels, .count = (uint32_t)(unit->r / rows)};
    float *sum = unit->gradients, *part = sum + values;
    for (int64_t first = 0; first < unit->r; first += rows) {
        tree.index = (uint32_t)(first / rows);
        float *g = sums.levels > 0 ? norm_at(&sums, sum_tree_level(&tree)) : first > 0 ? part : sum;
        k->norm_backward(k, transformer_number(unit, d_sum, first * c), g, g + c,
                         transformer_read_number(unit, unit->arguments->gradient_in, first * c),
                         transformer_read_number(unit, e->sum, first * c), e->stats + 2 * first, weight, NULL, rows, c);
        if (sums.levels > 0) sum_tree_carry(&tree, add_norm, &sums);
        else if (first > 0) k->add(k, sum, sum, part, values);
    }
    for (uint32_t i = 0; i < 2; i++) {
        struct transformer_tensor tensor = transformer_tensor(unit, 0, norm_index(unit) + i);
        tensor.g = sum + i * c;
        transformer_step(unit, &tensor, false);
    }
}

static void embedding_backward(const struct transformer_unit *unit)
{
    const struct unit_arguments *a = unit->arguments;
    const struct transformer_table_rows words = words_of(unit), types = types_of(unit);
    struct embedding e = embedding_of(unit);
    kernel_number *d_sum = e.other;
    embed(unit, &e, e.other);
    if (unit->sums)
        transformer_norm_backward(unit, d_sum, a->gradient_in, e.sum, e.stats, NULL, unit->r, 0, norm_index(unit));
    else
        norm_backward(unit, &e, d_sum);
    transformer_rows_backward(unit, &words, a->table_gradient, d_sum, e.pairs);
    if (types.row_count > 0) transformer_rows_backward(unit, &types, NULL, d_sum, e.pairs);
}

/* --- blocks ----------------------------------------------------------------------------------- */

static void block_forward(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
                          const kernel_number *in, kernel_number *out)
{
    const struct kernels *k = unit->kernels;
    int64_t c = unit->c, f = unit->f, inner = unit->inner;
    const kernel_number *const all = transformer_all_rows(unit, in);
    transformer_linear_forward(unit, kept[KEPT_Q], all, layer, linear_of(unit, Q_WEIGHT, inner, c));
    transformer_linear_forward(unit, kept[KEPT_K], all, layer, linear_of(unit, K_WEIGHT, inner, c));
    transformer_linear_forward(unit, kept[KEPT_V], all, layer, linear_of(unit, V_WEIGHT, inner, c));
    const struct kernel_attention attention =
        transformer_attention(unit, layer, kept[KEPT_Q], kept[KEPT_K], kept[KEPT_V], kept[KEPT_ATTENTION],
                              kept[KEPT_ATTENTION_STATS]);
    k->attention_forward(k, &attention);
    transformer_linear_forward(unit, kept[KEPT_MIDDLE], kept[KEPT_ATTENTION], layer,
                               transformer_by_rows(linear_of(unit, PROJECTION_WEIGHT, c, inner)));
    transformer_norm_forward(unit, kept[KEPT_NORM1], kept[KEPT_MIDDLE], kept[KEPT_NORM1_STATS], in,
                             kept[KEPT_MIDDLE], unit->own, layer, NORM1_WEIGHT);
    transformer_linear_forward(unit, kept[KEPT_FC], transformer_all_rows(unit, kept[KEPT_NORM1]), layer,
                               linear_of(unit, FC_WEIGHT, f, c));
    k->gelu_forward(k, kept[KEPT_GELU], kept[KEPT_FC], unit->r * f, unit->network->gelu_tanh);
    transformer_linear_forward(unit, kept[KEPT_SUM], kept[KEPT_GELU], layer,
                               transformer_by_rows(linear_of(unit, OUT_WEIGHT, c, f)));
    /* The backward pass needs only the sum and its statistics. */
    transformer_norm_forward(unit, out ? out : unit->d_stream2, kept[KEPT_SUM], kept[KEPT_NORM2_STATS],
                             kept[KEPT_NORM1], kept[KEPT_SUM], unit->own, layer, NORM2_WEIGHT);
}

/* Copies rows of C, to which products then add, unless they are in place. */
static void copy_rows(const struct transformer_unit *unit, kernel_number *to, const kernel_number *from)
{
    if (to != from) transformer_copy(unit->kernels, to, from, transformer_number_bytes(unit, unit->r * unit->c));
}

/* Copies the device's rows, unless they are in place. */
static void copy_own(const struct transformer_unit *unit, kernel_number *to, const kernel_number *from)
{
    if (to != from) transformer_copy(unit->kernels, to, from, transformer_number_bytes(unit, unit->own * unit->c));
}

static void block_backward(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
                           const kernel_number *in, const kernel_number *d_out, kernel_number *d_in)
{
    const struct kernels *k = unit->kernels;
    const bool whole = transformer_adds_whole(unit); /* the stream's gradient, to which products add */
    int64_t c = unit->c, f = unit->f, inner = unit->inner;
    kernel_number *d_norm1 = unit->d_stream2, *d_attention = unit->d_stream2;
    kernel_number *d_sum = unit->d_out ? unit->d_out : unit->gathered ? transformer_own_gathered(unit) : d_norm1;
    kernel_number *d_middle = transformer_d_middle(unit, d_in), *d_all = unit->gathered ? unit->d_stream2 : d_in;
    kernel_number *d_q = unit->d_qkv, *d_k = transformer_number(unit, d_q, unit->r * inner);
    kernel_number *d_v = transformer_number(unit, d_k, unit->r * inner);
    transformer_norm_backward(unit, d_sum, d_out, kept[KEPT_SUM], kept[KEPT_NORM2_STATS], NULL,
                              unit->own, layer, NORM2_WEIGHT);
    transformer_linear_backward(unit, unit->d_wide, d_sum, kept[KEPT_GELU], layer,
                                transformer_by_rows(linear_of(unit, OUT_WEIGHT, c, f)), false);
    k->gelu_backward(k, unit->d_wide, unit->d_wide, kept[KEPT_FC], unit->r * f,
                     unit->network->gelu_tanh);
    if (whole) copy_rows(unit, d_norm1, unit->gathered ? unit->gathered : d_sum);
    transformer_linear_backward(unit, d_norm1, unit->d_wide, transformer_rows_for_weights(unit, kept[KEPT_NORM1]),
                                layer, linear_of(unit, FC_WEIGHT, f, c), whole);

    transformer_norm_backward(unit, d_middle, transformer_own_sum(unit, d_norm1), kept[KEPT_MIDDLE],
                              kept[KEPT_NORM1_STATS], NULL, unit->own, layer, NORM1_WEIGHT);
    transformer_linear_backward(unit, d_attention, d_middle, kept[KEPT_ATTENTION], layer,
                                transformer_by_rows(linear_of(unit, PROJECTION_WEIGHT, c, inner)), false);
    struct kernel_attention attention =
        transformer_attention(unit, layer, kept[KEPT_Q], kept[KEPT_K], kept[KEPT_V], kept[KEPT_ATTENTION],
                              kept[KEPT_ATTENTION_STATS]);
    attention.dout = d_attention;
    attention.dq = d_q;
    attention.dk = d_k;
    attention.dv = d_v;
    k->attention_backward(k, &attention);
    if (whole) copy_rows(unit, d_all, unit->gathered ? unit->gathered : d_middle);
    in = transformer_rows_for_weights(unit, in);
    transformer_linear_backward(unit, d_all, d_q, in, layer, linear_of(unit, Q_WEIGHT, inner, c), whole);
    transformer_linear_backward(unit, d_all, d_k, in, layer, linear_of(unit, K_WEIGHT, inner, c), true);
    transformer_linear_backward(unit, d_all, d_v, in, layer, linear_of(unit, V_WEIGHT, inner, c), true);
    copy_own(unit, d_in, transformer_own_sum(unit, d_all));
}

static void block_weights(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
                          const kernel_number *in, const kernel_number *d_out)
{
    int64_t c = unit->c, f = unit->f, inner = unit->inner;
    kernel_number *const d_q = unit->d_qkv, *const d_k = transformer_number(unit, d_q, unit->r * inner);
    kernel_number *const d_v = transformer_number(unit, d_k, unit->r * inner);
    (void)d_out;
    transformer_linear_weight(unit, unit->d_out, kept[KEPT_GELU], layer,
                              transformer_by_rows(linear_of(unit, OUT_WEIGHT, c, f)));
    transformer_linear_weight(unit, unit->d_wide, transformer_all_rows(unit, kept[KEPT_NORM1]), layer,
                              linear_of(unit, FC_WEIGHT, f, c));
    transformer_linear_weight(unit, unit->d_middle, kept[KEPT_ATTENTION], layer,
                              transformer_by_rows(linear_of(unit, PROJECTION_WEIGHT, c, inner)));
    in = transformer_all_rows(unit, in);
    transformer_linear_weight(unit, d_q, in, layer, linear_of(unit, Q_WEIGHT, inner, c));
    transformer_linear_weight(unit, d_k, in, layer, linear_of(unit, K_WEIGHT, inner, c));
    transformer_linear_weight(unit, d_v, in, layer, linear_of(unit, V_WEIGHT, inner, c));
}

/* --- head ------------------------------------------------------------------------------------- */

static void head(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
                 const kernel_number *in, kernel_number *d_in)
{
    const struct kernels *k = unit->kernels;
    const struct transformer_linear transform = linear_of(unit, TRANSFORM_WEIGHT, unit->c, unit->c);
    const struct transformer_words words = {.own_weight = HEAD_WEIGHT,
                                            .bias = WORD_BIAS,
                                            .masked = true,
                                            .labels = unit->arguments->batch + unit->t,
                                            .stride = BATCH_PARTS * unit->t};
    transformer_linear_forward(unit, kept[KEPT_TRANSFORM], in, layer, transform);
    k->gelu_forward(k, kept[KEPT_TRANSFORM_GELU], kept[KEPT_TRANSFORM], unit->r * unit->c,
                    unit->network->gelu_tanh);
    transformer_norm_forward(unit, kept[KEPT_NORMF], NULL, kept[KEPT_NORMF_STATS],
                             kept[KEPT_TRANSFORM_GELU], NULL, unit->r, layer, NORMF_WEIGHT);
    (void)transformer_words(unit, layer, &words, kept[KEPT_NORMF], d_in);
    if (!d_in) return;

    kernel_number *d_transform = unit->d_stream2;
    transformer_norm_backward(unit, d_transform, d_in, kept[KEPT_TRANSFORM_GELU],
                              kept[KEPT_NORMF_STATS], NULL, unit->r, layer, NORMF_WEIGHT);
    k->gelu_backward(k, d_transform, d_transform, kept[KEPT_TRANSFORM], unit->r * unit->c,
                     unit->network->gelu_tanh);
    transformer_linear_backward(unit, d_in, d_transform, in, layer, transform, false);
}

static const char *unsupported(const struct job *job)
{
    if (job->network.classes > 0)
        return "its classifier is not trained (found BertForSequenceClassification; expected the "
               "architecture BertForMaskedLM)";
    if (job->network.pooler)
        return "its next-sentence classifier is not trained (found a pooler, as BertForPreTraining "
               "and BertModel have it; expected the architecture BertForMaskedLM)";
    return NULL;
}

static const struct transformer_need needs[] = {
    TRANSFORMER_NEED(loss_labels), TRANSFORMER_NEED(first_forward),
};

const struct transformer transformer_bert = {
    .embedding_forward = embedding_forward,
    .embedding_backward = embedding_backward,
    .block_forward = block_forward,
    .block_backward = block_backward,
    .block_weights = block_weights,
    .ends_with_norm = true,
    .whole_head = true,
    .head = head,
    .unsupported = unsupported,
    .needs = needs,
    .need_count = sizeof needs / sizeof *needs,
};
