/* Checks a parallel job's unit for its pass's computations and collectives, with the right bytes. Its copies:
 * plan_check_parallel_copies.c. */
#include <inttypes.h>

#include "base/try.h"
#include "models/job/chunk_memory.h"
#include "models/job/parallel_offload.h"
#include "models/job/parallel_work.h"
#include "planner/check/plan_check_parallel_view.h"

/* The unit's collectives along an axis need the job's rounds and bytes. */
static uint64_t sum_collectives(const struct checker *c, uint32_t axis, uint32_t kind, uint64_t bytes)
{
    uint64_t rounds = 0;
    for (uint32_t o = 0; o < c->unit->op_count; o++) {
        const struct plan_op *op = &c->plan->ops[c->unit->first_op + o];
        if (op->kind == OP_COLLECTIVE && op->axes == 1u << axis && op->collective == kind && op->bytes == bytes)
            rounds += op->rounds;
    }
    return rounds;
}

struct wanted_collectives {
    struct parallel_collective of[2 * PARALLEL_COLLECTIVES_MAX];
    uint32_t count;
};

static void want(struct wanted_collectives *wanted, uint32_t kind, uint32_t count, uint64_t bytes)
{
    if (count == 0 || bytes == 0) return;
    for (uint32_t i = 0; i < wanted->count; i++)
        if (wanted->of[i].kind == kind && wanted->of[i].bytes == bytes) {
            wanted->of[i].count += count;
            return;
        }
    wanted->of[wanted->count++] = (struct parallel_collective){.kind = kind, .count = count, .bytes = bytes};
}

static void want_pass(const struct check_parallel_view *v, enum parallel_pass pass, struct wanted_collectives *wanted)
{
    struct parallel_collective list[PARALLEL_COLLECTIVES_MAX];
    uint32_t count = parallel_collectives(v->slice, v->layers, pass, list);
    for (uint32_t i = 0; i < count; i++) want(wanted, list[i].kind, list[i].count, list[i].bytes);
}

/* Checks the data fetched from another stage: all, or a rank's part, which is then gathered. */
static enum status check_fetched(struct checker *c, const struct check_parallel_view *v,
                                 struct wanted_collectives *wanted)
{
    const struct parallel *p = &v->job->parallel;
    bool forward = v->unit->pass == PLAN_FORWARD || v->unit->pass == PLAN_EVALUATE;
    bool back = v->unit->pass == PLAN_BACKWARD || v->unit->pass == PLAN_BACKWARD_INPUT;
    enum check_operand operand = forward ? CHECK_OPERAND_INPUT : CHECK_OPERAND_OUTPUT_GRADIENT;
    uint32_t from = forward ? v->chunk - 1 : v->chunk + 1;
    if ((!forward && !back) || !check_operand_exists(v, operand)) return STATUS_OK;
    if (parallel_place(p, from).stage == parallel_place(p, v->chunk).stage) return STATUS_OK;
    uint64_t whole = check_operand_bytes(c, v, operand), part = whole / (p->scatter ? p->tensor : 1);
    for (uint32_t o = 0; o < v->unit->op_count; o++) {
        const struct plan_op *op = &c->plan->ops[v->unit->first_op + o];
        if (op->kind == OP_COPY && op->stream == STREAM_P2P && op->bytes != part)
            return check_fail(c, CHECK_RULE_WORK, "fetches %" PRIu64 " bytes of the %s (expected %" PRIu64 ")",
                              op->bytes, check_operand_names[operand], part);
    }
    if (p->scatter) want(wanted, COLLECTIVE_ALL_GATHER, 1, whole);
    return STATUS_OK;
}

static enum status check_axis(struct checker *c, uint32_t axis, const struct wanted_collectives *wanted)
{
    uint64_t all = 0, found = 0;
    for (uint32_t o = 0; o < c->unit->op_count; o++) {
        const struct plan_op *op = &c->plan->ops[c->unit->first_op + o];
        if (op->kind == OP_COLLECTIVE && op->axes == 1u << axis) all += op->rounds;
    }
    for (uint32_t i = 0; i < wanted->count; i++) {
        const struct parallel_collective *w = &wanted->of[i];
        uint64_t rounds = sum_collectives(c, axis, w->kind, w->bytes);
        if (rounds != w->count)
            return check_fail(c, CHECK_RULE_WORK,
                              "%" PRIu64 " times %s of %" PRIu64 " bytes over the %s group (expected %u)", rounds,
                              collective_kind_names[w->kind], w->bytes, plan_axis_names[axis], w->count);
        found += rounds;
    }
    if (found == all) return STATUS_OK;
    return check_fail(c, CHECK_RULE_WORK, "%" PRIu64 " collectives over the %s group (expected %" PRIu64 ")", all,
                      plan_axis_names[axis], found);
}

/* Returns the bytes of the weights that replicas gather from their shares. */
static uint64_t whole_weights(const struct checker *c, const struct check_parallel_view *v)
{
    return v->carried_out ? check_operand_bytes(c, v, CHECK_OPERAND_WEIGHTS) : v->whole.weight_bytes;
}

/* Returns true for a unit that only moves weights or gradients, whose pass needs no computation. */
static bool only_moves(const struct check_parallel_view *v)
{
    const uint32_t pass = v->unit->pass;
    if (pass == PLAN_REDUCE) return !parallel_sums_on_host(v->job) && !parallel_encodes_gradients(v->job);
    if (pass == PLAN_REFRESH) return !v->carried_out; /* else it resets its gradient for the next sum */
    return pass == PLAN_GATHER || pass == PLAN_JOIN;
}

/* Checks how often the unit computes its pass. */
static enum status check_computing(struct checker *c, const struct check_parallel_view *v)
{
    /* A refresh of delayed updates resets its gradient after the minibatch's update only. */
    const bool early = v->carried_out && v->unit->pass == PLAN_REFRESH && v->job->parallel.delayed &&
                       !check_is_reset(c);
    const bool thirds = v->unit->pass == PLAN_BACKWARD && !v->carried_out;
    uint32_t computes = 0, expected = only_moves(v) ? 0 : 1;
    for (uint32_t o = 0; o < v->unit->op_count; o++)
        computes += c->plan->ops[v->unit->first_op + o].kind == OP_COMPUTE && !check_holds_place(c, o) &&
                    !(v->unit->pass == PLAN_EVALUATE && c->plan->ops[v->unit->first_op + o].pass == PLAN_BATCH);
    if (computes == expected || (early && computes == 0) || (thirds && computes == 3)) return STATUS_OK;
    return check_fail(c, CHECK_RULE_TRAINING, "computes its pass %u times (expected %u)", computes, expected);
}

/* Checks that the job has a use for a unit of this pass. */
static enum status check_needed(struct checker *c, const struct check_parallel_view *v)
{
    const char *fault = NULL;
    switch (v->unit->pass) {
    case PLAN_FORWARD:
    case PLAN_BACKWARD:
    case PLAN_BACKWARD_INPUT:
    case PLAN_BACKWARD_WEIGHT:
    case PLAN_GATHER:
    case PLAN_REDUCE:
    case PLAN_UPDATE:
    case PLAN_JOIN:
    case PLAN_LOAD:
    case PLAN_STORE: break;
    case PLAN_EVALUATE:
        if (!v->carried_out || v->job->evaluation.every == 0) fault = "an evaluation of a job that has none";
        break;
    case PLAN_REFRESH:
        if (v->job->parallel.offload != OFFLOAD_STATES &&
            (!v->carried_out || v->drains || !parallel_offloads(&v->job->parallel)))
            fault = "resident weights are refreshed (expected only where states are offloaded)";
        break;
    case PLAN_NORM:
        if (!v->carried_out || !job_clips(v->job)) fault = "a norm for a job that does not clip";
        break;
    case PLAN_OPEN:
    case PLAN_CLOSE:
        if (!v->carried_out) fault = "files of a parallel job that is only simulated";
        break;
    case PLAN_KEEP:
        if (!v->carried_out || !v->job->keep_best) fault = "keeps weights of a job that keeps none";
        break;
    case PLAN_BATCH:
        if (!check_brings_batch(v)) fault = "a batch for a chunk that has no use for it";
        break;
    default: fault = "a parallel job has no such unit";
    }
    return fault ? check_fail(c, CHECK_RULE_FORM, "%s", fault) : STATUS_OK;
}

/* Lists the collectives that the unit's pass needs over each group. */
static void want_unit(const struct checker *c, const struct check_parallel_view *v, struct wanted_collectives *tensor,
                      struct wanted_collectives *data, struct wanted_collectives *ends)
{
    const bool shares = parallel_splits(&v->job->parallel, ZERO_STATES);
    const bool offloads = parallel_offloads(&v->job->parallel), joins = parallel_joins_on_hosts(v->job);
    switch (v->unit->pass) {
    case PLAN_EVALUATE: want_pass(v, PARALLEL_EVALUATE, tensor); break;
    case PLAN_FORWARD: want_pass(v, PARALLEL_FORWARD, tensor); break;
    case PLAN_BACKWARD:
        want_pass(v, PARALLEL_INPUT, tensor);
        want_pass(v, PARALLEL_WEIGHT, tensor);
        break;
    case PLAN_BACKWARD_INPUT: want_pass(v, PARALLEL_INPUT, tensor); break;
    case PLAN_BACKWARD_WEIGHT: want_pass(v, PARALLEL_WEIGHT, tensor); break;
    case PLAN_GATHER: {
        const uint64_t table = v->gathers_table ? check_gathered_table_bytes(v) : 0;
        want(data, COLLECTIVE_ALL_GATHER, v->gathers && shares, whole_weights(c, v) - table);
        want(data, COLLECTIVE_ALL_GATHER, v->gathers_table && shares, table);
        break;
    }
    case PLAN_REDUCE:
        want(data, shares ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE, v->ranks > 1 && !joins,
             v->carried_out
                 ? compression_code_bytes(parallel_gradient_code(v->job),
                                          check_operand_bytes(c, v, CHECK_OPERAND_WHOLE_GRADIENT) / sizeof(float))
                 : parallel_reduced_bytes(v->job, v->layers));
        break;
    case PLAN_UPDATE:
        want_pass(v, PARALLEL_UPDATE, tensor);
        want(data, COLLECTIVE_ALL_GATHER, shares && !v->gathers && !offloads, whole_weights(c, v));
        want(data, COLLECTIVE_ALL_REDUCE, joins,
             v->carried_out ? check_operand_bytes(c, v, CHECK_OPERAND_WHOLE_GRADIENT) : v->whole.gradient_bytes);
        break;
    case PLAN_REFRESH:
        want(data, COLLECTIVE_ALL_GATHER, shares && !v->gathers && !check_is_reset(c), whole_weights(c, v));
        break;
    case PLAN_NORM:
        want_pass(v, PARALLEL_NORM, tensor);
        want(data, COLLECTIVE_ALL_REDUCE, shares,
             memory_tensor_count(&v->job->network, v->layers.first, v->layers.count) * sizeof(double));
        break;
    case PLAN_JOIN:
        want(ends, COLLECTIVE_ALL_REDUCE, parallel_joins_chunk(v->job, v->chunk) && v->chunk == 0,
             parallel_joined_bytes(v->job));
        break;
    default: break;
    }
}

enum status check_parallel_unit(struct checker *c)
{
    struct wanted_collectives tensor = {0}, data = {0}, ends = {0};
    struct job room;
    const struct check_parallel_view v = check_parallel_view(c, &room);
    TRY(check_computing(c, &v));
    TRY(check_needed(c, &v));
    want_unit(c, &v, &tensor, &data, &ends);
    TRY(check_fetched(c, &v, &tensor));
    TRY(check_carried_copies(c, &v));
    TRY(check_axis(c, AXIS_TENSOR, &tensor));
    TRY(check_axis(c, AXIS_DATA, &data));
    return check_axis(c, AXIS_ENDS, &ends);
}
