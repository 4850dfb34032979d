/* label: fast
 * Limits of searches: steps, time, and the wish of another thread (base/process/anytime.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/process/anytime.h"

static void steps_are_counted_up_to_their_limit(void **state)
{
    (void)state;
    struct anytime a = {.until_s = HUGE_VAL, .steps_max = 5, .clock_every = 2};
    uint32_t made = 0;
    while (anytime_step(&a)) made++;
    assert_int_equal(made, 5);
    assert_int_equal(a.steps, 5);
    assert_true(a.over);
    assert_false(anytime_step(&a));
    assert_int_equal(a.steps, 5);
}

/* The clock is read at the first step, and then once in a while only. */
static void a_time_in_the_past_ends_a_search(void **state)
{
    (void)state;
    struct anytime a = {.until_s = HUGE_VAL, .clock_every = 4};
    for (uint32_t i = 0; i < 3; i++) assert_true(anytime_step(&a));
    a.until_s = clock_s() - 1;
    assert_true(anytime_step(&a)); /* the fourth */
    assert_false(anytime_step(&a));
    assert_int_equal(a.steps, 4);
    struct anytime late = {.until_s = clock_s() - 1, .clock_every = 1024};
    assert_false(anytime_step(&late));
    assert_int_equal(late.steps, 0);
}

static void a_wish_or_a_find_ends_a_search(void **state)
{
    (void)state;
    atomic_bool stop = false;
    struct anytime a = {.until_s = HUGE_VAL, .clock_every = 1, .stop = &stop};
    assert_true(anytime_step(&a));
    atomic_store(&stop, true);
    assert_false(anytime_step(&a));
    struct anytime found = {.until_s = HUGE_VAL, .clock_every = 1};
    assert_true(anytime_step(&found));
    found.over = true;
    assert_false(anytime_step(&found));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_counted_up_to_their_limit),
        cmocka_unit_test(a_time_in_the_past_ends_a_search),
        cmocka_unit_test(a_wish_or_a_find_ends_a_search),
    };
    return cmocka_run_group_tests_name("anytime", tests, NULL, NULL);
}
