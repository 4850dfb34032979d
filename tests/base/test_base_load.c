/* base/process/load.h: shares of the processors' time from two readings of the counters; and cli/process/cli_load.h
 * on top of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/process/clock.h"
#include "base/process/load.h"
#include "cli/process/cli_load.h"

static void assert_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-12) fail_msg("%.17g (expected %.17g)", value, expected);
}

/* Two processors for 4 s: 8 s of time. 5 s of it were worked, 3.5 s of these by this process; 0.6 s were stolen. */
static const struct load_mark from = {true, 10, 100, 40, 1.5, 7, 2.25};
static const struct load_mark to = {true, 14, 108, 45, 2.1, 10.5, 3.05};

static void test_shares(void **state)
{
    (void)state;
    const struct load load = load_between(&from, &to);
    assert_near(load.others, (5 - 3.5) / 8);
    assert_near(load.stolen, 0.6 / 8);
    assert_near(load.waited, 0.8 / 4);
    assert_near(load_taken(&load), 1.5 / 8 + 0.6 / 8);
}

/* Ticks of 10 ms can show less total work than this process has done; waiting of ended threads is lost. */
static void test_never_negative(void **state)
{
    (void)state;
    struct load_mark end = to;
    end.busy_s = from.busy_s + 3.4;
    end.waited_s = from.waited_s - 1;
    const struct load load = load_between(&from, &end);
    assert_near(load.others, 0);
    assert_near(load.waited, 0);
}

static void test_unknown(void **state)
{
    (void)state;
    struct load_mark end = to;
    end.known = false;
    struct load load = load_between(&from, &end);
    assert_near(load.others + load.stolen + load.waited, 0);
    load = load_between(&from, &from); /* no time passed */
    assert_near(load.others + load.stolen + load.waited, 0);
}

static void test_now(void **state)
{
    (void)state;
    const struct load_mark a = load_now();
    const double end_s = clock_s() + 0.05;
    while (clock_s() < end_s)
        ;
    const struct load_mark b = load_now();
    assert_true(b.wall_s >= a.wall_s + 0.05 && b.own_s >= a.own_s && b.waited_s >= a.waited_s);
    if (!a.known) skip();
    assert_true(b.all_s >= a.all_s && b.busy_s >= a.busy_s && b.stolen_s >= a.stolen_s);
}

static void test_slower_by_it(void **state)
{
    (void)state;
    double slowed_s = 7;
    /* a quarter of the processors taken: three quarters are left for 60 s of work */
    assert_true(cli_load_slows(0.25, 90, 60, &slowed_s));
    assert_near(slowed_s, 80);
    assert_false(cli_load_slows(0.04, 90, 60, &slowed_s)); /* as little as any idle machine */
    assert_false(cli_load_slows(0.25, 1.9, 1.5, &slowed_s)); /* too short to tell */
    assert_true(cli_load_slows(1, 90, 60, &slowed_s) && isfinite(slowed_s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),  cmocka_unit_test(test_never_negative), cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_now),     cmocka_unit_test(test_slower_by_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
