/*
 * The judge of plans accepts right ones, and has a complaint of its own for each way to be wrong: here memory and
 * lifetimes (tests/support/planner/support_breakage.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/size.h"
#include "planner/check/plan_check.h"
#include "tests/support/planner/support_breakage.h"

static const struct draft_shape good_shapes[] = {
    {.devices = 1, .jobs = 1, .middle = 1, .minibatches = 1},
    {.devices = 2, .jobs = 2, .middle = 2, .minibatches = 3},
    {.devices = 3, .jobs = 2, .middle = 1, .minibatches = 2, .slices = 3},
    {.devices = 1, .jobs = 1, .middle = 1, .minibatches = 2, .slices = 1},
    {.devices = 2, .jobs = 2, .middle = 1, .minibatches = 2, .activations = ACTIVATIONS_KEEP},
    {.devices = 2, .jobs = 2, .middle = 2, .minibatches = 2, .activations = ACTIVATIONS_SPILL},
    {.devices = 2, .jobs = 2, .middle = 1, .minibatches = 2, .resident = true},
    {.devices = 2, .jobs = 3, .middle = 1, .minibatches = 2, .profile = true},
    {.devices = 1, .jobs = 1, .middle = 2, .minibatches = 2, .profile = true,
     .activations = ACTIVATIONS_SPILL},
    {.devices = 2, .jobs = 2, .middle = 2, .blocks = 3, .minibatches = 2,
     .activations = ACTIVATIONS_KEEP_INPUTS},
    {.devices = 2, .jobs = 2, .middle = 1, .blocks = 2, .minibatches = 2,
     .activations = ACTIVATIONS_SPILL_INPUTS},
    {.devices = 1, .jobs = 1, .middle = 2, .minibatches = 2,
     .activations = ACTIVATIONS_KEEP_INPUTS}, /* with nothing to keep */
    {.devices = 1, .jobs = 1, .middle = 2, .blocks = 2, .minibatches = 2, .profile = true,
     .activations = ACTIVATIONS_SPILL_INPUTS},
    {.devices = 2, .jobs = 1, .middle = 1, .minibatches = 2, .direct = true},
    {.devices = 3, .jobs = 2, .middle = 2, .minibatches = 3, .direct = true},
    {.devices = 2, .jobs = 2, .middle = 2, .minibatches = 2, .slices = 2, .direct = true},
    {.devices = 2, .jobs = 2, .middle = 3, .minibatches = 2, .profile = true, .direct = true},
};

static void test_good_plans(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(good_shapes); i++) {
        struct plan plan;
        struct error err = {0};
        support_plan(&good_shapes[i], &plan);
        if (plan_check(&plan, &err) != STATUS_OK) fail_msg("shape %zu: %s", i, err.text);
        plan_release(&plan);
    }
}

/* --- memory ------------------------------------------------------------------------------ */

static void overlap(struct draft *d)
{
    /* the boundary comes in right after the state, 256 bytes too early */
    breakage_copy(d, 1, PLAN_BACKWARD, STREAM_H2D, BUFFER_BOUNDARY)->slot_offset -= 256;
}

static void overrun_device(struct draft *d)
{
    d->hardware.devices[0].memory_bytes = d->half_bytes + 1024;
}

static void overrun_host(struct draft *d)
{
    d->hardware.host_bytes.value = 30000;
}

static void slot_too_small(struct draft *d)
{
    breakage_copy(d, 1, PLAN_FORWARD, STREAM_H2D, BUFFER_BOUNDARY)->slot_bytes = 1023;
}

static void boundary_too_small(struct plan *plan)
{
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].kind == BUFFER_BOUNDARY && plan->buffers[b].shard == 1)
            plan->buffers[b].bytes = 1020;
    for (uint32_t o = 0; o < plan->op_count; o++)
        if (plan->ops[o].kind == OP_COPY && plan->ops[o].bytes == 1024) plan->ops[o].bytes = 1020;
}

/* Buffers that have room for the inputs of layers, for shards that keep all activations. */
static void all_activations(struct plan *plan)
{
    plan->job_activations[0] = ACTIVATIONS_KEEP;
    plan->shards[1].inputs_only = false;
}

static void state_too_small(struct plan *plan)
{
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].kind == BUFFER_STATE && plan->buffers[b].shard == 2 &&
            !plan->buffers[b].on_device)
            plan->buffers[b].bytes -= 4;
}

static void workspace_missing(struct draft *d)
{
    struct draft_op *op = breakage_op(d, 1, PLAN_FORWARD, STREAM_COMPUTE, BUFFER_WORKSPACE);
    assert_int_equal(op->accesses[0].buffer.kind, BUFFER_WORKSPACE);
    for (uint32_t a = 1; a < op->access_count; a++) op->accesses[a - 1] = op->accesses[a];
    op->access_count--;
}

static void workspace_too_small(struct draft *d)
{
    breakage_compute(d, 2, PLAN_LOSS, BUFFER_WORKSPACE)->buffer.bytes -= 64;
}

/* --- lifetimes --------------------------------------------------------------------------- */

static void acquire_twice(struct draft *d)
{
    struct draft_unit *unit = draft_unit(d, 0, 1, PLAN_FORWARD);
    uint32_t at = draft_find(unit, STREAM_H2D, BUFFER_BOUNDARY);
    unit->ops[unit->op_count++] = unit->ops[at];
    unit->ops[unit->op_count - 1].accesses[1].slot_offset = 1 << 20;
    draft_move_op(unit, unit->op_count - 1, at + 1);
}

static void never_released(struct draft *d)
{
    breakage_copy(d, 2, PLAN_LOSS, STREAM_D2H, BUFFER_LOSS)->flags &= ~(uint32_t)ACCESS_RELEASE;
}

static void never_released_at_the_end(struct draft *d)
{
    struct draft_unit *last = draft_own(d, d->task_count - 1);
    uint32_t at = draft_find(last, STREAM_D2H, BUFFER_STATE);
    last->ops[at].accesses[0].flags &= ~(uint32_t)ACCESS_RELEASE;
}

static void released_too_early(struct draft *d)
{
    breakage_compute(d, 1, PLAN_BACKWARD, BUFFER_STATE)->flags |= ACCESS_RELEASE;
}

static void read_before_write(struct draft *d)
{
    /* the loss leaves before it is computed: acquired by an empty copy instead */
    struct draft_unit *unit = draft_unit(d, 0, 0, PLAN_FORWARD);
    breakage_drop(d, 0, PLAN_FORWARD, STREAM_HOST, BUFFER_BATCH);
    assert_int_equal(unit->ops[0].op.kind, OP_COPY);
}

static void parts_never_written(struct draft *d)
{
    breakage_op(d, 1, PLAN_FORWARD, STREAM_H2D, BUFFER_PARAMETERS)->op.bytes -= 64;
}

/* --- table --------------------------------------------------------------------------------- */

static const struct breakage breakages[] = {
    {SPILLED, overlap, NULL,
     "task 3, operation 2 (h2d of boundary of job-0 shard 1): memory: the boundary of "
     "job-0 shard 1 at bytes 4206336 to 4207360 of device 0 overlaps the state of job-0 shard "
     "1 at 4195328 to 4206464"},
    {SPILLED, overrun_device, NULL,
     "task 1, operation 0 (h2d of state of job-0 shard 1): memory: slot 4 ends at byte "
     "4198016, device 0 at 4195328"},
    {SPILLED, overrun_host, NULL,
     "memory: the host buffers are 31120 bytes (host memory is 30000)"},
    {SPILLED, slot_too_small, NULL,
     "task 1, operation 1 (h2d of boundary of job-0 shard 1): memory: slot 5 has 1023 "
     "bytes, the boundary of job-0 shard 1 1024"},
    {SPILLED, NULL, boundary_too_small,
     "unit 0, operation 3 (job-0 shard 0 forward): memory: the boundary of job-0 shard 1 has "
     "1020 bytes (expected 1024)"},
    {SPILLED, NULL, state_too_small,
     "memory: state of job-0 shard 2 on the host has 380 bytes (expected 384)"},
    {SPILLED, workspace_missing, NULL,
     "unit 2, operation 2 (job-0 shard 1 forward): training: does not access a workspace "
     "(34816 bytes)"},
    {SPILLED, workspace_too_small, NULL,
     "unit 4, operation 4 (job-0 shard 2 loss): memory: the workspace of job-0 shard 2 "
     "variant 1 has 14656 bytes (expected 14720)"},
    {SPILLED, acquire_twice, NULL,
     "task 1, operation 2 (h2d of boundary of job-0 shard 1): lifetimes: acquires the "
     "boundary of job-0 shard 1, which is live on device 0"},
    {SPILLED, never_released, NULL,
     "task 6, operation 2 (job-0 shard 1 forward): memory: the workspace of job-0 shard 1 "
     "at bytes 4864 to 39680 of device 0 overlaps the loss of job-0 at 20736 to 20744"},
    {SPILLED, never_released_at_the_end, NULL,
     "lifetimes: the state of job-0 shard 0 is live on device 0 at the end"},
    {SPILLED, released_too_early, NULL,
     "task 3, operation 5 (d2h of state of job-0 shard 1): lifetimes: accesses the state "
     "of job-0 shard 1, which is not live on device 0"},
    {SPILLED, read_before_write, NULL,
     "task 0, operation 0 (h2d of batch of job-0): lifetimes: copies unwritten bytes from "
     "the batch of job-0"},
    {SPILLED, parts_never_written, NULL,
     "task 1, operation 2 (job-0 shard 1 forward): lifetimes: reads unwritten "
     "bytes of the parameters of job-0 shard 1 (expected state of job-0 shard 1, version 0)"},
    {{.devices = 1, .jobs = 1, .middle = 1, .blocks = 3, .minibatches = 2,
      .activations = ACTIVATIONS_KEEP_INPUTS},
     NULL, all_activations,
     "unit 2, operation 2 (job-0 shard 1 forward): memory: the activations of job-0 shard 1 has 2048 "
     "bytes (expected 51200)"}, /* (32 rows, 8) of two layers; 3 (16 * 8 + 4 + heads) - 8 numbers a row */
};

static void test_breakages(void **state)
{
    (void)state;
    breakages_run(breakages, ARRAY_COUNT(breakages));
}

/* Without memory there is no verdict, and nothing leaks. */
static void test_allocation_failures(void **state)
{
    (void)state;
    const struct draft_shape shape = SLICED;
    struct plan plan;
    support_plan(&shape, &plan);
    uint64_t calls = 1;
    for (uint64_t n = 1; n <= calls; n++) {
        struct error err = {0};
        alloc_test_fail_at(n);
        const enum status status = plan_check(&plan, &err);
        const uint64_t made = alloc_test_fail_at(0);
        assert_int_equal(status, made < n ? STATUS_OK : STATUS_NO_MEMORY);
        calls = made < n ? made : n + 1;
    }
    assert_in_range(calls, 10, 1000);
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_plans),
        cmocka_unit_test(test_breakages),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
