/*
 * Attention of each head over tiles of 64 queries, forward and backward.
 *
 * Letters: q, k, v rows of D numbers for each of T tokens, found in place inside qkv(B,T,3C): the
 * product routine takes rows that lie 3C apart, so nothing is permuted or copied.
 *
 *     s(i,j) = q(i) . k(j) / sqrt(D);  p = softmax over j (causal: j <= i);  out(i) = sum p(i,j) v(j)
 *
 * A tile of 64 queries meets only the keys that its last query may see, so causal attention does
 * half of the products (plus half a tile's overhang, whose weights are set to zero):
 *
 *         keys ->              forward:    S = Q K^T, E = exp(S - largest), O = (E V) / sum of E
 *       [#       ]  tile 0     backward:   S again, P = exp(S - lse),
 *       [##      ]  tile 1                 dP = dO V^T, dS = P (dP - dO . O),
 *       [###     ]  tile 2                 dQ = dS K, dK += dS^T Q, dV += P^T dO
 *
 * Only the log of the sum of exponentials (lse) is kept of the T x T weights: forward memory is
 * O(T), and backward makes each tile's weights again with one product. In backward, tiles go from
 * the last to the first: the last meets all keys, so it writes dK and dV and the others add, and
 * nothing is cleared beforehand.
 *
 * Threads share out the B*H heads; inside that loop each product runs on one thread. A head is
 * computed by one thread from end to end, so the number of threads cannot change a bit. A tile's
 * two matrices (64 x T) are the scratch of a thread: 0.5 MiB at T = 1024, in its second cache.
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
#include "exec/kernels_host.h"

#include <omp.h>

#include "exec/kernels_math.h"
#include "models/memory.h"

enum { TILE = MEMORY_ATTENTION_TILE };

/* One head of one sample: where its rows are, `row` floats apart in qkv and `width` in out. */
struct head {
    const float *q, *k, *v;
    int64_t t, d, row, width;
    float scale;
    bool causal;
};

static struct head head_of(const float *qkv, int64_t sample, int64_t index, int64_t t, int64_t c,
                           int64_t h, bool causal)
{
    int64_t d = c / h;
    const float *q = qkv + sample * t * 3 * c + index * d;
    return (struct head){.q = q,
                         .k = q + c,
                         .v = q + 2 * c,
                         .t = t,
                         .d = d,
                         .row = 3 * c,
                         .width = c,
                         .scale = (float)(1.0 / sqrt((double)d)),
                         .causal = causal};
}

/* Scores of queries [first, first + rows) with keys [0, keys): s(rows, keys). */
static void head_scores(const struct head *head, float *s, int64_t first, int64_t rows,
                        int64_t keys)
{
    host_multiply(&(struct host_product){.transpose_b = true,
                                         .m = rows,
                                         .n = keys,
                                         .k = head->d,
                                         .alpha = head->scale,
                                         .a = head->q + first * head->row,
                                         .row_a = head->row,
                                         .b = head->k,
                                         .row_b = head->row,
                                         .c = s,
                                         .row_c = keys});
}

static int64_t head_keys(const struct head *head, int64_t first, int64_t rows)
{
    return head->causal ? first + rows : head->t;
}

/* --- leaves ----------------------------------------------------------------------------------- */

/* Scores s(rows, keys) become exp(score - largest of the row); inverse[i] is what is missing to make
 * row i a softmax. Row i sees its first `seen + i` keys, at most all of them. */
CLONES static void softmax_rows(float *restrict s, float *restrict lse, float *restrict inverse,
                                int64_t rows, int64_t keys, int64_t seen)
{
    for (int64_t i = 0; i < rows; i++, s += keys) {
        int64_t visible = host_min(seen + i, keys), j = 0;
        for (int64_t hidden = visible; hidden < keys; hidden++) s[hidden] = -INFINITY;
        float largest = math_row_max(s, keys), lanes[HOST_LANES] = {0};
        for (; j + HOST_LANES <= keys; j += HOST_LANES)
            for (int l = 0; l < HOST_LANES; l++) {
                float weight = math_exp(s[j + l] - largest);
                s[j + l] = weight;
                lanes[l] += weight;
            }
        for (int l = 0; l < keys - j; l++) {
            float weight = math_exp(s[j + l] - largest);
            s[j + l] = weight;
            lanes[l] += weight;
        }
        float sum = math_fold(lanes);
        inverse[i] = 1.0f / sum;
        lse[i] = largest + logf(sum);
    }
}

CLONES static void scale_rows(float *restrict out, const float *restrict factors, int64_t rows,
                              int64_t d, int64_t stride)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < d; j++) out[i * stride + j] *= factors[i];
}

/* p: scores in, weights out; ds: gradients of the weights in, of the products q . k out. */
CLONES static void softmax_backward_rows(float *restrict p, float *restrict ds,
                                              const float *lse, const float *delta, int64_t rows,
                                              int64_t keys, int64_t seen, float scale)
{
    for (int64_t i = 0; i < rows; i++, p += keys, ds += keys) {
        int64_t visible = host_min(seen + i, keys);
        for (int64_t j = visible; j < keys; j++) p[j] = -INFINITY;
        for (int64_t j = 0; j < keys; j++) {
            float weight = math_exp(p[j] - lse[i]);
            p[j] = weight;
            ds[j] = weight * (ds[j] - delta[i]) * scale;
        }
    }
}

/* delta[i] = dout row . out row */
CLONES static void row_products(float *restrict delta, const float *dout, const float *out,
                                     int64_t rows, int64_t d, int64_t stride)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *a = dout + i * stride, *b = out + i * stride;
        float lanes[HOST_LANES] = {0};
        int64_t j = 0;
        for (; j + HOST_LANES <= d; j += HOST_LANES)
            for (int l = 0; l < HOST_LANES; l++) lanes[l] += a[j + l] * b[j + l];
        for (int l = 0; l < d - j; l++) lanes[l] += a[j + l] * b[j + l];
        delta[i] = math_fold(lanes);
    }
}

/* --- one head --------------------------------------------------------------------------------- */

static void head_forward(const struct head *head, float *out, float *lse, float *s)
{
    for (int64_t first = 0; first < head->t; first += TILE) {
        int64_t rows = host_min(TILE, head->t - first);
        int64_t keys = head_keys(head, first, rows);
        float inverse[TILE];
        head_scores(head, s, first, rows, keys);
        softmax_rows(s, lse + first, inverse, rows, keys, head->causal ? first + 1 : keys);
        host_multiply(&(struct host_product){.m = rows,
                                             .n = head->d,
                                             .k = keys,
                                             .alpha = 1.0f,
                                             .a = s,
                                             .row_a = keys,
                                             .b = head->v,
                                             .row_b = head->row,
                                             .c = out + first * head->width,
                                             .row_c = head->width});
        scale_rows(out + first * head->width, inverse, rows, head->d, head->width);
    }
}

/* c(keys, D), 3C apart, = or += a(rows, keys)^T b(rows, D) */
static void add_to_keys(const struct head *head, float *c, const float *a, const float *b,
                        int64_t row_b, int64_t rows, int64_t keys, bool write)
{
    host_multiply(&(struct host_product){.transpose_a = true,
                                         .m = keys,
                                         .n = head->d,
                                         .k = rows,
                                         .alpha = 1.0f,
                                         .beta = write ? 0.0f : 1.0f,
                                         .a = a,
                                         .row_a = keys,
                                         .b = b,
                                         .row_b = row_b,
                                         .c = c,
                                         .row_c = head->row});
}

/* dq: this head's part of dqkv; dk and dv lie C and 2C behind it. p, ds: a tile each. */
static void head_backward(const struct head *head, float *dq, const float *dout, const float *out,
                          const float *lse, float *p, float *ds)
{
    float *dk = dq + head->width, *dv = dk + head->width;
    int64_t last = (head->t - 1) / TILE * TILE;
    for (int64_t first = last; first >= 0; first -= TILE) {
        int64_t rows = host_min(TILE, head->t - first);
        int64_t keys = head_keys(head, first, rows);
        const float *dout_tile = dout + first * head->width;
        float delta[TILE];

        head_scores(head, p, first, rows, keys);
        host_multiply(&(struct host_product){.transpose_b = true, /* dP = dO V^T */
                                             .m = rows,
                                             .n = keys,
                                             .k = head->d,
                                             .alpha = 1.0f,
                                             .a = dout_tile,
                                             .row_a = head->width,
                                             .b = head->v,
                                             .row_b = head->row,
                                             .c = ds,
                                             .row_c = keys});
        row_products(delta, dout_tile, out + first * head->width, rows, head->d, head->width);
        softmax_backward_rows(p, ds, lse + first, delta, rows, keys,
                              head->causal ? first + 1 : keys, head->scale);

        host_multiply(&(struct host_product){.m = rows, /* dQ = dS K */
                                             .n = head->d,
                                             .k = keys,
                                             .alpha = 1.0f,
                                             .a = ds,
                                             .row_a = keys,
                                             .b = head->k,
                                             .row_b = head->row,
                                             .c = dq + first * head->row,
                                             .row_c = head->row});
        add_to_keys(head, dk, ds, head->q + first * head->row, head->row, rows, keys,
                    first == last);
        add_to_keys(head, dv, p, dout_tile, head->width, rows, keys, first == last);
    }
}

/* --- drivers ---------------------------------------------------------------------------------- */

/*
 * Threads for the heads, each with a lane of the scratch of its own. With fewer heads than threads
 * the team is kept whole: in a team of one, a product would call for a team itself.
 */
static int lane_threads(const struct kernels *kernels)
{
    return (int)host_min(kernels->threads, MEMORY_ATTENTION_LANES);
}

static float *lane_scratch(float *scratch, int64_t lane, int64_t t)
{
    return scratch + lane * 2 * host_min(t, TILE) * t;
}

void host_attention_forward(const struct kernels *kernels, float *out, float *stats,
                            const float *qkv, int64_t b, int64_t t, int64_t c, int64_t h,
                            bool causal, float *scratch)
{
#pragma omp parallel for schedule(static) num_threads(lane_threads(kernels))
    for (int64_t task = 0; task < b * h; task++) {
        int64_t sample = task / h, index = task % h;
        struct head head = head_of(qkv, sample, index, t, c, h, causal);
        head_forward(&head, out + sample * t * c + index * head.d, stats + task * t,
                     lane_scratch(scratch, omp_get_thread_num(), t));
    }
}

void host_attention_backward(const struct kernels *kernels, float *dqkv, const float *dout,
                             const float *qkv, const float *out, const float *stats, int64_t b,
                             int64_t t, int64_t c, int64_t h, bool causal, float *scratch)
{
#pragma omp parallel for schedule(static) num_threads(lane_threads(kernels))
    for (int64_t task = 0; task < b * h; task++) {
        int64_t sample = task / h, index = task % h;
        struct head head = head_of(qkv, sample, index, t, c, h, causal);
        int64_t place = sample * t * c + index * head.d;
        float *p = lane_scratch(scratch, omp_get_thread_num(), t);
        head_backward(&head, dqkv + sample * t * 3 * c + index * head.d, dout + place, out + place,
                      stats + task * t, p, p + host_min(t, TILE) * t);
    }
}
