/* cli/common/cli_statistics.h against closed forms, published values and everything tried out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/size.h"
#include "cli/common/cli_statistics.h"
#include "tests/support/support_seed.h"

static void near_to(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance)) fail_msg("%.12g is not %.12g", value, expected);
}

/* Mean 5, sum of squares 4 + 1 + 0 + 1 + 4 = 10, sd sqrt(10 / 4), error sqrt(2.5 / 5) = 0.70711; t of 4
 * degrees at 97.5 % is 2.776445. */
static void means(void **state)
{
    (void)state;
    const double samples[] = {3, 4, 5, 6, 7};
    struct statistics_mean mean = statistics_mean(samples, ARRAY_COUNT(samples));
    near_to(mean.mean, 5, 1e-12);
    near_to(mean.half, 0.7071067812 * 2.776445105, 1e-6);
    mean = statistics_mean(samples, 1);
    near_to(mean.mean, 3, 0);
    near_to(mean.half, 0, 0);
}

static double wilcoxon(const double *differences, size_t count)
{
    double p = 0;
    struct error err = {0};
    assert_int_equal(statistics_wilcoxon(differences, count, &p, &err), STATUS_OK);
    return p;
}

/* Darwin's plants (Fisher, The Design of Experiments, 1935): differences in eighths of an inch; the two
 * negative ones have ranks 10 and 14 of 15, so W = 24, and twice P(W <= 24) is 0.04126. */
static void published(void **state)
{
    (void)state;
    const double darwin[] = {49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48};
    near_to(wilcoxon(darwin, ARRAY_COUNT(darwin)), 0.04126, 5e-6);
    const double all[] = {1.5, 2.5, 0.5, 7, 0, 0}; /* 4 that count, all above: 2 / 2^4 */
    near_to(wilcoxon(all, ARRAY_COUNT(all)), 0.125, 1e-15);
    const double none[] = {0, 0, 0};
    near_to(wilcoxon(none, ARRAY_COUNT(none)), 1, 0);
    near_to(wilcoxon(none, 0), 1, 0);
}

/* Tries all signs, with ties. Returns the share of them whose smaller sum is at most the observed one. */
static double by_trying(const double *differences, size_t count)
{
    double ranks[16], above = 0, all = 0;
    for (size_t i = 0; i < count; i++) {
        double below = 0, equal = 0;
        for (size_t j = 0; j < count; j++) {
            below += fabs(differences[j]) < fabs(differences[i]);
            equal += fabs(differences[j]) >= fabs(differences[i]) && fabs(differences[j]) <= fabs(differences[i]);
        }
        ranks[i] = below + (equal + 1) / 2;
        all += ranks[i];
        if (differences[i] > 0) above += ranks[i];
    }
    double least = fmin(above, all - above), hits = 0;
    for (uint32_t signs = 0; signs < 1u << count; signs++) {
        double sum = 0;
        for (size_t i = 0; i < count; i++) sum += signs >> i & 1 ? ranks[i] : 0;
        hits += sum <= least + 1e-9;
    }
    return fmin(1, 2 * hits / (double)(1u << count));
}

static void against_all_signs(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    for (uint32_t c = 0; c < 200; c++) {
        double differences[10];
        size_t count = 1 + random_below(seed, 100 * c, 10);
        for (size_t i = 0; i < count; i++) { /* of few values, so that many are tied; none is 0 */
            double size = 1 + (double)random_below(seed, 100 * c + 1 + i, 4);
            differences[i] = random_below(seed, 100 * c + 50 + i, 3) == 0 ? -size : size;
        }
        near_to(wilcoxon(differences, count), by_trying(differences, count), 1e-12);
    }
}

/* Past the limit of the exact test the approximation takes over, and hardly differs there. */
static void exact_meets_normal(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    double differences[STATISTICS_EXACT_MAX + 1];
    for (size_t i = 0; i <= STATISTICS_EXACT_MAX; i++)
        differences[i] = random_unit(seed, i) - 0.45 + 1e-6; /* a little more above than below */
    double exact = wilcoxon(differences, STATISTICS_EXACT_MAX);
    differences[STATISTICS_EXACT_MAX] = 1e-9; /* of the lowest rank: changes next to nothing */
    double normal = wilcoxon(differences, STATISTICS_EXACT_MAX + 1);
    near_to(normal, exact, 0.02);
}

/* Kendall's tau-b by hand: pairs of (1 2 3 4) and (1 3 2 4): 5 alike, 1 not: 4 / 6. With a tie in b,
 * (1 2 3) and (1 2 2): 2 alike of 3 and 2 that are not tied: 2 / sqrt(3 * 2). */
static void ranks(void **state)
{
    (void)state;
    double tau = 9;
    const double up[] = {1, 2, 3, 4}, swapped[] = {1, 3, 2, 4}, down[] = {4, 3, 2, 1}, tied[] = {1, 2, 2},
                 flat[] = {2, 2, 2};
    assert_true(statistics_kendall(up, swapped, 4, &tau));
    near_to(tau, 4.0 / 6, 1e-15);
    assert_true(statistics_kendall(up, down, 4, &tau));
    near_to(tau, -1, 1e-15);
    assert_true(statistics_kendall(up, tied, 3, &tau));
    near_to(tau, 2 / sqrt(6), 1e-15);
    assert_false(statistics_kendall(up, flat, 3, &tau));
    assert_false(statistics_kendall(up, up, 1, &tau));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(means),
                                       cmocka_unit_test(published),
                                       cmocka_unit_test(against_all_signs),
                                       cmocka_unit_test(exact_meets_normal),
                                       cmocka_unit_test(ranks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
