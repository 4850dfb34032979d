/*
 * Backward passes in two units, in plans that are carried out (label: fast): the first hands over to the second, and
 * the second reads the weights of its chunk. The judge misses nothing that is lost, late or of another chunk.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/size.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/planner/support_parallel_variants.h"

static struct plan_access *handover_of(struct plan *p, uint32_t pass)
{
    const struct plan_op *op = test_parallel_op(p, pass, 1, OP_COMPUTE);
    for (uint32_t a = op->first_access; a < op->first_access + op->access_count; a++) {
        const struct plan_buffer *b = &p->buffers[p->accesses[a].buffer];
        if (b->kind == BUFFER_WORKSPACE && b->variant > 0) return &p->accesses[a];
    }
    fail_msg("no handover");
    return NULL;
}
static void handover_small(struct plan *p) { p->buffers[handover_of(p, PLAN_BACKWARD_INPUT)->buffer].bytes -= 64; }
static void handover_read(struct plan *p) { handover_of(p, PLAN_BACKWARD_INPUT)->flags = ACCESS_READ; }
static void handover_kept(struct plan *p) { handover_of(p, PLAN_BACKWARD_WEIGHT)->flags = ACCESS_READ; }
static void handover_lost(struct plan *p)
{
    struct plan_access *a = handover_of(p, PLAN_BACKWARD_WEIGHT);
    a->buffer = (uint32_t)(test_parallel_buffer(p, BUFFER_LOSS, PLAN_NONE, true) - p->buffers);
}
static void handover_late(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_BACKWARD_INPUT, 1, 0),
                       test_parallel_task(p, PLAN_BACKWARD_WEIGHT, 1, 0));
}
static void head_left_out(struct plan *p)
{
    test_parallel_access(p, test_parallel_op(p, PLAN_BACKWARD_INPUT, 1, OP_COMPUTE),
                         BUFFER_GRADIENT)->flags = ACCESS_READ;
}
static void data_written(struct plan *p)
{
    test_parallel_access(p, test_parallel_op(p, PLAN_BACKWARD_WEIGHT, 0, OP_COMPUTE), BUFFER_BATCH)->flags =
        ACCESS_READ | ACCESS_WRITE;
}

static struct plan_access *second_weights(struct plan *p)
{
    return test_parallel_access(p, test_parallel_op(p, PLAN_BACKWARD_WEIGHT, 0, OP_COMPUTE), BUFFER_PARAMETERS);
}
static void second_unit_of_shares(struct plan *p)
{
    second_weights(p)->buffer = (uint32_t)(test_parallel_buffer(p, BUFFER_STATE, 0, true) - p->buffers);
}
static void second_unit_writes(struct plan *p) { second_weights(p)->flags |= ACCESS_WRITE; }
static void second_unit_keeps(struct plan *p) { second_weights(p)->flags &= (uint8_t)~ACCESS_RELEASE; }
static void second_unit_of_head(struct plan *p)
{
    struct plan_op *const op = test_parallel_op(p, PLAN_BACKWARD_WEIGHT, 1, OP_COMPUTE);
    test_parallel_access(p, op, BUFFER_WORKSPACE)->buffer =
        (uint32_t)(test_parallel_buffer(p, BUFFER_PARAMETERS, 1, true) - p->buffers);
}

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {handover_small, VARIANT_HALVES + 2, "memory: the workspace of job-0 shard 1 variant 1"},
        {handover_read, VARIANT_HALVES + 2, "form: only reads the workspace of job-0 shard 1 variant 1"},
        {handover_kept, VARIANT_HALVES + 2, "job-0 shard 1"},
        {handover_lost, VARIANT_HALVES + 2, "form: has no use for the loss of job-0"},
        {handover_late, VARIANT_HALVES + 2, "job-0 shard 1"},
        {head_left_out, VARIANT_HALVES + 2, "form: only reads the gradient of job-0 shard 1"},
        {data_written, VARIANT_HALVES + 2, "form: writes the batch of job-0"},
        {damage_loss_elsewhere, VARIANT_HALVES + 12, "form: a copy on the h2d stream"},
        {second_unit_of_shares, VARIANT_HALVES_SHARES + 12, "form: has no use for the state of job-0 shard 0"},
        {second_unit_writes, VARIANT_HALVES_SHARES + 12, "form: writes the parameters of job-0 shard 0"},
        {second_unit_keeps, VARIANT_HALVES_SHARES + 12, "lifetimes: acquires the parameters of job-0 shard 0"},
        {second_unit_of_head, VARIANT_HALVES_SHARES + 12, "form: has no use for the parameters of job-0 shard 1"},
        {damage_shares_gathered_short, VARIANT_HALVES_SHARES + 12, "0 times all-gather of"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), test_parallel_variant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
