/*
 * Operations in flight are in a ring:
 *
 *     oldest                                   next
 *       |    number n: its stream, the event     |
 *       v    that says n has ended, its times    v
 *     [ n-5 ][ n-4 ][ n-3 ][ n-2 ][ n-1 ][  n  ]           RUN_WINDOW entries
 *
 * To wait for operation m is to wait for the event of flight m; an operation before the ring has ended. Flights retire
 * in plan order, when their spans are recorded. The walk runs ahead until the ring is full or a stream has
 * BACKLOG_MAX_S of predicted work: far enough for devices that drift apart, and near enough that a stopped run ends
 * soon.
 *
 * When no stream makes progress for a minute, or for 20 times the longest predicted operation, the run ends with the
 * names of the operations that wait for each other.
 */
#include "exec/state/run_in_flight.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/process/clock.h"
#include "base/try.h"
#include "exec/state/run_faults.h"
#include "exec/state/run_peers.h"
#include "exec/state/run_saver.h"

enum { AHEAD_MIN = 64 };
static const double BACKLOG_MAX_S = 10;
static const double POLL_S = 0.1; /* of checks of the stop flag, progress and stalls */
static const double STALL_MIN_S = 60, STALL_FACTOR = 20;

/* Returns true also when there is no room for the work of `op`. */
static bool is_ahead(const struct run_loop *loop, const struct plan_walk_op *op)
{
    const struct device_stream *const stream = loop->run->streams[op->stream];
    const uint64_t queued = device_record(stream) - device_passed(stream);
    /* waits, the work, the loss's call; with poison, for each access two waits and the filling */
    const uint64_t wanted = op->wait_count + 2 + 3 * (uint64_t)op->use_count;
    assert(wanted < DEVICE_QUEUE_MAX / 2);
    const uint64_t in_flight = loop->next - loop->oldest + op->join_count - 1;
    if (op->join_at > 0) return false; /* the first member made room; now nobody may wait for it */
    return in_flight >= RUN_WINDOW || queued + wanted > DEVICE_QUEUE_MAX ||
           (in_flight > AHEAD_MIN && loop->backlog_s[op->stream] > BACKLOG_MAX_S);
}

/* --- waiting ------------------------------------------------------------------------------------ */

static bool has_ended(const struct run_loop *loop, uint64_t number)
{
    if (number < loop->oldest) return true;
    const struct run_flight *const flight = run_flight_of(loop, number);
    return device_reached(loop->run->streams[flight->stream], flight->event);
}

void run_look_at_stop(struct run_loop *loop)
{
    struct run *const run = loop->run;
    if (loop->stopping) return;
    const bool asked = run->options->stop && *run->options->stop, decides = !run->peers || run->peers->own == 0;
    pthread_mutex_lock(&run->lock);
    if (decides) {
        loop->stopping = asked || run->fatal.status != STATUS_OK || (run->peers && run->peers->stop_asked);
        for (uint32_t j = 0; j < loop->plan->jobs.count && loop->stopping; j++) run_end_job(run, j, true);
    } else {
        if (asked) run_peers_ask_stop(run);
        loop->stopping = run->peers->stopping;
    }
    pthread_mutex_unlock(&run->lock);
}

static void tell_progress(struct run_loop *loop)
{
    struct run *const run = loop->run;
    const double now_s = clock_s();
    if (now_s - loop->polled_s < POLL_S) return;
    loop->polled_s = now_s;
    run_look_at_stop(loop);
    run_tell_notes(run);
    if (!run->options->on_progress) return;
    pthread_mutex_lock(&run->lock);
    const uint32_t job = run->last_job;
    const double loss = run->last_loss;
    pthread_mutex_unlock(&run->lock);
    run->options->on_progress(run->options->context, loop->done_s, loop->total_s, job, loss);
}

static uint64_t all_passed(const struct run_loop *loop)
{
    uint64_t sum = 0;
    for (uint32_t s = 0; s < plan_stream_count(loop->plan); s++)
        if (loop->run->streams[s]) sum += device_passed(loop->run->streams[s]);
    return sum;
}

/* Reports "a shard 3 backward waits for a shard 3 backward copy in", for the first operation of each stream. */
static enum status report_stall(const struct run_loop *loop, double waited_s, struct error *err)
{
    char text[900];
    size_t used = 0;
    uint32_t named = 0;
    for (uint32_t s = 0; s < plan_stream_count(loop->plan); s++) {
        const struct run_flight *first = NULL;
        for (uint64_t n = loop->oldest; n < loop->next && !first; n++)
            if (run_flight_of(loop, n)->stream == s && !has_ended(loop, n)) first = run_flight_of(loop, n);
        if (!first || used > sizeof text - 2 * PLAN_TEXT_BYTES - 32) continue;
        char what[PLAN_TEXT_BYTES];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s'%s'", named++ ? ", " : "",
                                 plan_op_text(loop->plan, first->unit, first->op, what));
        const struct run_flight *blocker = NULL;
        for (uint32_t i = 0; i < first->wait_count && !blocker; i++)
            if (!has_ended(loop, first->waits[i])) blocker = run_flight_of(loop, first->waits[i]);
        if (blocker)
            used += (size_t)snprintf(text + used, sizeof text - used, " waits for '%s'",
                                     plan_op_text(loop->plan, blocker->unit, blocker->op, what));
        else
            used += (size_t)snprintf(text + used, sizeof text - used, " does not end");
    }
    return error_set(err, STATUS_DEVICE, "nothing has ended for %.3g s: %s", waited_s, text);
}

/* Returns true if the job is complete, its work has ended, and no device has newer state. */
static bool is_home(const struct run_loop *loop, uint32_t job)
{
    const struct plan *const plan = loop->plan;
    bool home = loop->walked[job] == plan->jobs.jobs[job].minibatches &&
                loop->last[job] < loop->oldest;
    const size_t count = (size_t)plan->hardware.device_count * plan->buffer_count;
    for (size_t i = 0; i < count && home; i++)
        home = plan->buffers[i % plan->buffer_count].job != job || loop->states[i].changed_bytes == 0;
    return home;
}

/* Ends the jobs of a lost device, where a reached event means nothing, unless they no longer used it. */
static void look_at_devices(struct run_loop *loop)
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

static double patience_s(const struct run_loop *loop)
{
    const double told_s = loop->run->options->stall_s;
    return told_s > 0 ? told_s : fmax(STALL_MIN_S, STALL_FACTOR * loop->predicted_max_s);
}

/* Returns true if an operation has not ended; else the run waits for other ranks, which look at their own. */
static bool is_under_way(const struct run_loop *loop)
{
    for (uint64_t n = loop->oldest; n < loop->next; n++)
        if (!has_ended(loop, n)) return true;
    return false;
}

struct run_watch run_watch_begin(const struct run_loop *loop)
{
    return (struct run_watch){.changed_s = clock_s(), .passed = all_passed(loop)};
}

enum status run_watch_keep(struct run_loop *loop, struct run_watch *watch, struct error *err)
{
    tell_progress(loop);
    const uint64_t passed = all_passed(loop);
    if (passed != watch->passed) watch->changed_s = clock_s();
    watch->passed = passed;
    const double waited_s = clock_s() - watch->changed_s;
    if (loop->run->peers) TRY(run_peers_check(loop, err));
    if (waited_s > patience_s(loop) && is_under_way(loop)) return report_stall(loop, waited_s, err);
    look_at_devices(loop);
    return STATUS_OK;
}

enum status run_await_flight(struct run_loop *loop, const struct run_flight *flight, struct error *err)
{
    struct device_stream *const stream = loop->run->streams[flight->stream];
    struct run_watch watch = run_watch_begin(loop);
    while (!device_synchronize(stream, flight->event, fmin(POLL_S, patience_s(loop)))) {
        TRY(run_watch_keep(loop, &watch, err));
    }
    look_at_devices(loop);
    return STATUS_OK;
}

/* --- retiring ----------------------------------------------------------------------------------- */

static void record_flight(struct run_loop *loop, const struct run_flight *flight)
{
    const struct plan_op *const op = flight->op;
    if (flight->elsewhere) return;
    /* A GPU's pass has the times of events, so its exchanges follow it without looking at the host's clock. */
    const bool follows = flight->within && !loop->run->backend->arena_on_host;
    const double begun_s = flight->timing.start_s - loop->run->start_s;
    const double start_s = follows ? loop->ended_s[flight->stream] + flight->timing.waited_s : fmax(0, begun_s);
    const double ended_s = flight->within ? start_s + flight->exchanged_s
                                          : flight->timing.end_s - flight->exchanged_s - loop->run->start_s;
    const double waited_s = op->kind == OP_COLLECTIVE ? fmin(flight->timing.waited_s, start_s) : 0;
    const double end_s = fmax(0, ended_s);
    loop->ended_s[flight->stream] = end_s;
    struct run_ended ended = {.slot_count = flight->peer == flight->device ? 1 : 2};
    ended.has_span = !flight->skipped && !flight->omitted && !flight->timing.left_out;
    ended.slots[0] = (struct run_slots){
        .start_s = start_s,
        .end_s = end_s,
        .device = flight->device,
        .acquired_bytes = flight->acquired_bytes,
        .released_bytes = flight->peer == flight->device ? flight->released_bytes : 0,
    };
    ended.slots[1] = (struct run_slots){
        .start_s = start_s,
        .end_s = end_s,
        .device = flight->peer,
        .released_bytes = flight->released_bytes,
    };
    ended.span = (struct trace_span){
        .start_s = start_s,
        .end_s = end_s,
        .waited_s = waited_s,
        .number = flight->number,
        .bytes = op->kind == OP_COMPUTE ? 0 : op->bytes,
        .minibatch = (uint32_t)flight->walked,
        .stream = flight->stream,
        .job = flight->unit->job,
        .shard = flight->unit->shard,
        .kind = op->kind,
        .pass = op->kind == OP_COMPUTE ? op->pass : (uint8_t)flight->unit->pass,
        .op_index = (uint8_t)(flight->op_index < 255 ? flight->op_index : 255),
    };
    if (loop->ended && run_has_device(loop->run, flight->device)) /* batches are read by every rank of a job */
        spool_write(loop->ended, &ended, sizeof ended);
    if (!loop->ended || loop->run->peers->own > 0) run_record_ended(loop->record, &ended);
}

enum status run_retire_flight(struct run_loop *loop, struct error *err)
{
    const struct run_flight *const flight = run_flight_of(loop, loop->oldest);
    TRY(run_await_flight(loop, flight, err));
    record_flight(loop, flight);
    loop->backlog_s[flight->stream] -= flight->predicted_s;
    if (flight->op->kind == OP_COMPUTE) loop->done_s += flight->predicted_s;
    loop->oldest++;
    tell_progress(loop);
    return STATUS_OK;
}

enum status run_retire_ended(struct run_loop *loop, struct error *err)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK && loop->oldest < loop->next && has_ended(loop, loop->oldest))
        status = run_retire_flight(loop, err);
    return status;
}

enum status run_make_room(struct run_loop *loop, const struct plan_walk_op *op, struct error *err)
{
    enum status status = loop->run->peers ? run_peers_await_turn(loop, op, err) : STATUS_OK;
    while (status == STATUS_OK && is_ahead(loop, op)) status = run_retire_flight(loop, err);
    const uint64_t walked = loop->walked[op->unit->job] + 1;
    while (status == STATUS_OK && loop->oldest < loop->next &&
           run_saver_is_ahead(loop->run->saver, op, walked))
        status = run_retire_flight(loop, err);
    return status;
}
