/*
 * One forward, one backward, without a flush. In *tick* n stage p of P passes forward over microbatch n, if there is
 * one, and back over n - (P - 1 - p); N microbatches take N + P - 1 ticks:
 *
 *     P = 3    tick   0    1     2      3      4     ...  N - 1 |  N      N + 1
 *     stage 0         F0   F1    F2 B0  F3 B1  F4 B2      ...   |  B N-2  B N-1
 *     stage 1         F0   F1 B0 F2 B1  F3 B2  F4 B3            |  B N-1
 *     stage 2         F0 B0 F1 B1 F2 B2 F3 B3  F4 B4            |
 *
 * A forward pass needs the previous stage's of the same tick, a backward pass the next stage's of the tick before:
 * every pass comes after the passes that it needs. Each stage does 1F1B with P - 1 - p forward passes at the start. No
 * stage keeps more than P - p microbatches, and the slowest stage is never idle in a full pipeline: every cycle of
 * waiting goes up some stages and down again in as many ticks, so it takes no longer than its slowest stage.
 *
 * If replicas of a stage take turns (models/job/parallel.h), a tick is a microbatch of the whole job. Stage p has r(p)
 * replicas with n(p) microbatches in flight each. It passes over microbatch n forward in tick n + S(p) and backward in
 * tick n + S(p) + L(p), where L(p) = (n(p) - 1) r(p). If every stage has one replica, L(p) is P - 1 - p:
 *
 *     replicas 1-2   tick        0    1    2     3     4           replicas 2-1   0    1    2       3
 *     stage 0                    F0   F1   F2 B0 F3 B1 F4 B2       stage 0, 0     F0        F2 B0
 *     stage 1, replica 0         F0 B0     F2 B2       F4 B4                1          F1           F3 B1
 *              replica 1              F1 B1      F3 B3             stage 1                  F0 B0   F1 B1
 *
 * n(p) = ceil(replicas from p on / r(p)) gives L(p) > L(p + 1). If S(p) <= S(p + 1) and S(p) + L(p) >= S(p + 1) +
 * L(p + 1), every pass comes after its inputs: within a tick, forward passes by stage, then backward passes from the
 * last stage back. Each boundary waits S(p + 1) - S(p) ticks on the replica that made it, its gradient the rest of L(p)
 * - L(p + 1). The side with more replicas gets all of these ticks, because it has more memory.
 *
 * An update joins all replicas of a stage: replicas with earlier microbatches of its round wait for later ones. The
 * wait is hidden while later stages still have microbatches.
 *
 * Updates. After a minibatch's last backward pass over a chunk (with pipedream, after each), data-parallel gradients
 * are summed, bucket by bucket during the backward passes over earlier buckets. The update comes as late as possible:
 * before the stage's next backward pass, which adds to the gradient; with pipedream before the next forward pass, which
 * needs the new version. With 2bw a forward pass hides a part of the exchange.
 *
 * Buckets. A stage passes over its chunks in turn, in one tick.
 *
 * Versions. The microbatches of a stage's update u, its *round*, read version max(u - staleness, 0). The update reads
 * version u and makes version u + 1, in the slot that the round has just left, or in place with a single slot. A
 * version ends with its last reading pass, or with the update.
 *
 * Waiting updates (models/job/parallel_memory.h). Chunks that wait for the first stage are updated with it, after all
 * stages' passes of the tick, and have a gradient for each round until then. Nothing waits in a full pipeline: of the
 * first stage's round u the last stage has made the gradient long before, and its update comes after the passes of its
 * round u + staleness, which still read version u. The loss goes to the host after the round's last backward pass.
 *
 *     pipedream, 3 stages      tick 0      1         2                3
 *     stage 0                  F0          F1        F2 B0    U0      F3 B1    U1
 *     stage 1                  F0          F1 B0     F2 B1    U0 *    F3 B2    U1 *        * if the job clips; else U0
 *     at B0 stage 2                  F0 B0       F1 B1     F2 B2    U0      F3 B3    U1          with a tied table, too
 *
 * Repetition. Slots and variants are used in turn, so ticks repeat after r(p) times the places of each kind on a
 * replica. There are as many versions as activations, or two for every other minibatch with 2bw. The period is the
 * least common multiple of all these. The middle ticks are stored once; if they are under two periods, everything is
 * written out.
 *
 * Flushes (models/job/parallel.h). The ticks between two flushes are those of a training of their own, which begins
 * with the newest version; the places go on in turn. An evaluation follows a flush, and passes forward with that
 * version. Where flushes and places repeat after few minibatches, these are stored once, else the middle ticks between
 * two.
 *
 * Jobs that are carried out. A stage's state has the newest weights, too. LOAD and UPDATE copy them to a version. Data
 * of several minibatches are on the first stage at once, each in a buffer of its own from before its first forward pass
 * until its last backward pass; they use the buffers in turn.
 *
 * Source: PipeDream, Narayanan et al., SOSP 2019, sections 3.2 and 3.3; arXiv 2006.09503, section 3.
 */
#include "planner/parallel/parallel_job_async.h"

#include <assert.h>

#include "base/extreme.h"
#include "models/job/evaluation.h"
#include "planner/parallel/parallel_job_units.h"

/* Microbatches [begin, end) between two flushes, counted as they are emitted: repetitions are left out. */
struct ticks {
    struct parallel_job *s;
    uint64_t begin, end;
    bool evaluated; /* an evaluation follows, and ends the last minibatch */
};

/* --- rounds --------------------------------------------------------------------------------- */

uint32_t parallel_job_async_tick(struct parallel_job *s)
{
    for (uint32_t p = 0; p < s->parallel->pipeline; p++) {
        struct parallel_job_stage *own = &s->stages[p], *front = own - 1;
        own->lag = (parallel_depth(s->parallel, p) - 1) * own->turns;
        own->start = p > 0 ? front->start + (front->turns > own->turns ? front->lag - own->lag : 0) : 0;
    }
    return s->stages[0].lag + 1;
}

/* Returns the microbatches of one update of the stage, over all replicas. */
static uint64_t round_of(const struct parallel_job *s, uint32_t stage)
{
    return parallel_microbatches(s->job, stage) * s->stages[stage].turns;
}

/* The stage's chunks are [first_chunk(stage), first_chunk(stage + 1)). */
static uint32_t first_chunk(const struct parallel_job *s, uint32_t stage)
{
    return stage * parallel_buckets(s->parallel);
}

/* Counts a microbatch once for all ranks in step. */
static uint64_t all_microbatches(const struct parallel_job *s)
{
    return s->job->minibatches * (s->job->microbatches / s->parallel->data);
}

/* --- versions ------------------------------------------------------------------------------- */

/* Returns false if no round before the flush reads the version. */
static bool last_reader(const struct ticks *t, uint32_t r, uint64_t version, uint64_t *out)
{
    uint64_t size = round_of(t->s, t->s->of[r].stage), reader = version + t->s->of[r].staleness,
             last = t->end / size - 1;
    if (reader > last && version > t->begin / size) return false;
    *out = reader < last ? reader : last;
    return true;
}

/* Returns true if the update that reads the version comes before the last backward pass of the round. */
static bool is_updated_before(const struct ticks *t, uint32_t r, uint64_t version, uint64_t round)
{
    const struct parallel_job_stage *own = &t->s->stages[t->s->of[r].stage], *first = t->s->stages;
    const uint64_t size = round_of(t->s, t->s->of[r].stage);
    if (t->s->of[r].gradients == 1) return version < round;
    return round * size + own->start + own->lag > version * size + first->start + first->lag;
}

static void read_for_pass(struct ticks *t, uint32_t r, uint64_t microbatch, bool backward)
{
    struct parallel_job_chunk *chunk = &t->s->of[r];
    uint64_t size = round_of(t->s, chunk->stage), round = microbatch / size, staleness = chunk->staleness, last;
    chunk->version = round > staleness ? max_u64(round - staleness, t->begin / size) : t->begin / size;
    bool ends_round = backward && microbatch % size >= size - t->s->stages[chunk->stage].turns; /* of this replica */
    chunk->version_ends = chunk->versions > 1 && ends_round && last_reader(t, r, chunk->version, &last) &&
                          last == round && is_updated_before(t, r, chunk->version, round);
    chunk->gradient_turn = (uint32_t)(round % chunk->gradients);
    chunk->begins_sum = backward && chunk->gradients > 1 && microbatch % size == 0;
    chunk->ends_sum = backward && chunk->gradients > 1 && ends_round;
}

/* A minibatch ends with the first stage's update or, with differing microbatches per update, with the first stage's
 * last pass. */
static void update(struct ticks *t, uint32_t r, uint64_t round)
{
    struct parallel_job_chunk *chunk = &t->s->of[r];
    uint64_t last;
    chunk->version = round;
    chunk->version_ends = chunk->versions > 1 &&
                          (!last_reader(t, r, round, &last) || !is_updated_before(t, r, round, last));
    const bool ends = (round + 1) * round_of(t->s, chunk->stage) < t->end || !t->evaluated;
    parallel_job_emit_update(t->s, r, r == 0 && ends && !parallel_has_own_pace(t->s->parallel));
}

static void update_if(struct ticks *t, uint32_t first, uint32_t end, uint64_t round, bool waits)
{
    for (uint32_t r = end; r-- > first;)
        if ((t->s->of[r].gradients > 1) == waits) update(t, r, round);
}

/* Updates chunks in the order in which their gradients were completed; with the first stage's, those that wait for
 * it. */
static void update_stage(struct ticks *t, uint32_t stage, uint64_t round)
{
    struct parallel_job *s = t->s;
    if (stage == 0) {
        for (uint32_t r = 0; r < s->chunks; r++) s->of[r].gradient_turn = (uint32_t)(round % s->of[r].gradients);
        if (s->joined_bytes > 0) parallel_job_emit_join(s);
        for (uint32_t r = s->chunks; r-- > 0 && job_clips(s->job);) parallel_job_emit_norm(s, r);
        update_if(t, 0, s->chunks, round, true);
    }
    update_if(t, first_chunk(s, stage), first_chunk(s, stage + 1), round, false);
}

/* Returns true if updates of other stages wait for the first one: its own do not lag then. */
static bool is_waited_for(const struct parallel_job *s)
{
    return s->of[s->chunks - 1].gradients > 1;
}

/* --- ticks ---------------------------------------------------------------------------------- */

static struct pipeline_step step_of(const struct ticks *t, uint32_t pass, uint32_t r, uint64_t microbatch)
{
    return (struct pipeline_step){.pass = pass, .chunk = r, .microbatch = (uint32_t)(microbatch % t->s->microbatches)};
}

static void forward_over(struct ticks *t, uint32_t r, uint64_t microbatch)
{
    struct parallel_job *s = t->s;
    struct pipeline_step step = step_of(t, PIPELINE_FORWARD, r, microbatch);
    s->microbatch = microbatch;
    read_for_pass(t, r, microbatch, false);
    parallel_job_assign_place(s, r, PARALLEL_JOB_ACTIVATIONS, step.microbatch);
    if (r + 1 < s->chunks) parallel_job_assign_place(s, r + 1, PARALLEL_JOB_BOUNDARY, step.microbatch);
    parallel_job_emit_pass(s, &step);
}

static void backward_over(struct ticks *t, uint32_t r, uint64_t microbatch)
{
    struct parallel_job *s = t->s;
    struct pipeline_step step = step_of(t, PIPELINE_BACKWARD, r, microbatch);
    s->microbatch = microbatch;
    read_for_pass(t, r, microbatch, true);
    if (r > 0) parallel_job_assign_place(s, r, PARALLEL_JOB_GRADIENT, step.microbatch);
    parallel_job_emit_pass(s, &step);
}

/* Reads a minibatch's data before its first pass, on the first and the last stage. */
static void bring_batch(struct ticks *t, uint32_t stage, uint64_t microbatch)
{
    struct parallel_job *s = t->s;
    if (!s->carried_out || microbatch % (s->job->microbatches / s->parallel->data) > 0) return;
    s->microbatch = microbatch;
    for (uint32_t r = first_chunk(s, stage); r < first_chunk(s, stage + 1); r++)
        if (s->of[r].brings_batch) parallel_job_emit_batch(s, r);
}

static void forward(struct ticks *t, uint32_t stage, uint64_t microbatch)
{
    bring_batch(t, stage, microbatch);
    for (uint32_t r = first_chunk(t->s, stage); r < first_chunk(t->s, stage + 1); r++) forward_over(t, r, microbatch);
}

static void backward(struct ticks *t, uint32_t stage, uint64_t microbatch)
{
    struct parallel_job *s = t->s;
    uint64_t size = round_of(s, stage), round = microbatch / size;
    bool lagging = s->parallel->schedule == PIPELINE_2BW && !(stage == 0 && is_waited_for(s)),
         complete = microbatch % size == size - 1;
    if (lagging && microbatch % size == 0 && microbatch > t->begin) update_stage(t, stage, round - 1);
    for (uint32_t r = first_chunk(s, stage + 1); r-- > first_chunk(s, stage);) {
        backward_over(t, r, microbatch);
        if (complete && s->of[r].joins) parallel_job_emit_reduce(s, r);
    }
    if (complete && (!lagging || microbatch + 1 == t->end)) update_stage(t, stage, round);
}

/* Ticks are counted from the flush. */
static void emit_ticks(struct ticks *t, uint64_t first, uint64_t end)
{
    const struct parallel_job *s = t->s;
    const uint64_t microbatches = t->end - t->begin;
    for (uint64_t n = first; n < end; n++) {
        for (uint32_t p = 0; p < s->parallel->pipeline; p++)
            if (n >= s->stages[p].start && n - s->stages[p].start < microbatches)
                forward(t, p, t->begin + n - s->stages[p].start);
        for (uint32_t p = s->parallel->pipeline; p-- > 0;) {
            uint64_t back = s->stages[p].start + s->stages[p].lag;
            if (n >= back && n - back < microbatches) backward(t, p, t->begin + n - back);
        }
    }
}

/* --- a training ----------------------------------------------------------------------------- */

/* Returns the least common multiple, or `most` if it is larger. */
static uint64_t common_multiple(uint64_t a, uint64_t b, uint64_t most)
{
    uint64_t x = a, y = b;
    while (y > 0) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x >= most / b ? most : a / x * b;
}

static uint64_t period_of(const struct parallel_job *s, uint64_t most)
{
    uint64_t period = s->parallel->schedule == PIPELINE_2BW ? 2 * round_of(s, 0) : 1;
    for (uint32_t r = 0; r < s->chunks; r++)
        for (uint32_t i = 0; i < PARALLEL_JOB_THINGS; i++) {
            const struct parallel_job_pool *pool = &s->of[r].pools[i];
            if (pool->made > 0)
                period = common_multiple(period, (uint64_t)parallel_job_stage_of(s, r)->turns * pool->made, most);
            if (pool->front > 0)
                period = common_multiple(period, (uint64_t)parallel_job_stage_of(s, r - 1)->turns * pool->front, most);
        }
    return period;
}

/* Emits `all` microbatches and a flush. Returns the end of those that are emitted. `may_repeat`: in segments, which
 * leave repetitions out. */
static uint64_t emit_until_flush(struct parallel_job *s, uint64_t begin, uint64_t all, bool evaluated, bool may_repeat)
{
    uint64_t fill = 0, tail = 0;
    /* The repeated part begins when no stage's backward passes read the first version. The last round stays outside:
     * its versions end early. */
    for (uint32_t p = 0; p < s->parallel->pipeline; p++) {
        const struct parallel_job_stage *stage = &s->stages[p];
        uint64_t size = round_of(s, p), stale = 0;
        for (uint32_t r = first_chunk(s, p); r < first_chunk(s, p + 1); r++) stale = max_u64(stale, s->of[r].staleness);
        fill = max_u64(fill, stale * size + stage->start + stage->lag + 1);
        tail = max_u64(tail, size);
    }
    uint64_t period = period_of(s, all), repeats = 1;
    if (may_repeat && all > fill + tail + period) repeats = (all - fill - tail) / period;
    uint64_t written = all - (repeats - 1) * period;
    struct ticks t = {.s = s, .begin = begin, .end = begin + written, .evaluated = evaluated};
    for (uint32_t p = 0; p < s->parallel->pipeline; p++) assert(written % round_of(s, p) == 0);
    if (repeats > 1) {
        emit_ticks(&t, 0, fill);
        plan_builder_segment(s->builder, 1);
        emit_ticks(&t, fill, fill + period);
        plan_builder_segment(s->builder, (uint32_t)repeats);
    }
    emit_ticks(&t, repeats > 1 ? fill + period : 0, written + s->stages[0].lag);
    for (uint32_t r = 0; r < s->chunks; r++) { /* the newest version stays */
        s->of[r].version = t.end / round_of(s, s->of[r].stage);
        s->of[r].version_ends = false;
    }
    if (evaluated) parallel_job_emit_evaluation(s);
    return t.end;
}

/* Emits the minibatches from *done to the next flush, and advances both counts. */
static void emit_span(struct parallel_job *s, uint64_t *done, uint64_t *emitted, bool may_repeat)
{
    const uint64_t each = s->job->microbatches / s->parallel->data;
    uint64_t last = *done;
    while (!parallel_flushes_after(s->job, last)) last++;
    const bool evaluated = evaluation_follows(s->job, last);
    *emitted = emit_until_flush(s, *emitted, (last + 1 - *done) * each, evaluated, may_repeat);
    *done = last + 1;
}

/* Returns the minibatches after which flushes, evaluations and places repeat; 0: too many to be written out. */
static uint64_t flush_cycle(const struct parallel_job *s)
{
    enum { CYCLE_MAX = 512 }; /* minibatches */
    const uint64_t each = s->job->microbatches / s->parallel->data, most = (CYCLE_MAX + 1) * each;
    const uint64_t flush = s->parallel->flush > 0 ? s->parallel->flush : 1;
    const uint64_t every = s->job->evaluation.every > 0 ? s->job->evaluation.every : 1;
    const uint64_t minibatches = common_multiple(flush, every, CYCLE_MAX + 1);
    if (minibatches > CYCLE_MAX) return 0;
    const uint64_t all = common_multiple(minibatches * each, period_of(s, most), most);
    return all < most ? all / each : 0;
}

static bool flushes(const struct parallel_job *s)
{
    return s->parallel->flush > 0 || s->job->evaluation.every > 0;
}

void parallel_job_async_emit(struct parallel_job *s)
{
    uint64_t done = 0, emitted = 0;
    if (!flushes(s)) { /* stages may have their own pace */
        (void)emit_until_flush(s, 0, all_microbatches(s), false, true);
        plan_builder_segment(s->builder, 1);
        return;
    }
    const uint64_t cycle = flush_cycle(s);
    while (done < s->job->minibatches) {
        const uint64_t repeats = cycle > 0 ? (s->job->minibatches - 1 - done) / cycle : 0, begun = done;
        while (repeats > 1 && done < begun + cycle) emit_span(s, &done, &emitted, false);
        if (repeats <= 1) emit_span(s, &done, &emitted, true);
        else done = begun + repeats * cycle;
        plan_builder_segment(s->builder, repeats > 1 ? (uint32_t)repeats : 1);
    }
}

/* Returns the seconds per tick that a blocking stage waits for boundaries and gradients. */
static double held_s(const struct parallel_job *s, uint32_t stage)
{
    double seconds = 0;
    if (!s->parallel->blocking) return 0;
    if (stage > 0) seconds += s->times.chunks[first_chunk(s, stage) - 1].send_s;
    if (stage + 1 < s->parallel->pipeline) seconds += s->times.chunks[first_chunk(s, stage + 1) - 1].send_s;
    return seconds;
}

/* Counts flushes, as if those of `flush` and of evaluations were at the same minibatches. */
static uint64_t flush_count(const struct parallel_job *s)
{
    const uint64_t flush = s->parallel->flush, evaluations = evaluation_count(s->job);
    const uint64_t own = flush > 0 ? (s->job->minibatches + flush - 1) / flush : 1;
    return min_u64(max_u64(own, evaluations), s->job->minibatches);
}

double parallel_job_async_estimate_s(const struct parallel_job *s)
{
    double fill_s = 0, slowest_s = 0;
    for (uint32_t p = 0; p < s->parallel->pipeline; p++) {
        double stage_s = 0;
        for (uint32_t r = first_chunk(s, p); r < first_chunk(s, p + 1); r++) {
            const struct pipeline_times *times = &s->times.chunks[r];
            stage_s += times->pass_s[PIPELINE_FORWARD] + times->pass_s[PIPELINE_BACKWARD];
            fill_s += 2 * times->send_s;
        }
        fill_s += stage_s;
        slowest_s = max_s(slowest_s, (stage_s + held_s(s, p)) / s->stages[p].turns);
    }
    const double spans = (double)(flush_count(s));
    return spans * fill_s + ((double)all_microbatches(s) - spans) * slowest_s +
           (double)parallel_updates(s->job, 0) * s->times.update_s;
}
