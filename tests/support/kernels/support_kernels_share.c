/* Checks kernels of jobs that clip, and of tensor groups: against plain ones in double, or against other kernels'
 * bits. */
#include "tests/support/kernels/support_kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "exec/kernels/kernels_code.h"
#include "models/job/parallel.h"

static const struct job_optimizer sgd = {.kind = OPTIMIZER_SGD, .learning_rate = 0.013, .weight_decay = 0.07};
static const struct job_optimizer adamw = {.kind = OPTIMIZER_ADAMW, .learning_rate = 0.013, .weight_decay = 0.07,
                                           .beta1 = 0.87, .beta2 = 0.963, .epsilon = 3e-7};
static const struct job_optimizer nesterov = {.kind = OPTIMIZER_MOMENTUM, .learning_rate = 0.013, .momentum = 0.83,
                                              .nesterov = true};
static const struct job_optimizer *const optimizers[] = {&sgd, &adamw, &nesterov};

/* --- squares ---------------------------------------------------------------------------------- */

/* The sum of shape[0] squares, and twice that. */
static void squares_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out, bool check)
{
    const int64_t n = shape[0];
    const float *const g = random_array(n, 30, 3);
    double *const sum = support_loss(), *const twice = support_loss();
    long double expected = 0;
    kernels->squares(kernels, sum, g, n, false);
    *twice = *sum;
    kernels->squares(kernels, twice, g, n, true);
    out->loss = *sum;
    if (!check) return;
    for (int64_t i = 0; i < n; i++) expected += (long double)g[i] * (long double)g[i];
    assert_true(fabs(*sum - (double)expected) <= 1e-13 * *sum); /* a double's rounding of n terms */
    assert_true(*twice == 2 * *sum);
    kernels->add_double(kernels, twice, sum);
    assert_true(fabs(*twice - 3 * *sum) <= 1e-15 * *twice);
}

void test_kernel_squares(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 15, 17, 2048, 2049, 16385, 99991, 2200007};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) run_case(squares_case, &counts[i]);
}

/* --- steps with a scaled gradient ------------------------------------------------------------- */

/* Has the bits of a step with a gradient that was scaled before. */
static void update_scaled_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out, bool check)
{
    const int64_t n = shape[0];
    const struct job_optimizer *const optimizer = optimizers[shape[1]];
    const uint32_t moments = optimizer_moments(optimizer->kind);
    const float *const g = random_array(n, 53, 1);
    float *const scaled = support_floats(n);
    struct kernel_parameters of[2];
    for (uint32_t w = 0; w < 2; w++) {
        of[w] = (struct kernel_parameters){.p = random_array(n, 50, 1)};
        if (moments > 0) of[w].m = random_array(n, 51, 0.1);
        if (moments > 1) of[w].v = random_array(n, 52, 0.1);
        for (int64_t i = 0; moments > 1 && i < n; i++) ((float *)of[w].v)[i] = fabsf(((float *)of[w].v)[i]);
    }
    for (int64_t i = 0; i < n; i++) scaled[i] = g[i] * 0.3f;
    kernels->update_scaled(kernels, &of[0], g, n, optimizer, true, 7, 0.3f);
    kernels->update(kernels, &of[1], scaled, n, optimizer, true, 7);
    output(out, of[0].p, n);
    if (!check) return;
    assert_memory_equal(of[0].p, of[1].p, (size_t)n * sizeof *g);
    if (moments > 0) assert_memory_equal(of[0].m, of[1].m, (size_t)n * sizeof *g);
    if (moments > 1) assert_memory_equal(of[0].v, of[1].v, (size_t)n * sizeof *g);
}

void test_kernel_update_scaled(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 65, 4097, 50021};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int64_t kind = 0; kind < 3; kind++) run_case(update_scaled_case, (int64_t[]){counts[i], kind});
}

/* --- gradients of embeddings ------------------------------------------------------------------ */

enum { B = 4, T = 29, C = 37, V = 101, P = 33, ROWS = V + P };

/* Returns tokens that come several times. */
static int32_t *some_tokens(void)
{
    int32_t *const tokens = support_tokens(B * (T + 1));
    for (int32_t i = 0; i < B * (T + 1); i++) tokens[i] = i * i % 13 * 7;
    return tokens;
}

/* The gradient followed by a step equals the step that makes no gradient. shape[0]: with a head's gradient; shape[1]:
 * parts */
static void embed_gradient_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out, bool check)
{
    const int64_t n = ROWS * C, padded = 1 + 7 * shape[0];
    const float *const dx = random_array(B * T * C, 60, 1);
    const float *const head = shape[0] ? random_array(V * C, 61, 1) : NULL;
    float *const gradient = empty_array(n), *const scratch = support_floats_aligned(4 * B * T);
    const int32_t *const tokens = some_tokens();
    struct kernel_parameters of[2];
    for (uint32_t w = 0; w < 2; w++) {
        of[w] = (struct kernel_parameters){.p = random_array(n, 62, 1), .m = support_floats(n), .v = support_floats(n)};
        memset(of[w].m, 0, (size_t)n * sizeof *dx);
        memset(of[w].v, 0, (size_t)n * sizeof *dx);
    }
    of[0].padded = padded;
    kernels->embed_update(kernels, &of[0], head, dx, tokens, T + 1, B, T, C, V, 0, ROWS, &adamw, 3, shape[1],
                          scratch);
    kernels->embed_gradient(kernels, gradient, false, head, dx, tokens, T + 1, B, T, C, V, 0, ROWS, padded,
                            shape[1], scratch);
    kernels->update(kernels, &of[1], gradient, n, &adamw, true, 3);
    output(out, gradient, n);
    if (!check) return;
    assert_memory_equal(of[0].p, of[1].p, (size_t)n * sizeof *dx);
    assert_memory_equal(of[0].m, of[1].m, (size_t)n * sizeof *dx);
    assert_memory_equal(of[0].v, of[1].v, (size_t)n * sizeof *dx);
}

void test_kernel_embed_gradient(void **state)
{
    (void)state;
    for (int64_t head = 0; head < 2; head++)
        for (int64_t parts = 1; parts <= B; parts *= 2)
            run_case(embed_gradient_case, (const int64_t[]){head, parts});
}

/* The gradient of all samples at once equals the gradient that goes on sample by sample. */
void test_kernel_embed_gradient_continues(void **state)
{
    (void)state;
    const struct kernels *const kernels = test_kernels();
    const float *const dx = random_array(B * T * C, 63, 1);
    float *const once = support_floats(ROWS * C), *const apart = support_floats(ROWS * C);
    float *const scratch = support_floats_aligned(4 * B * T);
    const int32_t *const tokens = some_tokens();
    kernels->embed_gradient(kernels, once, false, NULL, dx, tokens, T + 1, B, T, C, V, 0, ROWS, 0, 1, scratch);
    for (int b = 0; b < B; b++)
        kernels->embed_gradient(kernels, apart, b > 0, NULL, dx + b * T * C, tokens + b * (T + 1), T + 1, 1, T, C, V, 0,
                                ROWS, 0, 1, scratch);
    assert_memory_equal(once, apart, ROWS * C * sizeof *once);
}

/* Returns the sum of parts [part, part + parts) of gradients of `n` numbers, as a balanced tree, in the first one. */
static float *sum_of_parts(float *const *gradients, uint32_t parts, int64_t n)
{
    if (parts == 1) return gradients[0];
    const uint32_t half = parallel_tree_half(parts);
    float *const left = sum_of_parts(gradients, half, n);
    const float *const right = sum_of_parts(gradients + half, parts - half, n);
    for (int64_t i = 0; i < n; i++) left[i] += right[i];
    return left;
}

/* Parts of the samples add up as a tree of gradients, one of each part: with words that some parts lack, and with a
 * number of parts that is no power of two. */
void test_kernel_embed_gradient_parts(void **state)
{
    (void)state;
    enum { SAMPLES = 12, TOKENS = 5 };
    const struct kernels *const kernels = test_kernels();
    const float *const dx = random_array(SAMPLES * TOKENS * C, 64, 1);
    float *const scratch = support_floats_aligned(4 * SAMPLES * TOKENS);
    int32_t *const tokens = support_tokens(SAMPLES * (TOKENS + 1));
    for (int32_t i = 0; i < SAMPLES * (TOKENS + 1); i++) tokens[i] = i * i % 23 * 4;
    for (uint32_t parts = 1; parts <= SAMPLES; parts++) {
        float *const once = support_floats(ROWS * C), *apart[SAMPLES];
        const int64_t each = SAMPLES / parts;
        if (SAMPLES % parts != 0) continue;
        kernels->embed_gradient(kernels, once, false, NULL, dx, tokens, TOKENS + 1, SAMPLES, TOKENS, C, V, 0, ROWS, 9,
                                parts, scratch);
        for (uint32_t p = 0; p < parts; p++) {
            apart[p] = support_floats(ROWS * C);
            kernels->embed_gradient(kernels, apart[p], false, NULL, dx + p * each * TOKENS * C,
                                    tokens + p * each * (TOKENS + 1), TOKENS + 1, each, TOKENS, C, V, 0, ROWS, 9, 1,
                                    scratch);
        }
        assert_memory_equal(once, sum_of_parts(apart, parts, ROWS * C), ROWS * C * sizeof *once);
    }
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Copies only the columns of the rows. */
void test_kernel_copy_rows(void **state)
{
    (void)state;
    enum { COPIED = 7, WIDTH = 19, FROM = 23, TO = 31 };
    const struct kernels *const kernels = test_kernels();
    const float *const from = random_array(COPIED * FROM, 80, 1);
    float *const to = random_array(COPIED * TO, 81, 1), *const before = random_array(COPIED * TO, 81, 1);
    kernels->copy_rows(kernels, to, TO, from, FROM, COPIED, WIDTH);
    for (int i = 0; i < COPIED * TO; i++)
        assert_true(to[i] == (i % TO < WIDTH ? from[i / TO * FROM + i % TO] : before[i]));
}

/* Codes apart and in place have the bytes of the host's, and so have numbers of the code. shape: code, numbers */
static void codes_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out, bool check)
{
    const enum compression_code code = (enum compression_code)shape[0];
    const uint64_t count = (uint64_t)shape[1];
    const float *const x = random_array((int64_t)count, 82, 1);
    float *const in_place = random_array((int64_t)count, 82, 1), *const numbers = empty_array((int64_t)count);
    float *const apart = empty_array((int64_t)count), *const wanted = empty_array((int64_t)count);
    const uint64_t bytes = compression_code_bytes(code, count);
    kernels_encode(code, wanted, x, count);
    kernels->encode(kernels, code, apart, x, (int64_t)count);
    if (check) assert_memory_equal(apart, wanted, bytes);
    kernels->encode(kernels, code, in_place, in_place, (int64_t)count);
    if (check) assert_memory_equal(in_place, wanted, bytes);
    kernels->decode(kernels, code, numbers, apart, (int64_t)count);
    kernels->decode(kernels, code, in_place, in_place, (int64_t)count);
    output(out, numbers, (int64_t)count);
    if (!check) return;
    kernels_decode(code, wanted, wanted, count);
    assert_memory_equal(numbers, wanted, count * sizeof *wanted);
    assert_memory_equal(in_place, wanted, count * sizeof *wanted);
}

void test_kernel_codes(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 15, 16, 480, 3839, 3841, 11521, 50003};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        run_case(codes_case, (int64_t[]){COMPRESSION_BF16, counts[i]});
        run_case(codes_case, (int64_t[]){COMPRESSION_INT8, counts[i]});
    }
}

/* --- losses of tensor groups ------------------------------------------------------------------ */

enum { MEMBERS_MAX = 4 };

/* A member's words of one loss. */
struct member {
    struct kernel_loss_share share;
    double *loss;
};

/* Combines the members' numbers of each row in the order of members: their maximum, or their sums. */
static void combine(struct member *members, int64_t count, int64_t numbers, bool largest)
{
    for (int64_t i = 0; i < numbers; i++) {
        float all = largest ? -INFINITY : 0;
        for (int64_t m = 0; m < count; m++) {
            const float own = (largest ? members[m].share.largest : members[m].share.sums)[i];
            all = largest ? fmaxf(all, own) : m == 0 ? own : all + own;
        }
        for (int64_t m = 0; m < count; m++) (largest ? members[m].share.largest : members[m].share.sums)[i] = all;
    }
}

/* Makes a loss of the rows from `first` on, as a group does. */
static void share_rows(const struct kernels *kernels, struct member *members, int64_t count,
                       struct kernel_loss_rows rows)
{
    for (int64_t m = 0; m < count; m++) {
        struct member *const own = &members[m];
        own->share.rows = rows;
        own->share.at_target = own->share.sums + rows.count;
        kernels->loss_largest(kernels, &own->share);
    }
    combine(members, count, rows.count, true);
    for (int64_t m = 0; m < count; m++) kernels->loss_sums(kernels, &members[m].share);
    combine(members, count, 2 * rows.count, false);
    for (int64_t m = 0; m < count; m++) kernels->loss_gradient(kernels, members[m].loss, &members[m].share);
}

/* Labels of which one in `every` rows has one. */
static int32_t *some_labels(int64_t rows, int64_t v, int64_t every)
{
    int32_t *const labels = support_tokens(rows);
    for (int64_t r = 0; r < rows; r++)
        labels[r] = random_below(test_kernels_seed() ^ 5, (uint64_t)r, (uint64_t)every) > 0
                        ? -1 : (int32_t)random_below(test_kernels_seed() ^ 6, (uint64_t)r, (uint64_t)v);
    return labels;
}

static void check_share(const float *z, int64_t v, const struct member *members, int64_t count, int64_t at,
                        int64_t label, double counted, double *total)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < v; j++) largest = fmax(largest, (double)z[j]);
    for (int64_t j = 0; j < v; j++) sum += exp((double)z[j] - largest);
    if (label >= 0) *total += log(sum) + largest - (double)z[label];
    for (int64_t m = 0; m < count; m++)
        for (int64_t j = 0; j < members[m].share.v; j++) {
            const int64_t word = members[m].share.first_word + j;
            const double want = label < 0 ? 0 : (exp((double)z[word] - largest) / sum - (word == label)) / counted;
            const double found = (double)members[m].share.logits[at * members[m].share.v + j];
            assert_true(fabs(found - want) <= test_kernels_slack() * 1e-6 / counted);
        }
}

/* shape: B, T, V, members, one in so many rows has a label, rows of a piece */
static void loss_share_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out, bool check)
{
    const int64_t rows = shape[0] * shape[1], v = shape[2], count = shape[3], piece = shape[5];
    const int64_t slice = (v + count - 1) / count;
    const float *const before = random_array(rows * v, 70, 8);
    const int32_t *const labels = some_labels(rows, v, shape[4]);
    struct member members[MEMBERS_MAX];
    float *logits[MEMBERS_MAX];
    double counted = 0, total = 0;
    for (int64_t m = 0; m < count; m++) {
        const int64_t first = m * slice < v ? m * slice : v, own = first + slice < v ? slice : v - first;
        logits[m] = support_floats(rows * own + 1);
        for (int64_t i = 0; i < rows * own; i++) logits[m][i] = before[i / own * v + first + i % own];
        members[m] = (struct member){
            .share = {.logits = logits[m], .labels = labels, .label_stride = shape[1], .b = shape[0], .t = shape[1],
                      .v = own,
                      .first_word = first, .masked = shape[4] > 1, .largest = empty_array(piece),
                      .sums = empty_array(2 * piece)},
            .loss = support_loss()};
    }
    struct kernel_loss_rows part = {.parts = 1};
    for (; part.first < rows; part.first += piece) {
        part.count = rows - part.first < piece ? rows - part.first : piece;
        for (int64_t m = 0; m < count; m++) members[m].share.logits = logits[m] + part.first * members[m].share.v;
        share_rows(kernels, members, count, part);
    }
    out->loss = *members[0].loss;
    for (int64_t m = 0; m < count; m++) members[m].share.logits = logits[m];
    for (int64_t m = 0; m < count; m++) output(out, logits[m], rows * members[m].share.v);
    if (!check) return;
    for (int64_t r = 0; r < rows; r++) counted += labels[r] >= 0;
    if (counted < 1) counted = 1;
    for (int64_t r = 0; r < rows; r++) check_share(before + r * v, v, members, count, r, labels[r], counted, &total);
    for (int64_t m = 0; m < count; m++) {
        assert_true(*members[m].loss == *members[0].loss);
        assert_true(fabs(*members[m].loss - total / counted) <= test_kernels_slack() * 1e-6 * (1 + total / counted));
    }
}

void test_kernel_loss_share(void **state)
{
    (void)state;
    static const int64_t sizes[][5] = {{1, 1, 1, 2, 1}, {3, 5, 97, 3, 1}, {1, 64, 511, 4, 7}, {2, 33, 1201, 2, 2},
                                       {2, 3, 5, 4, 1}, {2, 3, 5, 2, 1 << 30}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int64_t rows = sizes[i][0] * sizes[i][1];
        for (int p = 0; p < 2; p++)
            run_case(loss_share_case, (int64_t[]){sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], sizes[i][4],
                                                  p ? (rows + 2) / 3 : rows});
    }
}
