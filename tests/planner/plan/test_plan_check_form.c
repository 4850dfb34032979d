/* The judge of plans: operations, waits, layers, work and tables that do not have the form of a plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/size.h"
#include "tests/support/planner/support_breakage.h"

/* Returns the first operation on streams of this kind. */
static uint32_t first_op_of_stream(const struct plan *plan, uint32_t stream)
{
    uint32_t o = 0;
    while (plan->ops[o].stream != stream) assert_true(++o < plan->op_count);
    return o;
}

/* --- numbers past the end of their table ------------------------------------------------- */

static void buffer_of_no_kind(struct plan *plan)
{
    plan->buffers[0].kind = BUFFER_KIND_COUNT;
}

static void buffer_of_no_job(struct plan *plan)
{
    plan->buffers[0].job = plan->jobs.count;
}

static void kernel_of_no_kind(struct plan *plan)
{
    plan->items[plan->item_count - 1].kernel = KERNEL_COUNT;
}

static void kernel_that_runs_never(struct plan *plan)
{
    plan->items[0].count = 0;
}

static void work_past_the_last(struct plan *plan)
{
    plan->ops[first_op_of_stream(plan, STREAM_COMPUTE)].work = plan->work_count;
}

static void unit_of_no_job(struct plan *plan)
{
    plan->units[1].job = plan->jobs.count;
}

static void unit_of_no_shard(struct plan *plan)
{
    plan->units[1].shard = plan->shard_count;
}

static void unit_of_no_pass(struct plan *plan)
{
    plan->units[1].pass = PLAN_PASS_COUNT;
}

static void activations_of_no_kind(struct plan *plan)
{
    plan->job_activations[0] = ACTIVATIONS_COUNT;
}

static void inputs_of_one_shard(struct plan *plan)
{
    plan->shards[1].inputs_only = false;
}

static void inputs_of_an_embedding(struct plan *plan)
{
    plan->shards[0].inputs_only = true;
}

/* Makes the kernels claim that the loss keeps all activations, which its shard denies. */
static void inputs_of_the_loss(struct plan *plan)
{
    plan->shards[2].inputs_only = true;
}

/* --- operations -------------------------------------------------------------------------- */

static void copy_on_compute(struct draft *d)
{
    breakage_op(d, 1, PLAN_FORWARD, STREAM_H2D, BUFFER_BOUNDARY)->op.stream = STREAM_COMPUTE;
}

static void copy_the_wrong_way(struct draft *d)
{
    breakage_op(d, 1, PLAN_FORWARD, STREAM_H2D, BUFFER_BOUNDARY)->op.stream = STREAM_D2H;
}

static void compute_on_d2h(struct draft *d)
{
    breakage_op(d, 1, PLAN_FORWARD, STREAM_COMPUTE, BUFFER_BOUNDARY)->op.stream = STREAM_D2H;
}

static void copy_past_the_end(struct draft *d)
{
    breakage_op(d, 1, PLAN_FORWARD, STREAM_H2D, BUFFER_BOUNDARY)->accesses[0].offset_bytes = 64;
}

static void copy_to_another_kind(struct draft *d)
{
    breakage_op(d, 1, PLAN_BACKWARD, STREAM_H2D, BUFFER_BOUNDARY)->accesses[0].buffer.shard = 2;
}

static void copy_reads_only(struct draft *d)
{
    breakage_op(d, 1, PLAN_FORWARD, STREAM_H2D, BUFFER_BOUNDARY)->accesses[1].flags = ACCESS_READ;
}

static void other_job(struct draft *d)
{
    breakage_op(d, 1, PLAN_FORWARD, STREAM_H2D, BUFFER_BOUNDARY)->accesses[0].buffer.job = 1;
}

static void accessed_twice(struct draft *d)
{
    struct draft_op *op = breakage_op(d, 1, PLAN_FORWARD, STREAM_COMPUTE, BUFFER_BOUNDARY);
    op->accesses[op->access_count++] =
        (struct draft_access){.buffer = op->accesses[2].buffer, .flags = ACCESS_READ};
}

static void useless_access(struct draft *d)
{
    struct draft_op *op = breakage_op(d, 1, PLAN_FORWARD, STREAM_COMPUTE, BUFFER_BOUNDARY);
    struct plan_buffer buffer = {BUFFER_BOUNDARY_GRADIENT, 0, 1, 0, true, 1024};
    op->accesses[op->access_count++] = (struct draft_access){.buffer = buffer,
                                                             .flags = ACCESS_READ};
}

static void state_only_read(struct draft *d)
{
    breakage_compute(d, 1, PLAN_BACKWARD, BUFFER_STATE)->flags = ACCESS_READ;
}

static void input_not_read(struct draft *d)
{
    struct draft_op *op = breakage_op(d, 1, PLAN_BACKWARD, STREAM_COMPUTE, BUFFER_BOUNDARY);
    struct draft_access *access = draft_access(op, BUFFER_BOUNDARY);
    *access = op->accesses[--op->access_count];
}

static void acquire_on_host(struct draft *d)
{
    breakage_op(d, 1, PLAN_FORWARD, STREAM_D2H, BUFFER_BOUNDARY)->accesses[1].flags |= ACCESS_RELEASE;
}

static void batch_by_device(struct draft *d)
{
    breakage_op(d, 0, PLAN_FORWARD, STREAM_HOST, BUFFER_BATCH)->accesses[0].flags |= ACCESS_READ;
}

static void loss_of_a_middle_shard(struct draft *d)
{
    breakage_op(d, 1, PLAN_FORWARD, STREAM_COMPUTE, BUFFER_BOUNDARY)->op.pass = PLAN_LOSS;
    draft_unit(d, 0, 1, PLAN_FORWARD)->pass = PLAN_LOSS;
}

static void compute_of_another_pass(struct draft *d)
{
    breakage_op(d, 1, PLAN_FORWARD, STREAM_COMPUTE, BUFFER_BOUNDARY)->op.pass = PLAN_BACKWARD;
}

/* --- waiting ----------------------------------------------------------------------------- */

static void waits_for_itself(struct draft *d)
{
    struct draft_op *op = &draft_unit(d, 0, 1, PLAN_FORWARD)->ops[1];
    op->has_after = true;
    op->after = (struct plan_after){.tasks = 0, .op = 2};
}

static void waits_before_the_beginning(struct draft *d)
{
    struct draft_op *op = &draft_unit(d, 0, 1, PLAN_FORWARD)->ops[1];
    op->has_after = true;
    op->after = (struct plan_after){.tasks = 2, .op = 0};
}

static void waits_for_nothing(struct draft *d)
{
    struct draft_op *op = &draft_unit(d, 0, 1, PLAN_FORWARD)->ops[1];
    op->has_after = true;
    op->after = (struct plan_after){.tasks = 1, .op = 5};
}

/* --- layers, work ------------------------------------------------------------------------ */

static void layer_missing(struct draft *d)
{
    d->shards[2] = (struct plan_shard){0, 3, 1, false};
    d->shards[1] = (struct plan_shard){0, 2, 1, false};
}

static void layer_twice(struct draft *d)
{
    d->shards[2] = (struct plan_shard){0, 1, 2, false};
}

static void layers_end_early(struct plan *plan)
{
    plan->shards[2].layer_count = 0;
}

static void embedding_not_alone(struct plan *plan)
{
    plan->shards[0].layer_count = 2;
    plan->shards[1] = (struct plan_shard){0, 2, 1, false};
    plan->job_first_shard[1] = 2;
    plan->shard_count = 2;
}

static void work_changed(struct draft *d)
{
    breakage_op(d, 1, PLAN_FORWARD, STREAM_COMPUTE, BUFFER_BOUNDARY)->items[0].m++;
}

static void work_missing(struct draft *d)
{
    breakage_op(d, 2, PLAN_LOSS, STREAM_COMPUTE, BUFFER_BOUNDARY)->item_count--;
}

/* --- tables ------------------------------------------------------------------------------ */

static void two_buffers_of_one_name(struct plan *plan)
{
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].kind == BUFFER_BOUNDARY_GRADIENT && plan->buffers[b].shard == 2)
            plan->buffers[b].shard = 1;
}

static void table_on_the_host(struct plan *plan)
{
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].kind == BUFFER_TABLE) plan->buffers[b].on_device = false;
}

static void boundary_of_no_shard(struct plan *plan)
{
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].kind == BUFFER_BOUNDARY) plan->buffers[b].shard -= 1;
}

static void loss_of_a_shard(struct plan *plan)
{
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].kind == BUFFER_LOSS) plan->buffers[b].shard = 2;
}

static void crooked_slot(struct plan *plan)
{
    plan->slots[1].offset_bytes += 4;
}

static void endless_slot(struct plan *plan)
{
    plan->slots[1] = (struct plan_slot){.offset_bytes = 64, .bytes = UINT64_MAX - 3};
}

static void unknown_unit(struct plan *plan)
{
    plan->tasks[3].unit = plan->unit_count;
}

static void unknown_slot(struct plan *plan)
{
    plan->layouts[plan->tasks[2].layout] = plan->slot_count;
}

static void unknown_buffer(struct plan *plan)
{
    plan->accesses[2].buffer = plan->buffer_count;
}

static void empty_segment(struct plan *plan)
{
    plan->segments[0].repeat_count = 0;
}

static void shared_operations(struct plan *plan)
{
    plan->units[1].first_op--;
}

static void bound_of_no_kind(struct plan *plan)
{
    plan->bound_kind = BOUND_KIND_COUNT;
}

static void order_of_no_kind(struct plan *plan)
{
    plan->order.kind = PLAN_ORDER_COUNT;
}

static void large_seed(struct plan *plan)
{
    plan->seed = UINT64_MAX;
}

/* --- table --------------------------------------------------------------------------------- */

static const struct breakage breakages[] = {
    {SPILLED, NULL, buffer_of_no_kind, "form: buffer 0 is of kind "},
    {SPILLED, NULL, buffer_of_no_job, "form: buffer 0 is of kind 4 and job 1"},
    {SPILLED, NULL, kernel_of_no_kind, "form: work item 40 has kernel "},
    {SPILLED, NULL, kernel_that_runs_never, "form: work item 0 has kernel 11, 0 times"},
    {SPILLED, NULL, work_past_the_last, "unit 0, operation 3 (job-0 shard 0 forward): form: work 5 does not exist"},
    {SPILLED, NULL, unit_of_no_job, "unit 1 (no job shard 0 backward): form: job 1 and pass 2"},
    {SPILLED, NULL, unit_of_no_shard, "unit 1 (job-0 shard 3 backward): form: shard 3 does not exist (there are 3)"},
    {SPILLED, NULL, unit_of_no_pass, "unit 1 (job-0 shard 0 pass): form: job 0 and pass "},
    {SPILLED, NULL, activations_of_no_kind, "form: job-0 treats activations in no known way"},
    {{.devices = 1, .jobs = 1, .middle = 1, .blocks = 3, .minibatches = 2,
      .activations = ACTIVATIONS_KEEP_INPUTS},
     NULL, inputs_of_one_shard,
     "form: job-0 shard 1 holds all activations (expected inputs only)"},
    {SPILLED, NULL, inputs_of_an_embedding,
     "form: job-0 shard 0 holds inputs only (expected all activations)"},
    {{.devices = 1, .jobs = 1, .middle = 1, .blocks = 3, .minibatches = 2}, NULL,
     inputs_of_the_loss,
     "unit 4, operation 4 (job-0 shard 2 loss): work: 4 x norm_forward(32, 8, 0) (expected 6 x "
     "norm_forward(32, 8, 0))"},
    {SPILLED, copy_on_compute, NULL,
     "unit 2, operation 1 (compute of boundary of job-0 shard 1): form: a copy on the compute "
     "stream"},
    {SPILLED, copy_the_wrong_way, NULL,
     "unit 2, operation 1 (d2h of boundary of job-0 shard 1): form: a copy on the d2h stream "
     "from the host to the device"},
    {SPILLED, compute_on_d2h, NULL,
     "unit 2, operation 2 (job-0 shard 1 forward): form: a computation on the d2h stream"},
    {SPILLED, copy_past_the_end, NULL,
     "unit 2, operation 1 (h2d of boundary of job-0 shard 1): form: copies 1024 bytes at 64 "
     "of the boundary of job-0 shard 1 (it has 1024)"},
    {SPILLED, copy_to_another_kind, NULL,
     "unit 3, operation 2 (h2d of boundary of job-0 shard 2): form: copies the boundary of "
     "job-0 shard 2 to the boundary of job-0 shard 1"},
    {SPILLED, copy_reads_only, NULL,
     "unit 2, operation 1 (h2d of boundary of job-0 shard 1): form: a copy reads its source "
     "and writes its destination"},
    {{.devices = 1, .jobs = 2, .middle = 1, .minibatches = 1}, other_job, NULL,
     "unit 2, operation 1 (h2d of boundary of job-1 shard 1): form: accesses the boundary of "
     "job-1 shard 1, of another job"},
    {SPILLED, accessed_twice, NULL,
     "unit 2, operation 2 (job-0 shard 1 forward): form: accesses the boundary of job-0 shard "
     "1 twice"},
    {SPILLED, useless_access, NULL,
     "unit 2, operation 2 (job-0 shard 1 forward): form: accesses the boundary gradient of "
     "job-0 shard 1, which it has no use for"},
    {SPILLED, state_only_read, NULL,
     "unit 3, operation 3 (job-0 shard 1 backward): form: reads the state of job-0 shard 1 "
     "(expected: changes it)"},
    {SPILLED, input_not_read, NULL,
     "unit 3, operation 3 (job-0 shard 1 backward): training: does not access its boundary "
     "(1024 bytes)"},
    {SPILLED, acquire_on_host, NULL,
     "unit 2, operation 3 (d2h of boundary of job-0 shard 2): form: acquires or releases the "
     "boundary of job-0 shard 2 on the host"},
    {SPILLED, batch_by_device, NULL,
     "unit 0, operation 0 (job-0 shard 0 batch): form: a batch is written only to the host's "
     "batch buffer"},
    {SPILLED, loss_of_a_middle_shard, NULL,
     "unit 2, operation 2 (job-0 shard 1 loss): training: only the last shard computes the "
     "loss"},
    {SPILLED, compute_of_another_pass, NULL,
     "unit 2, operation 2 (job-0 shard 1 backward): form: a backward in a unit that is about "
     "forward"},
    {SPILLED, waits_for_itself, NULL,
     "task 1, operation 1 (h2d of boundary of job-0 shard 1): waiting: waits for "
     "operation 2 of its own task (deadlock)"},
    {SPILLED, waits_before_the_beginning, NULL,
     "task 1, operation 1 (h2d of boundary of job-0 shard 1): waiting: waits for an "
     "operation 2 tasks back (there are 1)"},
    {SPILLED, waits_for_nothing, NULL,
     "task 1, operation 1 (h2d of boundary of job-0 shard 1): waiting: waits for "
     "operation 5 of task 0 (it has 5)"},
    {SPILLED, layer_missing, NULL,
     "layers: job-0 shard 1 begins at layer 2 (expected 1)"},
    {SPILLED, layer_twice, NULL,
     "layers: job-0 shard 2 begins at layer 1 (expected 2)"},
    {SPILLED, NULL, layers_end_early,
     "layers: job-0 shard 2 has 0 layers (expected 1 to 1)"},
    {SPILLED, NULL, embedding_not_alone,
     "layers: job-0 has its embedding in a shard with other layers"},
    {SPILLED, work_changed, NULL,
     "unit 2, operation 2 (job-0 shard 1 forward): work: 1 x norm_forward(33, 8, 0) (expected "
     "1 x norm_forward(32, 8, 0))"},
    {SPILLED, work_missing, NULL,
     "unit 4, operation 4 (job-0 shard 2 loss): work: 6 kinds of kernels (expected 7)"},
    {SPILLED, NULL, two_buffers_of_one_name,
     "form: buffers 7 and 18 are both the boundary gradient of job-0 shard 1 on the host"},
    {SPILLED, NULL, table_on_the_host,
     "form: table of job-0 is no buffer of the host"},
    {SPILLED, NULL, boundary_of_no_shard,
     "form: boundary of job-0 shard 0 belongs to none of its 3 shards"},
    {SPILLED, NULL, loss_of_a_shard,
     "form: loss of job-0 shard 2 belongs to a shard (expected to the job)"},
    {SPILLED, NULL, crooked_slot,
     "form: slot 1 begins at byte 260, not at a multiple of 64"},
    {SPILLED, NULL, endless_slot,
     "form: slot 1 ends beyond 2^64 bytes"},
    {SPILLED, NULL, unknown_unit,
     "form: task 3 is of unit 5 on device 0"},
    {SPILLED, NULL, unknown_slot,
     "form: task 2 has slots that do not exist"},
    {SPILLED, NULL, unknown_buffer,
     "unit 0, operation 1 (job-0 shard 0 forward): form: buffer 28 does not exist"},
    {SPILLED, NULL, empty_segment,
     "form: segment 0 repeats 10 tasks 0 times"},
    {SPILLED, NULL, shared_operations,
     "unit 1 (job-0 shard 0 backward): form: its operations are not after the previous unit's"},
    {SPILLED, NULL, bound_of_no_kind, "form: a bound of kind "},
    {SPILLED, NULL, order_of_no_kind, "form: an order's bound of kind "},
    {SPILLED, NULL, large_seed,
     "form: seed 18446744073709551615 (limit is 2^63 - 1: JSON integers)"},
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
