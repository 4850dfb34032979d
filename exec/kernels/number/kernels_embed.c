/*
 * The embedding: gathering rows of the token and position tables, and updating those tables.
 *
 * Forward. x(r) = table[token(r)] + positions[t(r)]. A slice of the tables adds its part; the slice with row 0 comes
 * first and writes 0 + its part. Tokens come before positions, so the sum is ((0 + token) + position) for every cut,
 * to the last bit; a sum of bf16 is rounded after each term. Compiled for fp32 and for bf16 (kernels_host.h).
 *
 * Update. A row's gradient is the sum of dx of every occurrence of the row's token, in the order of the tokens, plus
 * the tied head's (if any). It never exists as a table: rows are swept in order. Rows without a token step directly
 * from the head's gradient; for others a piece of the gradient is summed up on the stack. Pairs (row, r) of the tokens
 * are sorted once per call, with a stable radix sort of 11 bits a pass. A thread finds its first pair by bisection.
 *
 *     tokens 7 3 7 9   ->  pairs (3,1) (7,0) (7,2) (9,3)      scratch: 2 x 8 bytes per token
 *     row 7: g = (dx[0] + dx[2]) + head[7]
 *
 * Sums over microbatches as a tree (models/job/parallel.h): the tokens are equal parts, one for each microbatch, and a
 * row's terms are added up in each part, and then the parts' sums as a balanced tree. A part without the row's token is
 * left out: it would add zero, which changes no bit, since no sum that begins with zero is -0.
 *
 * The same sweep can write the gradient instead, or continue a gradient's sums with more tokens: the bits are those of
 * one call with all tokens. The head's part comes last because in a pipeline another stage has it.
 *
 * Cost: a sweep of the tables, 28 bytes per parameter for AdamW (24 without a head), 1.1 GB for GPT-2. Rows without a
 * token are skipped with SGD, no decay and no head.
 */
#include "exec/kernels/kernels_host.h"

#include <assert.h>

#include "models/job/parallel.h"

enum { PIECE = 1024, BLOCK_ROWS = 32, RADIX_BITS = 11, RADIX = 1 << RADIX_BITS };

/* --- forward ---------------------------------------------------------------------------------- */

CLONES static void add_to_row(kernel_number *restrict x, const kernel_number *row, int64_t c)
{
    for (int64_t i = 0; i < c; i++) x[i] = host_stored(host_wide(x[i]) + host_wide(row[i]));
}

CLONES static void add_bf16_to_row(kernel_number *restrict x, const bf16 *row, int64_t c)
{
    for (int64_t i = 0; i < c; i++) x[i] = host_stored(host_wide(x[i]) + bf16_widen(row[i]));
}

/* One of the two is NULL. */
struct rows {
    const kernel_number *numbers;
    const bf16 *rounded;
};

static void add_table_row(kernel_number *x, struct rows rows, int64_t row, int64_t c)
{
    if (rows.rounded)
        add_bf16_to_row(x, rows.rounded + row * c, c);
    else
        add_to_row(x, rows.numbers + row * c, c);
}

static void gather(const struct kernels *kernels, kernel_number *x, struct rows rows, const int32_t *tokens,
                   int64_t token_stride, int64_t b, int64_t t, int64_t c, int64_t v,
                   int64_t first_row, int64_t row_count)
{
    int64_t end_row = first_row + row_count;
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (b * t * c > HOST_SERIAL)
    for (int64_t r = 0; r < b * t; r++) {
        int64_t token = tokens[r / t * token_stride + r % t], position = v + r % t;
        assert(token >= 0 && token < v);
        kernel_number *out = x + r * c;
        if (first_row == 0) memset(out, 0, (size_t)c * sizeof *out);
        if (token >= first_row && token < end_row)
            add_table_row(out, rows, token - first_row, c);
        if (position >= first_row && position < end_row)
            add_table_row(out, rows, position - first_row, c);
    }
}

void HOST(embed_forward)(const struct kernels *kernels, kernel_number *x, const kernel_number *rows,
                         const int32_t *tokens, int64_t token_stride, int64_t b, int64_t t,
                        int64_t c, int64_t v, int64_t first_row, int64_t row_count)
{
    gather(kernels, x, (struct rows){.numbers = rows}, tokens, token_stride, b, t, c, v, first_row,
           row_count);
}

void HOST(embed_forward_bf16)(const struct kernels *kernels, kernel_number *x, const bf16 *rows,
                             const int32_t *tokens, int64_t token_stride, int64_t b, int64_t t,
                             int64_t c, int64_t v, int64_t first_row, int64_t row_count)
{
    gather(kernels, x, (struct rows){.rounded = rows}, tokens, token_stride, b, t, c, v, first_row,
           row_count);
}

/* --- which tokens are in which row ------------------------------------------------------------ */

/* Puts the row in the upper half: pairs sort as numbers. */
static uint64_t pair(int64_t row, int64_t r)
{
    return (uint64_t)row << 32 | (uint64_t)r;
}

static int64_t pair_row(uint64_t p)
{
    return (int64_t)(p >> 32);
}

static int64_t pair_place(uint64_t p)
{
    return (int64_t)(p & UINT32_MAX);
}

/* Keeps the order of equal rows; `other` has room for `count` pairs. Returns pairs or other. */
static uint64_t *sort_pairs(uint64_t *pairs, uint64_t *other, int64_t count, int64_t rows)
{
    for (int shift = 32; shift == 32 || (rows - 1) >> (shift - 32) > 0; shift += RADIX_BITS) {
        int64_t starts[RADIX] = {0};
        for (int64_t i = 0; i < count; i++) starts[(pairs[i] >> shift) % RADIX]++;
        int64_t sum = 0;
        for (int digit = 0; digit < RADIX; digit++) {
            int64_t here = starts[digit];
            starts[digit] = sum;
            sum += here;
        }
        for (int64_t i = 0; i < count; i++) other[starts[(pairs[i] >> shift) % RADIX]++] = pairs[i];
        uint64_t *swap = pairs;
        pairs = other;
        other = swap;
    }
    return pairs;
}

/* Returns the first pair whose row is at least `row`. */
static int64_t find_pair(const uint64_t *pairs, int64_t count, int64_t row)
{
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (pair_row(pairs[middle]) < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* --- update ----------------------------------------------------------------------------------- */

struct sweep {
    struct kernel_step step;
    struct kernel_parameters rows; /* of first_row */
    float *gradient;            /* of first_row; where it goes; NULL: it is applied */
    bool continues;             /* `gradient` has the sums of earlier tokens */
    const float *head;          /* of first_row; NULL: none */
    const kernel_number *dx;
    const uint64_t *pairs;      /* tokens in range, sorted */
    int64_t pair_count;
    int64_t b, t, c, vocabulary, first_row;
    int64_t parts;              /* of the tokens, whose sums are added up as a tree; 1: all in order */
    bool skip_idle;             /* rows without a gradient do not change */
};

/* Works on the parameters from `at` on. */
static void apply_gradient(const struct sweep *s, int64_t at, const float *g, int64_t count)
{
    if (s->gradient)
        memcpy(s->gradient + at, g, (size_t)count * sizeof *g);
    else
        host_step_apply(&s->step, &s->rows, at, g, count, 1);
}

/* Steps rows [from, to), which no token touches. */
static void update_idle(const struct sweep *s, int64_t from, int64_t to)
{
    static const float zeros[PIECE];
    if (s->continues) return;
    int64_t end = to * s->c;
    /* positions have no gradient from the head */
    int64_t with_head = s->head ? host_min(to, s->vocabulary - s->first_row) * s->c : 0;
    int64_t i = from * s->c;
    if (i < with_head) {
        apply_gradient(s, i, s->head + i, with_head - i);
        i = with_head;
    }
    if (s->skip_idle) return;
    for (; i < end; i += PIECE) apply_gradient(s, i, zeros, host_min(PIECE, end - i));
}

CLONES static void add_gradient(float *restrict g, const kernel_number *dx, int64_t n)
{
    for (int64_t i = 0; i < n; i++) g[i] += host_wide(dx[i]);
}

CLONES static void add_floats(float *restrict g, const float *terms, int64_t n)
{
    for (int64_t i = 0; i < n; i++) g[i] += terms[i];
}

/* The terms of a row's gradient, in the order of the tokens: those of a token, or of a position. */
struct terms {
    const struct sweep *sweep;
    const uint64_t *pairs; /* NULL: of a position, one token of each sample */
    int64_t row;
};

/* Returns a term's row of dx. */
static int64_t term_place(const struct terms *t, int64_t k)
{
    const struct sweep *const s = t->sweep;
    return t->pairs ? pair_place(t->pairs[k]) : k * s->t + s->first_row + t->row - s->vocabulary;
}

/* Some columns of terms. */
struct columns {
    int64_t first, count;
};

static void add_terms(const struct terms *t, int64_t from, int64_t to, struct columns columns, float *g)
{
    const struct sweep *const s = t->sweep;
    for (int64_t k = from; k < to; k++)
        add_gradient(g, s->dx + term_place(t, k) * s->c + columns.first, columns.count);
}

/* Adds up the terms [from, to), of which there are some, of parts [part, part + parts) as a tree, in `g`, which is
 * zero. */
static void add_tree(const struct terms *t, int64_t from, int64_t to, int64_t part, int64_t parts,
                     struct columns columns, float *g)
{
    const struct sweep *const s = t->sweep;
    if (parts == 1) {
        add_terms(t, from, to, columns, g);
        return;
    }
    const int64_t half = parallel_tree_half((uint32_t)parts), end = (part + half) * (s->b / s->parts) * s->t;
    int64_t middle = from;
    while (middle < to && term_place(t, middle) < end) middle++;
    if (middle > from) add_tree(t, from, middle, part, half, columns, g);
    if (middle == to) return;
    if (middle == from) {
        add_tree(t, middle, to, part + half, parts - half, columns, g);
        return;
    }
    float other[PIECE] = {0};
    add_tree(t, middle, to, part + half, parts - half, columns, other);
    add_floats(g, other, columns.count);
}

/* Steps a row by its terms. */
static void update_row(const struct sweep *s, int64_t row, const uint64_t *pairs, int64_t count)
{
    const struct terms terms = {.sweep = s, .pairs = pairs, .row = row};
    for (int64_t first = 0; first < s->c; first += PIECE) {
        int64_t n = host_min(PIECE, s->c - first), at = row * s->c + first;
        float g[PIECE] = {0};
        if (s->continues) memcpy(g, s->gradient + at, (size_t)n * sizeof *g);
        add_tree(&terms, 0, count, 0, s->parts, (struct columns){first, n}, g);
        if (s->head && pairs) add_floats(g, s->head + at, n);
        apply_gradient(s, at, g, n);
    }
}

static void update_rows(const struct sweep *s, int64_t from, int64_t to)
{
    int64_t k = find_pair(s->pairs, s->pair_count, s->first_row + from);
    int64_t row = from;
    while (row < to) {
        int64_t global = s->first_row + row;
        if (global >= s->vocabulary) {
            if (global - s->vocabulary >= s->t) break;
            update_row(s, row, NULL, s->b);
            row++;
            continue;
        }
        /* the rows without tokens before the next token, all at once */
        int64_t next = k < s->pair_count ? pair_row(s->pairs[k]) : s->vocabulary;
        int64_t busy = host_min(next - s->first_row, to);
        if (row < busy) {
            update_idle(s, row, busy);
            row = busy;
            continue;
        }
        int64_t end = k;
        while (end < s->pair_count && pair_row(s->pairs[end]) == global) end++;
        update_row(s, row, s->pairs + k, end - k);
        k = end;
        row++;
    }
    if (row < to) update_idle(s, row, to); /* positions past the sequence */
}

/* Leaves out the padding token; `scratch` has room for two pairs per token. */
static void sort_tokens(struct sweep *s, const int32_t *tokens, int64_t token_stride,
                        int64_t row_count, float *scratch)
{
    uint64_t *pairs = (uint64_t *)(void *)scratch;
    int64_t all = s->b * s->t, count = 0;
    assert((uintptr_t)pairs % sizeof *pairs == 0 && all <= UINT32_MAX);
    for (int64_t r = 0; r < all; r++) {
        int64_t token = tokens[r / s->t * token_stride + r % s->t];
        if (token >= s->first_row && token < s->first_row + row_count && token + 1 != s->rows.padded)
            pairs[count++] = pair(token, r);
    }
    s->pairs = sort_pairs(pairs, pairs + all, count, s->vocabulary);
    s->pair_count = count;
}

static void sweep_rows(const struct sweep *s, const struct kernels *kernels, int64_t row_count)
{
    int64_t blocks = host_blocks(row_count, BLOCK_ROWS);
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (row_count * s->c > HOST_SERIAL)
    for (int64_t block = 0; block < blocks; block++)
        update_rows(s, block * BLOCK_ROWS, host_min((block + 1) * BLOCK_ROWS, row_count));
}

void HOST(embed_gradient)(const struct kernels *kernels, float *gradient, bool continues, const float *head_gradient,
                         const kernel_number *dx, const int32_t *tokens, int64_t token_stride, int64_t b,
                         int64_t t, int64_t c, int64_t v, int64_t first_row, int64_t row_count, int64_t padded,
                         int64_t parts, float *scratch)
{
    assert(!continues || (!head_gradient && parts == 1));
    struct sweep sweep = {
        .rows.padded = padded, .gradient = gradient, .continues = continues, .head = head_gradient, .dx = dx, .b = b,
        .t = t, .c = c, .vocabulary = v, .first_row = first_row, .parts = parts};
    sort_tokens(&sweep, tokens, token_stride, row_count, scratch);
    sweep_rows(&sweep, kernels, row_count);
}

void HOST(embed_update)(const struct kernels *kernels, const struct kernel_parameters *rows,
                       const float *head_gradient, const kernel_number *dx, const int32_t *tokens,
                       int64_t token_stride, int64_t b, int64_t t, int64_t c, int64_t v,
                       int64_t first_row, int64_t row_count, const struct job_optimizer *optimizer,
                       uint64_t step, int64_t parts, float *scratch)
{
    struct sweep sweep = {
        .step = kernel_step_of(optimizer, true, step),
        .rows = *rows,
        .head = head_gradient,
        .dx = dx,
        .b = b,
        .t = t,
        .c = c,
        .vocabulary = v,
        .first_row = first_row,
        .parts = parts,
        .skip_idle = optimizer->kind == OPTIMIZER_SGD && optimizer->weight_decay == 0,
    };
    sort_tokens(&sweep, tokens, token_stride, row_count, scratch);
    sweep_rows(&sweep, kernels, row_count);
}
