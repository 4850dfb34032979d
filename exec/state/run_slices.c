#include "exec/state/run_slices.h"

#include <assert.h>

#include "models/network/tensor_share.h"

static const struct job *job_of(const struct run *run, uint32_t shard)
{
    return &run->plan->jobs.jobs[run->plan->shards[shard].job];
}

uint32_t run_slices_ranks(const struct run *run, uint32_t shard)
{
    const uint32_t tensor = job_of(run, shard)->parallel.tensor;
    return tensor > 1 ? tensor : 1;
}

/* Returns a rank's share on the host, and the number of such buffers. */
static char *share_of(const struct run *run, uint32_t shard, uint32_t rank)
{
    return run_host_buffer_of(run, run->state_buffers[shard], rank);
}

static uint32_t buffers_of(const struct run *run, uint32_t shard)
{
    return plan_buffer_ranks(run->plan, &run->plan->buffers[run->state_buffers[shard]]);
}

/* --- tensors ---------------------------------------------------------------------------------- */

/* A tensor in a part of a share and in the same part of the whole state. */
struct share_place {
    struct tensor_share share;
    uint64_t here, whole, number_bytes;
};
typedef void each_place(const struct share_place *place, void *context);

/* Calls `each` for the tensors of all parts that begin in the first `bytes` of the whole state. */
static void walk_places(const struct run *run, uint32_t shard, uint64_t bytes, each_place *each, void *context)
{
    const struct plan_shard *const about = &run->plan->shards[shard];
    const struct chunk_tables *const slice = &run->chunks[shard];
    const struct state_tables *const whole = &run->tables[shard].state;
    uint32_t index = 0;
    for (uint64_t layer = about->first_layer; layer < about->first_layer + about->layer_count; layer++) {
        struct tensor_spec specs[LAYER_TENSORS_MAX], slices[LAYER_TENSORS_MAX];
        const uint32_t count = network_layer_shapes(&job_of(run, shard)->network, layer, specs);
        (void)network_layer_shapes(&slice->job->network, layer, slices);
        for (uint32_t i = 0; i < count; i++, index++)
            for (uint32_t part = 0; part < STATE_PARTS; part++) {
                const struct memory_entry *const entry = &whole->parts[part].entries[index];
                const uint64_t offset = whole->layout.parts[part].offset_bytes;
                if (entry->bytes == 0 || offset >= bytes) continue;
                const struct share_place place = {
                    .share = tensor_share_of(&specs[i], &slices[i]),
                    .here = slice->state.layout.parts[part].offset_bytes + slice->state.parts[part].entries[index].offset_bytes,
                    .whole = offset + entry->offset_bytes,
                    .number_bytes = entry->bytes / specs[i].elements};
                each(&place, context);
            }
    }
    assert(index == whole->parts[STATE_WEIGHTS].count);
}

struct share_copy {
    uint32_t rank;
    char *share, *whole;
};

static void cut_tensor(const struct share_place *place, void *context)
{
    const struct share_copy *const copy = context;
    tensor_share_cut(&place->share, copy->rank, place->number_bytes, copy->share + place->here, copy->whole + place->whole);
}

/* Tensors that all devices have come from the first. */
static void join_tensor(const struct share_place *place, void *context)
{
    const struct share_copy *const copy = context;
    if (!place->share.cut && copy->rank > 0) return;
    tensor_share_join(&place->share, copy->rank, place->number_bytes, copy->share + place->here, copy->whole + place->whole);
}

void run_slices_gather(const struct run *run, uint32_t shard, void *whole, uint64_t bytes)
{
    for (uint32_t rank = 0; rank < run_slices_ranks(run, shard); rank++) {
        struct share_copy copy = {rank, share_of(run, shard, rank), whole};
        walk_places(run, shard, bytes, join_tensor, &copy);
    }
}

void run_slices_scatter(const struct run *run, uint32_t shard, const void *whole)
{
    for (uint32_t buffer = 0; buffer < buffers_of(run, shard); buffer++) {
        struct share_copy copy = {buffer % run_slices_ranks(run, shard), share_of(run, shard, buffer),
                                  (char *)(uintptr_t)whole};
        walk_places(run, shard, UINT64_MAX, cut_tensor, &copy);
    }
}

void run_slices_fill_table(const struct run *run, uint32_t job)
{
    const uint32_t first = run->plan->job_first_shard[job], last = run->plan->job_first_shard[job + 1] - 1;
    for (uint32_t buffer = 0; buffer < buffers_of(run, last); buffer++)
        chunk_fill_table(&run->chunks[last], share_of(run, last, buffer), &run->chunks[first], share_of(run, first, buffer));
}

/* --- from devices ----------------------------------------------------------------------------- */

struct bring_call {
    const struct run *run;
    struct device_guard guard;
    uint32_t shard;
    struct share_copy copy;
};

static void call_bring(void *argument)
{
    struct bring_call *const call = argument;
    if (call->guard.limit && call->guard.value >= atomic_load(call->guard.limit)) return;
    walk_places(call->run, call->shard, UINT64_MAX, join_tensor, &call->copy);
}

void run_slices_bring(struct run *run, uint32_t device, uint32_t shard, const struct run_device_state *state, char *to,
                      struct device_guard guard)
{
    const struct bring_call call = {.run = run, .guard = guard, .shard = shard,
                                    .copy = {state->rank, (char *)device_arena(run->devices[device]) + state->address, to}};
    assert(run->backend->arena_on_host);
    device_call(run->streams[plan_stream(run->plan, device, STREAM_D2H)], call_bring, &call, sizeof call, NULL);
}
