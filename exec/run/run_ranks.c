#include "exec/run/run_ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/process/clock.h"
#include "base/size.h"
#include "base/try.h"
#include "exec/ranks/rank_place.h"
#include "exec/run/run_callbacks.h"
#include "exec/state/run_faults.h"
#include "exec/state/run_shares.h"
#include "exec/state/run_storage.h"
#include "planner/plan_gang.h"

/* --- who has what ----------------------------------------------------------------------------------- */

/* Notes the ranks of a task's devices. Returns false when a shard's first replica, or a job that is not parallel, has
 * devices of several ranks. */
static bool place_task(struct run *run, const struct plan_task *task)
{
    const struct plan *const plan = run->plan;
    struct run_peers *const peers = run->peers;
    const struct plan_unit *const unit = &plan->units[task->unit];
    const uint32_t first = plan->job_first_shard[unit->job], shard = first + unit->shard;
    const uint32_t first_rank = plan_gang_first_rank(plan, task);
    bool fits = true;
    for (uint32_t m = 0; m < plan_task_members(plan, task); m++) {
        const uint32_t rank = peers->rank_of[plan_task_device(plan, task, m)];
        peers->job_at[(size_t)rank * plan->jobs.count + unit->job] = true;
        if (unit->pass == PLAN_JOIN || shard >= plan->job_first_shard[unit->job + 1]) continue; /* of several shards */
        peers->shard_at[(size_t)rank * plan->shard_count + shard] = true;
        uint32_t *const home =
            &peers->home[peers->first_home[task->gang == PLAN_NONE ? first : shard] + first_rank + m];
        if (*home == PLAN_NONE) *home = rank;
        fits &= *home == rank;
        if (task->gang == PLAN_NONE) peers->home[peers->first_home[shard]] = *home;
    }
    return fits;
}

/* Makes room for rank 0's words on cuts. */
static enum status make_verdicts(struct run *run, struct error *err)
{
    const struct job_set *const jobs = &run->plan->jobs;
    if (!run->options->checkpoints) return STATUS_OK;
    TRY(ARENA_NEW(&run->arena, jobs->count, run->peers->verdicts, err));
    for (uint32_t j = 0; j < jobs->count; j++)
        TRY(ARENA_NEW(&run->arena, jobs->jobs[j].minibatches + 1, run->peers->verdicts[j], err));
    return STATUS_OK;
}

static enum status place_all(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    struct run_peers *const peers = run->peers;
    TRY(ARENA_NEW(&run->arena, plan->hardware.device_count, peers->rank_of, err));
    TRY(ARENA_NEW(&run->arena, plan->hardware.device_count, peers->p2p_rates, err));
    TRY(ARENA_NEW(&run->arena, (size_t)peers->count * plan->jobs.count, peers->job_at, err));
    TRY(ARENA_NEW(&run->arena, plan->jobs.count, peers->cuts, err));
    TRY(make_verdicts(run, err));
    TRY(ARENA_NEW(&run->arena, 1, peers->moved, err));
    TRY(ARENA_NEW(&run->arena, plan->shard_count, peers->has_earlier_best, err));
    TRY(ARENA_NEW(&run->arena, (size_t)peers->count * plan->shard_count, peers->shard_at, err));
    TRY(ARENA_NEW(&run->arena, plan->shard_count + 1, peers->first_home, err));
    for (uint32_t s = 0; s < plan->shard_count; s++)
        peers->first_home[s + 1] = peers->first_home[s] + run_shard_places(plan, s);
    TRY(ARENA_NEW(&run->arena, peers->first_home[plan->shard_count], peers->home, err));
    for (uint32_t d = 0; d < plan->hardware.device_count; d++)
        peers->rank_of[d] = rank_of_device(&plan->hardware, peers->count, d);
    for (uint32_t i = 0; i < peers->first_home[plan->shard_count]; i++) peers->home[i] = PLAN_NONE;
    for (uint32_t i = 0; i < plan->task_count; i++) {
        const struct plan_task *const task = &plan->tasks[i];
        if (place_task(run, task)) continue;
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%s' moves between devices of several ranks, which share no memory",
                         plan->jobs.jobs[plan->units[task->unit].job].name);
    }
    for (uint32_t i = 0; i < peers->first_home[plan->shard_count]; i++) /* no task computes it */
        if (peers->home[i] == PLAN_NONE) peers->home[i] = 0;
    return STATUS_OK;
}

enum status run_ranks_open(struct run *run, struct error *err)
{
    struct ranks *const ranks = run->options->ranks;
    struct run_peers *peers;
    if (!ranks) return STATUS_OK;
    if (strcmp(run->plan->hardware.backend, "host") != 0)
        return error_set(err, STATUS_BAD_INPUT, "a run in several processes needs devices of backend 'host', not '%s'",
                         run->plan->hardware.backend);
    if (run->plan->host_ranges)
        return error_set(err, STATUS_BAD_INPUT,
                         "a run in several processes cannot have jobs that are loaded when their turn comes");
    TRY(rank_place_check(&run->plan->hardware, ranks_count(ranks), err));
    TRY(ARENA_NEW(&run->arena, 1, peers, err));
    *peers = (struct run_peers){.ranks = ranks, .own = ranks_own(ranks), .count = ranks_count(ranks)};
    pthread_cond_init(&peers->changed, NULL);
    run->peers = peers;
    return place_all(run, err);
}

/* --- messages ------------------------------------------------------------------------------------- */

static void take_limit(struct run *run, const struct run_peers_message *message)
{
    pthread_mutex_lock(&run->lock);
    atomic_store(&run->jobs[message->job].limit, message->minibatch);
    if (message->holds) run->peers->stopping = true;
    pthread_cond_broadcast(&run->peers->changed);
    pthread_mutex_unlock(&run->lock);
}

static void take_loss(struct run *run, const struct run_peers_message *message)
{
    const uint64_t ahead = run_minibatches_ahead(&run->plan->jobs.jobs[message->job]);
    pthread_mutex_lock(&run->lock);
    if (message->holds) run->peers->cuts[message->job] = message->minibatch + 1 + ahead;
    pthread_mutex_unlock(&run->lock);
    run_take_loss(run, message->job, message->minibatch, message->loss);
}

static void take_verdict(struct run *run, const struct run_peers_message *message)
{
    struct run_peers *const peers = run->peers;
    pthread_mutex_lock(&run->lock);
    if (peers->verdicts && message->minibatch <= run->plan->jobs.jobs[message->job].minibatches)
        peers->verdicts[message->job][message->minibatch] = message->holds ? PEERS_MADE : PEERS_DROPPED;
    pthread_cond_broadcast(&peers->changed);
    pthread_mutex_unlock(&run->lock);
}

static void take_evaluated(struct run *run, const struct run_peers_message *message)
{
    struct run_progress *const progress = &run->jobs[message->job];
    pthread_mutex_lock(&run->lock);
    progress->judged = message->minibatch + 1;
    if (message->holds) progress->improved = message->minibatch + 1;
    pthread_cond_broadcast(&run->peers->changed);
    pthread_mutex_unlock(&run->lock);
}

static void take_stop(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    run->peers->stop_asked = true;
    pthread_mutex_unlock(&run->lock);
}

/* At rank 0 it ends the job, which says more than the limit alone. */
static void take_failure(struct run *run, uint32_t from, const struct run_peers_failure *failure)
{
    struct error why = {0};
    if (failure->job >= run->plan->jobs.count || (from > 0 && run->peers->own > 0)) return;
    const int length = (int)strnlen(failure->text, sizeof failure->text);
    if (run->peers->own == 0) error_set(&why, STATUS_DEVICE, "rank %" PRIu32 ": %.*s", from, length, failure->text);
    else error_set(&why, STATUS_DEVICE, "%.*s", length, failure->text);
    if (run->peers->own == 0) {
        run_fail_job(run, failure->job, false, &why);
        return;
    }
    pthread_mutex_lock(&run->lock);
    struct run_progress *const progress = &run->jobs[failure->job];
    if (progress->failure.status == STATUS_OK) progress->failure = why;
    progress->damaged |= failure->damages > 0;
    pthread_cond_broadcast(&run->peers->changed);
    pthread_mutex_unlock(&run->lock);
}

static void take_live(const struct run_peers *peers, const struct run_peers_message *message)
{
    if (peers->hear_live) peers->hear_live(peers->live, message);
}

static void hear(void *context, uint32_t from, const void *text, size_t bytes)
{
    struct run *const run = context;
    struct run_peers_message message;
    const bool by_first = from == 0;
    struct run_peers_failure failure;
    if (bytes == sizeof failure) {
        memcpy(&failure, text, sizeof failure);
        if (failure.kind == PEERS_FAILED) take_failure(run, from, &failure);
    }
    if (bytes != sizeof message) return;
    memcpy(&message, text, sizeof message);
    if (message.kind != PEERS_STOP && message.job >= run->plan->jobs.count) return;
    if (message.kind == PEERS_PART && run->peers->own == 0)
        run_take_partial_loss(run, message.job, message.replica, message.minibatch, message.loss);
    else if (message.kind == PEERS_NOT_FINITE)
        run_note_nonfinite(run, message.job, message.minibatch);
    else if (message.kind == PEERS_NORM && run->peers->own == 0)
        run_take_norm(run, message.job, message.minibatch, message.loss, message.holds);
    else if (message.kind == PEERS_HELD_OUT && run->peers->own == 0 &&
             run->plan->jobs.jobs[message.job].evaluation.every > 0)
        run_take_held_out(run, message.job, message.replica, message.minibatch, message.held_out, message.loss);
    else if (message.kind == PEERS_LOSS && by_first)
        take_loss(run, &message);
    else if (message.kind == PEERS_CUT && by_first)
        take_verdict(run, &message);
    else if (message.kind == PEERS_EVALUATED && by_first)
        take_evaluated(run, &message);
    else if (message.kind == PEERS_LIMIT && by_first)
        take_limit(run, &message);
    else if ((message.kind == PEERS_TASK && by_first) || (message.kind == PEERS_OVER && run->peers->own == 0))
        take_live(run->peers, &message);
    else if (message.kind == PEERS_STOP)
        take_stop(run);
}

void run_ranks_listen(struct run *run)
{
    if (run->peers) ranks_listen(run->peers->ranks, hear, run);
}

/* --- jobs that failed before the walk --------------------------------------------------------------- */

/* Of a job; rank: where it failed. */
struct early {
    uint32_t fails, rank;
    char text[256];
};

static enum status move_early(struct run *run, struct early *all, uint32_t rank, bool sends, struct error *err)
{
    const uint32_t other = run->peers->own == 0 ? rank : 0;
    const struct run_peers_data data = {.what = PEERS_EARLY, .number = rank, .other = other, .sends = sends, .at = all,
                                        .bytes = run->plan->jobs.count * sizeof *all};
    return run_peers_move(run, &data, run->peers->moved, err);
}

/* Adds the failures of rank r. */
static void join_early(const struct run *run, struct early *all, const struct early *theirs, uint32_t r)
{
    for (uint32_t j = 0; j < run->plan->jobs.count; j++) {
        if (all[j].fails || !theirs[j].fails) continue;
        all[j] = theirs[j];
        all[j].rank = r;
    }
}

/* Ends jobs that failed at any rank before they begin. */
static void take_early(struct run *run, const struct early *all)
{
    pthread_mutex_lock(&run->lock);
    for (uint32_t j = 0; j < run->plan->jobs.count; j++) {
        struct run_progress *const progress = &run->jobs[j];
        if (!all[j].fails) continue;
        atomic_store(&progress->limit, 0);
        if (progress->failure.status != STATUS_OK) continue;
        error_set(&progress->failure, STATUS_IO, "rank %" PRIu32 ": %.255s", all[j].rank, all[j].text);
    }
    pthread_mutex_unlock(&run->lock);
}

enum status run_ranks_agree(struct run *run, struct error *err)
{
    const uint32_t jobs = run->plan->jobs.count;
    struct early *all, *theirs;
    if (!run->peers || !run->options->keep_going) return STATUS_OK;
    TRY(ARENA_NEW(&run->arena, jobs, all, err));
    TRY(ARENA_NEW(&run->arena, jobs, theirs, err));
    for (uint32_t j = 0; j < jobs; j++) {
        const struct error *const failure = &run->jobs[j].failure;
        all[j] = (struct early){.fails = failure->status != STATUS_OK};
        snprintf(all[j].text, sizeof all[j].text, "%.255s", failure->text);
    }
    if (run->peers->own > 0) TRY(move_early(run, all, run->peers->own, true, err));
    for (uint32_t r = 1; r < run->peers->count && run->peers->own == 0; r++) {
        TRY(move_early(run, theirs, r, false, err));
        join_early(run, all, theirs, r);
    }
    for (uint32_t r = 1; r < run->peers->count && run->peers->own == 0; r++) TRY(move_early(run, all, r, true, err));
    if (run->peers->own > 0) TRY(move_early(run, all, run->peers->own, false, err));
    take_early(run, all);
    return STATUS_OK;
}

/* --- copies --------------------------------------------------------------------------------------- */

struct between_call {
    struct run *run;
    struct device_stream *stream;
    uint32_t job, peer;
    uint64_t minibatch, number, bytes;
    char *at;
    double rate; /* 0: not paced */
    bool *omitted;
    struct device_timing *timing;
};

static bool is_beyond(const struct between_call *call)
{
    return call->minibatch >= atomic_load(&call->run->jobs[call->job].limit);
}

/* The copy begins when both ends are ready, which its bytes tell. */
static void call_receive(void *argument)
{
    const struct between_call *const call = argument;
    struct ranks_request request;
    if (is_beyond(call)) {
        *call->omitted = true;
        return;
    }
    ranks_receive(call->run->peers->ranks, call->peer, call->number, 0, call->at, call->bytes, &request);
    if (!ranks_await(call->run->peers->ranks, &request)) return;
    call->timing->start_s = request.came_s;
    if (call->rate > 0) device_hold(call->stream, request.came_s, (double)call->bytes / call->rate);
}

static void call_send(void *argument)
{
    const struct between_call *const call = argument;
    struct ranks_request request;
    if (is_beyond(call)) return;
    ranks_send(call->run->peers->ranks, call->peer, call->number, 0, call->at, call->bytes, &request);
    (void)ranks_await(call->run->peers->ranks, &request);
}

/* Sends to all other ranks of the job. */
static void call_spread(void *argument)
{
    const struct between_call *const call = argument;
    struct run_peers *const peers = call->run->peers;
    struct ranks_request requests[RANKS_MAX];
    if (is_beyond(call)) return;
    for (uint32_t r = 0; r < peers->count; r++)
        if (r != peers->own && run_job_is_at(call->run, r, call->job))
            ranks_send(peers->ranks, r, call->number, 0, call->at, call->bytes, &requests[r]);
    for (uint32_t r = 0; r < peers->count; r++)
        if (r != peers->own && run_job_is_at(call->run, r, call->job)) (void)ranks_await(peers->ranks, &requests[r]);
}

static void call_take_spread(void *argument)
{
    const struct between_call *const call = argument;
    struct ranks_request request;
    if (is_beyond(call)) return;
    ranks_receive(call->run->peers->ranks, call->peer, call->number, 0, call->at, call->bytes, &request);
    (void)ranks_await(call->run->peers->ranks, &request);
}

static struct between_call call_of(struct run *run, const struct plan_walk_op *op, char *at, uint64_t minibatch)
{
    return (struct between_call){.run = run, .stream = run->streams[op->stream], .job = op->unit->job,
                                 .minibatch = minibatch, .number = op->number, .bytes = op->op->bytes, .at = at};
}

void run_ranks_receive_copy(struct run *run, const struct plan_walk_op *op, void *to, uint64_t minibatch, bool *omitted,
                            struct device_timing *timing)
{
    struct between_call call = call_of(run, op, to, minibatch);
    call.peer = run->peers->rank_of[op->uses[0].place - 1];
    call.rate = run->peers->p2p_rates[op->device];
    call.omitted = omitted;
    call.timing = timing;
    device_call(call.stream, call_receive, &call, sizeof call, timing);
}

void run_ranks_send_copy(struct run *run, const struct plan_walk_op *op, const void *from, uint64_t minibatch)
{
    struct between_call call = call_of(run, op, (char *)(uintptr_t)from, minibatch);
    call.peer = run->peers->rank_of[op->device];
    device_call(call.stream, call_send, &call, sizeof call, NULL);
}

void run_ranks_spread(struct run *run, const struct plan_walk_op *op, void *at)
{
    if (!run->peers || op->op->bytes == 0) return; /* of a chunk in which nothing is trained */
    struct between_call call = call_of(run, op, at, op->minibatch);
    call.peer = run->peers->rank_of[op->device];
    if (call.peer != run->peers->own && !run_job_is_at(run, run->peers->own, call.job)) return;
    device_call(call.stream, call.peer == run->peers->own ? call_spread : call_take_spread, &call, sizeof call, NULL);
}

/* --- states --------------------------------------------------------------------------------------- */

bool run_ranks_awaits_states(const struct run *run, uint32_t job)
{
    return run->peers && run->peers->own > 0 && job_fills_at_once(&run->plan->jobs.jobs[job]);
}

/* Sends or receives a state, or times, between this rank and rank 0. */
static enum status move_state(struct run *run, uint32_t what, uint32_t number, uint32_t rank, void *state,
                              uint64_t bytes, struct error *err)
{
    const bool first = run->peers->own == 0, from_first = what == PEERS_STATES || what == PEERS_STORED;
    const struct run_peers_data data = {.what = what, .number = number, .other = first ? rank : 0,
                                        .sends = first == from_first, .at = state, .bytes = bytes};
    return run_peers_move(run, &data, run->peers->moved, err);
}

/* Returns the bytes of a shard's states on the host: all shares, or the state of the first replica. */
static uint64_t state_bytes(const struct run *run, uint32_t shard, const struct plan_buffer *buffer)
{
    const uint64_t room = size_align(buffer->bytes, RUN_HOST_ALIGNMENT);
    return run_is_split(run, shard) ? (plan_buffer_ranks(run->plan, buffer) - 1) * room + buffer->bytes : buffer->bytes;
}

/* Moves a device's state on storage between its rank and rank 0, through memory. `final`: to rank 0. */
static enum status move_stored(struct run *run, uint32_t shard, uint32_t place, bool final, struct error *err)
{
    const uint32_t home = run_peers_home(run, shard, place), own = run->peers->own;
    const uint32_t number = run->peers->first_home[shard] + place;
    void *const state = run_storage_passing(run);
    if (home == 0 || (own > 0 && own != home)) return STATUS_OK;
    const bool sends = (own > 0) == final;
    if (sends) TRY(run_storage_move(run, shard, place, false, state, err));
    TRY(move_state(run, final ? PEERS_FINAL : PEERS_STORED, number, home, state, run_stored_bytes(run, shard), err));
    return sends ? STATUS_OK : run_storage_move(run, shard, place, true, state, err);
}

/* Distributes the states on storage. */
static enum status scatter_stored(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    for (uint32_t s = 0; s < plan->shard_count; s++) {
        if (!run_is_stored(run, s) || !job_fills_at_once(&plan->jobs.jobs[plan->shards[s].job])) continue;
        for (uint32_t place = 0; place < run_shard_places(plan, s); place++)
            TRY(move_stored(run, s, place, false, err));
    }
    return STATUS_OK;
}

enum status run_ranks_scatter(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    if (run->peers) TRY(scatter_stored(run, err));
    for (uint32_t b = 0; run->peers && b < plan->buffer_count; b++) {
        const struct plan_buffer *const buffer = &plan->buffers[b];
        if (buffer->on_device || buffer->kind != BUFFER_STATE || buffer->variant != 0 ||
            !job_fills_at_once(&run->plan->jobs.jobs[buffer->job]))
            continue;
        const uint32_t shard = plan->job_first_shard[buffer->job] + buffer->shard;
        for (uint32_t r = 1; r < run->peers->count; r++)
            if (run->peers->shard_at[(size_t)r * plan->shard_count + shard] &&
                (run->peers->own == 0 || run->peers->own == r))
                TRY(move_state(run, PEERS_STATES, b, r, run_host_buffer(run, b), state_bytes(run, shard, buffer), err));
    }
    return STATUS_OK;
}

enum status run_ranks_gather(struct run_loop *loop, struct error *err)
{
    struct run *const run = loop->run;
    if (!run->peers) return STATUS_OK;
    TRY(run_peers_await_losses(loop, err));
    TRY(run_ranks_gather_best(run, err));
    for (uint32_t s = 0; s < run->plan->shard_count; s++) {
        const bool split = run_is_split(run, s);
        for (uint32_t i = 0; i < (split ? run_shares_ranks(run, s) : 1); i++) {
            if (run_is_stored(run, s)) {
                TRY(move_stored(run, s, i, true, err));
                continue;
            }
            const uint32_t home = run_peers_home(run, s, i), number = run->peers->first_home[s] + i;
            void *const state = split ? (void *)run_shares_at(run, s, i) : run->states[s];
            const uint64_t bytes = split ? run->plan->buffers[run->state_buffers[s]].bytes
                                         : run->tables[s].state.layout.bytes;
            if (home != 0 && (run->peers->own == 0 || run->peers->own == home))
                TRY(move_state(run, PEERS_FINAL, number, home, state, bytes, err));
        }
    }
    return STATUS_OK;
}

/* --- the end -------------------------------------------------------------------------------------- */

enum status run_ranks_close(struct run *run, enum status status, struct error *err)
{
    struct ranks *const ranks = run->options->ranks;
    if (!ranks) return status;
    if (status == STATUS_OK) return ranks_leave(ranks, NULL, err);
    struct error ignored = {0};
    (void)!ranks_leave(ranks, err, &ignored);
    return status;
}
