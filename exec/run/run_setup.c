/*
 * Checks come first (run_checks.h). Then memory is mapped and touched, devices are opened, weights are made or read
 * (run_fill.c), and the log begins.
 *
 * Host buffers are in one block, at multiples of 4 KiB: states of shards, batches, boundary activations; then the
 * arena of staged states. Host state outlives the run: weights_init() fills it, the plan's copies update it,
 * weights_write() saves it.
 */
#include "exec/state/run_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "base/try.h"
#include "exec/device/host_memory.h"
#include "exec/files/weights.h"
#include "exec/group/run_collective.h"
#include "exec/group/run_collective_time.h"
#include "exec/group/run_library.h"
#include "exec/group/run_split.h"
#include "exec/group/run_staged.h"
#include "exec/ranks/rank_mesh.h"
#include "exec/run/run_checks.h"
#include "exec/run/run_devices.h"
#include "exec/run/run_files.h"
#include "exec/run/run_moves.h"
#include "exec/run/run_outputs.h"
#include "exec/run/run_ranks.h"
#include "exec/run/run_rows.h"
#include "exec/state/run_base.h"
#include "exec/state/run_faults.h"
#include "exec/state/run_saver.h"
#include "exec/state/run_shares.h"
#include "exec/state/run_storage.h"
#include "models/hardware/hardware_dilate.h"
#include "models/job/evaluation.h"
#include "planner/policy/policy_process.h"


/* --- host buffers ----------------------------------------------------------------------------- */

/* Lays out ranges consecutively per job; plan_check() has checked that they have room. */
static enum status lay_out_ranges(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    run->ranges_offset = run->host_bytes;
    if (!plan->host_ranges) return STATUS_OK;
    uint64_t *const used = alloc_zeroed(plan->jobs.count, sizeof *used);
    if (!used) return error_memory(err, "the host buffers", plan->jobs.count * sizeof *used);
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const struct plan_buffer *const buffer = &plan->buffers[b];
        if (buffer->on_device || !plan_has_range(plan, buffer->job)) continue;
        const struct plan_host_range *const range = &plan->host_ranges[buffer->job];
        run->host_offset[b] = run->ranges_offset + range->offset_bytes + used[buffer->job];
        used[buffer->job] += size_align(buffer->bytes, PLAN_HOST_ALIGNMENT) * plan_buffer_ranks(plan, buffer);
        assert(used[buffer->job] <= range->bytes);
    }
    free(used);
    return size_add(run->host_bytes, plan_ranges_bytes(plan), &run->host_bytes)
               ? STATUS_OK : error_memory(err, "the host buffers", UINT64_MAX);
}

/* Lays out bases, or all others of the buffers that stay. */
static enum status lay_out_buffers(struct run *run, bool bases, struct error *err)
{
    const struct plan *const plan = run->plan;
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const struct plan_buffer *const buffer = &plan->buffers[b];
        if (plan_buffer_lives(buffer) || buffer->kind == BUFFER_STORED || plan_has_range(plan, buffer->job)) continue;
        if (bases != (buffer->kind == BUFFER_BASE)) continue;
        uint64_t all, end;
        if (buffer->bytes > UINT64_MAX - RUN_HOST_ALIGNMENT ||
            !size_mul(size_align(buffer->bytes, RUN_HOST_ALIGNMENT), plan_buffer_ranks(plan, buffer), &all) ||
            !size_add(run->host_bytes, all, &end))
            return error_memory(err, "the host buffers", UINT64_MAX);
        run->host_offset[b] = run->host_bytes;
        run->host_bytes = end;
    }
    return STATUS_OK;
}

static enum status lay_out_host(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    TRY(ARENA_NEW(&run->arena, plan->buffer_count, run->host_offset, err));
    TRY(lay_out_buffers(run, false, err));
    TRY(lay_out_buffers(run, true, err));
    TRY(lay_out_ranges(run, err));
    run->stage_offset = run->host_bytes;
    run->stage_bytes = plan_staged_bytes(plan);
    if (!size_add(run->host_bytes, size_align(run->stage_bytes, RUN_HOST_ALIGNMENT), &run->host_bytes))
        return error_memory(err, "the host buffers", UINT64_MAX);
    TRY(run_staged_lay_out(run, err));
    if (!run->options->checkpoints) return STATUS_OK;
    run->snapshot_offset = run->host_bytes;
    if (!size_add(run->host_bytes, run_saver_bytes(run), &run->host_bytes))
        return error_memory(err, "the host buffers", UINT64_MAX);
    return STATUS_OK;
}

/* Finds states, and best parameters. */
static enum status find_states(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    TRY(ARENA_NEW(&run->arena, plan->shard_count, run->states, err));
    TRY(ARENA_NEW(&run->arena, plan->shard_count, run->kept, err));
    TRY(ARENA_NEW(&run->arena, plan->shard_count, run->state_buffers, err));
    for (uint32_t s = 0; s < plan->shard_count; s++) run->state_buffers[s] = PLAN_NONE;
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const struct plan_buffer *const buffer = &plan->buffers[b];
        if (buffer->on_device || buffer->variant != 0) continue;
        if (buffer->kind != BUFFER_STATE && buffer->kind != BUFFER_KEPT) continue;
        const uint32_t shard = plan->job_first_shard[buffer->job] + buffer->shard;
        float **const found = buffer->kind == BUFFER_STATE ? run->states : run->kept;
        if (buffer->kind == BUFFER_STATE) run->state_buffers[shard] = b;
        if (buffer->kind == BUFFER_KEPT || !run_is_split(run, shard))
            found[shard] = (float *)(void *)run_host_buffer(run, b);
    }
    for (uint32_t s = 0; s < plan->shard_count; s++)
        if (run->state_buffers[s] == PLAN_NONE && !run_is_stored(run, s))
            return error_set(err, STATUS_BAD_INPUT,
                             "the plan has no host buffer for the state of '%s' shard %" PRIu32,
                             plan->jobs.jobs[plan->shards[s].job].name,
                             s - plan->job_first_shard[plan->shards[s].job]);
    return STATUS_OK;
}

/* Counts the replicas of a parallel job's shard. */
static uint32_t replicas_of(const struct plan *plan, uint32_t s)
{
    const uint32_t job = plan->shards[s].job;
    const struct parallel *const p = &plan->jobs.jobs[job].parallel;
    return parallel_replicas(p, parallel_place(p, s - plan->job_first_shard[job]).stage);
}

/* Makes the tensor groups of a chunk, one for each replica, and the part of each rank. */
static enum status make_splits(struct run *run, uint32_t s, struct error *err)
{
    const struct job *const job = &run->plan->jobs.jobs[run->plan->shards[s].job];
    const struct hardware *const hardware = &run->plan->hardware;
    const uint32_t members = job->parallel.tensor, replicas = replicas_of(run->plan, s);
    const bool dilated = hardware_dilation(hardware) > 1;
    const bool paced = dilated && run_collective_is_paced(hardware, 0); /* devices of one kind */
    struct unit_split *ranks;
    TRY(ARENA_NEW(&run->arena, (size_t)members * replicas, ranks, err));
    run->splits[s] = ranks;
    for (uint32_t d = 0; d < replicas; d++) {
        struct unit_group *group;
        TRY(unit_group_create(members, !dilated, paced, &group, err));
        if (job->parallel.tensor_pieces > 0) unit_group_add_as_tree(group);
        for (uint32_t t = 0; t < members; t++) ranks[d * members + t] = chunk_split(job, group, t);
        TRY(run_split_divide(run, s, d * members, group, err));
    }
    return STATUS_OK;
}

/* Calls `each` for all tensor groups. */
static void walk_groups(struct run *run, void (*each)(struct unit_group *group))
{
    for (uint32_t s = 0; run->splits && s < run->plan->shard_count; s++) {
        const struct parallel *const p = &run->plan->jobs.jobs[run->plan->shards[s].job].parallel;
        for (uint32_t d = 0; run->splits[s] && d < replicas_of(run->plan, s); d++) {
            struct unit_group *const group = run->splits[s][d * p->tensor].group;
            if (group) each(group);
        }
    }
}

static enum status make_chunk_tables(struct run *run, uint32_t s, struct error *err)
{
    const struct plan_shard *const shard = &run->plan->shards[s];
    const struct parallel_layers layers = {shard->first_layer, shard->layer_count};
    struct chunk_tables *const chunk = &run->chunks[s];
    const struct job *const job = &run->plan->jobs.jobs[shard->job];
    TRY(chunk_tables_init(job, shard->job, layers, &run->arena, chunk, err));
    run->tables[s] = (struct unit_tables){.parameters = chunk->parameters, .state = chunk->state};
    if (!parallel_has_slices(&job->parallel)) return STATUS_OK;
    TRY(memory_parameters(&job->network, layers.first, layers.count, &run->arena, &run->tables[s].parameters, err));
    TRY(memory_state_tables(&job->network, layers.first, layers.count, job_state_format(job), &run->arena,
                            &run->tables[s].state, err));
    return make_splits(run, s, err);
}

static enum status make_tables(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    TRY(ARENA_NEW(&run->arena, plan->shard_count, run->tables, err));
    TRY(ARENA_NEW(&run->arena, plan->shard_count, run->chunks, err));
    TRY(ARENA_NEW(&run->arena, plan->shard_count, run->splits, err));
    TRY(ARENA_NEW(&run->arena, plan->shard_count, run->state_tables, err));
    TRY(ARENA_NEW(&run->arena, plan->shard_count, run->value_tables, err));
    for (uint32_t s = 0; s < plan->shard_count; s++) {
        const struct plan_shard *const shard = &plan->shards[s];
        const struct job *const job = &plan->jobs.jobs[shard->job];
        if (parallel_is_set(&job->parallel))
            TRY(make_chunk_tables(run, s, err));
        else
            TRY(unit_tables_init(job, shard, &run->arena, &run->tables[s], err));
        run->state_tables[s] = run->tables[s].state;
        run->value_tables[s] = state_tables_of_values(run->tables[s].parameters);
    }
    return STATUS_OK;
}

/* --- data ---------------------------------------------------------------------------------------- */

/* Returns true if the data was scanned for an earlier job with the same range of tokens. */
static bool is_known(const struct run *run, uint32_t j)
{
    const struct job *const job = &run->plan->jobs.jobs[j];
    for (uint32_t i = 0; i < j; i++) {
        const struct job *const other = &run->plan->jobs.jobs[i];
        if (run->sources[i] && job->data && other->data && strcmp(job->data, other->data) == 0 &&
            job->data_format == other->data_format && job->network.vocabulary == other->network.vocabulary)
            return true;
    }
    return false;
}

/* Opens a job's data. An evaluation without separate data uses a part of the job's. */
static enum status open_data_of_job(struct run *run, uint32_t j, struct error *err)
{
    const struct job *const job = &run->plan->jobs.jobs[j];
    const enum status status = is_known(run, j) ? data_open_known(job, &run->sources[j], err)
                                                : data_open(job, &run->sources[j], err);
    if (status != STATUS_OK || job->evaluation.every == 0) return status;
    return job->evaluation.data ? data_open_held_out(job, &run->held_out[j], err)
                                : data_open_held_out_known(job, &run->held_out[j], err);
}

static enum status open_data(struct run *run, struct error *err)
{
    const struct job_set *const jobs = &run->plan->jobs;
    enum status status = ARENA_NEW(&run->arena, jobs->count, run->sources, err);
    if (status == STATUS_OK)
        status = ARENA_NEW(&run->arena, jobs->count, run->held_out, err);
    if (status != STATUS_OK) return status;
    for (uint32_t j = 0; j < jobs->count; j++) {
        status = open_data_of_job(run, j, err);
        if (status != STATUS_OK) TRY(run_fail_early(run, j, err));
    }
    return STATUS_OK;
}

/* --- results ----------------------------------------------------------------------------------- */

static enum status make_results(struct run *run, struct error *err)
{
    const struct job_set *const jobs = &run->plan->jobs;
    struct run_result *const result = run->result;
    TRY(ARENA_NEW(&run->arena, jobs->count, run->jobs, err));
    for (uint32_t j = 0; j < jobs->count; j++) run->jobs[j].limit = UINT64_MAX;
    enum status status = ARENA_NEW(&result->arena, jobs->count, result->jobs, err);
    if (status != STATUS_OK) return status;
    for (uint32_t j = 0; j < jobs->count; j++) {
        const struct job *const job = &jobs->jobs[j];
        TRY(ARENA_NEW(&result->arena, job->first_minibatch + job->minibatches, result->jobs[j].losses, err));
        const uint32_t replicas = run_loss_replicas(job);
        const size_t ahead = replicas > 1 ? run_minibatches_ahead(job) : 0;
        if (ahead > 0) TRY(ARENA_NEW(&run->arena, ahead * replicas, run->jobs[j].partial_losses, err));
        if (ahead > 0) TRY(ARENA_NEW(&run->arena, ahead, run->jobs[j].partial_count, err));
        if (job_clips(job)) TRY(ARENA_NEW(&run->arena, run_halves(job), run->jobs[j].halves, err));
        const size_t parts = replicas > 1 && job->evaluation.every > 0 ? 2 * job->evaluation.minibatches : 0;
        if (parts > 0) TRY(ARENA_NEW(&run->arena, parts * replicas, run->jobs[j].held_out_parts, err));
        if (parts > 0) TRY(ARENA_NEW(&run->arena, parts, run->jobs[j].held_out_count, err));
        result->jobs[j].first_minibatch = job->first_minibatch;
        result->jobs[j].best_evaluation = EVALUATION_NONE;
        status = ARENA_NEW(&result->arena,
                           (job->evaluation.every > 0 ? job->first_minibatch : 0) + evaluation_count(job),
                           result->jobs[j].evaluations, err);
        if (status != STATUS_OK) return status;
    }
    result->threads = run->threads;
    return status;
}

/* Refuses checkpoints: a run from the beginning must not mix its own with another run's. */
static enum status check_no_checkpoints(struct run *run, struct error *err)
{
    if (!run->options->checkpoints || (run->peers && run->peers->own > 0)) return STATUS_OK;
    const char *const folder = run->options->checkpoints->folder;
    for (uint32_t j = 0; j < run->plan->jobs.count; j++) {
        const struct job *const job = &run->plan->jobs.jobs[j];
        uint64_t last = 0;
        if (job->first_minibatch > 0) continue;
        enum status status = checkpoint_last_name(run_checkpoint_disk(run), folder, job, &last, err);
        if (status == STATUS_OK && last > 0)
            status = error_set(err, STATUS_BAD_INPUT,
                               "job '%s' has checkpoints in '%s', the last after minibatch %" PRIu64
                               " (continue with --resume, or start over in another folder)",
                               job->name, folder, last);
        if (status != STATUS_OK) TRY(run_fail_early(run, j, err));
    }
    return STATUS_OK;
}

/* Returns true if some job continues from a checkpoint. */
static bool log_goes_on(const struct run *run)
{
    bool goes_on = run->options->log_goes_on;
    for (uint32_t j = 0; j < run->plan->jobs.count; j++)
        goes_on |= run->plan->jobs.jobs[j].first_minibatch > 0 && plan_goes_on_from(run->plan, j) == PLAN_NONE;
    return goes_on;
}

static enum status open_log(struct run *run, struct error *err)
{
    const struct run_options *const options = run->options;
    const struct run_log_head head = {
        .goes_on = log_goes_on(run),
        .live = options->live != NULL,
        .policy = options->live ? policy_process_dispatch(options->live, 0).policy->name : run->plan->policy,
        .seed = options->live ? options->live_seed : run->plan->seed,
        .threads = run->threads,
        .libraries = run->result->libraries};
    return run_log_open(options->log_path, run->plan, &head, &run->log, err);
}

static uint32_t device_threads(const struct hardware *hardware)
{
    if (hardware->threads > 0) return hardware->threads;
    const uint32_t each = hardware->host_cores / hardware->device_count;
    return each > 0 ? each : 1;
}

static enum status note_libraries(struct run *run, struct error *err)
{
    char text[1024];
    snprintf(text, sizeof text, "%s%s%s%s%s", run->backend->text(),
             run->attention_by[0] ? ", bf16 attention by " : "", run->attention_by,
             run->collectives_by[0] ? ", collectives by " : "", run->collectives_by);
    return arena_string(&run->result->arena, text, &run->result->libraries, err);
}

enum status run_prepare(struct run *run, struct error *err)
{
    run->last_job = PLAN_NONE;
    if (run->backend->arena_on_host) run->threads = device_threads(&run->plan->hardware);
    TRY(make_results(run, err));
    TRY(run_check_jobs(run, err));
    TRY(check_no_checkpoints(run, err));
    TRY(make_tables(run, err));
    TRY(run_moves_create(run, err));
    TRY(run_library_find(run, err));
    return lay_out_host(run, err);
}

enum status run_open_inputs(struct run *run, struct error *err)
{
    TRY(run_check_memory(run, err));
    TRY(open_data(run, err));
    TRY(run_outputs_open(run, err));
    TRY(run_rows_open(run, err));
    return run_check_weights(run, err);
}

enum status run_setup(struct run *run, struct error *err)
{
    struct ranks *const ranks = run->options->ranks;
    enum status status = run_check_plan(run->plan, ranks ? ranks_count(ranks) : 1, err);
    if (status == STATUS_OK) status = run_check_machine(run, err);
    if (status == STATUS_OK) status = run_ranks_open(run, err);
    if (status == STATUS_OK) status = run_prepare(run, err);
    if (status == STATUS_OK) status = run_storage_open(run, err);
    if (status == STATUS_OK) status = run_open_inputs(run, err);
    void *host = NULL;
    if (status == STATUS_OK) status = host_memory_map("the host buffers", run->host_bytes, &host, err);
    run->host = host;
    if (status == STATUS_OK) status = find_states(run, err);
    if (status == STATUS_OK) status = run_base_create(run, err);
    if (status == STATUS_OK) run_staged_give_rooms(run);
    if (status == STATUS_OK) run_devices_pin(run);
    if (status == STATUS_OK) status = run_devices_open(run, err);
    if (status == STATUS_OK) status = run_storage_start(run, err);
    if (status == STATUS_OK) status = run_files_start(run, err);
    if (status == STATUS_OK) status = run_moves_start(run, err);
    if (status == STATUS_OK)
        status = note_libraries(run, err);
    if (status == STATUS_OK) status = run_fill_all(run, err);
    if (status == STATUS_OK) status = open_log(run, err);
    if (status == STATUS_OK) status = run_ranks_agree(run, err);
    return status;
}

void run_teardown(struct run *run)
{
    if (run->devices) {
        run_collective_cancel(run);
        run_library_stop(run);
        walk_groups(run, unit_group_cancel);
        for (uint32_t d = 0; d < run->plan->hardware.device_count; d++) device_stop(run->devices[d]);
        device_stop(run->cpu);
        run_storage_stop(run->storage);
        run_files_stop(run);
        run_moves_stop(run);
        run_library_close(run);
        device_close(run->cpu);
        device_close(run->files);
        for (uint32_t d = 0; d < run->plan->hardware.device_count; d++) device_close(run->devices[d]);
        run_collective_release(run);
    }
    run_moves_close(run);
    run_storage_close(run->storage);
    for (uint32_t j = 0; run->sources && j < run->plan->jobs.count; j++) {
        data_close(run->sources[j]);
        data_close(run->held_out[j]);
    }
    walk_groups(run, unit_group_destroy);
    if (run->pinned) run->backend->unpin(run->host);
    host_memory_unmap(run->host, run->host_bytes);
    arena_release(&run->arena);
}
