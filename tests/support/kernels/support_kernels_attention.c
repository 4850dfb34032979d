/*
 * Compares attention and its gradients with sums in double: q, k and v as columns of one array or apart, heads that
 * share keys, causal or not, in fp32 and with the rounding of bf16 jobs (models/kernel/precision.h).
 *
 * A number rounded to 8 bits is off by at most 2^-8 of itself. The reference rounds operands itself, exactly. For
 * weights, gradients of scores and results it adds up the largest possible errors:
 *
 *     out = sum p v                     2^-8 of the result, and 2^-8 p |v| for each weight
 *     dv  = sum p dout                  likewise
 *     ds  = p (dp - delta) scale        2^-8 of itself; delta is made from an `out` that is off as above
 *     dq  = sum ds k, dk = sum ds q     2^-8 of the result, and the error of each ds
 */
#define KERNELS_NUMBER float
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/size.h"
#include "models/job/memory.h"
#include "tests/support/kernels/support_kernels.h"
#include "tests/support/support_cases.h"

/* A little more than 2^-8, because sums are in fp32. */
static const double HALF_ULP = 1.01 / 256;

/* Indexes of a case's shape. */
enum { B, T, H, KV, D, CAUSAL, AS_ONE, ROUNDED, MEAN };

static struct attention_sizes sizes_of(const int64_t *shape)
{
    return (struct attention_sizes){.samples = (uint64_t)shape[B],
                                    .tokens = (uint64_t)shape[T],
                                    .heads = (uint64_t)shape[H],
                                    .kv_heads = (uint64_t)shape[KV],
                                    .head_width = (uint64_t)shape[D]};
}

/* Returns attention with random operands and results of NaN. */
static struct kernel_attention random_attention(const int64_t *shape)
{
    const int64_t rows = shape[B] * shape[T];
    const int64_t row_q = shape[H] * shape[D], row_kv = shape[KV] * shape[D];
    struct kernel_attention a = {.b = shape[B],
                          .t = shape[T],
                          .h = shape[H],
                          .kv = shape[KV],
                          .d = shape[D],
                          .row_q = row_q,
                          .row_kv = row_kv,
                          .causal = shape[CAUSAL],
                          .rounded = shape[ROUNDED]};
    if (shape[AS_ONE]) {
        float *const qkv = random_array(rows * 3 * row_q, 14, 3);
        a.q = qkv;
        a.k = qkv + row_q;
        a.v = qkv + 2 * row_q;
        a.dq = empty_array(rows * 3 * row_q);
        a.dk = a.dq + row_q;
        a.dv = a.dq + 2 * row_q;
        a.row_q = a.row_kv = 3 * row_q;
    } else {
        a.q = random_array(rows * row_q, 8, 3);
        a.k = random_array(rows * row_kv, 9, 3);
        a.v = random_array(rows * row_kv, 10, 3);
        a.dq = empty_array(rows * row_q);
        a.dk = empty_array(rows * row_kv);
        a.dv = empty_array(rows * row_kv);
    }
    a.dout = random_array(rows * row_q, 11, 1);
    a.out = empty_array(rows * row_q);
    a.stats = empty_array(a.b * a.h * a.t);
    const struct attention_sizes sizes = sizes_of(shape);
    a.scratch = empty_array((int64_t)(a.rounded ? memory_attention_copies(sizes, true) +
                                                      memory_attention_workspace(sizes, true)
                                                : memory_attention_tiles(sizes)));
    return a;
}

static void run_attention(const struct kernels *kernels, const struct kernel_attention *a)
{
    struct kernel_attention forward = *a;
    forward.dout = NULL;
    forward.dq = forward.dk = forward.dv = NULL;
    kernels->attention_forward(kernels, &forward);
    kernels->attention_backward(kernels, a);
}

/* --- the reference ---------------------------------------------------------------------------- */

/* A result and its largest error, not counting fp32 sums. */
struct wanted {
    double *value, *off;
};

struct reference {
    const struct kernel_attention *a;
    double *q, *k, *v, *dout; /* (B,T,H D) or (B,T,K D), as operands of products */
    struct wanted out, dq, dk, dv;
    double *lse, *p, *dp;
};

static double *next_doubles(double **at, int64_t count)
{
    double *const taken = *at;
    *at += count;
    return taken;
}

static double *operand(double **at, const struct kernel_attention *a, const float *x, int64_t heads,
                       int64_t row)
{
    const int64_t width = heads * a->d;
    double *const copy = next_doubles(at, a->b * a->t * width);
    for (int64_t i = 0; i < a->b * a->t; i++)
        for (int64_t e = 0; e < width; e++) {
            const float number = x[i * row + e];
            copy[i * width + e] =
                (double)(a->rounded ? bf16_widen(bf16_nearest(number)) : number);
        }
    return copy;
}

static struct wanted wanted_of(double **at, int64_t count)
{
    return (struct wanted){next_doubles(at, count), next_doubles(at, count)};
}

/* Computes one query of one head. Adds to the gradients of keys and values. */
static void attend(const struct reference *r, int64_t sample, int64_t head, int64_t i)
{
    const struct kernel_attention *const a = r->a;
    const int64_t d = a->d, row = a->h * d, row_kv = a->kv * d;
    const int64_t query = (sample * a->t + i) * row + head * d;
    const int64_t keys = sample * a->t * row_kv + head / (a->h / a->kv) * d;
    const int64_t seen = a->causal ? i + 1 : a->t, from = a->begins ? a->begins[sample * a->t + i] : 0;
    const double scale = 1 / sqrt((double)d), rounding = a->rounded ? HALF_ULP : 0;
    const double summed = a->kv < a->h ? rounding : 0; /* rounding of each head's gradients before they are added up */
    double largest = -INFINITY, sum = 0, delta = 0, delta_off = 0;
    for (int64_t j = from; j < seen; j++) {
        r->p[j] = 0;
        for (int64_t e = 0; e < d; e++)
            r->p[j] += scale * r->q[query + e] * r->k[keys + j * row_kv + e];
        largest = fmax(largest, r->p[j]);
    }
    for (int64_t j = from; j < seen; j++) sum += exp(r->p[j] - largest);
    r->lse[(sample * a->h + head) * a->t + i] = largest + log(sum);
    for (int64_t j = from; j < seen; j++) {
        const int64_t at = keys + j * row_kv;
        r->p[j] = exp(r->p[j] - largest) / sum;
        r->dp[j] = 0;
        for (int64_t e = 0; e < d; e++) {
            const double v = r->v[at + e], g = r->dout[query + e];
            r->out.value[query + e] += r->p[j] * v;
            r->out.off[query + e] += rounding * r->p[j] * fabs(v);
            r->dv.value[at + e] += r->p[j] * g;
            r->dv.off[at + e] += (rounding + summed) * r->p[j] * fabs(g);
            r->dp[j] += g * v;
        }
        delta += r->p[j] * r->dp[j];
    }
    for (int64_t e = 0; e < d; e++) {
        r->out.off[query + e] += rounding * fabs(r->out.value[query + e]);
        delta_off += fabs(r->dout[query + e]) * r->out.off[query + e];
    }
    for (int64_t j = from; j < seen; j++) {
        const int64_t at = keys + j * row_kv;
        const double ds = r->p[j] * (r->dp[j] - delta) * scale;
        const double off = rounding * fabs(ds) + r->p[j] * delta_off * scale;
        for (int64_t e = 0; e < d; e++) {
            r->dq.value[query + e] += ds * r->k[at + e];
            r->dq.off[query + e] += off * fabs(r->k[at + e]);
            r->dk.value[at + e] += ds * r->q[query + e];
            r->dk.off[at + e] += (off + summed * fabs(ds)) * fabs(r->q[query + e]);
        }
    }
}

/* Checks x, which has `heads` heads of D in each row. */
static void check_result(const struct kernel_attention *a, const float *x, const struct wanted *wanted,
                         int64_t heads, int64_t row, double tolerance, const char *name)
{
    const int64_t width = heads * a->d;
    const double rounding = a->rounded ? HALF_ULP : 0;
    for (int64_t i = 0; i < a->b * a->t; i++)
        for (int64_t e = 0; e < width; e++) {
            const double found = (double)x[i * row + e], value = wanted->value[i * width + e];
            const double most = wanted->off[i * width + e] + rounding * fabs(value) +
                                tolerance * test_kernels_slack() * (1 + fabs(value));
            if (!(fabs(found - value) <= most))
                fail_msg("%s, row %lld, column %lld: %.9g instead of %.9g, which may be %.3g off",
                         name, (long long)i, (long long)e, found, value, most);
            if (a->rounded && bf16_widen(bf16_nearest(x[i * row + e])) != x[i * row + e])
                fail_msg("%s, row %lld, column %lld: %.9g is no number of bf16", name, (long long)i,
                         (long long)e, found);
        }
}

static void check_attention(const struct kernel_attention *a)
{
    const int64_t queries = a->b * a->t * a->h * a->d, keys = a->b * a->t * a->kv * a->d;
    double *const all =
        calloc((size_t)(6 * queries + 6 * keys + a->b * a->h * a->t + 2 * a->t), sizeof *all);
    double *at = all;
    struct reference r = {.a = a};
    r.q = operand(&at, a, a->q, a->h, a->row_q);
    r.k = operand(&at, a, a->k, a->kv, a->row_kv);
    r.v = operand(&at, a, a->v, a->kv, a->row_kv);
    r.dout = operand(&at, a, a->dout, a->h, a->h * a->d);
    r.out = wanted_of(&at, queries);
    r.dq = wanted_of(&at, queries);
    r.dk = wanted_of(&at, keys);
    r.dv = wanted_of(&at, keys);
    r.lse = next_doubles(&at, a->b * a->h * a->t);
    r.p = next_doubles(&at, a->t);
    r.dp = next_doubles(&at, a->t);
    for (int64_t sample = 0; sample < a->b; sample++)
        for (int64_t head = 0; head < a->h; head++)
            for (int64_t i = 0; i < a->t; i++) attend(&r, sample, head, i);
    check_result(a, a->out, &r.out, a->h, a->h * a->d, 1e-5, "out");
    assert_near(a->stats, r.lse, a->b * a->h * a->t, 1e-5);
    check_result(a, a->dq, &r.dq, a->h, a->row_q, 5e-5, "dq");
    check_result(a, a->dk, &r.dk, a->kv, a->row_kv, 5e-5, "dk");
    check_result(a, a->dv, &r.dv, a->kv, a->row_kv, 5e-5, "dv");
    free(all);
}

/* --- cases ------------------------------------------------------------------------------------ */

static void attention_case(const struct kernels *kernels, const int64_t *shape,
                           struct outputs *out, bool check)
{
    const struct kernel_attention a = random_attention(shape);
    const int64_t rows = a.b * a.t, row = a.h * a.d;
    run_attention(kernels, &a);
    output(out, a.out, rows * row);
    output(out, a.stats, a.b * a.h * a.t);
    output(out, a.dq, shape[AS_ONE] ? rows * 3 * row : rows * row);
    if (!shape[AS_ONE]) {
        output(out, a.dk, rows * a.row_kv);
        output(out, a.dv, rows * a.row_kv);
    }
    if (check) check_attention(&a);
}

/* Copies the rows of a slice of tokens between an array of all tokens and the slice's own. */
static void copy_slice(float *all, float *own, int64_t samples, int64_t tokens, int64_t begin, int64_t count,
                       int64_t width, bool back)
{
    for (int64_t sample = 0; sample < samples; sample++) {
        float *const here = own + sample * count * width, *const there = all + (sample * tokens + begin) * width;
        memcpy(back ? there : here, back ? here : there, (size_t)(count * width) * sizeof *own);
    }
}

enum { SLICES = 3 };

/* Attention of slices of tokens, forward one after the other and backward in reverse order, is that of all tokens. */
static void sliced_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out, bool check)
{
    const struct kernel_attention a = random_attention(shape);
    const int64_t rows = a.b * a.t, row = a.h * a.d;
    const int64_t ends[SLICES + 1] = {0, 1 + a.t / 5, 1 + a.t * 2 / 3, a.t};
    struct kernel_attention slices[SLICES];
    for (int s = 0; s < SLICES; s++) {
        const int64_t count = ends[s + 1] - ends[s], numbers = a.b * count * row;
        struct kernel_attention *const own = &slices[s];
        float *const q = empty_array(numbers), *const dout = empty_array(numbers);
        *own = a;
        own->t = count;
        own->earlier = ends[s];
        own->held = a.t;
        own->adds = ends[s + 1] < a.t;
        own->q = q;
        own->dout = dout;
        own->out = empty_array(numbers);
        own->dq = empty_array(numbers);
        own->stats = empty_array(a.b * a.h * count);
        copy_slice((float *)(uintptr_t)a.q, q, a.b, a.t, ends[s], count, row, false);
        copy_slice((float *)(uintptr_t)a.dout, dout, a.b, a.t, ends[s], count, row, false);
        kernels->attention_forward(kernels, own);
    }
    for (int s = SLICES; s-- > 0;) {
        struct kernel_attention *const own = &slices[s];
        kernels->attention_backward(kernels, own);
        copy_slice(a.out, own->out, a.b, a.t, ends[s], own->t, row, true);
        copy_slice(a.dq, own->dq, a.b, a.t, ends[s], own->t, row, true);
        copy_slice(a.stats, own->stats, a.b * a.h, a.t, ends[s], own->t, 1, true);
    }
    output(out, a.out, rows * row);
    output(out, a.dq, rows * row);
    output(out, a.dk, rows * a.row_kv);
    output(out, a.dv, rows * a.row_kv);
    if (check) check_attention(&a);
}

void test_kernel_attention_sliced(void **state)
{
    (void)state;
    static const int64_t sizes[][5] = {{1, 4, 1, 1, 1}, {3, 17, 4, 2, 7}, {2, 131, 4, 1, 16}, {1, 200, 2, 2, 48},
                                       {1, 70, 2, 2, 80}};
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++)
        for (int64_t rounded = 0; rounded < 2; rounded++)
            run_case(sliced_case,
                     (int64_t[]){sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], sizes[i][4], true, false,
                                              rounded});
}

/* --- packed rows ------------------------------------------------------------------------------ */

/* Draws rows of up to twice the mean length. */
static int32_t *random_begins(int64_t samples, int64_t tokens, int64_t mean)
{
    int32_t *const begins = support_tokens(samples * tokens);
    for (int64_t sample = 0; sample < samples; sample++)
        for (int64_t at = 0, row = 0; at < tokens; row++) {
            const int64_t length = 1 + (int64_t)random_below(test_kernels_seed() + (uint64_t)sample, (uint64_t)row,
                                                             2 * (uint64_t)mean);
            const int64_t begin = at;
            for (; at < begin + length && at < tokens; at++) begins[sample * tokens + at] = (int32_t)begin;
        }
    return begins;
}

/* The rows of one sample, each as a sample of its own, have the same bits. */
static void check_rows_alone(const struct kernels *kernels, const struct kernel_attention *a)
{
    for (int64_t sample = 0, first = 0, end; sample < a->b; first = end < a->t ? end : 0, sample += end == a->t) {
        const int64_t at = sample * a->t + first, row = a->h * a->d;
        for (end = first + 1; end < a->t && a->begins[sample * a->t + end] == first;) end++;
        struct kernel_attention own = *a;
        own.begins = NULL;
        own.b = 1;
        own.t = end - first;
        own.q = a->q + at * a->row_q;
        own.k = a->k + at * a->row_kv;
        own.v = a->v + at * a->row_kv;
        own.dout = a->dout + at * row;
        own.out = empty_array(own.t * row);
        own.stats = empty_array(own.h * own.t);
        own.dq = empty_array(own.t * a->row_q);
        own.dk = empty_array(own.t * a->row_kv);
        own.dv = empty_array(own.t * a->row_kv);
        run_attention(kernels, &own);
        assert_memory_equal(own.out, a->out + at * row, (size_t)(own.t * row) * sizeof(float));
        assert_memory_equal(own.dq, a->dq + at * a->row_q, (size_t)(own.t * a->row_q) * sizeof(float));
        assert_memory_equal(own.dk, a->dk + at * a->row_kv, (size_t)(own.t * a->row_kv) * sizeof(float));
        assert_memory_equal(own.dv, a->dv + at * a->row_kv, (size_t)(own.t * a->row_kv) * sizeof(float));
    }
}

static void rows_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out, bool check)
{
    struct kernel_attention a = random_attention(shape);
    const int64_t rows = a.b * a.t;
    a.begins = random_begins(a.b, a.t, shape[MEAN]);
    run_attention(kernels, &a);
    output(out, a.out, rows * a.h * a.d);
    output(out, a.stats, a.b * a.h * a.t);
    output(out, a.dq, rows * a.row_q);
    output(out, a.dk, rows * a.row_kv);
    output(out, a.dv, rows * a.row_kv);
    if (check) check_attention(&a);
    if (check) check_rows_alone(kernels, &a);
}

void test_kernel_attention_in_rows(void **state)
{
    (void)state;
    static const int64_t sizes[][6] = {{1, 4, 1, 1, 1, 1}, {3, 17, 4, 2, 7, 3}, {2, 131, 4, 1, 16, 30},
                                       {1, 200, 2, 2, 48, 90}};
    if (!test_kernels()->attends_in_rows) skip();
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++)
        for (int64_t rounded = 0; rounded < 2; rounded++)
            run_case(rows_case, (int64_t[]){sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], sizes[i][4], true,
                                            false, rounded, sizes[i][5]});
}

static void run_forms(const int64_t sizes[5], bool as_one)
{
    for (int64_t form = 0; form < 4; form++) {
        const int64_t shape[] = {sizes[B], sizes[T], sizes[H], sizes[KV],
                                 sizes[D], form & 1, as_one,   form >> 1};
        run_case(attention_case, shape);
    }
}

void test_kernel_attention(void **state)
{
    (void)state;
    static const int64_t sizes[][5] = {{1, 1, 1, 1, 1},    {2, 3, 2, 2, 3},  {1, 64, 1, 1, 32},
                                       {1, 65, 3, 3, 16},  {3, 17, 5, 5, 7}, {1, 131, 4, 4, 16},
                                       {2, 200, 2, 2, 48}, {1, 70, 2, 2, 80}, {1, 40, 2, 2, 200}};
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) run_forms(sizes[i], true);
}

void test_kernel_attention_grouped(void **state)
{
    (void)state;
    static const int64_t sizes[][5] = {{1, 1, 1, 1, 1},  {2, 3, 4, 2, 3},   {1, 64, 2, 1, 32},
                                       {1, 65, 6, 3, 8}, {3, 17, 5, 5, 7},  {1, 131, 8, 2, 16},
                                       {2, 200, 4, 1, 24}};
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) run_forms(sizes[i], false);
}

/* If keys have the same number of heads as queries, the place of the operands does not matter: equal bits. */
void test_kernel_attention_as_one(void **state)
{
    (void)state;
    const struct kernels *const kernels = test_kernels();
    for (int64_t rounded = 0; rounded < 2; rounded++) {
        const int64_t shape[] = {2, 70, 3, 3, 16, true, false, rounded};
        const struct kernel_attention apart = random_attention(shape);
        const int64_t rows = apart.b * apart.t, c = apart.h * apart.d;
        struct kernel_attention one = apart;
        float *const qkv = support_floats(rows * 3 * c);
        for (int64_t row = 0; row < rows; row++) {
            memcpy(qkv + row * 3 * c, apart.q + row * c, (size_t)c * sizeof *qkv);
            memcpy(qkv + row * 3 * c + c, apart.k + row * c, (size_t)c * sizeof *qkv);
            memcpy(qkv + row * 3 * c + 2 * c, apart.v + row * c, (size_t)c * sizeof *qkv);
        }
        one.q = qkv;
        one.k = qkv + c;
        one.v = qkv + 2 * c;
        one.dq = support_floats(rows * 3 * c);
        one.dk = one.dq + c;
        one.dv = one.dq + 2 * c;
        one.row_q = one.row_kv = 3 * c;
        one.out = support_floats(rows * c);
        run_attention(kernels, &apart);
        run_attention(kernels, &one);
        assert_memory_equal(apart.out, one.out, (size_t)(rows * c) * sizeof *one.out);
        for (int64_t row = 0; row < rows; row++) {
            const size_t bytes = (size_t)c * sizeof *qkv;
            assert_memory_equal(apart.dq + row * c, one.dq + row * 3 * c, bytes);
            assert_memory_equal(apart.dk + row * c, one.dk + row * 3 * c, bytes);
            assert_memory_equal(apart.dv + row * c, one.dv + row * 3 * c, bytes);
        }
    }
}

/* Rounding does not change operands that are already rounded: equal bits. Rounding does change other operands: fp32
 * gives other bits. */
void test_kernel_attention_rounds(void **state)
{
    (void)state;
    const struct kernels *const kernels = test_kernels();
    const int64_t shape[] = {1, 67, 4, 2, 24, true, false, true};
    const struct kernel_attention as_given = random_attention(shape);
    const int64_t rows = as_given.b * as_given.t, queries = rows * as_given.row_q;
    const int64_t keys = rows * as_given.row_kv;
    struct kernel_attention before = random_attention(shape), plain = random_attention(shape);
    const struct {
        const float *x;
        int64_t count;
    } operands[] = {{before.q, queries}, {before.k, keys}, {before.v, keys}, {before.dout, queries}};
    for (size_t i = 0; i < ARRAY_COUNT(operands); i++) {
        float *const x = test_kernels_pool(&(uint64_t){0}) +
                         (operands[i].x - test_kernels_pool(&(uint64_t){0}));
        for (int64_t n = 0; n < operands[i].count; n++) x[n] = bf16_widen(bf16_nearest(x[n]));
    }
    plain.rounded = false;
    run_attention(kernels, &as_given);
    run_attention(kernels, &before);
    run_attention(kernels, &plain);
    assert_memory_equal(as_given.out, before.out, (size_t)queries * sizeof *before.out);
    assert_memory_equal(as_given.dq, before.dq, (size_t)queries * sizeof *before.dq);
    assert_memory_equal(as_given.dk, before.dk, (size_t)keys * sizeof *before.dk);
    assert_memory_equal(as_given.dv, before.dv, (size_t)keys * sizeof *before.dv);
    assert_memory_not_equal(as_given.stats, plain.stats, (size_t)(before.h * rows) * sizeof(float));
}
