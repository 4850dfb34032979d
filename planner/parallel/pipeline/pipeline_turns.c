/*
 * Each replica of each stage has a clock, and the one that can start first takes its list's next step:
 *
 *     replicas 2-1, 5 microbatches   stage 0, replica 0   F0 F2 B0 F4 B2 B4       (1f1b; 1 forward pass to begin with)
 *                                             replica 1   F1 F3 B1 B3
 *                                    stage 1              F0 B0 F1 B1 F2 B2 F3 B3 F4 B4
 *
 * Some replica can always start: in planner/parallel/parallel_job_async.c's ticks each replica does these steps in this
 * order, but for those after the last microbatch.
 *
 * A step changes the next step of its replica and of the neighbouring stages' replicas with its microbatch; only these
 * are computed again.
 *
 * Cost: one comparison per step and replica.
 */
#include "planner/parallel/pipeline/pipeline_turns.h"

#include <assert.h>
#include <math.h>

#include "base/extreme.h"
#include "base/try.h"

struct replica {
    uint32_t stage, first;  /* its first microbatch, which is also its index among the stage's replicas */
    uint32_t length, ahead; /* microbatches; forward passes before the first backward pass */
    uint32_t taken;         /* steps */
    double free_s, next_s;  /* when its next step can start; INFINITY: a pass that it needs has not begun, or all are
                               done */
};

struct pipeline_turns_clock {
    const struct parallel *parallel;
    const struct pipeline_times *times;
    uint32_t microbatches, count; /* replicas of all stages */
    struct replica *replicas;     /* stage by stage */
    uint32_t *first_of;           /* per stage: its first replica */
    double *forward_end_s, *backward_end_s; /* [stage][microbatch]; INFINITY: not begun */
};

/* --- steps ------------------------------------------------------------------------------------ */

struct pipeline_turn {
    uint32_t pass, microbatch;
};

/* Returns the replica's next step: F ... F, then F B F B ..., then B ... B. */
static struct pipeline_turn next_turn(const struct pipeline_turns_clock *c, const struct replica *r)
{
    uint32_t own = 0, ahead = r->ahead, both = 2 * (r->length - ahead), i = r->taken;
    bool forward = i < ahead || (i - ahead < both && (i - ahead) % 2 == 0);
    if (i < ahead) own = i;
    else if (i - ahead < both) own = (i - ahead) / 2 + (forward ? ahead : 0);
    else own = i - r->length;
    return (struct pipeline_turn){forward ? PIPELINE_FORWARD : PIPELINE_BACKWARD,
                                  r->first + own * parallel_turns(c->parallel, r->stage)};
}

static double *end_of(double *ends_s, const struct pipeline_turns_clock *c, uint32_t stage, uint32_t microbatch)
{
    return &ends_s[(size_t)stage * c->microbatches + microbatch];
}

/* Returns the seconds to send a pass its data from another stage. */
static double fetch_s(const struct pipeline_turns_clock *c, uint32_t stage, uint32_t pass)
{
    if (pass == PIPELINE_FORWARD) return stage > 0 ? c->times[stage - 1].send_s : 0;
    return stage + 1 < c->parallel->pipeline ? c->times[stage].send_s : 0;
}

/* Returns the time when the data of the pass has arrived; on blocking stages, when it can be fetched. */
static double ready_s(const struct pipeline_turns_clock *c, uint32_t stage, struct pipeline_turn turn)
{
    double beside_s = c->parallel->blocking ? 0 : fetch_s(c, stage, turn.pass);
    if (turn.pass == PIPELINE_FORWARD)
        return stage > 0 ? *end_of(c->forward_end_s, c, stage - 1, turn.microbatch) + beside_s : 0;
    if (stage + 1 == c->parallel->pipeline) return *end_of(c->forward_end_s, c, stage, turn.microbatch);
    return *end_of(c->backward_end_s, c, stage + 1, turn.microbatch) + beside_s;
}

static void choose(struct pipeline_turns_clock *c, struct replica *r)
{
    r->next_s = INFINITY;
    if (r->taken == 2 * r->length) return;
    struct pipeline_turn turn = next_turn(c, r);
    r->next_s = max_s(r->free_s, ready_s(c, r->stage, turn));
    if (c->parallel->blocking) r->next_s += fetch_s(c, r->stage, turn.pass);
}

static struct replica *replica_of(const struct pipeline_turns_clock *c, uint32_t stage, uint32_t microbatch)
{
    return &c->replicas[c->first_of[stage] + microbatch % parallel_turns(c->parallel, stage)];
}

static void chunk_pass(struct pipeline_turns_clock *c, struct replica *r, struct pipeline_step *out)
{
    struct pipeline_turn turn = next_turn(c, r);
    double end_s = r->next_s + c->times[r->stage].pass_s[turn.pass];
    *out = (struct pipeline_step){turn.pass, r->stage, turn.microbatch, r->next_s, end_s};
    *end_of(turn.pass == PIPELINE_FORWARD ? c->forward_end_s : c->backward_end_s, c, r->stage, turn.microbatch) = end_s;
    r->free_s = end_s;
    r->taken++;
    choose(c, r);
    if (r->stage > 0) choose(c, replica_of(c, r->stage - 1, turn.microbatch));
    if (r->stage + 1 < c->parallel->pipeline) choose(c, replica_of(c, r->stage + 1, turn.microbatch));
}

static void chunk_clock(struct pipeline_turns_clock *c, struct pipeline_order *out)
{
    for (uint32_t i = 0; i < c->count; i++) choose(c, &c->replicas[i]);
    for (uint64_t i = 0; i < out->count; i++) {
        struct replica *best = c->replicas; /* among equal replicas the first wins */
        for (struct replica *r = c->replicas + 1; r < c->replicas + c->count; r++)
            if (r->next_s < best->next_s) best = r;
        assert(best->next_s < INFINITY);
        chunk_pass(c, best, &out->steps[i]);
        out->end_s = max_s(out->end_s, out->steps[i].end_s);
    }
}

/* --- what there is ---------------------------------------------------------------------------- */

static uint32_t ahead_of(const struct parallel *p, uint32_t stage, uint32_t length)
{
    bool all = p->schedule == PIPELINE_GPIPE && p->pipeline > 1;
    return all ? length : min_u32(parallel_depth(p, stage) - 1, length);
}

static enum status prepare(struct pipeline_turns_clock *c, struct arena *arena, struct error *err)
{
    const struct parallel *p = c->parallel;
    size_t cells = (size_t)p->pipeline * c->microbatches;
    TRY(ARENA_NEW(arena, c->count, c->replicas, err));
    TRY(ARENA_NEW(arena, p->pipeline, c->first_of, err));
    TRY(ARENA_NEW(arena, 2 * cells, c->forward_end_s, err));
    c->backward_end_s = c->forward_end_s + cells;
    for (size_t i = 0; i < 2 * cells; i++) c->forward_end_s[i] = INFINITY;
    for (uint32_t stage = 0; stage < p->pipeline; stage++) {
        uint32_t turns = parallel_turns(p, stage);
        c->first_of[stage] = (uint32_t)parallel_replicas_before(p, stage);
        for (uint32_t d = 0; d < turns; d++) {
            uint32_t length = (c->microbatches + turns - 1 - d) / turns;
            c->replicas[c->first_of[stage] + d] =
                (struct replica){.stage = stage, .first = d, .length = length, .ahead = ahead_of(p, stage, length)};
        }
    }
    return STATUS_OK;
}

enum status pipeline_turns_order(struct arena *arena, const struct parallel *parallel, uint32_t microbatches,
                                 const struct pipeline_times *times, struct pipeline_order *out, struct error *err)
{
    struct arena scratch = {0};
    struct pipeline_turns_clock c = {.parallel = parallel, .times = times, .microbatches = microbatches,
                                     .count = (uint32_t)parallel_replicas_before(parallel, parallel->pipeline)};
    assert(parallel->replicated == parallel->pipeline && parallel->schedule <= PIPELINE_1F1B);
    *out = (struct pipeline_order){.count = 2 * (uint64_t)parallel->pipeline * microbatches};
    if (out->count > PIPELINE_STEPS_MAX)
        return error_set(err, STATUS_LIMIT, "too many passes of microbatches (limit is %d)", PIPELINE_STEPS_MAX);
    enum status status = ARENA_NEW(arena, out->count, out->steps, err);
    if (!status) status = prepare(&c, &scratch, err);
    if (!status) chunk_clock(&c, out);
    arena_release(&scratch);
    return status;
}
