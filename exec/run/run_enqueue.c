/*
 * Enqueues a wait for each operation that must precede this one (see plan_walk.h), then the work, then the event of
 * its end, with checkpoints' commands around them (run_saver.c).
 *
 * In tests, released memory is filled with NaN on the releasing operation's stream, after waiting for all streams that
 * used it; its event includes the filling.
 */
#include "exec/run/run_enqueue.h"

#include <assert.h>
#include <string.h>

#include "exec/group/run_members.h"
#include "exec/group/run_split.h"
#include "exec/run/run_callbacks.h"
#include "exec/run/run_files.h"
#include "exec/run/run_moves.h"
#include "exec/run/run_outputs.h"
#include "exec/run/run_ranks.h"
#include "exec/run/run_rows.h"
#include "exec/state/run_in_flight.h"
#include "exec/state/run_saver.h"
#include "exec/state/run_storage.h"
#include "exec/state/run_write_back.h"

static void call_nothing(void *argument)
{
    (void)argument;
}

static char *address_of(const struct run_loop *loop, const struct plan_walk_op *op, const struct plan_place_use *use)
{
    if (use->place == 0 && use->slot != PLAN_NONE)
        return loop->run->host + loop->run->stage_offset + run_storage_staged(loop->run, op) + use->address;
    const uint32_t rank = plan_buffer_rank(loop->plan, &loop->plan->buffers[use->buffer], op->rank);
    if (use->place == 0) return run_host_buffer_of(loop->run, use->buffer, rank) + use->address;
    return (char *)device_arena(loop->run->devices[use->place - 1]) + use->address;
}

/* Counts the targets of the minibatch of a pass that makes a loss, as data_targets() does: once for all its
 * microbatches. */
static uint64_t targets_of(struct run_loop *loop, const struct plan_walk_op *op)
{
    const bool held_out = op->unit->pass == PLAN_EVALUATE;
    const struct data_source *const source = (held_out ? loop->run->held_out : loop->run->sources)[op->unit->job];
    const uint64_t minibatch = run_batch_index(&loop->plan->jobs.jobs[op->unit->job], op);
    struct run_targets *const known = &loop->targets[op->unit->job][held_out];
    if (!source) return 0;
    if (known->next != minibatch + 1) *known = (struct run_targets){minibatch + 1, data_targets(source, minibatch)};
    return known->count;
}

/* Sets the argument that the use of a buffer stands for. */
static void set_argument(struct unit_arguments *arguments, struct run_loop *loop, const struct plan_walk_op *op,
                         const struct plan_place_use *use)
{
    const struct plan_buffer *const buffer = &loop->plan->buffers[use->buffer];
    const uint32_t shard = op->unit->shard;
    void *const at = address_of(loop, op, use);
    switch ((enum plan_buffer_kind)buffer->kind) {
    case BUFFER_STATE: /* a resident head reads the token table in the embedding's state */
        if (buffer->shard == shard)
            arguments->state = at;
        else
            arguments->table = at;
        break;
    case BUFFER_PARAMETERS: /* a version is made from the state */
        if (op->gang == PLAN_NONE || (op->unit->pass != PLAN_UPDATE && op->unit->pass != PLAN_LOAD))
            arguments->state = at;
        else if (use->flags & ACCESS_WRITE)
            arguments->version = at;
        break;
    case BUFFER_STAGED: arguments->state = at; break;
    case BUFFER_BASE: arguments->base = at; break;
    case BUFFER_OUTPUTS: arguments->boundary_out = at; break;
    case BUFFER_TABLE: arguments->table = at; break;
    case BUFFER_TABLE_GRADIENT: arguments->table_gradient = at; break;
    case BUFFER_BATCH: arguments->batch = at; break;
    case BUFFER_LOSS:
        arguments->loss = at;
        arguments->targets = targets_of(loop, op);
        break;
    case BUFFER_BOUNDARY:
        if (buffer->shard == shard)
            arguments->boundary_in = at;
        else
            arguments->boundary_out = at;
        break;
    case BUFFER_BOUNDARY_GRADIENT:
        if (buffer->shard == shard)
            arguments->gradient_out = at;
        else
            arguments->gradient_in = at;
        break;
    case BUFFER_ACTIVATIONS: arguments->activations = at; break;
    case BUFFER_GRADIENT: /* the first chunk's step reads the last one's, where these share a table */
        if (buffer->variant == PLAN_GRADIENT_LEVELS)
            arguments->levels = at;
        else if (buffer->shard == shard || buffer->shard == PLAN_NONE)
            arguments->gradient = at;
        else
            arguments->table_gradient = at;
        break;
    case BUFFER_NORMS: arguments->norms = at; break;
    case BUFFER_WORKSPACE: /* a chunk's others go from one unit to another */
        if (op->gang == PLAN_NONE || buffer->variant == 0)
            arguments->workspace = at;
        else
            arguments->handed_gradients = at;
        break;
    case BUFFER_KEPT:
    case BUFFER_STORED: /* nothing computes there */
    case BUFFER_KIND_COUNT: assert(false);
    }
}

static struct unit_arguments unit_arguments_of(struct run_loop *loop, const struct plan_walk_op *op)
{
    const struct plan *const plan = loop->plan;
    const uint32_t shard_index = plan->job_first_shard[op->unit->job] + op->unit->shard;
    struct run *const run = loop->run;
    int32_t *const begins = run_rows_of(run, op);
    const bool guarded = !run->peers && run->options->on_nan == RUN_NAN_STOP && run->backend->arena_on_host;
    struct unit_arguments arguments = {
        .guard = guarded ? &run->jobs[op->unit->job].guard : NULL,
        .job = &plan->jobs.jobs[op->unit->job],
        .shard = &plan->shards[shard_index],
        .tables = &loop->run->tables[shard_index],
        .pass = op->op->pass,
        .minibatch = plan->jobs.jobs[op->unit->job].first_minibatch + op->minibatch,
        .first_row = op->op->first_row,
        .row_count = op->op->row_count,
        .inputs_only = plan->shards[shard_index].inputs_only,
        .begins = begins,
        .position_rows = run_rows_positions(&plan->jobs.jobs[op->unit->job], begins),
    };
    for (uint32_t i = 0; i < op->use_count; i++) set_argument(&arguments, loop, op, &op->uses[i]);
    return arguments;
}

static bool is_asynchronous(const struct run_loop *loop, const struct plan_walk_op *op)
{
    return op->gang != PLAN_NONE && pipeline_is_asynchronous(loop->plan->jobs.jobs[op->unit->job].parallel.schedule);
}

/* Returns where a rank's units of an asynchronous schedule are counted; NULL: they are not. */
static uint32_t *counter_of(const struct run_loop *loop, const struct plan_walk_op *op)
{
    const uint32_t shard = loop->plan->job_first_shard[op->unit->job] + op->unit->shard;
    if (!is_asynchronous(loop, op)) return NULL;
    struct run_passes *const passes = &loop->passes[loop->first_passes[shard] + op->rank];
    switch (op->unit->pass) {
    case PLAN_BATCH: return &passes->batches;
    case PLAN_REDUCE: return &passes->summed;
    case PLAN_UPDATE: return &passes->updates;
    default: return NULL;
    }
}

uint64_t run_minibatch_of(const struct run_loop *loop, const struct plan_walk_op *op)
{
    if (!is_asynchronous(loop, op)) return op->minibatch;
    const struct job *const job = &loop->plan->jobs.jobs[op->unit->job];
    const uint32_t shard = loop->plan->job_first_shard[op->unit->job] + op->unit->shard;
    const struct run_passes *const passes = &loop->passes[loop->first_passes[shard] + op->rank];
    const uint32_t stage = parallel_place(&job->parallel, op->unit->shard).stage;
    const uint32_t replica = op->rank / job->parallel.tensor;
    const uint64_t each = parallel_microbatches_of(job, stage, replica).count;
    const uint64_t turns = parallel_has_own_pace(&job->parallel) ? job->parallel.replicas[stage] : 1;
    /* passes are counted by their computations, which end the unit, but for the copy of a loss */
    const bool counted = op->op->kind == OP_COPY && op->op->stream == STREAM_D2H;
    if (op->unit->pass == PLAN_FORWARD) return turns > 1 ? passes->forward * turns + replica : passes->forward / each;
    if (op->unit->pass == PLAN_BACKWARD)
        return turns > 1 ? passes->backward * turns + replica : (passes->backward - counted) / each;
    if (op->unit->pass == PLAN_JOIN) return loop->passes[loop->first_passes[shard]].updates; /* the update follows */
    if (op->unit->pass == PLAN_NORM) return passes->updates;
    const uint32_t *const count = counter_of(loop, op);
    if (!count) return op->minibatch;
    const uint64_t unit = op->op_index == 0 ? *count : *count - 1; /* counted by its first operation */
    if (turns > 1) return op->unit->pass == PLAN_BATCH ? unit * turns + replica : (unit + 1) * turns - 1;
    return unit;
}

/* Returns the replica's passes over a chunk in this minibatch. */
static struct run_passes *passes_of(struct run_loop *loop, const struct plan_walk_op *op, uint32_t shard)
{
    struct run_passes *const passes = &loop->passes[loop->first_passes[shard] + op->rank];
    if (passes->minibatch != op->minibatch && !is_asynchronous(loop, op))
        *passes = (struct run_passes){.minibatch = op->minibatch};
    return passes;
}

/* Returns the chunk's microbatch: each pass of a minibatch is over the replica's next one. */
static struct unit_microbatch next_microbatch(struct run_loop *loop, const struct plan_walk_op *op, uint32_t shard)
{
    struct run_passes *const passes = passes_of(loop, op, shard);
    uint32_t *const counts[] = {[PLAN_FORWARD] = &passes->forward,         [PLAN_BACKWARD] = &passes->backward,
                                [PLAN_BACKWARD_INPUT] = &passes->backward, [PLAN_BACKWARD_WEIGHT] = &passes->weight,
                                [PLAN_EVALUATE] = &passes->evaluated};
    uint32_t *const count = counts[op->op->pass];
    const struct job *const job = &loop->plan->jobs.jobs[op->unit->job];
    const uint32_t stage = parallel_place(&job->parallel, op->unit->shard).stage;
    const struct parallel_microbatches own = parallel_microbatches_of(job, stage, op->rank / job->parallel.tensor);
    const uint32_t slices = parallel_slices(&job->parallel), passed = (uint32_t)((*count)++ % (own.count * slices));
    const uint32_t done = passed / slices;
    return (struct unit_microbatch){.alone = true, .adds = passed > 0, .index = (uint32_t)(own.first + own.step * done),
                                    .place = done, .held = (uint32_t)own.count,
                                    .apart = loop->run->chunks[shard].memory.splits_gradients};
}

/* Returns the squares on the host that an update's unit copies to the device, whose kernels take the norm as an
 * argument. */
static double *norms_on_host(const struct run_loop *loop, const struct plan_walk_op *op)
{
    const struct plan *const plan = loop->plan;
    for (uint32_t o = op->unit->first_op; o < op->unit->first_op + op->unit->op_count; o++) {
        const uint32_t source = plan->accesses[plan->ops[o].first_access].buffer;
        if (plan->ops[o].kind != OP_COPY || plan->buffers[source].kind != BUFFER_NORMS) continue;
        const uint32_t rank = plan_buffer_rank(plan, &plan->buffers[source], op->rank);
        return (double *)(void *)run_host_buffer_of(loop->run, source, rank);
    }
    assert(!"an update without the squares of all gradients");
    return NULL;
}

/* Computes over a chunk of a parallel job: operands are as for a unit over a shard, but for tied tables. */
static struct chunk_arguments chunk_arguments_of(struct run_loop *loop, const struct plan_walk_op *op)
{
    const struct plan *const plan = loop->plan;
    const uint32_t first = plan->job_first_shard[op->unit->job], shard = first + op->unit->shard;
    const uint32_t last = plan->job_first_shard[op->unit->job + 1] - 1;
    const struct unit_arguments unit = unit_arguments_of(loop, op);
    struct chunk_arguments arguments = {
        .job = unit.job,
        .tables = &loop->run->chunks[shard],
        .split = op->op->stream == STREAM_CPU ? NULL : run_split_of(loop->run, op), /* the host steps one rank at a
                                                                                       time */
        .pass = unit.pass,
        .rank = op->rank / unit.job->parallel.tensor,
        .minibatch = unit.minibatch,
        .state = unit.state,
        .version = unit.version,
        .gradient = unit.gradient,
        .levels = unit.levels,
        .norms = unit.norms,
        .table = unit.table,
        .batch = unit.batch,
        .begins = unit.begins,
        .position_rows = unit.position_rows,
        .loss = unit.loss,
        .targets = unit.targets,
        .boundary_in = unit.boundary_in,
        .boundary_out = unit.boundary_out,
        .gradient_in = unit.gradient_in,
        .gradient_out = unit.gradient_out,
        .activations = loop->run->chunks[shard].memory.activation_bytes > 0 ? unit.activations : NULL,
        .handover = unit.handed_gradients,
        .workspace = unit.workspace,
        .guard = unit.guard,
    };
    const bool far = op->op->stream != STREAM_CPU && !loop->run->backend->arena_on_host;
    if (unit.pass == PLAN_UPDATE && unit.norms && far) arguments.norms = norms_on_host(loop, op);
    if (unit.pass == PLAN_UPDATE && parallel_has_own_pace(&unit.job->parallel)) {
        arguments.round = unit.job->parallel.replicas[parallel_place(&unit.job->parallel, op->unit->shard).stage];
        arguments.minibatch /= arguments.round;
    }
    if (unit.pass == PLAN_UPDATE || unit.pass == PLAN_NORM) {
        float *const of_head = shard == last ? unit.gradient : unit.table_gradient;
        const struct chunk_tables *const head = &loop->run->chunks[last];
        if (of_head && head->memory.trains_table)
            arguments.table_gradient = head->shares
                                           ? chunk_share_gradient(head, of_head, CHUNK_SECTION_HEAD, arguments.rank)
                                           : chunk_table_gradient(head, of_head);
    } else if (unit.pass != PLAN_LOAD && unit.pass != PLAN_REDUCE) {
        arguments.microbatch = next_microbatch(loop, op, shard);
        if (arguments.tables->slices) arguments.tables = &arguments.tables->slices[op->op->slice];
        if (shard == first) arguments.table = unit.state; /* a head in the same chunk */
    }
    return arguments;
}

/* Returns true for computations on host memory that read data or keep weights. */
static bool is_of_host(const struct plan_walk_op *op)
{
    return op->op->pass == PLAN_BATCH || op->op->pass == PLAN_KEEP;
}

static bool is_of_files(const struct plan_walk_op *op)
{
    return op->op->pass == PLAN_OPEN || op->op->pass == PLAN_CLOSE;
}

/* Returns true for a computation without work, which only begins or ends lives of buffers. The first rank's OPEN makes
 * the states of all ranks. */
static bool is_idle(const struct run_loop *loop, const struct plan_walk_op *op)
{
    if (is_of_files(op)) return op->op->pass == PLAN_OPEN && op->rank > 0;
    if (op->op->pass == PLAN_STORE) return true; /* of a frozen state, which ends there */
    const bool makes_version = op->op->pass == PLAN_LOAD || op->op->pass == PLAN_UPDATE;
    if (makes_version && is_asynchronous(loop, op)) return false; /* also where all is frozen */
    if (op->op->pass == PLAN_REDUCE) return false; /* encodes, perhaps in no time */
    return op->op->work == PLAN_NONE && op->gang != PLAN_NONE && !is_of_host(op);
}

static void enqueue_compute(struct run_loop *loop, const struct plan_walk_op *op,
                            struct run_flight *flight)
{
    if (is_idle(loop, op)) {
        device_call(loop->run->streams[op->stream], call_nothing, NULL, 0, &flight->timing);
        return;
    }
    if (is_of_files(op)) {
        run_files_enqueue(loop->run, op, &flight->timing);
        return;
    }
    if (op->gang != PLAN_NONE && !is_of_host(op)) {
        const struct chunk_arguments arguments = chunk_arguments_of(loop, op);
        run_callback_chunk(loop->run, op, &arguments, flight);
        return;
    }
    if (op->op->pass == PLAN_RECALL) {
        run_outputs_recall(loop->run, op, address_of(loop, op, &op->uses[0]), address_of(loop, op, &op->uses[1]),
                           flight);
    } else if (op->op->pass == PLAN_KEEP) {
        run_callback_keep(loop->run, op, &flight->timing);
    } else if (op->op->pass == PLAN_BATCH) {
        run_callback_batch(loop->run, op, (int32_t *)(void *)address_of(loop, op, &op->uses[0]),
                           &flight->timing);
    } else {
        const struct unit_arguments arguments = unit_arguments_of(loop, op);
        run_callback_compute(loop->run, op, &arguments, flight);
    }
}

/* Returns true for an exchange of a tensor group within a pass, which is on its stream; a scattered boundary is
 * gathered on another one. */
static bool is_within(const struct plan_walk_op *op)
{
    return op->op->axes == 1u << AXIS_TENSOR && op->op->stream != STREAM_GROUP;
}

/* Returns a member's data in a sum or gathering over replicas, or in the gathering of a boundary. A member of another
 * process has only its ranges: its addresses are not used. */
static struct run_collective_data collective_data_of(struct run_loop *loop, const struct plan_walk_op *op)
{
    const uint32_t shard = loop->plan->job_first_shard[op->unit->job] + op->unit->shard;
    char *at[2] = {NULL, NULL};
    assert(op->use_count <= ARRAY_COUNT(at));
    for (uint32_t i = 0; i < op->use_count; i++)
        at[i] = run_has_device(loop->run, op->device) ? address_of(loop, op, &op->uses[i]) : loop->run->host;
    if (op->op->axes == 1u << AXIS_TENSOR) return run_members_boundary(loop->run, op, at[0]);
    const bool adds = op->unit->pass == PLAN_REDUCE && passes_of(loop, op, shard)->reduced++ > 0;
    return run_members_data(loop->run, op, at, adds);
}

static enum status enqueue_collective(struct run_loop *loop, const struct plan_walk_op *op, struct run_flight *flight,
                                      struct error *err)
{
    if (is_within(op)) return run_split_enqueue(loop->run, op, flight, err);
    const struct run_collective_data data = collective_data_of(loop, op);
    return run_collective_enqueue(loop->run, op, &data, &flight->omitted, &flight->timing, err);
}

/* Ranges of weights that come up: in bytes from the host's and the device's addresses. */
struct raised_range {
    uint64_t to, from, bytes;
};
enum { RAISED_RANGES_MAX = 2 * CHUNK_SECTIONS_MAX };

/* Lists a share's ranges, or only that of the table for another chunk, whose addresses begin with it. Frozen weights
 * come up for passes only. */
static uint32_t list_raised(const struct chunk_memory *m, const struct chunk_share *share, bool table,
                            struct raised_range ranges[RAISED_RANGES_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->frozen_count; i++) {
        const struct chunk_share_part *const part = &share->frozen[i];
        if (table && m->frozen[i].kind != CHUNK_SECTION_TABLE) continue;
        ranges[count++] = (struct raised_range){part->whole, part->here, part->bytes};
    }
    for (uint32_t i = 0; i < m->section_count; i++) {
        const struct chunk_share_part *const part = &share->sections[i].parts[STATE_WEIGHTS];
        if (table && m->sections[i].kind != CHUNK_SECTION_TABLE) continue;
        ranges[count++] = table ? (struct raised_range){part->whole, 0, part->bytes}
                                : (struct raised_range){chunk_share_place(m, part), part->here, part->bytes};
    }
    return count;
}

/* Copies a rank's share of the weights to its place among all weights, the longest range last; or its share of the
 * first chunk's table to the end of a head's. Returns false where the device has only that share, or the rank has
 * all. */
static bool enqueue_raised(struct run_loop *loop, const struct plan_walk_op *op, struct device_guard guard,
                           struct run_flight *flight)
{
    const struct plan_buffer *const source = &loop->plan->buffers[op->uses[0].buffer];
    const struct chunk_tables *const tables =
        &loop->run->chunks[loop->plan->job_first_shard[source->job] + source->shard];
    const bool gathers = op->unit->pass == PLAN_GATHER, table = source->shard != op->unit->shard;
    if (tables->memory.ranks <= 1 || (tables->memory.splits_weights && !gathers)) return false;
    if (tables->memory.section_count + tables->memory.frozen_count == 0) return false; /* all is frozen and whole */
    struct device_stream *const stream = loop->run->streams[op->stream];
    char *const to = address_of(loop, op, &op->uses[1]);
    const char *const from = address_of(loop, op, &op->uses[0]);
    struct raised_range ranges[RAISED_RANGES_MAX];
    const uint32_t count = list_raised(&tables->memory, &tables->shares[op->rank / tables->job->parallel.tensor], table,
                                       ranges);
    uint32_t longest = 0;
    for (uint32_t i = 1; i < count; i++)
        if (ranges[i].bytes > ranges[longest].bytes) longest = i;
    for (uint32_t i = 0; i < count; i++)
        if (i != longest && ranges[i].bytes > 0)
            device_copy_guarded(stream, to + ranges[i].to, from + ranges[i].from, ranges[i].bytes, guard, NULL);
    device_copy_guarded(stream, to + ranges[longest].to, from + ranges[longest].from, ranges[longest].bytes, guard,
                        &flight->timing);
    return true;
}

/* Returns true for a copy of squares of gradients to the host, where all stages read them. */
static bool is_of_norms(const struct run_loop *loop, const struct plan_walk_op *op)
{
    return op->op->kind == OP_COPY && op->op->stream == STREAM_D2H &&
           loop->plan->buffers[op->uses[1].buffer].kind == BUFFER_NORMS;
}

/* Returns true for a copy of frozen weights that other jobs share: a job that has ended early still brings them. */
static bool brings_base(const struct run_loop *loop, const struct plan_walk_op *op)
{
    return op->op->kind == OP_COPY && loop->plan->buffers[op->uses[0].buffer].kind == BUFFER_BASE;
}

static void enqueue_copy(struct run_loop *loop, const struct plan_walk_op *op, struct run_flight *flight)
{
    struct device_stream *const stream = loop->run->streams[op->stream];
    const struct plan_place_use *const from = &op->uses[0], *const to = &op->uses[1];
    if (op->op->stream == STREAM_READ || op->op->stream == STREAM_WRITE) {
        const struct plan_place_use *const staged = op->op->stream == STREAM_READ ? to : from;
        run_storage_enqueue(loop->run, op, address_of(loop, op, staged), run_copied_minibatch(loop, op),
                            &flight->omitted, &flight->timing);
        return;
    }
    const bool keeps = to->place == 0 && loop->plan->buffers[to->buffer].kind == BUFFER_OUTPUTS;
    char *const target = address_of(loop, op, to) + (keeps ? run_outputs_offset(op) : 0);
    const struct device_guard guard = {.limit = brings_base(loop, op) ? NULL : &loop->run->jobs[op->unit->job].limit,
                                       .value = run_copied_minibatch(loop, op)};
    const uint32_t source = loop->plan->buffers[from->buffer].kind;
    const bool raises = op->unit->pass == PLAN_REFRESH ||
                        (op->unit->pass == PLAN_GATHER && (source == BUFFER_STATE || source == BUFFER_STAGED));
    if (raises && enqueue_raised(loop, op, guard, flight)) return;
    if (op->op->stream == STREAM_P2P && !run_has_device(loop->run, from->place - 1)) {
        run_ranks_receive_copy(loop->run, op, target + run_members_scattered(loop->run, op, op->op->bytes), guard.value,
                               &flight->omitted, &flight->timing);
        return;
    }
    if (op->op->stream == STREAM_P2P) {
        const uint64_t part = run_members_scattered(loop->run, op, op->op->bytes);
        device_copy_p2p(stream, target + part, loop->run->devices[from->place - 1],
                        address_of(loop, op, from) + part, op->op->bytes, guard, &flight->timing);
        return;
    }
    device_copy_guarded(stream, target, address_of(loop, op, from), op->op->bytes, guard,
                        &flight->timing);
    if (to->place == 0 && loop->plan->buffers[to->buffer].kind == BUFFER_LOSS)
        run_callback_loss(loop->run, op, (const double *)(void *)target);
    if (keeps) run_outputs_note(loop->run, op);
    if (is_of_norms(loop, op)) run_ranks_spread(loop->run, op, target);
}

/* Counts a pass of another rank's device in an asynchronous schedule, whose minibatch follows from the count. */
static void count_elsewhere(struct run_loop *loop, const struct plan_walk_op *op)
{
    static const bool counted[PLAN_PASS_COUNT] = {[PLAN_FORWARD] = true, [PLAN_BACKWARD] = true};
    if (op->op->kind == OP_COMPUTE && counted[op->op->pass] && is_asynchronous(loop, op))
        (void)next_microbatch(loop, op, loop->plan->job_first_shard[op->unit->job] + op->unit->shard);
}

/* Does this rank's part in an operation of another rank's device: it sends, receives norms, or is a member of a sum. */
static enum status enqueue_elsewhere(struct run_loop *loop, const struct plan_walk_op *op, struct error *err)
{
    count_elsewhere(loop, op);
    if (op->op->kind == OP_COLLECTIVE && is_within(op)) return STATUS_OK;
    if (op->op->kind == OP_COLLECTIVE) {
        const struct run_collective_data data = collective_data_of(loop, op);
        return run_collective_enqueue_elsewhere(loop->run, op, &data, err);
    }
    if (op->op->kind == OP_COPY && op->op->stream == STREAM_P2P && run_has_device(loop->run, op->uses[0].place - 1))
        run_ranks_send_copy(loop->run, op,
                            address_of(loop, op, &op->uses[0]) + run_members_scattered(loop->run, op, op->op->bytes),
                            run_copied_minibatch(loop, op));
    if (is_of_norms(loop, op)) run_ranks_spread(loop->run, op, address_of(loop, op, &op->uses[1]));
    return STATUS_OK;
}

/* Waits for all streams that used it. */
static void poison_released(struct run_loop *loop, const struct plan_walk_op *op)
{
    struct device_stream *const stream = loop->run->streams[op->stream];
    for (uint32_t i = 0; i < op->use_count; i++) {
        const struct plan_place_use *const use = &op->uses[i];
        const uint64_t offset = loop->plan->accesses[op->op->first_access + i].offset_bytes;
        const bool staged = use->place == 0 && use->slot != PLAN_NONE;
        if (staged && (use->flags & ACCESS_RELEASE) && loop->run->backend->arena_on_host)
            device_poison(stream, address_of(loop, op, use) - offset, /* the last to use it */
                          loop->plan->buffers[use->buffer].bytes);
        if (!plan_use_on_device(use)) continue;
        const uint32_t device = use->place - 1;
        if (!run_has_device(loop->run, device)) continue;
        uint64_t *const users =
            &loop->users[((size_t)device * loop->plan->buffer_count + use->buffer) * STREAM_HOST];
        if (device == op->device) users[op->op->stream] = device_record(stream);
        if (!(use->flags & ACCESS_RELEASE)) continue;
        for (uint32_t kind = STREAM_COMPUTE; kind < plan_device_streams(loop->plan); kind++)
            device_wait(stream, loop->run->streams[plan_stream(loop->plan, device, kind)],
                        users[kind]);
        device_poison(stream, address_of(loop, op, use) - offset,
                      loop->plan->buffers[use->buffer].bytes);
        memset(users, 0, STREAM_HOST * sizeof *users);
    }
}

static void measure_slots(const struct run_loop *loop, const struct plan_walk_op *op,
                          struct run_flight *flight)
{
    for (uint32_t i = 0; i < op->use_count; i++) {
        const struct plan_place_use *const use = &op->uses[i];
        const uint64_t bytes = loop->plan->buffers[use->buffer].bytes;
        if (!plan_use_on_device(use)) continue;
        if (use->flags & ACCESS_ACQUIRE) {
            flight->acquired_bytes += bytes;
            loop->run->slot_uses[(size_t)op->device * loop->plan->slot_count + use->slot] |=
                (uint8_t)(1u << plan_memory_use_of(loop->plan, op->unit, use->buffer));
        }
        if (use->flags & ACCESS_RELEASE) flight->released_bytes += bytes;
    }
}

static enum status enqueue_work(struct run_loop *loop, const struct plan_walk_op *op, struct run_flight *flight,
                                struct error *err)
{
    if (flight->elsewhere) return enqueue_elsewhere(loop, op, err);
    if (op->op->kind == OP_COLLECTIVE) return enqueue_collective(loop, op, flight, err);
    if (op->op->kind == OP_COPY) enqueue_copy(loop, op, flight);
    else enqueue_compute(loop, op, flight);
    return STATUS_OK;
}

/* Returns the minibatches that the end of a unit completes. Where stages have their own pace, the last update of the
 * first stage completes those of its replicas. */
static uint64_t minibatches_ended(const struct run_loop *loop, const struct plan_unit *unit)
{
    const struct parallel *const p = &loop->plan->jobs.jobs[unit->job].parallel;
    if (parallel_has_own_pace(p)) return unit->pass == PLAN_UPDATE && unit->shard == 0 ? p->replicas[0] : 0;
    return unit->ends_minibatch;
}

/* A tensor group's passes wait for each other, like the operations of a collective: all are enqueued, or none. */
static void join_passes(const struct run_loop *loop, struct plan_walk_op *op)
{
    const uint32_t tensor = loop->plan->jobs.jobs[op->unit->job].parallel.tensor;
    if (op->gang == PLAN_NONE || op->op->kind != OP_COMPUTE || op->op->stream != STREAM_COMPUTE || tensor <= 1) return;
    op->join_count = tensor;
    op->join_at = op->rank % tensor;
}

enum status run_await_room(struct run_loop *loop, struct plan_walk_op *op, struct error *err)
{
    join_passes(loop, op);
    struct plan_walk_op about = *op;
    /* a rank's own passes bound how far an asynchronous schedule is ahead: others' wait for no turn here */
    const bool waits = run_is_here(loop->run, op) || !is_asynchronous(loop, op);
    about.minibatch = waits ? run_minibatch_of(loop, op) : 0;
    return run_make_room(loop, &about, err);
}

enum status run_enqueue(struct run_loop *loop, const struct plan_walk_op *walked, bool skip, struct error *err)
{
    enum status status = STATUS_OK;
    struct plan_walk_op own = *walked;
    const struct plan_walk_op *const op = &own;
    own.minibatch = run_minibatch_of(loop, walked);
    uint32_t *const counter = counter_of(loop, walked);
    if (counter && op->op_index == 0) ++*counter;
    if (op->join_at == 0) loop->join_skipped = skip;
    else skip = loop->join_skipped;
    if (brings_base(loop, op)) skip = false;

    struct run *const run = loop->run;
    struct device_stream *const stream = run->streams[op->stream];
    struct run_flight *const flight = run_flight_of(loop, op->number);
    *flight = (struct run_flight){
        .number = op->number,
        .minibatch = op->minibatch,
        .walked = walked->minibatch,
        .op = op->op,
        .unit = op->unit,
        .stream = op->stream,
        .device = op->device,
        .peer = op->op->stream == STREAM_P2P ? op->uses[0].place - 1 : op->device,
        .op_index = op->op_index,
        .skipped = skip,
        .elsewhere = !run_is_here(run, op),
        .predicted_s = skip ? 0 : loop->predicted_s[op->op - loop->plan->ops],
    };
    for (uint32_t i = 0; i < op->wait_count; i++) {
        if (op->waits[i] < loop->oldest) continue;
        const struct run_flight *const other = run_flight_of(loop, op->waits[i]);
        device_wait(stream, run->streams[other->stream], other->event);
        if (flight->wait_count < RUN_FLIGHT_WAITS) flight->waits[flight->wait_count++] = op->waits[i];
    }
    if (!skip) run_moves_before(run, op);
    measure_slots(loop, op, flight);
    if (skip) {
        device_call(stream, call_nothing, NULL, 0, &flight->timing); /* for its time */
    } else {
        run_saver_before(run->saver, op);
        status = enqueue_work(loop, op, flight, err);
        run_follow_state(loop, op);
    }
    if (run->options->poison) poison_released(loop, op);
    flight->event = device_record(stream);
    run_moves_after(run, op, flight->event);
    loop->backlog_s[op->stream] += flight->predicted_s;
    loop->next = op->number + 1;
    loop->last[op->unit->job] = op->number;
    const struct plan_unit *const unit = op->unit;
    if (op->ends_unit) loop->walked[unit->job] += minibatches_ended(loop, unit);
    if (!skip) run_saver_after(run->saver, op, loop->walked[unit->job]);
    return status;
}
