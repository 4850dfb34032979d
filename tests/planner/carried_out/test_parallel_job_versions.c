/*
 * Plans with two versions of the weights that are carried out (label: fast): each update makes a version and, with a
 * tied table, gradients are summed in turns. The judge misses no version, sum or batch of another minibatch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/size.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/planner/support_parallel_variants.h"

static struct plan_buffer *variant_of(struct plan *p, uint32_t kind, uint32_t variant)
{
    for (uint32_t b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].kind == kind && p->buffers[b].variant == variant && p->buffers[b].on_device)
        return &p->buffers[b];
    fail_msg("no buffer of kind %u and variant %u", kind, variant);
    return NULL;
}
static void version_small(struct plan *p) { test_parallel_buffer(p, BUFFER_PARAMETERS, 1, true)->bytes -= 64; }
static void version_from_nothing(struct plan *p)
{
    test_parallel_access(p, test_parallel_op(p, PLAN_LOAD, 1, OP_COMPUTE), BUFFER_STATE)->flags = ACCESS_WRITE;
}
static void version_not_made(struct plan *p)
{
    test_parallel_access(p, test_parallel_op(p, PLAN_LOAD, 1, OP_COMPUTE), BUFFER_PARAMETERS)->flags =
        ACCESS_READ | ACCESS_ACQUIRE;
}
static void state_in_a_pass(struct plan *p)
{
    test_parallel_access(p, test_parallel_op(p, PLAN_FORWARD, 1, OP_COMPUTE), BUFFER_PARAMETERS)->buffer =
        (uint32_t)(test_parallel_buffer(p, BUFFER_STATE, 1, true) - p->buffers);
}
static void data_of_another(struct plan *p)
{
    test_parallel_access(p, test_parallel_op(p, PLAN_BACKWARD, 0, OP_COMPUTE), BUFFER_BATCH)->buffer =
        (uint32_t)(variant_of(p, BUFFER_BATCH, 1) - p->buffers);
}
static void data_released(struct plan *p)
{
    test_parallel_access(p, test_parallel_op(p, PLAN_FORWARD, 0, OP_COMPUTE), BUFFER_BATCH)->flags |= ACCESS_RELEASE;
}
static void data_twice(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_BATCH, 0, 0), test_parallel_task(p, PLAN_BATCH, 0, 1));
}

static struct plan_access *sum_of(struct plan *p, uint32_t pass, uint32_t n)
{
    const struct plan_unit *unit = &p->units[test_parallel_task(p, pass, 1, n)->unit];
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
        for (uint32_t a = 0; p->ops[o].kind == OP_COMPUTE && a < p->ops[o].access_count; a++)
            if (p->buffers[p->accesses[p->ops[o].first_access + a].buffer].kind == BUFFER_GRADIENT)
                return &p->accesses[p->ops[o].first_access + a];
    fail_msg("no sum");
    return NULL;
}
static void loss_of_sums_short(struct plan *p)
{
    const struct plan_unit *unit = &p->units[test_parallel_task(p, PLAN_BACKWARD, 1, 3)->unit];
    p->ops[unit->first_op + unit->op_count - 1].bytes = 4;
}
static void sum_not_made(struct plan *p) { sum_of(p, PLAN_BACKWARD, 0)->flags = ACCESS_READ | ACCESS_WRITE; }
static void sum_made_again(struct plan *p) { sum_of(p, PLAN_BACKWARD, 1)->flags = ACCESS_WRITE | ACCESS_ACQUIRE; }
static void sum_of_another(struct plan *p) { sum_of(p, PLAN_UPDATE, 0)->buffer = sum_of(p, PLAN_UPDATE, 1)->buffer; }
static void sum_kept(struct plan *p) { sum_of(p, PLAN_UPDATE, 0)->flags &= (uint8_t)~ACCESS_RELEASE; }
static void sum_of_a_turn_more(struct plan *p)
{
    for (uint32_t b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].variant == PLAN_GRADIENT_TURNS + 1) p->buffers[b].variant++;
}
static void update_before_join(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_UPDATE, 1, 0), test_parallel_task(p, PLAN_JOIN, 0, 0));
}
static void norm_before_join(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_NORM, 1, 0), test_parallel_task(p, PLAN_JOIN, 0, 0));
}
static void updates_swapped(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_UPDATE, 1, 0), test_parallel_task(p, PLAN_NORM, 0, 0));
}

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {version_small, VARIANT_VERSIONS + 2, "memory: the parameters of job-0 shard 1"},
        {version_from_nothing, VARIANT_VERSIONS + 2, "form: writes the state of job-0 shard 1"},
        {version_not_made, VARIANT_VERSIONS + 2, "job-0 shard 1"},
        {state_in_a_pass, VARIANT_VERSIONS + 2, "form: has no use for the state of job-0 shard 1"},
        {data_of_another, VARIANT_VERSIONS + 2, "job-0 shard 0"},
        {data_released, VARIANT_VERSIONS + 2, "job-0 shard 0"},
        {data_twice, VARIANT_VERSIONS + 2, "job-0 shard 0"},
        {damage_data_late, VARIANT_VERSIONS + 2, "batch"},
        {damage_loss_short, VARIANT_VERSIONS + 12, "work: copies 4 bytes of the loss (expected 8 of the loss)"},
        {damage_reduced_short, VARIANT_VERSIONS + 12, "0 times all-reduce of"},
        {loss_of_sums_short, VARIANT_TURNS + 2, "work: copies 4 bytes of the loss (expected 8 of the loss)"},
        {sum_not_made, VARIANT_TURNS + 2, "form: acquires 2 buffers, not 3"},
        {sum_made_again, VARIANT_TURNS + 2, "form: acquires 3 buffers, not 2"},
        {sum_of_another, VARIANT_TURNS + 2, "finds gradient of job-0 shard 1, microbatch 5 (expected joined gradient "
                                            "of job-0 shard 1, microbatch 4)"},
        {sum_kept, VARIANT_TURNS + 2, "lifetimes: acquires the gradient of job-0 shard 1, which is live"},
        {sum_of_a_turn_more, VARIANT_TURNS + 2, "form: has no use for the gradient of job-0 shard 1 variant 131074"},
        {update_before_join, VARIANT_TURNS + 2, "finds gradient of job-0 shard 1, microbatch 4 (expected joined "
                                                "gradient of job-0 shard 1, microbatch 4)"},
        {damage_reduced_short, VARIANT_TURNS + 12, "0 times all-reduce of"},
        {norm_before_join, VARIANT_TURNS_CLIP + 2, "finds gradient of job-0 shard 1, microbatch 4 (expected joined "
                                                   "gradient of job-0 shard 1, microbatch 4)"},
        {updates_swapped, VARIANT_TURNS_CLIP + 2, "lifetimes: copies unwritten bytes from the norms of job-0"},
        {sum_kept, VARIANT_TURNS_CLIP + 12, "lifetimes: acquires the gradient of job-0 shard 1, which is live"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), test_parallel_variant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
