/*
 * Parallel jobs (planner/parallel/parallel_job.h): claims and work of each operation.
 *
 * A table's row has the contents that a pass finds and leaves. Versions are by plan_checker.h's clocks: the n-th pass
 * over a chunk is about microbatch n of the training, and finds weights updated n / m times, with m microbatches to a
 * minibatch on each replica. So the checker finds weights that are used too early or too late, and a microbatch left
 * out of a gradient.
 *
 *     gradient, m = 4       passes add   1 2 3 4     reduced 4     update finds 4, leaves 4
 *                                        5 6 7 8     reduced 8     ...
 *
 * A tensor group's result is a sum of parts until its unit's last collective has joined them: an *unfinished* boundary
 * or gradient.
 *
 * Data-parallel ranks follow ZeRO's level. If ranks split states or nothing, one REDUCE makes a reduced gradient of a
 * minibatch's sum. If they split gradients, a pass makes its microbatch's gradient, and a REDUCE adds it to the share,
 * which must hold all microbatches for the UPDATE:
 *
 *     passes make   1    2    3    4         REDUCE finds n and a share of n - 1, leaves one of n
 *     share         1    2    3    4         UPDATE finds 4
 *
 * If the first and the last stage share a table, a JOIN joins both ends' gradients, reduced where there are replicas;
 * their UPDATEs need them joined.
 *
 * Whole weights are the state's. If ranks update shares, passes find them after the shares' all-gather; if ranks split
 * them, in the PARAMETERS of this pass's GATHER. A head that is tied to a table on its own stage finds the table there
 * too, from the first chunk's shares.
 *
 * planner/check/plan_check_offload.c has offloaded data.
 *
 * Asynchronous schedules have PARAMETERS too, a buffer per version present. The n-th forward and backward pass claim
 * the version of max(n / m - staleness, 0) updates; an UPDATE claims the newest and makes the next:
 *
 *     pipedream, staleness of 2 stages   passes claim   0 0 0 1 2 3     UPDATE finds 0, makes 1, ...
 *
 * Updates that wait for the first stage (models/job/parallel_memory.h) are as stale as its own. Their chunk's gradients
 * take turns: the first backward pass of a minibatch makes its sum, and the last one copies the loss.
 *
 * If a stage's replicas take turns, each counts its own passes: the k-th of replica d of r is about microbatch k r + d
 * of the job; another microbatch's boundary came from the wrong replica. Their sums claim equally many microbatches,
 * and versions are of the stage's own updates.
 *
 * A pass over a slice of tokens (terapipe) names it in its computation; the order (plan_check_parallel_order.c) has
 * slices forward in turn and backward in reverse. A stage's slices are on one stream, so a slice finds earlier keys and
 * values. Where they are carried out, these are in a handover that counts the slices: forward slice n of all finds n
 * and leaves n + 1, backward it finds n + 1 and leaves n. So it has the keys of all earlier slices of its microbatch,
 * and the gradients of all later ones.
 *
 *     slices of 3 to a microbatch   forward 0 leaves 1, 1 leaves 2, 2 leaves 3    backward 2 finds 3, 1 finds 2, 0
 *     finds 1
 *
 * An evaluation has forward passes alone.
 *
 * Scattered boundaries arrive as each rank's part, at the beginning of its buffer; an all-gather makes the whole.
 *
 * A backward pass in one unit with collectives to hide has three computations, and its workspace holds the boundary's
 * gradient between them.
 *
 * Jobs that are carried out (parallel_is_carried_out()) find a minibatch's data, of its step, and add each microbatch
 * to its loss, as to a gradient.
 *
 * Operands: plan_check_parallel_view.c. Contents of units: plan_check_parallel_unit.c, their copies:
 * plan_check_parallel_copies.c. Devices, and counts of passes:
 * plan_check_parallel_order.c.
 *
 * Cost: units once; the order as in plan_check_run.c.
 */
#include <inttypes.h>

#include "base/try.h"
#include "models/job/chunk_memory.h"
#include "models/job/parallel_memory.h"
#include "models/job/parallel_offload.h"
#include "models/job/parallel_work.h"
#include "planner/check/plan_check_parallel_view.h"
#include "planner/plan_gang.h"

/* The uses of a computation's operands. */
enum use { USE_NONE, USE_READ, USE_MAKE, USE_CHANGE };
#define R USE_READ
#define W USE_MAKE
#define RW USE_CHANGE
static const uint8_t uses[PLAN_PASS_COUNT][CHECK_OPERANDS] = {
    /*                        state gradient in out activations out' in' workspace */
    [PLAN_LOAD]            = {W,  W,  0, 0, 0, 0, 0, 0},
    [PLAN_STORE]           = {R,  R,  0, 0, 0, 0, 0, 0},
    [PLAN_FORWARD]         = {R,  0,  R, W, W, 0, 0, W},
    [PLAN_BACKWARD]        = {R,  RW, R, 0, R, R, W, W},
    [PLAN_BACKWARD_INPUT]  = {R,  0,  R, 0, R, R, W, W},
    [PLAN_BACKWARD_WEIGHT] = {0,  RW, R, 0, R, R, 0, W},
    [PLAN_UPDATE]          = {RW, RW, 0, 0, 0, 0, 0, 0},
    [PLAN_EVALUATE]        = {R,  0,  R, W, 0, 0, 0, W},
    [PLAN_NORM]            = {0,  R,  0, 0, 0, 0, 0, 0},
    [PLAN_REDUCE]          = {0,  RW, 0, 0, 0, 0, 0, 0}, /* of compressed gradients */
};
/* For a backward unit with three computations. */
static const uint8_t first_of_three[CHECK_OPERANDS] = {R, 0, R, 0, R, R, 0, W};
static const uint8_t second_of_three[CHECK_OPERANDS] = {0, RW, R, 0, R, R, 0, 0};
static const uint8_t third_of_three[CHECK_OPERANDS] = {0, 0, 0, 0, 0, 0, W, R};
#undef R
#undef W
#undef RW

/* --- operands ------------------------------------------------------------------------------- */

/* Returns the computation's number, 1 to 3, in a backward unit with three; else 0. */
static uint32_t part_of_three(const struct checker *c, const struct check_parallel_view *v)
{
    const struct plan_op *ops = &c->plan->ops[v->unit->first_op];
    uint32_t count = 0, own = 0;
    if (v->unit->pass != PLAN_BACKWARD) return 0;
    for (uint32_t o = 0; o < v->unit->op_count; o++) {
        if (ops[o].kind != OP_COMPUTE || check_holds_place(c, o)) continue;
        count++;
        if (&ops[o] == v->op) own = count;
    }
    return count == 3 ? own : 0;
}

/* Returns true for passes over layers, whose operands are whole. */
static bool passes(const struct check_parallel_view *v)
{
    return v->unit->pass != PLAN_LOAD && v->unit->pass != PLAN_STORE && v->unit->pass != PLAN_UPDATE &&
           v->unit->pass != PLAN_NORM;
}

/* Data are read by the passes of the first chunk and the backward pass of the last one, which makes the loss, in its
 * first unit if it has two. */
static enum use use_of_carried_out(const struct check_parallel_view *v, enum check_operand operand)
{
    const uint32_t pass = v->op->pass;
    const bool first = v->chunk == 0, last = v->chunk + 1 == v->chunks, second = pass == PLAN_BACKWARD_WEIGHT;
    const bool back = pass == PLAN_BACKWARD || pass == PLAN_BACKWARD_INPUT, held_out = pass == PLAN_EVALUATE;
    const enum use lives = pass == PLAN_LOAD ? USE_MAKE : pass == PLAN_STORE ? USE_READ : USE_NONE;
    if (!v->carried_out) return USE_NONE;
    switch (operand) {
    case CHECK_OPERAND_BATCH:
        if (lives != USE_NONE) return check_brings_batch(v) && v->versions == 0 ? lives : USE_NONE;
        return (first && (back || second || pass == PLAN_FORWARD)) || (last && back) || ((first || last) && held_out)
                   ? USE_READ
                   : USE_NONE;
    case CHECK_OPERAND_LOSS: return !last ? USE_NONE : back ? USE_CHANGE : lives;
    case CHECK_OPERAND_HELD_OUT_LOSS:
        return !last || v->job->evaluation.every == 0 ? USE_NONE : held_out ? USE_CHANGE : lives;
    case CHECK_OPERAND_TABLE:
        return v->shares_table && last && (back || held_out) && !v->gathers ? USE_READ : USE_NONE;
    case CHECK_OPERAND_LEVELS:
        if (!check_operand_exists(v, operand)) return USE_NONE;
        return back || second ? USE_CHANGE : lives;
    case CHECK_OPERAND_NORMS:
        if (lives != USE_NONE) return check_brings_norms(v) ? lives : USE_NONE;
        return !job_clips(v->job) ? USE_NONE : pass == PLAN_NORM ? USE_MAKE : pass == PLAN_UPDATE ? USE_READ : USE_NONE;
    case CHECK_OPERAND_TABLE_GRADIENT:
        if (!v->shares_table || !parallel_trains_table(v->job)) return USE_NONE;
        return first && pass == (job_clips(v->job) ? PLAN_NORM : PLAN_UPDATE) ? USE_READ : USE_NONE;
    case CHECK_OPERAND_HANDOVER:
        if (v->job->parallel.slices > 1) {
            const bool forward = pass == PLAN_FORWARD || held_out;
            return forward && v->op->slice == 0 ? USE_MAKE : forward || pass == PLAN_BACKWARD ? USE_CHANGE : USE_NONE;
        }
        return second ? USE_READ : pass == PLAN_BACKWARD_INPUT ? USE_MAKE : USE_NONE;
    default: return USE_NONE;
    }
}

/* Returns true for the first of two units of a backward pass. It adds to the gradients of norms and of the head. */
static bool is_first_half(const struct check_parallel_view *v)
{
    return v->carried_out && v->op->pass == PLAN_BACKWARD_INPUT;
}

static enum use use_of(const struct check_parallel_view *v, enum check_operand operand)
{
    static const uint8_t *const threes[] = {first_of_three, second_of_three, third_of_three};
    const uint8_t *own = v->part > 0 ? threes[v->part - 1] : uses[v->op->pass];
    bool apart = (v->gathers || v->versions > 0) && passes(v), scatters = v->scatters && passes(v);
    bool many = v->versions > 1 && v->unit->pass == PLAN_UPDATE;
    bool copied = v->carried_out && v->job->parallel.offload != OFFLOAD_WEIGHTS && /* else there is none */
                  (v->op->pass == PLAN_LOAD || v->op->pass == PLAN_STORE);
    bool second = v->carried_out && v->op->pass == PLAN_BACKWARD_WEIGHT;
    switch (operand) {
    case CHECK_OPERAND_STATE:
        if (copied && v->versions > 0 && v->op->pass == PLAN_LOAD) return USE_READ; /* the first version is a copy */
        /* the host has it */
        if (copied && v->op->pass == PLAN_STORE && parallel_offloads(&v->job->parallel)) return USE_READ;
        return apart || copied ? USE_NONE : second ? USE_READ : own[CHECK_OPERAND_STATE];
    case CHECK_OPERAND_BATCH:
    case CHECK_OPERAND_LOSS:
    case CHECK_OPERAND_HELD_OUT_LOSS:
    case CHECK_OPERAND_NORMS:
    case CHECK_OPERAND_LEVELS:
    case CHECK_OPERAND_TABLE:
    case CHECK_OPERAND_TABLE_GRADIENT:
    case CHECK_OPERAND_HANDOVER: return use_of_carried_out(v, operand);
    case CHECK_OPERAND_WEIGHTS:
        if (apart && second && parallel_fetches_again(v->job, v->chunk)) return USE_READ;
        return many ? USE_READ : apart || v->versions > 0 ? own[CHECK_OPERAND_STATE] : USE_NONE;
    case CHECK_OPERAND_NEXT_WEIGHTS: return many ? USE_MAKE : USE_NONE;
    case CHECK_OPERAND_GRADIENT:
        if (v->op->pass == PLAN_NORM && v->shares_table && v->chunk == 0) return USE_CHANGE;
        if (v->gradients > 1 && (v->op->pass == PLAN_LOAD || v->op->pass == PLAN_STORE)) return USE_NONE;
        if (v->gradients > 1 && v->begins_sum) return USE_MAKE;
        return scatters ? USE_NONE : is_first_half(v) ? USE_CHANGE : own[CHECK_OPERAND_GRADIENT];
    case CHECK_OPERAND_WHOLE_GRADIENT:
        if (!scatters || (!own[CHECK_OPERAND_GRADIENT] && !is_first_half(v))) return USE_NONE;
        return second || v->op->pass == PLAN_REDUCE ? USE_CHANGE : USE_MAKE;
    default: return own[operand];
    }
}

/* --- claims --------------------------------------------------------------------------------- */

struct meaning {
    uint32_t thing; /* NOTHING: contents are not tracked */
    enum check_claim_clock clock;
};
#define NOTHING UINT32_MAX

/* Returns true for weights that nothing gathers: they are a state's, as they have come up. */
static bool are_raised(const struct check_parallel_view *v)
{
    return v->job->parallel.offload == OFFLOAD_WEIGHTS && !parallel_splits(&v->job->parallel, ZERO_WEIGHTS);
}

/* Returns the contents of a sum of gradients before the operation (found) or after it. */
static struct meaning meaning_of_gradient(const struct check_parallel_view *v, bool found)
{
    const bool update = v->op->pass == PLAN_UPDATE;
    if (is_first_half(v)) return (struct meaning){NOTHING, CHECK_CLOCK_SUM}; /* BACKWARD_WEIGHT counts the sum */
    if (v->op->pass == PLAN_REDUCE && !found)
        return (struct meaning){check_shard_thing(v->global, CHECK_THING_ENCODED_GRADIENT), CHECK_CLOCK_SUM};
    /* a norm leaves its gradient */
    const bool complete = (update && found) || v->op->pass == PLAN_NORM;
    const bool reduced = v->scatters || (complete && v->ranks > 1);
    if (complete && parallel_joins_chunk(v->job, v->chunk))
        return (struct meaning){check_shard_thing(v->global, CHECK_THING_JOINED_GRADIENT), CHECK_CLOCK_SUM};
    return (struct meaning){check_shard_thing(v->global, reduced ? CHECK_THING_REDUCED_GRADIENT
                                                                 : CHECK_THING_PARAMETER_GRADIENT),
                            CHECK_CLOCK_SUM};
}

/* Returns the contents of a microbatch's gradient before the operation (found) or after it. */
static struct meaning meaning_of_whole_gradient(const struct check_parallel_view *v, bool found)
{
    const bool second = v->carried_out && v->op->pass == PLAN_BACKWARD_WEIGHT; /* finds what the first unit made */
    const bool handed = is_first_half(v) || (second && found);
    const bool encodes = v->op->kind == OP_COMPUTE; /* in a REDUCE; a collective finds what it leaves */
    if (v->unit->pass == PLAN_REDUCE && parallel_encodes_gradients(v->job) && !(encodes && found))
        return (struct meaning){check_shard_thing(v->global, CHECK_THING_ENCODED_GRADIENT), CHECK_CLOCK_MICROBATCH};
    return (struct meaning){check_shard_thing(v->global, handed ? CHECK_THING_HANDED_GRADIENT
                                                                : CHECK_THING_PARAMETER_GRADIENT),
                            CHECK_CLOCK_MICROBATCH};
}

/* Returns an operand's contents before the operation (found) or after it. */
static struct meaning meaning_of(const struct check_parallel_view *v, enum check_operand operand, bool found,
                                 uint32_t part)
{
    const struct parallel *p = &v->job->parallel;
    const bool parts = p->tensor > 1;
    const bool lives = v->op->pass == PLAN_LOAD || v->op->pass == PLAN_STORE; /* moves whatever is there */
    const uint32_t own = v->global, next = own + 1;
    switch (operand) {
    case CHECK_OPERAND_STATE: {
        const bool splits = parallel_splits(p, ZERO_STATES) && v->whole.weight_bytes > 0;
        const bool shares = v->op->pass == PLAN_UPDATE && !found && !v->gathers && splits;
        return (struct meaning){check_shard_thing(own, shares ? CHECK_THING_UPDATED_SHARES : CHECK_THING_STATE),
                                CHECK_CLOCK_STEP};
    }
    case CHECK_OPERAND_WEIGHTS:
    case CHECK_OPERAND_NEXT_WEIGHTS:
        return (struct meaning){check_shard_thing(own, are_raised(v) ? CHECK_THING_STATE : CHECK_THING_WEIGHTS),
                                CHECK_CLOCK_STEP};
    case CHECK_OPERAND_GRADIENT: return meaning_of_gradient(v, found);
    case CHECK_OPERAND_WHOLE_GRADIENT: return meaning_of_whole_gradient(v, found);
    case CHECK_OPERAND_INPUT:
        return (struct meaning){check_shard_thing(own, CHECK_THING_BOUNDARY), CHECK_CLOCK_MICROBATCH};
    case CHECK_OPERAND_OUTPUT:
        return (struct meaning){check_shard_thing(next, parts ? CHECK_THING_PARTIAL : CHECK_THING_BOUNDARY),
                                CHECK_CLOCK_MICROBATCH};
    case CHECK_OPERAND_ACTIVATIONS:
        return (struct meaning){check_shard_thing(own, CHECK_THING_ACTIVATIONS), CHECK_CLOCK_MICROBATCH};
    case CHECK_OPERAND_OUTPUT_GRADIENT:
        return (struct meaning){check_shard_thing(next, CHECK_THING_GRADIENT), CHECK_CLOCK_MICROBATCH};
    case CHECK_OPERAND_INPUT_GRADIENT: {
        bool whole = !parts || part == 3;
        return (struct meaning){check_shard_thing(own, whole ? CHECK_THING_GRADIENT : CHECK_THING_PARTIAL_GRADIENT),
                                CHECK_CLOCK_MICROBATCH};
    }
    case CHECK_OPERAND_WORKSPACE:
        if (part == 1)
            return (struct meaning){check_shard_thing(own, CHECK_THING_PARTIAL_GRADIENT), CHECK_CLOCK_MICROBATCH};
        if (part == 3) return (struct meaning){check_shard_thing(own, CHECK_THING_GRADIENT), CHECK_CLOCK_MICROBATCH};
        return (struct meaning){NOTHING, CHECK_CLOCK_MINIBATCH};
    case CHECK_OPERAND_BATCH:
        return (struct meaning){lives ? NOTHING : v->batch_thing,
                                v->op->pass == PLAN_EVALUATE ? CHECK_CLOCK_HELD_OUT : CHECK_CLOCK_DATA};
    case CHECK_OPERAND_LOSS: return (struct meaning){v->loss_thing, CHECK_CLOCK_SUM};
    case CHECK_OPERAND_HELD_OUT_LOSS: return (struct meaning){v->loss_thing, CHECK_CLOCK_HELD_OUT_SUM};
    case CHECK_OPERAND_HANDOVER:
        return (struct meaning){check_shard_thing(own, CHECK_THING_HANDOVER),
                                v->job->parallel.slices > 1 ? CHECK_CLOCK_SLICE : CHECK_CLOCK_MICROBATCH};
    case CHECK_OPERAND_NORMS: return (struct meaning){lives ? NOTHING : v->norms_thing, CHECK_CLOCK_STEP};
    case CHECK_OPERAND_TABLE:
        return (struct meaning){check_shard_thing(own - v->chunk, CHECK_THING_STATE), CHECK_CLOCK_STEP};
    case CHECK_OPERAND_TABLE_GRADIENT: {
        const bool early = v->op->pass == PLAN_NORM && v->ranks > 1; /* the last chunk's update comes later */
        return (struct meaning){check_shard_thing(own - v->chunk + v->chunks - 1,
                                                  early || v->scatters ? CHECK_THING_REDUCED_GRADIENT
                                                                       : CHECK_THING_PARAMETER_GRADIENT),
                                CHECK_CLOCK_SUM};
    }
    default: return (struct meaning){NOTHING, CHECK_CLOCK_MINIBATCH};
    }
}

static enum status add_claim(struct checker *c, const struct plan_access *access, struct meaning meaning,
                             bool makes, uint64_t bytes, uint32_t delta)
{
    if (meaning.thing == NOTHING) return STATUS_OK;
    return check_add_claim(c, access,
                           (struct check_claim){.thing = meaning.thing, .clock = meaning.clock, .makes = makes,
                                                .version_delta = delta, .bytes = bytes});
}

/* Claims the squares of a chunk's tensors among those of all tensors, found or left. */
static enum status claim_norms(struct checker *c, const struct check_parallel_view *v, const struct plan_access *access,
                               bool makes, uint32_t thing)
{
    const struct network *n = &v->job->network;
    const uint64_t offset = memory_tensor_count(n, 0, v->layers.first) * sizeof(double);
    return check_add_claim(c, access,
                           (struct check_claim){.thing = thing, .clock = CHECK_CLOCK_STEP, .makes = makes,
                                                .offset_bytes = offset, .thing_offset = offset,
                                                .bytes = memory_tensor_count(n, v->layers.first, v->layers.count) *
                                                         sizeof(double)});
}

/* Claims weights that have come up, with the first chunk's table after them. */
static enum status claim_raised(struct checker *c, const struct check_parallel_view *v,
                                const struct plan_access *access)
{
    const struct chunk_memory own = chunk_memory(v->job, v->layers);
    const uint64_t all = check_operand_bytes(c, v, CHECK_OPERAND_WEIGHTS), table = check_gathered_table_bytes(v);
    TRY(check_add_claim(c, access, (struct check_claim){.thing = check_shard_thing(v->global, CHECK_THING_STATE),
                                                        .clock = CHECK_CLOCK_STEP, .bytes = all - table}));
    return check_add_claim(c, access,
                           (struct check_claim){.thing = check_shard_thing(v->global - v->chunk, CHECK_THING_STATE),
                                                .clock = CHECK_CLOCK_STEP, .offset_bytes = all - table,
                                                .thing_offset = own.raised_table_offset, .bytes = table});
}

/* Claims an operand as found and left. A pass adds a microbatch to a sum, an update a step to a state; LOAD makes
 * states from before the first step. */
static enum status claim_operand(struct checker *c, const struct check_parallel_view *v, enum check_operand operand,
                                 const struct plan_access *access, enum use use)
{
    uint32_t part = v->part, delta = 0;
    uint64_t bytes = check_operand_bytes(c, v, operand);
    if (operand == CHECK_OPERAND_NORMS && v->op->pass == PLAN_NORM)
        return claim_norms(c, v, access, true,
                           parallel_splits(&v->job->parallel, ZERO_STATES) ? v->share_norms_thing : v->norms_thing);
    if (operand == CHECK_OPERAND_WEIGHTS && v->gathers_table && are_raised(v)) return claim_raised(c, v, access);
    if (operand == CHECK_OPERAND_HANDOVER && v->job->parallel.slices > 1) {
        const uint32_t back = v->op->pass == PLAN_BACKWARD;
        if (use != USE_MAKE) TRY(add_claim(c, access, meaning_of(v, operand, true, part), false, bytes, back));
        return add_claim(c, access, meaning_of(v, operand, false, part), true, bytes, !back);
    }
    /* adds no microbatch to a sum */
    bool update = v->op->pass == PLAN_UPDATE || v->op->pass == PLAN_REDUCE || v->op->pass == PLAN_NORM;
    bool steps = operand == CHECK_OPERAND_STATE || operand == CHECK_OPERAND_WEIGHTS;
    if (use == USE_CHANGE && (steps || !update) && operand != CHECK_OPERAND_WHOLE_GRADIENT) delta = 1;
    if (operand == CHECK_OPERAND_NEXT_WEIGHTS) delta = 1;
    if (operand == CHECK_OPERAND_GRADIENT && v->begins_sum && v->gradients > 1) delta = 1;
    if (use != USE_MAKE) TRY(add_claim(c, access, meaning_of(v, operand, true, part), false, bytes, 0));
    if (use != USE_READ) TRY(add_claim(c, access, meaning_of(v, operand, false, part), true, bytes, delta));
    return STATUS_OK;
}

/* --- computations --------------------------------------------------------------------------- */

/* Right work depends only on the chunk and the pass, so it is computed once, except for slices and the third of three
 * computations, which has none. */
static bool is_right_work(const struct checker *c, const struct check_parallel_view *v)
{
    return v->part != 3 && v->op->work != PLAN_NONE && v->job->parallel.slices <= 1 &&
           c->shards[v->global].right_work[v->op->pass] == v->op->work + 1;
}

static enum status check_work(struct checker *c, const struct check_parallel_view *v)
{
    if (is_right_work(c, v)) return STATUS_OK;
    static const int passes[PLAN_PASS_COUNT] = {
        [PLAN_FORWARD] = PARALLEL_FORWARD + 1,        [PLAN_BACKWARD] = PARALLEL_BACKWARD + 1,
        [PLAN_BACKWARD_INPUT] = PARALLEL_INPUT + 1,   [PLAN_BACKWARD_WEIGHT] = PARALLEL_WEIGHT + 1,
        [PLAN_UPDATE] = PARALLEL_UPDATE + 1,          [PLAN_REDUCE] = PARALLEL_SUM + 1,
        [PLAN_EVALUATE] = PARALLEL_EVALUATE + 1,      [PLAN_NORM] = PARALLEL_NORM + 1,
    };
    const struct plan *plan = c->plan;
    struct work_item wanted[PARALLEL_WORK_MAX];
    enum parallel_pass pass = (enum parallel_pass)(passes[v->op->pass] - 1);
    if (v->op->pass == PLAN_REDUCE && !parallel_drains(v->job)) pass = PARALLEL_ENCODE;
    bool idle = !passes[v->op->pass] || v->part == 3;
    uint32_t count = idle ? 0 : parallel_work(v->slice, v->layers, pass, wanted);
    const struct plan_work *work = v->op->work == PLAN_NONE ? NULL : &plan->works[v->op->work];
    if (count != (work ? work->item_count : 0))
        return check_fail(c, CHECK_RULE_WORK, "has %u kernels (expected %u)", work ? work->item_count : 0, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct work_item *a = &plan->items[work->first_item + i], *b = &wanted[i];
        if (a->kernel != b->kernel || a->count != b->count || a->m != b->m || a->n != b->n || a->k != b->k)
            return check_fail(c, CHECK_RULE_WORK,
                              "kernel %u is %u %s of %" PRIu64 " x %" PRIu64 " x %" PRIu64 " (expected %u %s of %"
                              PRIu64 " x %" PRIu64 " x %" PRIu64 ")",
                              i, a->count, kernel_names[a->kernel], a->m, a->n, a->k, b->count,
                              kernel_names[b->kernel], b->m, b->n, b->k);
    }
    if (v->part != 3) c->shards[v->global].right_work[v->op->pass] = v->op->work + 1;
    return STATUS_OK;
}

static enum status check_pass(struct checker *c, const struct check_parallel_view *v)
{
    uint32_t part = v->part, pass = v->op->pass, own = v->unit->pass;
    static const uint32_t three[] = {PLAN_BACKWARD_INPUT, PLAN_BACKWARD_WEIGHT, PLAN_BACKWARD};
    uint32_t wanted = part > 0 ? three[part - 1] : own;
    if (v->op->stream != STREAM_COMPUTE)
        return check_fail(c, CHECK_RULE_FORM, "a computation on the %s stream", plan_stream_names[v->op->stream]);
    if (pass != wanted)
        return check_fail(c, CHECK_RULE_FORM, "a %s in a unit that is about %s", plan_pass_names[pass],
                          plan_pass_names[own]);
    if (v->op->row_count != 0 || v->op->first_row != 0)
        return check_fail(c, CHECK_RULE_FORM, "a slice of a chunk of layers");
    if (v->op->slice >= (passes(v) ? parallel_slices(&v->job->parallel) : 1) ||
        v->op->slice != check_parallel_slice_of(c->plan, v->unit))
        return check_fail(c, CHECK_RULE_FORM, "slice %u in a unit that is about slice %u of %u", v->op->slice,
                          check_parallel_slice_of(c->plan, v->unit), parallel_slices(&v->job->parallel));
    return STATUS_OK;
}

static enum status check_compute(struct checker *c, const struct check_parallel_view *v)
{
    const struct plan_access *found[CHECK_OPERANDS] = {NULL};
    enum use wanted[CHECK_OPERANDS];
    TRY(check_pass(c, v));
    for (enum check_operand o = 0; o < CHECK_OPERANDS; o++) wanted[o] = use_of(v, o);
    for (uint32_t a = 0; a < v->op->access_count; a++) {
        const struct plan_access *access = &c->plan->accesses[v->op->first_access + a];
        const struct plan_buffer *b = check_buffer_of(c, access);
        enum check_operand operand = check_operand_of(v, b);
        char text[PLAN_TEXT_BYTES];
        uint32_t flags = access->flags & (ACCESS_READ | ACCESS_WRITE);
        if (operand == CHECK_OPERAND_WEIGHTS && wanted[CHECK_OPERAND_NEXT_WEIGHTS] && flags == ACCESS_WRITE)
            operand = CHECK_OPERAND_NEXT_WEIGHTS;
        static const uint32_t expected[] = {0, ACCESS_READ, ACCESS_WRITE, ACCESS_READ | ACCESS_WRITE};
        if (operand == CHECK_OPERANDS || !b->on_device || !wanted[operand] || found[operand] || access->offset_bytes)
            return check_fail(c, CHECK_RULE_FORM, "has no use for the %s", check_access_text(c, access, text));
        if (flags != expected[wanted[operand]])
            return check_fail(c, CHECK_RULE_FORM, "%s the %s", flags == ACCESS_READ ? "only reads" : "writes",
                              check_access_text(c, access, text));
        if (b->bytes < check_buffer_bytes(c, v, operand))
            return check_fail(c, CHECK_RULE_MEMORY, "the %s has %" PRIu64 " bytes (expected %" PRIu64 ")",
                              check_access_text(c, access, text), b->bytes, check_buffer_bytes(c, v, operand));
        found[operand] = access;
    }
    for (uint32_t o = 0; o < CHECK_OPERANDS; o++) {
        if (!wanted[o] || !check_operand_exists(v, (enum check_operand)o)) continue;
        if (!found[o]) return check_fail(c, CHECK_RULE_FORM, "lacks the %s", check_operand_names[o]);
        TRY(claim_operand(c, v, (enum check_operand)o, found[o], wanted[o]));
    }
    return check_work(c, v);
}

/* --- collectives ---------------------------------------------------------------------------- */

static bool is_last_on(const struct checker *c, const struct check_parallel_view *v)
{
    const struct plan *plan = c->plan;
    uint32_t buffer = plan->accesses[v->op->first_access].buffer;
    for (const struct plan_op *op = v->op + 1; op < plan->ops + v->unit->first_op + v->unit->op_count; op++)
        if (op->kind == OP_COLLECTIVE && op->axes == v->op->axes &&
            plan->accesses[op->first_access].buffer == buffer)
            return false;
    return true;
}

/* Claims an operand of a data-parallel collective in place: a minibatch's gradients, or weights with updated shares. */
static enum status claim_shared(struct checker *c, const struct check_parallel_view *v,
                                const struct plan_access *access, enum check_operand operand)
{
    bool gradient = operand == CHECK_OPERAND_GRADIENT;
    enum check_claim_clock clock = gradient ? CHECK_CLOCK_SUM : CHECK_CLOCK_STEP;
    uint32_t delta = gradient ? 0 : 1;
    bool encoded = parallel_encodes_gradients(v->job);
    uint32_t sum = encoded ? CHECK_THING_ENCODED_GRADIENT : CHECK_THING_PARAMETER_GRADIENT;
    uint32_t found = check_shard_thing(v->global, gradient ? (enum check_shard_thing)sum : CHECK_THING_UPDATED_SHARES);
    uint32_t left = check_shard_thing(v->global, gradient ? CHECK_THING_REDUCED_GRADIENT : CHECK_THING_STATE);
    uint64_t bytes = check_operand_bytes(c, v, operand);
    TRY(add_claim(c, access, (struct meaning){found, clock}, false, bytes, delta));
    return add_claim(c, access, (struct meaning){left, clock}, true, bytes, delta);
}

/* Claims both ends of a data-parallel collective: shares to whole weights, or a whole gradient to shares. */
static enum status claim_moved(struct checker *c, const struct check_parallel_view *v, const struct plan_access *ends,
                               enum check_operand from, enum check_operand to)
{
    bool gathers = to == CHECK_OPERAND_WEIGHTS;
    uint64_t table = from == CHECK_OPERAND_STATE && v->gathers_table ? check_gathered_table_bytes(v) : 0;
    TRY(add_claim(c, &ends[0], meaning_of(v, from, true, 0), false, check_operand_bytes(c, v, from), 0));
    if (!gathers) TRY(add_claim(c, &ends[1], meaning_of(v, to, true, 0), false, check_operand_bytes(c, v, to), 0));
    return add_claim(c, &ends[1], meaning_of(v, to, false, 0), true, check_operand_bytes(c, v, to) - table,
                     gathers ? 0 : 1);
}

/* Claims the first chunk's shares of a tied table, and the table at the end of the gathered weights. */
static enum status claim_gathered_table(struct checker *c, const struct check_parallel_view *v,
                                        const struct plan_access *ends)
{
    uint64_t bytes = check_operand_bytes(c, v, CHECK_OPERAND_WEIGHTS), table = check_gathered_table_bytes(v);
    TRY(add_claim(c, &ends[0], meaning_of(v, CHECK_OPERAND_TABLE, true, 0), false,
                  check_operand_bytes(c, v, CHECK_OPERAND_TABLE), 0));
    return check_add_claim(c, &ends[1],
                           (struct check_claim){.thing = check_shard_thing(v->global, CHECK_THING_WEIGHTS),
                                                .clock = CHECK_CLOCK_STEP, .makes = true, .offset_bytes = bytes - table,
                                                .thing_offset = bytes - table, .bytes = table});
}

/* Claims an operand before a tensor group's collective and after its last. */
static enum status claim_joined(struct checker *c, const struct check_parallel_view *v,
                                const struct plan_access *access, enum check_operand operand)
{
    uint32_t own = v->global, found = NOTHING, left = NOTHING;
    enum check_claim_clock clock = CHECK_CLOCK_MICROBATCH;
    if (operand == CHECK_OPERAND_OUTPUT) {
        found = check_shard_thing(own + 1, CHECK_THING_PARTIAL);
        left = check_shard_thing(own + 1, CHECK_THING_BOUNDARY);
    } else if (operand == CHECK_OPERAND_INPUT_GRADIENT ||
               (operand == CHECK_OPERAND_WORKSPACE && v->unit->pass == PLAN_BACKWARD)) {
        found = check_shard_thing(own, CHECK_THING_PARTIAL_GRADIENT);
        left = check_shard_thing(own, CHECK_THING_GRADIENT);
    }
    uint64_t bytes = check_operand_bytes(c, v, operand), part = bytes;
    if (v->job->parallel.scatter && (operand == CHECK_OPERAND_INPUT || operand == CHECK_OPERAND_OUTPUT_GRADIENT)) {
        bool boundary = operand == CHECK_OPERAND_INPUT;
        found = left = check_shard_thing(boundary ? own : own + 1,
                                         boundary ? CHECK_THING_BOUNDARY : CHECK_THING_GRADIENT);
        part = bytes / v->job->parallel.tensor;
    }
    TRY(add_claim(c, access, (struct meaning){found, clock}, false, part, 0));
    return is_last_on(c, v) ? add_claim(c, access, (struct meaning){left, clock}, true, bytes, 0) : STATUS_OK;
}

/* Checks a collective's access: flags, operand and bytes. */
static enum status check_joined(struct checker *c, const struct check_parallel_view *v,
                                const struct plan_access *access, enum check_operand operand, uint32_t wanted)
{
    const struct plan_buffer *b = check_buffer_of(c, access);
    char text[PLAN_TEXT_BYTES];
    if ((access->flags & (ACCESS_READ | ACCESS_WRITE)) != wanted || operand == CHECK_OPERANDS ||
        check_operand_of(v, b) != operand || !b->on_device || access->offset_bytes != 0)
        return check_fail(c, CHECK_RULE_FORM, "a collective on the %s", check_access_text(c, access, text));
    if (b->bytes < check_operand_bytes(c, v, operand))
        return check_fail(c, CHECK_RULE_MEMORY, "the %s has %" PRIu64 " bytes (expected %" PRIu64 ")",
                          check_access_text(c, access, text), b->bytes, check_operand_bytes(c, v, operand));
    return STATUS_OK;
}

static enum status check_moved(struct checker *c, const struct check_parallel_view *v, enum check_operand from,
                               enum check_operand to)
{
    const struct plan_access *ends = &c->plan->accesses[v->op->first_access];
    bool makes = to == CHECK_OPERAND_WEIGHTS && from != CHECK_OPERAND_TABLE;
    uint32_t change = makes ? ACCESS_WRITE : ACCESS_READ | ACCESS_WRITE;
    if (v->op->access_count != 2)
        return check_fail(c, CHECK_RULE_FORM, "a %s with %u ends", plan_pass_names[v->unit->pass], v->op->access_count);
    TRY(check_joined(c, v, &ends[0], from, ACCESS_READ));
    TRY(check_joined(c, v, &ends[1], to, change));
    if (from == CHECK_OPERAND_TABLE) return claim_gathered_table(c, v, ends);
    return claim_moved(c, v, ends, from, to);
}

/* Returns true for a chunk's sum of gradients, where several take turns one of these. */
static bool is_sum(const struct check_parallel_view *v, uint32_t chunk, uint32_t variant)
{
    const uint32_t turns = parallel_gradient_count(v->job, chunk);
    return variant == 0 || (variant > PLAN_GRADIENT_TURNS && variant - PLAN_GRADIENT_TURNS < turns);
}

/* Checks a collective of both end stages over gradients of the shared table. */
static enum status check_ends(struct checker *c, const struct check_parallel_view *v)
{
    const struct plan_op *op = v->op;
    const struct plan_access *accesses = &c->plan->accesses[op->first_access];
    char text[PLAN_TEXT_BYTES];
    if (op->access_count != 2 || op->stream != STREAM_DATA || v->unit->pass != PLAN_JOIN)
        return check_fail(c, CHECK_RULE_FORM, "a collective over the ends on %u buffers, in a %s on the %s stream",
                          op->access_count, plan_pass_names[v->unit->pass], plan_stream_names[op->stream]);
    for (uint32_t end = 0; end < 2; end++) {
        uint32_t chunk = end == 0 ? 0 : v->chunks - 1, global = v->global - v->chunk + chunk;
        const struct plan_buffer *b = check_buffer_of(c, &accesses[end]);
        struct parallel_layers layers = parallel_layers(v->job, chunk);
        uint64_t bytes = v->carried_out ? chunk_memory(v->job, layers).gradient_bytes
                                        : parallel_state(v->job, layers).gradient_bytes;
        if (accesses[end].flags != (ACCESS_READ | ACCESS_WRITE) || b->kind != BUFFER_GRADIENT || b->shard != chunk ||
            !is_sum(v, chunk, b->variant) || !b->on_device || accesses[end].offset_bytes != 0 || b->bytes < bytes)
            return check_fail(c, CHECK_RULE_FORM, "a collective over the ends on the %s",
                              check_access_text(c, &accesses[end], text));
        uint32_t ranks = parallel_replicas(&v->job->parallel, end == 0 ? 0 : v->job->parallel.pipeline - 1);
        uint32_t found = ranks > 1 ? CHECK_THING_REDUCED_GRADIENT : CHECK_THING_PARAMETER_GRADIENT;
        struct meaning of = {check_shard_thing(global, (enum check_shard_thing)found), CHECK_CLOCK_SUM};
        struct meaning joined = {check_shard_thing(global, CHECK_THING_JOINED_GRADIENT), CHECK_CLOCK_SUM};
        TRY(add_claim(c, &accesses[end], of, false, bytes, 0));
        TRY(add_claim(c, &accesses[end], joined, true, bytes, 0));
    }
    return STATUS_OK;
}

static enum status check_collective(struct checker *c, const struct check_parallel_view *v)
{
    const struct plan_op *op = v->op;
    const struct plan_access *access = &c->plan->accesses[op->first_access];
    enum check_operand operand = check_operand_of(v, check_buffer_of(c, access));
    bool data = op->axes == 1u << AXIS_DATA;
    bool stream = op->stream == STREAM_COMPUTE || op->stream == STREAM_GROUP || op->stream == STREAM_DATA;
    if (op->axes != 1u << AXIS_TENSOR && op->axes != 1u << AXIS_DATA && op->axes != 1u << AXIS_ENDS)
        return check_fail(c, CHECK_RULE_FORM, "a collective over axes 0x%x", op->axes);
    if (op->collective >= COLLECTIVE_KIND_COUNT || op->rounds == 0 || op->bytes == 0 || !stream)
        return check_fail(c, CHECK_RULE_FORM, "%u collectives of kind %u and %" PRIu64 " bytes on the %s stream",
                          op->rounds, op->collective, op->bytes, plan_stream_names[op->stream]);
    if (op->axes == 1u << AXIS_ENDS) return check_ends(c, v);
    const bool gathers = op->collective == COLLECTIVE_ALL_GATHER && v->job->parallel.scatter;
    if (op->axes == 1u << AXIS_TENSOR && v->carried_out && !gathers && op->stream != STREAM_COMPUTE)
        return check_fail(c, CHECK_RULE_FORM, "a collective of a pass on the %s stream (expected the compute stream)",
                          plan_stream_names[op->stream]);
    if (data && v->unit->pass == PLAN_GATHER)
        return check_moved(c, v, v->gathers_table && operand == CHECK_OPERAND_TABLE ? operand : CHECK_OPERAND_STATE,
                           CHECK_OPERAND_WEIGHTS);
    if (data && v->unit->pass == PLAN_REDUCE && v->scatters)
        return check_moved(c, v, CHECK_OPERAND_WHOLE_GRADIENT, CHECK_OPERAND_GRADIENT);
    TRY(check_joined(c, v, access, operand, ACCESS_READ | ACCESS_WRITE));
    if (op->access_count != 1) return check_fail(c, CHECK_RULE_FORM, "a collective on %u buffers", op->access_count);
    bool shared = operand == CHECK_OPERAND_GRADIENT || operand == CHECK_OPERAND_STATE;
    if (data && operand == CHECK_OPERAND_NORMS) {
        TRY(claim_norms(c, v, access, false, v->share_norms_thing));
        return claim_norms(c, v, access, true, v->norms_thing);
    }
    return data && shared ? claim_shared(c, v, access, operand) : claim_joined(c, v, access, operand);
}

enum status check_parallel_op(struct checker *c)
{
    struct job room;
    struct check_parallel_view v = check_parallel_view(c, &room);
    v.part = part_of_three(c, &v);
    if (v.op->pass >= PLAN_PASS_COUNT) return check_fail(c, CHECK_RULE_FORM, "pass %u", v.op->pass);
    if (check_is_offload_op(c)) {
        TRY(check_offload_op(c));
        return v.op->kind == OP_COMPUTE ? check_work(c, &v) : STATUS_OK;
    }
    if (v.op->kind == OP_COLLECTIVE) return check_collective(c, &v);
    if (v.carried_out && (v.op->pass == PLAN_OPEN || v.op->pass == PLAN_CLOSE)) return check_file_op(c);
    if (v.carried_out && v.op->pass == PLAN_BATCH) return check_batch_op(c);
    if (v.carried_out && v.op->pass == PLAN_KEEP) return check_parallel_keep(c, &v);
    uint32_t index = (uint32_t)(v.op - &c->plan->ops[v.unit->first_op]);
    return check_holds_place(c, index) ? STATUS_OK : check_compute(c, &v);
}
