/* If a job fits no host, the message is about the neediest job. */
#include "planner/spill/cut/host_need.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/extreme.h"
#include "base/size.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "models/job/host_files.h"
#include "models/job/memory.h"
#include "planner/spill/cut/partition_storage.h"

static_assert(BUFFER_OUTPUTS + 1 == BUFFER_KIND_COUNT,
              "a new kind of buffer: add its host memory here, and look at plan_hosts.c and walk/memory_breakdown.c");

static enum status no_memory(struct error *err)
{
    return error_memory(err, "counting host memory", 1);
}

static void add(struct host_need *need, uint64_t bytes)
{
    need->others += bytes;
    need->buffers += bytes > 0;
}

static bool is_embedding(const struct job *job, const struct plan_shard *shard)
{
    return shard->first_layer == 0 && footprint_has_embedding(job);
}

/* Adds an embedding's scratch on the host's processor. */
static void add_workspaces(const struct job *job, const struct footprint *f, struct host_need *need)
{
    add(need, f->workspace_bytes[UNIT_FORWARD][UNIT_KEEP]);
    if (f->goes_back) add(need, f->workspace_bytes[UNIT_BACKWARD][UNIT_KEEP]);
    if (job->evaluation.every > 0) add(need, f->workspace_bytes[UNIT_FORWARD][UNIT_KEEP]);
}

static void add_whole(const struct job *job, struct host_need *need)
{
    add(need, job_batch_bytes(job));
    add(need, sizeof(double));
    if (footprint_has_table(job)) add(need, footprint_table_gradient_bytes(job));
    if (job->evaluation.every > 0) add(need, sizeof(double));
    if (job_clips(job)) add(need, memory_tensor_count(&job->network, 0, job->network.layer_count) * sizeof(double));
}

enum status host_need_add(const struct job_set *jobs, struct footprints *footprints, const struct partition *p,
                          uint32_t j, struct host_need *need, struct error *err)
{
    const struct job *job = &jobs->jobs[j];
    uint64_t gradients[PARTITION_GRADIENT_TURNS] = {0};
    uint32_t first = p->job_first_shard[j], end = p->job_first_shard[j + 1];
    add_whole(job, need);
    for (uint32_t s = first; s < end; s++) {
        const struct footprint *f = footprint_of(footprints, j, p->shards[s].first_layer, p->shards[s].layer_count);
        if (!f) return no_memory(err);
        need->states += f->state_bytes;
        need->buffers++;
        add(need, f->input_bytes);
        add(need, f->input_bytes);
        if (job->keep_best) add(need, f->gradient_bytes);
        if (job_clips(job)) add(need, f->gradient_bytes); /* its gradient */
        if (is_embedding(job, &p->shards[s])) {
            if (p->on_cpu[s]) add_workspaces(job, f, need);
            continue;
        }
        uint64_t *gradient = &gradients[(s - first) % PARTITION_GRADIENT_TURNS];
        if (p->on_cpu[s] && !job_clips(job)) *gradient = max_u64(*gradient, f->gradient_bytes);
        uint32_t activations = partition_activations(p, s);
        if (plan_activations_spill(activations) && s + 1 < end) add(need, f->kept_bytes[activations]);
    }
    for (uint32_t i = 0; i < PARTITION_GRADIENT_TURNS; i++) add(need, gradients[i]);
    return STATUS_OK;
}

bool host_states_exceed(const struct hardware *hardware, const struct job_set *jobs, uint32_t hosts)
{
    double states = 0;
    for (uint32_t j = 0; j < jobs->count; j++)
        states += (double)job_state(&jobs->jobs[j], 0, job_layers_end(&jobs->jobs[j])).bytes;
    return states > hosts * (double)hardware_host_bytes(hardware);
}

/* --- turns ------------------------------------------------------------------------------------ */

/* Returns " (25 MiB for all 2 jobs at a time)"; "" for one job. */
static const char *all_text(const struct job_set *jobs, const uint64_t *needs, char *text, size_t size)
{
    char all[QUANTITY_TEXT_BYTES];
    uint64_t sum = 0;
    for (uint32_t j = 0; j < jobs->count; j++) sum = needs[j] > UINT64_MAX - sum ? UINT64_MAX : sum + needs[j];
    text[0] = '\0';
    if (jobs->count > 1)
        snprintf(text, size, " (%s for all %" PRIu32 " jobs at a time)", quantity_bytes_at_least(sum, all),
                 jobs->count);
    return text;
}

static enum status too_large(const struct hardware *hardware, const struct job_set *jobs, const uint64_t *needs,
                             uint32_t neediest, struct error *err)
{
    char given[QUANTITY_TEXT_BYTES], least[QUANTITY_TEXT_BYTES], all[96];
    return error_set(err, STATUS_INFEASIBLE,
                     "job '%s' needs at least %s of host memory, also when one job at a time is under way%s; "
                     "%s was given%s "
                     "(--host-memory sets it; --storage-memory and --storage-rate describe storage for its states)",
                     jobs->jobs[neediest].name, quantity_bytes_at_least(needs[neediest], least),
                     all_text(jobs, needs, all, sizeof all),
                     quantity_text((double)hardware_host_bytes(hardware), DIMENSION_BYTES, given),
                     hardware_host_count(hardware) > 1 ? " on each node" : "");
}

enum status host_take_turns(const struct hardware *hardware, const struct job_set *jobs, struct footprints *footprints,
                            struct partition *partition, struct error *err)
{
    struct partition_host host = {.room = hardware_host_bytes(hardware) / PLAN_HOST_ALIGNMENT * PLAN_HOST_ALIGNMENT};
    TRY(ARENA_NEW(&partition->arena, jobs->count, host.need, err));
    TRY(ARENA_NEW(&partition->arena, jobs->count, host.open_s, err));
    TRY(ARENA_NEW(&partition->arena, jobs->count, host.close_s, err));
    uint32_t neediest = 0;
    for (uint32_t j = 0; j < jobs->count; j++) {
        const struct job *job = &jobs->jobs[j];
        struct host_need own = {0};
        TRY(host_need_add(jobs, footprints, partition, j, &own, err));
        host.need[j] = size_align(own.states + own.others + own.buffers * (PLAN_HOST_ALIGNMENT - 1),
                                  PLAN_HOST_ALIGNMENT);
        if (host.need[j] > host.need[neediest]) neediest = j;
        host.open_s[j] = host_file_open_s(hardware, job, 0, job->network.layer_count);
        host.close_s[j] = host_file_close_s(hardware, job, 0, job->network.layer_count);
    }
    if (host.need[neediest] > host.room)
        return too_large(hardware, jobs, host.need, neediest, err);
    partition->host = host;
    return STATUS_OK;
}
