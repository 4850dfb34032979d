/*
 * The loop that carries a plan out.
 *
 * One thread walks the plan in plan order and hands every operation to its stream: first a wait for
 * each operation it must come behind (plan_walk.h says which), then the copy, the computation or
 * the call. Nothing is waited for here; the streams' threads do, and so work overlaps as far as the
 * plan allows. What is enqueued and not yet known to have ended is in a ring of *flights*:
 *
 *     oldest                                   next
 *       |    number n: its stream, the event     |
 *       v    that says n has ended, its times    v
 *     [ n-5 ][ n-4 ][ n-3 ][ n-2 ][ n-1 ][  n  ]           WINDOW entries
 *
 * To wait for operation m is to wait for the event of flight m; a number before the ring has ended.
 * Flights retire in plan order: their spans are recorded and their places in the ring are free
 * again. The walk runs ahead until the ring is full or a stream has BACKLOG_MAX_S of predicted work
 * in front of it: far enough that devices which drift apart do not wait for each other, and near
 * enough that a stopped run ends soon.
 *
 * The loss of a minibatch is copied to the host like anything else; right behind that copy, on the
 * same stream, a call logs it before the next copy can overwrite it.
 *
 * Evaluations. The losses of held-out minibatches come the same way and are summed up in the order of
 * the plan; the call of the last one knows the mean and whether it is the best. A KEEP waits for that
 * copy, and so for its call, before it copies parameters aside or leaves them.
 *
 * Stopping. A job that has begun a minibatch must end it, else its shards would be of different
 * steps. When the flag is seen, each job's limit is set to the minibatches it has begun. Computations
 * and copies of later ones that are already enqueued are left out when their turn comes; the walk
 * goes on only to enqueue what is left below the limits. An operation that is skipped by the walk
 * still enqueues its waits, because others that wait for it rely on what it waits for. State that
 * the plan would have written back later is written back at the end: `struct device_state` remembers
 * what on a device is newer than on the host.
 *
 * A job that fails, or whose loss is not finite and shall stop it, gets such a limit for itself
 * (run_faults.c), and the plan is walked to its end for the others; so do the jobs of a device that is
 * lost, whose operations are passed over from then on. Checkpoints hang in before and
 * behind each operation (run_saver.c).
 *
 * A run that hangs says so: when no stream gets anything done for a minute, or 20 times the longest
 * predicted operation, the run ends with the names of what waits for what.
 *
 * In tests, released memory is filled with NaN on the stream of the releasing operation, after
 * waiting for all streams that used it; the event of that operation then includes the filling.
 */
#include "exec/run.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "base/size.h"
#include "exec/ranges.h"
#include "exec/run_faults.h"
#include "exec/run_record.h"
#include "exec/run_saver.h"
#include "exec/run_state.h"
#include "exec/run_storage.h"
#include "exec/weights.h"
#include "models/cost.h"
#include "models/learning_rate.h"
#include "models/try.h"
#include "planner/plan_walk.h"

enum { WINDOW = 8192, AHEAD_MIN = 64, FLIGHT_WAITS = 4 };
static const double BACKLOG_MAX_S = 10;
static const double POLL_S = 0.1; /* how often the stop flag, progress and stalls are looked at */
static const double STALL_MIN_S = 60, STALL_FACTOR = 20;

struct flight {
    uint64_t number, minibatch, event;
    const struct plan_op *op;
    const struct plan_unit *unit;
    uint32_t stream, device, op_index;
    uint32_t peer;  /* P2P: the device that is copied from, whose memory is given back; else `device` */
    bool skipped;   /* while stopping: it does nothing but wait */
    bool omitted;   /* its computation came behind its job's limit; set by the stream's thread */
    double predicted_s;
    uint64_t acquired_bytes, released_bytes;
    struct device_timing timing;
    uint64_t waits[FLIGHT_WAITS]; /* for reports: the first few */
    uint32_t wait_count;
};

/* What a staged buffer holds: state of which minibatch; and is it on its way to storage? */
struct staged_state {
    uint64_t arrived; /* as in device_state */
    bool fresh;
};

struct loop {
    struct run *run;
    const struct plan *plan;
    struct run_record *record;
    struct plan_walk *walk;
    struct flight *flights; /* WINDOW */
    uint64_t oldest, next;
    double *backlog_s;      /* per stream: predicted, in flight */
    double *predicted_s;    /* per plan op */
    double predicted_max_s, done_s, total_s;
    double polled_s;        /* when progress was last told */
    uint64_t *walked;       /* per job: minibatches whose end the walk has passed */
    uint64_t *last;         /* per job: its operation that was enqueued last */
    bool stopping;
    struct device_state *states; /* [device][buffer] */
    struct staged_state *staged; /* [buffer] */
    uint64_t *users;        /* with poison: [device][buffer][stream of the device], events */
};

/* --- on the streams' threads ------------------------------------------------------------------ */

/* May a computation of this minibatch start? It does so at once then. */
static bool begin_minibatch(struct run *run, uint32_t job, uint64_t minibatch)
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

/* The line of a minibatch; of a job that clips, when both its loss and its norm are there. */
static void log_minibatch(struct run *run, const struct run_log_entry *part, bool has_loss)
{
    struct run_progress *const progress = &run->jobs[part->job];
    struct run_log_entry entry = *part;
    bool whole = !entry.clips;
    if (entry.clips) {
        pthread_mutex_lock(&run->lock);
        whole = progress->half_logged;
        if (whole) {
            const struct run_log_entry *const other = &progress->half;
            const struct run_log_entry *const step = has_loss ? other : part;
            if (!has_loss) entry = *other;
            entry.norm = step->norm;
            entry.skipped = step->skipped;
        } else {
            progress->half = *part;
        }
        progress->half_logged = !whole;
        pthread_mutex_unlock(&run->lock);
    }
    if (whole) run_log_minibatch(run->log, &entry);
}

/* Is the step of this minibatch left out? Its loss came to the host in front of its gradients, on the same
 * stream, and the norm is there before the first step is. */
static bool skips_step(struct run *run, uint32_t job, uint64_t minibatch, const double *norms)
{
    if (run->options->on_nan != RUN_NAN_SKIP) return false;
    pthread_mutex_lock(&run->lock);
    const bool skips = run->jobs[job].nonfinite == minibatch + 1;
    pthread_mutex_unlock(&run->lock);
    return skips || !isfinite(unit_norm(&run->plan->jobs.jobs[job], norms));
}

/* The first step of a minibatch was made or left out: the norm of its gradients is known. */
static void take_norm(struct run *run, uint32_t job, uint64_t minibatch, const double *norms,
                      bool skipped)
{
    const struct job *const about = &run->plan->jobs.jobs[job];
    const double norm = unit_norm(about, norms);
    if (!isfinite(norm) && run->options->on_nan == RUN_NAN_STOP) {
        struct error why = {0};
        error_set(&why, STATUS_CHECK, "the norm of the gradients of minibatch %" PRIu64 " is %g",
                  about->first_minibatch + minibatch + 1, norm);
        pthread_mutex_lock(&run->lock);
        run->jobs[job].diverged = true;
        pthread_mutex_unlock(&run->lock);
        run_fail_job(run, job, true, &why);
    }
    if (skipped) {
        pthread_mutex_lock(&run->lock);
        run->result->jobs[job].skipped++;
        pthread_mutex_unlock(&run->lock);
    }
    const struct run_log_entry entry = {
        .job = job, .clips = true, .norm = norm, .skipped = skipped};
    log_minibatch(run, &entry, false);
}

struct compute_call {
    struct run *run;
    struct flight *flight;
    struct unit_arguments arguments;
};
static_assert(sizeof(struct compute_call) <= DEVICE_ARGUMENT_MAX, "goes through a stream's queue");

static void call_compute(const struct kernels *kernels, void *argument)
{
    const struct compute_call *const call = argument;
    const struct flight *const flight = call->flight;
    char what[PLAN_TEXT_BYTES];
    range_push(plan_op_text(call->run->plan, flight->unit, flight->op, what));
    if (begin_minibatch(call->run, flight->unit->job, flight->minibatch)) {
        const double *const norms =
            flight->op->pass == PLAN_UPDATE ? call->arguments.norms : NULL;
        const bool skips =
            norms && skips_step(call->run, flight->unit->job, flight->minibatch, norms);
        if (!skips) unit_compute(kernels, &call->arguments);
        if (norms && flight->unit->shard == 0)
            take_norm(call->run, flight->unit->job, flight->minibatch, norms, skips);
    } else {
        call->flight->omitted = true;
    }
    range_pop();
}

/* A computation of the host stream, which has no kernels of its own. */
static void call_gather(void *argument)
{
    const struct compute_call *const call = argument;
    kernels_host_attach(&call->run->gather);
    call_compute(&call->run->gather, argument);
}

struct batch_call {
    struct run *run;
    uint32_t job;
    bool held_out;
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
    if (data_batch(call->held_out ? run->held_out[call->job] : run->sources[call->job],
                   call->batch_index, call->batch, &why) == STATUS_OK)
        return;
    if (call->held_out) {
        /* its minibatch was begun and is ended: with anything that is a batch, for nothing */
        memset(call->batch, 0, job_batch_bytes(&run->plan->jobs.jobs[call->job]));
        pthread_mutex_lock(&run->lock);
        run->jobs[call->job].held_out_failed = true;
        pthread_mutex_unlock(&run->lock);
    }
    run_fail_job(run, call->job, false, &why);
}

struct keep_call {
    struct run *run;
    uint32_t job;
    uint64_t minibatch;
    const struct unit_tables *tables;
    float *state, *kept;
};

static void call_keep(void *argument)
{
    const struct keep_call *const call = argument;
    struct run_progress *const progress = &call->run->jobs[call->job];
    if (call->minibatch >= atomic_load(&progress->limit)) return;
    pthread_mutex_lock(&call->run->lock);
    const bool improved = progress->improved == call->minibatch + 1;
    progress->kept = progress->kept || improved;
    pthread_mutex_unlock(&call->run->lock);
    if (improved)
        weights_copy_values(&call->run->plan->jobs.jobs[call->job], &call->tables->state, call->state,
                            &call->tables->parameters, call->kept);
}

static void call_nothing(void *argument)
{
    (void)argument;
}

struct loss_call {
    struct run *run;
    struct device *device; /* that the loss comes from */
    uint32_t job;
    uint64_t minibatch;
    const double *loss;
};

static void call_loss(void *argument)
{
    const struct loss_call *const call = argument;
    struct run *const run = call->run;
    const struct job *const job = &run->plan->jobs.jobs[call->job];
    struct run_progress *const progress = &run->jobs[call->job];
    const double now_s = clock_s(), loss = *call->loss;
    struct error lost = {0};
    if (device_failed(call->device, &lost) != STATUS_OK) return; /* it did not arrive */

    pthread_mutex_lock(&run->lock);
    const bool counts = call->minibatch < atomic_load(&progress->limit) && !progress->damaged;
    const double step_s = now_s - progress->last_loss_s;
    if (counts) {
        assert(progress->losses == call->minibatch);
        run->result->jobs[call->job].losses[job->first_minibatch + progress->losses++] = loss;
        progress->last_loss_s = now_s;
        run->last_job = call->job;
        run->last_loss = loss;
    }
    const bool diverges = counts && !isfinite(loss) && run->options->on_nan == RUN_NAN_STOP;
    progress->diverged |= diverges;
    if (!isfinite(loss)) progress->nonfinite = call->minibatch + 1;
    pthread_mutex_unlock(&run->lock);
    if (!counts) return;
    const uint64_t step = job->first_minibatch + call->minibatch + 1;
    if (diverges) {
        struct error why = {0};
        error_set(&why, STATUS_CHECK, "the loss of minibatch %" PRIu64 " is %g", step, loss);
        run_fail_job(run, call->job, true, &why);
    }
    const struct run_log_entry entry = {
        .job = call->job,
        .step = step,
        .loss = loss,
        .learning_rate = learning_rate_at(job, step),
        .clips = job_clips(job),
        .tokens_per_s = step_s > 0 ? (double)(job_samples(job) * job->sequence) / step_s : 0,
        .elapsed_s = now_s - run->start_s,
    };
    log_minibatch(run, &entry, true);
}

/* The loss of a held-out minibatch; the last one of an evaluation completes it. */
static void call_held_out(void *argument)
{
    const struct loss_call *const call = argument;
    struct run *const run = call->run;
    const struct job *const job = &run->plan->jobs.jobs[call->job];
    struct run_progress *const progress = &run->jobs[call->job];
    struct run_job_result *const result = &run->result->jobs[call->job];

    pthread_mutex_lock(&run->lock);
    const bool counts =
        call->minibatch < atomic_load(&progress->limit) && !progress->held_out_failed;
    const uint64_t step = job->first_minibatch + call->minibatch + 1;
    bool complete = false, best = false;
    double mean = 0, now_s = clock_s();
    if (counts) {
        progress->held_out_sum += *call->loss;
        complete = ++progress->held_out == job->evaluation.minibatches;
    }
    if (complete) {
        mean = progress->held_out_sum / (double)progress->held_out;
        const uint64_t number = result->evaluation_count++, before = result->best_evaluation;
        result->evaluations[number] = (struct evaluated){.step = step, .loss = mean};
        best = isfinite(mean) &&
               (before == EVALUATION_NONE || mean < result->evaluations[before].loss);
        if (best) result->best_evaluation = number;
        if (best) progress->improved = call->minibatch + 1;
        progress->last_loss_s = now_s; /* its time is no minibatch's */
        progress->held_out_sum = 0;
        progress->held_out = 0;
    }
    pthread_mutex_unlock(&run->lock);
    if (!complete) return;
    run_log_evaluation(run->log, call->job, &(struct run_log_evaluation){
        .step = step,
        .loss = mean,
        .best = best,
        .elapsed_s = now_s - run->start_s,
    });
}

/* --- retiring flights -------------------------------------------------------------------------- */

static struct flight *flight_of(const struct loop *loop, uint64_t number)
{
    return &loop->flights[number % WINDOW];
}

static bool has_ended(const struct loop *loop, uint64_t number)
{
    if (number < loop->oldest) return true;
    const struct flight *const flight = flight_of(loop, number);
    return device_reached(loop->run->streams[flight->stream], flight->event);
}

/* What has begun must be ended, nothing else is begun. */
static void look_at_stop(struct loop *loop)
{
    struct run *const run = loop->run;
    if (loop->stopping) return;
    const bool asked = run->options->stop && *run->options->stop;
    pthread_mutex_lock(&run->lock);
    loop->stopping = asked || run->fatal.status != STATUS_OK;
    for (uint32_t j = 0; j < loop->plan->jobs.count && loop->stopping; j++)
        if (run->jobs[j].begun < atomic_load(&run->jobs[j].limit))
            atomic_store(&run->jobs[j].limit, run->jobs[j].begun);
    pthread_mutex_unlock(&run->lock);
}

static void tell_progress(struct loop *loop)
{
    struct run *const run = loop->run;
    const double now_s = clock_s();
    if (now_s - loop->polled_s < POLL_S) return;
    loop->polled_s = now_s;
    look_at_stop(loop);
    run_tell_notes(run);
    if (!run->options->on_progress) return;
    pthread_mutex_lock(&run->lock);
    const uint32_t job = run->last_job;
    const double loss = run->last_loss;
    pthread_mutex_unlock(&run->lock);
    run->options->on_progress(run->options->context, loop->done_s, loop->total_s, job, loss);
}

static uint64_t all_passed(const struct loop *loop)
{
    uint64_t sum = 0;
    for (uint32_t s = 0; s < plan_stream_count(loop->plan); s++)
        if (loop->run->streams[s]) sum += device_passed(loop->run->streams[s]);
    return sum;
}

/* "a shard 3 backward waits for a shard 3 backward copy in", for the first operation of each stream
 * that has not ended. */
static enum status report_stall(const struct loop *loop, double waited_s, struct error *err)
{
    char text[900];
    size_t used = 0;
    uint32_t named = 0;
    for (uint32_t s = 0; s < plan_stream_count(loop->plan); s++) {
        const struct flight *first = NULL;
        for (uint64_t n = loop->oldest; n < loop->next && !first; n++)
            if (flight_of(loop, n)->stream == s && !has_ended(loop, n)) first = flight_of(loop, n);
        if (!first || used > sizeof text - 2 * PLAN_TEXT_BYTES - 32) continue;
        char what[PLAN_TEXT_BYTES];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s'%s'", named++ ? ", " : "",
                                 plan_op_text(loop->plan, first->unit, first->op, what));
        const struct flight *blocker = NULL;
        for (uint32_t i = 0; i < first->wait_count && !blocker; i++)
            if (!has_ended(loop, first->waits[i])) blocker = flight_of(loop, first->waits[i]);
        if (blocker)
            used += (size_t)snprintf(text + used, sizeof text - used, " waits for '%s'",
                                     plan_op_text(loop->plan, blocker->unit, blocker->op, what));
        else
            used += (size_t)snprintf(text + used, sizeof text - used, " does not end");
    }
    return error_set(err, STATUS_DEVICE, "nothing has ended for %.3g s: %s", waited_s, text);
}

/* Complete, everything enqueued for it has ended, and nothing of it is newer on a device. */
static bool is_home(const struct loop *loop, uint32_t job)
{
    const struct plan *const plan = loop->plan;
    bool home = loop->walked[job] == plan->jobs.jobs[job].minibatches &&
                loop->last[job] < loop->oldest;
    const size_t count = (size_t)plan->hardware.device_count * plan->buffer_count;
    for (size_t i = 0; i < count && home; i++)
        home = plan->buffers[i % plan->buffer_count].job != job || loop->states[i].changed_bytes == 0;
    return home;
}

/* An event that has been reached means nothing once a device is lost: its jobs are ended, but for
 * those that had no more use for it. */
static void look_at_devices(struct loop *loop)
{
    struct run *const run = loop->run;
    bool any = false;
    for (uint32_t d = 0; d < loop->plan->hardware.device_count; d++) {
        struct error why = {0};
        any |= !run->device_noted[d] && device_failed(run->devices[d], &why) != STATUS_OK;
    }
    if (!any) return;
    for (uint32_t j = 0; j < loop->plan->jobs.count; j++)
        if (!run->jobs[j].damaged) run->jobs[j].home = is_home(loop, j);
    run_note_lost_devices(run);
}

static enum status await(struct loop *loop, const struct flight *flight, struct error *err)
{
    struct device_stream *const stream = loop->run->streams[flight->stream];
    const double patience_s = loop->run->options->stall_s > 0
                                  ? loop->run->options->stall_s
                                  : fmax(STALL_MIN_S, STALL_FACTOR * loop->predicted_max_s);
    double changed_s = clock_s();
    uint64_t passed = all_passed(loop);
    while (!device_synchronize(stream, flight->event, fmin(POLL_S, patience_s))) {
        tell_progress(loop);
        const uint64_t now_passed = all_passed(loop);
        if (now_passed != passed) changed_s = clock_s();
        passed = now_passed;
        const double waited_s = clock_s() - changed_s;
        if (waited_s > patience_s) return report_stall(loop, waited_s, err);
    }
    look_at_devices(loop);
    return STATUS_OK;
}

static void record_flight(struct loop *loop, const struct flight *flight)
{
    const struct plan_op *const op = flight->op;
    const double start_s = fmax(0, flight->timing.start_s - loop->run->start_s);
    const double end_s = fmax(0, flight->timing.end_s - loop->run->start_s);
    run_record_slots(loop->record, &(struct run_slots){
        .start_s = start_s,
        .end_s = end_s,
        .device = flight->device,
        .acquired_bytes = flight->acquired_bytes,
        .released_bytes = flight->peer == flight->device ? flight->released_bytes : 0,
    });
    if (flight->peer != flight->device)
        run_record_slots(loop->record, &(struct run_slots){
            .start_s = start_s,
            .end_s = end_s,
            .device = flight->peer,
            .released_bytes = flight->released_bytes,
        });
    if (flight->skipped || flight->omitted || flight->timing.left_out) return;
    const struct trace_span span = {
        .start_s = start_s,
        .end_s = end_s,
        .number = flight->number,
        .bytes = op->kind == OP_COPY ? op->bytes : 0,
        .minibatch = (uint32_t)flight->minibatch,
        .stream = flight->stream,
        .job = flight->unit->job,
        .shard = flight->unit->shard,
        .kind = op->kind,
        .pass = op->kind == OP_COPY ? (uint8_t)flight->unit->pass : op->pass,
        .op_index = (uint8_t)(flight->op_index < 255 ? flight->op_index : 255),
    };
    run_record_span(loop->record, &span);
}

static enum status retire_oldest(struct loop *loop, struct error *err)
{
    const struct flight *const flight = flight_of(loop, loop->oldest);
    const enum status status = await(loop, flight, err);
    if (status != STATUS_OK) return status;
    record_flight(loop, flight);
    loop->backlog_s[flight->stream] -= flight->predicted_s;
    if (flight->op->kind == OP_COMPUTE) loop->done_s += flight->predicted_s;
    loop->oldest++;
    tell_progress(loop);
    return STATUS_OK;
}

/* Is the walk far enough ahead, or is there no room for what `op` enqueues? */
static bool is_ahead(const struct loop *loop, const struct plan_walk_op *op)
{
    const struct device_stream *const stream = loop->run->streams[op->stream];
    const uint64_t queued = device_record(stream) - device_passed(stream);
    /* waits, the work, the loss's call; with poison, for each access two waits and the filling */
    const uint64_t wanted = op->wait_count + 2 + 3 * (uint64_t)op->use_count;
    assert(wanted < DEVICE_QUEUE_MAX / 2);
    const uint64_t in_flight = loop->next - loop->oldest;
    return in_flight == WINDOW || queued + wanted > DEVICE_QUEUE_MAX ||
           (in_flight > AHEAD_MIN && loop->backlog_s[op->stream] > BACKLOG_MAX_S);
}

/* --- enqueueing -------------------------------------------------------------------------------- */

static char *address_of(const struct loop *loop, const struct plan_place_use *use)
{
    if (use->place == 0 && use->slot != PLAN_NONE)
        return loop->run->host + loop->run->stage_offset + use->address;
    if (use->place == 0) return run_host_buffer(loop->run, use->buffer) + use->address;
    return (char *)device_arena(loop->run->devices[use->place - 1]) + use->address;
}

static struct unit_arguments unit_arguments_of(const struct loop *loop,
                                               const struct plan_walk_op *op)
{
    const struct plan *const plan = loop->plan;
    const uint32_t shard = op->unit->shard;
    const uint32_t shard_index = plan->job_first_shard[op->unit->job] + shard;
    struct unit_arguments arguments = {
        .job = &plan->jobs.jobs[op->unit->job],
        .shard = &plan->shards[shard_index],
        .tables = &loop->run->tables[shard_index],
        .pass = op->op->pass,
        .minibatch = plan->jobs.jobs[op->unit->job].first_minibatch + op->minibatch,
        .first_row = op->op->first_row,
        .row_count = op->op->row_count,
        .inputs_only = plan->shards[shard_index].inputs_only,
    };
    for (uint32_t i = 0; i < op->use_count; i++) {
        const struct plan_buffer *const buffer = &plan->buffers[op->uses[i].buffer];
        void *const at = address_of(loop, &op->uses[i]);
        switch ((enum plan_buffer_kind)buffer->kind) {
        case BUFFER_STATE: /* a resident head reads the token table in the embedding's state */
            if (buffer->shard == shard)
                arguments.state = at;
            else
                arguments.table = at;
            break;
        case BUFFER_STAGED:
        case BUFFER_PARAMETERS: arguments.state = at; break;
        case BUFFER_TABLE: arguments.table = at; break;
        case BUFFER_TABLE_GRADIENT: arguments.table_gradient = at; break;
        case BUFFER_BATCH: arguments.batch = at; break;
        case BUFFER_LOSS: arguments.loss = at; break;
        case BUFFER_BOUNDARY:
            if (buffer->shard == shard)
                arguments.boundary_in = at;
            else
                arguments.boundary_out = at;
            break;
        case BUFFER_BOUNDARY_GRADIENT:
            if (buffer->shard == shard)
                arguments.gradient_out = at;
            else
                arguments.gradient_in = at;
            break;
        case BUFFER_ACTIVATIONS: arguments.activations = at; break;
        case BUFFER_GRADIENT: arguments.gradient = at; break;
        case BUFFER_NORMS: arguments.norms = at; break;
        case BUFFER_WORKSPACE: arguments.workspace = at; break;
        case BUFFER_KEPT:
        case BUFFER_STORED: /* nothing computes there */
        case BUFFER_KIND_COUNT: assert(false);
        }
    }
    return arguments;
}

static struct device_state *device_state_of(const struct loop *loop, const struct plan_walk_op *op,
                                            uint32_t buffer)
{
    return &loop->states[(size_t)op->device * loop->plan->buffer_count + buffer];
}

/* The minibatch that decides whether a copy is left out by a stop: its own. State that goes back to
 * the host, and on to storage, has that in which it came: if its way in was left out, so is its way
 * back; if not, there may be finished minibatches in it. */
static uint64_t copied_minibatch(const struct loop *loop, const struct plan_walk_op *op)
{
    const struct plan_place_use *const from = &op->uses[0];
    if (op->op->stream == STREAM_WRITE) return loop->staged[from->buffer].arrived;
    if (!plan_use_on_device(from) || loop->plan->buffers[from->buffer].kind != BUFFER_STATE)
        return op->minibatch;
    return device_state_of(loop, op, from->buffer)->arrived;
}

static void enqueue_compute(struct loop *loop, const struct plan_walk_op *op,
                            struct flight *flight)
{
    struct device_stream *const stream = loop->run->streams[op->stream];
    const uint32_t job = op->unit->job;
    if (op->op->pass == PLAN_KEEP) {
        const uint32_t shard = loop->plan->job_first_shard[job] + op->unit->shard;
        const struct keep_call call = {
            .run = loop->run,
            .job = job,
            .minibatch = op->minibatch,
            .tables = &loop->run->tables[shard],
            .state = loop->run->states[shard],
            .kept = loop->run->kept[shard],
        };
        device_call(stream, call_keep, &call, sizeof call, &flight->timing);
        return;
    }
    if (op->op->pass == PLAN_BATCH) {
        const bool held_out = op->unit->pass == PLAN_EVALUATE;
        const struct job *const about = &loop->plan->jobs.jobs[job];
        const struct batch_call call = {
            .run = loop->run,
            .job = job,
            .held_out = held_out,
            .minibatch = op->minibatch,
            .batch_index = held_out ? op->held_out % about->evaluation.minibatches
                                    : about->first_minibatch + op->minibatch,
            .batch = (int32_t *)(void *)address_of(loop, &op->uses[0]),
        };
        device_call(stream, call_batch, &call, sizeof call, &flight->timing);
        return;
    }
    const struct compute_call call = {
        .run = loop->run, .flight = flight, .arguments = unit_arguments_of(loop, op)};
    if (op->op->stream == STREAM_HOST)
        device_call(stream, call_gather, &call, sizeof call, &flight->timing);
    else
        device_compute(stream, call_compute, &call, sizeof call, &flight->timing);
}

static void enqueue_copy(struct loop *loop, const struct plan_walk_op *op, struct flight *flight)
{
    struct device_stream *const stream = loop->run->streams[op->stream];
    const struct plan_place_use *const from = &op->uses[0], *const to = &op->uses[1];
    if (op->op->stream == STREAM_READ || op->op->stream == STREAM_WRITE) {
        const struct plan_place_use *const staged = op->op->stream == STREAM_READ ? to : from;
        run_storage_enqueue(loop->run, op, address_of(loop, staged), copied_minibatch(loop, op),
                            &flight->omitted, &flight->timing);
        return;
    }
    char *const target = address_of(loop, to);
    const struct device_guard guard = {.limit = &loop->run->jobs[op->unit->job].limit,
                                       .value = copied_minibatch(loop, op)};
    if (op->op->stream == STREAM_P2P) {
        device_copy_p2p(stream, target, loop->run->devices[from->place - 1],
                        address_of(loop, from), op->op->bytes, guard, &flight->timing);
        return;
    }
    device_copy_guarded(stream, target, address_of(loop, from), op->op->bytes, guard,
                        &flight->timing);
    if (to->place == 0 && loop->plan->buffers[to->buffer].kind == BUFFER_LOSS) {
        const struct loss_call call = {
            .run = loop->run,
            .device = loop->run->devices[op->device],
            .job = op->unit->job,
            .minibatch = op->minibatch,
            .loss = (const double *)(void *)target,
        };
        const bool held_out = op->unit->pass == PLAN_EVALUATE;
        device_call(stream, held_out ? call_held_out : call_loss, &call, sizeof call, NULL);
    }
}

/* Remember what staged buffers hold. */
static void follow_staged(struct loop *loop, const struct plan_walk_op *op)
{
    for (uint32_t i = 0; i < op->use_count; i++) {
        const struct plan_place_use *const use = &op->uses[i];
        if (loop->plan->buffers[use->buffer].kind != BUFFER_STAGED) continue;
        struct staged_state *const staged = &loop->staged[use->buffer];
        if (use->flags & ACCESS_WRITE)
            *staged = (struct staged_state){.arrived = copied_minibatch(loop, op),
                                            .fresh = op->op->stream == STREAM_D2H};
        else if (op->op->stream == STREAM_WRITE)
            staged->fresh = !(use->flags & ACCESS_RELEASE) && staged->fresh;
    }
}

/* Remember which state on a device is newer than on the host. */
static void follow_state(struct loop *loop, const struct plan_walk_op *op)
{
    for (uint32_t i = 0; i < op->use_count; i++) {
        const struct plan_place_use *const use = &op->uses[i];
        const struct plan_buffer *const buffer = &loop->plan->buffers[use->buffer];
        if (!plan_use_on_device(use) || buffer->kind != BUFFER_STATE) continue;
        struct device_state *const state = device_state_of(loop, op, use->buffer);
        if (use->flags & ACCESS_ACQUIRE)
            *state = (struct device_state){.arrived = op->minibatch, .bytes = buffer->bytes};
        if (op->op->kind == OP_COMPUTE && (use->flags & ACCESS_WRITE)) {
            state->address = use->address;
            state->first_row = op->op->first_row;
            state->row_count = op->op->row_count;
            state->changed_bytes = buffer->bytes;
        } else if (op->op->kind == OP_COPY && i == 0) {
            state->changed_bytes -=
                op->op->bytes < state->changed_bytes ? op->op->bytes : state->changed_bytes;
        }
    }
}

/* Does this copy bring back state that is newer on the device, or a part of its way on to storage? */
static bool saves_state(const struct loop *loop, const struct plan_walk_op *op)
{
    if (op->op->stream == STREAM_WRITE) return loop->staged[op->uses[0].buffer].fresh;
    return op->op->kind == OP_COPY && op->uses[0].place != 0 &&
           loop->plan->buffers[op->uses[0].buffer].kind == BUFFER_STATE &&
           device_state_of(loop, op, op->uses[0].buffer)->changed_bytes > 0;
}

/* Fill what the operation releases with NaN, when all streams are done with it. */
static void poison_released(struct loop *loop, const struct plan_walk_op *op)
{
    struct device_stream *const stream = loop->run->streams[op->stream];
    for (uint32_t i = 0; i < op->use_count; i++) {
        const struct plan_place_use *const use = &op->uses[i];
        const uint64_t offset = loop->plan->accesses[op->op->first_access + i].offset_bytes;
        const bool staged = use->place == 0 && use->slot != PLAN_NONE;
        if (staged && (use->flags & ACCESS_RELEASE) && loop->run->backend->arena_on_host)
            device_poison(stream, address_of(loop, use) - offset, /* the last to use it */
                          loop->plan->buffers[use->buffer].bytes);
        if (!plan_use_on_device(use)) continue;
        const uint32_t device = use->place - 1;
        uint64_t *const users =
            &loop->users[((size_t)device * loop->plan->buffer_count + use->buffer) * STREAM_HOST];
        if (device == op->device) users[op->op->stream] = device_record(stream);
        if (!(use->flags & ACCESS_RELEASE)) continue;
        for (uint32_t kind = STREAM_COMPUTE; kind < plan_device_streams(loop->plan); kind++)
            device_wait(stream, loop->run->streams[plan_stream(loop->plan, device, kind)],
                        users[kind]);
        device_poison(stream, address_of(loop, use) - offset,
                      loop->plan->buffers[use->buffer].bytes);
        memset(users, 0, STREAM_HOST * sizeof *users);
    }
}

static void measure_slots(const struct loop *loop, const struct plan_walk_op *op,
                          struct flight *flight)
{
    for (uint32_t i = 0; i < op->use_count; i++) {
        const struct plan_place_use *const use = &op->uses[i];
        const uint64_t bytes = loop->plan->buffers[use->buffer].bytes;
        if (!plan_use_on_device(use)) continue;
        if (use->flags & ACCESS_ACQUIRE) {
            flight->acquired_bytes += bytes;
            loop->run->slot_uses[(size_t)op->device * loop->plan->slot_count + use->slot] |=
                (uint8_t)(1u << plan_memory_use_of(loop->plan, op->unit, use->buffer));
        }
        if (use->flags & ACCESS_RELEASE) flight->released_bytes += bytes;
    }
}

static void enqueue(struct loop *loop, const struct plan_walk_op *op, bool skip)
{
    struct run *const run = loop->run;
    struct device_stream *const stream = run->streams[op->stream];
    struct flight *const flight = flight_of(loop, op->number);
    *flight = (struct flight){
        .number = op->number,
        .minibatch = op->minibatch,
        .op = op->op,
        .unit = op->unit,
        .stream = op->stream,
        .device = op->device,
        .peer = op->op->stream == STREAM_P2P ? op->uses[0].place - 1 : op->device,
        .op_index = op->op_index,
        .skipped = skip,
        .predicted_s = skip ? 0 : loop->predicted_s[op->op - loop->plan->ops],
    };
    for (uint32_t i = 0; i < op->wait_count; i++) {
        if (op->waits[i] < loop->oldest) continue;
        const struct flight *const other = flight_of(loop, op->waits[i]);
        device_wait(stream, run->streams[other->stream], other->event);
        if (flight->wait_count < FLIGHT_WAITS) flight->waits[flight->wait_count++] = op->waits[i];
    }
    measure_slots(loop, op, flight);
    if (skip) {
        device_call(stream, call_nothing, NULL, 0, &flight->timing); /* for its time */
    } else {
        run_saver_before(run->saver, op);
        if (op->op->kind == OP_COPY)
            enqueue_copy(loop, op, flight);
        else
            enqueue_compute(loop, op, flight);
        if (run->storage) follow_staged(loop, op);
        follow_state(loop, op);
    }
    if (run->options->poison) poison_released(loop, op);
    flight->event = device_record(stream);
    loop->backlog_s[op->stream] += flight->predicted_s;
    loop->next = op->number + 1;
    loop->last[op->unit->job] = op->number;
    const struct plan_unit *const unit = op->unit;
    if (unit->ends_minibatch && op->op_index + 1 == unit->op_count) loop->walked[unit->job]++;
    if (!skip) run_saver_after(run->saver, op, loop->walked[unit->job]);
}

/* --- the loop ---------------------------------------------------------------------------------- */

/* While stopping: is there a job whose last minibatch is not wholly enqueued? */
static bool work_is_left(const struct loop *loop)
{
    for (uint32_t j = 0; j < loop->plan->jobs.count; j++)
        if (loop->walked[j] < loop->run->jobs[j].limit) return true;
    return false;
}

static enum status walk_all(struct loop *loop, struct error *err)
{
    enum status status = STATUS_OK;
    struct plan_walk_op op;
    while (status == STATUS_OK && plan_walk_next(loop->walk, &op)) {
        while (status == STATUS_OK && is_ahead(loop, &op)) status = retire_oldest(loop, err);
        const uint64_t walked = loop->walked[op.unit->job] + 1;
        while (status == STATUS_OK && loop->oldest < loop->next &&
               run_saver_is_ahead(loop->run->saver, &op, walked))
            status = retire_oldest(loop, err);
        if (status != STATUS_OK) break;
        look_at_stop(loop);
        if (loop->stopping && !work_is_left(loop)) break;
        const bool beyond = loop->stopping && op.minibatch >= loop->run->jobs[op.unit->job].limit;
        enqueue(loop, &op, beyond && !saves_state(loop, &op));
    }
    if (status == STATUS_OK && plan_walk_failed(loop->walk))
        status = error_set(err, STATUS_NO_MEMORY, "no memory left to walk the plan");
    while (status == STATUS_OK && loop->oldest < loop->next) status = retire_oldest(loop, err);
    return status;
}

/* A slice of an embedding is a range of rows in each part of the shard's state. */
void run_bring_state(struct run *run, uint32_t device, uint32_t buffer,
                     const struct device_state *state, char *to, struct device_guard guard)
{
    const struct plan *const plan = run->plan;
    const struct plan_buffer *const about = &plan->buffers[buffer];
    const uint32_t shard = plan->job_first_shard[about->job] + about->shard;
    const struct job *const job = &plan->jobs.jobs[about->job];
    const char *const arena = (const char *)device_arena(run->devices[device]);
    const struct state_layout *const whole = &run->tables[shard].state.layout;
    const struct state_layout here =
        state->row_count
            ? memory_state_rows(&job->network, state->row_count, job_state_format(job)) : *whole;
    assert(here.bytes == state->bytes);
    for (uint32_t part = 0; part < STATE_PARTS; part++) {
        if (here.parts[part].bytes == 0) continue;
        device_copy_guarded(run->streams[plan_stream(plan, device, STREAM_D2H)],
                            to + whole->parts[part].offset_bytes +
                                state->first_row * whole->parts[part].row_bytes,
                            arena + state->address + here.parts[part].offset_bytes,
                            here.parts[part].bytes, guard, NULL);
    }
}

static enum status await_d2h(struct loop *loop, uint32_t device, struct error *err)
{
    const uint32_t stream = plan_stream(loop->plan, device, STREAM_D2H);
    const struct flight last = {.stream = stream,
                                .event = device_record(loop->run->streams[stream])};
    return await(loop, &last, err);
}

/* State on a device is put on top of what storage has. */
static enum status bring_stored(struct loop *loop, uint32_t device, uint32_t buffer, uint32_t shard,
                                struct error *err)
{
    struct run *const run = loop->run;
    const struct device_state *const state =
        &loop->states[(size_t)device * loop->plan->buffer_count + buffer];
    struct run_states lent;
    enum status status = run_states_borrow(run, shard, 1, RUN_STATES_WHOLE, &lent, err);
    if (status == STATUS_OK) {
        run_bring_state(run, device, buffer, state, (char *)lent.states[0],
                        (struct device_guard){0});
        status = await_d2h(loop, device, err);
    }
    const enum status saved = run_states_give_back(run, &lent, status == STATUS_OK, err);
    return status != STATUS_OK ? status : saved;
}

/* After a stop: bring back what the plan would have brought back later. */
static enum status save_states(struct loop *loop, struct error *err)
{
    const struct plan *const plan = loop->plan;
    for (uint32_t d = 0; d < plan->hardware.device_count; d++) {
        for (uint32_t b = 0; b < plan->buffer_count; b++) {
            const struct device_state *const state =
                &loop->states[(size_t)d * plan->buffer_count + b];
            const struct plan_buffer *const buffer = &plan->buffers[b];
            if (state->changed_bytes == 0 || state->arrived >= loop->run->jobs[buffer->job].limit ||
                loop->run->jobs[buffer->job].damaged)
                continue;
            const uint32_t shard = plan->job_first_shard[buffer->job] + buffer->shard;
            if (run_is_stored(loop->run, shard)) {
                const enum status status = bring_stored(loop, d, b, shard, err);
                if (status != STATUS_OK) return status;
                continue;
            }
            run_bring_state(loop->run, d, b, state, (char *)loop->run->states[shard],
                            (struct device_guard){0});
        }
        const enum status status = await_d2h(loop, d, err);
        if (status != STATUS_OK) return status;
    }
    return STATUS_OK;
}

/* --- before and after -------------------------------------------------------------------------- */

/* P2P copies of a unit, between the devices of an instance of it. */
static void predict_p2p(struct loop *loop, const struct plan_instance *instance)
{
    const struct plan *const plan = loop->plan;
    const struct plan_unit *const unit = &plan->units[instance->unit];
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
        if (plan->ops[o].stream != STREAM_P2P) continue;
        loop->predicted_s[o] =
            cost_p2p_s(&plan->hardware, instance->peer, instance->device, plan->ops[o].bytes);
        loop->predicted_max_s = fmax(loop->predicted_max_s, loop->predicted_s[o]);
    }
}

static void predict(struct loop *loop)
{
    const struct plan *const plan = loop->plan;
    for (uint32_t i = 0; i < plan->op_count; i++) {
        const struct plan_op *const op = &plan->ops[i];
        double seconds = 0;
        if (op->kind == OP_COPY && plan_stream_is_host(op->stream)) {
            seconds = cost_storage_s(&plan->hardware,
                                     op->stream == STREAM_READ ? STORAGE_READ : STORAGE_WRITE,
                                     op->bytes);
        } else if (op->kind == OP_COPY && op->stream != STREAM_P2P) {
            seconds = cost_copy_s(&plan->hardware, 0,
                                  op->stream == STREAM_H2D ? COPY_H2D : COPY_D2H, op->bytes);
        } else if (op->kind == OP_COMPUTE && op->work != PLAN_NONE) {
            const struct plan_work *const work = &plan->works[op->work];
            const bool host = plan_stream_is_host(op->stream);
            const uint32_t device = host ? hardware_cpu(&plan->hardware) : 0;
            seconds = cost_work_s(&plan->hardware, device, &plan->items[work->first_item],
                                  work->item_count, NULL);
        }
        loop->predicted_s[i] = seconds;
        loop->predicted_max_s = fmax(loop->predicted_max_s, seconds);
    }
    for (uint32_t i = 0; i < plan->instance_count; i++)
        if (plan->instances[i].peer != PLAN_NONE) predict_p2p(loop, &plan->instances[i]);
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const struct plan_segment *const segment = &plan->segments[s];
        double once_s = 0;
        for (uint32_t i = 0; i < segment->instance_count; i++) {
            const struct plan_unit *const unit =
                &plan->units[plan->instances[segment->first_instance + i].unit];
            for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
                if (plan->ops[o].kind == OP_COMPUTE) once_s += loop->predicted_s[o];
        }
        loop->total_s += once_s * segment->repeat_count;
    }
}

static enum status loop_init(struct loop *loop, struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    loop->run = run;
    loop->plan = plan;
    const size_t device_buffers = (size_t)plan->hardware.device_count * plan->buffer_count;
    const size_t users = run->options->poison ? device_buffers * STREAM_HOST : 0;
    const struct {
        size_t count, size;
        void *out; /* the address of a pointer */
    } arrays[] = {
        {WINDOW, sizeof *loop->flights, &loop->flights},
        {plan_stream_count(plan), sizeof *loop->backlog_s, &loop->backlog_s},
        {plan->op_count, sizeof *loop->predicted_s, &loop->predicted_s},
        {plan->jobs.count, sizeof *loop->walked, &loop->walked},
        {plan->jobs.count, sizeof *loop->last, &loop->last},
        {device_buffers, sizeof *loop->states, &loop->states},
        {run->storage ? plan->buffer_count : 0, sizeof *loop->staged, &loop->staged},
        {users, sizeof *loop->users, &loop->users},
    };
    for (size_t i = 0; i < ARRAY_COUNT(arrays); i++) {
        void *memory;
        const enum status status =
            arena_array(&run->arena, arrays[i].count, arrays[i].size, &memory, err);
        if (status != STATUS_OK) return status;
        memcpy(arrays[i].out, &memory, sizeof memory);
    }
    predict(loop);
    return plan_walk_create(plan, NULL, &loop->walk, err);
}

static enum status sum_up_failures(struct run *run, uint32_t job, struct error *err)
{
    struct run_job_result *const result = &run->result->jobs[job];
    const struct error *const failure = &run->jobs[job].failure;
    enum status status = STATUS_OK;
    if (failure->status != STATUS_OK)
        status = arena_string(&run->result->arena, failure->text, &result->failure, err);
    if (result->failure || result->checkpoint_failure) run->result->failed++;
    return status;
}

static enum status sum_up_streams(const struct loop *loop, struct error *err)
{
    struct run_result *const result = loop->run->result;
    const uint32_t streams = plan_stream_count(loop->plan);
    void *busy_s = NULL;
    TRY(arena_array(&result->arena, streams, sizeof *result->busy_s, &busy_s, err));
    result->busy_s = busy_s;
    for (uint32_t s = 0; s < streams; s++) result->busy_s[s] = run_record_busy_s(loop->record, s);
    return STATUS_OK;
}

static enum status sum_up_memory(const struct loop *loop, struct error *err)
{
    const struct run *const run = loop->run;
    struct run_result *const result = run->result;
    const uint32_t devices = loop->plan->hardware.device_count;
    void *memory = NULL;
    TRY(arena_array(&result->arena, devices, sizeof *result->devices, &memory, err));
    result->devices = memory;
    for (uint32_t d = 0; d < devices; d++) {
        const uint8_t *const uses = run->slot_uses + (size_t)d * loop->plan->slot_count;
        result->devices[d].taken = device_memory(run->devices[d]);
        TRY(plan_memory_count(loop->plan, uses, &result->devices[d].memory, err));
    }
    result->host_bytes = run->host_bytes;
    result->pinned = run->pinned;
    return STATUS_OK;
}

/* Results of the jobs, in the result and in the trace. */
static void sum_up(const struct loop *loop, struct trace *trace)
{
    struct run *const run = loop->run;
    trace->complete = true;
    for (uint32_t j = 0; j < loop->plan->jobs.count; j++) {
        const struct job *const job = &loop->plan->jobs.jobs[j];
        struct run_job_result *const result = &run->result->jobs[j];
        struct trace_job *const traced = &trace->jobs[j];
        const uint64_t limit = run->jobs[j].limit; /* none without a stop or a failure */
        uint64_t completed = loop->walked[j] < limit ? loop->walked[j] : limit;
        if (run->jobs[j].damaged) completed = run->jobs[j].losses;
        assert(run->jobs[j].losses == completed);
        /* what a checkpoint that could not be read would have said is not known */
        const bool known = job->first_minibatch == 0 || result->checkpoint > 0;
        result->minibatches = known ? job->first_minibatch + completed : 0;
        if (completed < job->minibatches) {
            trace->complete = false;
            if (run->jobs[j].failure.status == STATUS_OK) run->result->stopped = true;
        }
        traced->minibatches = completed;
        traced->samples = completed * job_samples(job);
        traced->tokens = traced->samples * job->sequence;
        for (uint64_t i = 0; i < result->minibatches; i++)
            if (!isfinite(result->losses[i])) result->nonfinite++;
        if (result->minibatches == 0) continue;
        result->first_loss = result->losses[0];
        result->final_loss = result->losses[result->minibatches - 1];
        traced->has_loss = completed > 0 && isfinite(result->final_loss);
        traced->final_loss = traced->has_loss ? result->final_loss : 0;
    }
    run->result->makespan_s = trace->makespan_s;
}

/* When all has ended: what is to be kept is kept, and what failed is told. */
static enum status keep(struct loop *loop, struct trace *trace, struct error *err)
{
    struct run *const run = loop->run;
    run_record_finish(loop->record);
    run_saver_finish(run->saver);
    run_saver_stop(run->saver);
    sum_up(loop, trace);
    enum status status = sum_up_streams(loop, err);
    if (status == STATUS_OK) status = sum_up_memory(loop, err);
    if (status == STATUS_OK) status = run_keep_weights(run, err);
    for (uint32_t j = 0; j < loop->plan->jobs.count && status == STATUS_OK; j++)
        status = sum_up_failures(run, j, err);
    run_tell_notes(run);
    if (status == STATUS_OK && run->fatal.status != STATUS_OK)
        status = error_set(err, run->fatal.status, "%s", run->fatal.text);
    return status;
}

enum status run_plan(const struct plan *plan, const struct run_options *options,
                     struct run_result *result, struct trace *trace, struct error *err)
{
    struct run run = {.plan = plan, .options = options, .result = result,
                      .lock = PTHREAD_MUTEX_INITIALIZER};
    struct loop loop = {.run = NULL};
    const double setup_s = clock_s();
    enum status status = run_setup(&run, err);
    if (status == STATUS_OK) status = loop_init(&loop, &run, err);
    if (status == STATUS_OK) status = run_saver_create(&run, loop.states, &run.saver, err);
    if (status == STATUS_OK)
        status = run_record_create(plan, options->record_spans, trace, &loop.record, err);
    if (status != STATUS_OK) goto out;

    run.start_s = clock_s();
    result->setup_s = run.start_s - setup_s;
    status = walk_all(&loop, err);
    if (status == STATUS_OK && loop.stopping) status = save_states(&loop, err);
    if (status == STATUS_OK) status = keep(&loop, trace, err);
out:;
    const char *const end = status != STATUS_OK ? err->text : result->stopped ? "stopped" : "complete";
    const double elapsed_s = run.start_s > 0 ? clock_s() - run.start_s : 0;
    run_saver_stop(run.saver); /* before the streams, which may wait for it */
    run_teardown(&run); /* ends the streams before what they point into goes */
    const enum status closed = run_log_close(run.log, end, elapsed_s, err);
    if (status == STATUS_OK) status = closed;
    run_saver_destroy(run.saver);
    run_record_destroy(loop.record);
    plan_walk_destroy(loop.walk);
    pthread_mutex_destroy(&run.lock);
    return status;
}

void run_result_release(struct run_result *result)
{
    arena_release(&result->arena);
    *result = (struct run_result){0};
}
