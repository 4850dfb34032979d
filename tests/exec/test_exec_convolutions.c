/*
 * Convolutions of the host, forward and backward, against sums over taps in double: random shapes, and shapes for each
 * way to compute them (products of taps, images in chunks, few channels, groups). Equal calls have equal bits.
 */
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
#include "exec/kernels/kernels.h"
#include "tests/support/support_seed.h"

static struct kernels *one, *two;
static uint64_t seed;

enum { CHECKED = 60, ROUNDS = 60 };

/* Operands of a convolution, and a fourth place for results. */
struct operands {
    float *x, *w, *y, *made;
    int64_t x_count, w_count, y_count;
};

static float *numbers(int64_t count, uint64_t stream)
{
    float *const out = malloc((size_t)count * sizeof *out);
    assert_non_null(out);
    for (int64_t i = 0; i < count; i++) out[i] = (float)(2 * random_unit(seed + stream, (uint64_t)i) - 1);
    return out;
}

static struct operands begin(const struct kernel_convolution *c)
{
    struct operands o = {.x_count = c->b * c->side_in * c->side_in * c->in,
                         .y_count = c->b * c->side_out * c->side_out * c->out,
                         .w_count = c->out * (c->in / c->groups) * c->kernel * c->kernel};
    o.x = numbers(o.x_count, 1);
    o.w = numbers(o.w_count, 2);
    o.y = numbers(o.y_count, 3);
    o.made = numbers(o.x_count + o.w_count + o.y_count, 4);
    return o;
}

static void end(struct operands *o)
{
    free(o->x);
    free(o->w);
    free(o->y);
    free(o->made);
}

static int64_t w_at(const struct kernel_convolution *c, int64_t out, int64_t in, int64_t tap)
{
    return (out * (c->in / c->groups) + in % (c->in / c->groups)) * c->kernel * c->kernel + tap;
}

/* Returns the image's pixel (row, column), or -1: padding. */
static int64_t pixel_of(const struct kernel_convolution *c, int64_t row, int64_t column)
{
    if (row < 0 || column < 0 || row >= c->side_in || column >= c->side_in) return -1;
    return row * c->side_in + column;
}

/* Adds up the products that `want` picks: of a result, of an image's number, or of a weight. */
enum wanted { RESULT, IMAGE, WEIGHT };
static double sum_of(const struct kernel_convolution *c, const struct operands *o, enum wanted want, int64_t index)
{
    double sum = 0;
    const int64_t ins = c->in / c->groups, outs = c->out / c->groups, taps = c->kernel * c->kernel;
    const int64_t area_out = c->side_out * c->side_out, area_in = c->side_in * c->side_in;
    const int64_t only_out = want == RESULT ? index % c->out : want == WEIGHT ? index / (ins * taps) : -1;
    const int64_t only_in = want == IMAGE    ? index % c->in
                            : want == WEIGHT ? index / taps % ins + only_out / outs * ins
                                             : -1;
    const int64_t only_b = want == RESULT ? index / c->out / area_out : want == IMAGE ? index / c->in / area_in : -1;
    for (int64_t b = only_b < 0 ? 0 : only_b; b <= (only_b < 0 ? c->b - 1 : only_b); b++)
        for (int64_t p = 0; p < area_out; p++) {
            if (want == RESULT && p != index / c->out % area_out) continue;
            for (int64_t tap = 0; tap < taps; tap++) {
                const int64_t row = p / c->side_out * c->stride + tap / c->kernel - c->padding;
                const int64_t column = p % c->side_out * c->stride + tap % c->kernel - c->padding;
                const int64_t pixel = pixel_of(c, row, column);
                if (pixel < 0 || (want == IMAGE && pixel != index / c->in % area_in)) continue;
                if (want == WEIGHT && tap != index % taps) continue;
                const int64_t group = only_out >= 0 ? only_out / outs : only_in / ins;
                for (int64_t k = 0; k < (only_out >= 0 && only_in >= 0 ? 1 : only_out >= 0 ? ins : outs); k++) {
                    const int64_t out = only_out >= 0 ? only_out : group * outs + k;
                    const int64_t in = only_in >= 0 ? only_in : group * ins + k;
                    const double x = (double)o->x[(b * area_in + pixel) * c->in + in];
                    const double y = (double)o->y[(b * area_out + p) * c->out + out];
                    const double w = (double)o->w[w_at(c, out, in, tap)];
                    sum += want == RESULT ? x * w : want == IMAGE ? y * w : x * y;
                }
            }
        }
    return sum;
}

static void check_numbers(const struct kernel_convolution *c, const struct operands *o, enum wanted want, int64_t count)
{
    static const char *const names[] = {"result", "image", "weight"};
    const int64_t channels = (want == RESULT ? c->in : c->out) / c->groups;
    const double terms = want == WEIGHT ? (double)(c->b * c->side_out * c->side_out)
                                        : (double)(channels * c->kernel * c->kernel);
    for (uint64_t i = 0; i < CHECKED; i++) {
        const int64_t at = i == 0 ? 0 : i == 1 ? count - 1 : (int64_t)random_below(seed + 5, i, (uint64_t)count);
        const double expected = sum_of(c, o, want, at);
        if (fabs((double)o->made[at] - expected) <= 2e-6 * sqrt(terms) + 3e-8 * terms + 2e-6 * fabs(expected)) continue;
        fail_msg("%s %lld of b %lld, %lld > %lld channels, %lld > %lld pixels, kernel %lld, stride %lld, padding %lld, "
                 "%lld groups: %.9g, expected %.9g", names[want], (long long)at, (long long)c->b, (long long)c->in,
                 (long long)c->out, (long long)c->side_in, (long long)c->side_out, (long long)c->kernel,
                 (long long)c->stride, (long long)c->padding, (long long)c->groups, (double)o->made[at], expected);
    }
}

static void compute(const struct kernels *k, const struct kernel_convolution *c, const struct operands *o,
                    enum wanted want)
{
    if (want == RESULT) k->images->convolve(k, o->made, o->x, o->w, NULL, c);
    else if (want == IMAGE) k->images->convolve_input(k, o->made, o->y, o->w, c);
    else k->images->convolve_weight(k, o->made, o->y, o->x, c);
}

static void check(const struct kernel_convolution *c)
{
    struct operands o = begin(c);
    for (enum wanted want = RESULT; want <= WEIGHT; want++) {
        const int64_t count = want == RESULT ? o.y_count : want == IMAGE ? o.x_count : o.w_count;
        const size_t bytes = (size_t)count * sizeof(float);
        float *const first = malloc(bytes);
        assert_non_null(first);
        for (int64_t i = 0; i < count; i++) o.made[i] = NAN;
        kernels_host_attach(one);
        compute(one, c, &o, want);
        check_numbers(c, &o, want, count);
        kernels_host_attach(two);
        compute(two, c, &o, want);
        check_numbers(c, &o, want, count);
        memcpy(first, o.made, bytes);
        compute(two, c, &o, want);
        assert_memory_equal(first, o.made, bytes);
        free(first);
    }
    end(&o);
}

static void test_random_shapes(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const uint64_t draw = random_u64(seed, round);
        struct kernel_convolution c = {.b = 1 + (int64_t)random_below(draw, 0, 5),
                                       .groups = 1 + (int64_t)random_below(draw, 1, 2),
                                       .kernel = 1 + (int64_t)random_below(draw, 2, 5),
                                       .stride = 1 + (int64_t)random_below(draw, 3, 3)};
        c.in = c.groups * (1 + (int64_t)random_below(draw, 4, 24));
        c.out = c.groups * (1 + (int64_t)random_below(draw, 5, 24));
        c.padding = (int64_t)random_below(draw, 6, (uint64_t)c.kernel / 2 + 1);
        c.side_in = c.kernel - 2 * c.padding + (int64_t)random_below(draw, 7, 8);
        if (c.side_in < 1) c.side_in = 1;
        c.side_out = (c.side_in + 2 * c.padding - c.kernel) / c.stride + 1;
        check(&c);
    }
}

static void test_each_way(void **state)
{
    static const struct kernel_convolution shapes[] = {
        {7, 24, 40, 1, 1, 3, 1, 1, 1},     /* eight taps in the padding */
        {3, 24, 16, 4, 4, 3, 1, 1, 1},     /* 44 of 144 */
        {3, 16, 24, 4, 2, 3, 2, 1, 1},
        {2, 8, 8, 2, 1, 5, 2, 2, 1},
        {5, 16, 16, 6, 6, 3, 1, 1, 1},     /* in blocks */
        {3, 8, 8, 400, 400, 3, 1, 1, 1},   /* a sample at a time */
        {5, 8, 8, 300, 300, 3, 1, 1, 1},   /* two samples at a time, and one */
        {3, 3, 16, 20, 10, 7, 2, 3, 1},    /* few channels */
        {2, 16, 32, 9, 9, 1, 1, 0, 1}};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) check(&shapes[i]);
}

/* Sums of columns, with the same bits on one thread and on two. */
static void test_biases(void **state)
{
    static const int64_t shapes[][2] = {{1, 3}, {7, 64}, {70, 65}, {5000, 3}, {9001, 64}, {4099, 130}, {1, 70000}};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) {
        const int64_t rows = shapes[i][0], c = shapes[i][1];
        float *const dy = numbers(rows * c, 7 + i), *const made = numbers(2 * c, 8 + i);
        one->images->bias_backward(one, made, dy, rows, c);
        two->images->bias_backward(two, made + c, dy, rows, c);
        assert_memory_equal(made, made + c, (size_t)c * sizeof *made);
        for (int64_t l = 0; l < c; l++) {
            double sum = 0;
            for (int64_t row = 0; row < rows; row++) sum += (double)dy[row * c + l];
            assert_true(fabs((double)made[l] - sum) <= 1e-6 * sqrt((double)rows) + 1e-6 * fabs(sum));
        }
        free(dy);
        free(made);
    }
}

static int set_up(void **state)
{
    struct error err = {0};
    (void)state;
    if (kernels_host_create(1, &one, &err) || kernels_host_create(2, &two, &err)) return -1;
    seed = support_seed("exec/kernels/kernels_convolution.c");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kernels_host_destroy(one);
    kernels_host_destroy(two);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_shapes), cmocka_unit_test(test_each_way),
                                       cmocka_unit_test(test_biases)};
    return cmocka_run_group_tests_name("exec/kernels/kernels_convolution.c", tests, set_up, tear_down);
}
