#include "exec/state/run_shares.h"

#include <string.h>

#include "base/extreme.h"

bool run_is_split(const struct run *run, uint32_t shard)
{
    return run->chunks[shard].shares || run_has_slices(run, shard);
}

static uint32_t replicas_of(const struct run *run, uint32_t shard)
{
    return run->plan->jobs.jobs[run->plan->shards[shard].job].parallel.data;
}

/* A range of a share, and its place in the whole state of the chunk's layers. */
struct share_range {
    uint64_t here, whole, bytes;
};

/* Returns the range of a section in a part; 0 bytes: there is none, or it is not of the layers. */
static struct share_range range_of(const struct chunk_tables *tables, uint32_t rank, uint32_t section, uint32_t part)
{
    const struct chunk_share_part *const range = &tables->shares[rank].sections[section].parts[part];
    if (tables->memory.sections[section].kind == CHUNK_SECTION_HEAD) return (struct share_range){0};
    return (struct share_range){range->here, tables->state.layout.parts[part].offset_bytes + range->whole,
                                range->bytes};
}

/* Returns a share of frozen weights; 0 bytes: it is not of the layers. */
static struct share_range frozen_range_of(const struct chunk_tables *tables, uint32_t rank, uint32_t section)
{
    const struct chunk_share_part *const range = &tables->shares[rank].frozen[section];
    if (tables->memory.frozen[section].kind == CHUNK_SECTION_HEAD) return (struct share_range){0};
    return (struct share_range){range->here, tables->state.layout.parts[STATE_FROZEN].offset_bytes + range->whole,
                                range->bytes};
}

void run_shares_join(const struct run *run, uint32_t shard, uint32_t rank, const char *share, void *whole,
                     uint64_t bytes)
{
    const struct chunk_tables *const tables = &run->chunks[shard];
    if (run_has_slices(run, shard)) {
        run_slices_join(run, shard, rank, share, whole, bytes);
        return;
    }
    for (uint32_t i = 0; i < tables->memory.section_count; i++)
        for (uint32_t part = STATE_WEIGHTS; part < STATE_PARTS; part++) {
            const struct share_range range = range_of(tables, rank, i, part);
            if (range.whole >= bytes) continue;
            memcpy((char *)whole + range.whole, share + range.here, min_u64(range.bytes, bytes - range.whole));
        }
}

void run_shares_cut(const struct run *run, uint32_t shard, uint32_t rank, const void *whole, char *share)
{
    const struct chunk_tables *const tables = &run->chunks[shard];
    if (run_has_slices(run, shard)) {
        run_slices_cut(run, shard, rank, whole, share);
        return;
    }
    if (!tables->memory.splits_weights) memcpy(share, whole, state_weight_bytes(&tables->state.layout));
    for (uint32_t i = 0; i < tables->memory.frozen_count; i++) {
        const struct share_range range = frozen_range_of(tables, rank, i);
        memcpy(share + range.here, (const char *)whole + range.whole, range.bytes);
    }
    for (uint32_t i = 0; i < tables->memory.section_count; i++)
        for (uint32_t part = 0; part < STATE_PARTS; part++) {
            const struct share_range range = range_of(tables, rank, i, part);
            memcpy(share + range.here, (const char *)whole + range.whole, range.bytes);
        }
}

void run_shares_gather(const struct run *run, uint32_t shard, void *whole, uint64_t bytes)
{
    for (uint32_t rank = 0; rank < run_shares_ranks(run, shard); rank++)
        run_shares_join(run, shard, rank, run_shares_at(run, shard, rank), whole, bytes);
}

void run_shares_copy_frozen(const struct run *run, uint32_t shard, void *whole)
{
    const struct chunk_tables *const tables = &run->chunks[shard];
    if (run_has_slices(run, shard)) {
        run_slices_copy_frozen(run, shard, whole);
        return;
    }
    if (!tables->memory.splits_weights)
        memcpy(whole, run_shares_at(run, shard, 0), tables->state.layout.parts[STATE_FROZEN].bytes);
    for (uint32_t rank = 0; rank < run_shares_ranks(run, shard); rank++)
        for (uint32_t i = 0; i < tables->memory.frozen_count; i++) {
            const struct share_range range = frozen_range_of(tables, rank, i);
            memcpy((char *)whole + range.whole, run_shares_at(run, shard, rank) + range.here, range.bytes);
        }
}

void run_shares_scatter(const struct run *run, uint32_t shard, const void *whole)
{
    for (uint32_t rank = 0; rank < run_shares_copies(run, shard); rank++)
        run_shares_cut(run, shard, rank, whole, run_shares_at(run, shard, rank));
}

void run_shares_fill_table(const struct run *run, uint32_t job)
{
    const uint32_t first = run->plan->job_first_shard[job], last = run->plan->job_first_shard[job + 1] - 1;
    if (!run->chunks[last].shares) {
        run_slices_fill_table(run, job);
        return;
    }
    const struct chunk_tables *const from = &run->chunks[first], *const to = &run->chunks[last];
    const struct chunk_memory *const m = &to->memory;
    if (!m->copies_table || !m->has_head) return;
    const uint32_t table = 0, head = m->section_count - 1; /* the first chunk's section, and the copy's */
    const enum state_part weights = m->trains_table ? STATE_WEIGHTS : STATE_FROZEN;
    for (uint32_t rank = 0; rank < replicas_of(run, last) * to->job->parallel.tensor; rank++) {
        const uint32_t replica = rank / to->job->parallel.tensor;
        const struct chunk_share_part *const source = from->shares[replica].sections[table].parts;
        const struct chunk_share_part *const target = to->shares[replica].sections[head].parts;
        char *const share = run_shares_at(run, last, rank);
        if (!m->splits_weights)
            memcpy(share + m->table_weights_offset, run_shares_at(run, first, rank) + m->table_offset,
                   m->table_rows_layout.parts[weights].bytes);
        if (!m->trains_table && m->splits_weights) {
            const struct chunk_share_part *const frozen = &to->shares[replica].frozen[m->frozen_count - 1];
            memcpy(share + frozen->here, run_shares_at(run, first, rank) + from->shares[replica].frozen[table].here,
                   frozen->bytes);
        }
        if (!m->trains_table) continue;
        for (uint32_t part = 0; part < STATE_PARTS; part++)
            memcpy(share + target[part].here, run_shares_at(run, first, rank) + source[part].here, target[part].bytes);
    }
}

/* Copies the part of a share's range that is the tensor's, with `whole` bytes from the beginning of the state. */
static void keep_tensor(const struct share_range *range, const char *share, uint64_t whole, uint64_t bytes,
                        char *values)
{
    const uint64_t from = max_u64(range->whole, whole), to = min_u64(range->whole + range->bytes, whole + bytes);
    if (from < to) memcpy(values + (from - whole), share + range->here + (from - range->whole), to - from);
}

void run_shares_keep(const struct run *run, uint32_t shard, uint32_t rank, float *values)
{
    if (rank >= run_shares_ranks(run, shard)) return; /* replicas are equal */
    if (run_has_slices(run, shard)) {
        run_slices_keep(run, shard, rank, values);
        return;
    }
    const struct chunk_tables *const tables = &run->chunks[shard];
    const struct state_tables *const whole = &run->tables[shard].state;
    const struct memory_table *const parameters = &run->tables[shard].parameters;
    for (uint32_t t = 0; t < parameters->count; t++) {
        const uint32_t part = run_shares_value_part(whole, t);
        const uint64_t begin = whole->layout.parts[part].offset_bytes + whole->parts[part].entries[t].offset_bytes;
        for (uint32_t i = 0; i < tables->memory.section_count; i++) {
            const struct share_range range = range_of(tables, rank, i, part);
            keep_tensor(&range, run_shares_at(run, shard, rank), begin, parameters->entries[t].bytes,
                        (char *)values + parameters->entries[t].offset_bytes);
        }
    }
}

void run_shares_bring(struct run *run, uint32_t device, uint32_t shard, const struct run_device_state *state, char *to,
                      struct device_guard guard)
{
    if (run_has_slices(run, shard)) {
        run_slices_bring(run, device, shard, state, to, guard);
        return;
    }
    const struct chunk_tables *const tables = &run->chunks[shard];
    const char *const share = (const char *)device_arena(run->devices[device]) + state->address;
    struct device_stream *const stream = run->streams[plan_stream(run->plan, device, STREAM_D2H)];
    for (uint32_t i = 0; i < tables->memory.section_count; i++)
        for (uint32_t part = 0; part < STATE_PARTS; part++) {
            const struct share_range range = range_of(tables, state->rank, i, part);
            if (range.bytes > 0)
                device_copy_guarded(stream, to + range.whole, share + range.here, range.bytes, guard, NULL);
        }
}
