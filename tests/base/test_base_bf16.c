/*
 * Rounding to bfloat16 against a plain one by frexp() and rint(), which shares no bit trick with it; and
 * rounding at random: to one of the two neighbours, without a bias, from bits that depend only on key and place.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bf16.h"
#include "base/random.h"
#include "tests/support/support_seed.h"

/* Returns the distance between neighbours around x: eight bits of significand, exponents from -126 on. */
static double step_at(double x)
{
    int exponent;
    frexp(x, &exponent);
    return ldexp(1, (exponent < -125 ? -125 : exponent) - 8);
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void test_nearest(void **state)
{
    (void)state;
    const uint64_t seed = support_seed(__func__);
    for (uint64_t i = 0; i < 300000; i++) {
        uint32_t bits = (uint32_t)random_u64(seed, i);
        if (i % 4 == 0) bits = (bits & 0xffff0000u) | 0x8000u; /* ties */
        if (i % 4 == 1) bits &= 0x80ffffffu;                   /* small ones */
        const float x = float_of(bits);
        const float rounded = bf16_widen(bf16_nearest(x));
        if (isnan(x)) {
            assert_true(isnan(rounded));
            continue;
        }
        const double want = isinf(x) ? (double)x : rint((double)x / step_at(x)) * step_at(x);
        assert_true(isinf(rounded) ? fabs(want) >= 0x1p128 || isinf(x) : (double)rounded == want);
        assert_true(signbit(rounded) == signbit(x));
    }
    assert_int_equal(bf16_nearest(1.0f), 0x3f80);
    assert_int_equal(bf16_nearest(0x1.01p0f), 0x3f80); /* ties go to even: down ... */
    assert_int_equal(bf16_nearest(0x1.03p0f), 0x3f82); /* ... and up */
    assert_true(isnan(bf16_widen(bf16_nearest(float_of(0x7f800001u)))));
}

/* Over all 16 random bits, the number of values rounded up is exactly what the fraction says. */
static void test_random_is_exact(void **state)
{
    (void)state;
    const uint64_t seed = support_seed(__func__);
    for (uint64_t i = 0; i < 40; i++) {
        const uint32_t bits = ((uint32_t)random_u64(seed, i) & 0xbfffffffu) | 0x00800000u;
        const float x = float_of(bits);
        const double step = step_at(x), low = floor(fabs((double)x) / step) * step;
        uint32_t ups = 0;
        for (uint32_t random = 0; random < 0x10000; random++) {
            const double got = fabs((double)bf16_widen(bf16_random(x, random)));
            assert_true(got == low || got == low + step);
            ups += got > low;
        }
        assert_true(ups == (fabs((double)x) - low) / step * 0x10000);
    }
    for (uint32_t random = 0; random < 0x10000; random += 0xff) { /* what bf16 has stays */
        assert_int_equal(bf16_random(1.5f, random), 0x3fc0);
        assert_int_equal(bf16_random(0.0f, random), 0);
        assert_int_equal(bf16_random(-INFINITY, random), 0xff80);
        assert_true(isnan(bf16_widen(bf16_random(NAN, random))));
    }
}

/* Drawn bits are uniform in both halves; halves and neighbours are independent. */
static void test_draws(void **state)
{
    (void)state;
    enum { DRAWS = 1 << 18, BUCKETS = 256 };
    const uint64_t seed = support_seed(__func__);
    for (uint64_t k = 0; k < 4; k++) {
        const uint64_t key = random_u64(seed, k);
        uint32_t low[BUCKETS] = {0}, high[BUCKETS] = {0}, both[BUCKETS] = {0}, pairs[BUCKETS] = {0};
        for (uint64_t place = 0; place < DRAWS; place++) {
            const uint32_t bits = bf16_draw(key, place + (k << 31));
            const uint32_t next = bf16_draw(key, place + 1 + (k << 31));
            low[bits >> 8 & 0xff]++;
            high[bits >> 24]++;
            both[(bits >> 12 & 0xf) << 4 | bits >> 28]++;
            pairs[(bits >> 12 & 0xf) << 4 | (next >> 12 & 0xf)]++;
        }
        const uint32_t *const tables[] = {low, high, both, pairs};
        for (int t = 0; t < 4; t++) {
            double chi = 0;
            for (int i = 0; i < BUCKETS; i++) {
                const double off = (double)tables[t][i] - (double)DRAWS / BUCKETS;
                chi += off * off / ((double)DRAWS / BUCKETS);
            }
            /* 255 degrees of freedom: mean 255, deviation 22.6; six of them either way */
            assert_true(chi > 255 - 136 && chi < 255 + 136);
        }
    }
}

/* The mean of many roundings is the number: within five deviations of a mean of coins. */
static void test_unbiased(void **state)
{
    (void)state;
    enum { DRAWS = 200000 };
    const uint64_t seed = support_seed(__func__);
    for (uint64_t i = 0; i < 20; i++) {
        const double x = (double)(float)(random_unit(seed, i) * 3 - 1.5), step = step_at(x);
        double sum = 0;
        for (uint64_t d = 0; d < DRAWS; d++) {
            const uint32_t bits = bf16_draw(random_u64(seed, 99 + i), d);
            sum += (double)bf16_widen(bf16_random((float)x, i % 2 ? bits >> 16 : bits & 0xffffu));
        }
        assert_true(fabs(sum / DRAWS - x) <= 5 * step / 2 / sqrt(DRAWS));
    }
}

/* AdamW's second moment on its way from 0.5 to 1: rounded to nearest it never leaves, at random it arrives. */
static void test_moments_stall_to_nearest(void **state)
{
    (void)state;
    enum { NUMBERS = 256, STEPS = 3000 };
    const uint64_t key = support_seed(__func__);
    bf16 nearest = bf16_nearest(0.5f), random[NUMBERS];
    double mean = 0;
    for (int i = 0; i < NUMBERS; i++) random[i] = bf16_nearest(0.5f);
    for (uint64_t step = 0; step < STEPS; step++) {
        nearest = bf16_nearest(0.999f * bf16_widen(nearest) + 0.001f);
        for (uint64_t i = 0; i < NUMBERS; i++)
            random[i] = bf16_random(0.999f * bf16_widen(random[i]) + 0.001f,
                                    bf16_draw(random_u64(key, step), i) >> 16);
    }
    for (int i = 0; i < NUMBERS; i++) mean += (double)bf16_widen(random[i]) / NUMBERS;
    assert_true(bf16_widen(nearest) == 0.5f);
    assert_true(fabs(mean - (1 - 0.5 * pow(0.999, STEPS))) < 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nearest),  cmocka_unit_test(test_random_is_exact),
        cmocka_unit_test(test_draws),    cmocka_unit_test(test_unbiased),
        cmocka_unit_test(test_moments_stall_to_nearest),
    };
    return cmocka_run_group_tests_name("base/bf16.h", tests, NULL, NULL);
}
