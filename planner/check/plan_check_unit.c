/*
 * Each operation must be well formed, and each unit compute its pass once.
 *
 * This file checks what needs no order, once per unit: indexes, streams, ends of copies, access flags, slices that
 * cover all rows. Indexes come first, because later checks and messages use them. plan_check_claims.c works out what a
 * computation finds and leaves.
 */
#include <inttypes.h>

#include "base/size.h"
#include "base/try.h"
#include "planner/check/plan_check_alike.h"
#include "planner/check/plan_check_parallel_view.h"
#include "planner/check/plan_checker.h"

/* --- computations --------------------------------------------------------------------------- */

enum status check_batch_op(struct checker *c)
{
    const struct plan_op *op = c->op;
    const struct check_job_facts *job = &c->jobs[c->unit->job];
    const struct plan_access *access = &c->plan->accesses[op->first_access];
    if (!job->text) return check_fail(c, CHECK_RULE_FORM, "a batch for a job that has none");
    if (op->access_count != 1 || check_buffer_of(c, access)->kind != BUFFER_BATCH ||
        access->flags != ACCESS_WRITE || check_buffer_of(c, access)->on_device)
        return check_fail(c, CHECK_RULE_FORM, "a batch is written only to the host's batch buffer");
    if (op->row_count != 0 || op->first_row != 0 || op->slice != 0)
        return check_fail(c, CHECK_RULE_FORM, "a slice of a batch");
    if (op->work != PLAN_NONE && c->plan->works[op->work].item_count > 0)
        return check_fail(c, CHECK_RULE_WORK, "a batch with kernels");
    if (check_buffer_of(c, access)->bytes < job->batch_bytes)
        return check_fail(c, CHECK_RULE_MEMORY,
                          "the batch buffer has %" PRIu64 " bytes (expected %" PRIu64 ")",
                          check_buffer_of(c, access)->bytes, job->batch_bytes);
    struct check_claim claim = {.thing = check_job_thing(c, c->unit->job, CHECK_THING_BATCH),
                                .clock = !check_is_parallel(c, c->unit->job)  ? CHECK_CLOCK_MINIBATCH
                                         : c->unit->pass == PLAN_EVALUATE ? CHECK_CLOCK_HELD_OUT
                                                                          : CHECK_CLOCK_DATA,
                                .makes = true,
                                .held_out = c->unit->pass == PLAN_EVALUATE,
                                .bytes = job->batch_bytes};
    return check_add_claim(c, access, claim);
}

/* A KEEP reads the last held-out minibatch's state and loss, and writes parameters. */
static enum status check_keep_op(struct checker *c)
{
    const struct plan_op *op = c->op;
    uint32_t job = c->unit->job, global = c->jobs[job].first_shard + c->unit->shard;
    const struct check_shard_facts *f = &c->shards[global];
    uint32_t found[BUFFER_KIND_COUNT] = {0};
    if (!c->plan->jobs.jobs[job].keep_best)
        return check_fail(c, CHECK_RULE_TRAINING, "keeps weights of a job that keeps none");
    if (op->work != PLAN_NONE && c->plan->works[op->work].item_count > 0)
        return check_fail(c, CHECK_RULE_WORK, "a keep with kernels");
    for (uint32_t a = 0; a < op->access_count; a++) {
        const struct plan_access *access = &c->plan->accesses[op->first_access + a];
        const struct plan_buffer *b = check_buffer_of(c, access);
        char text[PLAN_TEXT_BYTES];
        bool of_shard = b->kind != BUFFER_LOSS;
        bool fits = !b->on_device && (!of_shard || b->shard == c->unit->shard) &&
                    b->variant == (of_shard ? 0 : 1) &&
                    access->flags == (b->kind == BUFFER_KEPT ? ACCESS_WRITE : ACCESS_READ);
        if (!fits || found[b->kind]++ > 0 ||
            (b->kind != BUFFER_STATE && b->kind != BUFFER_LOSS && b->kind != BUFFER_KEPT))
            return check_fail(c, CHECK_RULE_FORM, "keeps weights with the %s",
                              check_access_text(c, access, text));
        if (b->kind == BUFFER_KEPT && b->bytes < f->gradient_bytes)
            return check_fail(c, CHECK_RULE_MEMORY, "the %s has %" PRIu64 " bytes (expected %" PRIu64 ")",
                              check_access_text(c, access, text), b->bytes,
                              f->gradient_bytes);
        for (uint32_t part = 0; part <= STATE_MASTER && b->kind == BUFFER_STATE; part++)
            TRY(check_add_claim(
                c, access,
                (struct check_claim){.thing = check_shard_thing(global, CHECK_THING_STATE),
                                     .frozen = part == STATE_FROZEN,
                                     .version_delta = 1,
                                     .offset_bytes = f->state.parts[part].offset_bytes,
                                     .bytes = f->used_bytes[part],
                                     .thing_offset = f->state.parts[part].offset_bytes}));
        if (b->kind == BUFFER_LOSS)
            TRY(check_add_claim(c, access,
                                (struct check_claim){.thing = check_job_thing(c, job, CHECK_THING_LOSS),
                                                     .held_out = true,
                                                     .bytes = sizeof(double)}));
    }
    if (!found[BUFFER_STATE] || !found[BUFFER_LOSS] || !found[BUFFER_KEPT])
        return check_fail(c, CHECK_RULE_FORM, "keeps weights without state, loss or a place for them");
    return STATUS_OK;
}

/* A frozen shard's state stays as it is on the host: its STORE is no copy, but only ends its life on the device. */
static enum status check_end_op(struct checker *c)
{
    const struct plan_op *op = c->op;
    const struct plan_access *access = &c->plan->accesses[op->first_access];
    const struct check_shard_facts *f = &c->shards[c->jobs[c->unit->job].first_shard + c->unit->shard];
    const struct plan_buffer *b = check_buffer_of(c, access);
    if (c->unit->pass != PLAN_STORE || f->trains || op->access_count != 1 || b->kind != BUFFER_STATE || !b->on_device ||
        b->shard != c->unit->shard || access->flags != (ACCESS_READ | ACCESS_RELEASE))
        return check_fail(c, CHECK_RULE_FORM, "a store without a copy of something else than a frozen shard's state");
    if (op->work == PLAN_NONE || c->plan->works[op->work].item_count == 0) return STATUS_OK;
    return check_fail(c, CHECK_RULE_WORK, "a store with kernels");
}

/* Returns true if the stream suits the computation: the host's processor may run updates, norms and an embedding's
 * passes. */
static bool stream_fits(const struct checker *c)
{
    const struct plan_op *op = c->op;
    bool embedding = c->jobs[c->unit->job].embedding && c->unit->shard == 0 &&
                     (op->pass == PLAN_FORWARD || op->pass == PLAN_BACKWARD ||
                      op->pass == PLAN_EVALUATE);
    if (op->pass == PLAN_BATCH || op->pass == PLAN_KEEP) return op->stream == STREAM_HOST;
    if (op->pass == PLAN_OPEN || op->pass == PLAN_CLOSE) return op->stream == STREAM_FILE;
    bool steps = op->pass == PLAN_UPDATE || op->pass == PLAN_NORM;
    if (op->pass == PLAN_STORE) return op->stream == STREAM_COMPUTE;
    if (op->pass == PLAN_RECALL) return op->stream == STREAM_CPU || op->stream == STREAM_HOST;
    if (op->stream == STREAM_CPU) return steps || embedding;
    /* it gathers rows, and does not add them up */
    if (op->stream == STREAM_HOST) return embedding && op->pass != PLAN_BACKWARD;
    return op->stream == STREAM_COMPUTE && !steps;
}

static enum status check_compute(struct checker *c)
{
    const struct plan_op *op = c->op;
    if (op->work != PLAN_NONE && op->work >= c->plan->work_count)
        return check_fail(c, CHECK_RULE_FORM, "work %u does not exist", op->work);
    for (uint32_t a = 0; a < op->access_count; a++)
        if (c->plan->accesses[op->first_access + a].offset_bytes != 0)
            return check_fail(c, CHECK_RULE_FORM, "a computation accesses a buffer from its middle");
    if (!stream_fits(c))
        return check_fail(c, CHECK_RULE_FORM, "a computation on the %s stream",
                          plan_stream_names[op->stream]);
    if (op->pass == PLAN_BATCH) return check_batch_op(c);
    if (op->pass == PLAN_KEEP) return check_keep_op(c);
    if (op->pass == PLAN_OPEN || op->pass == PLAN_CLOSE) return check_file_op(c);
    if (op->pass == PLAN_STORE) return check_end_op(c);
    if (op->pass == PLAN_RECALL) return check_recall_op(c);
    for (uint32_t a = 0; a < op->access_count; a++) {
        const struct plan_access *access = &c->plan->accesses[op->first_access + a];
        char text[PLAN_TEXT_BYTES];
        bool on_device = check_buffer_of(c, access)->on_device;
        if (on_device != (op->stream == STREAM_COMPUTE))
            return check_fail(c, CHECK_RULE_FORM, "computes with the %s on the %s",
                              check_access_text(c, access, text), on_device ? "device" : "host");
    }
    bool clips = job_clips(&c->plan->jobs.jobs[c->unit->job]);
    bool ends = op->pass == (clips ? PLAN_NORM : PLAN_UPDATE) &&
                (c->unit->pass == PLAN_BACKWARD || c->unit->pass == PLAN_LOSS);
    if (op->pass == PLAN_NORM && !clips)
        return check_fail(c, CHECK_RULE_FORM, "a norm for a job that does not clip");
    if (op->pass != c->unit->pass && !ends)
        return check_fail(c, CHECK_RULE_FORM, "a %s in a unit that is about %s",
                          plan_pass_names[op->pass], plan_pass_names[c->unit->pass]);
    return check_training_op(c);
}

/* --- copies --------------------------------------------------------------------------------- */

/* Returns true if contents may be copied: parameters and tables are made from states. Parameters of a carried-out chunk
 * may end with the first one's table. */
static bool kinds_agree(const struct checker *c, const struct plan_buffer *from, const struct plan_buffer *to)
{
    uint32_t source = from->kind == BUFFER_STAGED ? BUFFER_STATE : from->kind;
    uint32_t target = to->kind == BUFFER_STAGED ? BUFFER_STATE : to->kind;
    if (target == BUFFER_TABLE)
        return from->shard == 0 && source == (check_is_of_base(c, c->unit->job, to) ? BUFFER_BASE : BUFFER_STATE);
    if (source == BUFFER_GRADIENT) return target == BUFFER_GRADIENT;
    if (source == BUFFER_STATE && target == BUFFER_PARAMETERS && from->shard == 0 &&
        check_is_carried_out(c, c->unit->job))
        return true;
    if (from->shard != to->shard) return false;
    if (source == BUFFER_STATE && target == BUFFER_PARAMETERS) return true;
    return source == target;
}

/* Only stored and staged states are copied between storage and host memory; staged states also go on to a device. */
static enum status check_storage_copy(struct checker *c, const struct plan_buffer *from,
                                      const struct plan_buffer *to)
{
    bool reads = c->op->stream == STREAM_READ;
    const struct plan_buffer *stored = reads ? from : to, *staged = reads ? to : from;
    if (stored->kind != BUFFER_STORED || staged->kind != BUFFER_STAGED ||
        stored->shard != staged->shard)
        return check_fail(c, CHECK_RULE_FORM, "a copy on the %s stream of something else than a state",
                          plan_stream_names[c->op->stream]);
    return STATUS_OK;
}

static enum status check_copy_end(struct checker *c, const struct plan_access *access,
                                  uint32_t expected)
{
    const struct plan_buffer *b = check_buffer_of(c, access);
    char text[PLAN_TEXT_BYTES];
    uint64_t end;
    if ((access->flags & (ACCESS_READ | ACCESS_WRITE)) != expected)
        return check_fail(c, CHECK_RULE_FORM, "a copy reads its source and writes its destination");
    if (!size_add(access->offset_bytes, c->op->bytes, &end) || end > b->bytes)
        return check_fail(c, CHECK_RULE_FORM,
                          "copies %" PRIu64 " bytes at %" PRIu64 " of the %s (it has %" PRIu64 ")",
                          c->op->bytes, access->offset_bytes, check_access_text(c, access, text),
                          b->bytes);
    return STATUS_OK;
}

/* A copy between devices moves a buffer: it is acquired here (before the copy if stages block), and ends on the
 * peer. */
static enum status check_p2p_copy(struct checker *c, const struct plan_access *from,
                                  const struct plan_access *to)
{
    char from_text[PLAN_TEXT_BYTES], to_text[PLAN_TEXT_BYTES];
    if (from->buffer != to->buffer)
        return check_fail(c, CHECK_RULE_FORM, "copies the %s of a device to the %s of another",
                          check_access_text(c, from, from_text), check_access_text(c, to, to_text));
    const struct plan_buffer *b = check_buffer_of(c, from);
    if (!b->on_device || (b->kind != BUFFER_BOUNDARY && b->kind != BUFFER_BOUNDARY_GRADIENT))
        return check_fail(c, CHECK_RULE_FORM, "a copy between devices of the %s%s (expected a boundary or its "
                          "gradient)", check_access_text(c, from, from_text),
                          b->on_device ? "" : " on the host");
    bool held = c->plan->jobs.jobs[c->unit->job].parallel.blocking; /* its place was acquired by the previous
                                                                       operation */
    if (from->flags != (ACCESS_READ | ACCESS_RELEASE) || to->flags != (ACCESS_WRITE | (held ? 0 : ACCESS_ACQUIRE)))
        return check_fail(c, CHECK_RULE_FORM, "a copy between devices releases its source and %s its destination",
                          held ? "writes" : "acquires");
    uint32_t index = (uint32_t)(c->op - &c->plan->ops[c->unit->first_op]);
    if (held && (index == 0 || !check_holds_place(c, index - 1)))
        return check_fail(c, CHECK_RULE_FORM,
                          "a copy between devices that blocks nothing (expected its place acquired before "
                          "it on the compute stream)");
    return STATUS_OK;
}

static enum status check_copy(struct checker *c)
{
    const struct plan_op *op = c->op;
    char from_text[PLAN_TEXT_BYTES], to_text[PLAN_TEXT_BYTES];
    if (op->access_count != 2)
        return check_fail(c, CHECK_RULE_FORM, "a copy with %u ends", op->access_count);
    const struct plan_access *from = &c->plan->accesses[op->first_access], *to = from + 1;
    const struct plan_buffer *source = check_buffer_of(c, from), *target = check_buffer_of(c, to);
    bool to_device = op->stream == STREAM_H2D;
    if (!plan_stream_copies(op->stream))
        return check_fail(c, CHECK_RULE_FORM, "a copy on the %s stream", plan_stream_names[op->stream]);
    TRY(check_copy_end(c, from, ACCESS_READ));
    TRY(check_copy_end(c, to, ACCESS_WRITE));
    if (op->stream == STREAM_READ || op->stream == STREAM_WRITE)
        return check_storage_copy(c, source, target);
    if (op->stream == STREAM_P2P) return check_p2p_copy(c, from, to);
    TRY(check_outputs_copy(c, from, to));
    if (source->on_device == to_device || target->on_device != to_device)
        return check_fail(c, CHECK_RULE_FORM, "a copy on the %s stream from the %s to the %s",
                          plan_stream_names[op->stream], source->on_device ? "device" : "host",
                          target->on_device ? "device" : "host");
    if (!kinds_agree(c, source, target))
        return check_fail(c, CHECK_RULE_FORM, "copies the %s to the %s",
                          check_access_text(c, from, from_text), check_access_text(c, to, to_text));
    return STATUS_OK;
}

/* --- operations ----------------------------------------------------------------------------- */

static enum status check_access(struct checker *c, const struct plan_access *access)
{
    char text[PLAN_TEXT_BYTES];
    const struct plan_buffer *b = check_buffer_of(c, access);
    const uint32_t known = ACCESS_READ | ACCESS_WRITE | ACCESS_ACQUIRE | ACCESS_RELEASE;
    if ((access->flags & ~known) || !(access->flags & (ACCESS_READ | ACCESS_WRITE)))
        return check_fail(c, CHECK_RULE_FORM, "access 0x%x of the %s", access->flags,
                          check_access_text(c, access, text));
    if (b->job != c->unit->job && !check_is_of_base(c, c->unit->job, b) && !check_is_taken(c, c->unit->job, b))
        return check_fail(c, CHECK_RULE_FORM, "accesses the %s, of another job",
                          check_access_text(c, access, text));
    if (!plan_buffer_lives(b) && (access->flags & (ACCESS_ACQUIRE | ACCESS_RELEASE)))
        return check_fail(c, CHECK_RULE_FORM, "acquires or releases the %s on the host",
                          check_access_text(c, access, text));
    if ((access->flags & ACCESS_ACQUIRE) &&
        (access->flags & (ACCESS_READ | ACCESS_WRITE)) != ACCESS_WRITE)
        return check_fail(c, CHECK_RULE_FORM, "reads the %s, which it acquires",
                          check_access_text(c, access, text));
    return STATUS_OK;
}

static enum status check_op(struct checker *c)
{
    const struct plan *plan = c->plan;
    const struct plan_op *op = c->op;
    if (!check_in_table(op->first_access, op->access_count, plan->access_count) ||
        !check_in_table(op->first_after, op->after_count, plan->after_count))
        return check_fail(c, CHECK_RULE_FORM, "accesses or orderings that do not exist");
    if (op->access_count == 0 || op->access_count > CHECK_ACCESSES_MAX)
        return check_fail(c, CHECK_RULE_FORM, "%u accesses (expected 1 to %d)", op->access_count,
                          CHECK_ACCESSES_MAX);
    bool parallel = check_is_parallel(c, c->unit->job);
    if (op->kind >= OP_KIND_COUNT || !plan_has_stream(plan, op->stream) || (op->kind == OP_COLLECTIVE && !parallel) ||
        (op->kind == OP_COMPUTE && !parallel && op->pass > PLAN_KEEP && op->pass != PLAN_STORE &&
         op->pass != PLAN_OPEN && op->pass != PLAN_CLOSE && op->pass != PLAN_RECALL))
        return check_fail(c, CHECK_RULE_FORM, "kind %u on stream %u, pass %u", op->kind, op->stream,
                          op->pass);
    for (uint32_t a = 0; a < op->access_count; a++)
        if (plan->accesses[op->first_access + a].buffer >= plan->buffer_count)
            return check_fail(c, CHECK_RULE_FORM, "buffer %u does not exist",
                              plan->accesses[op->first_access + a].buffer);
    c->op_readable = true;
    for (uint32_t a = 0; a < op->access_count; a++) {
        const struct plan_access *access = &plan->accesses[op->first_access + a];
        char text[PLAN_TEXT_BYTES];
        TRY(check_access(c, access));
        for (uint32_t other = 0; other < a; other++)
            if (plan->accesses[op->first_access + other].buffer == access->buffer &&
                op->stream != STREAM_P2P)
                return check_fail(c, CHECK_RULE_FORM, "accesses the %s twice",
                                  check_access_text(c, access, text));
    }
    if (parallel && op->after_count > 0)
        return check_fail(c, CHECK_RULE_WAITING, "an ordering in a parallel job");
    if (parallel && op->kind == OP_COPY && op->stream != STREAM_P2P && !check_offload_copies(c) &&
        !check_is_carried_copy(c))
        return check_fail(c, CHECK_RULE_FORM, "a copy on the %s stream", plan_stream_names[op->stream]);
    if (op->kind == OP_COPY) return check_copy(c);
    return parallel ? check_parallel_op(c) : check_compute(c);
}

/* --- units ---------------------------------------------------------------------------------- */

static enum status check_unit_head(struct checker *c)
{
    const struct plan_unit *unit = c->unit;
    if (unit->job >= c->plan->jobs.count || unit->pass >= PLAN_PASS_COUNT)
        return check_fail(c, CHECK_RULE_FORM, "job %u and pass %u", unit->job, unit->pass);
    uint32_t shards = c->jobs[unit->job].shard_count;
    bool shardless = unit->pass == PLAN_BATCH && unit->shard == PLAN_NONE;
    if (unit->shard >= shards && !shardless)
        return check_fail(c, CHECK_RULE_FORM, "shard %u does not exist (there are %u)", unit->shard,
                          shards);
    if (unit->op_count == 0) return check_fail(c, CHECK_RULE_FORM, "a unit without operations");
    return STATUS_OK;
}

/* A unit computes its pass once, whole or in slices that cover all rows in order. */
static enum status check_computes(struct checker *c)
{
    const struct plan_unit *unit = c->unit;
    const struct check_job_facts *job = &c->jobs[unit->job];
    uint32_t whole = 0, slices = 0, batches = 0, keeps = 0;
    uint64_t next_row = 0;
    bool files = unit->pass == PLAN_OPEN || unit->pass == PLAN_CLOSE;
    if (files && (unit->op_count != 1 || c->plan->ops[unit->first_op].kind != OP_COMPUTE ||
                  c->plan->ops[unit->first_op].pass != unit->pass))
        return check_fail(c, CHECK_RULE_FORM, "a unit that is about %s and does something else",
                          plan_pass_names[unit->pass]);
    for (uint32_t o = 0; o < unit->op_count; o++) {
        const struct plan_op *op = &c->plan->ops[unit->first_op + o];
        if (op->kind != OP_COMPUTE) continue;
        /* states' and norms' contents show if it was done */
        if (op->pass == PLAN_UPDATE || op->pass == PLAN_NORM || op->pass == PLAN_STORE || op->pass == PLAN_OPEN ||
            op->pass == PLAN_CLOSE)
            continue;
        if (op->pass == PLAN_KEEP) {
            keeps++;
        } else if (op->pass == PLAN_BATCH) {
            batches++;
        } else if (op->row_count == 0) {
            whole++;
        } else {
            if (op->first_row != next_row || op->slice != slices)
                return check_fail(c, CHECK_RULE_TRAINING,
                                  "slice %u begins at row %" PRIu64 " (expected slice %u at row "
                                  "%" PRIu64 ")",
                                  op->slice, op->first_row, slices, next_row);
            next_row += op->row_count;
            slices++;
        }
    }
    bool computes = unit->pass <= PLAN_BACKWARD || unit->pass == PLAN_EVALUATE;
    if (slices > 0 && next_row != job->rows)
        return check_fail(c, CHECK_RULE_TRAINING, "its slices end at row %" PRIu64 " of %" PRIu64,
                          next_row, job->rows);
    if (whole + (slices > 0) != (computes ? 1 : 0))
        return check_fail(c, CHECK_RULE_TRAINING, "%u computations (expected %u)",
                          whole + (slices > 0), computes ? 1 : 0);
    if (batches > 1 || (unit->pass == PLAN_BATCH && batches == 0))
        return check_fail(c, CHECK_RULE_TRAINING, "%u batches (expected 1)", batches);
    if (keeps != (unit->pass == PLAN_KEEP ? 1 : 0))
        return check_fail(c, CHECK_RULE_TRAINING, "keeps its weights %u times", keeps);
    return STATUS_OK;
}

/* A staged buffer lives within the unit, each access after the previous one. */
static enum status check_staged(struct checker *c, uint32_t buffer)
{
    const struct plan *plan = c->plan;
    const struct plan_op *before = NULL;
    uint32_t flags_before = 0;
    char text[PLAN_TEXT_BYTES];
    for (uint32_t o = 0; o < c->unit->op_count; o++) {
        c->op = &plan->ops[c->unit->first_op + o];
        for (uint32_t a = 0; a < c->op->access_count; a++) {
            const struct plan_access *access = &plan->accesses[c->op->first_access + a];
            if (access->buffer != buffer) continue;
            bool begins = access->flags & ACCESS_ACQUIRE;
            if (begins == (before != NULL))
                return check_fail(c, CHECK_RULE_LIFETIMES, "accesses the %s, which is %s in this unit",
                                  plan_buffer_text(plan, buffer, text),
                                  before ? "live already" : "not live");
            if (before && before->stream != c->op->stream &&
                !((flags_before | access->flags) & ACCESS_WRITE))
                return check_fail(c, CHECK_RULE_WAITING,
                                  "reads the %s while another stream uses it, and neither waits for the "
                                  "other", plan_buffer_text(plan, buffer, text));
            before = access->flags & ACCESS_RELEASE ? NULL : c->op;
            flags_before = access->flags;
        }
    }
    c->op = NULL;
    if (!before) return STATUS_OK;
    return check_fail(c, CHECK_RULE_LIFETIMES, "the %s is live at its end",
                      plan_buffer_text(plan, buffer, text));
}

static enum status check_all_staged(struct checker *c)
{
    for (uint32_t o = 0; o < c->unit->op_count; o++) {
        const struct plan_op *op = &c->plan->ops[c->unit->first_op + o];
        for (uint32_t a = 0; a < op->access_count; a++) {
            const struct plan_access *access = &c->plan->accesses[op->first_access + a];
            if (check_buffer_of(c, access)->kind == BUFFER_STAGED && (access->flags & ACCESS_ACQUIRE))
                TRY(check_staged(c, access->buffer));
        }
    }
    return STATUS_OK;
}

static enum status check_unit(struct checker *c)
{
    const struct plan *plan = c->plan;
    uint32_t acquires = 0;
    c->op = NULL;
    TRY(check_unit_head(c));
    for (uint32_t o = 0; o < c->unit->op_count; o++) {
        c->op = &plan->ops[c->unit->first_op + o];
        c->op_readable = false;
        struct check_claim_list *claims = &c->claims_of[c->unit->first_op + o];
        claims->first = (uint32_t)c->claim_count;
        TRY(check_op(c));
        claims->count = (uint32_t)c->claim_count - claims->first;
        for (uint32_t a = 0; a < c->op->access_count; a++)
            if (plan->accesses[c->op->first_access + a].flags & ACCESS_ACQUIRE) acquires++;
    }
    c->op = NULL;
    if (acquires != c->unit->acquire_count)
        return check_fail(c, CHECK_RULE_FORM, "acquires %u buffers, not %u", acquires,
                          c->unit->acquire_count);
    TRY(check_all_staged(c));
    return check_is_parallel(c, c->unit->job) ? check_parallel_unit(c) : check_computes(c);
}

/* --- units like others ---------------------------------------------------------------------- */

/* Returns where the last unit of this pass over the shard is remembered, or NULL. */
static uint32_t *known_unit(const struct checker *c)
{
    const struct plan_unit *unit = c->unit;
    if (unit->job >= c->plan->jobs.count || unit->pass >= PLAN_PASS_COUNT || !check_is_parallel(c, unit->job) ||
        unit->shard >= c->jobs[unit->job].shard_count)
        return NULL;
    return &c->shards[c->jobs[unit->job].first_shard + unit->shard].known_unit[unit->pass];
}

/* Returns true if the unit equals an earlier one and has its claims. */
static bool is_known(struct checker *c)
{
    const uint32_t *known = known_unit(c);
    const struct plan *plan = c->plan;
    if (!known || *known == 0 || !check_is_alike(plan, c->unit, &plan->units[*known - 1])) return false;
    for (uint32_t o = 0; o < c->unit->op_count; o++)
        c->claims_of[c->unit->first_op + o] = c->claims_of[plan->units[*known - 1].first_op + o];
    return true;
}

static void note_unit(struct checker *c)
{
    uint32_t *known = known_unit(c);
    if (known) *known = (uint32_t)(c->unit - c->plan->units) + 1;
}

/* --- all ------------------------------------------------------------------------------------ */

enum status check_units(struct checker *c)
{
    const struct plan *plan = c->plan;
    uint32_t next_op = 0;
    for (uint32_t u = 0; u < plan->unit_count; u++) {
        c->unit = &plan->units[u];
        c->op = NULL;
        if (c->unit->first_op != next_op || c->unit->op_count > plan->op_count - next_op)
            return check_fail(c, CHECK_RULE_FORM,
                              "its operations are not after the previous unit's");
        next_op += c->unit->op_count;
        if (is_known(c)) continue;
        TRY(check_unit(c));
        note_unit(c);
    }
    c->unit = NULL;
    return STATUS_OK;
}
