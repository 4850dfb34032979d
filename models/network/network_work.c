/*
 * A block is the same computation in every family except for switches (models/network/network_traits.h): causal
 * attention; norms before sublayers (gpt2, llama, vit) or after the residual sum (bert); q, k, v from one product
 * (gpt2) or three; llama has norms without mean, rotated queries and keys, and a gate.
 *
 *     forward, pre-norm                          backward, from the end
 *     norm1   = norm(x)                          d gelu   = d out . fc2        d fc2 weight, bias
 *     qkv     = norm1 . qkv                      d fc     = gelu'(fc)
 *     heads   = attention(qkv)                   d norm2  = d fc . fc          d fc weight, bias
 *     middle  = x + heads . proj     } one       d middle = d out + norm'(...)
 *     norm2   = norm(middle)         } kernel    d heads  = d middle . proj    d proj weight, bias
 *     fc      = norm2 . fc                       d qkv    = attention'(...)
 *     gelu    = gelu(fc)                         d norm1  = d qkv . qkv        d qkv weight, bias
 *     out     = middle + gelu . fc2              d x      = d middle + norm'(...)
 *
 * A block of t5's decoder has a second attention between the halves, with its norm (models/network/network_t5.h).
 * llama: q and k are rotated after their products, gradients rotated back; gate and up replace fc, silu(gate) up
 * replaces gelu.
 *
 * In the post-norm order both sums are followed by norms: no residual kernel is left over, and the matrix library adds
 * to the residual stream.
 *
 * In bf16-weights a product rounds its other operand; the backward pass rounds the result's gradient once for both
 * products.
 *
 * A member of a tensor group computes a network with fewer heads, narrower feed-forward parts and a smaller vocabulary
 * (Shoeybi et al., arXiv 1909.08053, section 3). With sequence parallelism norms and sums process a share of the rows
 * (Korthikanti et al., arXiv 2205.05198, section 4.2.2). Groups keep the logits of all rows: one sum over the group
 * serves all.
 *
 * Backward lists each linear layer's products for input and weight, and column sums for the bias. The embedding's
 * input has no gradient.
 *
 * R rows of V logits are the largest matrix by far (R 8192, V 128256: 4.2 GB), so network_logit_rows() rows exist at a
 * time. A piece of r rows costs the table's gradient, V C numbers, read and written: 8 bytes for every 6 r FLOPs.
 * Processors do some 10 to 100 FLOPs per byte, so r must be several hundred: LOGIT_ROWS_MIN, or LOGIT_BYTES if that is
 * more rows. Pieces have equal sizes.
 *
 * A frozen linear layer has no product for its weight, and layers below the first trained one have no backward pass. An
 * adapter adds x A and its product with B; its backward pass makes the first again, keeping nothing.
 *
 * A test compares with the closed form (Narayanan et al., SC 2021, eq. 3 without its recomputation): forward and
 * backward of L blocks are 72 B T L C^2 (1 + T / 6C) FLOPs with full attention, T / 12C with causal attention, plus 6
 * B T C V for the logits.
 */
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "models/kernel/work_list.h"
#include "models/network/network_graph.h"
#include "models/network/network_t5.h"
#include "models/network/network_trained.h"
#include "models/network/network_traits.h"

const char *const optimizer_names[] = {
    [OPTIMIZER_SGD] = "sgd", [OPTIMIZER_ADAMW] = "adamw", [OPTIMIZER_MOMENTUM] = "momentum"};
static_assert(ARRAY_COUNT(optimizer_names) == OPTIMIZER_COUNT, "a name per optimizer");

static const uint32_t moments[] = {
    [OPTIMIZER_SGD] = 0, [OPTIMIZER_ADAMW] = 2, [OPTIMIZER_MOMENTUM] = 1};
static_assert(ARRAY_COUNT(moments) == OPTIMIZER_COUNT, "a state size per optimizer");

uint32_t optimizer_moments(uint32_t optimizer)
{
    assert(optimizer < OPTIMIZER_COUNT);
    return moments[optimizer];
}

/* --- lists of work -------------------------------------------------------------------------- */

/* Parts of a backward pass. */
enum part { PART_INPUT = 1, PART_WEIGHT = 2 };

struct network_work_list {
    struct work_list work;
    bool rounded; /* bf16 products round fp32 operands first */
    bool half;    /* 16 bits, with the fp32 numbers of models/kernel/precision.h */
    uint32_t parts; /* sum of enum part */
};

static uint32_t class_of(const struct network_work_list *list, uint32_t kernel)
{
    return list->half ? kernel_half(kernel) : kernel;
}

static void add_times(struct network_work_list *list, uint64_t times, uint32_t kernel, uint64_t m, uint64_t n,
                      uint64_t k)
{
    struct work_item item = {.kernel = class_of(list, kernel), .count = 1, .m = m, .n = n, .k = k};
    work_list_add(&list->work, &item, times);
}

static void add(struct network_work_list *list, uint32_t kernel, uint64_t m, uint64_t n, uint64_t k)
{
    add_times(list, 1, kernel, m, n, k);
}

static void remove_one(struct network_work_list *list, enum kernel kernel, uint64_t m, uint64_t n, uint64_t k)
{
    for (uint32_t i = 0; i < list->work.count; i++) {
        struct work_item *item = &list->work.items[i];
        if (item->kernel != class_of(list, kernel)) continue;
        if (item->m != m || item->n != n || item->k != k) continue;
        if (--item->count == 0) *item = list->work.items[--list->work.count];
        return;
    }
    assert(!"the kernel is in the list");
}

struct network_work_linear {
    uint64_t rows, out, in;
    bool bias;
    uint64_t times; /* how often */
    bool loss; /* makes a loss: fp32 among halves */
    bool frozen, frozen_bias; /* no gradient is made */
    uint64_t rank; /* of its adapter, whose products have the precision of activations; 0: none */
};

static struct network_work_linear product(uint64_t rows, uint64_t out, uint64_t in, bool bias, uint64_t times,
                                          bool loss)
{
    return (struct network_work_linear){.rows = rows, .out = out, .in = in, .bias = bias, .times = times, .loss = loss};
}

/* Adds the products with an adapter: x A and its product with B, or in a backward pass the first again, the gradient of
 * both, and those of A and B. */
static void adapter_forward(struct network_work_list *list, const struct network_work_linear *l)
{
    add_times(list, l->times, KERNEL_MATMUL_FORWARD, l->rows, l->rank, l->in);
    add_times(list, l->times, KERNEL_MATMUL_INPUT, l->rows, l->out, l->rank);
    add_times(list, l->times, KERNEL_RESIDUAL, l->rows, l->rank, 0); /* the scale */
}

static void adapter_backward(struct network_work_list *list, const struct network_work_linear *l)
{
    if (list->parts & PART_INPUT) {
        add_times(list, l->times, KERNEL_MATMUL_INPUT, l->rows, l->rank, l->out);
        add_times(list, l->times, KERNEL_RESIDUAL, l->rows, l->rank, 0);
        add_times(list, l->times, KERNEL_MATMUL_INPUT, l->rows, l->in, l->rank);
    }
    if (!(list->parts & PART_WEIGHT)) return;
    add_times(list, l->times, KERNEL_MATMUL_FORWARD, l->rows, l->rank, l->in);
    add_times(list, l->times, KERNEL_RESIDUAL, l->rows, l->rank, 0);
    add_times(list, l->times, KERNEL_MATMUL_WEIGHT, l->out, l->rank, l->rows);
    add_times(list, l->times, KERNEL_MATMUL_WEIGHT, l->rank, l->in, l->rows);
}

static enum kernel product_of(const struct network_work_list *list, enum kernel kernel)
{
    return list->rounded ? kernel - KERNEL_MATMUL_FORWARD + KERNEL_MATMUL_BF16_FORWARD : kernel;
}

static void linear_forward(struct network_work_list *list, struct network_work_linear l)
{
    uint32_t kernel = list->half && l.loss ? KERNEL_MATMUL_BF16_FORWARD : product_of(list, KERNEL_MATMUL_FORWARD);
    if (!l.loss) kernel = class_of(list, kernel); /* logits are fp32 */
    struct work_item item = {.kernel = kernel, .count = 1, .m = l.rows, .n = l.out, .k = l.in};
    work_list_add(&list->work, &item, l.times);
    if (list->rounded) add_times(list, l.times, KERNEL_ROUND, l.rows * l.in, 0, 0);
    if (l.rank > 0) adapter_forward(list, &l);
}

static void remove_linear_forward(struct network_work_list *list, struct network_work_linear l)
{
    for (uint64_t i = 0; i < l.times; i++) {
        remove_one(list, product_of(list, KERNEL_MATMUL_FORWARD), l.rows, l.out, l.in);
        if (list->rounded) remove_one(list, KERNEL_ROUND, l.rows * l.in, 0, 0);
        if (l.rank == 0) continue;
        remove_one(list, KERNEL_MATMUL_FORWARD, l.rows, l.rank, l.in);
        remove_one(list, KERNEL_MATMUL_INPUT, l.rows, l.out, l.rank);
        remove_one(list, KERNEL_RESIDUAL, l.rows, l.rank, 0);
    }
}

static void linear_weight(struct network_work_list *list, struct network_work_linear l)
{
    if (!(list->parts & PART_WEIGHT)) return;
    if (!l.frozen) add_times(list, l.times, product_of(list, KERNEL_MATMUL_WEIGHT), l.out, l.in, l.rows);
    if (list->rounded && !l.frozen) add_times(list, l.times, KERNEL_ROUND, l.rows * l.in, 0, 0);
    if (list->rounded) add_times(list, l.times, KERNEL_ROUND, l.rows * l.out, 0, 0);
    if (l.bias && !l.frozen_bias) add_times(list, l.times, KERNEL_BIAS_BACKWARD, l.rows, l.out, 0);
}

static void linear_backward(struct network_work_list *list, struct network_work_linear l)
{
    if (list->parts & PART_INPUT) {
        if (list->half && l.loss) add_times(list, l.times, KERNEL_ROUND, l.rows * l.out, 0, 0);
        add_times(list, l.times, product_of(list, KERNEL_MATMUL_INPUT), l.rows, l.in, l.out);
    }
    linear_weight(list, l);
    if (l.rank > 0) adapter_backward(list, &l);
}

struct network_work_sizes {
    uint64_t layer;
    uint64_t batch, tokens, rows; /* B, T, R */
    uint64_t own;                 /* of norms and sums: R, or a share with sequence parallelism */
    uint64_t seen;                /* of an encoder's result; 0: none */
    bool joins, causal;           /* norms that result; attention is causal */
    uint64_t logits;              /* at a time */
    uint64_t width, inner, shared, ff; /* C, H D, keys' and values', F */
    uint64_t for_all; /* of the shared expert; 0: none */
};

static struct network_work_sizes sizes_of(const struct network *n, uint64_t layer, uint64_t microbatch,
                                          uint64_t sequence)
{
    uint64_t tokens = network_layer_tokens(n, layer, sequence), rows = microbatch * tokens;
    return (struct network_work_sizes){.layer = layer,
                                       .batch = microbatch,
                                       .tokens = tokens,
                                       .rows = rows,
                                       .own = rows,
                                       .seen = network_crosses(n, layer) ? sequence : 0,
                                       .joins = network_joins(n, layer),
                                       .causal = n->causal && (n->encoder_blocks == 0 || layer > n->encoder_blocks),
                                       .logits = n->vocabulary > 0 ? network_logit_rows(n, rows) : rows,
                                       .width = n->width,
                                       .inner = n->heads * n->head_width,
                                       .shared = network_kv_heads(n) * n->head_width,
                                       .ff = n->ff_width,
                                       .for_all = n->shared_width};
}

static enum kernel norm_forward_of(const struct network *n)
{
    return network_traits(n)->no_mean ? KERNEL_RMS_NORM_FORWARD : KERNEL_NORM_FORWARD;
}

static enum kernel norm_backward_of(const struct network *n)
{
    return network_traits(n)->no_mean ? KERNEL_RMS_NORM_BACKWARD : KERNEL_NORM_BACKWARD;
}

/* --- blocks --------------------------------------------------------------------------------- */

enum { BLOCK_LINEARS_MAX = 15 };

/* Returns an expert's product; experts get equally many rows. */
static struct network_work_linear expert_linear(const struct network *n, struct network_work_sizes s, uint64_t out,
                                                uint64_t in)
{
    uint64_t rows = s.rows * n->experts_chosen;
    return product(rows / n->experts + (rows % n->experts > 0), out, in, false, n->experts, false);
}

/* Lists one part, or a router and experts. */
static uint32_t ff_linears(const struct network *n, struct network_work_sizes s, struct network_work_linear *out)
{
    const struct network_traits *traits = network_traits(n);
    uint32_t count = 0, in = traits->gated ? 2 : 1;
    if (n->experts > 0) out[count++] = product(s.rows, n->experts, s.width, false, 1, false);
    for (uint32_t i = 0; i < in; i++)
        out[count++] = n->experts > 0 ? expert_linear(n, s, s.ff, s.width)
                                      : product(s.rows, s.ff, s.width, traits->ff_bias, 1, false);
    out[count++] = n->experts > 0 ? expert_linear(n, s, s.width, s.ff)
                                  : product(s.rows, s.width, s.ff, traits->ff_bias, 1, false);
    return count;
}

/* Lists the shared expert and its gate with one number per row. */
static uint32_t for_all_linears(struct network_work_sizes s, struct network_work_linear *out)
{
    if (s.for_all == 0) return 0;
    out[0] = product(s.rows, s.for_all, s.width, false, 2, false);
    out[1] = product(s.rows, s.width, s.for_all, false, 1, false);
    out[2] = product(s.rows, 1, s.width, false, 1, false);
    return 3;
}

/* Lists linear layers, keys and values with the encoder's rows. */
static uint32_t cross_linears(struct network_work_sizes s, struct network_work_linear *out)
{
    uint64_t seen = s.batch * s.seen;
    if (s.seen == 0) return 0;
    out[0] = product(s.rows, s.inner, s.width, false, 1, false);
    out[1] = product(seen, s.shared, s.width, false, 2, false);
    out[2] = product(s.rows, s.width, s.inner, false, 1, false);
    return 3;
}

static uint64_t pieces_of(const struct network *n)
{
    return n->pieces > 0 ? n->pieces : 1;
}

/* Cuts products into pieces: by rows that after attention and the last one, else by columns. */
static void cut_linears(const struct network *n, uint32_t count, struct network_work_linear *linears)
{
    const uint32_t projection = network_traits(n)->fused_qkv ? 1 : 3;
    for (uint32_t i = 0; i < count && n->pieces > 1; i++) {
        const bool by_rows = i == projection || i + 1 == count;
        uint64_t *const cut = by_rows ? &linears[i].in : &linears[i].out;
        *cut /= n->pieces;
        linears[i].times *= n->pieces;
    }
}

/* Notes which of a layer's linear layers are frozen or have adapters: they come in the order of its matrices. Where
 * there are experts, what comes after attention counts as its first matrix. */
static void note_trained(const struct network *n, uint64_t layer, struct network_work_linear *linears, uint32_t count)
{
    struct tensor_spec specs[LAYER_TENSORS_MAX];
    if (!n->trained) return;
    const uint32_t tensors = network_layer_shapes(n, layer, specs);
    uint32_t at = 0;
    for (uint32_t i = 0; i < tensors && at < count; i++) {
        if (!specs[i].matrix || specs[i].adapter) continue;
        const bool last = n->experts > 0 && at == 4;
        for (uint32_t end = last ? count : at + 1; at < end; at++) {
            linears[at].frozen = specs[i].frozen;
            linears[at].frozen_bias = linears[at].bias && specs[i + 1].frozen;
            linears[at].rank = network_is_adapted(n, layer, i) ? n->trained->rank : 0;
        }
    }
}

/* In the order of the forward pass. */
static uint32_t block_linears(const struct network *n, struct network_work_sizes s,
                              struct network_work_linear out[BLOCK_LINEARS_MAX])
{
    uint32_t count = 0;
    if (network_traits(n)->fused_qkv) {
        out[count++] = product(s.rows, 3 * s.inner, s.width, n->biases, 1, false);
    } else {
        out[count++] = product(s.rows, s.inner, s.width, n->biases, 1, false);
        out[count++] = product(s.rows, s.shared, s.width, n->biases, 1, false);
        out[count++] = product(s.rows, s.shared, s.width, n->biases, 1, false);
    }
    out[count++] = product(s.rows, s.width, s.inner, network_traits(n)->out_bias, 1, false);
    count += cross_linears(s, out + count);
    count += for_all_linears(s, out + count);
    count += ff_linears(n, s, out + count);
    cut_linears(n, count, out);
    note_trained(n, s.layer, out, count);
    return count;
}

/* Adds the sums of pieces: `sums` of rows of C. */
static void add_piece_sums(const struct network *n, struct network_work_sizes s, uint64_t sums,
                           struct network_work_list *list)
{
    if (n->pieces > 1) add_times(list, sums * (n->pieces - 1), KERNEL_RESIDUAL, s.rows, s.width, 0);
}

static void cross_core(const struct network *n, struct network_work_sizes s, enum kernel kernel,
                       struct network_work_list *list)
{
    struct network_square squares[T5_SQUARES_MAX];
    uint32_t count = s.seen > 0 ? network_squares(s.tokens, s.seen, squares) : 0;
    for (uint32_t i = 0; i < count; i++)
        add(list, kernel, s.batch * n->heads * squares[i].count, squares[i].side, n->head_width);
}

/* Adds scores, their softmax, and the weighted values. */
static void block_core(const struct network *n, struct network_work_sizes s, struct network_work_list *list)
{
    add(list, s.causal ? KERNEL_ATTENTION_FORWARD : KERNEL_ATTENTION_FULL_FORWARD,
        s.batch * n->heads, s.tokens, n->head_width);
    cross_core(n, s, KERNEL_ATTENTION_FULL_FORWARD, list);
}

static void block_core_backward(const struct network *n, struct network_work_sizes s, struct network_work_list *list)
{
    add(list, s.causal ? KERNEL_ATTENTION_BACKWARD : KERNEL_ATTENTION_FULL_BACKWARD,
        s.batch * n->heads, s.tokens, n->head_width);
    cross_core(n, s, KERNEL_ATTENTION_FULL_BACKWARD, list);
}

/* Adds the norm of the encoder's rows, which are split like a layer's own. */
static void joining_norm(struct network_work_sizes s, enum kernel norm, struct network_work_list *list)
{
    if (s.joins) add(list, norm, s.batch * s.seen / (s.rows / s.own), s.width, 0);
}

/* Sums outside norm kernels: the last of a pre-norm block, both of a parallel one. */
static uint32_t lone_sums(const struct network *n)
{
    if (!network_norms_first(n)) return 0;
    return network_traits(n)->parallel ? 2 : 1;
}

/* Forward and backward differ only in the norm's kernel. */
static void block_positions(const struct network *n, struct network_work_sizes s, enum kernel norm,
                            struct network_work_list *list)
{
    const struct network_traits *traits = network_traits(n);
    uint64_t heads = n->heads + network_kv_heads(n);
    uint64_t turned = n->rotary_width > 0 ? heads * n->rotary_width : s.inner + s.shared;
    if (traits->qk_norm) add(list, norm, s.rows * heads, n->head_width, 0);
    if (traits->rotary) add(list, KERNEL_ROPE, s.rows, turned, 0);
}

/* Moves rows to their experts and back. */
static void block_dispatch(const struct network *n, struct network_work_sizes s, struct network_work_list *list)
{
    if (n->experts > 0) add_times(list, 2, KERNEL_GATHER, s.rows * n->experts_chosen, s.width, 0);
}

static void block_forward(const struct network *n, struct network_work_sizes s, struct network_work_list *list)
{
    const struct network_traits *traits = network_traits(n);
    struct network_work_linear linears[BLOCK_LINEARS_MAX];
    uint32_t linear_count = block_linears(n, s, linears);
    bool apart = network_norms_first(n) && traits->parallel;
    add(list, norm_forward_of(n), s.own, s.width, network_norms_first(n) ? 0 : 1);
    if (!traits->one_norm) add(list, norm_forward_of(n), s.own, s.width, apart ? 0 : 1);
    if (traits->outer_norms) add_times(list, 2, norm_forward_of(n), s.own, s.width, 0);
    if (s.seen > 0) add(list, norm_forward_of(n), s.own, s.width, 1);
    joining_norm(s, norm_forward_of(n), list);
    for (uint32_t i = 0; i < linear_count; i++) linear_forward(list, linears[i]);
    block_positions(n, s, norm_forward_of(n), list);
    block_core(n, s, list);
    block_dispatch(n, s, list);
    add(list, traits->gated ? KERNEL_SWIGLU_FORWARD : KERNEL_GELU_FORWARD, s.rows * network_chosen(n), s.ff, 0);
    if (s.for_all > 0) add(list, KERNEL_SWIGLU_FORWARD, s.rows, s.for_all, 0);
    if (s.for_all > 0) add(list, KERNEL_RESIDUAL, s.own, s.width, 0); /* times its gate */
    if (network_norms_first(n)) add_times(list, lone_sums(n), KERNEL_RESIDUAL, s.own, s.width, 0);
    add_piece_sums(n, s, traits->parallel ? 1 : 2, list);
}

/* Adds recomputation. Pre-norm: the backward pass needs nothing of the last product. */
static void block_recompute(const struct network *n, struct network_work_sizes s, struct network_work_list *list)
{
    struct network_work_linear linears[BLOCK_LINEARS_MAX];
    block_forward(n, s, list);
    if (!network_norms_first(n)) return;
    if (!network_traits(n)->outer_norms && n->experts == 0)
        remove_linear_forward(list, linears[block_linears(n, s, linears) - 1]);
    const uint64_t pieces = pieces_of(n) - 1;
    for (uint32_t i = 0; i < lone_sums(n) + pieces; i++) remove_one(list, KERNEL_RESIDUAL, s.own, s.width, 0);
}

static void block_backward(const struct network *n, struct network_work_sizes s, struct network_work_list *list)
{
    struct network_work_linear linears[BLOCK_LINEARS_MAX];
    for (uint32_t i = block_linears(n, s, linears); i-- > 0;) linear_backward(list, linears[i]);
    if (!(list->parts & PART_INPUT)) return;
    add(list, network_traits(n)->gated ? KERNEL_SWIGLU_BACKWARD : KERNEL_GELU_BACKWARD, s.rows * network_chosen(n),
        s.ff, 0);
    if (s.for_all > 0) add(list, KERNEL_SWIGLU_BACKWARD, s.rows, s.for_all, 0);
    if (s.for_all > 0) add(list, KERNEL_RESIDUAL, s.own, s.width, 0);
    block_dispatch(n, s, list);
    block_positions(n, s, norm_backward_of(n), list);
    block_core_backward(n, s, list);
    joining_norm(s, norm_backward_of(n), list);
    for (uint32_t i = 0; i < network_block_norms(n) + (s.seen > 0); i++)
        add(list, norm_backward_of(n), s.own, s.width, network_norms_first(n) ? 1 : 0);
    add_piece_sums(n, s, network_block_norms(n), list);
}

/* --- embeddings ----------------------------------------------------------------------------- */

static struct network_work_linear patch_linear(const struct network *n, struct network_work_sizes s)
{
    return product(s.batch * (s.tokens - 1), s.width, n->channels * n->patch * n->patch, true, 1, false);
}

/* Returns the projection from a token table narrower than the network. */
static struct network_work_linear word_projection(const struct network *n, struct network_work_sizes s)
{
    return product(s.rows, s.width, n->word_width, false, 1, false);
}

static void embedding_forward(const struct network *n, struct network_work_sizes s, struct network_work_list *list)
{
    if (n->family == NETWORK_VIT) {
        struct network_work_linear patches = patch_linear(n, s);
        add(list, KERNEL_GATHER, patches.rows, patches.in, 0);
        linear_forward(list, patches);
        add(list, KERNEL_RESIDUAL, s.rows, s.width, 0); /* the positions */
        return;
    }
    add(list, KERNEL_EMBED_FORWARD, s.rows, network_word_width(n), list->rounded);
    if (n->word_width > 0) {
        linear_forward(list, word_projection(n, s));
        add(list, KERNEL_EMBED_FORWARD, s.rows, s.width, list->rounded); /* the positions */
    }
    if (n->family != NETWORK_BERT) return;
    if (n->token_types > 0) add(list, KERNEL_EMBED_FORWARD, s.rows, s.width, list->rounded);
    add(list, KERNEL_NORM_FORWARD, s.own, s.width, 0);
}

static void embedding_backward(const struct network *n, struct network_work_sizes s, struct network_work_list *list)
{
    if (!(list->parts & PART_WEIGHT)) return;
    if (n->family == NETWORK_VIT) {
        struct network_work_linear patches = patch_linear(n, s);
        add(list, KERNEL_GATHER, patches.rows, patches.in, 0); /* nothing is kept */
        add(list, KERNEL_GATHER, patches.rows, patches.out, 0);
        add(list, KERNEL_BIAS_BACKWARD, s.batch, s.tokens * s.width, 0); /* the positions */
        linear_weight(list, patches);
        return;
    }
    uint64_t rows = network_table_rows(n);
    if (n->family == NETWORK_BERT) {
        /* recomputed: an embedding keeps nothing */
        embedding_forward(n, s, list);
        add(list, KERNEL_NORM_BACKWARD, s.own, s.width, 0);
        if (n->token_types > 0)
            add(list, KERNEL_EMBED_BACKWARD, s.rows, s.width, n->token_types);
        rows -= n->token_types;
    }
    if (n->word_width > 0) {
        add(list, KERNEL_EMBED_FORWARD, s.rows, n->word_width, list->rounded); /* nothing is kept */
        list->parts |= PART_INPUT;                                             /* of its rows */
        linear_backward(list, word_projection(n, s));
        add(list, KERNEL_EMBED_BACKWARD, s.rows, n->word_width, n->vocabulary);
        rows -= n->vocabulary;
    }
    add(list, KERNEL_EMBED_BACKWARD, s.rows, s.width, rows);
}

/* --- heads ---------------------------------------------------------------------------------- */

enum { LOGIT_ROWS_MIN = 512, LOGIT_BYTES = 64 << 20 };

uint64_t network_logit_rows(const struct network *network, uint64_t rows)
{
    assert(rows > 0 && network->vocabulary > 0);
    /* pieces: as on one device */
    const uint64_t words = network->vocabulary * (network->pieces > 0 ? network->slice_of : 1);
    uint64_t most = LOGIT_BYTES / sizeof(float) / words;
    if (most < LOGIT_ROWS_MIN) most = LOGIT_ROWS_MIN;
    uint64_t pieces = rows / most + (rows % most > 0);
    return rows / pieces + (rows % pieces > 0);
}

enum { HEAD_PIECES_MAX = 2, HEAD_LINEARS_MAX = 3 + HEAD_PIECES_MAX };

/* Lists all pieces but the last, and the last. */
static uint32_t head_words(const struct network *n, struct network_work_sizes s,
                           struct network_work_linear out[HEAD_PIECES_MAX])
{
    uint64_t rows = s.logits, rest = s.rows % rows, pieces = pieces_of(n);
    bool bias = network_traits(n)->head_bias;
    uint64_t width = network_word_width(n);
    out[0] = product(rows, n->vocabulary / pieces, width, bias, s.rows / rows * pieces, true);
    out[1] = product(rest, n->vocabulary / pieces, width, bias, pieces, true);
    return rest > 0 ? 2 : 1;
}

/* A tied table is the embedding's. The head's own matrix stands for all pieces of logits; bert's pooler comes first in
 * files and last in the pass. */
static void note_head_trained(const struct network *n, uint64_t layer, struct network_work_linear *linears,
                              uint32_t count)
{
    struct tensor_spec specs[LAYER_TENSORS_MAX];
    if (!n->trained) return;
    const uint32_t tensors = network_layer_shapes(n, layer, specs);
    bool frozen = tensors > 0, words = network_first_trained(n) > 0;
    for (uint32_t i = 0; i < tensors; i++) frozen &= specs[i].frozen;
    for (uint32_t i = 0; i < tensors && !n->tied_head; i++)
        if (specs[i].matrix && specs[i].shape[0] == n->vocabulary) words = specs[i].frozen;
    for (uint32_t i = 0; i < count; i++) {
        linears[i].frozen = linears[i].loss && linears[i].out == n->vocabulary ? words : frozen;
        linears[i].frozen_bias = frozen;
    }
}

static uint32_t head_linears(const struct network *n, struct network_work_sizes s,
                             struct network_work_linear out[HEAD_LINEARS_MAX])
{
    uint32_t count = 0;
    if (network_classifies(n)) { /* only of the first token */
        if (n->pooler) out[count++] = product(s.batch, s.width, s.width, true, 1, false);
        out[count++] = product(s.batch, n->classes, s.width, true, 1, true);
        note_trained(n, s.layer, out, count);
        return count;
    }
    if (n->family == NETWORK_BERT)
        out[count++] = product(s.own, s.width, s.width, true, 1, false);
    if (n->word_width > 0) out[count++] = product(s.own, n->word_width, s.width, false, 1, false);
    count += head_words(n, s, out + count);
    if (n->pooler) {
        out[count++] = product(s.batch, s.width, s.width, true, 1, false);
        out[count++] = product(s.batch, 2, s.width, true, 1, true);
    }
    note_head_trained(n, s.layer, out, count);
    return count;
}

static void head_loss(const struct network *n, struct network_work_sizes s, struct network_work_list *list)
{
    struct network_work_linear pieces[HEAD_PIECES_MAX];
    if (network_classifies(n)) {
        add(list, KERNEL_LOSS, s.batch, n->classes, 0);
        return;
    }
    uint32_t count = head_words(n, s, pieces);
    for (uint32_t i = 0; i < count; i++)
        add_times(list, pieces[i].times, KERNEL_LOSS, pieces[i].rows, n->vocabulary, 0);
}

/* Returns true if a norm precedes the head's last product (with classes: of first tokens), except in a BERT with
 * classes and with norms after sums. */
static bool has_head_norm(const struct network *n)
{
    return n->family == NETWORK_BERT ? !network_classifies(n) : network_norms_first(n);
}

static void head_forward(const struct network *n, struct network_work_sizes s, struct network_work_list *list)
{
    struct network_work_linear linears[HEAD_LINEARS_MAX];
    uint32_t count = head_linears(n, s, linears);
    bool classifies = network_classifies(n);
    uint64_t rows = classifies ? s.batch : s.own;
    if (n->family == NETWORK_BERT) add(list, KERNEL_GELU_FORWARD, rows, s.width, 0); /* as a pooler's tanh */
    if (classifies) add(list, KERNEL_GATHER, s.batch, s.width, 0);
    if (has_head_norm(n)) add(list, norm_forward_of(n), rows, s.width, 0);
    for (uint32_t i = 0; i < count; i++) linear_forward(list, linears[i]);
    head_loss(n, s, list);
    if (n->pooler && !classifies) add(list, KERNEL_LOSS, s.batch, 2, 0);
}

static void head_backward(const struct network *n, struct network_work_sizes s, struct network_work_list *list)
{
    struct network_work_linear linears[HEAD_LINEARS_MAX];
    bool classifies = network_classifies(n);
    uint64_t rows = classifies ? s.batch : s.own;
    for (uint32_t i = head_linears(n, s, linears); i-- > 0;) linear_backward(list, linears[i]);
    if (!(list->parts & PART_INPUT)) return;
    add_piece_sums(n, s, 1, list);
    if (has_head_norm(n)) add(list, norm_backward_of(n), rows, s.width, 0);
    if (n->family == NETWORK_BERT) add(list, KERNEL_GELU_BACKWARD, rows, s.width, 0);
    if (classifies) add(list, KERNEL_GATHER, s.rows, s.width, 0);
}

/* --- any layer ------------------------------------------------------------------------------ */

/* Adds a profile's work; half of its backward pass counts for weight gradients. */
static void opaque_work(const struct network *network, uint64_t layer, enum network_pass pass, uint64_t microbatch,
                        struct network_work_list *list)
{
    const struct layer_profile *profile = &network->profile[layer];
    uint64_t ns = 0;
    switch (pass) {
    case PASS_FORWARD:
    case PASS_RECOMPUTE: ns = profile->forward_ns; break;
    case PASS_BACKWARD: ns = profile->backward_ns; break;
    case PASS_INPUT: ns = profile->backward_ns - profile->backward_ns / 2; break;
    case PASS_WEIGHT: ns = profile->backward_ns / 2; break;
    case PASS_RECOMPUTE_CORE: /* unknown for a profile */
    case PASS_UPDATE:
    case PASS_COUNT: break;
    }
    ns = network_profile_share(network, ns, microbatch);
    if (ns > 0) add(list, KERNEL_FIXED, ns, 0, 0);
}

enum kernel optimizer_kernel(struct state_format format, bool apart)
{
    static const enum kernel kernels[PRECISION_NUMBERS][OPTIMIZER_COUNT] = {
        [PRECISION_FP32] = {[OPTIMIZER_SGD] = KERNEL_SGD,
                            [OPTIMIZER_ADAMW] = KERNEL_ADAMW,
                            [OPTIMIZER_MOMENTUM] = KERNEL_MOMENTUM},
        [PRECISION_BF16] = {[OPTIMIZER_SGD] = KERNEL_SGD,
                            [OPTIMIZER_ADAMW] = KERNEL_ADAMW_BF16,
                            [OPTIMIZER_MOMENTUM] = KERNEL_MOMENTUM_BF16}};
    static const enum kernel apart_kernels[PRECISION_NUMBERS][OPTIMIZER_COUNT] = {
        [PRECISION_FP32] = {[OPTIMIZER_SGD] = KERNEL_SGD_APART,
                            [OPTIMIZER_ADAMW] = KERNEL_ADAMW_APART,
                            [OPTIMIZER_MOMENTUM] = KERNEL_MOMENTUM_APART},
        [PRECISION_BF16] = {[OPTIMIZER_SGD] = KERNEL_SGD_APART,
                            [OPTIMIZER_ADAMW] = KERNEL_ADAMW_BF16_APART,
                            [OPTIMIZER_MOMENTUM] = KERNEL_MOMENTUM_BF16_APART}};
    assert(format.optimizer < OPTIMIZER_COUNT && format.moments < PRECISION_NUMBERS);
    return (apart ? apart_kernels : kernels)[format.moments][format.optimizer];
}

/* Adds all parameters as one item; vectors count as rounded. */
static void update_work(const struct network *network, uint64_t layer, struct state_format format,
                        struct network_work_list *list)
{
    uint64_t parameters = network_layer_trained_parameters(network, layer);
    if (parameters > 0)
        add(list, optimizer_kernel(format, false), parameters, format.weights != PRECISION_FP32, 0);
}

static void pass_work(const struct network *network, uint64_t layer, enum network_pass pass,
                      struct network_work_sizes s, struct network_work_list *list)
{
    typedef void (*layer_work)(const struct network *, struct network_work_sizes, struct network_work_list *);
    static const layer_work table[][PASS_COUNT] = {
        [LAYER_EMBEDDING] = {[PASS_FORWARD] = embedding_forward,
                             [PASS_BACKWARD] = embedding_backward,
                             [PASS_INPUT] = embedding_backward,
                             [PASS_WEIGHT] = embedding_backward,
                             [PASS_RECOMPUTE] = embedding_forward},
        [LAYER_BLOCK] = {[PASS_FORWARD] = block_forward,
                         [PASS_BACKWARD] = block_backward,
                         [PASS_INPUT] = block_backward,
                         [PASS_WEIGHT] = block_backward,
                         [PASS_RECOMPUTE] = block_recompute,
                         [PASS_RECOMPUTE_CORE] = block_core},
        [LAYER_HEAD] = {[PASS_FORWARD] = head_forward,
                        [PASS_BACKWARD] = head_backward,
                        [PASS_INPUT] = head_backward,
                        [PASS_WEIGHT] = head_backward,
                        [PASS_RECOMPUTE] = head_forward},
    };
    list->parts = pass == PASS_INPUT    ? PART_INPUT
                  : pass == PASS_WEIGHT ? PART_WEIGHT
                                        : PART_INPUT | PART_WEIGHT;
    const bool back = pass == PASS_BACKWARD || pass == PASS_INPUT || pass == PASS_WEIGHT;
    layer_work work = table[network_layer_kind(network, layer)][pass];
    if (back && layer < network_first_trained(network)) return; /* all below is frozen, too */
    if (work) work(network, s, list);
}

uint32_t network_layer_work(const struct network *network, uint64_t layer, enum network_pass pass,
                            uint64_t microbatch, uint64_t sequence, struct state_format format,
                            struct work_item out[LAYER_WORK_MAX])
{
    assert(layer < network->layer_count && pass < PASS_COUNT);
    struct network_work_list list = {.work = {.items = out, .capacity = LAYER_WORK_MAX},
                                     .rounded = format.weights == PRECISION_BF16_WEIGHTS,
                                     .half = format.weights == PRECISION_BF16};
    struct network room;
    const struct network *const of = network_of_layer(network, layer, &room);
    if (network->family == NETWORK_PROFILE)
        opaque_work(network, layer, pass, microbatch, &list);
    else if (pass == PASS_UPDATE)
        update_work(network, layer, format, &list);
    else if (network->graph)
        graph_layer_work(network->graph, layer, pass, microbatch, &list.work);
    else
        pass_work(of, layer, pass, sizes_of(of, layer, microbatch, sequence), &list);
    return list.work.count;
}

/* --- shared by a tensor group --------------------------------------------------------------- */

/* Returns a share for which rows of logits are a multiple of 16 bytes. */
static uint64_t slice_vocabulary(uint64_t words, uint32_t members)
{
    enum { PADDED_TO = 8 };
    if (members == 1 || words == 0) return words;
    uint64_t share = words / members + (words % members > 0);
    return (share + PADDED_TO - 1) / PADDED_TO * PADDED_TO;
}

struct network network_slice(const struct network *network, uint32_t members, uint32_t pieces)
{
    assert(members > 0 && pieces % members == 0);
    struct network slice = *network;
    slice.heads /= members;
    slice.kv_heads /= members;
    slice.ff_width /= members;
    slice.shared_width /= members;
    slice.dense_width /= members;
    slice.pieces = pieces / members;
    slice.vocabulary = slice.pieces > 0 ? slice.pieces * slice_vocabulary(network->vocabulary, pieces)
                                        : slice_vocabulary(network->vocabulary, members);
    slice.slice_of = members > 1 || pieces > 0 ? members : 0;
    return slice;
}

struct network network_piece(const struct network *network, const struct network *slice)
{
    return slice->pieces > 0 ? network_slice(network, slice->slice_of * slice->pieces, 0) : *slice;
}

uint32_t network_slice_work(const struct network *network, uint64_t layer, enum network_pass pass,
                            uint64_t microbatch, uint64_t sequence, struct layer_share share,
                            struct work_item out[LAYER_WORK_MAX])
{
    assert(layer < network->layer_count && pass < PASS_COUNT && pass != PASS_UPDATE);
    struct network_work_list list = {.work = {.items = out, .capacity = LAYER_WORK_MAX},
                                     .rounded = share.precision == PRECISION_BF16_WEIGHTS,
                                     .half = share.precision == PRECISION_BF16};
    if (network->family == NETWORK_PROFILE) {
        opaque_work(network, layer, pass, microbatch, &list);
    } else if (network->graph) {
        graph_layer_work(network->graph, layer, pass, microbatch, &list.work);
    } else {
        struct network room,
            slice = network_slice(network_of_layer(network, layer, &room), share.members, share.pieces);
        slice.dense_width = 0;
        struct network_work_sizes s = sizes_of(&slice, layer, microbatch, sequence);
        s.logits = s.rows;
        if (share.sequence) s.own = s.rows / share.members;
        pass_work(&slice, layer, pass, s, &list);
    }
    return list.work.count;
}
