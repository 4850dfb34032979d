/* The pool and the three runs of a case. */
#include "tests/support_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "tests/support_seed.h"

enum { POOL_FLOATS = 1 << 23 };

static struct kernels *one, *two;
static uint64_t seed;
static float *pool;
static int64_t pool_used, pool_shift;

const struct kernels *test_kernels(void)
{
    pool_used = pool_shift = 0;
    return two;
}

uint64_t test_kernels_seed(void)
{
    return seed;
}

float *take(int64_t n)
{
    int64_t begin = (pool_used + 15) / 16 * 16;
    pool_used = begin + n + 16;
    assert_true(pool_used < POOL_FLOATS);
    return pool + begin + pool_shift;
}

float *random_array(int64_t n, uint64_t key, double scale)
{
    float *x = take(n);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(scale * (2 * random_unit(seed ^ key, (uint64_t)i) - 1));
    return x;
}

float *empty_array(int64_t n)
{
    float *x = take(n);
    for (int64_t i = 0; i < n; i++) x[i] = NAN;
    return x;
}

void assert_near(const float *x, const double *expected, int64_t n, double tolerance)
{
    for (int64_t i = 0; i < n; i++) {
        double error = fabs((double)x[i] - expected[i]);
        if (!(error <= tolerance * (1 + fabs(expected[i]))))
            fail_msg("element %lld of %lld: %.9g, expected %.9g (seed %llu)", (long long)i,
                     (long long)n, (double)x[i], expected[i], (unsigned long long)seed);
    }
}

void output(struct outputs *out, const float *at, int64_t floats)
{
    assert_true(out->count < OUTPUTS_MAX);
    out->at[out->count] = at;
    out->floats[out->count++] = floats;
}

void run_case(case_function function, const int64_t *shape)
{
    struct outputs first = {0}, serial = {0}, shifted = {0};
    pool_used = pool_shift = 0;
    kernels_host_attach(two);
    function(two, shape, &first, true);
    kernels_host_attach(one);
    function(one, shape, &serial, false);
    pool_shift = 1;
    kernels_host_attach(two);
    function(two, shape, &shifted, false);
    for (int i = 0; i < first.count; i++) {
        size_t bytes = (size_t)first.floats[i] * sizeof(float);
        if (memcmp(first.at[i], serial.at[i], bytes) != 0)
            fail_msg("output %d differs between two threads and one", i);
        if (memcmp(first.at[i], shifted.at[i], bytes) != 0)
            fail_msg("output %d differs where the data are not aligned", i);
    }
    assert_memory_equal(&first.loss, &serial.loss, sizeof first.loss);
    assert_memory_equal(&first.loss, &shifted.loss, sizeof first.loss);
}

int test_kernels_setup(void **state)
{
    (void)state;
    seed = support_seed("exec/kernels.h");
    struct error err = {0};
    pool = aligned_alloc(64, POOL_FLOATS * sizeof *pool);
    if (!pool || kernels_host_create(1, &one, &err) != STATUS_OK) return -1;
    if (kernels_host_create(2, &two, &err) != STATUS_OK) return -1;
    kernels_host_attach(two);
    return 0;
}

int test_kernels_teardown(void **state)
{
    (void)state;
    kernels_host_destroy(one);
    kernels_host_destroy(two);
    free(pool);
    return 0;
}
