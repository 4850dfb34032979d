/*
 * A minibatch's order.
 *
 * The order of the passes comes from planner/parallel/pipeline/pipeline.h, the order of slices from
 * planner/parallel/parallel_job_slices.h. After each pass over a chunk, its stage has
 *
 *     the gather for the pass `prefetch` + 1 ahead, into the slot that this pass has freed
 *     the reduction of the gradient that the pass made; or of the minibatch's gradient, after the last pass
 *     the updates of all chunks after the stage's last pass, in the order in which their gradients were complete; with
 *     `overlap` in the reverse order, in which the next minibatch's forward passes need the weights
 *
 * Streams run operations in this order. A gather placed before a reduction does not wait for it; an update placed
 * before a pass would make the pass wait for a reduction. So
 *
 *     compute  B3 ------ B2 ------ B1 ------ B0 ------        U3 U2 U1 U0
 *     data        G1 R3 --- G0 R2 ---     R1 ---    R0 ---                  (ZeRO-3: G gathers, R reduces)
 *
 * Offloaded states (models/job/parallel_offload.h): a chunk's gradient is copied down after each backward pass, and its
 * update on the host's processor follows the last copy at once. Its weights are copied up after the stage's last pass,
 * because on the stream of the data group they would otherwise come before reductions. With `delayed` they are copied
 * up a minibatch later, after the chunk's last backward pass, when no pass needs the old weights any more; where the
 * job flushes, weights that the minibatch itself updates are copied up after it, too:
 *
 *     compute  F B3 B2 B1 B0         F B3 B2 B1 B0 ...       compute  F B3 B2 B1 B0 F B3 B2 B1 B0 ...
 *     down         G3 G2 G1 G0             G3 ...            down         G3 G2 G1 G0   G3 ...
 *     cpu            U3 U2 U1 U0             U3 ...          cpu            U3 U2 U1 U0   U3 ... (delayed)
 *     up                 W3 W2 W1 W0                         up                         W3 W2 ...
 */
#include "models/job/evaluation.h"
#include "planner/parallel/parallel_job_units.h"

static void gather_next(struct parallel_job *s, struct parallel_job_stage *stage)
{
    uint64_t step = stage->next_gathering;
    if (step == s->order.count) return;
    stage->next_gathering = s->gathering_behind[step];
    parallel_job_emit_gather(s, &s->order.steps[step]);
}

static void begin_minibatch(struct parallel_job *s, uint64_t done)
{
    const bool delayed = s->parallel->delayed;
    s->refreshes = delayed && done > 0 && !(s->carried_out && parallel_flushes_after(s->job, done - 1));
    s->flushes = delayed && s->carried_out && parallel_flushes_after(s->job, done);
    s->completed_count = s->stepped = 0;
    s->ends_left = s->joined_bytes > 0 ? 2 : 0;
    for (uint32_t r = 0; r < s->chunks; r++) {
        s->of[r].passes_left = s->microbatches;
        s->of[r].updated = false;
        s->of[r].resets = s->carried_out && s->refreshes;
    }
    for (uint32_t i = 0; i < s->parallel->pipeline; i++) {
        struct parallel_job_stage *stage = &s->stages[i];
        stage->steps_left = stage->steps;
        stage->weights.taken = stage->weights.given = 0;
        stage->gradients.taken = stage->gradients.given = 0;
        stage->staged_weights.taken = stage->staged_states.taken = 0;
        stage->next_gathering = stage->first_gathering;
        for (uint32_t slot = 0; slot < stage->weights.slots; slot++) gather_next(s, stage);
    }
    for (uint32_t r = 0; r < s->chunks; r++)
        if (s->of[r].brings_batch) parallel_job_emit_batch(s, r);
}

/* Emits a chunk's update by the host. The last one ends the minibatch unless weights come up after it, or it is
 * evaluated. */
static void update_below(struct parallel_job *s, uint32_t r, bool evaluated)
{
    const bool refreshes = s->carried_out && !parallel_drains(s->job) && (!s->parallel->delayed || s->flushes);
    parallel_job_emit_update(s, r, ++s->stepped == s->chunks && !evaluated && !refreshes);
}

/* Emits the updates of both ends of a tied table, by the host. */
static void update_ends(struct parallel_job *s, bool evaluated)
{
    update_below(s, s->chunks - 1, evaluated);
    update_below(s, 0, evaluated);
}

/* Chunks after each pass that makes a gradient of chunk r. */
static void follow_gradient(struct parallel_job *s, uint32_t r, bool evaluated)
{
    struct parallel_job_chunk *chunk = &s->of[r];
    bool complete = --chunk->passes_left == 0;
    if (chunk->scatters || (complete && chunk->joins)) parallel_job_emit_reduce(s, r);
    if (!complete) return;
    s->completed[s->completed_count++] = r;
    if (chunk->tied && --s->ends_left == 0) parallel_job_emit_join(s);
    if (!parallel_offloads(s->parallel)) return;
    if (s->refreshes) parallel_job_emit_refresh(s, r, false);
    if (job_clips(s->job)) return; /* clip_and_finish() */
    if (!chunk->tied) update_below(s, r, evaluated);
    else if (s->ends_left == 0) update_ends(s, evaluated);
}

/* Emits updates after a stage's last pass, or copies up weights that the host has updated. */
static void finish_chunk(struct parallel_job *s, uint32_t r, bool ends_minibatch)
{
    if (!parallel_offloads(s->parallel)) parallel_job_emit_update(s, r, ends_minibatch);
    else if ((s->parallel->offload == OFFLOAD_STATES || s->carried_out) && !s->parallel->delayed)
        parallel_job_emit_refresh(s, r, ends_minibatch && s->carried_out);
}

/* Returns true after the last pass of the chunk's stage, with the update's gradient complete. */
static bool may_finish(const struct parallel_job *s, uint32_t r)
{
    const struct parallel_job_chunk *chunk = &s->of[r];
    if (job_clips(s->job)) return false; /* after all norms */
    return !chunk->updated && s->stages[chunk->stage].steps_left == 0 && !(chunk->tied && s->ends_left > 0);
}

/* Returns the chunk whose update is number `c` of those after a stage's last pass. */
static uint32_t updated_chunk(const struct parallel_job *s, uint32_t c)
{
    return s->completed[s->parallel->overlap ? s->completed_count - 1 - c : c];
}

/* Emits the norms of all chunks' gradients, and then their updates. */
static void clip_and_finish(struct parallel_job *s, bool evaluated)
{
    for (uint32_t c = 0; c < s->completed_count; c++) parallel_job_emit_norm(s, s->completed[c]);
    for (uint32_t c = 0; c < s->completed_count && parallel_offloads(s->parallel); c++)
        update_below(s, s->completed[c], evaluated);
    for (uint32_t c = 0; c < s->completed_count; c++)
        finish_chunk(s, updated_chunk(s, c), c + 1 == s->completed_count && !evaluated);
}

/* Begins the sum of a chunk's gradient before the first backward pass that adds to it, after the copy of a delayed
 * update's. */
static void reset_before(struct parallel_job *s, const struct pipeline_step *step)
{
    struct parallel_job_chunk *chunk = &s->of[step->chunk];
    if (step->pass == PIPELINE_FORWARD || !chunk->resets) return;
    chunk->resets = false;
    parallel_job_emit_reset(s, step->chunk);
}

/* Copies up all weights of a minibatch whose updates are not delayed into the next one. */
static void flush(struct parallel_job *s, bool evaluated)
{
    for (uint32_t c = 0; c < s->completed_count; c++)
        parallel_job_emit_refresh(s, s->completed[c], c + 1 == s->completed_count && !evaluated);
}

void parallel_job_emit_minibatch(struct parallel_job *s, uint64_t done)
{
    const bool evaluated = evaluation_follows(s->job, done);
    uint32_t updates = 0;
    begin_minibatch(s, done);
    for (uint64_t i = 0; i < s->order.count; i++) {
        const struct pipeline_step *step = &s->order.steps[i];
        struct parallel_job_chunk *chunk = &s->of[step->chunk];
        struct parallel_job_stage *stage = &s->stages[chunk->stage];
        parallel_job_acquire(s, step);
        reset_before(s, step);
        parallel_job_emit_pass(s, step);
        parallel_job_release(s, step);
        if (chunk->gathers && parallel_job_uses_weights(s, step)) gather_next(s, stage);
        if (parallel_job_makes_gradient(step->pass)) follow_gradient(s, step->chunk, evaluated);
        if (--stage->steps_left > 0) continue;
        for (uint32_t c = 0; c < s->completed_count; c++) {
            const uint32_t r = updated_chunk(s, c);
            if (!may_finish(s, r)) continue;
            s->of[r].updated = true;
            finish_chunk(s, r, ++updates == s->chunks && !evaluated);
        }
    }
    if (job_clips(s->job)) clip_and_finish(s, evaluated);
    if (s->flushes) flush(s, evaluated);
    if (evaluated) parallel_job_emit_evaluation(s);
}
