/*
 * The thread that copies and writes (run_saver_cut.c says when and what), and the last checkpoints.
 *
 * The state of an ended job, or of every job after a stop, is written from the host. State on storage (run_storage.h)
 * is copied by reading it; after a cut, writes to storage wait for the copy.
 *
 * A cut whose minibatch was never computed is not written. A failure of writing ends only that job's checkpoints.
 */
#include "exec/state/run_saver_state.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/process/clock.h"
#include "base/random.h"
#include "exec/checkpoint/checkpoint.h"
#include "exec/state/run_faults.h"
#include "exec/state/run_peers.h"
#include "exec/state/run_shares.h"
#include "exec/state/run_storage.h"
#include "models/job/evaluation.h"

static const double TEST_PAUSE_MAX_S = 0.02;

/* --- writing ---------------------------------------------------------------------------------- */

struct checkpoint_subject run_checkpoint_subject(const struct run *run, uint32_t job,
                                                 float *const *states)
{
    const struct plan *const plan = run->plan;
    const uint32_t first = plan->job_first_shard[job];
    return (struct checkpoint_subject){
        .job = &plan->jobs.jobs[job],
        .data_tokens = run->sources[job] ? data_tokens(run->sources[job]) : 0,
        .held_out_tokens = run->held_out[job] ? data_tokens(run->held_out[job]) : 0,
        .tables = &run->state_tables[first],
        .shard_count = plan_job_shards(plan, job),
        .states = states,
        .knows_frozen = plan->jobs.jobs[job].network.trained != NULL,
        .frozen = atomic_load(&run->jobs[job].frozen),
    };
}

/* These no longer change. */
static uint64_t evaluations_until(struct run *run, uint32_t job, uint64_t step)
{
    const struct run_job_result *const result = &run->result->jobs[job];
    pthread_mutex_lock(&run->lock);
    uint64_t count = result->evaluation_count;
    while (count > 0 && result->evaluations[count - 1].step > step) count--;
    pthread_mutex_unlock(&run->lock);
    return count;
}

static void give_up(struct run_saver *saver, uint32_t job, const struct error *why)
{
    struct run *const run = saver->run;
    struct run_job_result *const result = &run->result->jobs[job];
    struct error ignored = {0};
    static const char no_memory[] = "no memory left";
    pthread_mutex_lock(&saver->lock);
    saver->jobs[job].gave_up = true;
    pthread_mutex_unlock(&saver->lock);
    pthread_mutex_lock(&run->lock); /* the arena is used by one thread at a time */
    if (arena_string(&run->result->arena, why->text, &result->checkpoint_failure, &ignored) !=
        STATUS_OK)
        result->checkpoint_failure = no_memory;
    pthread_mutex_unlock(&run->lock);
    run_note(run, "job '%s' goes on without checkpoints: %s", run->plan->jobs.jobs[job].name,
             why->text);
}

/* `minibatch` of this run are done. */
static void write_checkpoint(struct run_saver *saver, uint32_t job, uint64_t minibatch,
                             float *const *states)
{
    struct run *const run = saver->run;
    const uint64_t step = run->plan->jobs.jobs[job].first_minibatch + minibatch;
    const struct checkpoint_origin origin = {
        .backend = run->plan->hardware.backend, .libraries = saver->libraries, .threads = run->threads};
    const struct checkpoint_subject subject =
        run_checkpoint_subject(run, job, states + run->plan->job_first_shard[job]);
    struct run_job_result *const result = &run->result->jobs[job];
    const struct checkpoint_history history = {.losses = result->losses,
                                               .evaluations = result->evaluations,
                                               .evaluation_count = evaluations_until(run, job, step)};
    struct error err = {0};
    if (checkpoint_write(saver->folder, &subject, &origin, step, &history, &err) == STATUS_OK) {
        result->checkpoint = step;
        return;
    }
    give_up(saver, job, &err);
}

/* Pauses as streams do in tests: a missing wait then shows as wrong numbers. */
static void pause_at_random(const struct run_saver *saver, uint64_t number)
{
    const uint64_t seed = saver->run->options->delay_seed;
    const struct timespec pause = {.tv_nsec = (long)(TEST_PAUSE_MAX_S * 1e9 * random_unit(seed, number))};
    if (seed > 0) nanosleep(&pause, NULL);
}

/* Returns the bytes of a shard that checkpoints have: frozen weights stay on the host. */
static uint64_t saved_bytes(const struct run *run, uint32_t shard)
{
    return state_trained_bytes(&run->tables[shard].state.layout);
}

/* Copies state. `covered`: shards of the plan to leave out; may be NULL. False: the state cannot be read. */
static bool copy_state(struct run_saver *saver, uint32_t job, const bool *covered)
{
    struct run *const run = saver->run;
    const struct plan *const plan = run->plan;
    for (uint32_t s = plan->job_first_shard[job]; s < plan->job_first_shard[job + 1]; s++) {
        const uint64_t frozen = run->tables[s].state.layout.parts[STATE_FROZEN].bytes;
        const size_t bytes = saved_bytes(run, s);
        char *const to = (char *)saver->copies[s] + frozen;
        struct error why = {0};
        if (covered && covered[s]) continue;
        if (covered && run->peers && !run_peers_has_values(run, run->peers->own, s)) continue;
        if (run_is_split(run, s)) {
            run_shares_gather(run, s, saver->copies[s], run->tables[s].state.layout.bytes);
        } else if (!run_is_stored(run, s)) {
            memcpy(to, (const char *)run->states[s] + frozen, bytes);
        } else if (run_storage_load(run, s, to, frozen, bytes, &why) != STATUS_OK) {
            give_up(saver, job, &why);
            return false;
        }
    }
    return true;
}

/* Reads the state's home if that is memory. */
static void write_final(struct run_saver *saver, uint32_t job, uint64_t minibatch)
{
    struct run *const run = saver->run;
    bool away = false;
    for (uint32_t s = run->plan->job_first_shard[job]; s < run->plan->job_first_shard[job + 1]; s++)
        away |= run_is_stored(run, s) || run_is_split(run, s);
    if (!away)
        write_checkpoint(saver, job, minibatch, run->states);
    else if (copy_state(saver, job, NULL))
        write_checkpoint(saver, job, minibatch, saver->copies);
}

/* --- the thread, under the lock but for the work ------------------------------------------------ */

static void serve_cut(struct run_saver *saver)
{
    const uint32_t job = saver->cut_job;
    const uint64_t minibatch = saver->cut_minibatch;
    const bool dropped = saver->dropped;
    if (saver->phase == SAVER_REACHED) {
        pthread_mutex_unlock(&saver->lock);
        pause_at_random(saver, saver->cut_number);
        const bool made = !saver->run->peers || saver_agrees(saver);
        const bool copied = !dropped && made && copy_state(saver, job, saver->covered);
        pthread_mutex_lock(&saver->lock);
        saver->dropped = !copied;
        saver->copied_number = saver->cut_number;
        saver->phase = SAVER_COPIED;
    } else {
        /* A lost device's state did not arrive. */
        const bool among_ranks = saver->run->peers != NULL;
        bool whole = !dropped && (among_ranks || run_job_is_sound(saver->run, job));
        saver->phase = SAVER_WRITING;
        pthread_mutex_unlock(&saver->lock);
        if (whole && among_ranks) whole = saver_brings_together(saver, job);
        if (whole && saver->folder) write_checkpoint(saver, job, minibatch, saver->copies);
        pthread_mutex_lock(&saver->lock);
        saver->phase = SAVER_IDLE;
        if (!saver->cut_if_best) saver->planned = false;
    }
    pthread_cond_broadcast(&saver->changed);
}

static bool cut_can_be_served(const struct run_saver *saver)
{
    return saver->phase == SAVER_REACHED || (saver->phase == SAVER_COPIED && saver->to_bring == 0);
}

/* Returns the next ended job whose state is on the host, or PLAN_NONE. A pending cut goes first, since streams wait
 * for its copy. */
static uint32_t final_to_serve(const struct run_saver *saver)
{
    if (saver->phase != SAVER_IDLE) return PLAN_NONE;
    for (uint32_t j = 0; saver->finals > 0 && j < saver->run->plan->jobs.count; j++)
        if (saver->jobs[j].final_reached) return j;
    return PLAN_NONE;
}

static void serve_final(struct run_saver *saver, uint32_t job)
{
    const uint64_t minibatch = saver->run->plan->jobs.jobs[job].minibatches;
    const bool gave_up = saver->jobs[job].gave_up;
    saver->jobs[job].final_reached = false;
    saver->phase = SAVER_WRITING;
    pthread_mutex_unlock(&saver->lock);
    if (!gave_up) write_final(saver, job, minibatch);
    pthread_mutex_lock(&saver->lock);
    saver->phase = SAVER_IDLE;
    saver->jobs[job].final_over = true;
    saver->finals--;
    pthread_cond_broadcast(&saver->changed);
}

static void *saver_main(void *pointer)
{
    struct run_saver *const saver = pointer;
    pthread_mutex_lock(&saver->lock);
    while (!saver->quit) {
        const uint32_t final = final_to_serve(saver);
        if (cut_can_be_served(saver))
            serve_cut(saver);
        else if (final != PLAN_NONE)
            serve_final(saver, final);
        else
            pthread_cond_wait(&saver->changed, &saver->lock);
    }
    pthread_mutex_unlock(&saver->lock);
    return NULL;
}

/* --- before and after ---------------------------------------------------------------------------- */

/* Returns the bytes of the largest share that goes to another process. */
static uint64_t share_bytes(const struct run *run)
{
    uint64_t most = 0;
    for (uint32_t b = 0; run->peers && b < run->plan->buffer_count; b++) {
        const struct plan_buffer *const buffer = &run->plan->buffers[b];
        const bool is_share = buffer->kind == BUFFER_STATE && !buffer->on_device && buffer->shard != PLAN_NONE &&
                              run_is_split(run, run->plan->job_first_shard[buffer->job] + buffer->shard);
        if (is_share) most = max_u64(most, buffer->bytes);
    }
    return most;
}

/* Returns the bytes of the largest job's states. */
static uint64_t copy_bytes(const struct run *run)
{
    const struct plan *const plan = run->plan;
    uint64_t most = 0;
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        uint64_t bytes = 0;
        for (uint32_t s = plan->job_first_shard[j]; s < plan->job_first_shard[j + 1]; s++)
            bytes += saved_bytes(run, s);
        if (bytes > most) most = bytes;
    }
    return most;
}

uint64_t run_saver_bytes(const struct run *run)
{
    return size_align(copy_bytes(run), RUN_HOST_ALIGNMENT) + share_bytes(run);
}

static void place_copies(struct run_saver *saver)
{
    const struct run *const run = saver->run;
    const struct plan *const plan = run->plan;
    saver->share = run->host + run->snapshot_offset + size_align(copy_bytes(run), RUN_HOST_ALIGNMENT);
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        char *at = run->host + run->snapshot_offset;
        for (uint32_t s = plan->job_first_shard[j]; s < plan->job_first_shard[j + 1]; s++) {
            /* as if the frozen weights, which nobody reads, were before it */
            saver->copies[s] = (float *)(void *)(at - run->tables[s].state.layout.parts[STATE_FROZEN].bytes);
            at += saved_bytes(run, s);
        }
    }
}

static enum status start_thread(struct run_saver *saver, struct error *err)
{
    sigset_t all, before;
    sigfillset(&all); /* signals are the main thread's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&saver->thread, NULL, saver_main, saver);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return error_set(err, STATUS_DEVICE, "cannot start a thread for checkpoints: %s",
                         strerror(failed));
    saver->started = true;
    pthread_setname_np(saver->thread, "checkpoints");
    return STATUS_OK;
}

enum status run_saver_create(struct run *run, const struct run_device_state *states,
                             struct run_saver **out, struct error *err)
{
    const struct run_checkpoints *const options = run->options->checkpoints;
    if (!options) return STATUS_OK;
    const struct plan *const plan = run->plan;
    struct run_saver *const saver = alloc_zeroed(1, sizeof *saver);
    if (!saver) return error_memory(err, "checkpoints", sizeof *saver);
    saver->run = run;
    saver->options = options;
    saver->states = states;
    pthread_mutex_init(&saver->lock, NULL);
    pthread_cond_init(&saver->changed, NULL);
    const struct {
        size_t count, size;
        void *out; /* the address of a pointer */
    } arrays[] = {
        {plan->shard_count, sizeof *saver->copies, &saver->copies},
        {(size_t)plan->jobs.count * plan_stream_count(plan), sizeof *saver->wrote, &saver->wrote},
        {plan->hardware.device_count, sizeof *saver->brought, &saver->brought},
        {plan->shard_count, sizeof *saver->covered, &saver->covered},
        {plan->jobs.count, sizeof *saver->jobs, &saver->jobs},
        {run->peers ? run->peers->first_home[plan->shard_count] : 0, sizeof *saver->parts, &saver->parts},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays && status == STATUS_OK; i++)
        status = arena_array(&run->arena, arrays[i].count, arrays[i].size, arrays[i].out, err);
    if (status == STATUS_OK && (!run->peers || run->peers->own == 0))
        status = checkpoint_folder_open(run_checkpoint_disk(run), options->folder,
                                        options->keep, &saver->folder, err);
    if (status == STATUS_OK) status = start_thread(saver, err);
    if (status != STATUS_OK) {
        run_saver_destroy(saver);
        return status;
    }
    /* the name in "oneDNN 2.6.3 (avx512_core), 2 threads, ...": measured values differ */
    snprintf(saver->libraries, sizeof saver->libraries, "%.*s",
             (int)strcspn(run->result->libraries, ","), run->result->libraries);
    place_copies(saver);
    for (uint32_t j = 0; j < plan->jobs.count; j++) saver->jobs[j].at_s = clock_s();
    for (uint32_t j = 0; j < plan->jobs.count; j++) saver->jobs[j].gave_up = job_makes_outputs(&plan->jobs.jobs[j]);
    *out = saver;
    return STATUS_OK;
}

/* Does nothing if the job has such a checkpoint, or lost a part of its state. */
static void write_last(struct run_saver *saver, uint32_t job)
{
    const struct run *const run = saver->run;
    const struct run_progress *const progress = &run->jobs[job];
    const uint64_t first = run->plan->jobs.jobs[job].first_minibatch;
    if (!saver->folder) return; /* rank 0 has it */
    if (progress->losses > 0 && !parallel_flushes_after(&run->plan->jobs.jobs[job], progress->losses - 1)) return;
    if (progress->losses > 0 && !progress->diverged && !progress->damaged && !saver->jobs[job].gave_up &&
        run->result->jobs[job].checkpoint < first + progress->losses)
        write_final(saver, job, progress->losses);
}

void run_saver_close_job(struct run_saver *saver, uint32_t job)
{
    if (!saver) return;
    pthread_mutex_lock(&saver->lock);
    while (!saver->quit && ((saver->phase != SAVER_IDLE && saver->cut_job == job) ||
                            (saver->jobs[job].final_asked && !saver->jobs[job].final_over)))
        pthread_cond_wait(&saver->changed, &saver->lock);
    pthread_mutex_unlock(&saver->lock);
    write_last(saver, job);
}

void run_saver_await_copy(struct run_saver *saver)
{
    if (!saver) return;
    pthread_mutex_lock(&saver->lock);
    while (saver->copied_number < saver->cut_number && !saver->quit)
        pthread_cond_wait(&saver->changed, &saver->lock);
    pthread_mutex_unlock(&saver->lock);
}

void run_saver_finish(struct run_saver *saver)
{
    if (!saver) return;
    struct run *const run = saver->run;
    pthread_mutex_lock(&saver->lock);
    while (saver->phase != SAVER_IDLE || saver->finals > 0)
        pthread_cond_wait(&saver->changed, &saver->lock);
    pthread_mutex_unlock(&saver->lock);
    for (uint32_t j = 0; j < run->plan->jobs.count; j++)
        if (run_job_is_open(run, j)) write_last(saver, j);
}

void run_saver_stop(struct run_saver *saver)
{
    if (!saver || !saver->started) return;
    pthread_mutex_lock(&saver->lock);
    saver->quit = true;
    pthread_cond_broadcast(&saver->changed);
    pthread_mutex_unlock(&saver->lock);
    pthread_join(saver->thread, NULL);
    saver->started = false;
}

void run_saver_destroy(struct run_saver *saver)
{
    if (!saver) return;
    run_saver_stop(saver);
    checkpoint_folder_close(saver->folder);
    pthread_cond_destroy(&saver->changed);
    pthread_mutex_destroy(&saver->lock);
    free(saver);
}
