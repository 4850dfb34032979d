/*
 * A buffer's contents follow from its kind, and for states and workspaces from their layout tables
 * (models/job/memory.h; models/job/parallel_memory.h). Padding counts with the data before it: a state's with weights,
 * a workspace's with its rest.
 *
 * Cost: O(accesses of all tasks of one repetition).
 */
#include "planner/walk/memory_breakdown.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/size.h"
#include "base/try.h"
#include "models/job/chunk_memory.h"
#include "models/job/parallel_memory.h"
#include "models/job/parallel_offload.h"

const char *const memory_part_names[MEMORY_PART_COUNT] = {
    [MEMORY_PART_WEIGHTS] = "weights",       [MEMORY_PART_MASTER] = "master weights",
    [MEMORY_PART_MOMENTS] = "optimizer",
    [MEMORY_PART_GRADIENTS] = "gradients",   [MEMORY_PART_TABLES] = "token tables",
    [MEMORY_PART_ACTIVATIONS] = "activations",
    [MEMORY_PART_LOGITS] = "logits",         [MEMORY_PART_BOUNDARIES] = "boundaries",
    [MEMORY_PART_WORKSPACE] = "workspace", [MEMORY_PART_STAGED] = "staged",         [MEMORY_PART_AHEAD] = "held ahead",
};

/* --- what a buffer holds ---------------------------------------------------------------------- */

struct holds {
    uint64_t bytes[MEMORY_PART_COUNT];
};

static struct holds all_of(enum memory_part part, uint64_t bytes)
{
    struct holds holds = {0};
    holds.bytes[part] = bytes;
    return holds;
}

static const struct plan_shard *shard_of(const struct plan *plan, const struct plan_buffer *b)
{
    return &plan->shards[plan->job_first_shard[b->job] + b->shard];
}

/* Divides the bytes; the rest are weights. */
static struct holds state_of(uint64_t bytes, uint64_t master, uint64_t moments)
{
    struct holds holds = {0};
    holds.bytes[MEMORY_PART_MOMENTS] = min_u64(moments, bytes);
    holds.bytes[MEMORY_PART_MASTER] = min_u64(master, bytes - holds.bytes[MEMORY_PART_MOMENTS]);
    holds.bytes[MEMORY_PART_WEIGHTS] = bytes - holds.bytes[MEMORY_PART_MOMENTS] - holds.bytes[MEMORY_PART_MASTER];
    return holds;
}

/* Returns the contents of a state; for a slice of an embedding, the rows that its bytes hold. */
static struct holds state_alone(const struct job *job, const struct plan_shard *shard, uint64_t bytes)
{
    struct state_layout layout = job_state(job, shard->first_layer, shard->layer_count);
    if (bytes < layout.bytes) {
        uint64_t row = memory_state_rows(&job->network, 1, job_state_format(job)).bytes;
        layout = memory_state_rows(&job->network, row > 0 ? bytes / row : 0, job_state_format(job));
    }
    return state_of(bytes, layout.parts[STATE_MASTER].bytes,
                    layout.parts[STATE_FIRST].bytes + layout.parts[STATE_SECOND].bytes);
}

/* A pipeline's chunk may have a copy of the tied table. */
static struct holds state_of_chunk(const struct job *job, const struct plan_shard *shard, const struct plan_buffer *b)
{
    const struct chunk_memory chunk = chunk_memory(job,
                                                   (struct parallel_layers){shard->first_layer, shard->layer_count});
    struct state_layout layout = job_state(job, shard->first_layer, shard->layer_count);
    for (uint32_t part = 0; part < STATE_PARTS; part++)
        layout.parts[part].bytes += chunk.table_rows_layout.parts[part].bytes;
    return state_of(b->bytes, layout.parts[STATE_MASTER].bytes,
                    layout.parts[STATE_FIRST].bytes + layout.parts[STATE_SECOND].bytes);
}

/* On a device, or the host's share; `weights`: together with the states. */
static struct holds state_parallel(const struct plan *plan, const struct plan_shard *shard, const struct plan_buffer *b)
{
    const struct job *job = &plan->jobs.jobs[b->job];
    if (parallel_is_carried_out(&job->parallel)) return state_of_chunk(job, shard, b);
    struct parallel_layers layers = {shard->first_layer, shard->layer_count};
    struct rank_state have = b->on_device ? parallel_state(job, layers) : parallel_host_state(job, layers);
    struct parameter_bytes each = parallel_parameter_bytes(job);
    uint64_t master = each.weight < sizeof(float) && each.state > 0 ? have.state_bytes / each.state * sizeof(float) : 0;
    return state_of(b->bytes, master, have.state_bytes - min_u64(master, have.state_bytes));
}

static bool op_uses(const struct plan *plan, const struct plan_op *op, enum plan_buffer_kind kind)
{
    for (uint32_t a = 0; a < op->access_count; a++) {
        const struct plan_buffer *b = &plan->buffers[plan->accesses[op->first_access + a].buffer];
        if (b->kind == kind && b->on_device) return true;
    }
    return false;
}

static enum memory_part part_of_entry(const char *name)
{
    static const struct {
        const char *name;
        enum memory_part part;
    } parts[] = {
        {"logits", MEMORY_PART_LOGITS},    {"gradients", MEMORY_PART_GRADIENTS},
        {"sums", MEMORY_PART_GRADIENTS},   {"activations", MEMORY_PART_ACTIVATIONS},
        {"levels", MEMORY_PART_GRADIENTS},
        {"keep", MEMORY_PART_ACTIVATIONS}, {"inputs", MEMORY_PART_ACTIVATIONS},
        {"head", MEMORY_PART_ACTIVATIONS},
    };
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
        if (strcmp(name, parts[i].name) == 0) return parts[i].part;
    return MEMORY_PART_WORKSPACE;
}

/* Divides a workspace by the table of the executor's layout. */
static enum status workspace_alone(const struct plan *plan, const struct plan_op *op, const struct plan_buffer *b,
                                   struct holds *out, struct error *err)
{
    const struct job *job = &plan->jobs.jobs[b->job];
    const struct plan_shard *shard = shard_of(plan, b);
    bool embedding = shard->first_layer == 0 && network_layer_kind(&job->network, 0) == LAYER_EMBEDDING;
    enum unit_pass pass = op->pass == PLAN_LOSS ? UNIT_LOSS : op->pass == PLAN_BACKWARD ? UNIT_BACKWARD : UNIT_FORWARD;
    uint32_t how = job_pass_way(job, shard->first_layer) | (shard->inputs_only ? UNIT_INPUTS : 0);
    if (embedding || op_uses(plan, op, BUFFER_ACTIVATIONS)) how |= UNIT_KEEP;
    if (op_uses(plan, op, BUFFER_GRADIENT)) how |= UNIT_GRADIENTS_OUT;
    struct memory_table table;
    struct arena arena = {0};
    *out = all_of(MEMORY_PART_WORKSPACE, b->bytes);
    enum status status =
        memory_workspace(&job->network, shard->first_layer, shard->layer_count, pass, how,
                         job_pass_samples(job, shard->first_layer), job->sequence, &arena, &table, err);
    for (uint32_t e = 0; !status && table.bytes == b->bytes && e < table.count; e++) {
        enum memory_part part = part_of_entry(table.entries[e].name);
        out->bytes[MEMORY_PART_WORKSPACE] -= table.entries[e].bytes;
        out->bytes[part] += table.entries[e].bytes;
    }
    arena_release(&arena);
    return status;
}

/* Returns the contents of a buffer that do not depend on the operation. */
static struct holds held_by(const struct plan *plan, const struct plan_buffer *b)
{
    const struct job *job = &plan->jobs.jobs[b->job];
    switch ((enum plan_buffer_kind)b->kind) {
    case BUFFER_STATE:
    case BUFFER_STORED:
        return parallel_is_set(&job->parallel) ? state_parallel(plan, shard_of(plan, b), b)
                                               : state_alone(job, shard_of(plan, b), b->bytes);
    case BUFFER_PARAMETERS:
    case BUFFER_BASE:
    case BUFFER_KEPT: return all_of(MEMORY_PART_WEIGHTS, b->bytes);
    case BUFFER_GRADIENT:
    case BUFFER_NORMS: return all_of(MEMORY_PART_GRADIENTS, b->bytes);
    case BUFFER_TABLE:
    case BUFFER_TABLE_GRADIENT: return all_of(MEMORY_PART_TABLES, b->bytes);
    case BUFFER_ACTIVATIONS: return all_of(MEMORY_PART_ACTIVATIONS, b->bytes);
    case BUFFER_WORKSPACE: return all_of(MEMORY_PART_WORKSPACE, b->bytes);
    case BUFFER_STAGED: return all_of(MEMORY_PART_STAGED, b->bytes);
    default: return all_of(MEMORY_PART_BOUNDARIES, b->bytes);
    }
}

/* --- a device --------------------------------------------------------------------------------- */

struct memory_breakdown_walk {
    const struct plan *plan;
    uint32_t device;
    struct holds *live; /* per buffer: its current contents */
    struct holds now;
    uint64_t now_bytes, most_bytes;
    struct memory_breakdown *out;
};

static void add(struct memory_breakdown_walk *w, uint32_t buffer, const struct holds *holds)
{
    for (uint32_t p = 0; p < MEMORY_PART_COUNT; p++) {
        w->now.bytes[p] += holds->bytes[p] - w->live[buffer].bytes[p];
        w->now_bytes += holds->bytes[p] - w->live[buffer].bytes[p];
    }
    w->live[buffer] = *holds;
}

static enum status begin_lives(struct memory_breakdown_walk *w, const struct plan_op *op, struct error *err)
{
    const struct plan *plan = w->plan;
    for (uint32_t a = 0; a < op->access_count; a++) {
        const struct plan_access *access = &plan->accesses[op->first_access + a];
        const struct plan_buffer *b = &plan->buffers[access->buffer];
        if (!(access->flags & ACCESS_ACQUIRE) || !b->on_device) continue;
        struct holds holds = held_by(plan, b);
        bool alone = !parallel_is_set(&plan->jobs.jobs[b->job].parallel);
        if (b->kind == BUFFER_WORKSPACE && alone && op->kind == OP_COMPUTE)
            TRY(workspace_alone(plan, op, b, &holds, err));
        add(w, access->buffer, &holds);
    }
    return STATUS_OK;
}

/* `peer`: the operation is on another device, which fetches from this one. */
static void end_lives(struct memory_breakdown_walk *w, const struct plan_op *op, bool peer)
{
    static const struct holds nothing = {0};
    for (uint32_t a = 0; a < op->access_count; a++) {
        const struct plan_access *access = &w->plan->accesses[op->first_access + a];
        bool fetched = op->stream == STREAM_P2P && a == 0;
        if ((access->flags & ACCESS_RELEASE) && fetched == peer && w->plan->buffers[access->buffer].on_device)
            add(w, access->buffer, &nothing);
    }
}

static bool fetches_from(const struct plan *plan, const struct plan_task *task, uint32_t device)
{
    if (task->peer == PLAN_NONE) return false;
    if (task->gang == PLAN_NONE) return task->peer == device;
    const struct plan_gang *gang = &plan->gangs[task->peer];
    for (uint32_t i = 0; i < plan_gang_size(gang); i++)
        if (plan->gang_devices[gang->first + i] == device) return true;
    return false;
}

static enum status walk_task(struct memory_breakdown_walk *w, uint32_t i, struct error *err)
{
    const struct plan *plan = w->plan;
    const struct plan_task *task = &plan->tasks[i];
    const struct plan_unit *unit = &plan->units[task->unit];
    bool here = plan_runs_on(plan, task, w->device), peer = fetches_from(plan, task, w->device);
    for (uint32_t o = 0; (here || peer) && o < unit->op_count; o++) {
        const struct plan_op *op = &plan->ops[unit->first_op + o];
        if (here) TRY(begin_lives(w, op, err));
        if (w->now_bytes > w->most_bytes) {
            w->most_bytes = w->now_bytes;
            memcpy(w->out->bytes, w->now.bytes, sizeof w->now.bytes);
            w->out->task = i;
        }
        if (here) end_lives(w, op, false);
        if (peer) end_lives(w, op, true);
    }
    return STATUS_OK;
}

enum status memory_breakdown_of_device(const struct plan *plan, uint32_t device, struct memory_breakdown *out,
                                       struct error *err)
{
    struct memory_breakdown_walk walk = {.plan = plan, .device = device, .out = out};
    *out = (struct memory_breakdown){.task = PLAN_NONE};
    walk.live = alloc_zeroed((size_t)plan->buffer_count + 1, sizeof *walk.live);
    if (!walk.live) return error_memory(err, "what memory holds", plan->buffer_count * sizeof *walk.live);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < plan_first_choice(plan) && !status; i++) status = walk_task(&walk, i, err);
    free(walk.live);
    uint64_t all = plan_device_bytes(plan, device);
    assert(walk.most_bytes <= all);
    out->bytes[MEMORY_PART_AHEAD] = all - walk.most_bytes;
    return status;
}

/* --- the host --------------------------------------------------------------------------------- */

struct memory_breakdown memory_breakdown_of_host(const struct plan *plan)
{
    struct memory_breakdown parts = {.task = PLAN_NONE};
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const struct plan_buffer *b = &plan->buffers[i];
        if (b->on_device || b->kind == BUFFER_STORED || b->kind == BUFFER_STAGED) continue;
        struct holds holds = held_by(plan, b);
        for (uint32_t p = 0; p < MEMORY_PART_COUNT; p++) parts.bytes[p] += holds.bytes[p] * plan_buffer_ranks(plan, b);
    }
    parts.bytes[MEMORY_PART_STAGED] = plan_staged_bytes(plan);
    return parts;
}

/* --- words ------------------------------------------------------------------------------------ */

const char *memory_breakdown_moment(const struct plan *plan, const struct memory_breakdown *parts,
                                    char text[PLAN_MOMENT_BYTES])
{
    if (parts->task == PLAN_NONE) return "always";
    const struct plan_unit *unit = &plan->units[plan->tasks[parts->task].unit];
    const struct plan_shard *shard = &plan->shards[plan->job_first_shard[unit->job] + unit->shard];
    uint64_t last = shard->first_layer + shard->layer_count - 1;
    if (last == shard->first_layer)
        snprintf(text, PLAN_MOMENT_BYTES, "%s of layer %" PRIu64, plan_pass_names[unit->pass], last);
    else
        snprintf(text, PLAN_MOMENT_BYTES, "%s of layers %" PRIu64 " to %" PRIu64, plan_pass_names[unit->pass],
                 shard->first_layer, last);
    return text;
}
