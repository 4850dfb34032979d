#include "exec/state/run_peers.h"

#include <stdio.h>

#include "base/process/clock.h"
#include "exec/state/run_shares.h"
#include "models/job/evaluation.h"

static const double POLL_S = 0.05;

uint32_t run_shard_places(const struct plan *plan, uint32_t shard)
{
    const struct parallel *const p = &plan->jobs.jobs[plan->shards[shard].job].parallel;
    const uint32_t chunk = shard - plan->job_first_shard[plan->shards[shard].job];
    return parallel_is_set(p) ? parallel_replicas(p, parallel_place(p, chunk).stage) * p->tensor : 1;
}

bool run_peers_has_values(const struct run *run, uint32_t rank, uint32_t shard)
{
    const uint32_t places = run_is_split(run, shard) ? run_shares_ranks(run, shard) : 1;
    bool has = false;
    for (uint32_t i = 0; i < places; i++) has |= run_peers_home(run, shard, i) == rank;
    return has;
}

bool run_is_here(const struct run *run, const struct plan_walk_op *op)
{
    if (!run->peers) return true;
    if (op->op->kind == OP_COMPUTE && op->op->pass == PLAN_BATCH)
        return run_job_is_at(run, run->peers->own, op->unit->job);
    return run_has_device(run, op->device);
}

uint64_t run_job_end(const struct run *run, uint32_t job)
{
    const struct job *const about = &run->plan->jobs.jobs[job];
    const uint64_t round = parallel_round(&about->parallel);
    const uint64_t begun = run->peers ? run->jobs[job].losses + run_minibatches_ahead(about) : run->jobs[job].begun;
    return (begun + round - 1) / round * round;
}

void run_end_job(struct run *run, uint32_t job, bool all)
{
    struct run_progress *const progress = &run->jobs[job];
    const uint64_t end = run_job_end(run, job);
    if (run->peers && run->peers->own > 0) return; /* rank 0 says when */
    if (end < atomic_load(&progress->limit)) atomic_store(&progress->limit, end);
    if (!run->peers) return;
    const struct run_peers_message message = {
        .kind = PEERS_LIMIT, .job = job, .holds = all, .minibatch = atomic_load(&progress->limit)};
    ranks_tell_all(run->peers->ranks, &message, sizeof message);
}

void run_peers_await_change(struct run *run)
{
    clock_wait_until(&run->peers->changed, &run->lock, clock_s() + POLL_S);
}

void run_peers_tell_failure(struct run *run, uint32_t job, bool damages, const struct error *why)
{
    struct run_peers_failure failure = {.kind = PEERS_FAILED, .job = job, .damages = damages};
    snprintf(failure.text, sizeof failure.text, "%.235s", why->text);
    if (run->peers->own > 0) ranks_tell(run->peers->ranks, 0, &failure, sizeof failure);
    else ranks_tell_all(run->peers->ranks, &failure, sizeof failure);
}

void run_peers_ask_stop(struct run *run)
{
    const struct run_peers_message message = {.kind = PEERS_STOP};
    if (run->peers->stop_asked) return;
    run->peers->stop_asked = true;
    ranks_tell(run->peers->ranks, 0, &message, sizeof message);
}

bool run_has_evaluation(const struct run *run, uint32_t job, uint64_t minibatches)
{
    const struct job *const about = &run->plan->jobs.jobs[job];
    const struct run_job_result *const result = &run->result->jobs[job];
    const struct run_progress *const progress = &run->jobs[job];
    if (run->peers->own > 0 || minibatches == 0 || progress->held_out_failed || progress->damaged) return true;
    if (about->evaluation.every == 0 || !evaluation_follows(about, minibatches - 1)) return true;
    const uint64_t count = result->evaluation_count;
    return count > 0 && result->evaluations[count - 1].step >= about->first_minibatch + minibatches;
}
