/*
 * The judge of plans: it accepts right ones and has a complaint of its own for each way to be
 * wrong.
 *
 * Each breakage changes one thing in a correct plan, in the draft (operations, order) or in the
 * finished tables, and expects one exact message. The network of the drafts is a GPT-2 of width 8,
 * 96 words, 32 positions; microbatch 2, sequence 16, so a boundary has 2 * 16 * 8 * 4 = 1024 bytes,
 * the token table 96 * 8 * 4 = 3072, the embedding (96 + 32) * 32 = 4096 per part of its state.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "planner/check/plan_check.h"
#include "tests/support/planner/support_plan.h"

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

/* --- breakages ------------------------------------------------------------------------------ */

/* One job of three shards (embedding, block, head), two minibatches, on one device: instances
 *   0 forward 0   1 forward 1   2 loss   3 backward 1   4 backward 0   5 forward 0 ... */
#define SPILLED {.devices = 1, .jobs = 1, .middle = 1, .minibatches = 2}
#define SLICED {.devices = 1, .jobs = 1, .middle = 1, .minibatches = 2, .slices = 3}
#define RESIDENT {.devices = 1, .jobs = 1, .middle = 1, .minibatches = 2, .resident = true}

/* Instances on devices 0 and 1 in turn, but for the first each fetches from the other; of three
 * devices from the one before. */
#define DIRECT {.devices = 2, .jobs = 1, .middle = 1, .minibatches = 2, .direct = true}
#define DIRECT_3 {.devices = 3, .jobs = 1, .middle = 1, .minibatches = 2, .direct = true}
#define DIRECT_JOBS {.devices = 2, .jobs = 2, .middle = 1, .minibatches = 1, .direct = true}

struct breakage {
    struct draft_shape shape;
    void (*in_draft)(struct draft *d);
    void (*in_plan)(struct plan *plan);
    const char *complaint; /* or how it begins, up to a blank, where the number of a table's kinds follows */
};

static struct draft_op *find(struct draft *d, uint32_t shard, uint32_t pass, uint32_t stream,
                             uint32_t kind)
{
    struct draft_unit *unit = draft_unit(d, 0, shard, pass);
    return &unit->ops[draft_find(unit, stream, kind)];
}

/* The first operation on streams of this kind. */
static uint32_t in_units(const struct plan *plan, uint32_t stream)
{
    uint32_t o = 0;
    while (plan->ops[o].stream != stream) assert_true(++o < plan->op_count);
    return o;
}

/* The access of `kind` in the computation. */
static struct draft_access *in_compute(struct draft *d, uint32_t shard, uint32_t pass,
                                       uint32_t kind)
{
    return draft_access(find(d, shard, pass, STREAM_COMPUTE, kind), kind);
}

/* The device's end of the copy of `kind`. */
static struct draft_access *in_copy(struct draft *d, uint32_t shard, uint32_t pass,
                                    uint32_t stream, uint32_t kind)
{
    return &find(d, shard, pass, stream, kind)->accesses[stream == STREAM_H2D ? 1 : 0];
}

static void drop(struct draft *d, uint32_t shard, uint32_t pass, uint32_t stream, uint32_t kind)
{
    struct draft_unit *unit = draft_unit(d, 0, shard, pass);
    draft_drop_op(unit, draft_find(unit, stream, kind));
}

/* memory */

static void overlap(struct draft *d)
{
    /* the boundary comes in right after the state, 256 bytes too early */
    in_copy(d, 1, PLAN_BACKWARD, STREAM_H2D, BUFFER_BOUNDARY)->slot_offset -= 256;
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
    in_copy(d, 1, PLAN_FORWARD, STREAM_H2D, BUFFER_BOUNDARY)->slot_bytes = 1023;
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

/* Numbers past the end of the table that they are of. */

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
    plan->ops[in_units(plan, STREAM_COMPUTE)].work = plan->work_count;
}

/* Back before forward, through the same shard. */
static void backward_first(struct plan *plan)
{
    const struct plan_instance forward = plan->instances[1];
    plan->instances[1] = plan->instances[3];
    plan->instances[3] = forward;
}

static void unit_of_no_job(struct plan *plan)
{
    plan->units[1].job = plan->jobs.count;
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

/* The kernels say that the loss holds all activations, the shard that it does not. */
static void inputs_of_the_loss(struct plan *plan)
{
    plan->shards[2].inputs_only = true;
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
    struct draft_op *op = find(d, 1, PLAN_FORWARD, STREAM_COMPUTE, BUFFER_WORKSPACE);
    assert_int_equal(op->accesses[0].buffer.kind, BUFFER_WORKSPACE);
    for (uint32_t a = 1; a < op->access_count; a++) op->accesses[a - 1] = op->accesses[a];
    op->access_count--;
}

static void workspace_too_small(struct draft *d)
{
    in_compute(d, 2, PLAN_LOSS, BUFFER_WORKSPACE)->buffer.bytes -= 64;
}

/* lifetimes */

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
    in_copy(d, 2, PLAN_LOSS, STREAM_D2H, BUFFER_LOSS)->flags &= ~(uint32_t)ACCESS_RELEASE;
}

static void never_released_at_the_end(struct draft *d)
{
    struct draft_unit *last = draft_own(d, d->instance_count - 1);
    uint32_t at = draft_find(last, STREAM_D2H, BUFFER_STATE);
    last->ops[at].accesses[0].flags &= ~(uint32_t)ACCESS_RELEASE;
}

static void released_too_early(struct draft *d)
{
    in_compute(d, 1, PLAN_BACKWARD, BUFFER_STATE)->flags |= ACCESS_RELEASE;
}

static void read_before_write(struct draft *d)
{
    /* the loss leaves before it is computed: acquired by an empty copy instead */
    struct draft_unit *unit = draft_unit(d, 0, 0, PLAN_FORWARD);
    drop(d, 0, PLAN_FORWARD, STREAM_HOST, BUFFER_BATCH);
    assert_int_equal(unit->ops[0].op.kind, OP_COPY);
}

static void parts_never_written(struct draft *d)
{
    find(d, 1, PLAN_FORWARD, STREAM_H2D, BUFFER_PARAMETERS)->op.bytes -= 64;
}

/* training: versions */

static void copy_out_lost(struct draft *d)
{
    /* the state is released by its last reader instead */
    drop(d, 1, PLAN_BACKWARD, STREAM_D2H, BUFFER_STATE);
    in_compute(d, 1, PLAN_BACKWARD, BUFFER_STATE)->flags |= ACCESS_RELEASE;
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
    drop(d, 2, PLAN_LOSS, STREAM_D2H, BUFFER_LOSS);
    in_compute(d, 2, PLAN_LOSS, BUFFER_LOSS)->flags |= ACCESS_RELEASE;
}

static void store_lost(struct draft *d)
{
    draft_drop_instance(d, draft_instance(d, 0, 1, PLAN_STORE, 0));
}

static void store_unread(struct draft *d)
{
    /* the head's unit stores nothing: its copy is one of no bytes */
    struct draft_unit *unit = draft_unit(d, 0, 2, PLAN_STORE);
    unit->ops[0].op.bytes = 0;
}

static void loaded_twice(struct draft *d)
{
    draft_repeat_instance(d, draft_instance(d, 0, 1, PLAN_LOAD, 0));
}

static void stored_too_early(struct draft *d)
{
    draft_swap_instances(d, draft_instance(d, 0, 0, PLAN_STORE, 0),
                         draft_instance(d, 0, 0, PLAN_BACKWARD, 1));
}

/* training: order */

static void unit_missing(struct draft *d)
{
    draft_drop_instance(d, 3);
}

static void unit_doubled(struct draft *d)
{
    draft_repeat_instance(d, 1);
}

static void wrong_order(struct draft *d)
{
    draft_swap_instances(d, 1, 2);
}

static void minibatch_missing(struct draft *d)
{
    for (int i = 0; i < 5; i++) draft_drop_instance(d, d->instance_count - 1);
}

static void half_a_minibatch(struct draft *d)
{
    draft_drop_instance(d, d->instance_count - 1);
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

/* slices */

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
    find(d, 0, PLAN_FORWARD, STREAM_H2D, BUFFER_PARAMETERS)->accesses[0].offset_bytes += 32;
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

/* form: operations */

static void copy_on_compute(struct draft *d)
{
    find(d, 1, PLAN_FORWARD, STREAM_H2D, BUFFER_BOUNDARY)->op.stream = STREAM_COMPUTE;
}

static void copy_the_wrong_way(struct draft *d)
{
    find(d, 1, PLAN_FORWARD, STREAM_H2D, BUFFER_BOUNDARY)->op.stream = STREAM_D2H;
}

static void compute_on_d2h(struct draft *d)
{
    find(d, 1, PLAN_FORWARD, STREAM_COMPUTE, BUFFER_BOUNDARY)->op.stream = STREAM_D2H;
}

static void copy_past_the_end(struct draft *d)
{
    find(d, 1, PLAN_FORWARD, STREAM_H2D, BUFFER_BOUNDARY)->accesses[0].offset_bytes = 64;
}

static void copy_to_another_kind(struct draft *d)
{
    find(d, 1, PLAN_BACKWARD, STREAM_H2D, BUFFER_BOUNDARY)->accesses[0].buffer.shard = 2;
}

static void copy_reads_only(struct draft *d)
{
    find(d, 1, PLAN_FORWARD, STREAM_H2D, BUFFER_BOUNDARY)->accesses[1].flags = ACCESS_READ;
}

static void other_job(struct draft *d)
{
    find(d, 1, PLAN_FORWARD, STREAM_H2D, BUFFER_BOUNDARY)->accesses[0].buffer.job = 1;
}

static void accessed_twice(struct draft *d)
{
    struct draft_op *op = find(d, 1, PLAN_FORWARD, STREAM_COMPUTE, BUFFER_BOUNDARY);
    op->accesses[op->access_count++] =
        (struct draft_access){.buffer = op->accesses[2].buffer, .flags = ACCESS_READ};
}

static void useless_access(struct draft *d)
{
    struct draft_op *op = find(d, 1, PLAN_FORWARD, STREAM_COMPUTE, BUFFER_BOUNDARY);
    struct plan_buffer buffer = {BUFFER_BOUNDARY_GRADIENT, 0, 1, 0, true, 1024};
    op->accesses[op->access_count++] = (struct draft_access){.buffer = buffer,
                                                             .flags = ACCESS_READ};
}

static void state_only_read(struct draft *d)
{
    in_compute(d, 1, PLAN_BACKWARD, BUFFER_STATE)->flags = ACCESS_READ;
}

static void input_not_read(struct draft *d)
{
    struct draft_op *op = find(d, 1, PLAN_BACKWARD, STREAM_COMPUTE, BUFFER_BOUNDARY);
    struct draft_access *access = draft_access(op, BUFFER_BOUNDARY);
    *access = op->accesses[--op->access_count];
}

static void acquire_on_host(struct draft *d)
{
    find(d, 1, PLAN_FORWARD, STREAM_D2H, BUFFER_BOUNDARY)->accesses[1].flags |= ACCESS_RELEASE;
}

static void batch_by_device(struct draft *d)
{
    find(d, 0, PLAN_FORWARD, STREAM_HOST, BUFFER_BATCH)->accesses[0].flags |= ACCESS_READ;
}

static void loss_of_a_middle_shard(struct draft *d)
{
    find(d, 1, PLAN_FORWARD, STREAM_COMPUTE, BUFFER_BOUNDARY)->op.pass = PLAN_LOSS;
    draft_unit(d, 0, 1, PLAN_FORWARD)->pass = PLAN_LOSS;
}

static void compute_of_another_pass(struct draft *d)
{
    find(d, 1, PLAN_FORWARD, STREAM_COMPUTE, BUFFER_BOUNDARY)->op.pass = PLAN_BACKWARD;
}

/* waiting */

static void waits_for_itself(struct draft *d)
{
    struct draft_op *op = &draft_unit(d, 0, 1, PLAN_FORWARD)->ops[1];
    op->has_after = true;
    op->after = (struct plan_after){.instances = 0, .op = 2};
}

static void waits_before_the_beginning(struct draft *d)
{
    struct draft_op *op = &draft_unit(d, 0, 1, PLAN_FORWARD)->ops[1];
    op->has_after = true;
    op->after = (struct plan_after){.instances = 2, .op = 0};
}

static void waits_for_nothing(struct draft *d)
{
    struct draft_op *op = &draft_unit(d, 0, 1, PLAN_FORWARD)->ops[1];
    op->has_after = true;
    op->after = (struct plan_after){.instances = 1, .op = 5};
}

/* copies between devices */

static struct draft_op *fetch_of(struct draft *d, uint32_t shard, uint32_t pass)
{
    uint32_t kind = pass == PLAN_BACKWARD ? BUFFER_BOUNDARY_GRADIENT : BUFFER_BOUNDARY;
    return find(d, shard, pass, STREAM_P2P, kind);
}

static void source_given_back_early(struct draft *d)
{
    find(d, 0, PLAN_FORWARD, STREAM_D2H, BUFFER_BOUNDARY)->accesses[0].flags |= ACCESS_RELEASE;
}

/* The first unit of job 1 between a unit of job 0 and the one that fetches from it, on the same device in
 * the same half. */
static void source_overwritten(struct draft *d)
{
    draft_own(d, 5);
    struct draft_instance moved = d->instances[5];
    struct draft_unit *unit = d->units[moved.unit];
    for (uint32_t i = 5; i > 1; i--) d->instances[i] = d->instances[i - 1];
    moved.device = 0;
    d->instances[1] = moved;
    for (uint32_t o = 0; o < unit->op_count; o++)
        for (uint32_t a = 0; a < unit->ops[o].access_count; a++)
            unit->ops[o].accesses[a].slot_offset -= d->half_bytes; /* instance 1 has half 1 */
}

static void target_read_early(struct draft *d)
{
    struct draft_unit *unit = draft_unit(d, 0, 1, PLAN_FORWARD);
    draft_move_op(unit, draft_find(unit, STREAM_P2P, BUFFER_BOUNDARY), unit->op_count - 1);
}

static void fetch_too_short(struct draft *d)
{
    fetch_of(d, 1, PLAN_BACKWARD)->op.bytes -= 64;
}

static void fetch_to_the_wrong_place(struct draft *d)
{
    struct draft_op *op = fetch_of(d, 1, PLAN_BACKWARD);
    op->op.bytes -= 64;
    op->accesses[1].offset_bytes = 64;
}

static void source_kept(struct draft *d)
{
    fetch_of(d, 1, PLAN_FORWARD)->accesses[0].flags = ACCESS_READ;
}

static void fetch_of_a_state(struct draft *d)
{
    struct draft_op *op = fetch_of(d, 1, PLAN_FORWARD);
    op->accesses[0].buffer.kind = op->accesses[1].buffer.kind = BUFFER_STATE;
}

static void fetch_of_another(struct draft *d)
{
    fetch_of(d, 1, PLAN_FORWARD)->accesses[0].buffer.shard = 2;
}

static void fetch_without_peer(struct draft *d)
{
    d->instances[1].peer = PLAN_NONE;
}

static void fetch_from_itself(struct draft *d)
{
    d->instances[1].peer = 1;
}

static void fetch_from_another_device(struct draft *d)
{
    d->instances[1].peer = 2;
}

static void peer_without_fetch(struct draft *d)
{
    d->instances[0].peer = 1;
}

static void peer_unknown(struct plan *plan)
{
    plan->instances[1].peer = 3;
}

static void no_link(struct draft *d)
{
    d->hardware.devices[0].networks[0].group = 2;
}

static void no_links(struct draft *d)
{
    d->hardware.devices[0].network_count = 0;
    hardware_note_p2p(&d->hardware);
}

/* layers, work */

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
    find(d, 1, PLAN_FORWARD, STREAM_COMPUTE, BUFFER_BOUNDARY)->items[0].m++;
}

static void work_missing(struct draft *d)
{
    find(d, 2, PLAN_LOSS, STREAM_COMPUTE, BUFFER_BOUNDARY)->item_count--;
}

/* form: tables */

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
    plan->instances[3].unit = plan->unit_count;
}

static void unknown_slot(struct plan *plan)
{
    plan->layouts[plan->instances[2].layout] = plan->slot_count;
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

static void large_seed(struct plan *plan)
{
    plan->seed = UINT64_MAX;
}

static const struct breakage breakages[] = {
    {SPILLED, overlap, NULL,
     "instance 3, operation 2 (h2d of boundary of job-0 shard 1): memory: the boundary of "
     "job-0 shard 1 at bytes 4206336 to 4207360 of device 0 overlaps the state of job-0 shard "
     "1 at 4195328 to 4206464"},
    {SPILLED, overrun_device, NULL,
     "instance 1, operation 0 (h2d of state of job-0 shard 1): memory: slot 4 ends at byte "
     "4198016, device 0 at 4195328"},
    {SPILLED, overrun_host, NULL,
     "memory: the host buffers are 31120 bytes (host memory is 30000)"},
    {SPILLED, slot_too_small, NULL,
     "instance 1, operation 1 (h2d of boundary of job-0 shard 1): memory: slot 5 has 1023 "
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
     "instance 1, operation 2 (h2d of boundary of job-0 shard 1): lifetimes: acquires the "
     "boundary of job-0 shard 1, which is live on device 0"},
    {SPILLED, never_released, NULL,
     "instance 6, operation 2 (job-0 shard 1 forward): memory: the workspace of job-0 shard 1 "
     "at bytes 4864 to 39680 of device 0 overlaps the loss of job-0 at 20736 to 20744"},
    {SPILLED, never_released_at_the_end, NULL,
     "lifetimes: the state of job-0 shard 0 is live on device 0 at the end"},
    {SPILLED, released_too_early, NULL,
     "instance 3, operation 5 (d2h of state of job-0 shard 1): lifetimes: accesses the state "
     "of job-0 shard 1, which is not live on device 0"},
    {SPILLED, read_before_write, NULL,
     "instance 0, operation 0 (h2d of batch of job-0): lifetimes: copies unwritten bytes from "
     "the batch of job-0"},
    {SPILLED, parts_never_written, NULL,
     "instance 1, operation 2 (job-0 shard 1 forward): lifetimes: reads unwritten "
     "bytes of the parameters of job-0 shard 1 (expected state of job-0 shard 1, version 0)"},
    {SPILLED, copy_out_lost, NULL,
     "instance 6, operation 2 (job-0 shard 1 forward): training: finds state of job-0 shard "
     "1, version 0 (expected state of job-0 shard 1, version 1)"},
    {SPILLED, copy_in_too_early, NULL,
     "instance 5, operation 2 (job-0 shard 0 forward): training: finds state of job-0 shard "
     "0, version 0 (expected state of job-0 shard 0, version 1)"},
    {SPILLED, old_batch, NULL,
     "instance 5, operation 2 (job-0 shard 0 forward): training: finds batch of job-0, "
     "minibatch 0 (expected batch of job-0, minibatch 1)"},
    {SPILLED, old_gradient, NULL,
     "instance 9, operation 4 (job-0 shard 0 backward): training: finds table gradient of "
     "job-0, minibatch 0 (expected table gradient of job-0, minibatch 1)"},
    {{.devices = 1, .jobs = 1, .middle = 1, .minibatches = 2, .activations = ACTIVATIONS_SPILL},
     old_activations, NULL,
     "instance 8, operation 4 (job-0 shard 1 backward): training: finds activations of job-0 "
     "shard 1, minibatch 0 (expected activations of job-0 shard 1, minibatch 1)"},
    {{.devices = 1, .jobs = 1, .middle = 1, .blocks = 3, .minibatches = 2,
      .activations = ACTIVATIONS_KEEP_INPUTS},
     NULL, all_activations,
     "unit 2, operation 2 (job-0 shard 1 forward): memory: the activations of job-0 shard 1 has 2048 "
     "bytes (expected 51200)"}, /* (32 rows, 8) of two layers; 3 (16 * 8 + 4 + heads) - 8 numbers a row */
    {SPILLED, NULL, buffer_of_no_kind, "form: buffer 0 is of kind "},
    {SPILLED, NULL, buffer_of_no_job, "form: buffer 0 is of kind 4 and job 1"},
    {SPILLED, NULL, kernel_of_no_kind, "form: work item 40 has kernel "},
    {SPILLED, NULL, kernel_that_runs_never, "form: work item 0 has kernel 11, 0 times"},
    {SPILLED, NULL, work_past_the_last, "unit 0, operation 3 (job-0 shard 0 forward): form: work 5 does not exist"},
    {SPILLED, NULL, unit_of_no_job, "unit 1 (no job shard 0 backward): form: job 1 and pass 2"},
    {SPILLED, NULL, unit_of_no_pass, "unit 1 (job-0 shard 0 pass): form: job 0 and pass "},
    {SPILLED, NULL, backward_first,
     "instance 1 (job-0 shard 1 backward): training: expected forward of job-0 shard 1, minibatch 0"},
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
    {SPILLED, loss_not_sent, NULL,
     "instance 4 (job-0 shard 0 backward): training: the loss of minibatch 0 is not on the "
     "host"},
    {RESIDENT, store_lost, NULL,
     "lifetimes: the state of job-0 shard 1 is live on device 0 at the end"},
    {RESIDENT, store_unread, NULL,
     "training: at the end the host has version 0 of the state of job-0 shard 2 (expected 2)"},
    {RESIDENT, loaded_twice, NULL,
     "instance 2 (job-0 shard 1 load): training: a second load of shard 1"},
    {RESIDENT, stored_too_early, NULL,
     "instance 12 (job-0 shard 0 store): training: expected backward of job-0 shard 0, "
     "minibatch 1"},
    {SPILLED, unit_missing, NULL,
     "instance 3 (job-0 shard 0 backward): training: expected backward of job-0 shard 1, "
     "minibatch 0"},
    {SPILLED, unit_doubled, NULL,
     "instance 2 (job-0 shard 1 forward): training: expected loss of job-0 shard 2, minibatch "
     "0"},
    {SPILLED, wrong_order, NULL,
     "instance 1 (job-0 shard 2 loss): training: expected forward of job-0 shard 1, minibatch "
     "0"},
    {SPILLED, minibatch_missing, NULL,
     "training: job-0 ends after 1 of 2 minibatches"},
    {SPILLED, half_a_minibatch, NULL,
     "training: job-0 ends in minibatch 1, before backward of shard 0"},
    {SPILLED, minibatch_too_many, NULL,
     "instance 5 (job-0 shard 0 forward): training: job-0 begins minibatch 1 (expected only 1)"},
    {SPILLED, ends_too_early, NULL,
     "instance 2 (job-0 shard 2 loss): form: ends the minibatch too early"},
    {SPILLED, ends_never, NULL,
     "instance 4 (job-0 shard 0 backward): form: does not end the minibatch"},
    {SPILLED, computed_twice, NULL,
     "unit 2 (job-0 shard 1 forward): training: 2 computations (expected 1)"},
    {SLICED, slice_missing, NULL,
     "unit 1 (job-0 shard 0 backward): training: slice 2 begins at row 84 (expected slice 1 "
     "at row 42)"},
    {SLICED, last_slice_missing, NULL,
     "unit 0 (job-0 shard 0 forward): training: its slices end at row 84 of 128"},
    {SLICED, slice_of_other_rows, NULL,
     "instance 0, operation 3 (job-0 shard 0 forward slice 0): training: finds other bytes of "
     "state of job-0 shard 0, version 0 than expected"},
    {SLICED, slice_not_sent, NULL,
     "instance 9, operation 6 (job-0 shard 0 backward slice 0): training: finds state of "
     "job-0 shard 0, version 0 (expected state of job-0 shard 0, version 1)"},
    {SLICED, wrong_gradient_rows, NULL,
     "instance 4, operation 6 (job-0 shard 0 backward slice 0): training: finds other bytes "
     "of table gradient of job-0, minibatch 0 than expected"},
    {SLICED, wrong_variant, NULL,
     "unit 0, operation 3 (job-0 shard 0 forward slice 0): form: accesses the parameters of "
     "job-0 shard 0 variant 2 (expected variant 1)"},
    {SLICED, boundary_forgotten_between_slices, NULL,
     "unit 0, operation 5 (job-0 shard 0 forward slice 1): form: writes the boundary of job-0 "
     "shard 1 (expected: changes it)"},
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
     "instance 1, operation 1 (h2d of boundary of job-0 shard 1): waiting: waits for "
     "operation 2 of its own instance (deadlock)"},
    {SPILLED, waits_before_the_beginning, NULL,
     "instance 1, operation 1 (h2d of boundary of job-0 shard 1): waiting: waits for an "
     "operation 2 instances back (there are 1)"},
    {SPILLED, waits_for_nothing, NULL,
     "instance 1, operation 1 (h2d of boundary of job-0 shard 1): waiting: waits for "
     "operation 5 of instance 0 (it has 5)"},
    {SPILLED, layer_missing, NULL,
     "layers: job-0 shard 1 begins at layer 2 (expected 1)"},
    {SPILLED, layer_twice, NULL,
     "layers: job-0 shard 2 begins at layer 1 (expected 2)"},
    {SPILLED, NULL, layers_end_early,
     "layers: job-0 shard 2 has 0 layers (expected 1 to 1)"},
    {SPILLED, NULL, embedding_not_alone,
     "layers: job-0 has its embedding together with other layers"},
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
     "form: instance 3 is of unit 5 on device 0"},
    {SPILLED, NULL, unknown_slot,
     "form: instance 2 has slots that do not exist"},
    {SPILLED, NULL, unknown_buffer,
     "unit 0, operation 1 (job-0 shard 0 forward): form: buffer 28 does not exist"},
    {SPILLED, NULL, empty_segment,
     "form: segment 0 repeats 10 instances 0 times"},
    {SPILLED, NULL, shared_operations,
     "unit 1 (job-0 shard 0 backward): form: its operations do not follow those of the unit "
     "before"},
    {DIRECT, source_given_back_early, NULL,
     "instance 1, operation 1 (p2p of boundary of job-0 shard 1): lifetimes: accesses the "
     "boundary of job-0 shard 1, which is not live on device 0"},
    {DIRECT_JOBS, source_overwritten, NULL,
     "instance 1, operation 3 (job-1 shard 0 forward): memory: the boundary of job-1 shard 1 "
     "at bytes 4864 to 5888 of device 0 overlaps the boundary of job-0 shard 1 at 4864 to "
     "5888"},
    {DIRECT, target_read_early, NULL,
     "instance 1, operation 1 (job-0 shard 1 forward): lifetimes: accesses the boundary of "
     "job-0 shard 1, which is not live on device 1"},
    {DIRECT, fetch_too_short, NULL,
     "instance 3, operation 3 (job-0 shard 1 backward): lifetimes: reads unwritten "
     "bytes of the boundary gradient of job-0 shard 2 (expected boundary gradient of job-0 "
     "shard 2, minibatch 0)"},
    {DIRECT, fetch_to_the_wrong_place, NULL,
     "instance 3, operation 3 (job-0 shard 1 backward): lifetimes: reads unwritten "
     "bytes of the boundary gradient of job-0 shard 2 (expected boundary gradient of job-0 "
     "shard 2, minibatch 0)"},
    {DIRECT, source_kept, NULL,
     "unit 2, operation 1 (p2p of boundary of job-0 shard 1): form: a copy between devices "
     "releases its source and acquires its destination"},
    {DIRECT, fetch_of_a_state, NULL,
     "unit 2, operation 1 (p2p of state of job-0 shard 1): form: a copy between devices of "
     "the state of job-0 shard 1 (expected a boundary or its gradient)"},
    {DIRECT, fetch_of_another, NULL,
     "unit 2, operation 1 (p2p of boundary of job-0 shard 2): form: copies the boundary of "
     "job-0 shard 2 of a device to the boundary of job-0 shard 1 of another"},
    {DIRECT, fetch_without_peer, NULL,
     "instance 1, operation 1 (p2p of boundary of job-0 shard 1): form: a copy between "
     "devices in an instance without a peer"},
    {DIRECT, fetch_from_itself, NULL,
     "instance 1, operation 1 (p2p of boundary of job-0 shard 1): form: device 1 has no "
     "direct link to device 1"},
    {DIRECT_3, fetch_from_another_device, NULL,
     "instance 1, operation 1 (p2p of boundary of job-0 shard 1): lifetimes: accesses the "
     "boundary of job-0 shard 1, which is not live on device 2"},
    {DIRECT, peer_without_fetch, NULL,
     "form: instance 0 has peer 1, but its unit copies nothing between devices"},
    {DIRECT, NULL, peer_unknown,
     "form: instance 1 has peer 3"},
    {DIRECT_3, no_link, NULL,
     "instance 1, operation 1 (p2p of boundary of job-0 shard 1): form: device 1 has no "
     "direct link to device 0"},
    {DIRECT, no_links, NULL,
     "unit 1, operation 0 (job-0 shard 0 backward): form: kind 0 on stream 3, pass 0"},
    {SPILLED, NULL, large_seed,
     "form: seed 18446744073709551615 (limit is 2^63 - 1: JSON integers)"},
};

static bool is_said(const char *complaint, const char *text)
{
    size_t length = strlen(complaint);
    return length > 0 && complaint[length - 1] == ' ' ? strncmp(text, complaint, length) == 0 : strcmp(text, complaint) == 0;
}

static void test_breakages(void **state)
{
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < ARRAY_COUNT(breakages); i++) {
        const struct breakage *b = &breakages[i];
        struct draft *draft = draft_create(&b->shape);
        struct plan plan;
        struct error err = {0};
        if (b->in_draft) b->in_draft(draft);
        draft_build(draft, &plan);
        if (b->in_plan) b->in_plan(&plan);
        enum status status = plan_check(&plan, &err);
        if (status != STATUS_CHECK || !is_said(b->complaint, err.text)) {
            print_message("breakage %zu, expected: %s\n                found: %s\n", i,
                          b->complaint, err.text);
            wrong++;
        }
        plan_release(&plan);
        draft_destroy(draft);
    }
    assert_int_equal(wrong, 0);
}

/* Without memory there is no verdict, and nothing leaks. */
static void test_allocation_failures(void **state)
{
    (void)state;
    const struct draft_shape shape = SLICED;
    struct plan plan;
    support_plan(&shape, &plan);
    enum status status = STATUS_NO_MEMORY;
    for (uint64_t n = 1; status == STATUS_NO_MEMORY; n++) {
        struct error err = {0};
        alloc_test_fail_at(n);
        status = plan_check(&plan, &err);
        assert_true(n < 1000);
    }
    alloc_test_fail_at(0);
    assert_int_equal(status, STATUS_OK);
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
