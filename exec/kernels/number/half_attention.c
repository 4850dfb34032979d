/*
 * Attention of bf16 numbers, by tiles of 64 queries and 64 keys. Letters and sums as in kernels_attention.c.
 *
 * The tiles of q, k, v and of the gradients are widened before a product, so products have exact operands; E, P and dS
 * are rounded before their products, and so are results when they are complete. Sums are fp32.
 *
 * Forward, a tile of queries meets its keys tile by tile: its scores are a row of tiles, of which the softmax is taken
 * at once. Backward has two sweeps, so that no sum over all tokens has to be kept in fp32:
 *
 *     dQ       for each tile of queries: S, dP and dS of all its keys, then dQ = dS K
 *     dK, dV   for each tile of keys: for each head of the group and each tile of queries that sees some of them: S, dP
 *              and dS again, then dK += dS^T Q and dV += P^T dO
 *
 * Queries that follow earlier tokens of their sample meet the keys of these, too. Their dK and dV are sums over several
 * calls, the last tokens' first, rounded after each.
 *
 * A lane of the scratch has two tiles of scores (64 x T) and MEMORY_ATTENTION_HALF_TILES tiles of (64 x D). FLOPs,
 * causal: forward 2 T^2 D, backward 7 T^2 D per head, two of them again for the second sweep.
 */
#include "exec/kernels/kernels_host.h"

#include <math.h>
#include <string.h>

#include <omp.h>

#include "models/job/memory.h"

enum { TILE = MEMORY_ATTENTION_TILE };

/* A lane's scratch, fp32. */
struct lane {
    float *p, *ds;                        /* (TILE,T) */
    float *q, *dout, *out, *k, *v, *dk, *dv; /* (TILE,D) */
};

/* A head of one sample, or of one of its packed rows: `t` tokens from `begin` on, and `keys` of them and of those
 * before. */
struct head {
    const struct kernel_attention *a;
    int64_t sample, index, begin, t, keys;
    const bf16 *q, *k, *v, *out, *dout;
    const float *lse;
    float scale;
};

/* Neighbouring queries, and keys. */
struct range {
    int64_t first, count;
};

static struct lane lane_of(const struct kernel_attention *a, int64_t number)
{
    const int64_t keys = a->earlier + a->t, scores = host_min(a->t, TILE) * keys, each = host_min(keys, TILE) * a->d;
    struct lane lane = {.p = a->scratch + number * (2 * scores + MEMORY_ATTENTION_HALF_TILES * each)};
    lane.ds = lane.p + scores;
    lane.q = lane.ds + scores;
    lane.dout = lane.q + each;
    lane.out = lane.dout + each;
    lane.k = lane.out + each;
    lane.v = lane.k + each;
    lane.dk = lane.v + each;
    lane.dv = lane.dk + each;
    return lane;
}

static int64_t row_out(const struct kernel_attention *a)
{
    return a->h * a->d;
}

static int64_t shared_head(const struct kernel_attention *a, int64_t index)
{
    return index / (a->h / a->kv);
}

/* Returns the head over the row of its sample that begins at token `begin`. */
static struct head head_of(const struct kernel_attention *a, int64_t sample, int64_t index, int64_t begin)
{
    const int32_t *const begins = a->begins ? a->begins + sample * a->t : NULL;
    const int64_t token = sample * a->t + begin, held = a->held > 0 ? a->held : a->t;
    const int64_t kv = (sample * held + begin) * a->row_kv + shared_head(a, index) * a->d;
    const int64_t out = token * row_out(a) + index * a->d;
    int64_t end = begins ? begin + 1 : a->t;
    while (end < a->t && begins[end] == begin) end++;
    return (struct head){.a = a, .sample = sample, .index = index, .begin = begin, .t = end - begin,
                         .keys = a->earlier + end - begin, .q = a->q + token * a->row_q + index * a->d,
                         .k = a->k + kv, .v = a->v + kv, .out = a->out + out,
                         .dout = a->dout ? a->dout + out : NULL,
                         .lse = a->stats + (sample * a->h + index) * a->t + begin,
                         .scale = a->scale > 0 ? a->scale : (float)(1.0 / sqrt((double)a->d))};
}

/* --- rows --------------------------------------------------------------------------------------- */

/* Widens rows [first, first + count) of x, `row` numbers apart. */
static void widen(float *to, const bf16 *x, int64_t row, struct range rows, int64_t d)
{
    for (int64_t i = 0; i < rows.count; i++) host_widen_row(to + i * d, x + (rows.first + i) * row, d);
}

static void store(bf16 *to, int64_t row, struct range rows, const float *x, int64_t d)
{
    for (int64_t i = 0; i < rows.count; i++) host_round_row(to + (rows.first + i) * row, x + i * d, d);
}

/* --- tiles -------------------------------------------------------------------------------------- */

static struct range tile_at(int64_t first, int64_t end)
{
    return (struct range){first, host_min(TILE, end - first)};
}

/* Returns the keys that a tile of queries sees some of. */
static struct range keys_of(const struct head *head, struct range queries)
{
    if (!head->a->causal) return (struct range){0, head->t};
    const int64_t window = head->a->window, first = head->a->earlier + queries.first;
    const int64_t hidden = window > 0 ? first + 1 - window : 0, begin = hidden > 0 ? hidden : 0;
    return (struct range){begin, first + queries.count - begin};
}

/* Returns how many of the keys the first query sees, if it sees all from the first key on; may be negative. */
static int64_t seen(const struct head *head, struct range queries, struct range keys)
{
    return head->a->causal ? head->a->earlier + queries.first + 1 - keys.first : keys.count;
}

/* Computes s(queries, some of the keys) = alpha x y^T, a tile in a row of `width`. */
static void multiply_rows(float *s, int64_t width, const float *x, const float *y, int64_t rows, int64_t keys,
                          int64_t d, float alpha)
{
    host_multiply(&(struct host_product){.transpose_b = true, .m = rows, .n = keys, .k = d, .alpha = alpha, .a = x,
                                         .row_a = d, .b = y, .row_b = d, .c = s, .row_c = width});
}

/* Computes s(queries, keys) = alpha x y^T for widened x; y is of the keys, `room` for a tile of it. */
static void all_scores(const struct head *head, float *s, const float *x, int64_t rows, struct range keys,
                       const bf16 *y, float *room, float alpha)
{
    const struct kernel_attention *const a = head->a;
    const int64_t end = keys.first + keys.count;
    for (int64_t first = keys.first; first < end; first += TILE) {
        const struct range tile = tile_at(first, end);
        widen(room, y, a->row_kv, tile, a->d);
        multiply_rows(s + first - keys.first, keys.count, x, room, rows, tile.count, a->d, alpha);
    }
}

/* Computes out(queries, D) = s(queries, keys) y, tile by tile. */
static void weigh(const struct head *head, float *out, const float *s, int64_t rows, struct range keys, const bf16 *y,
                  float *room)
{
    const struct kernel_attention *const a = head->a;
    const int64_t end = keys.first + keys.count;
    for (int64_t first = keys.first; first < end; first += TILE) {
        const struct range tile = tile_at(first, end);
        widen(room, y, a->row_kv, tile, a->d);
        host_multiply(&(struct host_product){.m = rows, .n = a->d, .k = tile.count, .alpha = 1.0f,
                                             .beta = first > keys.first ? 1.0f : 0.0f, .a = s + first - keys.first,
                                             .row_a = keys.count, .b = room, .row_b = a->d, .c = out, .row_c = a->d});
    }
}

/* Adds s(queries, keys)^T x(queries, D) to out(keys, D), or writes it. */
static void add_to_keys(float *out, const float *s, const float *x, int64_t rows, int64_t keys, int64_t d, bool write)
{
    host_multiply(&(struct host_product){.transpose_a = true, .m = keys, .n = d, .k = rows, .alpha = 1.0f,
                                         .beta = write ? 0.0f : 1.0f, .a = s, .row_a = keys, .b = x, .row_b = d,
                                         .c = out, .row_c = d});
}

static void drop(const struct head *head, float *s, struct range queries, struct range keys)
{
    const struct kernel_dropout *const dropout = &head->a->dropout;
    const struct host_scores at = {.sample = dropout->samples + head->sample, .head = dropout->heads + head->index,
                                   .first_query = head->a->earlier + queries.first, .rows = queries.count,
                                   .first_key = keys.first, .keys = keys.count};
    if (dropout->p > 0) host_drop_scores(s, &at, dropout);
}

/* --- forward ------------------------------------------------------------------------------------ */

static void head_forward(const struct head *head, bf16 *out, float *lse, const struct lane *lane)
{
    const struct kernel_attention *const a = head->a;
    for (int64_t first = 0; first < head->t; first += TILE) {
        const struct range queries = tile_at(first, head->t), keys = keys_of(head, queries);
        float inverse[TILE];
        widen(lane->q, head->q, a->row_q, queries, a->d);
        all_scores(head, lane->p, lane->q, queries.count, keys, head->k, lane->k, head->scale);
        if (a->cap > 0) host_cap_scores(lane->p, queries.count * keys.count, a->cap);
        host_softmax_rows(lane->p, lse + first, inverse, queries.count, keys.count, seen(head, queries, keys),
                          a->window);
        drop(head, lane->p, queries, keys);
        host_round_rows(lane->p, queries.count, keys.count, keys.count);
        weigh(head, lane->out, lane->p, queries.count, keys, head->v, lane->v);
        host_scale_rows(lane->out, inverse, queries.count, a->d, a->d);
        store(out, row_out(a), queries, lane->out, a->d);
    }
}

/* --- backward ----------------------------------------------------------------------------------- */

/* Widens a tile of q, dout and out; delta gets the products of the rows of the latter two. */
static void load_queries(const struct head *head, const struct lane *lane, struct range queries, float *delta)
{
    const struct kernel_attention *const a = head->a;
    widen(lane->q, head->q, a->row_q, queries, a->d);
    widen(lane->dout, head->dout, row_out(a), queries, a->d);
    widen(lane->out, head->out, row_out(a), queries, a->d);
    host_row_products(delta, lane->dout, lane->out, queries.count, a->d, a->d);
}

/* Makes P and dS of scores and of the gradients of weights, rounded. */
static void through_softmax(const struct head *head, const struct lane *lane, struct range queries, struct range keys,
                            const float *delta)
{
    const struct kernel_attention *const a = head->a;
    const int64_t rows = queries.count;
    if (a->cap > 0) host_cap_scores(lane->p, rows * keys.count, a->cap);
    drop(head, lane->ds, queries, keys);
    host_softmax_backward_rows(lane->p, lane->ds, head->lse + queries.first, delta, rows, keys.count,
                               seen(head, queries, keys), a->window, head->scale, a->cap);
    drop(head, lane->p, queries, keys);
    host_round_rows(lane->p, rows, keys.count, keys.count);
    host_round_rows(lane->ds, rows, keys.count, keys.count);
}

static void queries_backward(const struct head *head, bf16 *dq, const struct lane *lane)
{
    const struct kernel_attention *const a = head->a;
    for (int64_t first = 0; first < head->t; first += TILE) {
        const struct range queries = tile_at(first, head->t), keys = keys_of(head, queries);
        float delta[TILE];
        load_queries(head, lane, queries, delta);
        all_scores(head, lane->p, lane->q, queries.count, keys, head->k, lane->k, head->scale);
        all_scores(head, lane->ds, lane->dout, queries.count, keys, head->v, lane->v, 1.0f);
        through_softmax(head, lane, queries, keys, delta);
        weigh(head, lane->out, lane->ds, queries.count, keys, head->k, lane->k);
        store(dq, a->row_q, queries, lane->out, a->d);
    }
}

/* Returns true if a query of the tile sees a key of the tile. */
static bool meet(const struct head *head, struct range queries, struct range keys)
{
    const struct range met = keys_of(head, queries);
    return keys.first < met.first + met.count && met.first < keys.first + keys.count;
}

/* Adds a head's part to the gradients of a tile of keys and values. Returns true if any was added before. */
static bool add_head(const struct head *head, const struct lane *lane, struct range keys, bool added)
{
    const int64_t d = head->a->d;
    for (int64_t first = 0; first < head->t; first += TILE) {
        const struct range queries = tile_at(first, head->t);
        float delta[TILE];
        if (!meet(head, queries, keys)) continue;
        load_queries(head, lane, queries, delta);
        multiply_rows(lane->p, keys.count, lane->q, lane->k, queries.count, keys.count, d, head->scale);
        multiply_rows(lane->ds, keys.count, lane->dout, lane->v, queries.count, keys.count, d, 1.0f);
        through_softmax(head, lane, queries, keys, delta);
        add_to_keys(lane->dk, lane->ds, lane->q, queries.count, keys.count, d, !added);
        add_to_keys(lane->dv, lane->p, lane->dout, queries.count, keys.count, d, !added);
        added = true;
    }
    return added;
}

/* Begins the gradients of a tile of keys and values with the sums so far. */
static void begin_keys(const struct kernel_attention *a, const struct lane *lane, struct range keys, const bf16 *dk,
                       const bf16 *dv)
{
    if (a->adds) {
        widen(lane->dk, dk, a->row_kv, keys, a->d);
        widen(lane->dv, dv, a->row_kv, keys, a->d);
        return;
    }
    memset(lane->dk, 0, (size_t)(keys.count * a->d) * sizeof *lane->dk);
    memset(lane->dv, 0, (size_t)(keys.count * a->d) * sizeof *lane->dv);
}

/* Goes through the keys of a row of tokens; the group's heads begin at `index`. A key is seen at least by its own
 * token, but for those of earlier tokens in a window. */
static void keys_backward(const struct head *head, bf16 *dk, bf16 *dv, const struct lane *lane)
{
    const struct kernel_attention *const a = head->a;
    const int64_t end = head->index + a->h / a->kv;
    for (int64_t first = 0; first < head->keys; first += TILE) {
        const struct range keys = tile_at(first, head->keys);
        bool added = a->earlier > 0 || a->adds;
        if (added) begin_keys(a, lane, keys, dk, dv);
        widen(lane->k, head->k, a->row_kv, keys, a->d);
        widen(lane->v, head->v, a->row_kv, keys, a->d);
        for (int64_t index = head->index; index < end; index++) {
            const struct head one = head_of(a, head->sample, index, head->begin);
            added = add_head(&one, lane, keys, added);
        }
        store(dk, a->row_kv, keys, lane->dk, a->d);
        store(dv, a->row_kv, keys, lane->dv, a->d);
    }
}

/* --- drivers ------------------------------------------------------------------------------------ */

static int lane_threads(const struct kernels *kernels)
{
    return (int)host_min(kernels->threads, MEMORY_ATTENTION_LANES);
}

void half_attention_forward(const struct kernels *kernels, const struct kernel_attention *a)
{
#pragma omp parallel for schedule(static) num_threads(lane_threads(kernels))
    for (int64_t task = 0; task < a->b * a->h; task++) {
        const struct lane lane = lane_of(a, omp_get_thread_num());
        struct head head;
        for (int64_t begin = 0; begin < a->t; begin += head.t) {
            head = head_of(a, task / a->h, task % a->h, begin);
            head_forward(&head, a->out + (head.out - a->out), a->stats + task * a->t + begin, &lane);
        }
    }
}

void half_attention_backward(const struct kernels *kernels, const struct kernel_attention *a)
{
    const int64_t group = a->h / a->kv;
#pragma omp parallel for schedule(static) num_threads(lane_threads(kernels))
    for (int64_t task = 0; task < a->b * a->kv; task++) {
        const struct lane lane = lane_of(a, omp_get_thread_num());
        const int64_t sample = task / a->kv, first = task % a->kv * group;
        struct head head;
        for (int64_t begin = 0; begin < a->t; begin += head.t) {
            for (int64_t index = first; index < first + group; index++) {
                head = head_of(a, sample, index, begin);
                queries_backward(&head, a->dq + (head.q - a->q), &lane);
            }
            head = head_of(a, sample, first, begin);
            keys_backward(&head, a->dk + (head.k - a->k), a->dv + (head.v - a->v), &lane);
        }
    }
}
