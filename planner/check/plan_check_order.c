/*
 * Each unit must be the next one of its job.
 *
 * A minibatch's positions: forward 0 .. S-2, loss, backward S-2 .. F where the first F shards are frozen, update 0 ..
 * S-1 if it clips, evaluate 0 .. S-1 repeatedly when an evaluation follows, keep 0 .. S-1 when weights are kept, of
 * these two those that train; then the next minibatch. LOAD comes
 * before its first unit and STORE after its last, each once per shard, a BATCH unit before a minibatch's first unit. A
 * job that makes kept outputs has only the forward positions 0 .. S-1.
 * Parallel jobs' passes are only counted: their claims order them (plan_check_parallel.c).
 */
#include <inttypes.h>

#include "base/extreme.h"
#include "base/try.h"
#include "models/job/evaluation.h"
#include "models/job/parallel_offload.h"
#include "planner/check/plan_check_walk.h"

/* --- what comes next ------------------------------------------------------------------------ */

/* Returns the number of a minibatch's passes forward and back; of its training units, with updates. */
static uint64_t passed_positions(const struct check_walk *r, uint32_t job)
{
    const uint64_t shards = r->c->jobs[job].shard_count;
    return job_makes_outputs(&r->plan->jobs.jobs[job]) ? shards : 2 * shards - 1 - r->c->jobs[job].frozen;
}
static uint64_t trained_positions(const struct check_walk *r, uint32_t job)
{
    return passed_positions(r, job) + (job_clips(&r->plan->jobs.jobs[job]) ? r->c->jobs[job].trained : 0);
}

/* Returns the job's shard number `n` among those that train. */
static uint32_t trained_shard(const struct check_walk *r, uint32_t job, uint64_t n)
{
    const struct check_shard_facts *facts = &r->c->shards[r->c->jobs[job].first_shard];
    uint32_t shard = 0;
    for (;; shard++) {
        if (!facts[shard].trains) continue;
        if (n-- == 0) return shard;
    }
}

/* Returns the units of the current minibatch, with evaluation and keeping. */
static uint64_t positions_of(const struct check_walk *r, uint32_t job)
{
    const struct job *of = &r->plan->jobs.jobs[job];
    uint64_t behind = 0;
    if (evaluation_follows(of, r->jobs[job].minibatch))
        behind = of->evaluation.minibatches * r->c->jobs[job].shard_count +
                 (of->keep_best ? r->c->jobs[job].trained : 0);
    return trained_positions(r, job) + behind;
}

static void expected_unit(const struct check_walk *r, uint32_t job, uint32_t *shard, uint32_t *pass)
{
    uint64_t shards = r->c->jobs[job].shard_count, position = r->jobs[job].position;
    const uint64_t passed = passed_positions(r, job);
    if (position < passed) {
        *shard = (uint32_t)(position < shards ? position : 2 * shards - 2 - position);
        const bool only_forward = job_makes_outputs(&r->plan->jobs.jobs[job]);
        *pass = position + 1 < shards || only_forward ? PLAN_FORWARD
                : position + 1 == shards ? PLAN_LOSS
                                         : PLAN_BACKWARD;
        return;
    }
    uint64_t trained = trained_positions(r, job), behind = position - trained;
    if (position < trained) { /* the updates of a job that clips */
        *shard = trained_shard(r, job, position - passed);
        *pass = PLAN_UPDATE;
        return;
    }
    const uint64_t evaluated = shards * r->plan->jobs.jobs[job].evaluation.minibatches;
    *shard = behind < evaluated ? (uint32_t)(behind % shards) : trained_shard(r, job, behind - evaluated);
    *pass = behind < evaluated ? PLAN_EVALUATE : PLAN_KEEP;
}

static enum status fail_order(struct check_walk *r, uint32_t job)
{
    uint32_t shard, pass;
    expected_unit(r, job, &shard, &pass);
    return check_fail(r->c, CHECK_RULE_TRAINING, "expected %s of %s shard %u, minibatch %" PRIu64,
                      plan_pass_names[pass], r->plan->jobs.jobs[job].name, shard,
                      r->jobs[job].minibatch);
}

/* --- beginnings ----------------------------------------------------------------------------- */

static enum status begin_training_unit(struct check_walk *r, uint32_t job)
{
    const struct plan_unit *unit = r->c->unit;
    struct check_job_progress *progress = &r->jobs[job];
    uint32_t shard, pass;
    uint64_t minibatches = r->plan->jobs.jobs[job].minibatches;
    if (progress->minibatch >= minibatches)
        return check_fail(r->c, CHECK_RULE_TRAINING,
                          "%s begins minibatch %" PRIu64 " (expected only %" PRIu64 ")",
                          r->plan->jobs.jobs[job].name, progress->minibatch, minibatches);
    expected_unit(r, job, &shard, &pass);
    if (unit->pass != pass || unit->shard != shard) return fail_order(r, job);
    bool ends = progress->position + 1 == positions_of(r, job);
    if (unit->ends_minibatch != ends)
        return check_fail(r->c, CHECK_RULE_FORM, ends ? "does not end the minibatch"
                                                : "ends the minibatch too early");
    if (pass == PLAN_EVALUATE && shard == 0) progress->held_out++;
    return STATUS_OK;
}

static enum status move_unit(struct check_walk *r, uint32_t job, bool in_time, uint8_t flag)
{
    const struct plan_unit *unit = r->c->unit;
    uint8_t *moved = &r->moved[r->c->jobs[job].first_shard + unit->shard];
    if (!in_time) return fail_order(r, job);
    if (*moved & flag)
        return check_fail(r->c, CHECK_RULE_TRAINING, "a second %s of shard %u",
                          plan_pass_names[unit->pass], unit->shard);
    *moved |= flag;
    return STATUS_OK;
}

/* Returns true if an evaluation follows the present minibatch, one of the job's. */
static bool is_evaluated(const struct check_walk *r, uint32_t job)
{
    const struct job *of = &r->plan->jobs.jobs[job];
    return r->jobs[job].minibatch < of->minibatches && evaluation_follows(of, r->jobs[job].minibatch);
}

/* Returns a replica's passes over held-out microbatches until the end of the present minibatch, after which an
 * evaluation follows. */
static uint64_t held_out_until_end(const struct check_walk *r, uint32_t job, uint32_t chunk, uint32_t turn)
{
    const struct job *of = &r->plan->jobs.jobs[job];
    const uint32_t stage = parallel_place(&of->parallel, chunk).stage;
    return (r->jobs[job].held_out + of->evaluation.minibatches) * parallel_microbatches_in_turn(of, stage, turn) *
           parallel_slices(&of->parallel);
}

/* Returns true if all chunks were updated and evaluated in this minibatch. */
static bool evaluated_all(const struct check_walk *r)
{
    const uint32_t job = r->c->unit->job, first = r->c->jobs[job].first_shard;
    for (uint32_t s = 0; s < r->c->jobs[job].shard_count; s++)
        for (uint32_t t = 0; t < r->first_turn[first + s + 1] - r->first_turn[first + s]; t++) {
            const struct check_parallel_progress *progress = check_progress(r, first + s, t);
            if (progress->updates <= r->jobs[job].minibatch || progress->evaluated < held_out_until_end(r, job, s, t))
                return false;
        }
    return true;
}

/* Returns the job's evaluations before the present minibatch's. */
static uint64_t evaluations_before(const struct check_walk *r, uint32_t job)
{
    return r->jobs[job].held_out / r->plan->jobs.jobs[job].evaluation.minibatches;
}

/* Returns true if the weights of all chunks may have been kept after this minibatch's evaluation. */
static bool kept_all(const struct check_walk *r, uint32_t job)
{
    const uint32_t first = r->c->jobs[job].first_shard;
    bool all = true;
    for (uint32_t s = 0; s < r->c->jobs[job].shard_count; s++)
        all = all && check_progress(r, first + s, 0)->kept > evaluations_before(r, job);
    return all;
}

/* The best weights of each chunk are kept once, after all passes of an evaluation. */
static enum status begin_keep(const struct check_walk *r, uint32_t job)
{
    const uint32_t global = r->c->jobs[job].first_shard + r->c->unit->shard;
    if (is_evaluated(r, job) && evaluated_all(r) && check_progress(r, global, 0)->kept == evaluations_before(r, job))
        return STATUS_OK;
    return check_fail(r->c, CHECK_RULE_TRAINING, "no weights of minibatch %" PRIu64 " are to be kept here",
                      r->jobs[job].minibatch);
}

/* The norm of a chunk's gradients comes once before each update of a job that clips. An evaluation follows the chunk's
 * update of a minibatch that is evaluated. */
static enum status begin_parallel_unit(struct check_walk *r, uint32_t job)
{
    const struct plan_unit *unit = r->c->unit;
    const struct job *of = &r->plan->jobs.jobs[job];
    const uint64_t minibatch = r->jobs[job].minibatch;
    if (unit->pass == PLAN_KEEP) return begin_keep(r, job);
    if (unit->pass != PLAN_EVALUATE && unit->pass != PLAN_NORM && unit->pass != PLAN_UPDATE) return STATUS_OK;
    const uint32_t turn = check_parallel_turn(r->plan, r->task);
    const struct check_parallel_progress *progress = check_progress(r, r->c->jobs[job].first_shard + unit->shard, turn);
    const uint64_t due = progress->updates + (unit->pass == PLAN_UPDATE);
    if (unit->pass != PLAN_EVALUATE) {
        if (!job_clips(of) || progress->normed == due) return STATUS_OK;
        return check_fail(r->c, CHECK_RULE_TRAINING, "%" PRIu64 " norms of shard %u came before (expected %" PRIu64 ")",
                          progress->normed, unit->shard, due);
    }
    if (is_evaluated(r, job) && progress->updates == minibatch + 1 &&
        progress->evaluated < held_out_until_end(r, job, unit->shard, turn))
        return STATUS_OK;
    return check_fail(r->c, CHECK_RULE_TRAINING, "no evaluation of minibatch %" PRIu64 " is expected here", minibatch);
}

enum status check_unit_begins(struct check_walk *r)
{
    const struct plan_unit *unit = r->c->unit;
    uint32_t job = unit->job;
    struct check_job_progress *progress = &r->jobs[job];
    if (check_is_parallel(r->c, job)) return begin_parallel_unit(r, job);
    uint64_t minibatches = r->plan->jobs.jobs[job].minibatches;
    bool files = unit->pass == PLAN_OPEN || unit->pass == PLAN_CLOSE;
    bool outside = files || unit->pass == PLAN_LOAD || unit->pass == PLAN_STORE || unit->pass == PLAN_BATCH;
    if (outside && unit->ends_minibatch)
        return check_fail(r->c, CHECK_RULE_FORM, "ends the minibatch too early");
    switch (unit->pass) {
    case PLAN_OPEN:
    case PLAN_CLOSE: return STATUS_OK; /* check_range_turn() knows */
    case PLAN_LOAD:
        return move_unit(r, job, progress->minibatch == 0 && progress->position == 0, CHECK_LOADED);
    case PLAN_STORE:
        return move_unit(r, job, progress->minibatch == minibatches, CHECK_STORED);
    case PLAN_BATCH:
        if (progress->position != 0 || progress->batch_made || progress->minibatch >= minibatches)
            return check_fail(r->c, CHECK_RULE_TRAINING, "no batch is expected here");
        progress->batch_made = true;
        return STATUS_OK;
    default: return begin_training_unit(r, job);
    }
}

/* --- ends ----------------------------------------------------------------------------------- */

/* A minibatch's loss must be on the host before the next minibatch. */
static enum status check_loss(struct check_walk *r, uint32_t job, bool held_out)
{
    if (!r->c->jobs[job].text) return STATUS_OK;
    const struct check_job_progress *progress = &r->jobs[job];
    uint64_t version = held_out ? progress->held_out : progress->minibatch;
    uint32_t loss = held_out ? progress->held_out_loss : progress->loss;
    struct buffer_extent wanted = {.end = sizeof(double),
                                   .thing = check_job_thing(r->c, job, CHECK_THING_LOSS),
                                   .version = version | (held_out ? CHECK_HELD_OUT_VERSION : 0)};
    const struct buffer_extent *found;
    if (loss != PLAN_NONE && buffer_contents_hold(&r->hosts[r->index_of[loss]], &wanted, &found))
        return STATUS_OK;
    return check_fail(r->c, CHECK_RULE_TRAINING, "the loss of %sminibatch %" PRIu64 " is not on the host",
                      held_out ? "held-out " : "", version);
}

/* Returns true if a parallel job's sum of this many microbatches' losses is in the host buffer of a replica, numbered
 * among those that take turns. */
static bool has_sum_of_losses(const struct check_walk *r, uint32_t job, uint32_t buffer, uint32_t turn,
                              uint64_t version)
{
    const struct buffer_extent wanted = {.end = sizeof(double),
                                         .thing = check_job_thing(r->c, job, CHECK_THING_LOSS),
                                         .version = version};
    const struct buffer_extent *found;
    if (buffer == PLAN_NONE) return false;
    const uint32_t copy = plan_buffer_rank(r->plan, &r->plan->buffers[buffer],
                                           turn * r->plan->jobs.jobs[job].parallel.tensor);
    return buffer_contents_hold(&r->hosts[r->index_of[buffer] + copy], &wanted, &found);
}

/* Does the same as check_loss() for a parallel job after `minibatch`. Microbatches, or their slices of tokens, are
 * counted, of each replica that takes turns. */
static enum status check_sum_of_losses(struct check_walk *r, uint32_t job, uint64_t minibatch)
{
    const struct job *of = &r->plan->jobs.jobs[job];
    const uint32_t stage = of->parallel.pipeline - 1;
    for (uint32_t turn = 0; turn < parallel_turns(&of->parallel, stage); turn++)
        if (!has_sum_of_losses(r, job, r->jobs[job].loss, turn,
                               (minibatch + 1) * parallel_microbatches_in_turn(of, stage, turn) *
                                   parallel_slices(&of->parallel)))
            return check_fail(r->c, CHECK_RULE_TRAINING, "the loss of minibatch %" PRIu64 " is not on the host",
                              minibatch);
    return STATUS_OK;
}

/* The loss of a held-out minibatch must be on the host after a replica's last pass. */
static enum status check_sum_of_held_out_losses(struct check_walk *r, uint32_t job, uint32_t turn, uint64_t evaluated)
{
    if (has_sum_of_losses(r, job, r->jobs[job].held_out_loss, turn, CHECK_HELD_OUT_VERSION | evaluated))
        return STATUS_OK;
    return check_fail(r->c, CHECK_RULE_TRAINING, "the loss of a held-out minibatch after minibatch %" PRIu64
                      " is not on the host", r->jobs[job].minibatch);
}

/* Returns true for units that end a minibatch: a chunk's last update, or last evaluation; where hosts update, the last
 * refresh, unless it is delayed; if stages update independently, the backward pass over the first run. */
static bool ends_parallel_minibatch(const struct check_walk *r)
{
    const struct plan_unit *unit = r->c->unit;
    uint32_t first = r->c->jobs[unit->job].first_shard, runs = r->c->jobs[unit->job].shard_count;
    uint64_t least = UINT64_MAX;
    if (is_evaluated(r, unit->job) && r->plan->jobs.jobs[unit->job].keep_best)
        return unit->pass == PLAN_KEEP && kept_all(r, unit->job);
    if (is_evaluated(r, unit->job)) return unit->pass == PLAN_EVALUATE && evaluated_all(r);
    if (parallel_has_own_pace(&r->plan->jobs.jobs[unit->job].parallel))
        return unit->pass == PLAN_BACKWARD && unit->shard == 0;
    const struct job *job = &r->plan->jobs.jobs[unit->job];
    const uint64_t minibatch = r->jobs[unit->job].minibatch;
    if (minibatch >= job->minibatches) return false;
    const bool refreshes = check_is_carried_out(r->c, unit->job) && parallel_offloads(&job->parallel) &&
                           !parallel_drains(job) && parallel_flushes_after(job, minibatch);
    const bool may_end = unit->pass == (refreshes ? PLAN_REFRESH : PLAN_UPDATE);
    for (uint32_t s = 0; may_end && s < runs; s++) {
        const struct check_parallel_progress *progress = check_progress(r, first + s, 0);
        least = min_u64(least, refreshes ? progress->refreshed : progress->updates);
    }
    return may_end && least > minibatch;
}

/* Where sums of gradients take turns, a minibatch's first backward pass makes one, and the last one of the last chunk
 * copies the loss. */
static enum status check_turns_of_sums(struct check_walk *r, const struct job *job, struct check_rank rank,
                                       uint64_t backward)
{
    const struct plan_unit *unit = r->c->unit;
    const uint64_t m = parallel_microbatches_in_turn(job, parallel_place(&job->parallel, rank.chunk).stage, rank.turn);
    if (unit->pass != PLAN_BACKWARD || parallel_gradient_count(job, rank.chunk) == 1) return STATUS_OK;
    if (check_begins_sum(r->c, unit) != (backward % m == 0))
        return check_fail(r->c, CHECK_RULE_TRAINING, "a sum of gradients %s microbatch %" PRIu64 " of a minibatch",
                          backward % m == 0 ? "goes on with" : "begins with", backward % m);
    const bool ends = rank.chunk + 1 == r->c->jobs[unit->job].shard_count && backward % m == m - 1;
    if (check_ends_sum(r->c, unit) != ends)
        return check_fail(r->c, CHECK_RULE_TRAINING, "the loss %s after microbatch %" PRIu64 " of a minibatch",
                          ends ? "does not leave" : "leaves", backward % m);
    return ends ? check_sum_of_losses(r, unit->job, backward / m) : STATUS_OK;
}

static enum status end_parallel_unit(struct check_walk *r)
{
    const struct plan_unit *unit = r->c->unit;
    const struct job *job = &r->plan->jobs.jobs[unit->job];
    uint32_t global = r->c->jobs[unit->job].first_shard + unit->shard;
    uint32_t turns = r->first_turn[global + 1] - r->first_turn[global];
    const struct check_rank rank = {.chunk = unit->shard, .turn = check_parallel_turn(r->plan, r->task)};
    struct check_parallel_progress *progress = check_progress(r, global, rank.turn);
    TRY(check_parallel_slice(r->c, job, progress));
    TRY(check_turns_of_sums(r, job, rank, progress->backward));
    progress->forward += unit->pass == PLAN_FORWARD;
    progress->backward += unit->pass == PLAN_BACKWARD || unit->pass == PLAN_BACKWARD_INPUT;
    progress->weight += unit->pass == PLAN_BACKWARD || unit->pass == PLAN_BACKWARD_WEIGHT;
    for (uint32_t t = 0; t < turns; t++) {
        check_progress(r, global, t)->updates += unit->pass == PLAN_UPDATE;
        check_progress(r, global, t)->normed += unit->pass == PLAN_NORM;
        if (t == rank.turn || !parallel_has_own_pace(&job->parallel))
            check_progress(r, global, t)->batches += unit->pass == PLAN_BATCH;
    }
    progress->gathered += unit->pass == PLAN_GATHER;
    progress->reduced += unit->pass == PLAN_REDUCE;
    progress->evaluated += unit->pass == PLAN_EVALUATE;
    progress->refreshed += unit->pass == PLAN_REFRESH && !check_is_reset(r->c);
    progress->kept += unit->pass == PLAN_KEEP;
    TRY(check_parallel_so_far(r->c, job, rank, progress));
    const uint64_t passes = parallel_slices(&job->parallel) *
                            parallel_microbatches_in_turn(job, parallel_place(&job->parallel, unit->shard).stage,
                                                          rank.turn);
    if (unit->pass == PLAN_EVALUATE && unit->shard + 1 == r->c->jobs[unit->job].shard_count &&
        progress->evaluated % passes == 0)
        TRY(check_sum_of_held_out_losses(r, unit->job, rank.turn, progress->evaluated));
    bool ends = ends_parallel_minibatch(r);
    if (ends != unit->ends_minibatch)
        return check_fail(r->c, CHECK_RULE_FORM, ends ? "does not end the minibatch"
                                                : "ends the minibatch too early");
    if (check_is_carried_out(r->c, unit->job)) {
        const bool last = unit->pass == PLAN_UPDATE && unit->shard + 1 == r->c->jobs[unit->job].shard_count &&
                          parallel_gradient_count(job, unit->shard) == 1;
        const bool asynchronous = pipeline_is_asynchronous(job->parallel.schedule); /* the last stage is ahead */
        if (asynchronous && last) TRY(check_sum_of_losses(r, unit->job, progress->updates - 1));
        if (!asynchronous && ends) TRY(check_sum_of_losses(r, unit->job, r->jobs[unit->job].minibatch));
    }
    if (ends && is_evaluated(r, unit->job)) r->jobs[unit->job].held_out += job->evaluation.minibatches;
    r->jobs[unit->job].minibatch += ends;
    return STATUS_OK;
}

enum status check_unit_ends(struct check_walk *r)
{
    const struct plan_unit *unit = r->c->unit;
    struct check_job_progress *progress = &r->jobs[unit->job];
    r->c->op = NULL;
    if (check_is_parallel(r->c, unit->job)) return end_parallel_unit(r);
    bool last = unit->shard + 1 == r->c->jobs[unit->job].shard_count;
    if (unit->pass == PLAN_LOAD || unit->pass == PLAN_STORE || unit->pass == PLAN_BATCH || unit->pass == PLAN_OPEN ||
        unit->pass == PLAN_CLOSE)
        return STATUS_OK;
    if (unit->pass == PLAN_EVALUATE && last) TRY(check_loss(r, unit->job, true));
    progress->position++;
    if (!unit->ends_minibatch) return STATUS_OK;
    if (job_makes_outputs(&r->plan->jobs.jobs[unit->job])) TRY(check_outputs_made(r, unit->job));
    else TRY(check_loss(r, unit->job, false));
    progress->position = 0;
    progress->batch_made = false;
    progress->minibatch++;
    return STATUS_OK;
}

enum status check_job_done(struct check_walk *r, uint32_t job)
{
    const struct job *about = &r->plan->jobs.jobs[job];
    const struct check_job_progress *progress = &r->jobs[job];
    uint32_t first = r->c->jobs[job].first_shard;
    for (uint32_t s = 0; check_is_parallel(r->c, job) && s < r->c->jobs[job].shard_count; s++)
        for (uint32_t t = 0; t < r->first_turn[first + s + 1] - r->first_turn[first + s]; t++)
            TRY(check_parallel_done(r->c, about, (struct check_rank){s, t}, check_progress(r, first + s, t)));
    if (progress->position > 0) {
        uint32_t shard, pass;
        expected_unit(r, job, &shard, &pass);
        return check_fail(r->c, CHECK_RULE_TRAINING,
                          "%s ends in minibatch %" PRIu64 ", before %s of shard %u", about->name,
                          progress->minibatch, plan_pass_names[pass], shard);
    }
    if (plan_has_range(r->plan, job) && progress->closed < r->c->jobs[job].shard_count)
        return check_fail(r->c, CHECK_RULE_TRAINING, "%s is in host memory at the end (%u of %u shards are closed)",
                          about->name, progress->closed, r->c->jobs[job].shard_count);
    if (progress->minibatch != about->minibatches)
        return check_fail(r->c, CHECK_RULE_TRAINING,
                          "%s ends after %" PRIu64 " of %" PRIu64 " minibatches", about->name,
                          progress->minibatch, about->minibatches);
    return STATUS_OK;
}
