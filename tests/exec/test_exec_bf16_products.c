/*
 * Linear layers of 16 bits: products of 16-bit operands against sums in double, in all forms and in more shapes than
 * a library's code is kept for; calls again, after others, have the same bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bf16.h"
#include "base/random.h"
#include "exec/kernels/kernels.h"
#include "tests/support/support_seed.h"

enum { SHAPES = 100, SIDE = 300 };

/* Relative to the sum of the sizes of all products. */
static const double tolerance = 1e-5;

struct product {
    int64_t m, n, k;
    bool w_in_out, adds;
    uint32_t form; /* forward, input, weight */
    bf16 *a, *b;   /* forward: x, w; input: dy, w; weight: dy, x */
    float *dy;     /* weight */
    float *before, *out, *again;
    int64_t rows, columns; /* of out */
};

static double value(const struct product *p, int64_t row, int64_t column, double *size)
{
    double sum = p->adds ? (double)p->before[row * p->columns + column] : 0;
    *size = fabs(sum);
    const int64_t inner = p->form == 0 ? p->k : p->form == 1 ? p->n : p->m;
    for (int64_t i = 0; i < inner; i++) {
        double x, y;
        if (p->form == 0) {
            x = (double)bf16_widen(p->a[row * p->k + i]);
            y = (double)bf16_widen(p->b[p->w_in_out ? i * p->n + column : column * p->k + i]);
        } else if (p->form == 1) {
            x = (double)bf16_widen(p->a[row * p->n + i]);
            y = (double)bf16_widen(p->b[p->w_in_out ? column * p->n + i : i * p->k + column]);
        } else {
            const int64_t of_x = p->w_in_out ? row : column, of_dy = p->w_in_out ? column : row;
            x = (double)bf16_widen(p->a[i * p->n + of_dy]);
            y = (double)bf16_widen(p->b[i * p->k + of_x]);
        }
        sum += x * y;
        *size += fabs(x * y);
    }
    return sum;
}

static void fill(bf16 *out, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = bf16_nearest((float)random_unit(seed, (uint64_t)i) - 0.5f);
}

static void make(struct product *p, uint64_t seed)
{
    *p = (struct product){.m = 1 + (int64_t)random_below(seed, 0, SIDE), .n = 1 + (int64_t)random_below(seed, 1, SIDE),
                          .k = 1 + (int64_t)random_below(seed, 2, SIDE), .w_in_out = random_below(seed, 3, 2),
                          .adds = random_below(seed, 4, 2), .form = (uint32_t)random_below(seed, 5, 3)};
    const int64_t a = p->form == 0 ? p->m * p->k : p->m * p->n, b = p->form == 2 ? p->m * p->k : p->n * p->k;
    p->rows = p->form < 2 ? p->m : p->w_in_out ? p->k : p->n;
    p->columns = p->form == 0 ? p->n : p->form == 1 ? p->k : p->w_in_out ? p->n : p->k;
    p->a = alloc_zeroed((size_t)a, sizeof *p->a);
    p->b = alloc_zeroed((size_t)b, sizeof *p->b);
    p->dy = alloc_zeroed((size_t)a, sizeof *p->dy);
    p->before = alloc_zeroed((size_t)(p->rows * p->columns), sizeof *p->before);
    p->out = alloc_zeroed((size_t)(p->rows * p->columns), sizeof *p->out);
    p->again = alloc_zeroed((size_t)(p->rows * p->columns), sizeof *p->again);
    assert_true(p->a && p->b && p->dy && p->before && p->out && p->again);
    fill(p->a, a, random_u64(seed, 6));
    fill(p->b, b, random_u64(seed, 7));
    for (int64_t i = 0; i < a; i++) p->dy[i] = bf16_widen(p->a[i]);
    for (int64_t i = 0; i < p->columns; i++) p->before[i] = (float)random_unit(seed, 100 + (uint64_t)i);
    /* a bias is the same in each row */
    for (int64_t row = 1; row < p->rows; row++)
        memcpy(p->before + row * p->columns, p->before, (size_t)p->columns * sizeof *p->before);
}

static void multiply(const struct kernels *kernels, const struct product *p, float *out)
{
    memcpy(out, p->before, (size_t)(p->rows * p->columns) * sizeof *out);
    if (p->form == 0)
        kernels->linear_forward_bf16(kernels, out, p->a, p->b, p->adds ? p->before : NULL, p->m, p->n, p->k,
                                     p->w_in_out);
    else if (p->form == 1)
        kernels->linear_input_bf16(kernels, out, p->a, p->b, p->m, p->n, p->k, p->w_in_out, p->adds);
    else
        kernels->linear_weight_bf16(kernels, out, NULL, p->dy, p->a, p->b, p->m, p->n, p->k, p->w_in_out,
                                    p->adds ? KERNEL_LINEAR_ADD_WEIGHT : 0);
}

static void release(struct product *p)
{
    void *const all[] = {p->a, p->b, p->dy, p->before, p->out, p->again};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void products_are_right_and_repeat(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("test_exec_bf16_products");
    struct product *const products = alloc_zeroed(SHAPES, sizeof *products);
    struct kernels *kernels = NULL;
    struct error err = {0};
    double worst = 0;
    assert_non_null(products);
    if (kernels_host_create(2, &kernels, &err)) fail_msg("%s", err.text);
    kernels_host_attach(kernels);
    for (uint32_t i = 0; i < SHAPES; i++) {
        struct product *const p = &products[i];
        make(p, random_u64(seed, i));
        multiply(kernels, p, p->out);
        for (int64_t row = 0; row < p->rows; row++)
            for (int64_t column = 0; column < p->columns; column++) {
                double size;
                const double right = value(p, row, column, &size);
                const double off = fabs((double)p->out[row * p->columns + column] - right) / (size + 1e-30);
                if (!(off <= tolerance))
                    fail_msg("shape %u, (%" PRId64 ", %" PRId64 "): %g instead of %g", i, row, column,
                             (double)p->out[row * p->columns + column], right);
                worst = fmax(worst, off);
            }
    }
    for (uint32_t i = SHAPES; i-- > 0;) {
        struct product *const p = &products[i];
        multiply(kernels, p, p->again);
        assert_memory_equal(p->again, p->out, (size_t)(p->rows * p->columns) * sizeof *p->out);
        release(p);
    }
    print_message("worst error %.1e of the products' sizes\n", worst);
    kernels_host_destroy(kernels);
    free(products);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_right_and_repeat)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
