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
#include "base/text/quantity.h"
#include "base/try.h"
#include "exec/device/device_p2p.h"
#include "exec/device/host_memory.h"
#include "exec/files/weights.h"
#include "exec/group/run_collective.h"
#include "exec/ranks/rank_mesh.h"
#include "exec/run/run_attention.h"
#include "exec/run/run_checks.h"
#include "exec/run/run_ranks.h"
#include "exec/state/run_faults.h"
#include "exec/state/run_files.h"
#include "exec/state/run_saver.h"
#include "exec/state/run_shares.h"
#include "exec/state/run_storage.h"
#include "models/cost/cost.h"
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
        used[buffer->job] += size_align(buffer->bytes, PLAN_HOST_ALIGNMENT);
        assert(used[buffer->job] <= range->bytes);
    }
    free(used);
    return size_add(run->host_bytes, plan_ranges_bytes(plan), &run->host_bytes)
               ? STATUS_OK : error_memory(err, "the host buffers", UINT64_MAX);
}

static enum status lay_out_host(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    TRY(ARENA_NEW(&run->arena, plan->buffer_count, run->host_offset, err));
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const struct plan_buffer *const buffer = &plan->buffers[b];
        if (plan_buffer_lives(buffer) || buffer->kind == BUFFER_STORED || plan_has_range(plan, buffer->job)) continue;
        uint64_t all, end;
        if (buffer->bytes > UINT64_MAX - RUN_HOST_ALIGNMENT ||
            !size_mul(size_align(buffer->bytes, RUN_HOST_ALIGNMENT), plan_buffer_ranks(plan, buffer), &all) ||
            !size_add(run->host_bytes, all, &end))
            return error_memory(err, "the host buffers", UINT64_MAX);
        run->host_offset[b] = run->host_bytes;
        run->host_bytes = end;
    }
    TRY(lay_out_ranges(run, err));
    run->stage_offset = run->host_bytes;
    run->stage_bytes = plan_staged_bytes(plan);
    if (!size_add(run->host_bytes, size_align(run->stage_bytes, RUN_HOST_ALIGNMENT), &run->host_bytes))
        return error_memory(err, "the host buffers", UINT64_MAX);
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
        if (buffer->kind == BUFFER_KEPT || !run_is_split(run, shard)) found[shard] = (float *)(void *)run_host_buffer(run, b);
    }
    for (uint32_t s = 0; s < plan->shard_count; s++)
        if (run->state_buffers[s] == PLAN_NONE && !run_is_stored(run, s))
            return error_set(err, STATUS_BAD_INPUT,
                             "the plan has no host buffer for the state of '%s' shard %" PRIu32,
                             plan->jobs.jobs[plan->shards[s].job].name,
                             s - plan->job_first_shard[plan->shards[s].job]);
    return STATUS_OK;
}

/* Makes the tensor groups of a chunk, one for each replica, and the part of each rank. */
static enum status make_splits(struct run *run, uint32_t s, struct error *err)
{
    const struct job *const job = &run->plan->jobs.jobs[run->plan->shards[s].job];
    const uint32_t members = job->parallel.tensor;
    struct unit_split *ranks;
    TRY(ARENA_NEW(&run->arena, (size_t)members * job->parallel.data, ranks, err));
    run->splits[s] = ranks;
    for (uint32_t d = 0; d < job->parallel.data; d++) {
        struct unit_group *group;
        TRY(unit_group_create(members, &group, err));
        for (uint32_t t = 0; t < members; t++) ranks[d * members + t] = chunk_split(job, group, t);
    }
    return STATUS_OK;
}

/* Calls `each` for all tensor groups. */
static void walk_groups(struct run *run, void (*each)(struct unit_group *group))
{
    for (uint32_t s = 0; run->splits && s < run->plan->shard_count; s++) {
        const struct parallel *const p = &run->plan->jobs.jobs[run->plan->shards[s].job].parallel;
        for (uint32_t d = 0; run->splits[s] && d < p->data; d++) {
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
    if (job->parallel.tensor <= 1) return STATUS_OK;
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

/* --- pinned memory ------------------------------------------------------------------------------ */

/* A copy by the processor is added without overlap. Assumed, not measured. */
static const double PAGEABLE_FACTOR = 3;

/* Returns seconds of all the plan's copies to and from the host, one after the other. */
static double planned_copies_s(const struct plan *plan)
{
    double total_s = 0;
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const struct plan_segment *const segment = &plan->segments[s];
        double once_s = 0;
        for (uint32_t i = 0; i < segment->task_count; i++) {
            const struct plan_task *const task =
                &plan->tasks[segment->first_task + i];
            const struct plan_unit *const unit = &plan->units[task->unit];
            for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
                if (plan->ops[o].kind == OP_COPY && plan->ops[o].stream != STREAM_P2P)
                    once_s += cost_copy_s(&plan->hardware, task->device,
                                          plan->ops[o].stream == STREAM_H2D ? COPY_H2D : COPY_D2H,
                                          plan->ops[o].bytes);
        }
        total_s += once_s * segment->repeat_count;
    }
    return total_s;
}

/* Pins host memory, whose copies overlap with all other work; a run works without (device_cuda.c). */
static void pin_host(struct run *run)
{
    char why[160];
    if (!run->backend->pin || run->host_bytes == 0) return;
    run->pinned = run->backend->pin(run->host, run->host_bytes, why, sizeof why);
    if (run->pinned) return;
    char text[3][QUANTITY_TEXT_BYTES];
    const double planned_s = planned_copies_s(run->plan);
    run_note(run, "%s of host memory could not be pinned (%s): the driver copies it once more, so that "
             "%s of copies will take some %s, and begin only when the host gets to them",
             quantity_text((double)run->host_bytes, DIMENSION_BYTES, text[0]), why,
             quantity_text(planned_s, DIMENSION_SECONDS, text[1]),
             quantity_text(planned_s * PAGEABLE_FACTOR, DIMENSION_SECONDS, text[2]));
}

/* --- devices ----------------------------------------------------------------------------------- */

/* Returns the slowest paced link on a path; 0: none. Streams are paced separately, so copies on one link do not slow
 * each other down. A copy between devices is paced by the fetching device's links. */
static double paced_rate(const struct hardware *hardware, const uint32_t *path, uint32_t count)
{
    double rate = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct hardware_link *const link = &hardware->links[path[i]];
        if (link->paced && (rate == 0 || link->bandwidth.value < rate)) rate = link->bandwidth.value;
    }
    return rate;
}

static uint32_t device_threads(const struct hardware *hardware)
{
    if (hardware->threads > 0) return hardware->threads;
    const uint32_t each = hardware->host_cores / hardware->device_count;
    return each > 0 ? each : 1;
}

static bool computes_on_host(const struct plan_op *op)
{
    return op->kind == OP_COMPUTE && op->stream == STREAM_HOST && op->pass != PLAN_BATCH &&
           op->pass != PLAN_KEEP;
}

/* Opens the host's processor: the computing part of a host device, with all cores. */
static enum status open_cpu(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    bool used = false;
    for (uint32_t i = 0; i < plan->op_count && !used; i++) used = plan->ops[i].stream == STREAM_CPU || computes_on_host(&plan->ops[i]);
    if (!used) return STATUS_OK;
    const struct device_options options = {
        .index = hardware_cpu(&plan->hardware),
        .threads = plan->hardware.host_cores,
        .compute_only = true,
        .delay_seed = run->options->delay_seed,
    };
    const enum status status = device_open_host(&options, &run->cpu, err);
    if (status != STATUS_OK) return error_add(err, "the host's processor");
    for (uint32_t d = 0; d < plan->hardware.device_count; d++)
        run->streams[plan_stream(plan, d, STREAM_CPU)] = device_stream(run->cpu, STREAM_COMPUTE);
    run->gather = *device_kernels(run->cpu);
    run->gather.threads = 1;
    return STATUS_OK;
}

/* Back ends need not have the kernels of every family. */
static enum status check_kernels(const struct plan *plan, const struct kernels *kernels,
                                 struct error *err)
{
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct job *const job = &plan->jobs.jobs[j];
        const char *const missing = unit_missing_kernel(kernels, job);
        if (missing)
            return error_set(err, STATUS_BAD_INPUT,
                             "job '%s' cannot be trained here: networks of family '%s' take the "
                             "kernel '%s', which the back end '%s' does not have",
                             job->name, network_family_names[job->network.family], missing,
                             kernels->name);
    }
    return STATUS_OK;
}

/* Finds each job's devices: all with live dispatch. */
static enum status find_users(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    const uint32_t devices = plan->hardware.device_count;
    TRY(ARENA_NEW(&run->arena, devices, run->device_noted, err));
    TRY(ARENA_NEW(&run->arena, (size_t)plan->jobs.count * devices, run->uses_device, err));
    const uint32_t count = run->options->live ? plan->task_count : plan_first_choice(plan);
    for (uint32_t i = 0; i < count; i++) {
        const struct plan_task *const task = &plan->tasks[i];
        bool *const uses = &run->uses_device[(size_t)plan->units[task->unit].job * devices];
        for (uint32_t m = 0; m < plan_task_members(plan, task); m++)
            uses[plan_task_device(plan, task, m)] = true;
    }
    return STATUS_OK;
}

/* Returns true where devices have streams for copies from each other. */
static bool copies_between_devices(const struct plan *plan)
{
    return plan_device_streams(plan) > STREAM_P2P;
}

static enum status link_pair(struct run *run, uint32_t to, uint32_t from, struct error *err)
{
    enum p2p_way way;
    char why[P2P_WHY_BYTES];
    TRY(device_link(run->devices[to], run->devices[from], &way, why, err));
    if (way == P2P_STAGED)
        run_note(run, "direct copies from device %" PRIu32 " to device %" PRIu32 " do not work (%s): "
                 "they go through host memory, which takes longer than planned",
                 from, to, why);
    return STATUS_OK;
}

static enum status link_devices(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    const size_t devices = plan->hardware.device_count;
    if (!copies_between_devices(plan)) return STATUS_OK;
    bool *const tried = alloc_zeroed(devices * devices, sizeof *tried);
    if (!tried) return error_memory(err, "the links between devices", devices * devices);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < plan->task_count && status == STATUS_OK; i++) {
        const struct plan_task *const task = &plan->tasks[i];
        const uint32_t members = task->peer == PLAN_NONE ? 0 : plan_task_members(plan, task);
        for (uint32_t m = 0; m < members && status == STATUS_OK; m++) {
            const uint32_t to = plan_task_device(plan, task, m), from = plan_task_peer(plan, task, m);
            if (!tried[to * devices + from] && run_has_device(run, to) && run_has_device(run, from))
                status = link_pair(run, to, from, err);
            tried[to * devices + from] = true;
        }
    }
    free(tried);
    return status;
}

/* Opens what represents another process's device: streams that keep the order of its work. */
static enum status open_stand_in(struct run *run, uint32_t d, struct error *err)
{
    const struct device_options options = {.index = d,
                                           .threads = 1,
                                           .stands_in = true,
                                           .p2p = copies_between_devices(run->plan),
                                           .poison = run->options->poison,
                                           .delay_seed = run->options->delay_seed};
    const enum status status = device_open_host(&options, &run->devices[d], err);
    if (status != STATUS_OK) return error_add(err, "device %" PRIu32 " of another rank", d);
    for (uint32_t kind = STREAM_COMPUTE; kind < plan_device_streams(run->plan); kind++)
        run->streams[plan_stream(run->plan, d, kind)] =
            device_stream(run->devices[d], kind == STREAM_P2P ? STREAM_P2P : STREAM_COMPUTE);
    return STATUS_OK;
}

static enum status open_devices(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    const uint32_t device_count = plan->hardware.device_count;
    TRY(ARENA_NEW(&run->arena, device_count, run->devices, err));
    TRY(ARENA_NEW(&run->arena, plan_stream_count(plan), run->streams, err));
    TRY(ARENA_NEW(&run->arena, (size_t)plan->slot_count * device_count, run->slot_uses, err));
    enum status status = find_users(run, err);
    if (status != STATUS_OK) return status;
    for (uint32_t d = 0; d < device_count; d++) {
        if (!run_has_device(run, d)) {
            TRY(open_stand_in(run, d, err));
            continue;
        }
        const struct hardware_device *const about = &plan->hardware.devices[d];
        const double rate = paced_rate(&plan->hardware, about->path, about->path_count);
        const struct device_options options = {
            .index = d,
            .arena_bytes = plan_device_bytes(plan, d),
            .threads = run->threads,
            .h2d_bytes_per_s = rate,
            .d2h_bytes_per_s = rate,
            .p2p = copies_between_devices(plan),
            .p2p_bytes_per_s = /* without direct links, through host memory */
                about->network_count == 0
                    ? rate
                    : paced_rate(&plan->hardware, about->networks[0].path, about->networks[0].path_count),
            .dilation = hardware_dilation(&plan->hardware),
            .poison = run->options->poison,
            .delay_seed = run->options->delay_seed,
            .tf32 = run->options->tf32,
            .pageable = run->backend->pin && !run->pinned,
        };
        status = run->backend->open(&options, &run->devices[d], err);
        if (status == STATUS_OK) status = check_kernels(plan, device_kernels(run->devices[d]), err);
        if (status != STATUS_OK) return error_add(err, "device %" PRIu32, d);
        if (run->peers) run->peers->p2p_rates[d] = options.p2p_bytes_per_s;
        run_prepare_attention(run, d);
        for (uint32_t kind = STREAM_COMPUTE; kind < plan_device_streams(plan); kind++)
            run->streams[plan_stream(plan, d, kind)] = device_stream(run->devices[d], kind);
    }
    for (uint32_t d = 0; d < device_count; d++) /* of all nodes */
        run->streams[plan_stream(plan, d, STREAM_HOST)] = device_stream(run->devices[0], STREAM_HOST);
    TRY(link_devices(run, err));
    return open_cpu(run, err);
}

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
        if (job->parallel.data > 1) TRY(ARENA_NEW(&run->arena, 2 * job->parallel.data, run->jobs[j].partial_losses, err));
        const size_t parts = job->parallel.data > 1 && job->evaluation.every > 0 ? 2 * job->evaluation.minibatches : 0;
        if (parts > 0) TRY(ARENA_NEW(&run->arena, parts * job->parallel.data, run->jobs[j].held_out_parts, err));
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
        goes_on |= run->plan->jobs.jobs[j].first_minibatch > 0;
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

static enum status note_libraries(struct run *run, struct error *err)
{
    char text[1024];
    snprintf(text, sizeof text, "%s%s%s", run->backend->text(),
             run->attention_by[0] ? ", bf16 attention by " : "", run->attention_by);
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
    return lay_out_host(run, err);
}

enum status run_open_inputs(struct run *run, struct error *err)
{
    TRY(run_check_memory(run, err));
    TRY(open_data(run, err));
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
    if (status == STATUS_OK) pin_host(run);
    if (status == STATUS_OK) status = open_devices(run, err);
    if (status == STATUS_OK) status = run_storage_start(run, err);
    if (status == STATUS_OK) status = run_files_start(run, err);
    if (status == STATUS_OK)
        status = note_libraries(run, err);
    if (status == STATUS_OK) status = run_fill_all(run, err);
    if (status == STATUS_OK) status = open_log(run, err);
    return status;
}

void run_teardown(struct run *run)
{
    if (run->devices) {
        run_collective_cancel(run);
        walk_groups(run, unit_group_cancel);
        for (uint32_t d = 0; d < run->plan->hardware.device_count; d++) device_stop(run->devices[d]);
        device_stop(run->cpu);
        run_storage_stop(run->storage);
        run_files_stop(run);
        device_close(run->cpu);
        device_close(run->files);
        for (uint32_t d = 0; d < run->plan->hardware.device_count; d++) device_close(run->devices[d]);
        run_collective_release(run);
    }
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
