/*
 * sim/engine/queue.h against a sorted array, by random operations: whatever the queue says comes first is
 * what a linear search over all entries finds.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/size.h"
#include "sim/engine/queue.h"
#include "tests/support/sim/support_sim.h"
#include "tests/support/support_seed.h"

enum { OWNERS = 97 };

struct model {
    bool present[OWNERS];
    struct sim_event events[OWNERS];
};

static bool model_first(const struct model *model, struct sim_event *out)
{
    const struct sim_event *first = NULL;
    for (uint32_t i = 0; i < OWNERS; i++) {
        const struct sim_event *event = &model->events[i];
        if (!model->present[i]) continue;
        if (!first || event->time_s < first->time_s ||
            (!(event->time_s > first->time_s) && event->order < first->order))
            first = event;
    }
    if (!first) return false;
    *out = *first;
    return true;
}

static void assert_same_first(struct sim_queue *queue, const struct model *model)
{
    struct sim_event expected, found;
    bool some = model_first(model, &expected);
    assert_int_equal(sim_queue_first(queue, &found), some);
    if (!some) return;
    assert_int_equal(found.owner, expected.owner);
    assert_int_equal(found.order, expected.order);
    assert_true(found.time_s >= expected.time_s && found.time_s <= expected.time_s);
}

/* Times are drawn from few values, so that ties are the rule. */
static void random_operations(uint64_t key, uint32_t owners)
{
    struct sim_test_random random = {.key = key};
    struct arena arena = {0};
    struct error err = {0};
    struct sim_queue *queue;
    struct model model;
    memset(&model, 0, sizeof model);
    assert_int_equal(sim_queue_create(&arena, owners, &queue, &err), STATUS_OK);

    double now_s = 0;
    uint64_t number = 0;
    for (int step = 0; step < 3000; step++) {
        uint32_t what = sim_test_below(&random, 10);
        uint32_t owner = sim_test_below(&random, owners);
        if (what < 6) {
            struct sim_event event = {.time_s = now_s + 0.25 * sim_test_below(&random, 20),
                                      .order = sim_order(sim_test_below(&random, 3), number++),
                                      .owner = owner};
            model.present[owner] = true;
            model.events[owner] = event;
            sim_queue_set(queue, owner, event.time_s, event.order);
        } else if (what < 7) {
            model.present[owner] = false;
            sim_queue_remove(queue, owner);
        } else if (what < 9) {
            struct sim_event popped, expected;
            bool some = model_first(&model, &expected);
            assert_int_equal(sim_queue_pop(queue, &popped), some);
            if (some) {
                assert_int_equal(popped.owner, expected.owner);
                assert_true(popped.time_s >= now_s);
                now_s = popped.time_s;
                model.present[popped.owner] = false;
            }
        } else if (step % 7 == 0) {
            double shift = 0.25 * sim_test_below(&random, 30);
            sim_queue_shift(queue, shift);
            for (uint32_t i = 0; i < owners; i++) model.events[i].time_s -= shift;
            now_s -= shift;
        }
        if (step % 2 > 0) continue; /* a query applies the noted events, and pop must do so, too */
        assert_same_first(queue, &model);
    }
    arena_release(&arena);
}

static void test_against_a_sorted_array(void **state)
{
    (void)state;
    uint64_t seed = support_seed("sim/engine/queue.h");
    static const uint32_t owners[] = {1, 2, 15, 16, 17, 40, OWNERS}; /* less than a block, one, several */
    for (uint64_t round = 0; round < 42; round++)
        random_operations(random_mix(seed) + round, owners[round % ARRAY_COUNT(owners)]);
}

/* Equal times: ends (kind 0) before latencies (kind 1), then the smaller number. */
static void test_ties_go_by_kind_and_number(void **state)
{
    (void)state;
    static const struct {
        uint32_t kind;
        uint64_t number;
    } entries[] = {{1, 3}, {0, 9}, {1, 2}, {0, 7}, {2, 1}};
    static const uint32_t expected[] = {3, 1, 2, 0, 4};
    struct arena arena = {0};
    struct error err = {0};
    struct sim_queue *queue;
    assert_int_equal(sim_queue_create(&arena, 5, &queue, &err), STATUS_OK);
    for (uint32_t i = 0; i < ARRAY_COUNT(entries); i++)
        sim_queue_set(queue, i, 2.385, sim_order(entries[i].kind, entries[i].number));
    for (uint32_t i = 0; i < ARRAY_COUNT(expected); i++) {
        struct sim_event event;
        assert_true(sim_queue_pop(queue, &event));
        assert_int_equal(event.owner, expected[i]);
    }
    struct sim_event none;
    assert_false(sim_queue_pop(queue, &none));
    arena_release(&arena);
}

/* 1e17 swallows a difference of 1: after the shift 0.0 and 0.5 - both became 0 - go by order. */
static void test_shift_that_makes_times_equal(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    struct sim_queue *queue;
    assert_int_equal(sim_queue_create(&arena, 2, &queue, &err), STATUS_OK);
    sim_queue_set(queue, 0, 0.0, sim_order(0, 5));
    sim_queue_set(queue, 1, 0.5, sim_order(0, 4));
    sim_queue_shift(queue, 1e17);
    struct sim_event event;
    assert_true(sim_queue_pop(queue, &event));
    assert_int_equal(event.owner, 1);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_a_sorted_array),
        cmocka_unit_test(test_ties_go_by_kind_and_number),
        cmocka_unit_test(test_shift_that_makes_times_equal),
    };
    return cmocka_run_group_tests_name("sim/engine/queue.h", tests, NULL, NULL);
}
