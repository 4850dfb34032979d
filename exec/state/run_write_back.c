/* struct run_device_state notes state that is newer on a device than on the host. */
#include "exec/state/run_write_back.h"

#include <assert.h>

#include "base/try.h"
#include "exec/state/run_in_flight.h"
#include "exec/state/run_peers.h"
#include "exec/state/run_saver.h"
#include "exec/state/run_shares.h"
#include "exec/state/run_storage.h"

static struct run_device_state *device_state_of(const struct run_loop *loop, const struct plan_walk_op *op,
                                            uint32_t buffer)
{
    return &loop->states[(size_t)op->device * loop->plan->buffer_count + buffer];
}

static uint32_t shard_of(const struct run_loop *loop, const struct plan_buffer *buffer)
{
    return loop->plan->job_first_shard[buffer->job] + buffer->shard;
}

/* Returns the copy's minibatch. State that goes back uses the minibatch in which it arrived: if its copy in was
 * skipped, so is its copy back; if not, it may contain finished minibatches. */
uint64_t run_copied_minibatch(const struct run_loop *loop, const struct plan_walk_op *op)
{
    const struct plan_place_use *const from = &op->uses[0];
    if (op->op->stream == STREAM_WRITE) return loop->staged[from->buffer].arrived;
    if (!plan_use_on_device(from) || loop->plan->buffers[from->buffer].kind != BUFFER_STATE)
        return op->minibatch;
    return device_state_of(loop, op, from->buffer)->arrived;
}

/* --- following ---------------------------------------------------------------------------------- */

static void follow_staged(struct run_loop *loop, const struct plan_walk_op *op)
{
    for (uint32_t i = 0; i < op->use_count; i++) {
        const struct plan_place_use *const use = &op->uses[i];
        if (loop->plan->buffers[use->buffer].kind != BUFFER_STAGED) continue;
        struct run_staged_state *const staged = &loop->staged[use->buffer];
        if (use->flags & ACCESS_WRITE)
            *staged = (struct run_staged_state){.arrived = run_copied_minibatch(loop, op),
                                            .fresh = op->op->stream == STREAM_D2H};
        else if (op->op->stream == STREAM_WRITE)
            staged->fresh = !(use->flags & ACCESS_RELEASE) && staged->fresh;
    }
}

void run_follow_state(struct run_loop *loop, const struct plan_walk_op *op)
{
    if (loop->run->storage) follow_staged(loop, op);
    for (uint32_t i = 0; i < op->use_count; i++) {
        const struct plan_place_use *const use = &op->uses[i];
        const struct plan_buffer *const buffer = &loop->plan->buffers[use->buffer];
        if (!plan_use_on_device(use) || buffer->kind != BUFFER_STATE) continue;
        if (op->rank >= run_shares_ranks(loop->run, shard_of(loop, buffer))) continue; /* replicas are equal */
        struct run_device_state *const state = device_state_of(loop, op, use->buffer);
        if (use->flags & ACCESS_ACQUIRE)
            *state = (struct run_device_state){.rank = op->rank, .arrived = op->minibatch, .bytes = buffer->bytes};
        if (op->op->kind == OP_COMPUTE && (use->flags & ACCESS_WRITE)) {
            state->address = use->address;
            state->first_row = op->op->first_row;
            state->row_count = op->op->row_count;
            state->changed_bytes = buffer->bytes -
                                   loop->run->tables[shard_of(loop, buffer)].state.layout.parts[STATE_FROZEN].bytes;
        } else if (op->op->kind == OP_COPY && i == 0) {
            state->changed_bytes -=
                op->op->bytes < state->changed_bytes ? op->op->bytes : state->changed_bytes;
        }
    }
}

bool run_saves_state(const struct run_loop *loop, const struct plan_walk_op *op)
{
    if (op->op->stream == STREAM_WRITE) return loop->staged[op->uses[0].buffer].fresh;
    return op->op->kind == OP_COPY && op->uses[0].place != 0 &&
           loop->plan->buffers[op->uses[0].buffer].kind == BUFFER_STATE &&
           device_state_of(loop, op, op->uses[0].buffer)->changed_bytes > 0;
}

/* --- bringing back ------------------------------------------------------------------------------ */

/* Copies newer state; a slice of an embedding is a range of rows in each part. */
void run_bring_state(struct run *run, uint32_t device, uint32_t buffer,
                     const struct run_device_state *state, char *to, struct device_guard guard)
{
    const struct plan *const plan = run->plan;
    const struct plan_buffer *const about = &plan->buffers[buffer];
    const uint32_t shard = plan->job_first_shard[about->job] + about->shard;
    const struct job *const job = &plan->jobs.jobs[about->job];
    if (run_is_split(run, shard)) {
        run_shares_bring(run, device, shard, state, to, guard);
        return;
    }
    const char *const arena = (const char *)device_arena(run->devices[device]);
    const struct state_layout *const whole = &run->tables[shard].state.layout;
    const struct state_layout here =
        state->row_count
            ? memory_state_rows(&job->network, state->row_count, job_state_format(job)) : *whole;
    assert(here.bytes <= state->bytes); /* a pipeline's last chunk may have more: a copy of the tied table */
    for (uint32_t part = STATE_WEIGHTS; part < STATE_PARTS; part++) { /* what is frozen is there */
        if (here.parts[part].bytes == 0) continue;
        device_copy_guarded(run->streams[plan_stream(plan, device, STREAM_D2H)],
                            to + whole->parts[part].offset_bytes +
                                state->first_row * whole->parts[part].row_bytes,
                            arena + state->address + here.parts[part].offset_bytes,
                            here.parts[part].bytes, guard, NULL);
    }
}

static enum status await_d2h(struct run_loop *loop, uint32_t device, struct error *err)
{
    const uint32_t stream = plan_stream(loop->plan, device, STREAM_D2H);
    const struct run_flight last = {.stream = stream,
                                    .event = device_record(loop->run->streams[stream])};
    return run_await_flight(loop, &last, err);
}

/* Puts a device's state on top of storage's. */
static enum status bring_stored(struct run_loop *loop, uint32_t device, uint32_t buffer, uint32_t shard,
                                struct error *err)
{
    struct run *const run = loop->run;
    const struct run_device_state *const state =
        &loop->states[(size_t)device * loop->plan->buffer_count + buffer];
    struct run_states lent;
    enum status status = run_states_borrow(run, shard, 1, RUN_STATES_WHOLE, &lent, err);
    if (status == STATUS_OK) {
        run_bring_state(run, device, buffer, state, (char *)lent.states[0],
                        (struct device_guard){0});
        status = await_d2h(loop, device, err);
    }
    const enum status saved = run_states_give_back(run, &lent, status == STATUS_OK, err);
    return status != STATUS_OK ? status : saved;
}

/* Copies a replica's share to its host buffer, which is laid out alike. */
static void bring_share(struct run *run, uint32_t device, uint32_t shard, const struct run_device_state *state)
{
    const char *const arena = (const char *)device_arena(run->devices[device]);
    device_copy_guarded(run->streams[plan_stream(run->plan, device, STREAM_D2H)],
                        run_host_buffer_of(run, run->state_buffers[shard], state->rank), arena + state->address,
                        state->bytes, (struct device_guard){0}, NULL);
}

enum status run_save_states(struct run_loop *loop, struct error *err)
{
    const struct plan *const plan = loop->plan;
    run_saver_await_copy(loop->run->saver); /* of an earlier step */
    for (uint32_t d = 0; d < plan->hardware.device_count; d++) {
        for (uint32_t b = 0; b < plan->buffer_count; b++) {
            const struct run_device_state *const state =
                &loop->states[(size_t)d * plan->buffer_count + b];
            const struct plan_buffer *const buffer = &plan->buffers[b];
            if (state->changed_bytes == 0 || !run_has_device(loop->run, d) ||
                state->arrived >= loop->run->jobs[buffer->job].limit || loop->run->jobs[buffer->job].damaged)
                continue;
            const uint32_t shard = plan->job_first_shard[buffer->job] + buffer->shard;
            if (run_is_stored(loop->run, shard)) {
                TRY(bring_stored(loop, d, b, shard, err));
                continue;
            }
            if (run_is_split(loop->run, shard)) bring_share(loop->run, d, shard, state);
            else
                run_bring_state(loop->run, d, b, state, (char *)loop->run->states[shard],
                                (struct device_guard){0});
        }
        if (run_has_device(loop->run, d)) TRY(await_d2h(loop, d, err));
    }
    return STATUS_OK;
}
