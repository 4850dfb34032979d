#include "exec/state/run_shares.h"

#include <assert.h>

#include "base/extreme.h"
#include "models/network/tensor_share.h"

/* --- tensors ---------------------------------------------------------------------------------- */

/* Numbers of a tensor in a part of a rank's state, and the tensor in the same part of the whole state. */
struct share_place {
    struct tensor_share share;
    struct tensor_range of; /* the slice's numbers that are here */
    uint64_t here, whole, number_bytes;
};
typedef void each_place(const struct share_place *place, void *context);

/* Calls `each` for the numbers of a slice's tensor that the rank has, of its share if replicas split states, too.
 * `first`: of the tensor, in bytes from the beginning of the part. */
static void walk_ranges(const struct chunk_tables *slice, uint32_t rank, uint32_t part, uint64_t first,
                        const struct share_place *tensor, each_place *each, void *context)
{
    const uint64_t end = first + tensor->of.count * tensor->number_bytes;
    struct share_place place = *tensor;
    if (!slice->shares) {
        place.here = slice->state.layout.parts[part].offset_bytes + first;
        each(&place, context);
        return;
    }
    const struct chunk_share *const share = &slice->shares[rank / slice->job->parallel.tensor];
    const bool frozen = part == STATE_FROZEN;
    const struct chunk_section *const sections = frozen ? slice->memory.frozen : slice->memory.sections;
    for (uint32_t i = 0; i < (frozen ? slice->memory.frozen_count : slice->memory.section_count); i++) {
        const struct chunk_share_part *const own = frozen ? &share->frozen[i] : &share->sections[i].parts[part];
        const uint64_t from = max_u64(first, own->whole), to = min_u64(end, own->whole + own->bytes);
        if (sections[i].kind == CHUNK_SECTION_HEAD || from >= to) continue;
        place.here = own->here + from - own->whole;
        place.of = (struct tensor_range){(from - first) / tensor->number_bytes, (to - from) / tensor->number_bytes};
        each(&place, context);
    }
}

/* Parts of a state, [first, end), that begin in its first `bytes`. */
struct share_parts {
    uint32_t first, end;
    uint64_t bytes;
};
static const struct share_parts all_parts = {STATE_FROZEN, STATE_PARTS, UINT64_MAX};

/* Calls `each` for a rank's ranges of the tensors of these parts. */
static void walk_tables(const struct run *run, uint32_t shard, const struct chunk_tables *slice, uint32_t rank,
                        struct share_parts parts, each_place *each, void *context)
{
    const struct plan_shard *const about = &run->plan->shards[shard];
    const struct state_tables *const whole = &run->tables[shard].state;
    const struct network *const network = &run->plan->jobs.jobs[about->job].network;
    const struct network piece = network_piece(network, &slice->job->network);
    uint32_t index = 0;
    for (uint64_t layer = about->first_layer; layer < about->first_layer + about->layer_count; layer++) {
        struct tensor_spec specs[LAYER_TENSORS_MAX], slices[LAYER_TENSORS_MAX], pieces[LAYER_TENSORS_MAX];
        const uint32_t count = network_layer_shapes(network, layer, specs);
        (void)network_layer_shapes(&slice->job->network, layer, slices);
        (void)network_layer_shapes(&piece, layer, pieces);
        for (uint32_t i = 0; i < count; i++, index++)
            for (uint32_t part = parts.first; part < parts.end; part++) {
                const struct memory_entry *const entry = &whole->parts[part].entries[index];
                const uint64_t offset = whole->layout.parts[part].offset_bytes;
                if (entry->bytes == 0 || offset >= parts.bytes) continue;
                const struct share_place tensor = {.share = tensor_share_of(&specs[i], &pieces[i],
                                                                            slice->job->network.pieces),
                                                   .of = {0, slices[i].elements},
                                                   .whole = offset + entry->offset_bytes,
                                                   .number_bytes = entry->bytes / specs[i].elements};
                walk_ranges(slice, rank, part, slice->state.parts[part].entries[index].offset_bytes, &tensor, each,
                            context);
            }
    }
    assert(index == whole->parts[STATE_WEIGHTS].count);
}

static void walk_places(const struct run *run, uint32_t shard, uint32_t rank, struct share_parts parts,
                        each_place *each, void *context)
{
    walk_tables(run, shard, &run->chunks[shard], rank, parts, each, context);
}

struct share_copy {
    uint32_t member; /* of the tensor group */
    char *share, *whole;
};

static void cut_tensor(const struct share_place *place, void *context)
{
    const struct share_copy *const copy = context;
    tensor_share_cut(&place->share, copy->member, place->number_bytes, place->of, copy->share + place->here,
                           copy->whole + place->whole);
}

/* Tensors that all devices have come from the first. */
static void join_tensor(const struct share_place *place, void *context)
{
    const struct share_copy *const copy = context;
    if (!place->share.cut && copy->member > 0) return;
    tensor_share_join(&place->share, copy->member, place->number_bytes, place->of, copy->share + place->here,
                            copy->whole + place->whole);
}

void run_slices_join(const struct run *run, uint32_t shard, uint32_t rank, const char *share, void *whole,
                     uint64_t bytes)
{
    struct share_copy copy = {rank % run_slices_members(run, shard), (char *)(uintptr_t)share, whole};
    walk_places(run, shard, rank, (struct share_parts){STATE_WEIGHTS, STATE_PARTS, bytes}, join_tensor, &copy);
}

struct share_values {
    const struct run *run;
    uint32_t shard, member;
    const char *share;
    char *values;
};

/* Joins a tensor's values, and skips other parts of its state. */
static void keep_tensor(const struct share_place *place, void *context)
{
    const struct share_values *const keep = context;
    const struct state_tables *const whole = &keep->run->tables[keep->shard].state;
    const struct memory_table *const parameters = &keep->run->tables[keep->shard].parameters;
    if (!place->share.cut && keep->member > 0) return;
    for (uint32_t t = 0; t < parameters->count; t++) {
        if (parameters->entries[t].bytes == 0) continue; /* frozen */
        const uint32_t part = run_shares_value_part(whole, t);
        if (whole->layout.parts[part].offset_bytes + whole->parts[part].entries[t].offset_bytes == place->whole)
            tensor_share_join(&place->share, keep->member, place->number_bytes, place->of, keep->share + place->here,
                              keep->values + parameters->entries[t].offset_bytes);
    }
}

void run_slices_keep(const struct run *run, uint32_t shard, uint32_t rank, float *values)
{
    struct share_values keep = {.run = run, .shard = shard, .member = rank % run_slices_members(run, shard),
                                .share = run_shares_at(run, shard, rank), .values = (char *)values};
    walk_places(run, shard, rank, all_parts, keep_tensor, &keep);
}

/* Cuts a member's weights, frozen or not, to the beginning of a share, which has all of them there. */
static void scatter_weights(const struct run *run, uint32_t shard, const struct share_copy *copy)
{
    const struct share_parts weights = {STATE_FROZEN, STATE_WEIGHTS + 1, UINT64_MAX};
    struct chunk_tables all = run->chunks[shard];
    all.shares = NULL;
    walk_tables(run, shard, &all, 0, weights, cut_tensor, (void *)(uintptr_t)copy);
}

void run_slices_copy_frozen(const struct run *run, uint32_t shard, void *whole)
{
    const struct share_parts frozen = {STATE_FROZEN, STATE_FROZEN + 1, UINT64_MAX};
    struct chunk_tables all = run->chunks[shard];
    if (!all.memory.splits_weights) all.shares = NULL;
    const uint32_t members = run_slices_members(run, shard);
    for (uint32_t rank = 0; rank < (all.shares ? run_shares_ranks(run, shard) : members); rank++) {
        struct share_copy copy = {rank % members, run_shares_at(run, shard, rank), whole};
        walk_tables(run, shard, &all, rank, frozen, join_tensor, &copy);
    }
}

void run_slices_cut(const struct run *run, uint32_t shard, uint32_t rank, const void *whole, char *share)
{
    const struct chunk_tables *const slice = &run->chunks[shard];
    struct share_copy copy = {rank % run_slices_members(run, shard), share, (char *)(uintptr_t)whole};
    if (slice->shares && !slice->memory.splits_weights) scatter_weights(run, shard, &copy);
    walk_places(run, shard, rank, all_parts, cut_tensor, &copy);
}

void run_slices_fill_table(const struct run *run, uint32_t job)
{
    const uint32_t first = run->plan->job_first_shard[job], last = run->plan->job_first_shard[job + 1] - 1;
    const uint32_t members = run_slices_members(run, first); /* the stages' numbers of replicas may differ */
    for (uint32_t buffer = 0; buffer < run_shares_copies(run, last); buffer++)
        chunk_fill_table(&run->chunks[last], run_shares_at(run, last, buffer), &run->chunks[first],
                         run_shares_at(run, first, buffer % members));
}

/* --- from devices ----------------------------------------------------------------------------- */

struct bring_call {
    const struct run *run;
    struct device_guard guard;
    uint32_t shard, rank;
    struct share_copy copy;
};

static void call_bring(void *argument)
{
    struct bring_call *const call = argument;
    if (call->guard.limit && call->guard.value >= atomic_load(call->guard.limit)) return;
    const struct share_parts trained = {STATE_WEIGHTS, STATE_PARTS, UINT64_MAX};
    walk_places(call->run, call->shard, call->rank, trained, join_tensor, &call->copy);
}

void run_slices_bring(struct run *run, uint32_t device, uint32_t shard, const struct run_device_state *state, char *to,
                      struct device_guard guard)
{
    const struct bring_call call = {.run = run, .guard = guard, .shard = shard, .rank = state->rank,
                                    .copy = {state->rank % run_slices_members(run, shard),
                                             (char *)device_arena(run->devices[device]) + state->address, to}};
    assert(run->backend->arena_on_host);
    device_call(run->streams[plan_stream(run->plan, device, STREAM_D2H)], call_bring, &call, sizeof call, NULL);
}
