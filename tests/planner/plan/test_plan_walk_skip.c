/*
 * Repetitions left out of a walk (planner/walk/plan_walk.h; label: fast): after them a walk of a random plan tells the
 * operations that a whole walk tells later, shifted by the skipped operations, and rewound it tells everything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "planner/walk/plan_walk.h"
#include "tests/support/planner/support_random_plan.h"
#include "tests/support/support_seed.h"

enum { OPS_MAX = 4096, WAITS_MAX = 64 };

struct told {
    const struct plan_op *op;
    uint64_t number, minibatch, held_out;
    uint64_t waits[WAITS_MAX];
    uint32_t stream, device, wait_count;
};

static bool next_told(struct plan_walk *walk, struct told *out)
{
    struct plan_walk_op op;
    if (!plan_walk_next(walk, &op)) return false;
    *out = (struct told){.op = op.op, .number = op.number, .minibatch = op.minibatch, .held_out = op.held_out,
                         .stream = op.stream, .device = op.device, .wait_count = op.wait_count};
    assert_true(op.wait_count <= WAITS_MAX);
    memcpy(out->waits, op.waits, op.wait_count * sizeof *op.waits);
    return true;
}

static uint32_t tell_all(struct plan_walk *walk, struct told *all)
{
    uint32_t count = 0;
    for (; next_told(walk, &all[count]); count++) assert_true(count + 1 < OPS_MAX);
    return count;
}

/* Checks that both wait for the same operations, or for operations `shift` numbers later. */
static void same_waits(const struct told *found, const struct told *whole, uint64_t shift)
{
    assert_int_equal(found->wait_count, whole->wait_count);
    for (uint32_t i = 0; i < found->wait_count; i++) {
        uint32_t k = 0;
        while (k < whole->wait_count && whole->waits[k] != found->waits[i] &&
               whole->waits[k] != found->waits[i] + shift)
            k++;
        if (k == whole->wait_count)
            fail_msg("operation %u waits for %u", (unsigned)found->number, (unsigned)found->waits[i]);
    }
}

static void same_told(const struct told *found, const struct told *whole, uint64_t shift)
{
    assert_ptr_equal(found->op, whole->op);
    assert_int_equal(found->number + shift, whole->number);
    assert_int_equal(found->minibatch, whole->minibatch);
    assert_int_equal(found->held_out, whole->held_out);
    assert_int_equal(found->stream, whole->stream);
    assert_int_equal(found->device, whole->device);
    same_waits(found, whole, shift);
}

static uint64_t segment_operations(const struct plan *plan, const struct plan_segment *segment)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < segment->task_count; i++)
        count += plan->units[plan->tasks[segment->first_task + i].unit].op_count;
    return count;
}

/* Somewhere from the third repetition of the first segment that has enough of them. How many were left out. */
static uint32_t compare(const struct plan *plan, uint64_t key, struct told *all)
{
    struct plan_walk *walk;
    struct error err = {0};
    if (plan_walk_create(plan, NULL, &walk, &err)) fail_msg("%s", err.text);
    uint32_t count = tell_all(walk, all), at = 0, skipped = 0, after = (uint32_t)random_below(key, 0, 12);
    uint64_t shift = 0;
    struct told told;
    for (uint32_t rewound = 0; rewound < 2; rewound++) {
        plan_walk_rewind(walk);
        shift = 0;
        for (at = 0; next_told(walk, &told); at++) {
            assert_true(at + shift < count);
            same_told(&told, &all[at + shift], shift);
            struct plan_walk_place place = plan_walk_place(walk);
            const struct plan_segment *segment = &plan->segments[place.segment];
            uint32_t left = segment->repeat_count - place.repeat;
            if (rewound || shift > 0 || place.repeat < 2 || left < 2 || after-- > 0) continue;
            skipped = 1 + (uint32_t)random_below(key, 1, left - 1);
            shift = skipped * segment_operations(plan, segment);
            plan_walk_skip(walk, skipped);
        }
        assert_int_equal(at + shift, count);
    }
    plan_walk_destroy(walk);
    return skipped;
}

static void as_a_whole_walk_has_it(void **state)
{
    (void)state;
    uint64_t seed = support_seed("walks with repetitions left out");
    struct told *all = malloc(OPS_MAX * sizeof *all);
    uint32_t skipped = 0;
    assert_non_null(all);
    for (uint32_t round = 0; round < 300; round++) {
        const struct random_plan_shape shape = {
            .key = random_mix(seed) + round, .tasks = 1 + round / 8, .repeats = 4 + round % 9};
        struct plan plan = {0};
        random_plan(&shape, &plan);
        skipped += compare(&plan, random_u64(seed, round), all) > 0;
        plan_release(&plan);
    }
    free(all);
    assert_true(skipped > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_a_whole_walk_has_it)};
    return cmocka_run_group_tests_name("planner/walk/plan_walk.h: skip", tests, NULL, NULL);
}
