/*
 * A consistent copy without a pause.
 *
 * Between a job's minibatches k and k + 1, in plan order, all of its state is of one step: a *cut*. No operation has
 * to stop there. Operations before it that write state are waited for; those after it wait for the copy. The first is
 * the next backward pass, a whole forward pass away: the copy (some 10 GB/s) is done by then, unless batches are tiny.
 *
 *     D2H stream, at the cut:  wait for the last operation on each stream that wrote the job's state
 *                              or its loss; call: "reached"
 *     our thread:              copies the newest state on the host, shard by shard; "copied"
 *     D2H of devices that hold newer state (resident jobs):
 *                              call: wait for "copied"; copy the newer state over it; call: "brought"
 *     any stream, later:       before an operation that writes the job's state on the host, a
 *                              call waits for "copied"; on a device, a wait for the copies of newer state
 *     our thread:              writes the file from the copy
 *
 * There is room for one copy, of the largest job. A checkpoint that becomes due meanwhile is taken at the next
 * minibatch; of several waiting jobs the longest goes first. If the previous cut is not reached yet, the loop lets
 * some enqueued work end first.
 *
 * The state of an ended job, or of every job after a stop, is written from the host. State on storage (run_storage.h)
 * is copied by reading it; after a cut, writes to storage wait for the copy.
 *
 * If an evaluation may be the best so far, the loop waits for the room. When the cut is reached it is known whether it
 * is the best; if not, and no other checkpoint was due, nothing is copied.
 *
 * A cut whose minibatch was never computed is not written. A failure of writing ends only that job's checkpoints.
 */
#include "exec/state/run_saver.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "base/random.h"
#include "exec/checkpoint/checkpoint.h"
#include "exec/state/run_faults.h"
#include "exec/state/run_files.h"
#include "exec/state/run_storage.h"
#include "models/job/evaluation.h"

static const double TEST_PAUSE_MAX_S = 0.02;

enum phase {
    PHASE_IDLE,
    PHASE_ENQUEUED, /* a cut is on its way through the streams */
    PHASE_REACHED,  /* our thread is to copy */
    PHASE_COPIED,   /* newer state on devices may still be copied over it */
    PHASE_WRITING
};

/* Per job. */
struct saved {
    uint64_t minibatch;  /* of this run, in the newest checkpoint or cut */
    double at_s;         /* when that was */
    uint64_t due_since;  /* a counter; 0: it is not due */
    bool final_asked, final_reached, final_over;
    bool gave_up;
};

struct run_saver {
    struct run *run;
    const struct run_checkpoints *options;
    const struct run_device_state *states;
    struct checkpoint_folder *folder;
    char libraries[128];
    float **copies;          /* per shard: its place in the copy */
    uint64_t *wrote;         /* [job][stream]: event after the last write of state or loss */
    uint64_t *brought;       /* [device]: event after the last cut's copies of newer state */
    bool *covered;           /* per shard: completely newer on a device at the last cut */
    struct saved *jobs;
    uint64_t due_counter;

    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum phase phase;
    uint32_t cut_job;
    uint64_t cut_minibatch;
    bool cut_if_best;        /* for the best evaluation only */
    uint64_t cut_number, copied_number; /* the last cut; the last that was copied */
    uint32_t to_bring;       /* devices whose newer state is still awaited */
    bool dropped;            /* the cut's minibatch was left out */
    uint32_t finals;         /* asked for and not yet done */
    bool quit;
};

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
        .shard_count = plan->job_first_shard[job + 1] - first,
        .states = states,
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

/* Copies state. `covered`: shards of the plan to leave out; may be NULL. False: the state cannot be read. */
static bool copy_state(struct run_saver *saver, uint32_t job, const bool *covered)
{
    struct run *const run = saver->run;
    const struct plan *const plan = run->plan;
    for (uint32_t s = plan->job_first_shard[job]; s < plan->job_first_shard[job + 1]; s++) {
        const size_t bytes = run->tables[s].state.layout.bytes;
        struct error why = {0};
        if (covered && covered[s]) continue;
        if (!run_is_stored(run, s)) {
            memcpy(saver->copies[s], run->states[s], bytes);
        } else if (run_storage_load(run, s, saver->copies[s], bytes, &why) != STATUS_OK) {
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
    bool stored = false;
    for (uint32_t s = run->plan->job_first_shard[job]; s < run->plan->job_first_shard[job + 1]; s++)
        stored |= run_is_stored(run, s);
    if (!stored)
        write_checkpoint(saver, job, minibatch, run->states);
    else if (copy_state(saver, job, NULL))
        write_checkpoint(saver, job, minibatch, saver->copies);
}

/* --- our thread, under the lock but for the work ------------------------------------------------ */

static void serve_cut(struct run_saver *saver)
{
    const uint32_t job = saver->cut_job;
    const uint64_t minibatch = saver->cut_minibatch;
    const bool dropped = saver->dropped;
    if (saver->phase == PHASE_REACHED) {
        pthread_mutex_unlock(&saver->lock);
        pause_at_random(saver, saver->cut_number);
        const bool copied = !dropped && copy_state(saver, job, saver->covered);
        pthread_mutex_lock(&saver->lock);
        saver->dropped = !copied;
        saver->copied_number = saver->cut_number;
        saver->phase = PHASE_COPIED;
    } else {
        /* A lost device's state did not arrive. */
        const bool whole = !dropped && run_job_is_sound(saver->run, job);
        saver->phase = PHASE_WRITING;
        pthread_mutex_unlock(&saver->lock);
        if (whole) write_checkpoint(saver, job, minibatch, saver->copies);
        pthread_mutex_lock(&saver->lock);
        saver->phase = PHASE_IDLE;
    }
    pthread_cond_broadcast(&saver->changed);
}

static bool cut_can_be_served(const struct run_saver *saver)
{
    return saver->phase == PHASE_REACHED || (saver->phase == PHASE_COPIED && saver->to_bring == 0);
}

/* Returns the next ended job whose state is on the host, or PLAN_NONE. A pending cut goes first, since streams wait
 * for its copy. */
static uint32_t final_to_serve(const struct run_saver *saver)
{
    if (saver->phase != PHASE_IDLE) return PLAN_NONE;
    for (uint32_t j = 0; saver->finals > 0 && j < saver->run->plan->jobs.count; j++)
        if (saver->jobs[j].final_reached) return j;
    return PLAN_NONE;
}

static void serve_final(struct run_saver *saver, uint32_t job)
{
    const uint64_t minibatch = saver->run->plan->jobs.jobs[job].minibatches;
    const bool gave_up = saver->jobs[job].gave_up;
    saver->jobs[job].final_reached = false;
    saver->phase = PHASE_WRITING;
    pthread_mutex_unlock(&saver->lock);
    if (!gave_up) write_final(saver, job, minibatch);
    pthread_mutex_lock(&saver->lock);
    saver->phase = PHASE_IDLE;
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

/* --- on the streams' threads -------------------------------------------------------------------- */

struct saver_call {
    struct run_saver *saver;
    uint64_t number; /* of the cut */
    uint32_t job;
    uint64_t minibatch;
};

/* Returns true if the minibatch was computed and the job is sound. (A failed evaluation is no reason to lose the
 * training.) */
static bool is_there(struct run *run, uint32_t job, uint64_t minibatch)
{
    const struct run_progress *const progress = &run->jobs[job];
    pthread_mutex_lock(&run->lock);
    const bool there =
        progress->losses >= minibatch && !progress->diverged && !progress->damaged;
    pthread_mutex_unlock(&run->lock);
    return there && run_job_is_sound(run, job);
}

/* Returns true if the evaluation after this minibatch is the best so far; there is no later one before the copy is
 * made. */
static bool is_best(struct run *run, uint32_t job, uint64_t minibatch)
{
    pthread_mutex_lock(&run->lock);
    const bool best = run->jobs[job].improved == minibatch;
    pthread_mutex_unlock(&run->lock);
    return best;
}

static void call_reached(void *argument)
{
    const struct saver_call *const call = argument;
    struct run_saver *const saver = call->saver;
    const bool there = is_there(saver->run, call->job, call->minibatch);
    const bool best = is_best(saver->run, call->job, call->minibatch);
    pthread_mutex_lock(&saver->lock);
    saver->dropped = !there || (saver->cut_if_best && !best);
    saver->phase = PHASE_REACHED;
    pthread_cond_broadcast(&saver->changed);
    pthread_mutex_unlock(&saver->lock);
}

static void call_copied(void *argument)
{
    const struct saver_call *const call = argument;
    struct run_saver *const saver = call->saver;
    pthread_mutex_lock(&saver->lock);
    while (saver->copied_number < call->number && !saver->quit)
        pthread_cond_wait(&saver->changed, &saver->lock);
    pthread_mutex_unlock(&saver->lock);
}

static void call_brought(void *argument)
{
    const struct saver_call *const call = argument;
    struct run_saver *const saver = call->saver;
    pthread_mutex_lock(&saver->lock);
    saver->to_bring--;
    pthread_cond_broadcast(&saver->changed);
    pthread_mutex_unlock(&saver->lock);
}

static void call_ended(void *argument)
{
    const struct saver_call *const call = argument;
    struct run_saver *const saver = call->saver;
    const bool there = is_there(saver->run, call->job, call->minibatch);
    pthread_mutex_lock(&saver->lock);
    saver->jobs[call->job].final_reached = there;
    if (!there) saver->finals--;
    saver->jobs[call->job].final_over = !there;
    pthread_cond_broadcast(&saver->changed);
    pthread_mutex_unlock(&saver->lock);
}

/* --- cuts, on the enqueueing thread -------------------------------------------------------------- */

static struct device_stream *d2h_of(const struct run_saver *saver, uint32_t device)
{
    return saver->run->streams[plan_stream(saver->run->plan, device, STREAM_D2H)];
}

/* Waits for writers of the job's state or loss so far. */
static void wait_for_writers(struct run_saver *saver, struct device_stream *stream, uint32_t job)
{
    const struct plan *const plan = saver->run->plan;
    const uint64_t *const wrote = &saver->wrote[(size_t)job * plan_stream_count(plan)];
    for (uint32_t s = 0; s < plan_stream_count(plan); s++) {
        struct device_stream *const other = saver->run->streams[s];
        if (wrote[s] > 0 && other != stream) device_wait(stream, other, wrote[s]);
    }
}

static bool is_newer(const struct run_saver *saver, uint32_t device, uint32_t buffer, uint32_t job)
{
    const struct plan *const plan = saver->run->plan;
    return plan->buffers[buffer].job == job &&
           saver->states[(size_t)device * plan->buffer_count + buffer].changed_bytes > 0;
}

/* Copies over the state on the host. */
static void bring_from(struct run_saver *saver, uint32_t device, const struct saver_call *call)
{
    const struct plan *const plan = saver->run->plan;
    struct device_stream *const stream = d2h_of(saver, device);
    const struct device_guard guard = {.limit = &saver->run->jobs[call->job].limit,
                                       .value = call->minibatch - 1};
    wait_for_writers(saver, stream, call->job);
    device_call(stream, call_copied, call, sizeof *call, NULL);
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        if (!is_newer(saver, device, b, call->job)) continue;
        const uint32_t shard = plan->job_first_shard[call->job] + plan->buffers[b].shard;
        run_bring_state(saver->run, device, b,
                        &saver->states[(size_t)device * plan->buffer_count + b],
                        (char *)saver->copies[shard], guard);
    }
    device_call(stream, call_brought, call, sizeof *call, NULL);
    saver->brought[device] = device_record(stream);
}

static bool device_has_newer(const struct run_saver *saver, uint32_t device, uint32_t job)
{
    bool any = false;
    for (uint32_t b = 0; b < saver->run->plan->buffer_count && !any; b++)
        any = is_newer(saver, device, b, job);
    return any;
}

static void find_covered(struct run_saver *saver, uint32_t job)
{
    const struct plan *const plan = saver->run->plan;
    const uint32_t first = plan->job_first_shard[job];
    memset(&saver->covered[first], 0, plan->job_first_shard[job + 1] - first);
    for (uint32_t d = 0; d < plan->hardware.device_count; d++)
        for (uint32_t b = 0; b < plan->buffer_count; b++) {
            const struct run_device_state *const state = &saver->states[(size_t)d * plan->buffer_count + b];
            if (is_newer(saver, d, b, job) && state->row_count == 0)
                saver->covered[first + plan->buffers[b].shard] = true;
        }
}

static void cut(struct run_saver *saver, const struct plan_walk_op *op, uint64_t minibatch,
                bool if_best)
{
    const struct plan *const plan = saver->run->plan;
    const uint32_t job = op->unit->job, device_count = plan->hardware.device_count;
    uint32_t to_bring = 0;
    for (uint32_t d = 0; d < device_count; d++) to_bring += device_has_newer(saver, d, job);
    find_covered(saver, job);

    pthread_mutex_lock(&saver->lock);
    assert(saver->phase == PHASE_IDLE);
    saver->phase = PHASE_ENQUEUED;
    saver->cut_job = job;
    saver->cut_minibatch = minibatch;
    saver->cut_if_best = if_best;
    saver->cut_number++;
    saver->to_bring = to_bring;
    pthread_mutex_unlock(&saver->lock);

    const struct saver_call call = {
        .saver = saver, .number = saver->cut_number, .job = job, .minibatch = minibatch};
    struct device_stream *const stream = d2h_of(saver, op->device);
    wait_for_writers(saver, stream, job);
    device_call(stream, call_reached, &call, sizeof call, NULL);
    for (uint32_t d = 0; d < device_count; d++) {
        saver->brought[d] = 0;
        if (device_has_newer(saver, d, job)) bring_from(saver, d, &call);
    }
    if (if_best) return; /* other checkpoints' times do not change */
    saver->jobs[job].minibatch = minibatch;
    saver->jobs[job].at_s = clock_s();
    saver->jobs[job].due_since = 0;
}

/* --- when ----------------------------------------------------------------------------------------- */

static bool ends_minibatch(const struct plan_walk_op *op)
{
    return op->unit->ends_minibatch && op->op_index + 1 == op->unit->op_count;
}

static bool is_due(const struct run_saver *saver, uint32_t job, uint64_t minibatch)
{
    const struct saved *const saved = &saver->jobs[job];
    const struct job *const about = &saver->run->plan->jobs.jobs[job];
    const uint64_t every = saver->options->every_steps, first = about->first_minibatch;
    if (minibatch >= about->minibatches || minibatch <= saved->minibatch) return false;
    if (every > 0 && (first + minibatch) / every > (first + saved->minibatch) / every) return true;
    return saver->options->every_s > 0 && clock_s() - saved->at_s >= saver->options->every_s;
}

/* Returns true when this minibatch, not the last one, may be the best so far. */
static bool is_evaluated(const struct run_saver *saver, uint32_t job, uint64_t minibatch)
{
    const struct job *const about = &saver->run->plan->jobs.jobs[job];
    return minibatch < about->minibatches && evaluation_follows(about, minibatch - 1);
}

/* Returns true if the other job has waited longer and will still reach the end of a minibatch. */
static bool lets_another_go_first(struct run_saver *saver, uint32_t job)
{
    const uint64_t since = saver->jobs[job].due_since;
    bool lets = false;
    pthread_mutex_lock(&saver->lock);
    for (uint32_t j = 0; j < saver->run->plan->jobs.count && !lets; j++) {
        const struct saved *const other = &saver->jobs[j];
        lets = other->due_since > 0 && other->due_since < since && !other->final_asked &&
               !other->gave_up && atomic_load(&saver->run->jobs[j].limit) == UINT64_MAX;
    }
    pthread_mutex_unlock(&saver->lock);
    return lets;
}

bool run_saver_is_ahead(const struct run_saver *saver, const struct plan_walk_op *op, uint64_t walked)
{
    const uint32_t job = op->unit->job;
    if (!saver || !ends_minibatch(op)) return false;
    if (!is_due(saver, job, walked) && !is_evaluated(saver, job, walked)) return false;
    struct run_saver *const changing = (struct run_saver *)(uintptr_t)saver;
    pthread_mutex_lock(&changing->lock);
    const bool ahead = saver->phase == PHASE_ENQUEUED || saver->phase == PHASE_REACHED;
    pthread_mutex_unlock(&changing->lock);
    return ahead;
}

/* Returns true if there is room for a copy. Waits for a copy in progress and, with `must`, for the disk; then there
 * is room unless the job gave up. */
static bool is_free(struct run_saver *saver, uint32_t job, bool must)
{
    pthread_mutex_lock(&saver->lock);
    while ((saver->phase != PHASE_IDLE && saver->phase != PHASE_WRITING) ||
           (must && !saver->jobs[job].gave_up && (saver->phase != PHASE_IDLE || saver->finals > 0)))
        pthread_cond_wait(&saver->changed, &saver->lock);
    const bool gave_up = saver->jobs[job].gave_up;
    const bool free = saver->phase == PHASE_IDLE && saver->finals == 0 && !gave_up;
    pthread_mutex_unlock(&saver->lock);
    return free;
}

static void consider_cut(struct run_saver *saver, const struct plan_walk_op *op, uint64_t walked)
{
    const uint32_t job = op->unit->job;
    struct saved *const saved = &saver->jobs[job];
    const bool due = is_due(saver, job, walked), evaluated = is_evaluated(saver, job, walked);
    const bool must = evaluated || saver->options->each;
    if (!due && !evaluated) return;
    if (due && saved->due_since == 0) saved->due_since = ++saver->due_counter;
    if (!is_free(saver, job, must) || (!must && lets_another_go_first(saver, job))) return;
    cut(saver, op, walked, !due);
}

/* Returns true if the operation leaves state on its way to storage. */
static bool goes_on_to_storage(const struct run_saver *saver, const struct plan_walk_op *op)
{
    return op->op->stream == STREAM_D2H &&
           saver->run->plan->buffers[op->uses[1].buffer].kind == BUFFER_STAGED;
}

/* Follows a job's last operation, when no device has newer state. */
static void consider_final(struct run_saver *saver, const struct plan_walk_op *op)
{
    const uint32_t job = op->unit->job;
    if (goes_on_to_storage(saver, op)) return;
    for (uint32_t d = 0; d < saver->run->plan->hardware.device_count; d++)
        if (device_has_newer(saver, d, job)) return;
    pthread_mutex_lock(&saver->lock);
    saver->jobs[job].final_asked = true;
    saver->finals++;
    pthread_mutex_unlock(&saver->lock);
    const struct saver_call call = {
        .saver = saver, .job = job, .minibatch = saver->run->plan->jobs.jobs[job].minibatches};
    struct device_stream *const stream = d2h_of(saver, op->device);
    wait_for_writers(saver, stream, job);
    device_call(stream, call_ended, &call, sizeof call, NULL);
}

/* --- around an operation ---------------------------------------------------------------------------- */

void run_saver_before(struct run_saver *saver, const struct plan_walk_op *op)
{
    if (!saver || saver->cut_number == 0 || op->unit->job != saver->cut_job) return;
    struct device_stream *const stream = saver->run->streams[op->stream];
    bool on_host = false, on_device = false;
    for (uint32_t i = 0; i < op->use_count; i++) {
        const struct plan_place_use *const use = &op->uses[i];
        const uint32_t kind = saver->run->plan->buffers[use->buffer].kind;
        const bool writes = (use->flags & ACCESS_WRITE) != 0 &&
                            (kind == BUFFER_STATE || kind == BUFFER_STORED);
        on_host |= writes && !plan_use_on_device(use);
        on_device |= writes && plan_use_on_device(use);
    }
    const uint64_t brought = saver->brought[op->device];
    if (on_device && brought > 0) device_wait(stream, d2h_of(saver, op->device), brought);
    if (!on_host) return;
    pthread_mutex_lock(&saver->lock);
    const bool copied = saver->copied_number == saver->cut_number;
    pthread_mutex_unlock(&saver->lock);
    const struct saver_call call = {.saver = saver, .number = saver->cut_number};
    if (!copied) device_call(stream, call_copied, &call, sizeof call, NULL);
}

void run_saver_after(struct run_saver *saver, const struct plan_walk_op *op, uint64_t walked)
{
    if (!saver) return;
    struct run *const run = saver->run;
    const uint32_t job = op->unit->job;
    for (uint32_t i = 0; i < op->use_count; i++) {
        const uint32_t kind = run->plan->buffers[op->uses[i].buffer].kind;
        if ((op->uses[i].flags & ACCESS_WRITE) &&
            (kind == BUFFER_STATE || kind == BUFFER_STORED || kind == BUFFER_LOSS))
            saver->wrote[(size_t)job * plan_stream_count(run->plan) + op->stream] =
                device_record(run->streams[op->stream]);
    }
    if (atomic_load(&run->jobs[job].limit) != UINT64_MAX) return; /* it ends early: see finish */
    if (walked == run->plan->jobs.jobs[job].minibatches) {
        if (!saver->jobs[job].final_asked) consider_final(saver, op);
    } else if (ends_minibatch(op)) {
        consider_cut(saver, op, walked);
    }
}

/* --- before and after ---------------------------------------------------------------------------- */

uint64_t run_saver_bytes(const struct run *run)
{
    const struct plan *const plan = run->plan;
    uint64_t most = 0;
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        uint64_t bytes = 0;
        for (uint32_t s = plan->job_first_shard[j]; s < plan->job_first_shard[j + 1]; s++)
            bytes += run->tables[s].state.layout.bytes;
        if (bytes > most) most = bytes;
    }
    return most;
}

static void place_copies(struct run_saver *saver)
{
    const struct run *const run = saver->run;
    const struct plan *const plan = run->plan;
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        char *at = run->host + run->snapshot_offset;
        for (uint32_t s = plan->job_first_shard[j]; s < plan->job_first_shard[j + 1]; s++) {
            saver->copies[s] = (float *)(void *)at;
            at += run->tables[s].state.layout.bytes;
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
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays && status == STATUS_OK; i++)
        status = arena_array(&run->arena, arrays[i].count, arrays[i].size, arrays[i].out, err);
    if (status == STATUS_OK)
        status = checkpoint_folder_open(options->disk ? options->disk : &disk_real, options->folder,
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
    *out = saver;
    return STATUS_OK;
}

/* Does nothing if the job has such a checkpoint, or lost a part of its state. */
static void write_last(struct run_saver *saver, uint32_t job)
{
    const struct run *const run = saver->run;
    const struct run_progress *const progress = &run->jobs[job];
    const uint64_t first = run->plan->jobs.jobs[job].first_minibatch;
    if (progress->losses > 0 && !progress->diverged && !progress->damaged && !saver->jobs[job].gave_up &&
        run->result->jobs[job].checkpoint < first + progress->losses)
        write_final(saver, job, progress->losses);
}

void run_saver_close_job(struct run_saver *saver, uint32_t job)
{
    if (!saver) return;
    pthread_mutex_lock(&saver->lock);
    while (!saver->quit && ((saver->phase != PHASE_IDLE && saver->cut_job == job) ||
                            (saver->jobs[job].final_asked && !saver->jobs[job].final_over)))
        pthread_cond_wait(&saver->changed, &saver->lock);
    pthread_mutex_unlock(&saver->lock);
    write_last(saver, job);
}

void run_saver_finish(struct run_saver *saver)
{
    if (!saver) return;
    struct run *const run = saver->run;
    pthread_mutex_lock(&saver->lock);
    while (saver->phase != PHASE_IDLE || saver->finals > 0)
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
