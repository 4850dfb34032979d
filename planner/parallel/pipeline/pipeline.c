/*
 * Each stage has a clock, and the one that can start first takes its next step, so steps come in the order of their
 * starts. The next step is
 *
 *   by sequence   the next one of a list that depends only on the stage's place
 *   by readiness  a backward pass, else a forward pass if few enough microbatches are kept, else gradients of weights;
 *                 if no pass is ready, the one that will be ready first
 *
 * zb-h2 goes by readiness. zb-h1 and zb-v take the shorter of both: the lists assume equal passes, readiness uses real
 * lengths. A forward pass needs the previous chunk's, a backward pass the next chunk's and its own forward pass, with
 * the data sent.
 *
 *     P = 3, 4 microbatches   stage 0  F0 F1 F2 B0 F3 B1 B2 B3      (1f1b; 2 forward passes to begin with)
 *                             stage 1  F0 F1 B0 F2 B1 F3 B2 B3
 *                             stage 2  F0 B0 F1 B1 F2 B2 F3 B3
 *
 * A step changes the next step of its own stage and of the neighbouring chunks' stages; only these are computed again.
 *
 * Cost: O(steps * chunks), and one comparison per stage and step.
 */
#include "planner/parallel/pipeline/pipeline.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/extreme.h"
#include "base/try.h"
#include "planner/parallel/pipeline/pipeline_buckets.h"
#include "planner/parallel/pipeline/pipeline_turns.h"

struct sequence_step {
    uint32_t pass, chunk;
};

struct pipeline_stage {
    double free_s;
    struct sequence_step *sequence;
    uint64_t length, taken; /* steps of the sequence */
    uint32_t kept;  /* microbatches whose weight gradients are not complete */
};

struct pipeline_choice {
    double start_s; /* decides whose turn it is */
    uint32_t pass, chunk;
    double pass_s;  /* start of the pass itself; on blocking stages after its fetch */
};

struct pipeline_clock {
    const struct parallel *parallel;
    const struct pipeline_times *times;
    uint32_t microbatches, chunks;
    uint64_t length; /* steps of each stage */
    bool splits, by_sequence;
    struct pipeline_stage *stages;
    struct pipeline_choice *next;           /* per stage; INFINITY: no step can start, or all are done */
    uint32_t *first; /* a tournament tree: [1] is the next stage overall, [2] and [3] the next of each half ... */
    uint32_t leaf_count;                    /* leaves of the tree: a power of two, at least the stages */
    uint32_t (*appended)[PIPELINE_PASSES];  /* per chunk: passes appended to the sequence */
    uint32_t (*passed)[PIPELINE_PASSES];    /* per chunk: microbatches that have passed */
    double *forward_end_s, *backward_end_s; /* [chunk][microbatch]; backward: end of the input gradient */
};

bool pipeline_splits(const struct parallel *parallel)
{
    return parallel->schedule == PIPELINE_ZB_H1 || parallel->schedule == PIPELINE_ZB_H2 ||
           parallel->schedule == PIPELINE_ZB_V;
}

/* --- when a step could start ---------------------------------------------------------------- */

static uint32_t chunk_of(const struct pipeline_clock *c, uint32_t stage, uint32_t on_stage)
{
    uint32_t stages = c->parallel->pipeline;
    bool back = c->parallel->schedule == PIPELINE_ZB_V && on_stage % 2 == 1;
    return on_stage * stages + (back ? stages - 1 - stage : stage);
}

/* Returns the seconds to send a pass over the chunk its data from another stage. */
static double fetch_s(const struct pipeline_clock *c, uint32_t pass, uint32_t chunk)
{
    uint32_t own = parallel_place(c->parallel, chunk).stage;
    if (pass == PIPELINE_WEIGHT || (pass == PIPELINE_FORWARD ? chunk == 0 : chunk + 1 == c->chunks)) return 0;
    uint32_t from = pass == PIPELINE_FORWARD ? chunk - 1 : chunk + 1;
    bool sent = parallel_place(c->parallel, from).stage != own;
    return sent ? c->times[pass == PIPELINE_FORWARD ? from : chunk].send_s : 0;
}

/* Returns the part of fetch_s() that overlaps other passes. */
static double beside_s(const struct pipeline_clock *c, uint32_t pass, uint32_t chunk)
{
    return c->parallel->blocking ? 0 : fetch_s(c, pass, chunk);
}

/* Returns the time when the pass, or its fetch, could start; INFINITY if a pass that it needs has not begun. */
static double ready_s(const struct pipeline_clock *c, uint32_t pass, uint32_t chunk)
{
    uint32_t n = c->passed[chunk][pass];
    size_t at = (size_t)chunk * c->microbatches + n;
    if (n == c->microbatches) return INFINITY;
    if (pass == PIPELINE_WEIGHT) return n < c->passed[chunk][PIPELINE_INPUT] ? c->backward_end_s[at] : INFINITY;
    if (pass == PIPELINE_FORWARD) {
        if (chunk == 0) return 0;
        if (c->passed[chunk - 1][pass] <= n) return INFINITY;
        return c->forward_end_s[at - c->microbatches] + beside_s(c, pass, chunk);
    }
    if (c->passed[chunk][PIPELINE_FORWARD] <= n) return INFINITY;
    if (chunk + 1 == c->chunks) return c->forward_end_s[at];
    if (c->passed[chunk + 1][pass] <= n) return INFINITY;
    return max_s(c->forward_end_s[at], c->backward_end_s[at + c->microbatches] + beside_s(c, pass, chunk));
}

/* --- sequences ------------------------------------------------------------------------------ */

/* Appends a pass to the stage's sequence, unless it is past the last microbatch. */
static void append(struct pipeline_clock *c, uint32_t stage, uint32_t pass, uint32_t on_stage)
{
    struct pipeline_stage *s = &c->stages[stage];
    uint32_t chunk = chunk_of(c, stage, on_stage);
    if (c->appended[chunk][pass]++ >= c->microbatches) return;
    s->sequence[s->length++] = (struct sequence_step){pass, chunk};
}

/* Returns the chunk of the stage's k-th forward or backward pass. */
static uint32_t on_stage_of(const struct pipeline_clock *c, uint64_t k, bool forward)
{
    uint32_t stages = c->parallel->pipeline, chunks = c->parallel->chunks;
    uint32_t on_stage = (uint32_t)(k % ((uint64_t)stages * chunks) / stages);
    return forward ? on_stage : chunks - 1 - on_stage;
}

/* Returns the number of forward passes before the first backward pass. */
static uint64_t warm_up(const struct pipeline_clock *c, uint32_t stage)
{
    uint32_t stages = c->parallel->pipeline, chunks = c->parallel->chunks;
    uint64_t all = (uint64_t)c->microbatches * chunks, begin = stages - 1 - stage;
    if (c->parallel->schedule == PIPELINE_GPIPE) return all;
    if (c->parallel->schedule == PIPELINE_INTERLEAVED)
        begin = c->microbatches == stages ? all : 2 * begin + (uint64_t)(chunks - 1) * stages;
    return begin < all ? begin : all;
}

/* Appends the sequence of gpipe, 1f1b and interleaved on several stages. */
static void append_in_turn(struct pipeline_clock *c, uint32_t stage)
{
    uint64_t all = (uint64_t)c->microbatches * c->parallel->chunks, begin = warm_up(c, stage);
    for (uint64_t k = 0; k < all + begin; k++) {
        if (k < all) append(c, stage, PIPELINE_FORWARD, on_stage_of(c, k, true));
        if (k >= begin) append(c, stage, PIPELINE_BACKWARD, on_stage_of(c, k - begin, false));
    }
}

static void append_one_by_one(struct pipeline_clock *c)
{
    for (uint32_t n = 0; n < c->microbatches; n++) {
        for (uint32_t on_stage = 0; on_stage < c->parallel->chunks; on_stage++)
            append(c, 0, PIPELINE_FORWARD, on_stage);
        for (uint32_t on_stage = c->parallel->chunks; on_stage-- > 0;) append(c, 0, PIPELINE_BACKWARD, on_stage);
    }
}

/* Appends the sequence of zb-h1: 1f1b, with weight gradients p microbatches late on stage p. */
static void append_h1(struct pipeline_clock *c, uint32_t stage)
{
    uint32_t begin = c->parallel->pipeline - 1 - stage, m = c->microbatches;
    for (uint32_t k = 0; k < m + begin; k++) {
        if (k < m) append(c, stage, PIPELINE_FORWARD, 0);
        if (k < begin) continue;
        append(c, stage, PIPELINE_INPUT, 0);
        if (k - begin >= stage) append(c, stage, PIPELINE_WEIGHT, 0);
    }
    for (uint32_t k = 0; k < stage; k++) append(c, stage, PIPELINE_WEIGHT, 0);
}

static void append_backward(struct pipeline_clock *c, uint32_t stage, uint32_t on_stage)
{
    append(c, stage, PIPELINE_INPUT, on_stage);
    append(c, stage, PIPELINE_WEIGHT, on_stage);
}

/* Appends the sequence of zb-v: chunk 0 goes down the stages and chunk 1 comes back. */
static void append_v(struct pipeline_clock *c, uint32_t stage)
{
    uint32_t rest = c->parallel->pipeline - stage, least = 2 * c->parallel->pipeline - 1;
    uint32_t m = c->microbatches > least ? c->microbatches : least;
    const uint32_t *there = c->appended[chunk_of(c, stage, 0)], *back = c->appended[chunk_of(c, stage, 1)];
    for (uint32_t k = 0; k < 2 * rest - 1; k++) append(c, stage, PIPELINE_FORWARD, 0);
    for (uint32_t k = 0; k < stage; k++) {
        append(c, stage, PIPELINE_FORWARD, 1);
        append(c, stage, PIPELINE_FORWARD, 0);
    }
    for (uint32_t k = 0; k < rest; k++) {
        append(c, stage, PIPELINE_FORWARD, 1);
        append_backward(c, stage, 1);
    }
    while (back[PIPELINE_FORWARD] < m) {
        if (there[PIPELINE_FORWARD] < m) append(c, stage, PIPELINE_FORWARD, 0);
        append_backward(c, stage, 0);
        append(c, stage, PIPELINE_FORWARD, 1);
        append_backward(c, stage, 1);
    }
    for (uint32_t k = 0; k < stage; k++) {
        append(c, stage, PIPELINE_INPUT, 0);
        append(c, stage, PIPELINE_INPUT, 1);
    }
    for (uint32_t k = 0; k < rest; k++) append_backward(c, stage, 0);
    while (back[PIPELINE_WEIGHT] < m) append(c, stage, PIPELINE_WEIGHT, 1);
    while (there[PIPELINE_WEIGHT] < m) append(c, stage, PIPELINE_WEIGHT, 0);
}

static void append_all(struct pipeline_clock *c)
{
    for (uint32_t stage = 0; stage < c->parallel->pipeline; stage++) {
        if (!c->splits && c->parallel->pipeline == 1) append_one_by_one(c);
        else if (!c->splits) append_in_turn(c, stage);
        else if (c->parallel->schedule == PIPELINE_ZB_V) append_v(c, stage);
        else append_h1(c, stage);
        assert(c->stages[stage].length == c->length);
    }
}

static void next_in_sequence(const struct pipeline_clock *c, uint32_t stage, struct pipeline_choice *out)
{
    const struct pipeline_stage *s = &c->stages[stage];
    const struct sequence_step *next = &s->sequence[s->taken];
    *out = (struct pipeline_choice){.start_s = max_s(s->free_s, ready_s(c, next->pass, next->chunk)),
                                    .pass = next->pass,
                                    .chunk = next->chunk};
}

/* --- readiness ------------------------------------------------------------------------------- */

static uint32_t kept_max(const struct parallel *p)
{
    if (p->schedule == PIPELINE_ZB_H1) return p->pipeline;
    if (p->schedule == PIPELINE_ZB_H2) return 2 * p->pipeline - 1;
    return 2 * p->pipeline;
}

static struct pipeline_choice ready_choice(const struct pipeline_clock *c, uint32_t stage, uint32_t pass,
                                           uint32_t on_stage)
{
    uint32_t chunk = chunk_of(c, stage, on_stage);
    return (struct pipeline_choice){.start_s = max_s(c->stages[stage].free_s, ready_s(c, pass, chunk)), .pass = pass,
                                    .chunk = chunk};
}

/* Returns the stage's choice that is ready first; of equal chunks the later one, whose microbatch is further along. */
static struct pipeline_choice first_ready(const struct pipeline_clock *c, uint32_t stage, uint32_t pass)
{
    struct pipeline_choice best = {.start_s = INFINITY, .pass = pass};
    for (uint32_t on_stage = c->parallel->chunks; on_stage-- > 0;) {
        struct pipeline_choice choice = ready_choice(c, stage, pass, on_stage);
        if (choice.start_s < best.start_s) best = choice;
    }
    return best;
}

static void next_ready(const struct pipeline_clock *c, uint32_t stage, struct pipeline_choice *out)
{
    const struct pipeline_stage *s = &c->stages[stage];
    struct pipeline_choice forward = {.start_s = INFINITY, .pass = PIPELINE_FORWARD};
    struct pipeline_choice input = first_ready(c, stage, PIPELINE_INPUT);
    struct pipeline_choice weight = first_ready(c, stage, PIPELINE_WEIGHT);
    uint32_t room = kept_max(c->parallel) - s->kept;
    if (room > 0) forward = first_ready(c, stage, PIPELINE_FORWARD);
    /* The way back must not be blocked: a forward pass on the way down may not take the last place. */
    if (c->parallel->chunks == 2 && room == 1 && forward.chunk < c->parallel->pipeline)
        forward = ready_choice(c, stage, PIPELINE_FORWARD, 1);
    *out = input.start_s <= forward.start_s ? input : forward;
    if (weight.start_s < out->start_s) *out = weight;
}

/* --- the clock ------------------------------------------------------------------------------ */

static void chunk_pass(struct pipeline_clock *c, uint32_t stage, const struct pipeline_choice *choice,
                       struct pipeline_step *out)
{
    struct pipeline_stage *s = &c->stages[stage];
    uint32_t chunk = choice->chunk, n = c->passed[chunk][choice->pass]++;
    double end_s = choice->pass_s + c->times[chunk].pass_s[choice->pass];
    *out = (struct pipeline_step){choice->pass, chunk, n, choice->pass_s, end_s};
    s->free_s = end_s;
    s->taken++;
    if (choice->pass == PIPELINE_FORWARD) {
        c->forward_end_s[(size_t)chunk * c->microbatches + n] = end_s;
        s->kept++;
        return;
    }
    if (choice->pass != PIPELINE_WEIGHT) c->backward_end_s[(size_t)chunk * c->microbatches + n] = end_s;
    if (choice->pass != PIPELINE_INPUT) s->kept--;
}

/* Plays the stage's matches in the tournament. Among equal stages the lower one wins. */
static void play(struct pipeline_clock *c, uint32_t stage)
{
    uint32_t node = c->leaf_count + stage;
    c->first[node] = stage;
    while (node /= 2) {
        uint32_t left = c->first[2 * node], right = c->first[2 * node + 1];
        c->first[node] = c->next[right].pass_s < c->next[left].pass_s ? right : left;
    }
}

static void choose(struct pipeline_clock *c, uint32_t stage)
{
    struct pipeline_choice *next = &c->next[stage];
    *next = (struct pipeline_choice){.start_s = INFINITY};
    if (c->stages[stage].taken < c->length) (c->by_sequence ? next_in_sequence : next_ready)(c, stage, next);
    next->pass_s = next->start_s;
    if (c->parallel->blocking) next->pass_s += fetch_s(c, next->pass, next->chunk);
    play(c, stage);
}

/* Chooses again for a neighbouring chunk's stage when a pass has begun. With sequences this matters only if the stage
 * waits for that pass. */
static void choose_again(struct pipeline_clock *c, uint32_t chunk)
{
    uint32_t stage = parallel_place(c->parallel, chunk).stage;
    if (!c->by_sequence || !(c->next[stage].start_s < INFINITY)) choose(c, stage);
}

static void chunk_clock(struct pipeline_clock *c, struct pipeline_order *out)
{
    for (uint32_t leaf = c->parallel->pipeline; leaf < c->leaf_count; leaf++) c->next[leaf].pass_s = INFINITY;
    for (uint32_t leaf = 0; leaf < c->leaf_count; leaf++) play(c, leaf);
    for (uint32_t stage = 0; stage < c->parallel->pipeline; stage++) choose(c, stage);
    for (uint64_t i = 0; i < out->count; i++) {
        uint32_t best = c->first[1];
        const struct pipeline_choice choice = c->next[best];
        assert(choice.pass_s < INFINITY);
        chunk_pass(c, best, &choice, &out->steps[i]);
        if (out->steps[i].end_s > out->end_s) out->end_s = out->steps[i].end_s;
        choose(c, best);
        if (choice.chunk > 0) choose_again(c, choice.chunk - 1);
        if (choice.chunk + 1 < c->chunks) choose_again(c, choice.chunk + 1);
    }
}

static enum status prepare(struct pipeline_clock *c, struct arena *arena, struct error *err)
{
    const struct parallel *p = c->parallel;
    uint64_t cells = (uint64_t)c->chunks * c->microbatches;
    struct sequence_step *sequence;
    c->leaf_count = 1;
    while (c->leaf_count < p->pipeline) c->leaf_count *= 2;
    TRY(ARENA_NEW(arena, p->pipeline, c->stages, err));
    TRY(ARENA_NEW(arena, c->leaf_count, c->next, err));
    TRY(ARENA_NEW(arena, 2 * (size_t)c->leaf_count, c->first, err));
    TRY(ARENA_NEW(arena, 2 * (size_t)c->chunks, c->passed, err));
    TRY(ARENA_NEW(arena, 2 * cells, c->forward_end_s, err));
    TRY(ARENA_NEW(arena, p->pipeline * c->length, sequence, err));
    c->appended = c->passed + c->chunks;
    c->backward_end_s = c->forward_end_s + cells;
    for (uint32_t stage = 0; stage < p->pipeline; stage++)
        c->stages[stage].sequence = sequence + stage * c->length;
    if (p->schedule != PIPELINE_ZB_H2) append_all(c);
    return STATUS_OK;
}

/* Sets the clock back to 0 for the other method of choosing. */
static void rewind_clock(struct pipeline_clock *c)
{
    memset(c->passed, 0, c->chunks * sizeof *c->passed);
    for (uint32_t stage = 0; stage < c->parallel->pipeline; stage++) {
        c->stages[stage].free_s = 0;
        c->stages[stage].taken = 0;
        c->stages[stage].kept = 0;
    }
}

enum status pipeline_order(struct arena *arena, const struct parallel *parallel, uint32_t microbatches,
                           const struct pipeline_times *times, struct pipeline_order *out, struct error *err)
{
    struct arena scratch = {0};
    bool splits = pipeline_splits(parallel);
    struct pipeline_clock c = {.parallel = parallel, .times = times, .microbatches = microbatches, .splits = splits,
                               .chunks = parallel_chunks(parallel),
                               .by_sequence = parallel->schedule != PIPELINE_ZB_H2};
    struct pipeline_order other;
    assert(!pipeline_is_asynchronous(parallel->schedule) && parallel->schedule != PIPELINE_TERAPIPE);
    if (parallel_buckets(parallel) > 1) return pipeline_buckets_order(arena, parallel, microbatches, times, out, err);
    if (parallel->replicated > 0) return pipeline_turns_order(arena, parallel, microbatches, times, out, err);
    c.length = (uint64_t)microbatches * parallel->chunks * (splits ? 3 : 2);
    *out = other = (struct pipeline_order){.count = parallel->pipeline * c.length};
    if (out->count > PIPELINE_STEPS_MAX)
        return error_set(err, STATUS_LIMIT, "too many passes of microbatches (limit is %d)", PIPELINE_STEPS_MAX);
    enum status status = ARENA_NEW(arena, out->count, out->steps, err);
    if (!status) status = prepare(&c, &scratch, err);
    if (!status) chunk_clock(&c, out);
    bool again = splits && c.by_sequence;
    if (!status && again) status = ARENA_NEW(&scratch, out->count, other.steps, err);
    if (!status && again) {
        c.by_sequence = false;
        rewind_clock(&c);
        chunk_clock(&c, &other);
        if (other.end_s < out->end_s) {
            memcpy(out->steps, other.steps, out->count * sizeof *out->steps);
            out->end_s = other.end_s;
        }
    }
    arena_release(&scratch);
    return status;
}
