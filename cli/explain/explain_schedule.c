/*
 * Operations wait only for earlier ones in plan order (plan_walk.h): one walk gives every begin. Operations of one
 * collective begin when the last can; they are consecutive, and handled at the last.
 */
#include "cli/explain/explain_schedule.h"

#include <inttypes.h>

#include "base/extreme.h"
#include "base/try.h"
#include "models/cost/cost.h"
#include "planner/walk/plan_walk.h"
#include "sim/duration.h"
#include "sim/engine/allocate.h"

/* On each stream; and what the current group awaits. */
struct explain_schedule_front {
    uint64_t *last;
    double base_s;    /* the start of the run */
    double ready_s;
    double earliest_s; /* when the first member can begin */
    uint64_t decisive;
    bool *awaited;    /* by operation: another one waits for it; NULL: not needed */
};

static enum status begin(const struct plan *plan, struct arena *arena, struct explain_schedule_front *front,
                         struct plan_walk **walk, struct error *err)
{
    enum status status = STATUS_OK;
    uint32_t streams = plan_stream_count(plan);
    *front = (struct explain_schedule_front){.last = sim_allocate(arena, streams, sizeof *front->last, &status, err)};
    if (status != STATUS_OK) return status;
    for (uint32_t s = 0; s < streams; s++) front->last[s] = EXPLAIN_NOBODY;
    front->decisive = EXPLAIN_NOBODY;
    return plan_walk_create(plan, NULL, walk, err);
}

static void wait_for(struct explain_schedule_front *front, uint64_t number, double end_s, double *own_s)
{
    *own_s = max_s(*own_s, end_s);
    if (front->awaited) front->awaited[number] = true;
    if (front->decisive != EXPLAIN_NOBODY && end_s <= front->ready_s) return;
    front->ready_s = max_s(front->ready_s, end_s);
    front->decisive = number;
}

/* Finds when the operation could begin by itself, *own_s. Returns true at a group's last operation; `front` then has
 * the awaited one. */
static bool arrive(struct explain_schedule_front *front, const struct plan_walk_op *op, const double *end_s,
                   double *own_s)
{
    *own_s = front->base_s;
    for (uint32_t w = 0; w < op->wait_count; w++) wait_for(front, op->waits[w], end_s[op->waits[w]], own_s);
    uint64_t before = front->last[op->stream];
    if (before != EXPLAIN_NOBODY) wait_for(front, before, end_s[before], own_s);
    front->earliest_s = op->join_at == 0 ? *own_s : min_s(front->earliest_s, *own_s);
    front->last[op->stream] = op->number;
    return op->join_at + 1 >= op->join_count;
}

static void leave(struct explain_schedule_front *front, double begun_s)
{
    front->base_s = front->ready_s = begun_s;
    front->decisive = EXPLAIN_NOBODY;
}

/* --- times of a trace ----------------------------------------------------------------------------- */

double explain_alone_s(const struct plan *plan, struct sim_durations *durations, const struct plan_walk_op *op,
                       double seconds)
{
    if (op->op->kind == OP_COLLECTIVE) return seconds;
    if (op->op->stream == STREAM_P2P) return cost_p2p_s(&plan->hardware, op->peer, op->device, op->op->bytes);
    bool host = plan_stream_is_host(op->op->stream);
    return sim_durations_alone_s(durations, host ? hardware_cpu(&plan->hardware) : op->device,
                                 (uint32_t)(op->op - plan->ops));
}

static enum status check_trace(const struct plan *plan, const struct trace *trace, struct error *err)
{
    if (!plan_has_fingerprint(plan, trace->plan_fingerprint))
        return error_set(err, STATUS_BAD_INPUT,
                         "the trace is of another plan (fingerprint %016" PRIx64 ", expected %016" PRIx64 ")",
                         trace->plan_fingerprint, plan_fingerprint(plan));
    if (trace->span_count == 0) return error_set(err, STATUS_BAD_INPUT, "the trace has no operations");
    if (trace->complete && trace->span_count == plan_operations(plan)) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "the trace ends before the plan does: it has %" PRIu64 " of %" PRIu64 " operations",
                     trace->span_count, plan_operations(plan));
}

/* Notes the gap, spread and waits of operations that begin together. waited_s has the times when each could begin. */
static void note_group(const struct explain_schedule_front *front, const struct plan_walk_op *last,
                       const struct trace *trace, struct explain_times *out)
{
    const double gap_s = max_s(trace->spans[last->number].start_s - front->ready_s, 0);
    for (uint64_t n = last->number + 1 - last->join_count; n <= last->number; n++) {
        out->gap_s[n] = gap_s;
        out->spread_s[n] = front->ready_s - front->earliest_s;
        out->waited_s[n] = trace->has_waits ? trace->spans[n].waited_s : front->ready_s - out->waited_s[n];
    }
}

static enum status read_seconds(const struct plan *plan, const struct trace *trace, struct arena *arena,
                                struct plan_walk *walk, struct explain_schedule_front *front, struct explain_times *out,
                                struct error *err)
{
    struct sim_durations *durations;
    struct plan_walk_op op;
    double begun_s = trace->spans[0].start_s, *end_s = out->seconds; /* holds ends until all are known */
    TRY(sim_durations_create(arena, plan, &plan->hardware, NULL, &durations, err));
    for (uint64_t n = 0; n < out->count; n++) {
        begun_s = min_s(begun_s, trace->spans[n].start_s);
        end_s[n] = trace->spans[n].end_s;
    }
    leave(front, begun_s);
    while (plan_walk_next(walk, &op)) {
        const struct trace_span *span = &trace->spans[op.number];
        if (span->number != op.number || span->stream != op.stream)
            return error_set(err, STATUS_BAD_INPUT, "the trace's operation %" PRIu64 " is not the plan's", op.number);
        out->alone_s[op.number] = explain_alone_s(plan, durations, &op, span->end_s - span->start_s);
        if (!arrive(front, &op, end_s, &out->waited_s[op.number])) continue;
        note_group(front, &op, trace, out);
        leave(front, begun_s);
    }
    for (uint64_t n = 0; n < out->count; n++) out->seconds[n] = trace->spans[n].end_s - trace->spans[n].start_s;
    return plan_walk_failed(walk) ? error_memory(err, "a walk over the plan", 0) : STATUS_OK;
}

enum status explain_times_read(const struct plan *plan, const struct trace *trace, struct arena *arena,
                               struct explain_times *out, struct error *err)
{
    struct plan_walk *walk = NULL;
    struct explain_schedule_front front;
    enum status status = STATUS_OK;
    TRY(check_trace(plan, trace, err));
    uint64_t count = trace->span_count;
    *out = (struct explain_times){.count = count,
                                  .seconds = sim_allocate(arena, count, sizeof(double), &status, err),
                                  .gap_s = sim_allocate(arena, count, sizeof(double), &status, err),
                                  .alone_s = sim_allocate(arena, count, sizeof(double), &status, err),
                                  .waited_s = sim_allocate(arena, count, sizeof(double), &status, err),
                                  .spread_s = sim_allocate(arena, count, sizeof(double), &status, err)};
    if (status == STATUS_OK) status = begin(plan, arena, &front, &walk, err);
    if (status == STATUS_OK) status = read_seconds(plan, trace, arena, walk, &front, out, err);
    plan_walk_destroy(walk);
    return status;
}

/* --- the schedule --------------------------------------------------------------------------------- */

static void run(struct explain_schedule_front *front, const struct explain_times *times, const struct plan_walk_op *op,
                struct explain_schedule *out)
{
    double ready_s = front->ready_s;
    if (times->spread_most_s) ready_s = min_s(ready_s, front->earliest_s + times->spread_most_s[op->number]);
    double end_s = ready_s + times->gap_s[op->number] + times->seconds[op->number];
    for (uint64_t n = op->number + 1 - op->join_count; n <= op->number; n++) {
        out->end_s[n] = end_s;
        out->decisive[n] = front->decisive;
    }
    if (out->last != EXPLAIN_NOBODY && end_s <= out->makespan_s) return;
    out->last = op->number;
    out->makespan_s = end_s;
}

/* With a limit of spreads, operations that a collective awaits may end after it: they do not count. */
static void count_sinks(const struct explain_schedule_front *front, const struct explain_times *times,
                        struct explain_schedule *out)
{
    out->makespan_s = 0;
    for (uint64_t n = 0; n < times->count; n++) {
        if (front->awaited[n] || out->end_s[n] < out->makespan_s) continue;
        out->makespan_s = out->end_s[n];
        out->last = n;
    }
}

enum status explain_schedule_run(const struct plan *plan, const struct explain_times *times, struct arena *arena,
                                 struct explain_schedule *out, struct error *err)
{
    struct plan_walk *walk = NULL;
    struct plan_walk_op op;
    struct explain_schedule_front front;
    enum status status = STATUS_OK;
    *out = (struct explain_schedule){.end_s = sim_allocate(arena, times->count, sizeof(double), &status, err),
                                     .decisive = sim_allocate(arena, times->count, sizeof(uint64_t), &status, err),
                                     .last = EXPLAIN_NOBODY};
    if (status == STATUS_OK) status = begin(plan, arena, &front, &walk, err);
    if (status == STATUS_OK && times->spread_most_s)
        front.awaited = sim_allocate(arena, times->count, sizeof *front.awaited, &status, err);
    while (status == STATUS_OK && plan_walk_next(walk, &op)) {
        double own_s;
        if (!arrive(&front, &op, out->end_s, &own_s)) continue;
        run(&front, times, &op, out);
        leave(&front, 0);
    }
    if (status == STATUS_OK && plan_walk_failed(walk)) status = error_memory(err, "a walk over the plan", 0);
    if (status == STATUS_OK && front.awaited) count_sinks(&front, times, out);
    plan_walk_destroy(walk);
    return status;
}
