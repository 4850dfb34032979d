#include "tests/support/planner/support_plan_judge.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "models/cost/cost.h"
#include "planner/walk/plan_walk.h"
#include "sim/network/collective_times.h"

/* --- how long operations take ---------------------------------------------------------------- */

static double alone_s(const struct plan *plan, const struct sim_collectives *collectives, const struct plan_walk_op *at)
{
    const struct plan_op *op = at->op;
    const struct hardware *hw = &plan->hardware;
    uint32_t device = plan_stream_is_host(op->stream) ? hardware_cpu(hw) : at->device;
    switch (op->kind) {
    case OP_COMPUTE: {
        if (op->work == PLAN_NONE) return 0;
        const struct plan_work *work = &plan->works[op->work];
        return cost_work_s(hw, device, plan->items + work->first_item, work->item_count, NULL);
    }
    case OP_COLLECTIVE:
        return sim_collectives_s(collectives, sim_collectives_group(collectives, at->gang, op->axes, at->group),
                                 at->unit->job, op);
    default:
        switch (op->stream) {
        case STREAM_H2D: return cost_copy_s(hw, device, COPY_H2D, op->bytes);
        case STREAM_D2H: return cost_copy_s(hw, device, COPY_D2H, op->bytes);
        case STREAM_P2P: return cost_p2p_s(hw, at->peer, device, op->bytes);
        case STREAM_READ: return cost_storage_s(hw, STORAGE_READ, op->bytes);
        default: return cost_storage_s(hw, STORAGE_WRITE, op->bytes);
        }
    }
}

/* --- what crosses links ---------------------------------------------------------------------- */

struct link_uses {
    double busy_s[JUDGE_DIRECTIONS_MAX];
    uint32_t stream[JUDGE_DIRECTIONS_MAX]; /* + 1: the stream whose copies cross it; 0: no stream's */
    bool met;
};

static void cross(struct link_uses *uses, const struct hardware *hw, uint32_t link, uint32_t direction,
                  uint64_t bytes, uint32_t stream)
{
    uint32_t link_dir = link * 2 + (hw->links[link].duplex ? direction : 0);
    assert_true(link_dir < JUDGE_DIRECTIONS_MAX - 1);
    uses->busy_s[link_dir] += (double)bytes / hw->links[link].bandwidth.value;
    uses->met |= uses->stream[link_dir] != 0 && uses->stream[link_dir] != stream + 1;
    uses->stream[link_dir] = stream + 1;
}

static void cross_path(struct link_uses *uses, const struct hardware *hw, const struct plan_walk_op *at)
{
    const struct plan_op *op = at->op;
    if (op->stream == STREAM_P2P) {
        const struct p2p_route route = hardware_p2p_route(hw, at->peer, at->device);
        for (uint32_t i = 0; i < route.up_count + route.down_count; i++)
            cross(uses, hw, route.links[i], i < route.up_count, op->bytes, at->stream);
    } else if (op->stream == STREAM_H2D || op->stream == STREAM_D2H) {
        const struct hardware_device *device = &hw->devices[at->device];
        for (uint32_t i = 0; i < device->path_count; i++)
            cross(uses, hw, device->path[i], op->stream == STREAM_D2H, op->bytes, at->stream);
    } else { /* storage: one link direction for both */
        uses->met |= uses->stream[JUDGE_DIRECTIONS_MAX - 1] != 0 &&
            uses->stream[JUDGE_DIRECTIONS_MAX - 1] != at->stream + 1;
        uses->stream[JUDGE_DIRECTIONS_MAX - 1] = at->stream + 1;
    }
}

/* --- the walk -------------------------------------------------------------------------------- */

static void read_uses(struct plan_judge *judge, const struct plan_walk_op *at)
{
    for (uint32_t i = 0; i < at->use_count; i++) {
        const struct plan_place_use *use = &at->uses[i];
        uint32_t found = 0;
        if (plan_use_on_device(use) && use->flags & ACCESS_ACQUIRE) {
            const struct plan_slot *slot = &judge->plan->slots[use->slot];
            found = judge->lifetime_count++;
            assert_true(found < JUDGE_OPS_MAX);
            judge->lifetimes[found] = (struct judge_lifetime){
                .first = slot->offset_bytes, .end = slot->offset_bytes + slot->bytes,
                .bytes = judge->plan->buffers[use->buffer].bytes, .place = use->place, .buffer = use->buffer,
                .acquired_by = (uint32_t)at->number};
        } else if (plan_use_on_device(use)) {
            found = judge->lifetime_count - 1;
            while (found > 0 && (judge->lifetimes[found].place != use->place ||
                                 judge->lifetimes[found].buffer != use->buffer)) found--;
            assert_true(found > 0);
        }
        assert_true(judge->use_count < JUDGE_WAITS_MAX);
        judge->lifetime_of[judge->use_count++] = found;
    }
}

/* Joins the operations of a collective, of which `last` is the last: all begin when all can. */
static void join(struct plan_judge *judge, uint32_t last, uint32_t count)
{
    double ready_s = 0;
    for (uint32_t o = last + 1 - count; o <= last; o++) ready_s = fmax(ready_s, judge->ops[o].ready_s);
    for (uint32_t o = last + 1 - count; o <= last; o++) judge->ops[o].ready_s = ready_s;
}

/* Returns true if operations slow each other. A copy slower than its links may then take no more of the links than a
 * copy of its length. */
static bool slows_down(const struct hardware *hw)
{
    for (uint32_t t = 0; t < hw->type_count; t++)
        if (hw->types[t].profile_count > 0) return true;
    return false;
}

void plan_judge_read(struct plan_judge *judge, const struct plan *plan)
{
    static double stream_s[JUDGE_OPS_MAX];
    static uint32_t stream_last[JUDGE_OPS_MAX]; /* + 1 */
    struct link_uses uses = {0};
    struct arena scratch = {0};
    struct error err = {0};
    struct sim_collectives *collectives = NULL;
    struct plan_walk *walk;
    struct plan_walk_op at;
    uint32_t streams = plan_stream_count(plan);
    assert_true(streams < JUDGE_OPS_MAX && plan_operations(plan) < JUDGE_OPS_MAX);
    memset(stream_s, 0, streams * sizeof *stream_s);
    memset(stream_last, 0, streams * sizeof *stream_last);
    judge->plan = plan;
    judge->op_count = judge->wait_count = judge->use_count = 0;
    judge->lifetime_count = 1;
    judge->chain_s = judge->stream_s = judge->direction_s = 0;
    assert_int_equal(plan_walk_create(plan, NULL, &walk, &err), STATUS_OK);
    if (plan->gang_count > 0)
        assert_int_equal(sim_collectives_create(&scratch, plan, &plan->hardware, &collectives, &err), STATUS_OK);
    while (plan_walk_next(walk, &at)) {
        assert_int_equal(at.number, judge->op_count);
        struct judge_op *op = &judge->ops[judge->op_count++];
        *op = (struct judge_op){.alone_s = alone_s(plan, collectives, &at), .stream = at.stream,
                                .first_wait = judge->wait_count, .wait_count = at.wait_count,
                                .first_use = judge->use_count,
                                .join_at = at.op->kind == OP_COLLECTIVE ? at.join_at : 0};
        assert_true(judge->wait_count + at.wait_count < JUDGE_WAITS_MAX);
        uint32_t before = stream_last[at.stream];
        if (before > 0) op->ready_s = judge->ops[before - 1].ready_s + judge->ops[before - 1].alone_s;
        for (uint32_t w = 0; w < at.wait_count; w++) {
            const struct judge_op *awaited = &judge->ops[at.waits[w]];
            judge->waits[judge->wait_count++] = (uint32_t)at.waits[w];
            op->ready_s = fmax(op->ready_s, awaited->ready_s + awaited->alone_s);
        }
        read_uses(judge, &at);
        stream_last[at.stream] = judge->op_count;
        stream_s[at.stream] += op->alone_s;
        judge->stream_s = fmax(judge->stream_s, stream_s[at.stream]);
        if (at.op->kind == OP_COPY) cross_path(&uses, &plan->hardware, &at);
        if (at.op->kind == OP_COLLECTIVE && at.join_at + 1 == at.join_count)
            join(judge, judge->op_count - 1, at.join_count);
    }
    assert_false(plan_walk_failed(walk));
    plan_walk_destroy(walk);
    arena_release(&scratch);
    for (uint32_t o = 0; o < judge->op_count; o++)
        judge->chain_s = fmax(judge->chain_s, judge->ops[o].ready_s + judge->ops[o].alone_s);
    bool slowed = slows_down(&plan->hardware);
    for (uint32_t l = 0; l < JUDGE_DIRECTIONS_MAX && !slowed; l++)
        judge->direction_s = fmax(judge->direction_s, uses.busy_s[l]);
    judge->alone = !uses.met && !slowed;
}

/* --- judging --------------------------------------------------------------------------------- */

const char *plan_judge_bounds(const struct plan_judge *judge, double makespan_s)
{
    double most_s = makespan_s * (1 + 1e-9);
    if (judge->chain_s > most_s) return "it ends before the longest chain of its operations";
    if (judge->stream_s > most_s) return "it ends before a stream can have done its work";
    if (judge->direction_s > most_s) return "it ends before all bytes can have crossed a link";
    if (judge->plan->lower_bound_s > most_s) return "it ends before the planner's lower bound";
    return NULL;
}

static const char *check_order(const struct plan_judge *judge, const struct trace *trace)
{
    for (uint32_t o = 0; o < judge->op_count; o++) {
        const struct judge_op *op = &judge->ops[o];
        const struct trace_span *span = &trace->spans[o], *first = &trace->spans[o - op->join_at];
        if (span->stream != op->stream) return "an operation runs on another stream";
        if (span->end_s - span->start_s < op->alone_s - 1e-9 * trace->makespan_s)
            return "an operation takes less than it does alone";
        for (uint32_t w = op->first_wait; w < op->first_wait + op->wait_count; w++)
            if (span->start_s < trace->spans[judge->waits[w]].end_s)
                return "an operation starts before one that it waits for has ended";
        if (span->start_s < first->start_s || span->start_s > first->start_s || span->end_s < first->end_s ||
            span->end_s > first->end_s) return "the operations of a collective are not together";
    }
    return NULL;
}

static void time_lifetimes(struct plan_judge *judge, const struct trace *trace)
{
    for (uint32_t l = 1; l < judge->lifetime_count; l++)
        judge->lifetimes[l].from_s = trace->spans[judge->lifetimes[l].acquired_by].start_s;
    for (uint32_t o = 0; o < judge->op_count; o++) {
        uint32_t end = o + 1 < judge->op_count ? judge->ops[o + 1].first_use : judge->use_count;
        for (uint32_t u = judge->ops[o].first_use; u < end; u++) {
            struct judge_lifetime *life = &judge->lifetimes[judge->lifetime_of[u]];
            life->to_s = fmax(life->to_s, trace->spans[o].end_s);
        }
    }
}

/* If one lifetime begins when another ends, both orders are right. */
static const char *check_memory(struct plan_judge *judge, const struct trace *trace)
{
    time_lifetimes(judge, trace);
    static uint64_t least[JUDGE_OPS_MAX], most[JUDGE_OPS_MAX]; /* by place: bounds of the peak */
    memset(least, 0, trace->place_count * sizeof *least);
    memset(most, 0, trace->place_count * sizeof *most);
    double slack_s = 1e-9 * trace->makespan_s;
    for (uint32_t l = 1; l < judge->lifetime_count; l++) {
        const struct judge_lifetime *a = &judge->lifetimes[l];
        uint64_t inside = 0, touching = 0;
        if (a->end > judge->plan->hardware.devices[a->place - 1].memory_bytes) return "a slot is outside of the memory";
        for (uint32_t m = 1; m < judge->lifetime_count; m++) {
            const struct judge_lifetime *b = &judge->lifetimes[m];
            if (a->place != b->place) continue;
            bool meets = b->from_s <= a->from_s + slack_s && a->from_s <= b->to_s + slack_s;
            bool shares = m == l || (b->from_s < a->from_s - slack_s && a->from_s < b->to_s - slack_s);
            touching += meets ? b->bytes : 0;
            inside += shares ? b->bytes : 0;
            if (m < l && a->first < b->end && b->first < a->end && a->from_s < b->to_s)
                return "two lifetimes share bytes and time";
        }
        if (inside > least[a->place]) least[a->place] = inside;
        if (touching > most[a->place]) most[a->place] = touching;
    }
    for (uint32_t p = 1; p <= trace_device_count(trace); p++) {
        uint64_t peak = trace->places[p].peak_bytes;
        if (peak > judge->plan->hardware.devices[p - 1].memory_bytes) return "a peak is above the memory";
        if (peak < least[p] || peak > most[p]) return "a peak is none";
    }
    return NULL;
}

const char *plan_judge_spans(struct plan_judge *judge, const struct trace *trace)
{
    if (trace->span_count != judge->op_count) return "not every operation ran";
    const char *complaint = check_order(judge, trace);
    return complaint ? complaint : check_memory(judge, trace);
}

/* --- other numbers --------------------------------------------------------------------------- */

/* Makes numbers[i] a permutation of count numbers. */
static void shuffle(uint64_t key, uint32_t count, uint32_t *numbers)
{
    for (uint32_t i = 0; i < count; i++) numbers[i] = i;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t other = (uint32_t)random_below(key, i, i), swap = numbers[i - 1];
        numbers[i - 1] = numbers[other];
        numbers[other] = swap;
    }
}

static void *allocate(struct plan *plan, size_t count, size_t size)
{
    struct error err = {0};
    void *memory = NULL;
    assert_int_equal(arena_array(&plan->arena, count, size, &memory, &err), STATUS_OK);
    return memory;
}

/* Returns a copy of `array` with element i at numbers[i]. */
static void *permuted(struct plan *plan, const void *array, uint32_t count, size_t size, const uint32_t *numbers)
{
    char *out = allocate(plan, count, size);
    for (uint32_t i = 0; i < count; i++) memcpy(out + numbers[i] * size, (const char *)array + i * size, size);
    return out;
}

static void renumber_devices(struct plan *plan, const uint32_t *numbers)
{
    struct hardware *hw = &plan->hardware;
    hw->devices = permuted(plan, hw->devices, hw->device_count, sizeof *hw->devices, numbers);
    for (uint32_t i = 0; i < plan->task_count; i++) {
        struct plan_task *task = &plan->tasks[i];
        task->device = numbers[task->device];
        if (task->peer != PLAN_NONE && task->gang == PLAN_NONE) task->peer = numbers[task->peer];
    }
    for (uint32_t i = 0; i < plan->gang_device_count; i++) plan->gang_devices[i] = numbers[plan->gang_devices[i]];
}

static void renumber_jobs(struct plan *plan, const uint32_t *numbers)
{
    uint32_t count = plan->jobs.count, *first = allocate(plan, count + 1u, sizeof *first);
    for (uint32_t j = 0; j < count; j++)
        first[numbers[j] + 1] = plan->job_first_shard[j + 1] - plan->job_first_shard[j];
    for (uint32_t j = 0; j < count; j++) first[j + 1] += first[j];
    struct plan_shard *shards = allocate(plan, plan->shard_count, sizeof *shards);
    for (uint32_t s = 0; s < plan->shard_count; s++) {
        uint32_t job = plan->shards[s].job;
        struct plan_shard *to = &shards[first[numbers[job]] + s - plan->job_first_shard[job]];
        *to = plan->shards[s];
        to->job = numbers[job];
    }
    plan->shards = shards;
    plan->job_first_shard = first;
    plan->jobs.jobs = permuted(plan, plan->jobs.jobs, count, sizeof *plan->jobs.jobs, numbers);
    plan->job_activations = permuted(plan, plan->job_activations, count, sizeof *plan->job_activations, numbers);
    for (uint32_t u = 0; u < plan->unit_count; u++) plan->units[u].job = numbers[plan->units[u].job];
    for (uint32_t b = 0; b < plan->buffer_count; b++) plan->buffers[b].job = numbers[plan->buffers[b].job];
}

void plan_judge_renumber(struct plan *plan, uint64_t key)
{
    uint32_t most = plan->hardware.device_count > plan->jobs.count ? plan->hardware.device_count : plan->jobs.count;
    uint32_t *numbers = allocate(plan, most, sizeof *numbers);
    shuffle(key, plan->hardware.device_count, numbers);
    renumber_devices(plan, numbers);
    shuffle(key + 1, plan->jobs.count, numbers);
    renumber_jobs(plan, numbers);
}
