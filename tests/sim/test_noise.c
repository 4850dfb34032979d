/*
 * sim/uncertainty: the middle half of drawn figures is as wide as their spread says, equal figures move together, and
 * quantiles of what comes next hold as often as they claim.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "sim/uncertainty/machine_draw.h"
#include "sim/uncertainty/quantiles.h"
#include "tests/support/support_seed.h"

static void factors_are_centred(void **state)
{
    (void)state;
    assert_true(fabs(machine_draw_factor(0.2, 0.5) - 1) < 1e-12);
    assert_true(fabs(log(machine_draw_factor(0.2, 0.75)) - 0.2) < 1e-9); /* by definition of a spread */
    assert_true(fabs(log(machine_draw_factor(0.2, 0.25)) + 0.2) < 1e-9);
    assert_true(machine_draw_factor(0, 0.9) == 1);
}

enum { DRAWS = 2000 };

/* Checks that the number below, out of n samples of a share q, is within 5 standard deviations of n q. */
static void assert_share(uint64_t below, uint64_t count, double share)
{
    double deviation = sqrt((double)count * share * (1 - share));
    assert_true(fabs((double)below - (double)count * share) < 5 * deviation + 1);
}

static void drawn_figures_have_their_spread(void **state)
{
    (void)state;
    struct hardware machine = {0};
    struct error err = {0};
    uint64_t seed = support_seed("noise"), within = 0, below = 0, both = 0;
    assert_int_equal(hardware_find("4x a100-sxm4-80gb", &machine, &err), STATUS_OK);
    assert_true(machine_has_spread(&machine));
    struct sourced_value *efficiency = &machine.types[0].memory_efficiency, *link = &machine.links[0].bandwidth;
    efficiency->spread = 0.02; /* so small that it is never cut at 1 */
    link->spread = 0.1;
    for (uint64_t n = 0; n < DRAWS; n++) {
        struct hardware drawn = {0};
        assert_int_equal(machine_draw(&machine, seed, n, &drawn, &err), STATUS_OK);
        double moved = log(drawn.types[0].memory_efficiency.value / efficiency->value);
        double moved_link = log(drawn.links[0].bandwidth.value / link->value);
        within += fabs(moved) < 0.02;
        below += moved < 0;
        both += (moved < 0) == (moved_link < 0);
        for (uint32_t l = 1; l < machine.link_count; l++) { /* equal links stay equal */
            const struct sourced_value *other = &machine.links[l].bandwidth, *first = &machine.links[1].bandwidth;
            if (other->value == first->value && strcmp(other->source, first->source) == 0 &&
                other->spread == first->spread)
                assert_true(drawn.links[l].bandwidth.value == drawn.links[1].bandwidth.value);
        }
        assert_true(drawn.types[0].matmul_efficiency.value <= 1);
        assert_true(drawn.types[0].peak_fp32.value == machine.types[0].peak_fp32.value);
        hardware_release(&drawn);
    }
    assert_share(within, DRAWS, 0.5);
    assert_share(below, DRAWS, 0.5);
    assert_share(both, DRAWS, 0.5); /* different figures have errors of their own */
    hardware_release(&machine);
}

/* Whatever a device type is called: kernel classes and directions of copies, all of one spread, have errors of their
 * own. */
static void measurements_have_errors_of_their_own(void **state)
{
    (void)state;
    const struct rate_point point = {.m = 64, .n = 64, .k = 64, .seconds = 1e-3, .spread = 0.05};
    const struct copy_point copy = {.bytes = 1 << 20, .seconds = 1e-3, .spread = 0.05};
    struct compute_profile profile = {.threads = 1};
    for (uint32_t k = 0; k < KERNEL_COUNT; k++)
        profile.kernels[k] = (struct kernel_rate){.points = &point, .point_count = 1};
    for (char name[] = "a"; *name <= 'h'; ++*name) {
        struct device_type type = {.name = name, .profiles = &profile, .profile_count = 1, .h2d = &copy, .h2d_count = 1,
                                   .d2h = &copy, .d2h_count = 1, .p2p = &copy, .p2p_count = 1, .ring = &copy,
                                   .ring_count = 1};
        const struct hardware machine = {.types = &type, .type_count = 1};
        struct hardware drawn = {0};
        struct error err = {0};
        assert_int_equal(machine_draw(&machine, 7, 3, &drawn, &err), STATUS_OK);
        double seconds[KERNEL_COUNT + 4] = {drawn.types[0].h2d[0].seconds, drawn.types[0].d2h[0].seconds,
                                            drawn.types[0].p2p[0].seconds, drawn.types[0].ring[0].seconds};
        for (uint32_t k = 0; k < KERNEL_COUNT; k++)
            seconds[4 + k] = drawn.types[0].profiles[0].kernels[k].points[0].seconds;
        for (uint32_t i = 0; i < KERNEL_COUNT + 4; i++)
            for (uint32_t j = 0; j < i; j++) assert_true(seconds[i] != seconds[j]);
        hardware_release(&drawn);
    }
}

/* Measurements of a moment share one factor, of the spread's size: kernels and copies become slower by it. */
static void moments_move_all_alike(void **state)
{
    (void)state;
    const struct rate_point point = {.m = 64, .n = 64, .k = 64, .seconds = 2e-3};
    const struct copy_point copy = {.bytes = 1 << 20, .seconds = 5e-3};
    struct compute_profile profile = {.threads = 1};
    for (uint32_t k = 0; k < KERNEL_COUNT; k++)
        profile.kernels[k] = (struct kernel_rate){.points = &point, .point_count = 1};
    struct device_type type = {.name = "a", .profiles = &profile, .profile_count = 1, .h2d = &copy, .h2d_count = 1,
                               .d2h = &copy, .d2h_count = 1};
    const struct hardware machine = {.types = &type, .type_count = 1};
    assert_false(machine_has_spread(&machine));
    type.speed = (struct sourced_value){.value = 1, .spread = 0.2};
    assert_true(machine_has_spread(&machine));
    uint64_t seed = support_seed("moments"), within = 0;
    for (uint64_t n = 0; n < DRAWS; n++) {
        struct hardware drawn = {0};
        struct error err = {0};
        assert_int_equal(machine_draw(&machine, seed, n, &drawn, &err), STATUS_OK);
        double factor = drawn.types[0].h2d[0].seconds / copy.seconds;
        within += fabs(log(factor)) < 0.2;
        assert_true(fabs(drawn.types[0].d2h[0].seconds / copy.seconds - factor) < 1e-12);
        for (uint32_t k = 0; k < KERNEL_COUNT; k++)
            assert_true(fabs(drawn.types[0].profiles[0].kernels[k].points[0].seconds / point.seconds - factor) < 1e-12);
        hardware_release(&drawn);
    }
    assert_share(within, DRAWS, 0.5);
}

static void equal_seeds_draw_equal_machines(void **state)
{
    (void)state;
    struct hardware machine = {0}, one = {0}, two = {0}, other = {0};
    struct error err = {0};
    assert_int_equal(hardware_find("rtx-3090-24gb", &machine, &err), STATUS_OK);
    assert_int_equal(machine_draw(&machine, 7, 3, &one, &err), STATUS_OK);
    assert_int_equal(machine_draw(&machine, 7, 3, &two, &err), STATUS_OK);
    assert_int_equal(machine_draw(&machine, 7, 4, &other, &err), STATUS_OK);
    assert_true(one.types[0].matmul_efficiency.value == two.types[0].matmul_efficiency.value);
    assert_true(one.types[0].matmul_efficiency.value != other.types[0].matmul_efficiency.value);
    hardware_release(&one);
    hardware_release(&two);
    hardware_release(&other);
    hardware_release(&machine);
}

static void quantiles_are_where_they_say(void **state)
{
    (void)state;
    double samples[] = {5, 1, 3, 2, 4};
    struct quantiles q = quantiles_of(samples, 5);
    assert_true(fabs(q.low - 1.2) < 1e-12 && q.median == 3 && fabs(q.high - 4.8) < 1e-12);
    double one = 7;
    q = quantiles_of_next(&one, 1);
    assert_true(q.low == 7 && q.median == 7 && q.high == 7);
}

/* After n samples, one more sample of the same kind is inside with at least 90 % (and less than 1 / n above that). */
static void what_comes_next_is_inside(void **state)
{
    (void)state;
    uint64_t seed = support_seed("noise"), inside = 0;
    enum { ROUNDS = 4000, COUNT = 59 };
    for (uint64_t round = 0; round < ROUNDS; round++) {
        double samples[COUNT], more = random_exponential(seed, round * 100 + 99);
        for (uint64_t i = 0; i < COUNT; i++) samples[i] = random_exponential(seed, round * 100 + i);
        struct quantiles q = quantiles_of_next(samples, COUNT);
        inside += more >= q.low && more <= q.high;
    }
    /* ranks 3 and 57 of 59: the next one falls between with 54 / 60 */
    assert_share(inside, ROUNDS, 54.0 / 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_are_centred),
        cmocka_unit_test(drawn_figures_have_their_spread),
        cmocka_unit_test(measurements_have_errors_of_their_own),
        cmocka_unit_test(moments_move_all_alike),
        cmocka_unit_test(equal_seeds_draw_equal_machines),
        cmocka_unit_test(quantiles_are_where_they_say),
        cmocka_unit_test(what_comes_next_is_inside),
    };
    return cmocka_run_group_tests_name("noise", tests, NULL, NULL);
}
