/*
 * Attention of each head over tiles of 64 queries, forward and backward.
 *
 * Letters: q, k, v rows of D numbers for each of T tokens. The product accepts rows at any distance, so nothing is
 * permuted or copied.
 *
 *     s(i,j) = q(i) . k(j) / sqrt(D);  p = softmax over j (causal: j <= i);  out(i) = sum p(i,j) v(j)
 *
 * A tile meets only the keys that its last query may see, so causal attention does half of the products (the
 * overhang's weights are zero):
 *
 *         keys ->              forward:    S = Q K^T, E = exp(S - largest), O = (E V) / sum of E
 *       [#       ]  tile 0     backward:   S again, P = exp(S - lse),
 *       [##      ]  tile 1                 dP = dO V^T, dS = P (dP - dO . O),
 *       [###     ]  tile 2                 dQ = dS K, dK += dS^T Q, dV += P^T dO
 *
 * Only the log of the sum of exponentials (lse) is kept: forward memory is O(T), and backward recomputes each tile's
 * weights. There the last tile goes first: it meets all keys, so it writes dK and dV and the others add.
 *
 * With a window a tile begins at the first key that its first query sees. In the backward pass the last tile meets all
 * keys all the same, since it writes dK and dV.
 *
 * Packed rows are computed one after the other, as samples of their own: their results have the bits of the rows alone.
 *
 * Queries that follow earlier tokens of their sample meet the keys of these, too: a tile's keys begin with theirs.
 * Their dK and dV are sums over several calls, the last tokens' first.
 *
 * Where scores have a cap, s becomes c = cap tanh(s / cap), and dS = P (dP - dO . O) (1 - (c / cap)^2).
 *
 * Dropout multiplies E by the mask M, of 0 and 1 / (1 - p), after its sum was taken, and in the backward pass dP, and P
 * before the product with dO.
 *
 * In grouped-query attention (Ainslie et al., arXiv 2305.13245) dK and dV are sums over the group, so a group's heads
 * go one after the other in the backward pass.
 *
 * Threads share out the B*H heads (backward: groups). One thread computes a whole head, so the number of threads
 * changes no bit. A tile's two matrices (64 x T) are a thread's scratch: 0.5 MiB at T = 1024, in its second-level
 * cache.
 *
 * In a bf16 job q, k, v and dO are copied, rounded, into the scratch without gaps; E, P, dS and the results are
 * rounded in place.
 *
 * FLOPs, causal: forward 2 T^2 D, backward 5 T^2 D per head. Measured for GPT-2 124M at B 1, T 1024
 * (two threads of a Zen 4 whose products reach 230 GFLOP/s), one layer in ms and counting these
 * FLOPs, medians within 2 %; nine tenths of the time is spent in the library's products:
 *
 *     tile     forward              backward
 *       32     10.7 (151 GFLOP/s)   26.5 (152)
 *       64     10.3 (157)           24.9 (162)
 *      128     10.6 (152)           25.3 (159)
 */
#include "exec/kernels/kernels_host.h"

#include <omp.h>

#include "exec/kernels/kernels_math.h"
#include "models/job/memory.h"

enum { TILE = MEMORY_ATTENTION_TILE };

/* Row distances are in floats. */
struct shape {
    int64_t b, t, h, kv, d;
    int64_t earlier;          /* tokens before the first query */
    int64_t window;           /* 0: none */
    float scale, cap;         /* of scores; no cap: 0 */
    struct kernel_dropout dropout;
    int64_t held, held_d;     /* tokens from one sample's keys to the next; of their gradients */
    int64_t row_q, row_kv, row_out;
    int64_t row_dq, row_dkv; /* of the gradients */
    const int32_t *begins;   /* NULL: one row a sample */
    bool causal, rounded, adds;
};

/* One head of one sample. */
struct kernels_attention_head {
    const float *q, *k, *v;
    const struct shape *shape;
    int64_t sample, index; /* the sample's number in the minibatch, the head's */
};

/* Finds a head's queries among H adjacent ones. */
static int64_t place(const struct shape *shape, int64_t row, int64_t sample, int64_t index)
{
    return sample * shape->t * row + index * shape->d;
}

/* Finds the keys and values that head `index` uses, with `held` tokens to a sample. */
static int64_t place_kv(const struct shape *shape, int64_t held, int64_t row, int64_t sample, int64_t index)
{
    return sample * held * row + index / (shape->h / shape->kv) * shape->d;
}

static struct kernels_attention_head head_of(const struct shape *shape, const struct kernel_attention *a,
                                             int64_t sample, int64_t index)
{
    const int64_t kv = place_kv(shape, shape->held, shape->row_kv, sample, index);
    return (struct kernels_attention_head){.q = a->q + place(shape, shape->row_q, sample, index),
                                           .k = a->k + kv,
                                           .v = a->v + kv,
                                           .shape = shape,
                                           .sample = shape->dropout.samples + sample,
                                           .index = shape->dropout.heads + index};
}

/* Returns the row of a sample that begins at token `first`, as a shape of so many tokens. */
static struct shape row_from(const struct shape *shape, int64_t sample, int64_t first)
{
    struct shape row = *shape;
    if (!shape->begins) return row;
    const int32_t *const begins = shape->begins + sample * shape->t;
    int64_t end = first + 1;
    while (end < shape->t && begins[end] == first) end++;
    row.t = end - first;
    return row;
}

/* Returns a head from the first token of a row on. */
static struct kernels_attention_head head_from(const struct kernels_attention_head *head, const struct shape *row,
                                               int64_t first)
{
    struct kernels_attention_head own = *head;
    own.q += first * row->row_q;
    own.k += first * row->row_kv;
    own.v += first * row->row_kv;
    own.shape = row;
    return own;
}

/* The keys that a tile of queries meets. */
struct keys {
    int64_t first, count;
};

CLONES void host_cap_scores(float *s, int64_t n, float cap)
{
    math_row_cap(s, n, cap);
}

/* Writes s(rows, keys) of queries [first, first + rows). */
static void head_scores(const struct kernels_attention_head *head, float *s, int64_t first, int64_t rows,
                        struct keys keys)
{
    host_multiply(&(struct host_product){.transpose_b = true,
                                         .m = rows,
                                         .n = keys.count,
                                         .k = head->shape->d,
                                         .alpha = head->shape->scale,
                                         .a = head->q + first * head->shape->row_q,
                                         .row_a = head->shape->row_q,
                                         .b = head->k + keys.first * head->shape->row_kv,
                                         .row_b = head->shape->row_kv,
                                         .c = s,
                                         .row_c = keys.count});
    if (head->shape->cap > 0) host_cap_scores(s, rows * keys.count, head->shape->cap);
}

static struct keys head_keys(const struct kernels_attention_head *head, int64_t first, int64_t rows)
{
    const struct shape *shape = head->shape;
    if (!shape->causal) return (struct keys){0, shape->t};
    const int64_t hidden = shape->window > 0 ? shape->earlier + first + 1 - shape->window : 0;
    const int64_t begin = hidden > 0 ? hidden : 0;
    return (struct keys){begin, shape->earlier + first + rows - begin};
}

/* Returns how many of the keys the first of the queries sees, if it sees all from the first key on. */
static int64_t head_seen(const struct kernels_attention_head *head, int64_t first, struct keys keys)
{
    return head->shape->causal ? head->shape->earlier + first + 1 - keys.first : keys.count;
}

/* --- leaves ----------------------------------------------------------------------------------- */

/* Hides the keys that a row does not see: all but the last `window` (0: all) of the first `visible`, which may be
 * fewer than none or more than there are. */
CLONES_PART void hide_keys(float *s, int64_t keys, int64_t visible, int64_t window)
{
    const int64_t hidden = window > 0 ? host_min(visible - window, keys) : 0;
    for (int64_t j = visible > 0 ? visible : 0; j < keys; j++) s[j] = -INFINITY;
    for (int64_t j = 0; j < hidden; j++) s[j] = -INFINITY;
}

CLONES void host_softmax_rows(float *restrict s, float *restrict lse, float *restrict inverse,
                                int64_t rows, int64_t keys, int64_t seen, int64_t window)
{
    for (int64_t i = 0; i < rows; i++, s += keys) {
        hide_keys(s, keys, seen + i, window);
        const float largest = math_row_max(s, keys), sum = math_row_exp(s, keys, largest);
        inverse[i] = 1.0f / sum;
        lse[i] = largest + logf(sum);
    }
}

CLONES void host_scale_rows(float *restrict out, const float *restrict factors, int64_t rows,
                              int64_t d, int64_t stride)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < d; j++) out[i * stride + j] *= factors[i];
}

/* p: scores in, weights out; ds: gradients of the weights in, of the products q . k out. cap: 0 if scores have none. */
CLONES_PART void softmax_backward_part(float *restrict p, float *restrict ds, const float *lse, const float *delta,
                                       int64_t rows, int64_t keys, int64_t seen, int64_t window, float scale, float cap)
{
    const float inverse = 1.0f / cap;
    for (int64_t i = 0; i < rows; i++, p += keys, ds += keys) {
        hide_keys(p, keys, seen + i, window);
        for (int64_t j = 0; j < keys; j++) {
            const float weight = math_exp(p[j] - lse[i]);
            float slope = 1;
            if (cap > 0) slope = weight > 0 ? math_cap_slope(p[j], inverse) : 0; /* hidden keys are infinite */
            p[j] = weight;
            ds[j] = weight * (ds[j] - delta[i]) * scale * slope;
        }
    }
}

CLONES void host_softmax_backward_rows(float *restrict p, float *restrict ds, const float *lse, const float *delta,
                                         int64_t rows, int64_t keys, int64_t seen, int64_t window, float scale,
                                         float cap)
{
    if (cap > 0) softmax_backward_part(p, ds, lse, delta, rows, keys, seen, window, scale, cap);
    else softmax_backward_part(p, ds, lse, delta, rows, keys, seen, window, scale, 0);
}

CLONES void host_row_products(float *restrict delta, const float *dout, const float *out,
                                     int64_t rows, int64_t d, int64_t stride)
{
    for (int64_t i = 0; i < rows; i++) delta[i] = math_row_dot(dout + i * stride, out + i * stride, d);
}

CLONES void host_round_rows(float *x, int64_t rows, int64_t columns, int64_t stride)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            x[i * stride + j] = bf16_widen(bf16_nearest(x[i * stride + j]));
}

CLONES static void round_copy(float *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = bf16_widen(bf16_nearest(from[i]));
}

/* Drops weights of queries [first, first + rows), or their gradients. */
static void drop(const struct kernels_attention_head *head, float *s, int64_t first, int64_t rows, struct keys keys)
{
    const struct kernel_dropout *const dropout = &head->shape->dropout;
    const struct host_scores at = {.sample = head->sample, .head = head->index,
                                   .first_query = head->shape->earlier + first,
                                   .rows = rows, .first_key = keys.first, .keys = keys.count};
    if (dropout->p > 0) host_drop_scores(s, &at, dropout);
}

/* --- one head --------------------------------------------------------------------------------- */

static void head_forward(const struct kernels_attention_head *head, float *out, float *lse, float *s)
{
    const struct shape *shape = head->shape;
    for (int64_t first = 0; first < shape->t; first += TILE) {
        int64_t rows = host_min(TILE, shape->t - first);
        const struct keys keys = head_keys(head, first, rows);
        float inverse[TILE];
        head_scores(head, s, first, rows, keys);
        host_softmax_rows(s, lse + first, inverse, rows, keys.count, head_seen(head, first, keys), shape->window);
        drop(head, s, first, rows, keys);
        if (shape->rounded) host_round_rows(s, rows, keys.count, keys.count);
        host_multiply(&(struct host_product){.m = rows,
                                             .n = shape->d,
                                             .k = keys.count,
                                             .alpha = 1.0f,
                                             .a = s,
                                             .row_a = keys.count,
                                             .b = head->v + keys.first * shape->row_kv,
                                             .row_b = shape->row_kv,
                                             .c = out + first * shape->row_out,
                                             .row_c = shape->row_out});
        host_scale_rows(out + first * shape->row_out, inverse, rows, shape->d, shape->row_out);
        if (shape->rounded)
            host_round_rows(out + first * shape->row_out, rows, shape->d, shape->row_out);
    }
}

/* Computes c(keys, D), a gradient of keys or values, = or += a(rows, keys)^T b(rows, D) */
static void add_to_keys(const struct kernels_attention_head *head, float *c, const float *a, const float *b,
                        int64_t row_b, int64_t rows, int64_t keys, bool write)
{
    host_multiply(&(struct host_product){.transpose_a = true,
                                         .m = keys,
                                         .n = head->shape->d,
                                         .k = rows,
                                         .alpha = 1.0f,
                                         .beta = write ? 0.0f : 1.0f,
                                         .a = a,
                                         .row_a = keys,
                                         .b = b,
                                         .row_b = row_b,
                                         .c = c,
                                         .row_c = head->shape->row_dkv});
}

/* dq, dk, dv: this head's part; dk and dv are added to unless `write`. p, ds: a tile each. */
static void head_backward(const struct kernels_attention_head *head, float *dq, float *dk, float *dv,
                          const float *dout, const float *out, const float *lse, float *p,
                          float *ds, bool write)
{
    const struct shape *shape = head->shape;
    int64_t last = (shape->t - 1) / TILE * TILE;
    for (int64_t first = last; first >= 0; first -= TILE) {
        int64_t rows = host_min(TILE, shape->t - first);
        struct keys keys = head_keys(head, first, rows);
        if (first == last) keys = (struct keys){0, keys.first + keys.count};
        const float *dout_tile = dout + first * shape->row_out;
        float delta[TILE];

        head_scores(head, p, first, rows, keys);
        host_multiply(&(struct host_product){.transpose_b = true, /* dP = dO V^T */
                                             .m = rows,
                                             .n = keys.count,
                                             .k = shape->d,
                                             .alpha = 1.0f,
                                             .a = dout_tile,
                                             .row_a = shape->row_out,
                                             .b = head->v + keys.first * shape->row_kv,
                                             .row_b = shape->row_kv,
                                             .c = ds,
                                             .row_c = keys.count});
        host_row_products(delta, dout_tile, out + first * shape->row_out, rows, shape->d,
                     shape->row_out);
        drop(head, ds, first, rows, keys);
        host_softmax_backward_rows(p, ds, lse + first, delta, rows, keys.count, head_seen(head, first, keys),
                                   shape->window, shape->scale, shape->cap);
        drop(head, p, first, rows, keys);
        if (shape->rounded) {
            host_round_rows(p, rows, keys.count, keys.count);
            host_round_rows(ds, rows, keys.count, keys.count);
        }

        host_multiply(&(struct host_product){.m = rows, /* dQ = dS K */
                                             .n = shape->d,
                                             .k = keys.count,
                                             .alpha = 1.0f,
                                             .a = ds,
                                             .row_a = keys.count,
                                             .b = head->k + keys.first * shape->row_kv,
                                             .row_b = shape->row_kv,
                                             .c = dq + first * shape->row_dq,
                                             .row_c = shape->row_dq});
        if (shape->rounded) host_round_rows(dq + first * shape->row_dq, rows, shape->d, shape->row_dq);
        add_to_keys(head, dk + keys.first * shape->row_dkv, ds, head->q + first * shape->row_q, shape->row_q, rows,
                    keys.count, write && first == last);
        add_to_keys(head, dv + keys.first * shape->row_dkv, p, dout_tile, shape->row_out, rows, keys.count,
                    write && first == last);
    }
}

/* --- drivers ---------------------------------------------------------------------------------- */

/*
 * Returns the threads; each has its own lane of the scratch. With fewer heads than threads the team is kept whole: in
 * a team of one, a product would start a team itself.
 */
static int lane_threads(const struct kernels *kernels)
{
    return (int)host_min(kernels->threads, MEMORY_ATTENTION_LANES);
}

static float *lane_scratch(float *scratch, int64_t lane, const struct shape *shape)
{
    return scratch + lane * 2 * host_min(shape->t, TILE) * (shape->earlier + shape->t);
}

/* Rounds rows into consecutive memory; returns the address after them. */
static float *round_array(const struct kernels *kernels, float *to, const float **from,
                          int64_t rows, int64_t width, int64_t stride)
{
    const float *const x = *from;
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads)
    for (int64_t row = 0; row < rows; row++) round_copy(to + row * width, x + row * stride, width);
    *from = to;
    return to + rows * width;
}

/* Does the same for the keys or values that count, which are consecutive afterwards. */
static float *round_keys(const struct kernels *kernels, float *to, const float **from, const struct shape *shape)
{
    const float *const x = *from;
    const int64_t width = shape->kv * shape->d, seen = shape->earlier + shape->t;
    float *const begin = to;
    for (int64_t sample = 0; sample < shape->b; sample++) {
        const float *rows = x + sample * shape->held * shape->row_kv;
        to = round_array(kernels, to, &rows, seen, width, shape->row_kv);
    }
    *from = begin;
    return to;
}

/* Rounds operands if the job does, and leaves the rest of the scratch for the tiles. */
static struct kernel_attention prepared(const struct kernels *kernels, const struct kernel_attention *attention,
                                        struct shape *shape)
{
    struct kernel_attention a = *attention;
    const int64_t row = a.h * a.d, tokens = a.b * a.t, held = a.held > 0 ? a.held : a.t;
    *shape = (struct shape){.b = a.b,
                            .t = a.t,
                            .h = a.h,
                            .kv = a.kv,
                            .d = a.d,
                            .earlier = a.earlier,
                            .window = a.window,
                            .scale = a.scale > 0 ? a.scale : (float)(1.0 / sqrt((double)a.d)),
                            .cap = a.cap,
                            .dropout = a.dropout,
                            .held = held,
                            .held_d = held,
                            .adds = a.adds,
                            .begins = a.begins,
                            .row_q = a.row_q,
                            .row_kv = a.row_kv,
                            .row_out = row,
                            .row_dq = a.row_q,
                            .row_dkv = a.row_kv,
                            .causal = a.causal,
                            .rounded = a.rounded};
    if (!a.rounded) return a;
    a.scratch = round_array(kernels, a.scratch, &a.q, tokens, row, a.row_q);
    a.scratch = round_keys(kernels, a.scratch, &a.k, shape);
    a.scratch = round_keys(kernels, a.scratch, &a.v, shape);
    if (a.dout) a.scratch = round_array(kernels, a.scratch, &a.dout, tokens, row, row);
    shape->row_q = row;
    shape->row_kv = a.kv * a.d;
    shape->held = a.earlier + a.t;
    return a;
}

/* --- public ----------------------------------------------------------------------------------- */

void host_attention_forward(const struct kernels *kernels, const struct kernel_attention *attention)
{
    struct shape shape;
    const struct kernel_attention a = prepared(kernels, attention, &shape);
#pragma omp parallel for schedule(static) num_threads(lane_threads(kernels))
    for (int64_t task = 0; task < shape.b * shape.h; task++) {
        int64_t sample = task / shape.h, index = task % shape.h;
        const struct kernels_attention_head head = head_of(&shape, &a, sample, index);
        float *const out = a.out + place(&shape, shape.row_out, sample, index);
        struct shape row;
        for (int64_t first = 0; first < shape.t; first += row.t) {
            row = row_from(&shape, sample, first);
            const struct kernels_attention_head own = head_from(&head, &row, first);
            head_forward(&own, out + first * shape.row_out, a.stats + task * shape.t + first,
                         lane_scratch(a.scratch, omp_get_thread_num(), &shape));
        }
    }
}

/* Goes through the rows of a sample. `kv`: where the head's gradients of keys and values begin. */
static void head_backward_in_rows(const struct shape *shape, const struct kernel_attention *a, int64_t sample,
                                  int64_t index, int64_t kv, float *p, bool write)
{
    const struct kernels_attention_head head = head_of(shape, a, sample, index);
    const int64_t out = place(shape, shape->row_out, sample, index), dq = place(shape, shape->row_dq, sample, index);
    struct shape row;
    for (int64_t first = 0; first < shape->t; first += row.t) {
        row = row_from(shape, sample, first);
        const struct kernels_attention_head own = head_from(&head, &row, first);
        const int64_t at = out + first * shape->row_out, keys = kv + first * shape->row_dkv;
        head_backward(&own, a->dq + dq + first * shape->row_dq, a->dk + keys, a->dv + keys, a->dout + at, a->out + at,
                      a->stats + (sample * shape->h + index) * shape->t + first, p,
                      p + host_min(shape->t, TILE) * (shape->earlier + shape->t), write);
    }
}

void host_attention_backward(const struct kernels *kernels, const struct kernel_attention *attention)
{
    struct shape shape;
    const struct kernel_attention a = prepared(kernels, attention, &shape);
    int64_t group = shape.h / shape.kv;
#pragma omp parallel for schedule(static) num_threads(lane_threads(kernels))
    for (int64_t task = 0; task < shape.b * shape.kv; task++) {
        int64_t sample = task / shape.kv, first = task % shape.kv * group;
        int64_t kv = place_kv(&shape, shape.held_d, shape.row_dkv, sample, first);
        float *p = lane_scratch(a.scratch, omp_get_thread_num(), &shape);
        for (int64_t index = first; index < first + group; index++)
            head_backward_in_rows(&shape, &a, sample, index, kv, p, index == first && !shape.adds);
        if (!shape.rounded) continue;
        const int64_t own = kv + shape.earlier * shape.row_dkv; /* these sums are complete */
        host_round_rows(a.dk + own, shape.t, shape.d, shape.row_dkv);
        host_round_rows(a.dv + own, shape.t, shape.d, shape.row_dkv);
    }
}
