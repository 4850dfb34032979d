/*
 * The weights of the best evaluation, in a run of several processes.
 *
 * Each rank keeps the values of its own devices, at their places in the whole, and zeros elsewhere. Of equal replicas
 * only the first keeps any. So rank 0 has the whole when it adds up the bits.
 */
#include "exec/run/run_ranks.h"

#include <string.h>

#include "base/try.h"
#include "exec/state/run_peers.h"
#include "exec/state/run_shares.h"

static bool is_kept(const struct plan_buffer *buffer)
{
    return buffer->kind == BUFFER_KEPT && !buffer->on_device;
}

void run_ranks_clear_best(struct run *run)
{
    const struct plan *const plan = run->plan;
    for (uint32_t b = 0; run->peers && b < plan->buffer_count; b++)
        if (is_kept(&plan->buffers[b])) memset(run_host_buffer(run, b), 0, plan->buffers[b].bytes);
}

/* Returns true if the rank keeps some of a shard's values. */
static bool keeps(const struct run *run, uint32_t rank, uint32_t shard)
{
    bool any = false;
    const uint32_t places = run_is_split(run, shard) ? run_shares_ranks(run, shard) : 1;
    for (uint32_t i = 0; i < places; i++) any |= run_peers_home(run, shard, i) == rank;
    return any;
}

static void add_bits(char *whole, const char *part, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++) whole[i] |= part[i];
}

/* Brings a shard's values together; b: its buffer. */
static enum status gather_shard(struct run *run, uint32_t b, struct error *err)
{
    const struct plan_buffer *const buffer = &run->plan->buffers[b];
    const uint32_t shard = run->plan->job_first_shard[buffer->job] + buffer->shard, own = run->peers->own;
    char *theirs, *const whole = run_host_buffer(run, b);
    struct run_peers_data data = {.what = PEERS_BEST, .number = b, .sends = own > 0, .at = whole,
                                  .bytes = buffer->bytes};
    if (own > 0) return keeps(run, own, shard) ? run_peers_move(run, &data, run->peers->moved, err) : STATUS_OK;
    TRY(ARENA_NEW(&run->result->arena, buffer->bytes, theirs, err)); /* outlives the messages */
    data.at = theirs;
    for (data.other = 1; data.other < run->peers->count; data.other++) {
        if (!keeps(run, data.other, shard)) continue;
        TRY(run_peers_move(run, &data, run->peers->moved, err));
        add_bits(whole, theirs, buffer->bytes);
    }
    return STATUS_OK;
}

enum status run_ranks_gather_best(struct run *run, struct error *err)
{
    for (uint32_t b = 0; b < run->plan->buffer_count; b++) {
        const uint32_t job = run->plan->buffers[b].job;
        if (!is_kept(&run->plan->buffers[b]) || run->jobs[job].improved == 0) continue;
        run->jobs[job].kept = true;
        TRY(gather_shard(run, b, err));
    }
    return STATUS_OK;
}
