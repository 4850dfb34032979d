/*
 *     REDUCE   all-reduce of a chunk's gradient; or, where replicas split states, reduce-scatter in place, or to the
 *              replica's share of the gradient
 *     JOIN     all-reduce of a tied table's two gradients, or of a replica's share of them
 *     UPDATE   all-gather of updated weights, in place; or all-reduce of a chunk's gradients on hosts
 *     NORM     all-reduce of the squares of shares of a chunk's gradients
 *     GATHER   all-gather of weights for a pass; of a tied table too, from the first chunk's shares. In place where
 *     shares
 *              have come up from hosts
 */
#include "exec/group/run_members.h"

#include <assert.h>

#include "models/job/parallel_memory.h"

static void add_range(struct run_collective_data *data, uint64_t whole, uint64_t share, uint64_t bytes)
{
    assert(data->range_count < RUN_COLLECTIVE_RANGES_MAX);
    if (bytes > 0) data->ranges[data->range_count++] = (struct run_collective_range){whole, share, bytes};
}

static const struct chunk_tables *tables_of(const struct run *run, const struct plan_walk_op *op, uint32_t access)
{
    const struct plan_buffer *const buffer = &run->plan->buffers[op->uses[access].buffer];
    return &run->chunks[run->plan->job_first_shard[buffer->job] + buffer->shard];
}

/* Returns the number of an operation's replica, among the replicas of all its stages. */
static uint32_t replica_of(const struct chunk_tables *tables, const struct plan_walk_op *op)
{
    return op->rank / tables->job->parallel.tensor;
}

static struct run_collective_data reduced(const struct chunk_tables *tables, const struct plan_walk_op *op,
                                          char *const *at, bool adds)
{
    const bool apart = tables->memory.splits_gradients;
    const uint64_t bytes = apart ? tables->memory.whole_gradient_bytes : tables->memory.gradient_bytes;
    const uint64_t count = bytes / sizeof(float);
    struct run_collective_data data = {.from = at[0], .to = at[op->use_count - 1], .adds = adds, .count = count,
                                       .code = parallel_gradient_code(tables->job)};
    if (!tables->shares) return data;
    for (uint32_t i = 0; i < tables->memory.section_count; i++) {
        const struct chunk_share_section *const own = &tables->shares[replica_of(tables, op)].sections[i];
        const uint64_t whole = own->first * sizeof(float);
        add_range(&data, whole, apart ? own->gradient_offset : whole, own->count * sizeof(float));
    }
    return data;
}

/* Replicas of an end have equal gradients: each group of a JOIN adds up the gradients of the first replica of both. */
static bool repeats_end(const struct chunk_tables *tables, const struct plan_walk_op *op)
{
    const struct parallel *const p = &tables->job->parallel;
    const uint32_t replica = replica_of(tables, op), first = parallel_replicas(p, 0);
    return (replica < first ? replica : replica - first) >= parallel_joined_groups(p);
}

static struct run_collective_data whole_gradient(const struct chunk_tables *tables, char *gradient)
{
    return (struct run_collective_data){.from = gradient, .to = gradient,
                                        .count = tables->memory.gradient_bytes / sizeof(float)};
}

static struct run_collective_data joined(const struct chunk_tables *tables, const struct plan_walk_op *op,
                                         char *gradient)
{
    const bool head = tables->memory.has_head;
    const enum chunk_section_kind kind = head ? CHUNK_SECTION_HEAD : CHUNK_SECTION_TABLE;
    float *values = (float *)(void *)gradient;
    uint64_t count = op->op->bytes / sizeof(float);
    if (tables->shares) {
        const uint32_t rank = replica_of(tables, op) % tables->memory.ranks;
        uint32_t i = 0;
        while (tables->memory.sections[i].kind != kind) i++;
        values = chunk_share_gradient(tables, values, kind, rank);
        count = tables->shares[rank].sections[i].count;
    } else if (head) {
        values = chunk_table_gradient(tables, values);
    }
    return (struct run_collective_data){
        .from = (char *)values, .to = (char *)values, .count = count, .repeats = repeats_end(tables, op)};
}

static struct run_collective_data squared(const struct run *run, const struct plan_walk_op *op, char *norms)
{
    const struct chunk_tables *const tables = &run->chunks[run->plan->job_first_shard[op->unit->job] + op->unit->shard];
    char *const own = norms +
                      memory_tensor_count(&tables->job->network, 0, tables->shards[0].first_layer) * sizeof(double);
    return (struct run_collective_data){.from = own, .to = own, .count = op->op->bytes / sizeof(double)};
}

/* Adds a range of weights, of which shares are in place, or at the beginning of states. */
static void add_gathered(struct run_collective_data *data, uint64_t whole, const struct chunk_share_part *part,
                         const struct plan_walk_op *op)
{
    add_range(data, whole, op->use_count == 1 ? whole : part->here, part->bytes);
}

static struct run_collective_data gathered(const struct run *run, const struct plan_walk_op *op, char *const *at)
{
    /* the first chunk's table, in place */
    const bool raised = run->plan->accesses[op->op->first_access].offset_bytes > 0;
    const struct chunk_tables *const to = tables_of(run, op, op->use_count - 1);
    const struct chunk_tables *const from = raised ? &run->chunks[run->plan->job_first_shard[op->unit->job]]
                                                   : tables_of(run, op, 0);
    struct run_collective_data data = {.from = at[0], .to = at[op->use_count - 1]};
    const bool table = from != to;
    if (table && !raised) data.to += to->memory.table_weights_offset;
    const struct chunk_memory *const memory = &from->memory;
    const struct chunk_share *const share = &from->shares[replica_of(from, op)];
    for (uint32_t i = 0; i < memory->section_count; i++) {
        const struct chunk_share_part *const part = &share->sections[i].parts[STATE_WEIGHTS];
        if (!table) add_gathered(&data, chunk_share_place(memory, part), part, op);
        else if (memory->sections[i].kind == CHUNK_SECTION_TABLE) add_gathered(&data, part->whole, part, op);
    }
    for (uint32_t i = 0; i < memory->frozen_count; i++)
        if (!table || memory->frozen[i].kind == CHUNK_SECTION_TABLE)
            add_gathered(&data, share->frozen[i].whole, &share->frozen[i], op);
    return data;
}

uint64_t run_members_scattered(const struct run *run, const struct plan_walk_op *op, uint64_t bytes)
{
    const struct parallel *const p = &run->plan->jobs.jobs[op->unit->job].parallel;
    return p->scatter ? op->rank % p->tensor * bytes : 0;
}

struct run_collective_data run_members_boundary(const struct run *run, const struct plan_walk_op *op, char *boundary)
{
    const uint64_t part = op->op->bytes / run->plan->jobs.jobs[op->unit->job].parallel.tensor;
    const uint64_t own = run_members_scattered(run, op, part);
    struct run_collective_data data = {.from = boundary, .to = boundary};
    add_range(&data, own, own, part);
    return data;
}

struct run_collective_data run_members_data(const struct run *run, const struct plan_walk_op *op, char *const *at,
                                            bool adds)
{
    if (op->unit->pass == PLAN_NORM) return squared(run, op, at[0]);
    const struct chunk_tables *const tables = tables_of(run, op, 0);
    if (op->op->collective == COLLECTIVE_ALL_GATHER) return gathered(run, op, at);
    if (op->unit->pass == PLAN_JOIN) return joined(tables, op, at[0]);
    if (op->unit->pass == PLAN_UPDATE) return whole_gradient(tables, at[0]);
    assert(op->unit->pass == PLAN_REDUCE);
    return reduced(tables, op, at, adds);
}
