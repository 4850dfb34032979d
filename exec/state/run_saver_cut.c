/*
 * A consistent copy without a pause.
 *
 * Between a job's minibatches k and k + 1, in plan order, all of its state is of one step: a *cut*. No operation has
 * to stop there. Operations before it that write state are waited for; those after it wait for the copy. The first is
 * the next backward pass, a whole forward pass away: the copy (some 10 GB/s) is done by then, unless batches are tiny.
 *
 *     D2H stream, at the cut:  wait for the last operation on each stream that wrote the job's state
 *                              or its loss; call: "reached"
 *     the saver's thread:      copies the newest state on the host, shard by shard; "copied"
 *     D2H of devices that hold newer state (resident jobs):
 *                              call: wait for "copied"; copy the newer state over it; call: "brought"
 *     any stream, later:       before an operation that writes the job's state on the host, a
 *                              call waits for "copied"; on a device, a wait for the copies of newer state
 *     the saver's thread:      writes the file from the copy
 *
 * There is room for one copy, of the largest job. A checkpoint that becomes due meanwhile is taken at the next
 * minibatch; of several waiting jobs the longest goes first. If the previous cut is not reached yet, the loop lets
 * some enqueued work end first.
 *
 * If an evaluation may be the best so far, the loop waits for the room. When the cut is reached it is known whether it
 * is the best; if not, and no other checkpoint was due, nothing is copied. run_saver.c has the thread.
 */
#include "exec/state/run_saver_state.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/process/clock.h"
#include "exec/state/run_faults.h"
#include "exec/state/run_peers.h"
#include "models/job/evaluation.h"

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
    const bool there = saver->run->peers || is_there(saver->run, call->job, call->minibatch); /* else all ranks agree */
    const bool best = saver->run->peers || is_best(saver->run, call->job, call->minibatch);
    pthread_mutex_lock(&saver->lock);
    saver->dropped = !there || (saver->cut_if_best && !best);
    saver->phase = SAVER_REACHED;
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
    if (!run_has_device(saver->run, device)) return false;
    for (uint32_t b = 0; b < saver->run->plan->buffer_count && !any; b++)
        any = is_newer(saver, device, b, job);
    return any;
}

static void find_covered(struct run_saver *saver, uint32_t job)
{
    const struct plan *const plan = saver->run->plan;
    const uint32_t first = plan->job_first_shard[job];
    memset(&saver->covered[first], 0, plan_job_shards(plan, job));
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
    assert(saver->phase == SAVER_IDLE);
    saver->phase = SAVER_ENQUEUED;
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
    if (if_best || saver->run->peers) return; /* other checkpoints' times do not change */
    saver->jobs[job].minibatch = minibatch;
    saver->jobs[job].at_s = clock_s();
    saver->jobs[job].due_since = 0;
}

/* --- when ----------------------------------------------------------------------------------------- */

static bool ends_minibatch(const struct plan_walk_op *op)
{
    return op->unit->ends_minibatch && op->ends_unit;
}

bool run_saver_is_due(const struct run_saver *saver, uint32_t job, uint64_t minibatch)
{
    const struct saver_job *const saved = &saver->jobs[job];
    const struct job *const about = &saver->run->plan->jobs.jobs[job];
    const uint64_t every = saver->options->every_steps, first = about->first_minibatch;
    if (minibatch >= about->minibatches || minibatch <= saved->minibatch) return false;
    if (!parallel_flushes_after(about, minibatch - 1)) return false;
    if (every > 0 && (first + minibatch) / every > (first + saved->minibatch) / every) return true;
    return saver->options->every_s > 0 && clock_s() - saved->at_s >= saver->options->every_s;
}

bool run_saver_is_evaluated(const struct run_saver *saver, uint32_t job, uint64_t minibatch)
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
        const struct saver_job *const other = &saver->jobs[j];
        lets = other->due_since > 0 && other->due_since < since && !other->final_asked &&
               !other->gave_up && atomic_load(&saver->run->jobs[j].limit) == UINT64_MAX;
    }
    pthread_mutex_unlock(&saver->lock);
    return lets;
}

/* The members of a collective that ends a minibatch wait for each other, so the first one waits for all. */
bool run_saver_is_ahead(const struct run_saver *saver, const struct plan_walk_op *op, uint64_t walked)
{
    const uint32_t job = op->unit->job;
    const bool ends = op->unit->ends_minibatch && op->op_index + 1 == op->unit->op_count && op->join_at == 0;
    if (!saver || saver->run->peers || !ends) return false;
    if (!run_saver_is_due(saver, job, walked) && !run_saver_is_evaluated(saver, job, walked)) return false;
    struct run_saver *const changing = (struct run_saver *)(uintptr_t)saver;
    pthread_mutex_lock(&changing->lock);
    const bool ahead = saver->phase == SAVER_ENQUEUED || saver->phase == SAVER_REACHED;
    pthread_mutex_unlock(&changing->lock);
    return ahead;
}

/* Returns true if there is room for a copy. Waits for a copy in progress and, with `must`, for the disk; then there
 * is room unless the job gave up. */
static bool is_free(struct run_saver *saver, uint32_t job, bool must)
{
    pthread_mutex_lock(&saver->lock);
    while ((saver->phase != SAVER_IDLE && saver->phase != SAVER_WRITING) ||
           (must && !saver->jobs[job].gave_up && (saver->phase != SAVER_IDLE || saver->finals > 0)))
        pthread_cond_wait(&saver->changed, &saver->lock);
    const bool gave_up = saver->jobs[job].gave_up;
    const bool free = saver->phase == SAVER_IDLE && saver->finals == 0 && !gave_up;
    pthread_mutex_unlock(&saver->lock);
    return free;
}

static void consider_cut(struct run_saver *saver, const struct plan_walk_op *op, uint64_t walked)
{
    const uint32_t job = op->unit->job;
    struct saver_job *const saved = &saver->jobs[job];
    const bool due = run_saver_is_due(saver, job, walked), evaluated = run_saver_is_evaluated(saver, job, walked);
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
    if (run->peers) { /* rank 0 writes last checkpoints at the end */
        bool if_best;
        if (ends_minibatch(op) && saver_cuts_at(saver, job, walked, &if_best)) cut(saver, op, walked, if_best);
        return;
    }
    if (atomic_load(&run->jobs[job].limit) != UINT64_MAX) return; /* it ends early: see finish */
    if (walked == run->plan->jobs.jobs[job].minibatches) {
        if (!saver->jobs[job].final_asked) consider_final(saver, op);
    } else if (ends_minibatch(op)) {
        consider_cut(saver, op, walked);
    }
}
