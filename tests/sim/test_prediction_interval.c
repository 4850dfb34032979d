/*
 * sim/uncertainty/prediction_interval.h: intervals hold nine of ten runs, of machines that are steady, drift, jump and
 * stall at times; they are narrower where the future can be predicted; and their causes show in them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <gsl/gsl_cdf.h>
#include <math.h>

#include "base/random.h"
#include "sim/uncertainty/prediction_interval.h"
#include "tests/support/support_seed.h"

enum { RUNS = 84, BEFORE = 24, SERIES = 20, KINDS = 6 };

static const char *const kinds[KINDS] = {"a", "b", "c", "d", "e", "f"};

static struct quantiles next(const struct prediction_run *runs, size_t count, const char *kind)
{
    struct arena arena = {0};
    struct error err = {0};
    struct quantiles q;
    if (prediction_interval_next(runs, count, kind, &arena, &q, &err) != STATUS_OK) fail_msg("%s", err.text);
    arena_release(&arena);
    assert_true(q.low > 0 && q.low <= q.median && q.median <= q.high);
    return q;
}

/* --- machines ---------------------------------------------------------------------------------- */

static double normal(uint64_t key, uint64_t of)
{
    return gsl_cdf_ugaussian_Pinv(((double)(random_u64(key, of) >> 11) + 0.5) * 0x1p-53);
}

static double uniform(uint64_t key, uint64_t of)
{
    return ((double)(random_u64(key, of) >> 11) + 0.5) * 0x1p-53;
}

enum machine { STEADY, DRIFTING, JUMPING, STALLING, MACHINES };

static void run_on(enum machine machine, uint64_t key, struct prediction_run runs[RUNS])
{
    double level = 0.1, spread = 0.05, offsets[KINDS];
    uint64_t jump = 30 + random_below(key, 7, 40);
    for (uint64_t k = 0; k < KINDS; k++) offsets[k] = 0.05 * normal(key, 100 + k);
    for (uint64_t i = 0; i < RUNS; i++) {
        uint64_t kind = random_below(key, 1000 + i, KINDS);
        double off = spread * normal(key, 2000 + i);
        if (machine == DRIFTING) level += 0.04 * normal(key, 3000 + i);
        if (machine == JUMPING && i == jump) level += 0.1, spread = 0.15;
        if (machine == STALLING && uniform(key, 4000 + i) < 0.15) off -= 0.3 * log(uniform(key, 5000 + i));
        runs[i] = (struct prediction_run){kinds[kind], exp(level + offsets[kind] + off)};
    }
}

static void intervals_hold_nine_of_ten(void **state)
{
    (void)state;
    uint64_t seed = support_seed("drift");
    for (uint32_t m = 0; m < MACHINES; m++) {
        uint32_t held = 0, count = 0;
        for (uint64_t s = 0; s < SERIES; s++) {
            struct prediction_run runs[RUNS];
            run_on(m, random_u64(seed, 10 * s + m), runs);
            for (size_t i = BEFORE; i < RUNS; i++, count++) {
                struct quantiles q = next(runs, i, runs[i].kind);
                held += q.low <= runs[i].ratio && runs[i].ratio <= q.high;
            }
        }
        double share = (double)held / count;
        print_message("machine %u: %.1f %% of %u\n", m, 100 * share, count);
        assert_true(share > (m == JUMPING ? 0.83 : 0.87) && share < 0.96);
    }
}

/* A machine drifts far: the interval of all runs together is wide and out of date. */
static void what_drifts_is_followed(void **state)
{
    (void)state;
    struct prediction_run runs[60];
    double samples[60];
    for (size_t i = 0; i < 60; i++) {
        double trend = 1 + 0.02 * (double)i;
        samples[i] = runs[i].ratio = trend * (i % 2 ? 1.01 : 0.99);
        runs[i].kind = NULL;
    }
    struct quantiles q = next(runs, 60, NULL), all = quantiles_of_next(samples, 60);
    assert_true(q.low < 2.2 && 2.2 < q.high);
    assert_true(q.high / q.low < 0.65 * all.high / all.low);
}

/* Runs of two kinds, each always the same: each is foretold as itself, and a third one in between. */
static void kinds_are_told_apart(void **state)
{
    (void)state;
    struct prediction_run runs[80];
    for (size_t i = 0; i < 80; i++) runs[i] = (struct prediction_run){kinds[i % 2], i % 2 ? 1.5 : 1.0};
    struct quantiles a = next(runs, 80, "a"), b = next(runs, 80, "b"), other = next(runs, 80, "z"),
        none = next(runs, 80, NULL);
    assert_true(a.low <= 1.0 && 1.0 <= a.high && a.high < 1.3);
    assert_true(b.low <= 1.5 && 1.5 <= b.high && b.low > 1.2);
    assert_true(a.median < other.median && other.median < b.median);
    assert_true(other.median <= none.median && none.median <= other.median);
}

/* A run that was always twice as slow is predicted twice as slow; runs with one ratio keep it. */
static void factors_carry_over(void **state)
{
    (void)state;
    struct prediction_run runs[RUNS], twice[RUNS], same[RUNS];
    run_on(DRIFTING, random_u64(support_seed("factors"), 1), runs);
    for (size_t i = 0; i < RUNS; i++) {
        twice[i] = (struct prediction_run){runs[i].kind, 2 * runs[i].ratio};
        same[i] = (struct prediction_run){NULL, 1.25};
    }
    for (size_t count = PREDICTION_RUNS_MIN; count <= RUNS; count += 13) {
        struct quantiles one = next(runs, count, "a"), two = next(twice, count, "a"), still = next(same, count, NULL);
        assert_true(fabs(two.low / one.low - 2) < 1e-9 && fabs(two.median / one.median - 2) < 1e-9 &&
                    fabs(two.high / one.high - 2) < 1e-9);
        assert_true(fabs(still.low - 1.25) < 1e-12 && fabs(still.high - 1.25) < 1e-12);
    }
}

/* Equal scores in another order: if the last ones were outside, the interval is wider. */
static void what_fell_outside_widens(void **state)
{
    (void)state;
    struct prediction_run calm[60], late[60];
    for (size_t i = 0; i < 60; i++) {
        double ratio = 1 + 0.01 * (double)(i * 7 % 5);
        calm[i] = late[i] = (struct prediction_run){NULL, ratio};
    }
    for (size_t i = 50; i < 60; i++) late[i].ratio *= i % 2 ? 1.4 : 0.8;
    struct quantiles a = next(calm, 60, NULL), b = next(late, 60, NULL);
    assert_true(b.high / b.low > 1.5 * a.high / a.low);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_hold_nine_of_ten), cmocka_unit_test(what_drifts_is_followed),
        cmocka_unit_test(kinds_are_told_apart),       cmocka_unit_test(factors_carry_over),
        cmocka_unit_test(what_fell_outside_widens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
