/*
 * Each stored shard has a range of the file, on a block boundary. The file has three queues:
 *
 *     read stream    reads of the plan      -> staged buffers in host memory
 *     write stream   staged buffers         -> writes of the plan
 *     aside          initial states; copies for checkpoints; state brought back after a stop;
 *                    weights at the end
 *
 * The streams belong to two compute-only host devices. Initial and final weights are in memory: the arena of staged
 * states is idle then, and mostly large enough; otherwise memory is mapped temporarily.
 *
 * A transfer that fails also fails its job, whose later results are void: no minibatches count, and no checkpoint or
 * weights are written.
 */
#include "exec/state/run_storage.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/size.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "exec/device/host_memory.h"
#include "exec/device/storage.h"
#include "exec/state/run_faults.h"
#include "exec/state/run_shares.h"
#include "planner/plan_hosts.h"

enum queue { QUEUE_READ, QUEUE_WRITE, QUEUE_ASIDE, QUEUE_COUNT };

struct run_storage {
    struct run *run;
    struct storage *file;
    uint64_t *offset;           /* per shard; UINT64_MAX: not stored */
    uint64_t *staged;           /* plan_host_staged() */
    struct device *streams[2];  /* QUEUE_READ and QUEUE_WRITE */
    void *passing;              /* run_storage_passing(), of ... */
    uint64_t passing_bytes;     /* ... the largest state of a rank */
    pthread_mutex_t aside;      /* who uses QUEUE_ASIDE */
    pthread_mutex_t lent;       /* who has borrowed states */
};

/* --- where things are --------------------------------------------------------------------------- */

static uint64_t state_bytes(const struct run *run, uint32_t shard)
{
    return run->tables[shard].state.layout.bytes;
}

static uint64_t value_bytes(const struct run *run, uint32_t shard)
{
    return state_value_bytes(&run->tables[shard].state.layout);
}

bool run_is_stored(const struct run *run, uint32_t shard)
{
    return run->storage && run->storage->offset[shard] != UINT64_MAX;
}

uint64_t run_storage_staged(const struct run *run, const struct plan_walk_op *op)
{
    const struct hardware *const hardware = &run->plan->hardware;
    const uint32_t device = op->device, host = hardware->devices[device].host;
    return run->storage->staged[op->gang != PLAN_NONE ? device : hardware->device_count + host];
}

/* Returns the bytes of all ranks' states of a shard of a parallel job. */
static uint64_t ranks_bytes(const struct run *run, uint32_t shard)
{
    return run_stored_ranks(run, shard) * run_stored_bytes(run, shard);
}

/* Returns true for a state that no single buffer of host memory has. */
static bool is_away(const struct run *run, uint32_t shard)
{
    return run_is_stored(run, shard) || run_is_split(run, shard);
}

static uint64_t lent_bytes(const struct run *run, uint32_t shard, enum run_states_use use)
{
    const bool parameters = use == RUN_STATES_PARAMETERS;
    return size_align(parameters ? value_bytes(run, shard) : state_bytes(run, shard), STORAGE_BLOCK);
}

uint64_t run_storage_bytes_aside(const struct run *run)
{
    const struct plan *const plan = run->plan;
    uint64_t most = 0;
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        uint64_t filled = 0, kept = 0;
        for (uint32_t s = plan->job_first_shard[j]; s < plan->job_first_shard[j + 1]; s++) {
            if (!is_away(run, s)) continue;
            const uint64_t shares = run_is_stored(run, s) && run_is_split(run, s) ? 2 * ranks_bytes(run, s) : 0;
            const uint64_t own = lent_bytes(run, s, RUN_STATES_FILL) + shares;
            filled = job_fills_at_once(&plan->jobs.jobs[j]) ? filled + own : own > filled ? own : filled;
            kept += lent_bytes(run, s, RUN_STATES_PARAMETERS) + shares;
        }
        if (filled > most) most = filled;
        if (kept > most) most = kept;
    }
    return most > run->stage_bytes ? most : 0;
}

/* --- transfers ---------------------------------------------------------------------------------- */

struct transfer_call {
    struct run *run;
    char *staged;
    bool *omitted;
    uint64_t offset, bytes, minibatch;
    uint32_t job;
    bool write;
};
static_assert(sizeof(struct transfer_call) <= DEVICE_ARGUMENT_MAX, "goes through a stream's queue");

static void call_transfer(void *argument)
{
    const struct transfer_call *const call = argument;
    struct run *const run = call->run;
    struct run_storage *const storage = run->storage;
    struct error why = {0};
    *call->omitted = call->minibatch >= atomic_load(&run->jobs[call->job].limit) ||
                     run_job_damaged(run, call->job);
    if (*call->omitted) return;
    const enum status status =
        call->write ? storage_write(storage->file, QUEUE_WRITE, call->staged, call->offset,
                                    call->bytes, &why)
                    : storage_read(storage->file, QUEUE_READ, call->staged, call->offset, call->bytes,
                                   &why);
    if (status != STATUS_OK) run_fail_damaged(run, call->job, &why);
}

void run_storage_enqueue(struct run *run, const struct plan_walk_op *op, char *staged,
                         uint64_t minibatch, bool *omitted, struct device_timing *timing)
{
    const struct plan *const plan = run->plan;
    const bool write = op->op->stream == STREAM_WRITE;
    const struct plan_place_use *const stored = &op->uses[write ? 1 : 0];
    const struct plan_buffer *const buffer = &plan->buffers[stored->buffer];
    const uint32_t shard = plan->job_first_shard[buffer->job] + buffer->shard;
    const struct transfer_call call = {
        .run = run,
        .staged = staged,
        .omitted = omitted,
        .offset = run->storage->offset[shard] +
                  plan_buffer_rank(plan, buffer, op->rank) * run_stored_bytes(run, shard) +
                  stored->address,
        .bytes = op->op->bytes,
        .minibatch = minibatch,
        .job = buffer->job,
        .write = write,
    };
    device_call(run->streams[op->stream], call_transfer, &call, sizeof call, timing);
}

enum status run_storage_load(struct run *run, uint32_t shard, void *to, uint64_t from, uint64_t bytes,
                             struct error *err)
{
    struct run_storage *const storage = run->storage;
    pthread_mutex_lock(&storage->aside);
    const enum status status =
        storage_read(storage->file, QUEUE_ASIDE, to, storage->offset[shard] + from, bytes, err);
    pthread_mutex_unlock(&storage->aside);
    return status;
}

static enum status save_state(struct run *run, uint32_t shard, const void *from, struct error *err)
{
    struct run_storage *const storage = run->storage;
    pthread_mutex_lock(&storage->aside);
    const enum status status = storage_write(storage->file, QUEUE_ASIDE, from, storage->offset[shard],
                                             state_bytes(run, shard), err);
    pthread_mutex_unlock(&storage->aside);
    return status;
}

/* --- shares ------------------------------------------------------------------------------------- */

/* Moves all ranks' states of a shard between storage and their memory aside. */
static enum status move_shares(struct run *run, uint32_t shard, bool save, struct error *err)
{
    struct run_storage *const storage = run->storage;
    const uint64_t bytes = ranks_bytes(run, shard);
    char *const memory = run->stored_aside[shard];
    pthread_mutex_lock(&storage->aside);
    const enum status status = save
                                 ? storage_write(storage->file, QUEUE_ASIDE, memory, storage->offset[shard], bytes, err)
                                 : storage_read(storage->file, QUEUE_ASIDE, memory, storage->offset[shard], bytes, err);
    pthread_mutex_unlock(&storage->aside);
    return status;
}

enum status run_storage_move(struct run *run, uint32_t shard, uint32_t rank, bool save, void *at, struct error *err)
{
    struct run_storage *const storage = run->storage;
    const uint64_t bytes = run_stored_bytes(run, shard);
    const uint64_t offset = storage->offset[shard] + rank % run_stored_ranks(run, shard) * bytes;
    pthread_mutex_lock(&storage->aside);
    const enum status status = save ? storage_write(storage->file, QUEUE_ASIDE, at, offset, bytes, err)
                                    : storage_read(storage->file, QUEUE_ASIDE, at, offset, bytes, err);
    pthread_mutex_unlock(&storage->aside);
    return status;
}

void *run_storage_passing(const struct run *run)
{
    return run->storage ? run->storage->passing : NULL;
}

/* Makes room in memory for all ranks' states of a shard, and loads them. The caller leaves them, also after an
 * error. */
static enum status bring_shares(struct run *run, uint32_t shard, bool load, struct error *err)
{
    void *memory;
    TRY(host_memory_map("the states of ranks", ranks_bytes(run, shard), &memory, err));
    run->stored_aside[shard] = memory;
    return load ? move_shares(run, shard, false, err) : STATUS_OK;
}

/* Gives the room back; with `save`, writes the states to storage first. */
static enum status leave_shares(struct run *run, uint32_t shard, bool save, struct error *err)
{
    if (!run->stored_aside[shard]) return STATUS_OK;
    const enum status status = save ? move_shares(run, shard, true, err) : STATUS_OK;
    host_memory_unmap(run->stored_aside[shard], ranks_bytes(run, shard));
    run->stored_aside[shard] = NULL;
    return status;
}

/* Gathers a split state, with the frozen weights. */
static void gather_whole(const struct run *run, uint32_t shard, void *whole, uint64_t bytes)
{
    run_shares_copy_frozen(run, shard, whole);
    run_shares_gather(run, shard, whole, bytes);
}

/* Gathers a whole state, or its first `bytes`, from shares on storage. */
static enum status gather_stored(struct run *run, uint32_t shard, void *whole, uint64_t bytes, struct error *err)
{
    struct error ignored = {0};
    const enum status status = bring_shares(run, shard, true, err);
    if (status == STATUS_OK) gather_whole(run, shard, whole, bytes);
    (void)leave_shares(run, shard, false, &ignored);
    return status;
}

/* Scatters a whole state to shares on storage. */
static enum status scatter_stored(struct run *run, uint32_t shard, const void *whole, struct error *err)
{
    const enum status status = bring_shares(run, shard, false, err);
    if (status == STATUS_OK) run_shares_scatter(run, shard, whole);
    const enum status saved = leave_shares(run, shard, status == STATUS_OK, err);
    return status != STATUS_OK ? status : saved;
}

enum status run_storage_fill_table(struct run *run, uint32_t job, struct error *err)
{
    const uint32_t first = run->plan->job_first_shard[job], last = run->plan->job_first_shard[job + 1] - 1;
    const struct chunk_memory *const m = &run->chunks[last].memory;
    struct error ignored = {0};
    if (!parallel_is_set(&run->plan->jobs.jobs[job].parallel) || !m->copies_table || !m->has_head) return STATUS_OK;
    enum status status = bring_shares(run, first, true, err);
    if (status == STATUS_OK) status = bring_shares(run, last, true, err);
    if (status == STATUS_OK) run_shares_fill_table(run, job);
    (void)leave_shares(run, first, false, &ignored);
    const enum status saved = leave_shares(run, last, status == STATUS_OK, err);
    return status != STATUS_OK ? status : saved;
}

/* --- states in memory --------------------------------------------------------------------------- */

/* Finds memory: with stored states, one user at a time has the arena of staged states, if that is large enough and the
 * run's operations do not use it. */
static enum status find_room(struct run *run, uint64_t bytes, bool stored, struct run_states *out, struct error *err)
{
    if (stored && !out->during_run) {
        pthread_mutex_lock(&run->storage->lent);
        out->locked = true;
        out->memory = run->host + run->stage_offset;
        if (bytes <= run->stage_bytes) return STATUS_OK;
    }
    void *memory;
    TRY(host_memory_map("states in memory", bytes, &memory, err));
    out->memory = memory;
    out->mapped_bytes = bytes;
    return STATUS_OK;
}

static enum status borrow(struct run *run, enum run_states_use use, struct run_states *out, struct error *err)
{
    const uint32_t first = out->first, count = out->count;
    uint64_t bytes = 0, at = 0;
    bool stored = false;
    for (uint32_t s = first; s < first + count; s++) {
        if (is_away(run, s)) bytes += lent_bytes(run, s, use);
        stored |= run_is_stored(run, s);
    }
    out->states = alloc_zeroed(count, sizeof *out->states);
    if (!out->states) return error_memory(err, "states in memory", count * sizeof *out->states);
    if (bytes > 0) TRY(find_room(run, bytes, stored, out, err));
    for (uint32_t s = first; s < first + count; s++) {
        out->states[s - first] = run->states[s];
        if (!is_away(run, s)) continue;
        out->states[s - first] = (float *)(void *)(out->memory + at);
        at += lent_bytes(run, s, use);
        if (use == RUN_STATES_FILL) continue;
        const uint64_t wanted = use == RUN_STATES_WHOLE ? state_bytes(run, s)
                                                        : value_bytes(run, s);
        if (run_is_split(run, s) && run_is_stored(run, s))
            TRY(gather_stored(run, s, out->states[s - first], wanted, err));
        else if (run_is_split(run, s)) gather_whole(run, s, out->states[s - first], wanted);
        else TRY(run_storage_load(run, s, out->states[s - first], 0, wanted, err));
    }
    return STATUS_OK;
}

enum status run_states_borrow(struct run *run, uint32_t first, uint32_t count,
                              enum run_states_use use, struct run_states *out, struct error *err)
{
    *out = (struct run_states){.first = first, .count = count};
    return borrow(run, use, out, err);
}

enum status run_states_borrow_during(struct run *run, uint32_t first, uint32_t count, enum run_states_use use,
                                     struct run_states *out, struct error *err)
{
    *out = (struct run_states){.first = first, .count = count, .during_run = true};
    return borrow(run, use, out, err);
}
enum status run_states_give_back(struct run *run, struct run_states *states, bool save,
                                 struct error *err)
{
    enum status status = STATUS_OK;
    for (uint32_t s = states->first; save && s < states->first + states->count; s++) {
        const bool stored = run_is_stored(run, s);
        if (stored && run_is_split(run, s) && status == STATUS_OK)
            status = scatter_stored(run, s, states->states[s - states->first], err);
        else if (!stored && run_is_split(run, s)) run_shares_scatter(run, s, states->states[s - states->first]);
        else if (stored && status == STATUS_OK)
            status = save_state(run, s, states->states[s - states->first], err);
    }
    if (states->mapped_bytes > 0) host_memory_unmap(states->memory, states->mapped_bytes);
    if (states->locked) pthread_mutex_unlock(&run->storage->lent);
    free(states->states);
    *states = (struct run_states){0};
    return status;
}

/* --- opening and closing ------------------------------------------------------------------------ */

static enum status place_states(struct run_storage *storage, uint64_t *bytes, struct error *err)
{
    const struct plan *const plan = storage->run->plan;
    TRY(ARENA_NEW(&storage->run->arena, plan->shard_count, storage->offset, err));
    TRY(ARENA_NEW(&storage->run->arena, plan->shard_count, storage->run->stored_buffers, err));
    TRY(ARENA_NEW(&storage->run->arena, plan->shard_count, storage->run->stored_aside, err));
    const uint32_t arenas = plan->hardware.device_count + hardware_host_count(&plan->hardware);
    TRY(ARENA_NEW(&storage->run->arena, arenas, storage->staged, err));
    TRY(plan_host_staged(plan, storage->staged, err));
    for (uint32_t s = 0; s < plan->shard_count; s++) storage->offset[s] = UINT64_MAX;
    *bytes = 0;
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const struct plan_buffer *const buffer = &plan->buffers[b];
        if (buffer->kind != BUFFER_STORED) continue;
        storage->offset[plan->job_first_shard[buffer->job] + buffer->shard] = *bytes;
        storage->run->stored_buffers[plan->job_first_shard[buffer->job] + buffer->shard] = b;
        const uint64_t ranks = plan_buffer_ranks(plan, buffer);
        if (buffer->bytes > (INT64_MAX - *bytes) / ranks - STORAGE_BLOCK)
            return error_set(err, STATUS_LIMIT, "the stored states are more than a file can hold");
        *bytes += ranks * size_align(buffer->bytes, STORAGE_BLOCK);
        storage->passing_bytes = max_u64(storage->passing_bytes, size_align(buffer->bytes, STORAGE_BLOCK));
    }
    return STATUS_OK;
}

static enum status open_streams(struct run_storage *storage, struct error *err)
{
    struct run *const run = storage->run;
    const uint32_t kinds[] = {[QUEUE_READ] = STREAM_READ, [QUEUE_WRITE] = STREAM_WRITE};
    for (uint32_t queue = QUEUE_READ; queue <= QUEUE_WRITE; queue++) {
        const struct device_options options = {
            .index = hardware_cpu(&run->plan->hardware) + 1 + queue,
            .threads = 1,
            .compute_only = true,
            .poison = run->options->poison,
            .delay_seed = run->options->delay_seed,
        };
        const enum status status = device_open_host(&options, &storage->streams[queue], err);
        if (status != STATUS_OK) return error_add(err, "the streams of storage");
        run->streams[plan_stream(run->plan, 0, kinds[queue])] =
            device_stream(storage->streams[queue], STREAM_COMPUTE);
    }
    return STATUS_OK;
}

enum status run_storage_open(struct run *run, struct error *err)
{
    const uint64_t stored = plan_stored_bytes(run->plan);
    char text[QUANTITY_TEXT_BYTES];
    uint64_t bytes = 0;
    if (stored == 0) return STATUS_OK;
    if (!run->options->storage.folder)
        return error_set(err, STATUS_BAD_INPUT,
                         "the plan has %s of states on storage, and no folder for it is named "
                         "(--storage DIR)", quantity_text((double)stored, DIMENSION_BYTES, text));
    struct run_storage *const storage = alloc_zeroed(1, sizeof *storage);
    if (!storage) return error_memory(err, "storage", sizeof *storage);
    storage->run = run;
    pthread_mutex_init(&storage->aside, NULL);
    pthread_mutex_init(&storage->lent, NULL);
    run->storage = storage; /* closed with the run */
    enum status status = place_states(storage, &bytes, err);
    struct storage_options options = run->options->storage;
    options.bytes = bytes;
    options.queues = QUEUE_COUNT;
    if (status == STATUS_OK) status = storage_open(&options, &storage->file, err);
    if (status == STATUS_OK && run->peers)
        status = host_memory_map("a state on its way to another process", storage->passing_bytes, &storage->passing,
                                 err);
    if (status != STATUS_OK) return status;
    const char *const note = storage_note(storage->file);
    if (note) run_note(run, "storage in '%s': %s", options.folder, note);
    return status;
}

enum status run_storage_start(struct run *run, struct error *err)
{
    return run->storage ? open_streams(run->storage, err) : STATUS_OK;
}

void run_storage_stop(struct run_storage *storage)
{
    if (!storage) return;
    device_stop(storage->streams[QUEUE_READ]);
    device_stop(storage->streams[QUEUE_WRITE]);
}

void run_storage_close(struct run_storage *storage)
{
    if (!storage) return;
    run_storage_stop(storage);
    device_close(storage->streams[QUEUE_READ]);
    device_close(storage->streams[QUEUE_WRITE]);
    storage_close(storage->file);
    host_memory_unmap(storage->passing, storage->passing_bytes);
    pthread_mutex_destroy(&storage->lent);
    pthread_mutex_destroy(&storage->aside);
    free(storage);
}
