/*
 * By rule 3 of planner/plan.h, an operation waits only for earlier ones in plan order. So one walk gives every begin:
 * the latest end of the operations that it waits for and of the previous one on its stream, plus its gap. The walk also
 * computes the gaps from recorded ends. Operations of a collective follow each other and begin together, when the last
 * can.
 *
 *     number                    0   1   2   3
 *     recorded end              4  10  ...          gap of 1: begin 4.5 less 4, the end of 0 that it waits for
 *     replayed end              2   8.5
 *     decisive                  -   0               the operation that its begin waited for, for the critical path
 *
 * Cost: the walk, and 24 bytes per operation besides the two traces.
 */
#include "sim/replay.h"

#include <inttypes.h>
#include <string.h>

#include "base/extreme.h"
#include "base/try.h"
#include "models/cost/cost.h"
#include "planner/walk/plan_walk.h"
#include "sim/duration.h"
#include "sim/engine/allocate.h"
#include "sim/network/collective_times.h"
#include "sim/network/machine.h"

#define NOBODY UINT64_MAX

/* Costs of operations on a machine without contention. */
struct replay_costs {
    const struct hardware *hardware;
    struct sim_durations *durations;
    struct sim_collectives *collectives; /* NULL: the plan has no gangs */
};

struct replay_state {
    const struct plan *plan;
    const struct trace *record;
    const struct sim_replay_change *change;
    struct trace *out;
    struct sim_replay *result;
    struct arena arena;
    struct replay_costs before, after; /* unused if the machine does not change */
    uint64_t *decisive;                /* per operation: which one its begin waited for; NOBODY */
    double *gap_s;                     /* per operation, as replayed */
    uint64_t *last;                    /* per stream: the previous operation; NOBODY */
    double begun_s;                    /* the record's first begin; the replay begins at 0 */
};

/* Earliest begin of a group: one operation, or a collective's. */
struct ready {
    double recorded_s, replayed_s;
    uint64_t decisive;
};

struct sim_replay_change sim_replay_unchanged(void)
{
    struct sim_replay_change change = {.gap_scale = 1};
    for (uint32_t k = 0; k < STREAM_KIND_COUNT; k++) change.scale[k] = 1;
    return change;
}

/* --- durations ------------------------------------------------------------------------------ */

static enum status create_costs(struct replay_state *r, const struct hardware *hardware, struct replay_costs *out,
                                struct error *err)
{
    out->hardware = hardware;
    TRY(sim_durations_create(&r->arena, r->plan, hardware, NULL, &out->durations, err));
    if (r->plan->gang_count == 0) return STATUS_OK;
    return sim_collectives_create(&r->arena, r->plan, hardware, &out->collectives, err);
}

static double alone_s(const struct replay_state *r, const struct replay_costs *costs, const struct plan_walk_op *op)
{
    if (op->op->kind == OP_COLLECTIVE)
        return sim_collectives_s(costs->collectives,
                                 sim_collectives_group(costs->collectives, op->gang, op->op->axes, op->group),
                                 op->unit->job, op->op);
    if (op->op->stream == STREAM_P2P) return cost_p2p_s(costs->hardware, op->peer, op->device, op->op->bytes);
    bool host = plan_stream_is_host(op->op->stream);
    return sim_durations_alone_s(costs->durations, host ? hardware_cpu(costs->hardware) : op->device,
                                 (uint32_t)(op->op - r->plan->ops));
}

/* Checks that the other machine has routes for the plan's copies. */
static enum status check_way(const struct replay_state *r, const struct plan_walk_op *op, struct error *err)
{
    if (!r->change->hardware || op->op->stream != STREAM_P2P) return STATUS_OK;
    if (hardware_reaches(r->change->hardware, op->peer, op->device)) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "on machine '%s' device %" PRIu32 " does not reach device %" PRIu32
                     ", but the plan copies from one to the other", r->change->hardware->name, op->peer, op->device);
}

static double seconds_of(const struct replay_state *r, const struct plan_walk_op *op)
{
    const struct trace_span *span = &r->record->spans[op->number];
    const struct sim_replay_change *change = r->change;
    double seconds = (span->end_s - span->start_s) * change->scale[op->op->stream];
    if (change->slow && op->op->kind == OP_COMPUTE && op->op->stream == STREAM_COMPUTE)
        seconds *= change->slow[op->device];
    if (!change->hardware) return seconds;
    double before_s = alone_s(r, &r->before, op);
    return before_s > 0 ? seconds * (alone_s(r, &r->after, op) / before_s) : seconds;
}

/* --- the walk ------------------------------------------------------------------------------- */

static void wait_for(const struct replay_state *r, uint64_t number, struct ready *ready)
{
    ready->recorded_s = max_s(ready->recorded_s, r->record->spans[number].end_s);
    double end_s = r->out->spans[number].end_s;
    if (ready->decisive != NOBODY && end_s <= ready->replayed_s) return;
    ready->replayed_s = end_s;
    ready->decisive = number;
}

static void gather_waits(struct replay_state *r, const struct plan_walk_op *op, struct ready *ready)
{
    for (uint32_t w = 0; w < op->wait_count; w++) wait_for(r, op->waits[w], ready);
    if (r->last[op->stream] != NOBODY) wait_for(r, r->last[op->stream], ready);
}

/* Keeps the time when a member reaches a collective as its start until the collective is scheduled. */
static void note_arrival(struct replay_state *r, const struct plan_walk_op *op, const struct ready *at_once)
{
    struct ready own = *at_once;
    gather_waits(r, op, &own);
    r->out->spans[op->number].start_s = own.replayed_s;
}

static double replay_gap(struct replay_state *r, double start_s, const struct ready *ready)
{
    struct sim_replay *result = r->result;
    double gap_s = start_s - ready->recorded_s;
    if (gap_s > 0) {
        result->gap_s += gap_s;
        result->gap_count++;
        return gap_s * r->change->gap_scale;
    }
    result->early_s = max_s(result->early_s, -gap_s);
    result->early_count += gap_s < 0;
    return 0;
}

/* Schedules a group that ends with `last`; all its operations take the same time. */
static void run(struct replay_state *r, const struct plan_walk_op *last, const struct ready *ready)
{
    const struct trace_span *recorded = &r->record->spans[last->number];
    double gap_s = replay_gap(r, recorded->start_s, ready), start_s = ready->replayed_s + gap_s;
    double end_s = start_s + seconds_of(r, last);
    for (uint64_t n = last->number + 1 - last->join_count; n <= last->number; n++) {
        struct trace_span *span = &r->out->spans[n];
        const double came_s = span->start_s; /* by note_arrival() */
        *span = r->record->spans[n];
        if (span->kind == OP_COLLECTIVE) span->waited_s = ready->replayed_s - came_s;
        span->start_s = start_s;
        span->end_s = end_s;
        r->decisive[n] = ready->decisive;
        r->gap_s[n] = gap_s;
    }
}

static enum status check_span(const struct replay_state *r, const struct plan_walk_op *op, struct error *err)
{
    const struct trace_span *span = &r->record->spans[op->number];
    if (span->number == op->number && span->stream == op->stream && span->kind == op->op->kind)
        return check_way(r, op, err);
    return error_set(err, STATUS_BAD_INPUT, "the trace's operation %" PRIu64 " is not the plan's", op->number);
}

static enum status run_all(struct replay_state *r, struct plan_walk *walk, struct error *err)
{
    struct plan_walk_op op;
    const struct ready at_once = {.recorded_s = r->begun_s, .decisive = NOBODY};
    struct ready ready = at_once;
    while (plan_walk_next(walk, &op)) {
        TRY(check_span(r, &op, err));
        if (op.op->kind == OP_COLLECTIVE) note_arrival(r, &op, &at_once);
        gather_waits(r, &op, &ready);
        r->last[op.stream] = op.number;
        if (op.join_count > 1 && op.join_at + 1 < op.join_count) continue;
        run(r, &op, &ready);
        ready = at_once;
    }
    return plan_walk_failed(walk) ? error_memory(err, "a walk over the plan", 0) : STATUS_OK;
}

/* --- the chain that ends last ---------------------------------------------------------------- */

static void follow_path(struct replay_state *r)
{
    const struct trace *out = r->out;
    uint64_t at = 0;
    for (uint64_t n = 1; n < out->span_count; n++)
        if (out->spans[n].end_s > out->spans[at].end_s) at = n;
    for (; at != NOBODY; at = r->decisive[at]) {
        const struct trace_span *span = &out->spans[at];
        r->result->path_s[out->streams[span->stream].kind] += span->end_s - span->start_s;
        r->result->path_gap_s += r->gap_s[at];
        r->result->path_count++;
    }
}

/* --- public ---------------------------------------------------------------------------------- */

static enum status check_record(const struct plan *plan, const struct trace *record, struct error *err)
{
    uint64_t operations = plan_operations(plan);
    if (!plan_has_fingerprint(plan, record->plan_fingerprint))
        return error_set(err, STATUS_BAD_INPUT, "the trace is of another plan (fingerprint %016" PRIx64
                         ", expected %016" PRIx64 ")", record->plan_fingerprint, plan_fingerprint(plan));
    if (record->span_count == 0)
        return error_set(err, STATUS_BAD_INPUT, "the trace has no operations");
    if (!record->complete || record->span_count != operations)
        return error_set(err, STATUS_BAD_INPUT, "the trace ends before the plan does: it has %" PRIu64 " of %" PRIu64
                         " operations", record->span_count, operations);
    return STATUS_OK;
}

static enum status create(struct replay_state *r, struct error *err)
{
    enum status status = STATUS_OK;
    const struct trace *record = r->record;
    const struct hardware *hardware = r->change->hardware ? r->change->hardware : &r->plan->hardware;
    struct trace *out = r->out;
    TRY(trace_init(out, r->plan, TRACE_PREDICTED, record->span_count, 0, err));
    TRY(arena_string(&out->arena, hardware->name, &out->hardware, err));
    for (uint32_t p = 0; p < out->place_count && p < record->place_count; p++) {
        out->places[p].capacity_bytes = record->places[p].capacity_bytes;
        out->places[p].peak_bytes = record->places[p].peak_bytes;
    }
    r->decisive = sim_allocate(&r->arena, record->span_count, sizeof *r->decisive, &status, err);
    r->gap_s = sim_allocate(&r->arena, record->span_count, sizeof *r->gap_s, &status, err);
    r->last = sim_allocate(&r->arena, out->stream_count, sizeof *r->last, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t s = 0; s < out->stream_count; s++) r->last[s] = NOBODY;
    r->begun_s = record->spans[0].start_s;
    for (uint64_t n = 1; n < record->span_count; n++) r->begun_s = min_s(r->begun_s, record->spans[n].start_s);
    if (!r->change->hardware) return STATUS_OK;
    TRY(sim_machine_suits(r->plan, r->change->hardware, err));
    TRY(create_costs(r, &r->plan->hardware, &r->before, err));
    return create_costs(r, r->change->hardware, &r->after, err);
}

enum status sim_replay_run(const struct plan *plan, const struct trace *record, const struct sim_replay_change *change,
                           struct trace *out, struct sim_replay *result, struct error *err)
{
    struct replay_state r = {.plan = plan, .record = record, .change = change, .out = out, .result = result};
    struct plan_walk *walk = NULL;
    *result = (struct sim_replay){0};
    enum status status = check_record(plan, record, err);
    if (status == STATUS_OK) status = create(&r, err);
    if (status == STATUS_OK) status = plan_walk_create(plan, NULL, &walk, err);
    if (status == STATUS_OK) status = run_all(&r, walk, err);
    if (status == STATUS_OK) {
        out->span_count = record->span_count;
        out->complete = true;
        follow_path(&r);
        trace_finish(out);
        result->makespan_s = out->makespan_s;
    }
    plan_walk_destroy(walk);
    arena_release(&r.arena);
    return status;
}
