/* The pool and the three runs of a case. */
#include "tests/support/support_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "tests/support/support_seed.h"

enum { POOL_FLOATS = 1 << 23 };

static struct kernel_cases under;
static uint64_t seed;
static float *pool;
static int64_t pool_used, pool_shift;

/* --- arrays ----------------------------------------------------------------------------------- */

static void clear(int64_t shift)
{
    pool_used = 0;
    pool_shift = shift;
}

float *test_kernels_pool(uint64_t *bytes)
{
    *bytes = (uint64_t)pool_used * sizeof *pool;
    return pool;
}

float *support_floats(int64_t n)
{
    int64_t begin = (pool_used + 15) / 16 * 16;
    pool_used = begin + n + 32;
    assert_true(pool_used < POOL_FLOATS);
    return pool + begin + pool_shift;
}

float *support_floats_aligned(int64_t n)
{
    return support_floats(n + pool_shift) - pool_shift;
}

float *random_array(int64_t n, uint64_t key, double scale)
{
    float *x = support_floats(n);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(scale * (2 * random_unit(seed ^ key, (uint64_t)i) - 1));
    return x;
}

float *empty_array(int64_t n)
{
    float *x = support_floats(n);
    for (int64_t i = 0; i < n; i++) x[i] = NAN;
    return x;
}

int32_t *support_tokens(int64_t n)
{
    return (int32_t *)(void *)support_floats(n);
}

int32_t *random_tokens(int64_t n, uint64_t key, int64_t words)
{
    int32_t *tokens = support_tokens(n);
    for (int64_t i = 0; i < n; i++)
        tokens[i] = (int32_t)random_below(seed ^ key, (uint64_t)i, (uint64_t)words);
    return tokens;
}

double *support_loss(void)
{
    double *loss = (double *)(void *)support_floats_aligned(2);
    *loss = NAN;
    return loss;
}

void assert_near(const float *x, const double *expected, int64_t n, double tolerance)
{
    for (int64_t i = 0; i < n; i++) {
        double error = fabs((double)x[i] - expected[i]);
        if (!(error <= under.slack * tolerance * (1 + fabs(expected[i]))))
            fail_msg("element %lld of %lld: %.9g, expected %.9g (seed %llu)", (long long)i,
                     (long long)n, (double)x[i], expected[i], (unsigned long long)seed);
    }
}

/* --- runs ------------------------------------------------------------------------------------- */

static void attach(const struct kernels *kernels)
{
    if (under.attach) under.attach(kernels);
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
    clear(0);
    attach(under.first);
    function(under.first, shape, &first, true);
    attach(under.second);
    function(under.second, shape, &serial, false);
    pool_shift = under.shift;
    attach(under.first);
    function(under.first, shape, &shifted, false);
    for (int i = 0; i < first.count; i++) {
        size_t bytes = (size_t)first.floats[i] * sizeof(float);
        if (memcmp(first.at[i], serial.at[i], bytes) != 0)
            fail_msg("output %d differs between the first table and the second", i);
        if (memcmp(first.at[i], shifted.at[i], bytes) != 0)
            fail_msg("output %d differs where the data lie elsewhere", i);
    }
    assert_memory_equal(&first.loss, &serial.loss, sizeof first.loss);
    assert_memory_equal(&first.loss, &shifted.loss, sizeof first.loss);
}

/* --- public ----------------------------------------------------------------------------------- */

const struct kernels *test_kernels(void)
{
    clear(0);
    attach(under.first);
    return under.first;
}

uint64_t test_kernels_seed(void)
{
    return seed;
}

double test_kernels_slack(void)
{
    return under.slack;
}

int kernel_cases_setup(const struct kernel_cases *cases)
{
    under = *cases;
    seed = support_seed("exec/kernels/kernels.h");
    pool = aligned_alloc(64, POOL_FLOATS * sizeof *pool);
    return pool ? 0 : -1;
}

void kernel_cases_teardown(void)
{
    free(pool);
    pool = NULL;
}
