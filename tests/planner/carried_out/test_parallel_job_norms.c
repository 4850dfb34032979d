/*
 * Norms of gradients in plans that are carried out (label: fast): the judge misses none that clipping needs, whether
 * they are of whole gradients, of tensor groups or of the shares of replicas.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/size.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/planner/support_parallel_variants.h"

static void norm_late(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_NORM, 1, 0), test_parallel_task(p, PLAN_UPDATE, 0, 0));
}
static void norm_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_NORM, 0, 0), test_parallel_task(p, PLAN_JOIN, 0, 0));
}
static void norm_twice(struct plan *p)
{
    test_parallel_task(p, PLAN_NORM, 1, 0)->unit = test_parallel_task(p, PLAN_NORM, 0, 0)->unit;
}
static void norm_short(struct plan *p)
{
    const struct plan_unit *unit = &p->units[test_parallel_task(p, PLAN_NORM, 0, 0)->unit];
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
        if (p->ops[o].kind == OP_COPY) p->ops[o].bytes -= 8;
}
static void norm_elsewhere(struct plan *p)
{
    test_parallel_op(p, PLAN_UPDATE, 1, OP_COPY)->bytes -= 8;
}
static void norms_unread(struct plan *p)
{
    test_parallel_access(p, test_parallel_op(p, PLAN_UPDATE, 1, OP_COMPUTE), BUFFER_NORMS)->flags = ACCESS_WRITE;
}

static struct plan_op *exchange_of(struct plan *p, uint32_t pass) { return test_parallel_op(p, pass, 0, OP_COLLECTIVE);
                                                                   }
static void norms_apart(struct plan *p) { exchange_of(p, PLAN_NORM)->rounds++; }
static void norms_of_replicas(struct plan *p) { exchange_of(p, PLAN_NORM)->axes = 1u << AXIS_DATA; }
static void shares_of_a_group(struct plan *p) { exchange_of(p, PLAN_NORM)->axes = 1u << AXIS_TENSOR; }
static void shares_of_the_ends(struct plan *p) { exchange_of(p, PLAN_NORM)->axes = 1u << AXIS_ENDS; }
static void shares_short(struct plan *p) { exchange_of(p, PLAN_NORM)->bytes -= 8; }
static void shares_twice(struct plan *p) { exchange_of(p, PLAN_NORM)->rounds++; }
static void shares_late(struct plan *p)
{
    struct plan_op *const sum = exchange_of(p, PLAN_NORM), kept = *sum;
    struct plan_op *const copy = test_parallel_op(p, PLAN_NORM, 0, OP_COPY);
    *sum = *copy;
    *copy = kept;
}
static void shares_left_out(struct plan *p)
{
    *exchange_of(p, PLAN_NORM) = *test_parallel_op(p, PLAN_NORM, 0, OP_COPY);
    p->units[test_parallel_task(p, PLAN_NORM, 0, 0)->unit].op_count--;
}
static void shares_not_read(struct plan *p)
{
    test_parallel_access(p, exchange_of(p, PLAN_NORM), BUFFER_NORMS)->flags = ACCESS_WRITE;
}

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {norm_late, VARIANT_CLIPS + 2, "training"},
        {norm_early, VARIANT_CLIPS + 2, "(expected joined gradient of job-0 shard 0, microbatch 4)"},
        {norm_twice, VARIANT_CLIPS + 2, "is not on the devices of stage 0"},
        {norm_short, VARIANT_CLIPS + 2, "bytes of the norms at 0 (expected"},
        {norm_elsewhere, VARIANT_CLIPS + 2, "bytes of the norms at 0 (expected"},
        {norms_unread, VARIANT_CLIPS + 2, "form: writes the norms of job-0"},
        {norms_apart, VARIANT_GROUPS_CLIP + 2, "times all-reduce of"},
        {norms_of_replicas, VARIANT_GROUPS_CLIP + 2, "job-0"},
        {shares_left_out, VARIANT_SHARES_CLIP + 12, "0 times all-reduce"},
        {shares_of_a_group, VARIANT_SHARES_CLIP + 12, "form: a collective of a pass on the data stream"},
        {shares_of_the_ends, VARIANT_SHARES_CLIP + 12, "form: a collective over the ends on 1 buffers, in a norm"},
        {shares_short, VARIANT_SHARES_CLIP + 12, "0 times all-reduce of"},
        {shares_twice, VARIANT_SHARES_CLIP + 12, "2 times all-reduce of"},
        {shares_late, VARIANT_SHARES_CLIP + 12, "finds norms of shares of job-0, minibatch 0 (expected norms of job-0"},
        {shares_not_read, VARIANT_SHARES_CLIP + 12, "form: a collective on the norms of job-0"},
        {damage_norms_small, VARIANT_CLIPS + 12, "memory: the norms of job-0 has 600 bytes (expected 608)"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), test_parallel_variant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
