/*
 * Runs on the streams' threads. Directly after a loss's copy to the host, a call on the same stream logs it before the
 * next copy can overwrite it.
 *
 * The losses of held-out minibatches are summed up in the order of the plan; the last call knows whether the mean is
 * the best. A KEEP waits for it before it decides whether to copy the parameters.
 */
#include "exec/run/run_callbacks.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/extreme.h"
#include "base/process/clock.h"
#include "base/size.h"
#include "exec/device/ranges.h"
#include "exec/files/weights.h"
#include "exec/run/run_ranks.h"
#include "exec/run/run_rows.h"
#include "exec/state/run_faults.h"
#include "exec/state/run_peers.h"
#include "exec/state/run_saver.h"
#include "exec/state/run_shares.h"
#include "models/job/learning_rate.h"

/* --- minibatches --------------------------------------------------------------------------------- */

bool run_begin_minibatch(struct run *run, uint32_t job, uint64_t minibatch)
{
    struct run_progress *const progress = &run->jobs[job];
    pthread_mutex_lock(&run->lock);
    const bool may = minibatch < atomic_load(&progress->limit);
    if (may && progress->begun <= minibatch) {
        if (progress->begun == 0) progress->last_loss_s = clock_s();
        progress->begun = minibatch + 1;
    }
    pthread_mutex_unlock(&run->lock);
    return may;
}

/* Logs a minibatch; with clipping, when both loss and norm are known. */
static void log_minibatch(struct run *run, const struct run_log_entry *part, bool has_loss)
{
    struct run_progress *const progress = &run->jobs[part->job];
    struct run_log_entry entry = *part;
    bool whole = !entry.clips;
    if (entry.clips) {
        struct run_log_entry *const half = &progress->halves[entry.step % run_halves(&run->plan->jobs.jobs[part->job])];
        pthread_mutex_lock(&run->lock);
        whole = half->step == part->step;
        if (whole) {
            const struct run_log_entry step = has_loss ? *half : *part;
            if (!has_loss) entry = *half;
            entry.norm = step.norm;
            entry.skipped = step.skipped;
        }
        *half = whole ? (struct run_log_entry){0} : *part;
        pthread_mutex_unlock(&run->lock);
    }
    if (whole) run_log_minibatch(run->log, &entry);
}

/* Returns true without a step. The loss came to the host before the gradients, on the same stream, and the norm is
 * there before the first step. */
static bool skips_step(struct run *run, uint32_t job, uint64_t minibatch, const double *norms)
{
    if (run->options->on_nan == RUN_NAN_CONTINUE) return false;
    const bool alone = run_loss_replicas(&run->plan->jobs.jobs[job]) == 1; /* others' parts of a loss may come later */
    pthread_mutex_lock(&run->lock);
    const bool skips = alone && run->jobs[job].nonfinite == minibatch + 1;
    pthread_mutex_unlock(&run->lock);
    return skips || !isfinite(unit_norm(&run->plan->jobs.jobs[job], norms));
}

/* Ends the job with this minibatch. */
static void diverge(struct run *run, uint32_t job, uint64_t minibatch, const char *what)
{
    struct error why = {0};
    error_set(&why, STATUS_CHECK, "%s of minibatch %" PRIu64 " is not finite", what,
              run->plan->jobs.jobs[job].first_minibatch + minibatch + 1);
    pthread_mutex_lock(&run->lock);
    run->jobs[job].diverged = true;
    pthread_mutex_unlock(&run->lock);
    run_fail_job(run, job, true, &why);
}

void run_take_norm(struct run *run, uint32_t job, uint64_t minibatch, double norm, bool skipped)
{
    if (!isfinite(norm) && run->options->on_nan == RUN_NAN_STOP)
        diverge(run, job, minibatch, "the norm of the gradients");
    if (skipped) {
        pthread_mutex_lock(&run->lock);
        run->result->jobs[job].skipped++;
        pthread_mutex_unlock(&run->lock);
    }
    const uint64_t step = run->plan->jobs.jobs[job].first_minibatch + minibatch + 1;
    const struct run_log_entry entry = {.job = job, .step = step, .clips = true, .norm = norm, .skipped = skipped};
    log_minibatch(run, &entry, false);
}

/* Takes the norm, or tells it rank 0. */
static void handle_norm(struct run *run, uint32_t job, uint64_t minibatch, double norm, bool skipped)
{
    const struct run_peers_message message = {
        .kind = PEERS_NORM, .job = job, .holds = skipped, .minibatch = minibatch, .loss = norm};
    if (!run->peers || run->peers->own == 0) run_take_norm(run, job, minibatch, norm, skipped);
    else ranks_tell(run->peers->ranks, 0, &message, sizeof message);
}

void run_note_nonfinite(struct run *run, uint32_t job, uint64_t minibatch)
{
    pthread_mutex_lock(&run->lock);
    run->jobs[job].nonfinite = max_u64(run->jobs[job].nonfinite, minibatch + 1);
    pthread_mutex_unlock(&run->lock);
}

/* --- computations ------------------------------------------------------------------------------ */

struct compute_call {
    struct run *run;
    struct run_flight *flight; /* the operation */
    uint32_t rank; /* of a parallel job */
    bool of_chunk;
    uint64_t batch_index; /* of the data: packed rows */
    union {
        struct unit_arguments unit;
        struct chunk_arguments chunk;
    } arguments;
};
static_assert(sizeof(struct compute_call) <= DEVICE_ARGUMENT_MAX, "goes through a stream's queue");

/* Called before the job's next minibatch can begin. */
static void look_at_guard(const struct compute_call *call)
{
    struct unit_guard *const guard = call->of_chunk ? call->arguments.chunk.guard : call->arguments.unit.guard;
    const int state = guard ? atomic_load(&guard->state) : UNIT_GUARD_OPEN;
    if (state == UNIT_GUARD_LOSS) diverge(call->run, call->flight->unit->job, call->flight->minibatch, "the loss");
    if (state == UNIT_GUARD_GRADIENT) diverge(call->run, call->flight->unit->job, call->flight->minibatch, "the step");
}

static bool decide_to_begin(void *argument)
{
    const struct compute_call *const call = argument;
    return run_begin_minibatch(call->run, call->flight->unit->job, call->flight->minibatch);
}

/* Returns true if the computation may start. Passes of a tensor group start together or not at all; their time begins
 * when the last member has come. */
static bool may_begin(struct compute_call *call)
{
    const struct unit_split *const split = call->of_chunk ? call->arguments.chunk.split : NULL;
    if (!split) return decide_to_begin(call);
    return unit_group_begin(split->group, decide_to_begin, call, &call->flight->timing.start_s);
}

static void compute_chunk(const struct kernels *kernels, const struct compute_call *call)
{
    const struct unit_split *const split = call->arguments.chunk.split;
    chunk_compute(kernels, &call->arguments.chunk);
    if (!split) return;
    call->flight->exchanged_s = unit_group_exchanged_s(split->group, split->rank);
    device_leave_out(unit_group_take_processor_s(split->group, split->rank));
}

/* Returns true for a minibatch's first update, which tells its norm. */
static bool is_first_update(const struct compute_call *call)
{
    const struct plan *const plan = call->run->plan;
    const struct plan_unit *const unit = call->flight->unit;
    const struct plan_shard *const shard = &plan->shards[plan->job_first_shard[unit->job] + unit->shard];
    const uint64_t first = network_first_trained(&plan->jobs.jobs[unit->job].network);
    return shard->first_layer <= first && first < shard->first_layer + shard->layer_count;
}

/* Finds where packed rows begin. */
static void fill_rows(const struct compute_call *call)
{
    const struct unit_microbatch *const microbatch =
        call->of_chunk ? &call->arguments.chunk.microbatch : &call->arguments.unit.microbatch;
    const int32_t *const begins = call->of_chunk ? call->arguments.chunk.begins : call->arguments.unit.begins;
    if (begins) /* the stream's own */
        run_rows_fill(call->run, call->flight->unit->job, call->flight->op->pass, call->batch_index, microbatch,
                      (int32_t *)(uintptr_t)begins);
}

static void call_compute(const struct kernels *kernels, void *argument)
{
    struct compute_call *const call = argument;
    const uint32_t job = call->flight->unit->job;
    char what[PLAN_TEXT_BYTES];
    ranges_push(plan_op_text(call->run->plan, call->flight->unit, call->flight->op, what));
    if (may_begin(call)) {
        const double *const all = call->of_chunk ? call->arguments.chunk.norms : call->arguments.unit.norms;
        const double *const norms = call->flight->op->pass == PLAN_UPDATE ? all : NULL;
        if (norms) kernels_finish(kernels); /* a GPU's copies of them have ended */
        const bool skips = norms && skips_step(call->run, job, call->flight->minibatch, norms);
        fill_rows(call);
        if (!skips && call->of_chunk) compute_chunk(kernels, call);
        else if (!skips) unit_compute(kernels, &call->arguments.unit);
        look_at_guard(call);
        if (norms && is_first_update(call) && call->rank == 0)
            handle_norm(call->run, job, call->flight->minibatch, unit_norm(&call->run->plan->jobs.jobs[job], norms),
                        skips);
    } else {
        call->flight->omitted = true;
    }
    ranges_pop();
}

/* Computes on the host stream, which has no kernels of its own. */
static void call_gather(void *argument)
{
    const struct compute_call *const call = argument;
    kernels_host_attach(&call->run->gather);
    call_compute(&call->run->gather, argument);
}

void run_callback_compute(struct run *run, const struct plan_walk_op *op,
                          const struct unit_arguments *arguments, struct run_flight *flight)
{
    struct device_stream *const stream = run->streams[op->stream];
    const struct compute_call call = {.run = run,
                                      .flight = flight,
                                      .batch_index = run_batch_index(&run->plan->jobs.jobs[op->unit->job], op),
                                      .arguments.unit = *arguments};
    if (op->op->stream == STREAM_HOST)
        device_call(stream, call_gather, &call, sizeof call, &flight->timing);
    else
        device_compute(stream, call_compute, &call, sizeof call, &flight->timing);
}

void run_callback_chunk(struct run *run, const struct plan_walk_op *op, const struct chunk_arguments *arguments,
                        struct run_flight *flight)
{
    const struct compute_call call = {.run = run,
                                      .flight = flight,
                                      .rank = op->rank,
                                      .of_chunk = true,
                                      .batch_index = run_batch_index(&run->plan->jobs.jobs[op->unit->job], op),
                                      .arguments.chunk = *arguments};
    device_compute(run->streams[op->stream], call_compute, &call, sizeof call, &flight->timing);
}

/* --- batches and best weights ------------------------------------------------------------------- */

struct batch_call {
    struct run *run;
    uint32_t job;
    bool held_out;
    struct parallel_microbatches part; /* of the minibatch: a replica's */
    uint64_t minibatch;   /* of the plan */
    uint64_t batch_index; /* of the data */
    int32_t *batch;
};

static void call_batch(void *argument)
{
    const struct batch_call *const call = argument;
    struct run *const run = call->run;
    struct error why = {0};
    if (call->minibatch >= atomic_load(&run->jobs[call->job].limit)) return;
    if (data_batch_part(call->held_out ? run->held_out[call->job] : run->sources[call->job], call->batch_index,
                        &call->part, call->batch, &why) == STATUS_OK)
        return;
    if (call->held_out || run->peers) {
        /* The minibatch has begun, perhaps elsewhere, and is finished with arbitrary data; the result is not used. */
        memset(call->batch, 0, job_replica_batch_bytes(&run->plan->jobs.jobs[call->job]));
        pthread_mutex_lock(&run->lock);
        run->jobs[call->job].held_out_failed |= call->held_out;
        pthread_mutex_unlock(&run->lock);
    }
    run_fail_job(run, call->job, false, &why);
}

uint64_t run_batch_index(const struct job *job, const struct plan_walk_op *op)
{
    return op->unit->pass == PLAN_EVALUATE ? op->held_out % job->evaluation.minibatches
                                           : job->first_minibatch + op->minibatch;
}

/* Returns the microbatches whose data a rank reads. */
static struct parallel_microbatches part_of(const struct job *job, const struct plan_walk_op *op)
{
    const struct parallel *const p = &job->parallel;
    if (!parallel_is_set(p)) return (struct parallel_microbatches){0, 1, job->microbatches};
    return parallel_microbatches_of(job, parallel_place(p, op->unit->shard).stage, op->rank / p->tensor);
}

void run_callback_batch(struct run *run, const struct plan_walk_op *op, int32_t *batch,
                        struct device_timing *timing)
{
    const bool held_out = op->unit->pass == PLAN_EVALUATE;
    const struct job *const job = &run->plan->jobs.jobs[op->unit->job];
    const struct batch_call call = {
        .run = run,
        .job = op->unit->job,
        .held_out = held_out,
        .part = part_of(job, op),
        .minibatch = op->minibatch,
        .batch_index = run_batch_index(job, op),
        .batch = batch,
    };
    device_call(run->streams[op->stream], call_batch, &call, sizeof call, timing);
}

struct keep_call {
    struct run *run;
    uint32_t job, shard, rank; /* the shard in the plan */
    uint64_t minibatch;
};

/* Copies a rank's values to their place in the whole shard. */
static void keep_values(const struct keep_call *call)
{
    struct run *const run = call->run;
    const struct unit_tables *const tables = &run->tables[call->shard];
    if (run_is_split(run, call->shard))
        run_shares_keep(run, call->shard, call->rank, run->kept[call->shard]);
    else if (call->rank == 0) /* replicas are equal */
        weights_copy_values(&run->plan->jobs.jobs[call->job], &tables->state, run->states[call->shard],
                            &tables->parameters, run->kept[call->shard]);
}

/* Waits until this rank knows whether the evaluation is the best, or never will. Under the lock. */
static void await_verdict(const struct keep_call *call)
{
    struct run *const run = call->run;
    const struct run_progress *const progress = &run->jobs[call->job];
    uint32_t rank;
    struct error ignored = {0};
    while (run->peers && progress->judged <= call->minibatch && call->minibatch < atomic_load(&progress->limit) &&
           !progress->damaged && !run->cancelled && ranks_failed(run->peers->ranks, &rank, &ignored) == STATUS_OK)
        run_peers_await_change(run);
}

static void call_keep(void *argument)
{
    const struct keep_call *const call = argument;
    struct run_progress *const progress = &call->run->jobs[call->job];
    if (call->minibatch >= atomic_load(&progress->limit)) return;
    pthread_mutex_lock(&call->run->lock);
    await_verdict(call);
    const bool improved = progress->improved == call->minibatch + 1;
    progress->kept = progress->kept || improved;
    if (improved) run_ranks_replace_best(call->run, call->shard);
    pthread_mutex_unlock(&call->run->lock);
    if (improved) keep_values(call);
}

void run_callback_keep(struct run *run, const struct plan_walk_op *op, struct device_timing *timing)
{
    const struct keep_call call = {
        .run = run,
        .job = op->unit->job,
        .shard = run->plan->job_first_shard[op->unit->job] + op->unit->shard,
        .rank = op->rank,
        .minibatch = op->minibatch,
    };
    device_call(run->streams[op->stream], call_keep, &call, sizeof call, timing);
}

/* --- losses -------------------------------------------------------------------------------------- */

struct loss_call {
    struct run *run;
    struct device *device; /* that the loss comes from */
    uint32_t job, rank;
    uint64_t minibatch, held_out;
    const double *loss;
};

static double sum_in_order(const double *parts, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += parts[i];
    return sum;
}

/* Adds up as collectives add up gradients. */
static double sum_of_tree(const double *parts, uint32_t count)
{
    if (count == 1) return parts[0];
    const uint32_t half = parallel_tree_half(count);
    return sum_of_tree(parts, half) + sum_of_tree(parts + half, count - half);
}

/* Takes a replica's part of a loss into parts[]. Returns true when all have come, with their sum in the order of
 * replicas. */
static bool add_partial_loss(struct run *run, uint32_t job, uint32_t replica, uint32_t replicas, double *parts,
                             uint32_t *count, double *loss)
{
    pthread_mutex_lock(&run->lock);
    parts[replica] = *loss;
    const bool all = ++*count == replicas;
    if (all) {
        *count = 0;
        const bool tree = job_sums_as_tree(&run->plan->jobs.jobs[job]);
        *loss = tree ? sum_of_tree(parts, replicas) : sum_in_order(parts, replicas);
    }
    pthread_mutex_unlock(&run->lock);
    return all;
}

/* Tells the other ranks a loss, and whether a cut comes for a checkpoint. */
static void tell_loss(struct run *run, uint32_t job, uint64_t minibatch, double loss)
{
    const uint64_t cut = run_saver_plan_cut(run->saver, job);
    const struct run_peers_message message = {
        .kind = PEERS_LOSS, .job = job, .holds = cut > 0, .minibatch = minibatch, .loss = loss};
    if (cut > 0) run->peers->cuts[job] = cut;
    ranks_tell_all(run->peers->ranks, &message, sizeof message);
}

void run_take_loss(struct run *run, uint32_t j, uint64_t minibatch, double loss)
{
    const struct job *const job = &run->plan->jobs.jobs[j];
    struct run_progress *const progress = &run->jobs[j];
    const double now_s = clock_s();
    pthread_mutex_lock(&run->lock);
    const bool counts = minibatch < atomic_load(&progress->limit) && !progress->damaged && !run->cancelled;
    const double step_s = now_s - fmax(progress->last_loss_s, run->start_s); /* 0: it began elsewhere */
    if (counts) {
        assert(progress->losses == minibatch);
        run->result->jobs[j].losses[job->first_minibatch + progress->losses++] = loss;
        progress->last_loss_s = now_s;
        run->last_job = j;
        run->last_loss = loss;
        if (run->peers && run->peers->own == 0) tell_loss(run, j, minibatch, loss);
        if (run->peers) pthread_cond_broadcast(&run->peers->changed);
    }
    const bool diverges = counts && !isfinite(loss) && run->options->on_nan == RUN_NAN_STOP;
    if (!isfinite(loss)) progress->nonfinite = max_u64(progress->nonfinite, minibatch + 1);
    pthread_mutex_unlock(&run->lock);
    if (!counts || job_makes_outputs(job)) return;
    const uint64_t step = job->first_minibatch + minibatch + 1;
    if (diverges) diverge(run, j, minibatch, "the loss");
    const struct run_log_entry entry = {
        .job = j,
        .step = step,
        .loss = loss,
        .learning_rate = learning_rate_at(job, step),
        .clips = job_clips(job),
        .tokens_per_s = step_s > 0 ? (double)(job_samples(job) * job->sequence) / step_s : 0,
        .elapsed_s = now_s - run->start_s,
    };
    log_minibatch(run, &entry, true);
}

/* Takes the loss of a minibatch of a replica with its own pace. `last`: the last minibatch of its update. When all
 * replicas' have come, they are taken in the order of minibatches. */
static void take_own_loss(struct run *run, uint32_t job, uint32_t replica, uint64_t last, double loss)
{
    struct run_progress *const progress = &run->jobs[job];
    const uint32_t replicas = run_loss_replicas(&run->plan->jobs.jobs[job]);
    /* the next may come first */
    const uint64_t turn = last / replicas % run_minibatches_ahead(&run->plan->jobs.jobs[job]);
    double *const parts = progress->partial_losses + turn * replicas;
    if (!add_partial_loss(run, job, replica, replicas, parts, &progress->partial_count[turn], &loss)) return;
    for (uint32_t d = 0; d < replicas; d++) run_take_loss(run, job, last + 1 - replicas + d, parts[d]);
}

void run_take_partial_loss(struct run *run, uint32_t job, uint32_t replica, uint64_t minibatch, double loss)
{
    struct run_progress *const progress = &run->jobs[job];
    const struct job *const about = &run->plan->jobs.jobs[job];
    const uint32_t replicas = run_loss_replicas(about);
    const uint64_t turn = minibatch % run_minibatches_ahead(about); /* the next one's parts may come first */
    if (replicas > 1 && parallel_has_own_pace(&about->parallel)) {
        take_own_loss(run, job, replica, minibatch, loss);
        return;
    }
    if (replicas > 1 && !add_partial_loss(run, job, replica, replicas, progress->partial_losses + turn * replicas,
                                          &progress->partial_count[turn], &loss))
        return;
    run_take_loss(run, job, minibatch, loss);
}

/* Tells other ranks before the norm of its gradients, on whose ranks it decides about the step, too. */
static void tell_nonfinite(struct run *run, const struct loss_call *call)
{
    const struct run_peers_message message = {.kind = PEERS_NOT_FINITE, .job = call->job, .minibatch = call->minibatch};
    run_note_nonfinite(run, call->job, call->minibatch);
    ranks_tell_all(run->peers->ranks, &message, sizeof message);
}

static void call_loss(void *argument)
{
    const struct loss_call *const call = argument;
    struct run *const run = call->run;
    struct error lost = {0};
    if (device_failed(call->device, &lost) != STATUS_OK) return; /* it did not arrive */
    const bool counts = call->minibatch < atomic_load(&run->jobs[call->job].limit);
    if (run->peers && counts && !isfinite(*call->loss)) tell_nonfinite(run, call);
    if (!run->peers || run->peers->own == 0) {
        run_take_partial_loss(run, call->job, call->rank, call->minibatch, *call->loss);
        return;
    }
    if (!counts) return;
    const struct run_peers_message message = {
        .kind = PEERS_PART, .job = call->job, .replica = call->rank, .minibatch = call->minibatch, .loss = *call->loss};
    ranks_tell(run->peers->ranks, 0, &message, sizeof message);
}

/* Takes a loss in the mean, under the lock. Returns true when the evaluation is complete. */
static bool add_held_out(struct run *run, uint32_t j, uint64_t minibatch, double loss, struct run_log_evaluation *out)
{
    const struct job *const job = &run->plan->jobs.jobs[j];
    struct run_progress *const progress = &run->jobs[j];
    struct run_job_result *const result = &run->result->jobs[j];
    if (minibatch >= atomic_load(&progress->limit) || progress->held_out_failed) return false;
    progress->held_out_sum += loss;
    if (++progress->held_out < job->evaluation.minibatches) return false;
    const double mean = progress->held_out_sum / (double)progress->held_out, now_s = clock_s();
    const uint64_t number = result->evaluation_count++, before = result->best_evaluation;
    const uint64_t step = job->first_minibatch + minibatch + 1;
    result->evaluations[number] = (struct evaluation_progress){.step = step, .loss = mean};
    const bool best = isfinite(mean) && (before == EVALUATION_NONE || mean < result->evaluations[before].loss);
    if (best) result->best_evaluation = number;
    if (best) progress->improved = minibatch + 1;
    progress->last_loss_s = now_s; /* its time is no minibatch's */
    progress->held_out_sum = 0;
    progress->held_out = 0;
    *out = (struct run_log_evaluation){.step = step, .loss = mean, .best = best, .elapsed_s = now_s - run->start_s};
    return true;
}

/* Tells the other ranks of a job that keeps the best weights whether this evaluation is the best. Under the lock. */
static void tell_verdict(struct run *run, uint32_t job, uint64_t minibatch)
{
    struct run_progress *const progress = &run->jobs[job];
    const struct run_peers_message message = {.kind = PEERS_EVALUATED, .job = job, .minibatch = minibatch,
                                              .holds = progress->improved == minibatch + 1};
    progress->judged = minibatch + 1;
    if (run->plan->jobs.jobs[job].keep_best) ranks_tell_all(run->peers->ranks, &message, sizeof message);
}

void run_take_held_out(struct run *run, uint32_t j, uint32_t replica, uint64_t minibatch, uint64_t held_out,
                       double loss)
{
    const struct job *const job = &run->plan->jobs.jobs[j];
    struct run_progress *const progress = &run->jobs[j];
    const uint32_t replicas = run_loss_replicas(job);
    const uint64_t turn = held_out % (2 * job->evaluation.minibatches); /* no replica is an evaluation ahead */
    if (replicas > 1 && !add_partial_loss(run, j, replica, replicas, progress->held_out_parts + turn * replicas,
                                          &progress->held_out_count[turn], &loss))
        return;
    struct run_log_evaluation evaluation;
    pthread_mutex_lock(&run->lock);
    const bool complete = add_held_out(run, j, minibatch, loss, &evaluation);
    if (run->peers && (complete || progress->held_out_failed)) tell_verdict(run, j, minibatch);
    if (run->peers) pthread_cond_broadcast(&run->peers->changed);
    pthread_mutex_unlock(&run->lock);
    if (complete) run_log_evaluation(run->log, j, &evaluation);
}

static void call_held_out(void *argument)
{
    const struct loss_call *const call = argument;
    struct run *const run = call->run;
    if (!run->peers || run->peers->own == 0) {
        run_take_held_out(run, call->job, call->rank, call->minibatch, call->held_out, *call->loss);
        return;
    }
    const struct run_peers_message message = {.kind = PEERS_HELD_OUT, .job = call->job, .replica = call->rank,
                                              .minibatch = call->minibatch, .held_out = call->held_out,
                                              .loss = *call->loss};
    ranks_tell(run->peers->ranks, 0, &message, sizeof message);
}

void run_callback_loss(struct run *run, const struct plan_walk_op *op, const double *loss)
{
    const struct parallel *const parallel = &run->plan->jobs.jobs[op->unit->job].parallel;
    const uint32_t tensor = parallel->tensor > 1 ? parallel->tensor : 1;
    if (op->rank % tensor > 0) return; /* all members have the same */
    const struct loss_call call = {
        .run = run,
        .device = run->devices[op->device],
        .job = op->unit->job,
        .rank = op->rank / tensor,
        .minibatch = op->minibatch,
        .held_out = op->held_out,
        .loss = loss,
    };
    const bool held_out = op->unit->pass == PLAN_EVALUATE;
    device_call(run->streams[op->stream], held_out ? call_held_out : call_loss, &call, sizeof call,
                NULL);
}
