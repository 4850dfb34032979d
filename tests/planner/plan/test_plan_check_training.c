/* The judge of plans: training that is not what the jobs say (versions of data, order of units, slices). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/size.h"
#include "tests/support/planner/support_breakage.h"

/* --- versions ---------------------------------------------------------------------------- */

static void copy_out_lost(struct draft *d)
{
    /* the state is released by its last reader instead */
    breakage_drop(d, 1, PLAN_BACKWARD, STREAM_D2H, BUFFER_STATE);
    breakage_compute(d, 1, PLAN_BACKWARD, BUFFER_STATE)->flags |= ACCESS_RELEASE;
}

static void copy_in_too_early(struct draft *d)
{
    /* forward 0 of minibatch 1 begins before backward 0 of minibatch 0 has brought its state back:
     * its copy in moves to the front of that unit */
    struct draft_unit *backward = draft_own(d, 4), *forward = draft_own(d, 5);
    uint32_t copy = draft_find(forward, STREAM_H2D, BUFFER_PARAMETERS);
    backward->ops[backward->op_count++] = forward->ops[copy];
    backward->ops[backward->op_count - 1].accesses[1].slot_offset = 1 << 20;
    draft_move_op(backward, backward->op_count - 1, 0);
    draft_drop_op(forward, copy);
}

static void old_batch(struct draft *d)
{
    struct draft_unit *forward = draft_own(d, 5);
    draft_drop_op(forward, draft_find(forward, STREAM_HOST, BUFFER_BATCH));
}

/* The forward pass over the embedding of job 1, in its second minibatch. */
static void old_batch_of_another_job(struct draft *d)
{
    struct draft_unit *forward = draft_own(d, draft_task(d, 1, 0, PLAN_FORWARD, 1));
    draft_drop_op(forward, draft_find(forward, STREAM_HOST, BUFFER_BATCH));
}

static void old_gradient(struct draft *d)
{
    struct draft_unit *loss = draft_own(d, 7);
    uint32_t out = draft_find(loss, STREAM_D2H, BUFFER_TABLE_GRADIENT);
    uint32_t compute = draft_find(loss, STREAM_COMPUTE, BUFFER_TABLE_GRADIENT);
    draft_access(&loss->ops[compute], BUFFER_TABLE_GRADIENT)->flags |= ACCESS_RELEASE;
    draft_drop_op(loss, out);
}

static void old_activations(struct draft *d)
{
    /* minibatch 1 uses the activations of minibatch 0, spilled, because its own are not copied out */
    struct draft_unit *forward = draft_own(d, 6);
    uint32_t out = draft_find(forward, STREAM_D2H, BUFFER_ACTIVATIONS);
    uint32_t compute = draft_find(forward, STREAM_COMPUTE, BUFFER_ACTIVATIONS);
    draft_access(&forward->ops[compute], BUFFER_ACTIVATIONS)->flags |= ACCESS_RELEASE;
    draft_drop_op(forward, out);
}

static void loss_not_sent(struct draft *d)
{
    breakage_drop(d, 2, PLAN_LOSS, STREAM_D2H, BUFFER_LOSS);
    breakage_compute(d, 2, PLAN_LOSS, BUFFER_LOSS)->flags |= ACCESS_RELEASE;
}

static void store_lost(struct draft *d)
{
    draft_drop_task(d, draft_task(d, 0, 1, PLAN_STORE, 0));
}

static void store_unread(struct draft *d)
{
    /* the head's unit stores nothing: its copy is one of no bytes */
    struct draft_unit *unit = draft_unit(d, 0, 2, PLAN_STORE);
    unit->ops[0].op.bytes = 0;
}

static void loaded_twice(struct draft *d)
{
    draft_repeat_task(d, draft_task(d, 0, 1, PLAN_LOAD, 0));
}

static void stored_too_early(struct draft *d)
{
    draft_swap_tasks(d, draft_task(d, 0, 0, PLAN_STORE, 0),
                     draft_task(d, 0, 0, PLAN_BACKWARD, 1));
}

/* --- order ------------------------------------------------------------------------------- */

static void unit_missing(struct draft *d)
{
    draft_drop_task(d, 3);
}

static void unit_doubled(struct draft *d)
{
    draft_repeat_task(d, 1);
}

static void wrong_order(struct draft *d)
{
    draft_swap_tasks(d, 1, 2);
}

/* Back before forward, through the same shard. */
static void backward_first(struct plan *plan)
{
    const struct plan_task forward = plan->tasks[1];
    plan->tasks[1] = plan->tasks[3];
    plan->tasks[3] = forward;
}

static void minibatch_missing(struct draft *d)
{
    for (int i = 0; i < 5; i++) draft_drop_task(d, d->task_count - 1);
}

static void half_a_minibatch(struct draft *d)
{
    draft_drop_task(d, d->task_count - 1);
}

static void minibatch_too_many(struct draft *d)
{
    d->jobs.jobs[0].minibatches = 1;
}

static void ends_too_early(struct draft *d)
{
    draft_unit(d, 0, 2, PLAN_LOSS)->ends_minibatch = true;
}

static void ends_never(struct draft *d)
{
    draft_unit(d, 0, 0, PLAN_BACKWARD)->ends_minibatch = false;
}

static void computed_twice(struct draft *d)
{
    struct draft_unit *unit = draft_unit(d, 0, 1, PLAN_FORWARD);
    uint32_t at = draft_find(unit, STREAM_COMPUTE, BUFFER_PARAMETERS);
    unit->ops[unit->op_count++] = unit->ops[at];
}

/* --- slices ------------------------------------------------------------------------------ */

/* Operations of slice k of the backward unit: from its first copy to its last. */
static void drop_slice(struct draft_unit *unit, uint32_t slice)
{
    for (uint32_t o = unit->op_count; o-- > 0;)
        for (uint32_t a = 0; a < unit->ops[o].access_count; a++)
            if (unit->ops[o].accesses[a].buffer.variant == 1 + slice &&
                unit->ops[o].accesses[a].buffer.kind != BUFFER_WORKSPACE) {
                draft_drop_op(unit, o);
                break;
            }
}

static void two_batches(struct draft *d)
{
    struct draft_unit *unit = draft_unit(d, 0, 0, PLAN_FORWARD);
    unit->ops[unit->op_count++] = unit->ops[draft_find(unit, STREAM_HOST, BUFFER_BATCH)];
}

static void slice_missing(struct draft *d)
{
    drop_slice(draft_unit(d, 0, 0, PLAN_BACKWARD), 1);
}

static void last_slice_missing(struct draft *d)
{
    drop_slice(draft_unit(d, 0, 0, PLAN_FORWARD), 2);
}

static void slice_of_other_rows(struct draft *d)
{
    breakage_op(d, 0, PLAN_FORWARD, STREAM_H2D, BUFFER_PARAMETERS)->accesses[0].offset_bytes += 32;
}

static void slice_not_sent(struct draft *d)
{
    /* the moments of slice 0 do not return; its rows are released by the copy in front */
    struct draft_unit *unit = draft_unit(d, 0, 0, PLAN_BACKWARD);
    uint32_t at = draft_find(unit, STREAM_D2H, BUFFER_STATE);
    unit->ops[at + 1].accesses[0].flags |= ACCESS_RELEASE;
    draft_drop_op(unit, at + 2);
}

static void wrong_gradient_rows(struct draft *d)
{
    struct draft_unit *unit = draft_unit(d, 0, 0, PLAN_BACKWARD);
    uint32_t at = draft_find(unit, STREAM_H2D, BUFFER_TABLE_GRADIENT);
    unit->ops[at].accesses[0].offset_bytes += 64;
}

static void wrong_variant(struct draft *d)
{
    struct draft_unit *unit = draft_unit(d, 0, 0, PLAN_FORWARD);
    uint32_t at = draft_find(unit, STREAM_COMPUTE, BUFFER_PARAMETERS);
    draft_access(&unit->ops[at], BUFFER_PARAMETERS)->buffer.variant = 2;
}

static void boundary_forgotten_between_slices(struct draft *d)
{
    struct draft_unit *unit = draft_unit(d, 0, 0, PLAN_FORWARD);
    uint32_t first = draft_find(unit, STREAM_COMPUTE, BUFFER_PARAMETERS);
    draft_access(&unit->ops[first + 2], BUFFER_BOUNDARY)->flags &= ~(uint32_t)ACCESS_READ;
}

/* --- table --------------------------------------------------------------------------------- */

static const struct breakage breakages[] = {
    {SPILLED, copy_out_lost, NULL,
     "task 6, operation 2 (job-0 shard 1 forward): training: finds state of job-0 shard "
     "1, version 0 (expected state of job-0 shard 1, version 1)"},
    {SPILLED, copy_in_too_early, NULL,
     "task 5, operation 2 (job-0 shard 0 forward): training: finds state of job-0 shard "
     "0, version 0 (expected state of job-0 shard 0, version 1)"},
    {SPILLED, old_batch, NULL,
     "task 5, operation 2 (job-0 shard 0 forward): training: finds batch of job-0, "
     "minibatch 0 (expected batch of job-0, minibatch 1)"},
    {{.devices = 1, .jobs = 2, .middle = 1, .minibatches = 2}, old_batch_of_another_job, NULL,
     "task 15, operation 2 (job-1 shard 0 forward): training: finds batch of job-1, "
     "minibatch 0 (expected batch of job-1, minibatch 1)"},
    {SPILLED, old_gradient, NULL,
     "task 9, operation 4 (job-0 shard 0 backward): training: finds table gradient of "
     "job-0, minibatch 0 (expected table gradient of job-0, minibatch 1)"},
    {{.devices = 1, .jobs = 1, .middle = 1, .minibatches = 2, .activations = ACTIVATIONS_SPILL},
     old_activations, NULL,
     "task 8, operation 4 (job-0 shard 1 backward): training: finds activations of job-0 "
     "shard 1, minibatch 0 (expected activations of job-0 shard 1, minibatch 1)"},
    {SPILLED, NULL, backward_first,
     "task 1 (job-0 shard 1 backward): training: expected forward of job-0 shard 1, minibatch 0"},
    {SPILLED, loss_not_sent, NULL,
     "task 4 (job-0 shard 0 backward): training: the loss of minibatch 0 is not on the "
     "host"},
    {RESIDENT, store_lost, NULL,
     "lifetimes: the state of job-0 shard 1 is live on device 0 at the end"},
    {RESIDENT, store_unread, NULL,
     "training: at the end the host has version 0 of the state of job-0 shard 2 (expected 2)"},
    {RESIDENT, loaded_twice, NULL,
     "task 2 (job-0 shard 1 load): training: a second load of shard 1"},
    {RESIDENT, stored_too_early, NULL,
     "task 12 (job-0 shard 0 store): training: expected backward of job-0 shard 0, "
     "minibatch 1"},
    {SPILLED, unit_missing, NULL,
     "task 3 (job-0 shard 0 backward): training: expected backward of job-0 shard 1, "
     "minibatch 0"},
    {SPILLED, unit_doubled, NULL,
     "task 2 (job-0 shard 1 forward): training: expected loss of job-0 shard 2, minibatch "
     "0"},
    {SPILLED, wrong_order, NULL,
     "task 1 (job-0 shard 2 loss): training: expected forward of job-0 shard 1, minibatch "
     "0"},
    {SPILLED, minibatch_missing, NULL,
     "training: job-0 ends after 1 of 2 minibatches"},
    {SPILLED, half_a_minibatch, NULL,
     "training: job-0 ends in minibatch 1, before backward of shard 0"},
    {SPILLED, minibatch_too_many, NULL,
     "task 5 (job-0 shard 0 forward): training: job-0 begins minibatch 1 (expected only 1)"},
    {SPILLED, ends_too_early, NULL,
     "task 2 (job-0 shard 2 loss): form: ends the minibatch too early"},
    {SPILLED, ends_never, NULL,
     "task 4 (job-0 shard 0 backward): form: does not end the minibatch"},
    {SPILLED, computed_twice, NULL,
     "unit 2 (job-0 shard 1 forward): training: 2 computations (expected 1)"},
    {SPILLED, two_batches, NULL, "unit 0 (job-0 shard 0 forward): training: 2 batches (expected 1)"},
    {SLICED, slice_missing, NULL,
     "unit 1 (job-0 shard 0 backward): training: slice 2 begins at row 84 (expected slice 1 "
     "at row 42)"},
    {SLICED, last_slice_missing, NULL,
     "unit 0 (job-0 shard 0 forward): training: its slices end at row 84 of 128"},
    {SLICED, slice_of_other_rows, NULL,
     "task 0, operation 3 (job-0 shard 0 forward slice 0): training: finds other bytes of "
     "state of job-0 shard 0, version 0 than expected"},
    {SLICED, slice_not_sent, NULL,
     "task 9, operation 6 (job-0 shard 0 backward slice 0): training: finds state of "
     "job-0 shard 0, version 0 (expected state of job-0 shard 0, version 1)"},
    {SLICED, wrong_gradient_rows, NULL,
     "task 4, operation 6 (job-0 shard 0 backward slice 0): training: finds other bytes "
     "of table gradient of job-0, minibatch 0 than expected"},
    {SLICED, wrong_variant, NULL,
     "unit 0, operation 3 (job-0 shard 0 forward slice 0): form: accesses the parameters of "
     "job-0 shard 0 variant 2 (expected variant 1)"},
    {SLICED, boundary_forgotten_between_slices, NULL,
     "unit 0, operation 5 (job-0 shard 0 forward slice 1): form: writes the boundary of job-0 "
     "shard 1 (expected: changes it)"},
};

static void test_breakages(void **state)
{
    (void)state;
    breakages_run(breakages, ARRAY_COUNT(breakages));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_breakages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
