/*
 * The weights of the best evaluation, in a run of several processes.
 *
 * Each rank keeps the values of its own devices, at their places in the whole, and zeros elsewhere. Of equal replicas
 * only the first keeps any. So rank 0 has the whole when it adds up the bits. The whole that it has read from a
 * checkpoint stays until an evaluation of this run is better.
 */
#include "exec/run/run_ranks.h"

#include <string.h>

#include "base/try.h"
#include "exec/state/run_peers.h"

static bool is_kept(const struct plan_buffer *buffer)
{
    return buffer->kind == BUFFER_KEPT && !buffer->on_device;
}

void run_ranks_clear_best(struct run *run)
{
    const struct plan *const plan = run->plan;
    for (uint32_t b = 0; run->peers && b < plan->buffer_count; b++) {
        const struct plan_buffer *const buffer = &plan->buffers[b];
        if (!is_kept(buffer)) continue;
        if (run->jobs[buffer->job].kept)
            run->peers->has_earlier_best[plan->job_first_shard[buffer->job] + buffer->shard] = true;
        else
            memset(run_host_buffer(run, b), 0, buffer->bytes);
    }
}

void run_ranks_replace_best(struct run *run, uint32_t shard)
{
    const struct plan *const plan = run->plan;
    if (!run->peers || !run->peers->has_earlier_best[shard]) return;
    run->peers->has_earlier_best[shard] = false;
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const struct plan_buffer *const buffer = &plan->buffers[b];
        if (is_kept(buffer) && plan->job_first_shard[buffer->job] + buffer->shard == shard)
            memset(run_host_buffer(run, b), 0, buffer->bytes);
    }
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
    if (own > 0)
        return run_peers_has_values(run, own, shard) ? run_peers_move(run, &data, run->peers->moved, err) : STATUS_OK;
    TRY(ARENA_NEW(&run->result->arena, buffer->bytes, theirs, err)); /* outlives the messages */
    data.at = theirs;
    pthread_mutex_lock(&run->lock);
    run_ranks_replace_best(run, shard); /* of other ranks only */
    pthread_mutex_unlock(&run->lock);
    for (data.other = 1; data.other < run->peers->count; data.other++) {
        if (!run_peers_has_values(run, data.other, shard)) continue;
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
