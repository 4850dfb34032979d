/* exec/state/run_changes.h: changes in the order of time, whether or not they fit into memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/size.h"
#include "exec/state/run_changes.h"
#include "tests/support/support_seed.h"

enum { COUNT_MAX = 3000 };

/* Few different times, so that many are equal. */
static struct run_change change_of(uint64_t key, uint64_t i)
{
    int64_t bytes = 1 + (int64_t)random_below(key, 3 * i + 1, 9);
    return (struct run_change){.time_s = (double)(i / 10 + random_below(key, 3 * i, 40)) / 8,
                               .order = i,
                               .bytes = random_below(key, 3 * i + 2, 2) ? bytes : -bytes,
                               .place = (uint32_t)(i % 5)};
}

static bool comes_before(const struct run_change *a, const struct run_change *b)
{
    if (a->time_s != b->time_s) return a->time_s < b->time_s;
    if ((a->bytes < 0) != (b->bytes < 0)) return a->bytes < 0;
    return a->order < b->order;
}

static void any_capacity_gives_the_order_of_time(void **state)
{
    (void)state;
    static const size_t capacities[] = {1, 2, 7, 100, COUNT_MAX, 2 * COUNT_MAX};
    uint64_t seed = support_seed("exec/state/run_changes.h");
    for (uint64_t round = 0; round < 6 * ARRAY_COUNT(capacities); round++) {
        uint64_t key = random_mix(seed) + round, count = random_below(key, 99, COUNT_MAX);
        size_t capacity = capacities[round % ARRAY_COUNT(capacities)];
        if (capacity * capacity < count) count = capacity * capacity; /* each run needs a part of the buffer */
        struct error err = {0};
        struct run_changes *changes;
        struct run_change last = {.time_s = -1}, next;
        bool more = true, seen[COUNT_MAX] = {false};
        if (run_changes_create(capacity, &changes, &err)) fail_msg("%s", err.text);
        for (uint64_t i = 0; i < count; i++) {
            struct run_change change = change_of(key, i);
            run_changes_add(changes, change.time_s, change.place, change.bytes);
        }
        for (uint64_t i = 0; i <= count; i++) {
            if (run_changes_next(changes, &next, &more, &err)) fail_msg("%s", err.text);
            assert_int_equal(more, i < count);
            if (!more) break;
            struct run_change as_added = change_of(key, next.order);
            assert_true(comes_before(&last, &next) && !seen[next.order]);
            assert_true(next.time_s == as_added.time_s && next.bytes == as_added.bytes && next.place == as_added.place);
            seen[next.order] = true;
            last = next;
        }
        run_changes_destroy(changes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_capacity_gives_the_order_of_time),
    };
    return cmocka_run_group_tests_name("exec/state/run_changes.h", tests, NULL, NULL);
}
