/* Checks the copies of a carried-out job's units between storage, host and device: states, weights, data, losses,
 * norms, gradients and activations. */
#include <inttypes.h>

#include "base/size.h"
#include "base/try.h"
#include "models/job/chunk_memory.h"
#include "models/job/parallel_offload.h"
#include "planner/check/plan_check_parallel_view.h"

/* Returns the bytes that a unit of this pass copies between the host and the device; 0: none. */
static uint64_t carried_bytes(struct checker *c, const struct check_parallel_view *v)
{
    if (!v->carried_out) return 0;
    switch (v->unit->pass) {
    case PLAN_STORE:
        if (parallel_offloads(&v->job->parallel)) return 0;
        return check_operand_bytes(c, v, CHECK_OPERAND_STATE);
    case PLAN_LOAD: return check_operand_bytes(c, v, CHECK_OPERAND_STATE);
    case PLAN_REFRESH:
        if (v->job->parallel.offload == OFFLOAD_WEIGHTS || check_is_reset(c)) return 0;
        return chunk_memory(v->job, v->layers).raised_bytes;
    case PLAN_KEEP: return parallel_offloads(&v->job->parallel) ? 0 : chunk_memory(v->job, v->layers).value_bytes;
    case PLAN_BATCH: return check_brings_batch(v) ? check_operand_bytes(c, v, CHECK_OPERAND_BATCH) : 0;
    case PLAN_UPDATE:
        return v->chunk + 1 == v->chunks && !job_clips(v->job) && v->gradients == 1
                 ? check_operand_bytes(c, v, CHECK_OPERAND_LOSS)
                 : 0;
    case PLAN_BACKWARD:
        return v->chunk + 1 == v->chunks && v->gradients > 1 && v->ends_sum
                 ? check_operand_bytes(c, v, CHECK_OPERAND_LOSS)
                 : 0;
    default: return 0;
    }
}

bool check_is_carried_copy(const struct checker *c)
{
    const uint32_t pass = c->unit->pass, stream = c->op->stream;
    if (!check_is_carried_out(c, c->unit->job)) return false;
    if (stream == STREAM_READ) return pass == PLAN_LOAD && c->plan->jobs.jobs[c->unit->job].parallel.storage;
    const bool clips = job_clips(&c->plan->jobs.jobs[c->unit->job]);
    if (stream == STREAM_H2D)
        return pass == PLAN_LOAD || pass == PLAN_BATCH || pass == PLAN_EVALUATE || (clips && pass == PLAN_UPDATE);
    if (pass == PLAN_BACKWARD)
        return stream == STREAM_D2H && parallel_gradient_count(&c->plan->jobs.jobs[c->unit->job], c->unit->shard) > 1;
    return stream == STREAM_D2H && (pass == PLAN_STORE || pass == PLAN_UPDATE || pass == PLAN_EVALUATE ||
                                    pass == PLAN_NORM || pass == PLAN_KEEP);
}

/* Checks an evaluation's copies: data may come, and a loss may leave. Contents show whether they do in time. */
static enum status check_held_out_copies(struct checker *c, const struct check_parallel_view *v)
{
    uint32_t batches = 0, copies[2] = {0, 0};
    for (uint32_t o = 0; o < v->unit->op_count; o++) {
        const struct plan_op *op = &c->plan->ops[v->unit->first_op + o];
        const struct plan_access *from = &c->plan->accesses[op->first_access];
        batches += op->kind == OP_COMPUTE && op->pass == PLAN_BATCH;
        if (op->kind != OP_COPY || op->stream == STREAM_P2P) continue;
        const bool loss = op->stream == STREAM_D2H;
        const struct plan_buffer *ends[] = {check_buffer_of(c, &from[0]), check_buffer_of(c, &from[1])};
        const uint64_t bytes = check_operand_bytes(c, v, loss ? CHECK_OPERAND_HELD_OUT_LOSS : CHECK_OPERAND_BATCH);
        copies[loss]++;
        if (ends[0]->kind != (loss ? BUFFER_LOSS : BUFFER_BATCH) || ends[0]->variant != loss ||
            ends[1]->variant != loss || op->bytes != bytes || from[0].offset_bytes != 0 || from[1].offset_bytes != 0)
            return check_fail(c, CHECK_RULE_WORK, "copies %" PRIu64 " bytes of the %s in an evaluation", op->bytes,
                              plan_buffer_names[ends[0]->kind]);
    }
    if (batches == copies[0] && batches <= (check_brings_batch(v) ? 1 : 0) &&
        copies[1] <= (v->chunk + 1 == v->chunks ? 1 : 0))
        return STATUS_OK;
    return check_fail(c, CHECK_RULE_TRAINING, "reads %u held-out minibatches, and copies data %u and a loss %u times",
                      batches, copies[0], copies[1]);
}

/* Checks the copies of a job that clips: a NORM's squares of the chunk's tensors to the host, with the loss of the last
 * chunk, and all tensors' squares to an UPDATE. */
static enum status check_norm_copies(struct checker *c, const struct check_parallel_view *v)
{
    const struct network *n = &v->job->network;
    const bool up = v->unit->pass == PLAN_UPDATE, has_loss = !up && v->chunk + 1 == v->chunks && v->gradients == 1;
    const uint64_t offset = up ? 0 : memory_tensor_count(n, 0, v->layers.first) * sizeof(double);
    const uint64_t bytes = up ? memory_norm_bytes(n)
                              : memory_tensor_count(n, v->layers.first, v->layers.count) * sizeof(double);
    uint32_t norms = 0, losses = 0;
    for (uint32_t o = 0; o < v->unit->op_count; o++) {
        const struct plan_op *op = &c->plan->ops[v->unit->first_op + o];
        const struct plan_access *ends = &c->plan->accesses[op->first_access];
        if (op->kind != OP_COPY) continue;
        const struct plan_buffer *from = check_buffer_of(c, &ends[0]), *to = check_buffer_of(c, &ends[1]);
        const bool loss = from->kind == BUFFER_LOSS;
        const uint64_t at = loss ? 0 : offset, wanted = loss ? sizeof(double) : bytes;
        if ((loss && from->variant + to->variant > 0) || (!loss && from->kind != BUFFER_NORMS) ||
            ends[0].offset_bytes != at || ends[1].offset_bytes != at || op->bytes != wanted ||
            (op->stream == STREAM_H2D) != up)
            return check_fail(c, CHECK_RULE_WORK, "copies %" PRIu64 " bytes of the %s at %" PRIu64 " (expected %" PRIu64
                              " bytes of the norms at %" PRIu64 ")", op->bytes, plan_buffer_names[from->kind],
                              ends[0].offset_bytes, bytes, offset);
        losses += loss;
        norms += !loss;
    }
    if (norms == 1 && losses == has_loss) return STATUS_OK;
    return check_fail(c, CHECK_RULE_TRAINING, "copies norms %u times and losses %u times (expected 1 and %u)", norms,
                      losses, has_loss);
}

/* Checks a copy between storage and host memory of a chunk's state, or of its beginning. Contents show whether it comes
 * in time. */
static enum status check_stored_copy(struct checker *c, const struct plan_op *op, uint32_t chunk, uint64_t bytes)
{
    const struct plan_access *ends = &c->plan->accesses[op->first_access];
    const struct plan_buffer *from = check_buffer_of(c, &ends[0]), *to = check_buffer_of(c, &ends[1]);
    if (from->shard == chunk && to->shard == chunk && ends[0].offset_bytes + ends[1].offset_bytes == 0 &&
        op->bytes == bytes)
        return STATUS_OK;
    return check_fail(c, CHECK_RULE_WORK,
                      "copies %" PRIu64 " bytes of the %s of shard %u (expected %" PRIu64 " of shard %u)", op->bytes,
                      plan_buffer_names[from->kind], from->shard, bytes, chunk);
}

/* Returns true for such a copy. */
static bool is_of_storage(const struct plan_op *op)
{
    return op->kind == OP_COPY && (op->stream == STREAM_READ || op->stream == STREAM_WRITE);
}

/* Returns the bytes of a chunk's state that go up, or to the device's state, which are read together. */
static uint64_t read_bytes(const struct check_parallel_view *v)
{
    const struct chunk_memory own = chunk_memory(v->job, v->layers);
    return own.raised_bytes > own.device_state_bytes ? own.raised_bytes : own.device_state_bytes;
}

/* Returns where weights are that go up. */
static uint32_t home_of_states(const struct check_parallel_view *v)
{
    return v->job->parallel.storage ? BUFFER_STAGED : BUFFER_STATE;
}

/* Checks the copies of an update by the host: of the gradient, and of the last chunk's loss; and of the state, there
 * and back. */
static enum status check_step_copies(struct checker *c, const struct check_parallel_view *v)
{
    uint32_t copies[2] = {0, 0}, moved[2] = {0, 0}; /* gradients, losses; states from storage, and to it */
    const uint64_t state = chunk_memory(v->job, v->layers).state_bytes;
    for (uint32_t o = 0; o < v->unit->op_count; o++) {
        const struct plan_op *op = &c->plan->ops[v->unit->first_op + o];
        const struct plan_access *ends = &c->plan->accesses[op->first_access];
        if (op->kind != OP_COPY) continue;
        if (is_of_storage(op)) {
            TRY(check_stored_copy(c, op, v->chunk, state));
            moved[op->stream == STREAM_WRITE]++;
            continue;
        }
        const struct plan_buffer *from = check_buffer_of(c, &ends[0]), *to = check_buffer_of(c, &ends[1]);
        const bool loss = from->kind == BUFFER_LOSS;
        const uint64_t wanted = check_operand_bytes(c, v, loss ? CHECK_OPERAND_LOSS : CHECK_OPERAND_GRADIENT);
        if (!loss && v->drains) return check_fail(c, CHECK_RULE_WORK, "copies a gradient that is on the host");
        if ((!loss && (from->kind != BUFFER_GRADIENT || from->shard != v->chunk)) || from->variant + to->variant > 0 ||
            ends[0].offset_bytes + ends[1].offset_bytes > 0 || op->bytes != wanted || op->stream != STREAM_D2H)
            return check_fail(c, CHECK_RULE_WORK, "copies %" PRIu64 " bytes of the %s (expected %" PRIu64 " of the %s)",
                              op->bytes, plan_buffer_names[from->kind], wanted, plan_buffer_names[BUFFER_GRADIENT]);
        copies[loss]++;
    }
    const bool last = v->chunk + 1 == v->chunks && !job_clips(v->job); /* a NORM has the loss */
    const uint32_t stored = v->job->parallel.storage;
    if (moved[0] != stored || moved[1] != stored)
        return check_fail(c, CHECK_RULE_TRAINING,
                          "copies states from storage %u times and to it %u times (expected %u)", moved[0], moved[1],
                          stored);
    if (copies[0] == !v->drains && copies[1] == last) return STATUS_OK;
    return check_fail(c, CHECK_RULE_TRAINING, "copies gradients %u times and losses %u times (expected %u and %u)",
                      copies[0], copies[1], !v->drains, last);
}

/* Checks a copy of the chunk's swapped activations, out in a FORWARD or in within a GATHER. Contents show whether they
 * are there in time. */
static enum status check_swapped_copy(struct checker *c, const struct check_parallel_view *v, const struct plan_op *op)
{
    const struct plan_access *ends = &c->plan->accesses[op->first_access];
    const struct plan_buffer *from = check_buffer_of(c, &ends[0]), *to = check_buffer_of(c, &ends[1]);
    const uint64_t wanted = check_operand_bytes(c, v, CHECK_OPERAND_ACTIVATIONS);
    const bool out = v->unit->pass == PLAN_FORWARD;
    if (v->job->parallel.swap && from->kind == BUFFER_ACTIVATIONS && from->shard == v->chunk && to->shard == v->chunk &&
        op->bytes == wanted && ends[0].offset_bytes + ends[1].offset_bytes == 0 &&
        op->stream == (out ? STREAM_D2H : STREAM_H2D))
        return STATUS_OK;
    return check_fail(c, CHECK_RULE_WORK,
                      "copies %" PRIu64 " bytes of the %s (expected %" PRIu64 " of its activations)", op->bytes,
                      plan_buffer_names[from->kind], wanted);
}

/* Checks the copies of a carried-out FORWARD: at most one, of swapped activations. */
static enum status check_swapped_out(struct checker *c, const struct check_parallel_view *v)
{
    uint32_t copies = 0;
    for (uint32_t o = 0; o < v->unit->op_count; o++) {
        const struct plan_op *op = &c->plan->ops[v->unit->first_op + o];
        if (op->kind != OP_COPY || op->stream == STREAM_P2P) continue;
        TRY(check_swapped_copy(c, v, op));
        copies++;
    }
    if (copies <= 1) return STATUS_OK;
    return check_fail(c, CHECK_RULE_TRAINING, "copies activations %u times (expected once)", copies);
}

/* Checks the copies of weights that come up for a pass: the chunk's own, and the first chunk's table for a tied head;
 * and of its swapped activations. */
static enum status check_raised_copies(struct checker *c, const struct check_parallel_view *v)
{
    const struct chunk_memory own = chunk_memory(v->job, v->layers);
    uint32_t copies[2] = {0, 0}, swapped = 0, reads[2] = {0, 0}; /* of own weights, and of the table */
    for (uint32_t o = 0; o < v->unit->op_count; o++) {
        const struct plan_op *op = &c->plan->ops[v->unit->first_op + o];
        const struct plan_access *ends = &c->plan->accesses[op->first_access];
        if (op->kind != OP_COPY) continue;
        const struct plan_buffer *from = check_buffer_of(c, &ends[0]), *to = check_buffer_of(c, &ends[1]);
        const bool table = from->shard != v->chunk;
        if (is_of_storage(op)) {
            TRY(check_stored_copy(c, op, table ? 0 : v->chunk, table ? own.raised_table_offset + own.raised_table_bytes
                                                                     : read_bytes(v)));
            reads[table]++;
            continue;
        }
        if (from->kind == BUFFER_ACTIVATIONS && swapped++ == 0) {
            TRY(check_swapped_copy(c, v, op));
            continue;
        }
        const uint64_t wanted = table ? own.raised_table_bytes : own.raised_bytes;
        const uint64_t offset = table ? own.table_weights_offset : 0, home = table ? own.raised_table_offset : 0;
        if (from->kind != home_of_states(v) || to->kind != BUFFER_PARAMETERS ||
            (table && (from->shard != 0 || !own.gathers_table)) || op->bytes != wanted ||
            ends[0].offset_bytes != home || ends[1].offset_bytes != offset || op->stream != STREAM_H2D)
            return check_fail(c, CHECK_RULE_WORK,
                              "copies %" PRIu64 " bytes of the %s to %" PRIu64 " (expected %" PRIu64
                              " of the %s to %" PRIu64 ")",
                              op->bytes, plan_buffer_names[from->kind], ends[1].offset_bytes, wanted,
                              plan_buffer_names[BUFFER_STATE], offset);
        copies[table]++;
    }
    const bool stored = v->job->parallel.storage;
    if (reads[0] != stored || reads[1] != (stored && own.gathers_table))
        return check_fail(c, CHECK_RULE_TRAINING,
                          "reads weights from storage %u times and a table %u times (expected %u and %u)", reads[0],
                          reads[1], stored, stored && own.gathers_table);
    if (copies[0] == 1 && copies[1] == own.gathers_table) return STATUS_OK;
    return check_fail(c, CHECK_RULE_TRAINING, "copies weights %u times and a table %u times (expected 1 and %u)",
                      copies[0], copies[1], own.gathers_table);
}

/* Checks the copy of a gradient that goes down after its backward pass. */
static enum status check_drained_copy(struct checker *c, const struct check_parallel_view *v)
{
    const uint64_t wanted = check_operand_bytes(c, v, CHECK_OPERAND_WHOLE_GRADIENT);
    for (uint32_t o = 0; o < v->unit->op_count; o++) {
        const struct plan_op *op = &c->plan->ops[v->unit->first_op + o];
        const struct plan_access *ends = &c->plan->accesses[op->first_access];
        const struct plan_buffer *from = check_buffer_of(c, &ends[0]), *to = check_buffer_of(c, &ends[1]);
        if (op->kind != OP_COPY || o > 0 || from->kind != BUFFER_GRADIENT || from->shard != v->chunk ||
            to->shard != v->chunk || to->variant != 0 || ends[0].offset_bytes + ends[1].offset_bytes > 0 ||
            op->bytes != wanted || op->stream != STREAM_D2H)
            return check_fail(c, CHECK_RULE_WORK, "moves %" PRIu64 " bytes of the %s (expected one copy of %" PRIu64
                              " of the gradient to the host)", op->bytes, plan_buffer_names[from->kind], wanted);
    }
    return STATUS_OK;
}

enum status check_carried_copies(struct checker *c, const struct check_parallel_view *v)
{
    static const uint32_t kinds[PLAN_PASS_COUNT] = {[PLAN_LOAD] = BUFFER_STATE, [PLAN_STORE] = BUFFER_STATE,
                                                    [PLAN_BATCH] = BUFFER_BATCH, [PLAN_UPDATE] = BUFFER_LOSS,
                                                    [PLAN_BACKWARD] = BUFFER_LOSS,
                                                    [PLAN_REFRESH] = BUFFER_STATE, [PLAN_KEEP] = BUFFER_STATE};
    const uint64_t wanted = carried_bytes(c, v);
    const bool stored = v->job->parallel.storage && (v->unit->pass == PLAN_LOAD || v->unit->pass == PLAN_REFRESH);
    uint32_t copies = 0, reads = 0;
    if (v->unit->pass == PLAN_EVALUATE) return check_held_out_copies(c, v);
    if (v->carried_out && v->unit->pass == PLAN_UPDATE && parallel_offloads(&v->job->parallel))
        return check_step_copies(c, v);
    if (v->carried_out && v->unit->pass == PLAN_FORWARD) return check_swapped_out(c, v);
    if (v->carried_out && v->unit->pass == PLAN_GATHER && v->job->parallel.offload == OFFLOAD_WEIGHTS)
        return check_raised_copies(c, v);
    if (v->carried_out && v->unit->pass == PLAN_REDUCE && v->drains) return check_drained_copy(c, v);
    if (v->unit->pass == PLAN_NORM || (v->unit->pass == PLAN_UPDATE && v->carried_out && job_clips(v->job)))
        return check_norm_copies(c, v);
    for (uint32_t o = 0; v->carried_out && o < v->unit->op_count; o++) {
        const struct plan_op *op = &c->plan->ops[v->unit->first_op + o];
        const struct plan_access *from = &c->plan->accesses[op->first_access];
        if (op->kind != OP_COPY || op->stream == STREAM_P2P) continue;
        if (is_of_storage(op)) {
            TRY(check_stored_copy(c, op, v->chunk, read_bytes(v)));
            reads++;
            continue;
        }
        const struct plan_buffer *b = check_buffer_of(c, from);
        copies++;
        if (b->kind != (stored ? BUFFER_STAGED : kinds[v->unit->pass]) || op->bytes != wanted ||
            from[0].offset_bytes != 0 || from[1].offset_bytes != 0)
            return check_fail(c, CHECK_RULE_WORK, "copies %" PRIu64 " bytes of the %s (expected %" PRIu64 " of the %s)",
                              op->bytes, plan_buffer_names[b->kind], wanted, plan_buffer_names[kinds[v->unit->pass]]);
    }
    if (reads != (stored && wanted > 0))
        return check_fail(c, CHECK_RULE_TRAINING, "reads from storage %u times (expected %u)", reads,
                          stored && wanted > 0);
    if (copies == (wanted > 0 ? 1 : 0)) return STATUS_OK;
    return check_fail(c, CHECK_RULE_TRAINING, "copies %u times between host and device (expected %u)", copies,
                      wanted > 0);
}

enum status check_parallel_keep(struct checker *c, const struct check_parallel_view *v)
{
    static const uint32_t kinds[] = {BUFFER_STATE, BUFFER_LOSS, BUFFER_KEPT};
    const struct chunk_memory own = chunk_memory(v->job, v->layers);
    const uint64_t kept = memory_parameter_bytes(&v->job->network, v->layers.first, v->layers.count);
    if (v->op->kind != OP_COMPUTE || v->op->stream != STREAM_HOST || v->op->work != PLAN_NONE ||
        v->op->access_count != ARRAY_COUNT(kinds) || v->unit->pass != PLAN_KEEP)
        return check_fail(c, CHECK_RULE_FORM, "keeps weights with other operands than a state, a loss and their place");
    for (uint32_t a = 0; a < ARRAY_COUNT(kinds); a++) {
        const struct plan_access *access = &c->plan->accesses[v->op->first_access + a];
        const struct plan_buffer *b = check_buffer_of(c, access);
        const bool loss = kinds[a] == BUFFER_LOSS, keeps = kinds[a] == BUFFER_KEPT;
        char text[PLAN_TEXT_BYTES];
        if (b->kind != kinds[a] || b->on_device || (!loss && b->shard != v->chunk) || b->variant != loss ||
            access->offset_bytes != 0 || access->flags != (keeps ? ACCESS_WRITE : ACCESS_READ))
            return check_fail(c, CHECK_RULE_FORM, "keeps weights with the %s", check_access_text(c, access, text));
        if (keeps && b->bytes < kept)
            return check_fail(c, CHECK_RULE_MEMORY, "the %s has %" PRIu64 " bytes (expected %" PRIu64 ")",
                              check_access_text(c, access, text), b->bytes, kept);
        if (keeps) continue;
        TRY(check_add_claim(c, access,
                            (struct check_claim){.thing = loss ? v->loss_thing
                                                               : check_shard_thing(v->global, CHECK_THING_STATE),
                                                 .clock = loss ? CHECK_CLOCK_HELD_OUT_SUM : CHECK_CLOCK_STEP,
                                                 .bytes = loss ? sizeof(double) : own.value_bytes}));
    }
    return STATUS_OK;
}
