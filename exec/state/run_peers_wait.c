/* What a rank waits for: losses of other ranks, and the rank that failed. */
#include "exec/state/run_peers.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "base/try.h"
#include "exec/state/run_in_flight.h"

enum { LOOKS_MAX = 1000 }; /* at data that come soon, before it sleeps */

/* --- waiting --------------------------------------------------------------------------------------- */

static bool may_begin(struct run *run, uint32_t job, uint64_t minibatch, bool waits)
{
    pthread_mutex_lock(&run->lock);
    bool may = minibatch < run_job_end(run, job) || atomic_load(&run->jobs[job].limit) != UINT64_MAX;
    if (!may && waits) run_peers_await_change(run);
    pthread_mutex_unlock(&run->lock);
    return may;
}

enum status run_peers_await_turn(struct run_loop *loop, const struct plan_walk_op *op, struct error *err)
{
    const uint32_t job = op->unit->job;
    if (may_begin(loop->run, job, op->minibatch, false)) return STATUS_OK;
    struct run_watch watch = run_watch_begin(loop);
    do {
        TRY(run_retire_ended(loop, err));
        TRY(run_watch_keep(loop, &watch, err));
    } while (!may_begin(loop->run, job, op->minibatch, true));
    return STATUS_OK;
}

static bool has_losses(struct run *run, const struct run_loop *loop, bool waits)
{
    pthread_mutex_lock(&run->lock);
    bool has = true;
    for (uint32_t j = 0; j < run->plan->jobs.count; j++) {
        const uint64_t limit = atomic_load(&run->jobs[j].limit);
        const uint64_t last = loop->walked[j] < limit ? loop->walked[j] : limit;
        has &= run->jobs[j].damaged || (run->jobs[j].losses >= last && run_has_evaluation(run, j, last));
    }
    if (!has && waits) run_peers_await_change(run);
    pthread_mutex_unlock(&run->lock);
    return has;
}

enum status run_peers_await_losses(struct run_loop *loop, struct error *err)
{
    struct run_watch watch = run_watch_begin(loop);
    while (!has_losses(loop->run, loop, true)) TRY(run_watch_keep(loop, &watch, err));
    return run_peers_check(loop, err);
}

enum status run_peers_move(struct run *run, const struct run_peers_data *data, struct ranks_request *request,
                           struct error *err)
{
    struct ranks *const ranks = run->peers->ranks;
    const uint64_t number = run_peers_number(data->what, data->number);
    uint32_t culprit, looks = 0;
    if (data->sends) ranks_send(ranks, data->other, number, 0, data->at, data->bytes, request);
    else ranks_receive(ranks, data->other, number, 0, data->at, data->bytes, request);
    while (!ranks_arrived(ranks, request)) {
        TRY(ranks_failed(ranks, &culprit, err));
        if (looks++ < LOOKS_MAX) sched_yield();
        else nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    return STATUS_OK;
}

/* --- failures -------------------------------------------------------------------------------------- */

/* Returns true for an operation that waits for the rank: a copy to or from it, or a sum or a pass of a tensor group,
 * which wait for all members. */
static bool waits_for(const struct run_loop *loop, const struct run_flight *flight, uint32_t rank)
{
    const struct run_peers *const peers = loop->run->peers;
    if (flight->op->kind == OP_COLLECTIVE) return true;
    if (flight->op->kind == OP_COMPUTE)
        return loop->plan->jobs.jobs[flight->unit->job].parallel.tensor > 1 && !flight->elsewhere;
    return flight->peer != flight->device &&
           (peers->rank_of[flight->peer] == rank || peers->rank_of[flight->device] == rank);
}

static const struct run_flight *first_waiting(const struct run_loop *loop, uint32_t rank)
{
    for (uint64_t n = loop->oldest; n < loop->next; n++) {
        const struct run_flight *const flight = run_flight_of(loop, n);
        const bool ended = device_reached(loop->run->streams[flight->stream], flight->event);
        if (!ended && waits_for(loop, flight, rank)) return flight;
    }
    return NULL;
}

/* Returns true if a loss has not come, of a minibatch that was enqueued here. */
static bool lacks_loss(struct run *run, const struct run_loop *loop, uint64_t *minibatch)
{
    bool lacks = false;
    pthread_mutex_lock(&run->lock);
    for (uint32_t j = 0; j < run->plan->jobs.count && !lacks; j++) {
        *minibatch = run->jobs[j].losses;
        lacks = *minibatch < loop->walked[j];
    }
    pthread_mutex_unlock(&run->lock);
    return lacks;
}

enum status run_peers_check(struct run_loop *loop, struct error *err)
{
    struct run *const run = loop->run;
    uint32_t rank;
    struct error why = {0}, fatal = {0};
    if (run->peers->own > 0) { /* rank 0 ends the run by itself */
        pthread_mutex_lock(&run->lock);
        fatal = run->fatal;
        pthread_mutex_unlock(&run->lock);
        if (fatal.status != STATUS_OK) return error_set(err, fatal.status, "%s", fatal.text);
    }
    if (ranks_failed(run->peers->ranks, &rank, &why) == STATUS_OK) return STATUS_OK;
    const struct run_flight *const flight = first_waiting(loop, rank);
    char what[PLAN_TEXT_BYTES];
    uint64_t minibatch;
    if (!flight && lacks_loss(run, loop, &minibatch))
        return error_set(err, STATUS_DEVICE, "%s; it had not reached the loss of minibatch %llu", why.text,
                         (unsigned long long)minibatch + 1);
    if (!flight) return error_set(err, STATUS_DEVICE, "%s", why.text);
    return error_set(err, STATUS_DEVICE, "%s; it had not reached '%s' of minibatch %llu", why.text,
                     plan_op_text(loop->plan, flight->unit, flight->op, what),
                     (unsigned long long)flight->minibatch + 1);
}
