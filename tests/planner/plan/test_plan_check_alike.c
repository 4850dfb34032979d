/*
 * Units that plan_check() does not look at each by itself since they are like one that it has looked at (label: fast):
 * whatever is changed in one of them, it says the same as if it looked at each. For that the test puts a
 * check_is_alike() in place of the library's that can be switched off. Units that differ in one field are not alike.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "planner/check/plan_check.h"
#include "tests/support/planner/support_random_family.h"
#include "tests/support/support_seed.h"

#define check_is_alike is_alike
#include "planner/check/plan_check_alike.c"
#undef check_is_alike

static bool each_by_itself;

bool check_is_alike(const struct plan *plan, const struct plan_unit *unit, const struct plan_unit *known);
bool check_is_alike(const struct plan *plan, const struct plan_unit *unit, const struct plan_unit *known)
{
    return !each_by_itself && is_alike(plan, unit, known);
}

enum { PLANS = 60, DAMAGES = 12 };

/* Damages an operation of a unit; false: the operation has nothing to damage in this way. */
struct damage {
    const char *name;
    bool (*make)(struct plan *plan, struct plan_unit *unit, struct plan_op *op, uint64_t key);
};

static struct plan_access *access_of(struct plan *plan, const struct plan_op *op, uint64_t key)
{
    return &plan->accesses[op->first_access + random_below(key, 50, op->access_count)];
}

static bool more_bytes(struct plan *plan, struct plan_unit *unit, struct plan_op *op, uint64_t key)
{
    (void)plan, (void)unit, (void)key;
    op->bytes += 64;
    return op->kind != OP_COMPUTE;
}

static bool other_work(struct plan *plan, struct plan_unit *unit, struct plan_op *op, uint64_t key)
{
    (void)unit, (void)key;
    if (op->kind != OP_COMPUTE || op->work == PLAN_NONE || plan->work_count < 2) return false;
    op->work = (op->work + 1) % plan->work_count;
    return true;
}

static bool other_flags(struct plan *plan, struct plan_unit *unit, struct plan_op *op, uint64_t key)
{
    (void)unit;
    access_of(plan, op, key)->flags ^= ACCESS_READ;
    return true;
}

static bool an_offset(struct plan *plan, struct plan_unit *unit, struct plan_op *op, uint64_t key)
{
    (void)unit;
    access_of(plan, op, key)->offset_bytes += 64;
    return true;
}

static bool other_buffer(struct plan *plan, struct plan_unit *unit, struct plan_op *op, uint64_t key)
{
    struct plan_access *access = access_of(plan, op, key);
    (void)unit;
    access->buffer = (uint32_t)random_below(key, 51, plan->buffer_count);
    return true;
}

static bool one_buffer_twice(struct plan *plan, struct plan_unit *unit, struct plan_op *op, uint64_t key)
{
    struct plan_access *first = &plan->accesses[op->first_access];
    (void)unit, (void)key;
    if (op->access_count < 2 || op->stream == STREAM_P2P) return false;
    first[1].buffer = first[0].buffer;
    return true;
}

static bool a_buffer_that_is_not(struct plan *plan, struct plan_unit *unit, struct plan_op *op, uint64_t key)
{
    (void)unit;
    access_of(plan, op, key)->buffer = plan->buffer_count + 3;
    return true;
}

static bool other_stream(struct plan *plan, struct plan_unit *unit, struct plan_op *op, uint64_t key)
{
    (void)plan, (void)unit, (void)key;
    op->stream = op->stream == STREAM_COMPUTE ? STREAM_D2H : STREAM_COMPUTE;
    return op->kind != OP_COLLECTIVE; /* these may run on several */
}

static bool more_rounds(struct plan *plan, struct plan_unit *unit, struct plan_op *op, uint64_t key)
{
    (void)plan, (void)unit, (void)key;
    op->rounds++;
    return op->kind == OP_COLLECTIVE;
}

static bool other_axis(struct plan *plan, struct plan_unit *unit, struct plan_op *op, uint64_t key)
{
    (void)plan, (void)unit, (void)key;
    op->axes ^= 1u << AXIS_TENSOR | 1u << AXIS_DATA;
    return op->kind == OP_COLLECTIVE;
}

static bool a_range_of_rows(struct plan *plan, struct plan_unit *unit, struct plan_op *op, uint64_t key)
{
    (void)plan, (void)unit, (void)key;
    op->row_count = 7;
    return op->kind == OP_COMPUTE;
}

static bool other_count_of_acquires(struct plan *plan, struct plan_unit *unit, struct plan_op *op, uint64_t key)
{
    (void)plan, (void)op, (void)key;
    unit->acquire_count++;
    return true;
}

static const struct damage damages[DAMAGES] = {
    {"more bytes", more_bytes},
    {"other work", other_work},
    {"other flags", other_flags},
    {"an offset", an_offset},
    {"other buffer", other_buffer},
    {"one buffer twice", one_buffer_twice},
    {"a buffer that is not", a_buffer_that_is_not},
    {"other stream", other_stream},
    {"more rounds", more_rounds},
    {"other axis", other_axis},
    {"a range of rows", a_range_of_rows},
    {"other count of acquires", other_count_of_acquires},
};

/* Finds a unit like an earlier one, starting from a random one; false: there is none. */
static bool find_alike(const struct plan *plan, uint64_t key, uint32_t *out)
{
    uint32_t begin = (uint32_t)random_below(key, 1, plan->unit_count);
    for (uint32_t i = 0; i < plan->unit_count; i++) {
        uint32_t u = (begin + i) % plan->unit_count;
        for (uint32_t before = 0; before < u; before++)
            if (is_alike(plan, &plan->units[u], &plan->units[before])) {
                *out = u;
                return true;
            }
    }
    return false;
}

/* Checks that both verdicts are equal. Returns true if the plan is wrong. */
static bool same_verdict(const struct plan *plan, const struct damage *damage, uint64_t key)
{
    struct error alike = {0}, each = {0};
    each_by_itself = false;
    enum status status = plan_check(plan, &alike);
    each_by_itself = true;
    if (plan_check(plan, &each) != status || strcmp(alike.text, each.text) != 0)
        fail_msg("%s (key %" PRIu64 "): '%s', and each by itself: '%s'", damage->name, key, alike.text, each.text);
    return status == STATUS_CHECK;
}

/* Damages one such unit, looks at the complaint, and mends it. */
static bool damage_one(struct plan *plan, uint32_t u, const struct damage *damage, uint64_t key)
{
    struct plan_unit *unit = &plan->units[u], old_unit = *unit;
    struct plan_op *op = &plan->ops[unit->first_op + random_below(key, 2, unit->op_count)], old_op = *op;
    struct plan_access old[CHECK_ACCESSES_MAX];
    assert_in_range(op->access_count, 1, CHECK_ACCESSES_MAX);
    memcpy(old, plan->accesses + op->first_access, op->access_count * sizeof *old);
    bool found = damage->make(plan, unit, op, key) && same_verdict(plan, damage, key);
    *unit = old_unit;
    *op = old_op;
    memcpy(plan->accesses + op->first_access, old, op->access_count * sizeof *old);
    return found;
}

static void whatever_is_changed(void **state)
{
    static const enum random_family families[] = {RANDOM_PIPELINED, RANDOM_TENSOR, RANDOM_TENSOR};
    uint64_t seed = support_seed("units alike");
    uint32_t plans = 0, found[DAMAGES] = {0};
    (void)state;
    for (uint32_t round = 0; round < PLANS; round++) {
        struct plan plan;
        struct error err = {0};
        uint32_t u;
        uint64_t key = random_u64(seed, round);
        if (!random_family_plan(families[round % 3], key, &plan)) continue;
        if (find_alike(&plan, key, &u)) {
            plans++;
            for (uint32_t d = 0; d < DAMAGES; d++)
                for (uint32_t n = 0; n < 3; n++)
                    found[d] += damage_one(&plan, u, &damages[d], random_u64(key, 100 + 3 * d + n));
            each_by_itself = false;
            if (plan_check(&plan, &err)) fail_msg("mended, and: %s", err.text);
        }
        plan_release(&plan);
    }
    assert_true(plans >= PLANS / 4);
    for (uint32_t d = 0; d < DAMAGES; d++)
        if (found[d] < 5) fail_msg("%s: only %u times", damages[d].name, found[d]);
}

/* --- field by field ---------------------------------------------------------------------------- */

enum { BUFFERS = 64 }; /* two halves, one for each unit */

/* Two alike units of one operation: unit 1 does to the buffers of the second half what unit 0 does to the first. */
struct two_units {
    struct plan plan;
    struct plan_unit units[2];
    struct plan_op ops[2];
    struct plan_access accesses[BUFFERS];
    struct plan_buffer buffers[BUFFERS];
};

static void two_units_of(struct two_units *two, uint32_t accesses)
{
    *two = (struct two_units){0};
    for (uint32_t u = 0; u < 2; u++) {
        two->units[u] = (struct plan_unit){.pass = PLAN_FORWARD, .first_op = u, .op_count = 1, .acquire_count = 1};
        two->ops[u] = (struct plan_op){.kind = OP_COMPUTE, .pass = PLAN_FORWARD, .first_access = u * accesses,
                                       .access_count = accesses};
        for (uint32_t a = 0; a < accesses; a++) {
            uint32_t at = u * accesses + a;
            two->accesses[at] = (struct plan_access){.buffer = at, .flags = ACCESS_READ};
            two->buffers[at] = (struct plan_buffer){.kind = a == 0 ? BUFFER_STATE : BUFFER_BOUNDARY, .shard = a,
                                                    .on_device = true, .bytes = 64};
        }
    }
    two->plan = (struct plan){.units = two->units, .unit_count = 2, .ops = two->ops, .op_count = 2,
                              .accesses = two->accesses, .access_count = 2 * accesses, .buffers = two->buffers,
                              .buffer_count = 2 * accesses};
}

static bool are_alike(const struct two_units *two)
{
    const bool there = is_alike(&two->plan, &two->units[1], &two->units[0]);
    assert_int_equal(is_alike(&two->plan, &two->units[0], &two->units[1]), there);
    return there;
}

/* Changes an object of each unit by itself, and expects that the units are not alike any more. */
#define DIFFERS(object, change)                                                                                       \
    for (uint32_t u = 0; u < 2; u++) {                                                                                \
        two_units_of(&two, 2);                                                                                        \
        (object)->change;                                                                                             \
        if (are_alike(&two)) fail_msg("alike with %s->%s of unit %u", #object, #change, u);                           \
    }

static void no_field_is_left_out(void **state)
{
    struct two_units two;
    (void)state;
    two_units_of(&two, 2);
    assert_true(are_alike(&two));
    DIFFERS(&two.units[u], job = 1)
    DIFFERS(&two.units[u], shard = 1)
    DIFFERS(&two.units[u], pass = PLAN_BACKWARD)
    DIFFERS(&two.units[u], op_count = 0)
    DIFFERS(&two.units[u], acquire_count = 0)
    DIFFERS(&two.units[u], ends_minibatch = true)
    DIFFERS(&two.ops[u], kind = OP_COLLECTIVE)
    DIFFERS(&two.ops[u], stream = STREAM_D2H)
    DIFFERS(&two.ops[u], pass = PLAN_BACKWARD)
    DIFFERS(&two.ops[u], collective = COLLECTIVE_ALL_REDUCE + 1)
    DIFFERS(&two.ops[u], axes = 1)
    DIFFERS(&two.ops[u], rounds = 1)
    DIFFERS(&two.ops[u], work = 1)
    DIFFERS(&two.ops[u], slice = 1)
    DIFFERS(&two.ops[u], bytes = 1)
    DIFFERS(&two.ops[u], first_row = 1)
    DIFFERS(&two.ops[u], row_count = 1)
    DIFFERS(&two.ops[u], after_count = 1)
    DIFFERS(&two.ops[u], access_count = 1)
    DIFFERS(&two.accesses[2 * u], flags = ACCESS_WRITE)
    DIFFERS(&two.accesses[2 * u], offset_bytes = 1)
    DIFFERS(&two.buffers[2 * u], kind = BUFFER_GRADIENT)
    DIFFERS(&two.buffers[2 * u], job = 1)
    DIFFERS(&two.buffers[2 * u], shard = 1)
    DIFFERS(&two.buffers[2 * u], variant = 1)
    DIFFERS(&two.buffers[2 * u], on_device = false)
    DIFFERS(&two.buffers[2 * u], bytes = 65)
}

/* Orderings are distances in plan order, which no other task has checked. */
static void orderings_are_not_alike(void **state)
{
    struct two_units two;
    struct plan_after afters[1] = {{0}};
    (void)state;
    two_units_of(&two, 2);
    two.plan.afters = afters;
    two.plan.after_count = 1;
    assert_true(are_alike(&two));
    two.ops[0].after_count = two.ops[1].after_count = 1;
    assert_false(are_alike(&two));
}

static void variants(void **state)
{
    static const struct {
        uint32_t kind;
        bool may_differ;
    } kinds[] = {{BUFFER_STATE, false}, {BUFFER_GRADIENT, false}, {BUFFER_PARAMETERS, false},
                 {BUFFER_ACTIVATIONS, true},
                 {BUFFER_BOUNDARY, true}, {BUFFER_BOUNDARY_GRADIENT, true}};
    struct two_units two;
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(kinds); k++) {
        two_units_of(&two, 2);
        two.buffers[1].kind = two.buffers[3].kind = kinds[k].kind;
        assert_true(are_alike(&two));
        two.buffers[3].variant = 1;
        assert_int_equal(are_alike(&two), kinds[k].may_differ);
    }
}

/* One buffer twice against two buffers, of equal fields, in either unit; one buffer twice in both. */
static void pairs_of_buffers(void **state)
{
    struct two_units two;
    (void)state;
    for (uint32_t twice = 0; twice < 4; twice++) {
        two_units_of(&two, 2);
        for (uint32_t b = 0; b < 4; b++) two.buffers[b] = two.buffers[0];
        if (twice & 1) two.accesses[1].buffer = 0;
        if (twice & 2) two.accesses[3].buffer = 2;
        assert_int_equal(are_alike(&two), twice == 0 || twice == 3);
    }
    for (uint32_t accesses = PAIRS_MAX - 1; accesses <= PAIRS_MAX + 1; accesses++) {
        two_units_of(&two, accesses);
        assert_int_equal(are_alike(&two), accesses <= PAIRS_MAX);
    }
}

/* A unit that reads beyond the tables is not alike, and nothing beyond them is read. */
static void beyond_the_tables(void **state)
{
    struct two_units two;
    (void)state;
    two_units_of(&two, 2);
    two.accesses[3].buffer = 4;
    two.buffers[4] = two.buffers[3];
    assert_false(is_alike(&two.plan, &two.units[1], &two.units[0]));
    two_units_of(&two, 2);
    two.plan.access_count = 3;
    assert_false(is_alike(&two.plan, &two.units[1], &two.units[0]));
    two_units_of(&two, 2);
    two.ops[1].first_after = 1;
    assert_false(is_alike(&two.plan, &two.units[1], &two.units[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_is_changed),   cmocka_unit_test(no_field_is_left_out),
        cmocka_unit_test(orderings_are_not_alike), cmocka_unit_test(variants),
        cmocka_unit_test(pairs_of_buffers),      cmocka_unit_test(beyond_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
