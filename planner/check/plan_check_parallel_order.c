/* Devices of units, versions that passes claim, and the check that all passes were done. */
#include <inttypes.h>

#include "base/extreme.h"
#include "models/job/parallel_memory.h"
#include "models/job/parallel_offload.h"
#include "planner/check/plan_checker.h"

/* --- where units run ------------------------------------------------------------------------ */

/* Returns true for the stage's replicas [first, first + count), device by device. */
static bool is_of_stage(const struct checker *c, uint32_t job, uint32_t gang_index, uint32_t stage, uint32_t first,
                        uint32_t count)
{
    const struct parallel *p = &c->plan->jobs.jobs[job].parallel;
    const struct plan_gang *gang = &c->plan->gangs[gang_index];
    uint32_t begin = p->tensor * ((uint32_t)parallel_replicas_before(p, stage) + first);
    if (gang->extents[AXIS_TENSOR] != p->tensor || gang->extents[AXIS_DATA] != count || gang->extents[AXIS_ENDS] != 1)
        return false;
    for (uint32_t i = 0; i < p->tensor * count; i++)
        if (c->plan->gang_devices[gang->first + i] != plan_rank_device(c->plan, job, begin + i)) return false;
    return true;
}

/* Returns true if the gang is the stage's; for passes of replicas in turn, that replica's. */
static bool is_stage(const struct checker *c, uint32_t job, uint32_t gang_index, uint32_t stage, bool passes)
{
    const struct parallel *p = &c->plan->jobs.jobs[job].parallel;
    if (!passes || parallel_turns(p, stage) == 1)
        return is_of_stage(c, job, gang_index, stage, 0, parallel_replicas(p, stage));
    for (uint32_t d = 0; d < parallel_turns(p, stage); d++)
        if (is_of_stage(c, job, gang_index, stage, d, 1)) return true;
    return false;
}

/* Does the same for the chunk's stage, and remembers results: stages have few gangs and many tasks. */
static bool is_on_stage_of(const struct checker *c, uint32_t job, uint32_t gang_index, uint32_t chunk, bool passes)
{
    uint32_t *right = &c->shards[c->plan->job_first_shard[job] + chunk].right_gang[passes];
    if (*right == gang_index + 1) return true;
    uint32_t stage = parallel_place(&c->plan->jobs.jobs[job].parallel, chunk).stage;
    if (!is_stage(c, job, gang_index, stage, passes)) return false;
    *right = gang_index + 1;
    return true;
}

/* Returns true if the gang is the first stage followed by the last, in groups with a part of both. */
static bool is_ends(const struct checker *c, uint32_t job, uint32_t gang_index)
{
    const struct parallel *p = &c->plan->jobs.jobs[job].parallel;
    const struct plan_gang *gang = &c->plan->gangs[gang_index];
    uint32_t first = p->tensor * parallel_replicas(p, 0), last = p->tensor * parallel_replicas(p, p->pipeline - 1);
    uint32_t begin = p->tensor * (uint32_t)parallel_replicas_before(p, p->pipeline - 1); /* of the last */
    uint32_t groups = parallel_joined_groups(p);
    if (gang->extents[AXIS_TENSOR] != p->tensor || gang->extents[AXIS_DATA] != groups ||
        plan_gang_size(gang) != first + last)
        return false;
    for (uint32_t i = 0; i < first + last; i++)
        if (c->plan->gang_devices[gang->first + i] != plan_rank_device(c->plan, job, i < first ? i : begin + i - first))
            return false;
    return true;
}

/* Returns true for units of one replica where these take turns. A replica with its own pace reads its own
 * minibatches. */
static bool is_in_turn(const struct parallel *p, uint32_t pass)
{
    return pass == PLAN_FORWARD || pass == PLAN_BACKWARD || pass == PLAN_EVALUATE ||
           (pass == PLAN_BATCH && parallel_has_own_pace(p));
}

uint32_t check_parallel_turn(const struct plan *plan, const struct plan_task *task)
{
    const struct plan_unit *unit = &plan->units[task->unit];
    const struct parallel *p = &plan->jobs.jobs[unit->job].parallel;
    uint32_t stage = parallel_place(p, unit->shard).stage;
    if (!is_in_turn(p, unit->pass) || parallel_turns(p, stage) == 1) return 0;
    uint32_t turn = 0, begin = p->tensor * (uint32_t)parallel_replicas_before(p, stage);
    while (plan_rank_device(plan, unit->job, begin + p->tensor * turn) != task->device) turn++; /* is_stage() */
    return turn;
}

struct check_rank check_parallel_rank(const struct plan *plan, const struct plan_task *task, uint32_t place)
{
    const struct plan_unit *unit = &plan->units[task->unit];
    const struct parallel *p = &plan->jobs.jobs[unit->job].parallel;
    uint32_t replica = place / p->tensor, first = parallel_replicas(p, 0);
    struct check_rank rank = {.chunk = unit->shard};
    if (unit->pass == PLAN_JOIN && replica >= first) {
        rank.chunk = parallel_chunks(p) - 1;
        replica -= first;
    }
    if (is_in_turn(p, unit->pass)) rank.turn = check_parallel_turn(plan, task);
    else if (parallel_turns(p, parallel_place(p, rank.chunk).stage) > 1) rank.turn = replica;
    return rank;
}

/* Returns the chunk that the unit fetches from, or PLAN_NONE. */
static uint32_t peer_chunk(const struct checker *c, const struct plan_unit *unit)
{
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
        if (c->plan->ops[o].stream == STREAM_P2P)
            return unit->pass == PLAN_FORWARD || unit->pass == PLAN_EVALUATE ? unit->shard - 1 : unit->shard + 1;
    return PLAN_NONE;
}

enum status check_parallel_place(struct checker *c, const struct plan_task *task, uint32_t index)
{
    const struct plan_unit *unit = &c->plan->units[task->unit];
    const struct job *job = &c->plan->jobs.jobs[unit->job];
    const struct parallel *p = &job->parallel;
    uint32_t stage = parallel_place(p, unit->shard).stage, from = peer_chunk(c, unit);
    if (unit->pass == PLAN_JOIN) {
        if (task->gang != PLAN_NONE && task->peer == PLAN_NONE && is_ends(c, unit->job, task->gang))
            return STATUS_OK;
        return check_fail(c, CHECK_RULE_FORM, "task %u of %s is not on the devices of the first and the last stage",
                          index, job->name);
    }
    if (task->gang == PLAN_NONE || !is_on_stage_of(c, unit->job, task->gang, unit->shard, is_in_turn(p, unit->pass)))
        return check_fail(c, CHECK_RULE_FORM, "task %u of %s shard %u is not on the devices of stage %u", index,
                          job->name, unit->shard, stage);
    if ((from == PLAN_NONE) != (task->peer == PLAN_NONE))
        return check_fail(c, CHECK_RULE_FORM, "task %u of %s shard %u %s", index, job->name, unit->shard,
                          from == PLAN_NONE ? "has a peer, but its unit copies nothing between devices"
                                            : "copies between devices and has no peer");
    if (from == PLAN_NONE) return STATUS_OK;
    if (from >= parallel_chunks(p) || !is_on_stage_of(c, unit->job, task->peer, from, true))
        return check_fail(c, CHECK_RULE_FORM, "task %u of %s shard %u copies from devices that are not of the %s stage",
                          index, job->name, unit->shard, from < unit->shard ? "previous" : "next");
    return STATUS_OK;
}

/* --- order ---------------------------------------------------------------------------------- */

/* Returns the microbatch after n passes on this replica, m to a minibatch. */
static uint64_t microbatch_of(const struct job *job, struct check_rank rank, uint32_t pass, uint64_t n, uint64_t m)
{
    uint32_t slices = parallel_slices(&job->parallel), stage = parallel_place(&job->parallel, rank.chunk).stage;
    uint32_t turns = parallel_turns(&job->parallel, stage);
    n = n - n % slices + parallel_slice_of_pass(&job->parallel, n, pass != PLAN_FORWARD && pass != PLAN_EVALUATE);
    if (turns == 1) return n;
    if (parallel_has_own_pace(&job->parallel)) return n * turns + rank.turn;
    return n / m * job->microbatches + n % m * turns + rank.turn;
}

/* Returns the passes over a held-out minibatch in the loss that came to the host last: that of the replica with the
 * last microbatch. */
static uint64_t last_held_out(const struct job *job)
{
    const uint32_t last = job->parallel.pipeline - 1, turns = parallel_turns(&job->parallel, last);
    return parallel_microbatches_in_turn(job, last, (uint32_t)((job->microbatches - 1) % turns)) *
           parallel_slices(&job->parallel);
}

/* Returns the updates before the last flush of a stage that is about to pass over minibatch `minibatch`, which the plan
 * may not have. */
static uint64_t flushed_before(const struct job *job, uint64_t minibatch)
{
    return parallel_flushed_before(job, min_u64(minibatch, job->minibatches));
}

/* Returns how often the weights of a chunk are gathered for a microbatch: for a forward and a backward pass, perhaps
 * for each unit of this. */
static uint64_t gathers_each(const struct job *job, uint32_t chunk)
{
    return parallel_fetches_again(job, chunk) ? 3 : 2;
}

struct check_versions check_parallel_versions(const struct job *job, struct check_rank rank,
                                              const struct check_parallel_progress *progress, uint32_t pass)
{
    uint32_t slices = parallel_slices(&job->parallel), stage = parallel_place(&job->parallel, rank.chunk).stage;
    uint64_t m = parallel_microbatches_in_turn(job, stage, rank.turn) * slices;
    uint64_t stale = parallel_chunk_staleness(job, rank.chunk);
    uint64_t n = pass == PLAN_FORWARD           ? progress->forward
                 : pass == PLAN_EVALUATE        ? progress->evaluated
                 : pass == PLAN_BACKWARD_WEIGHT ? progress->weight
                                                : progress->backward;
    const bool gathers = pass == PLAN_GATHER && stale > 0; /* for a pass over a microbatch, or an evaluation's */
    if (gathers) n = (progress->gathered - progress->evaluated) / gathers_each(job, rank.chunk);
    bool resident = pass == PLAN_LOAD || pass == PLAN_STORE || pass == PLAN_UPDATE ||
                    (pass == PLAN_GATHER && !gathers) || pass == PLAN_REFRESH || pass == PLAN_BATCH ||
                    pass == PLAN_EVALUATE || pass == PLAN_NORM || pass == PLAN_KEEP || pass == PLAN_OPEN ||
                    pass == PLAN_CLOSE;
    bool microbatches = parallel_splits(&job->parallel, ZERO_GRADIENTS) || parallel_drains(job);
    bool adds = pass == PLAN_REDUCE && microbatches; /* to a share */
    bool whole = !adds && (pass == PLAN_UPDATE || pass == PLAN_REDUCE || pass == PLAN_JOIN || pass == PLAN_NORM);
    uint64_t before = pass == PLAN_REDUCE ? progress->reduced : pass == PLAN_UPDATE ? progress->updates * m : n;
    struct check_versions versions = {.counts = {[CHECK_CLOCK_STEP] = true, [CHECK_CLOCK_SUM] = !whole}};
    const uint64_t oldest = stale > 0 && !parallel_has_own_pace(&job->parallel) ? flushed_before(job, n / m) : 0;
    versions.of[CHECK_CLOCK_STEP] = resident ? progress->updates : max_u64(n / m > stale ? n / m - stale : 0, oldest);
    versions.of[CHECK_CLOCK_DATA] = pass == PLAN_BATCH ? progress->batches : n / m;
    if (parallel_has_own_pace(&job->parallel)) /* of the replica's minibatches */
        versions.of[CHECK_CLOCK_DATA] = versions.of[CHECK_CLOCK_DATA] * parallel_turns(&job->parallel, stage) +
                                        rank.turn;
    /* its update may come later */
    const bool in_turn = pass == PLAN_REDUCE && parallel_gradient_count(job, rank.chunk) > 1;
    versions.of[CHECK_CLOCK_SUM] = adds       ? progress->reduced
                             : whole    ? ((in_turn ? progress->reduced : progress->updates) + 1) * m
                             : resident ? progress->updates * m
                                        : n;
    versions.of[CHECK_CLOCK_MICROBATCH] = versions.of[CHECK_CLOCK_MINIBATCH] = microbatch_of(job, rank, pass, before,
                                                                                             m);
    versions.counts[CHECK_CLOCK_SLICE] = true;
    versions.of[CHECK_CLOCK_HELD_OUT] = CHECK_HELD_OUT_VERSION | progress->evaluated / m;
    versions.of[CHECK_CLOCK_HELD_OUT_SUM] = CHECK_HELD_OUT_VERSION |
                                            (pass == PLAN_KEEP ? progress->evaluated / m * last_held_out(job)
                                                               : progress->evaluated);
    versions.counts[CHECK_CLOCK_HELD_OUT_SUM] = true;
    if (pass == PLAN_EVALUATE) versions.of[CHECK_CLOCK_MICROBATCH] |= CHECK_HELD_OUT_VERSION;
    versions.of[CHECK_CLOCK_SLICE] = versions.of[CHECK_CLOCK_MICROBATCH];
    return versions;
}

uint32_t check_parallel_slice_of(const struct plan *plan, const struct plan_unit *unit)
{
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
        if (plan->ops[o].kind == OP_COMPUTE) return plan->ops[o].slice;
    return 0;
}

enum status check_parallel_slice(struct checker *c, const struct job *job,
                                 const struct check_parallel_progress *progress)
{
    uint32_t pass = c->unit->pass, found = check_parallel_slice_of(c->plan, c->unit);
    bool forward = pass == PLAN_FORWARD, back = pass == PLAN_BACKWARD, held_out = pass == PLAN_EVALUATE;
    if ((!forward && !back && !held_out) || job->parallel.slices <= 1) return STATUS_OK;
    const uint64_t passed = forward ? progress->forward : back ? progress->backward : progress->evaluated;
    uint32_t wanted = parallel_slice_of_pass(&job->parallel, passed, back);
    if (found == wanted) return STATUS_OK;
    return check_fail(c, CHECK_RULE_TRAINING, "passes over slice %u (expected slice %u)", found, wanted);
}

/* Returns how many passes of each kind a chunk makes on a replica, and its updates. */
static uint64_t passes_of(const struct job *job, struct check_rank rank, uint64_t *updates)
{
    const uint32_t stage = parallel_place(&job->parallel, rank.chunk).stage;
    *updates = parallel_updates(job, stage);
    return *updates * parallel_microbatches_in_turn(job, stage, rank.turn) * parallel_slices(&job->parallel);
}

enum status check_parallel_so_far(struct checker *c, const struct job *job, struct check_rank rank,
                                  const struct check_parallel_progress *progress)
{
    uint64_t updates;
    const uint64_t passes = passes_of(job, rank, &updates);
    if (progress->forward <= passes && progress->weight <= passes && progress->updates <= updates) return STATUS_OK;
    return check_fail(c, CHECK_RULE_TRAINING,
                      "%s shard %u has more than the %" PRIu64 " forward and backward passes and %" PRIu64
                      " updates of its minibatches", job->name, rank.chunk, passes, updates);
}

enum status check_parallel_done(struct checker *c, const struct job *job, struct check_rank rank,
                                const struct check_parallel_progress *progress)
{
    uint32_t chunk = rank.chunk;
    uint64_t updates;
    const uint64_t wanted = passes_of(job, rank, &updates);
    struct rank_state whole = parallel_whole_state(job, parallel_layers(job, chunk));
    bool gathers = parallel_fetches_weights(&job->parallel) && whole.weight_bytes > 0;
    if (progress->forward != wanted || progress->backward != wanted || progress->weight != wanted ||
        progress->updates != updates)
        return check_fail(c, CHECK_RULE_TRAINING,
                          "%s shard %u has %" PRIu64 " forward and %" PRIu64 " backward passes and %" PRIu64
                          " updates (expected %" PRIu64 ", %" PRIu64 ", %" PRIu64 ")",
                          job->name, chunk, progress->forward, progress->weight, progress->updates, wanted, wanted,
                          updates);
    const uint64_t gathered = gathers ? gathers_each(job, chunk) * wanted + progress->evaluated : 0;
    if (progress->gathered == gathered) return STATUS_OK;
    return check_fail(c, CHECK_RULE_TRAINING,
                      "the weights of %s shard %u are gathered %" PRIu64 " times (expected %" PRIu64 ")", job->name,
                      chunk, progress->gathered, gathered);
}
