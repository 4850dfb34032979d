/*
 * Each subplan's indexes are translated once, in tables of buffers, units, slots and gangs. Tasks are appended in
 * *turns* by expected starts. A turn is some repetitions of a segment, or one task. A subplan's time is divided
 * among its tasks by computation, or copies.
 *
 *     subplan 0  minibatches 1 2 3 4 5 6 7 8           turns  0 0 0 0 1 1 0 0 ...
 *     subplan 1                       1 2 3 4
 *
 * Subplans that alternate task by task do so while they have minibatches; many of these go on in cycles of
 * whole repetitions (planner/strategy/merge_cycle.h): one is written, and it repeats. So the plan does not grow with
 * the minibatches, and a simulation finds the cycle, too.
 */
#include "planner/strategy/plan_merge.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/extreme.h"
#include "base/order.h"
#include "base/size.h"
#include "base/text/quantity.h"
#include "base/tournament.h"
#include "base/try.h"
#include "models/cost/cost.h"
#include "planner/check/plan_check.h"
#include "planner/plan_hosts.h"
#include "planner/strategy/merge_cycle.h"
#include "planner/strategy/subproblem.h"
#include "planner/walk/plan_build.h"

enum {
    TURNS = 16,      /* turns of a subplan while others run at the same time */
    CYCLE_TRY = 256  /* tasks that are written one by one between searches for a cycle, and one for each subplan */
};
static const double shortest_s = 1e-9; /* least time of a task, for the order */

struct plan_merge_piece {
    const struct merge_subplan *subplan;
    const struct plan *plan;
    uint32_t *buffers, *units, *gangs, *works; /* by index in the subplan: index in the whole plan */
    uint64_t staged_base; /* offset of its staged buffers in the host's arena ... */
    uint64_t range_base;  /* ... and of its jobs' ranges of host memory */
    double *unit_s;       /* seconds of a task of each unit (unit_seconds()) */
    double all_s;         /* all tasks, all repetitions */
    bool uses_host;       /* has operations on the host's streams ... */
    bool one_by_one;      /* ... and so has another subplan: its tasks take turns one by one */
    /* the next turn: */
    double done_s;        /* time of its earlier tasks */
    uint32_t segment, repeat, index;
    uint32_t paced;       /* 1 + the segment of `repetition_s` */
    double repetition_s;  /* time of a repetition of that segment */
    uint64_t in_cycle;    /* tasks of this subplan to be written in the current cycle */
    /* per device: the next subplan on it; subplans that wait for it; number of devices it waits for: */
    uint32_t *next_on;    /* per device: the next subplan on it, or PLAN_NONE */
    uint32_t follower, next_follower; /* the first subplan that follows this one; the next that follows the same */
    uint32_t waits;       /* devices of earlier subplans, plus 1 if it follows a subplan */
};

struct merge {
    struct plan_builder *builder;
    struct plan *whole;
    struct plan_merge_piece *pieces;
    uint32_t count;
    struct merge_pace *paces; /* of the subplans that can be in a cycle */
    uint32_t *paced;          /* their indexes */
    uint32_t paced_count;
    uint64_t untried;         /* tasks written one by one since the last search for a cycle */
    struct tournament next_s; /* per subplan: expected start of its next turn; HUGE_VAL: it waits, or is written */
    struct arena scratch;
    struct error *err;
};

/* --- numbers -------------------------------------------------------------------------------- */

static enum status allocate_table(struct merge *c, size_t count, uint32_t **out)
{
    TRY(ARENA_NEW(&c->scratch, count, *out, c->err));
    return STATUS_OK;
}

static enum status number_tables(struct merge *c, struct plan_merge_piece *p)
{
    const struct plan *plan = p->plan;
    TRY(allocate_table(c, plan->buffer_count, &p->buffers));
    TRY(allocate_table(c, plan->work_count, &p->works));
    TRY(allocate_table(c, plan->unit_count, &p->units));
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        struct plan_buffer buffer = plan->buffers[b];
        buffer.job = p->subplan->jobs[buffer.job];
        p->buffers[b] = plan_builder_buffer(c->builder, &buffer);
    }
    for (uint32_t w = 0; w < plan->work_count; w++) {
        const struct plan_work *work = &plan->works[w];
        p->works[w] = plan_builder_work(c->builder, plan->items + work->first_item, work->item_count);
    }
    return STATUS_OK;
}

static enum status number_gangs(struct merge *c, struct plan_merge_piece *p)
{
    TRY(allocate_table(c, p->plan->gang_count, &p->gangs));
    for (uint32_t g = 0; g < p->plan->gang_count; g++) {
        const struct plan_gang *gang = &p->plan->gangs[g];
        uint32_t *devices;
        TRY(allocate_table(c, plan_gang_size(gang), &devices));
        for (uint32_t i = 0; i < plan_gang_size(gang); i++)
            devices[i] = p->subplan->devices[p->plan->gang_devices[gang->first + i]];
        p->gangs[g] = plan_builder_gang(c->builder, gang->extents, devices);
    }
    return STATUS_OK;
}

static void write_op(struct merge *c, const struct plan_merge_piece *p, const struct plan_op *op,
                     struct plan_access *accesses)
{
    struct plan_op own = *op;
    assert(op->after_count == 0);
    for (uint32_t a = 0; a < op->access_count; a++) {
        accesses[a] = p->plan->accesses[op->first_access + a];
        accesses[a].buffer = p->buffers[accesses[a].buffer];
    }
    if (op->kind == OP_COMPUTE && op->work != PLAN_NONE) own.work = p->works[op->work];
    plan_builder_op(c->builder, &own, accesses, op->access_count, NULL, 0);
}

static enum status number_units(struct merge *c, struct plan_merge_piece *p)
{
    const struct plan *plan = p->plan;
    struct plan_access *accesses;
    uint32_t most = 1;
    for (uint32_t o = 0; o < plan->op_count; o++) {
        if (plan->ops[o].access_count > most) most = plan->ops[o].access_count;
        p->uses_host |= plan_stream_is_host(plan->ops[o].stream);
    }
    TRY(ARENA_NEW(&c->scratch, most, accesses, c->err));
    for (uint32_t u = 0; u < plan->unit_count; u++) {
        const struct plan_unit *unit = &plan->units[u];
        plan_builder_unit_begin(c->builder, p->subplan->jobs[unit->job], unit->shard, (enum plan_pass)unit->pass,
                                unit->ends_minibatch);
        for (uint32_t o = 0; o < unit->op_count; o++) write_op(c, p, &plan->ops[unit->first_op + o], accesses);
        p->units[u] = plan_builder_unit_end(c->builder);
    }
    return STATUS_OK;
}

/* --- jobs and reservations ------------------------------------------------------------------------ */

/* Numbers shards job by job, over all subplans. */
static enum status copy_jobs(struct merge *c)
{
    struct plan *whole = c->whole;
    uint32_t *piece_of, *job_in;
    TRY(allocate_table(c, whole->jobs.count, &piece_of));
    TRY(allocate_table(c, whole->jobs.count, &job_in));
    for (uint32_t i = 0; i < c->count; i++)
        for (uint32_t k = 0; k < c->pieces[i].plan->jobs.count; k++) {
            uint32_t j = c->pieces[i].subplan->jobs[k];
            piece_of[j] = i;
            job_in[j] = k;
        }
    for (uint32_t j = 0; j < whole->jobs.count; j++) {
        const struct plan *subplan = c->pieces[piece_of[j]].plan;
        uint32_t k = job_in[j];
        whole->jobs.jobs[j].parallel = subplan->jobs.jobs[k].parallel;
        whole->job_activations[j] = subplan->job_activations[k];
        whole->job_reservation[j] = piece_of[j];
        for (uint32_t s = subplan->job_first_shard[k]; s < subplan->job_first_shard[k + 1]; s++)
            plan_builder_shard(c->builder, j, subplan->shards[s].first_layer, subplan->shards[s].layer_count,
                               subplan->shards[s].inputs_only);
    }
    return STATUS_OK;
}

/* Copies the ranges of host memory, for subplans whose jobs take turns there. */
static enum status copy_ranges(struct merge *c)
{
    struct plan *whole = c->whole;
    bool any = false;
    for (uint32_t i = 0; i < c->count; i++) any |= c->pieces[i].plan->host_ranges != NULL;
    if (!any) return STATUS_OK;
    TRY(ARENA_NEW(&whole->arena, whole->jobs.count, whole->host_ranges, c->err));
    for (uint32_t i = 0; i < c->count; i++)
        for (uint32_t k = 0; k < c->pieces[i].plan->jobs.count; k++) {
            if (!plan_has_range(c->pieces[i].plan, k)) continue;
            struct plan_host_range *range = &whole->host_ranges[c->pieces[i].subplan->jobs[k]];
            *range = c->pieces[i].plan->host_ranges[k];
            range->offset_bytes += c->pieces[i].range_base;
        }
    return STATUS_OK;
}

static enum status make_reservations(struct merge *c)
{
    struct plan *whole = c->whole;
    size_t entries = 0;
    for (uint32_t i = 0; i < c->count; i++) entries += c->pieces[i].plan->hardware.device_count;
    TRY(ARENA_NEW(&whole->arena, c->count, whole->reservations, c->err));
    TRY(ARENA_NEW(&whole->arena, entries, whole->reservation_devices, c->err));
    TRY(ARENA_NEW(&whole->arena, whole->jobs.count, whole->job_reservation, c->err));
    for (uint32_t i = 0; i < c->count; i++) {
        const struct merge_subplan *subplan = c->pieces[i].subplan;
        struct plan_reservation *reservation = &whole->reservations[whole->reservation_count++];
        *reservation = (struct plan_reservation){.first_device = whole->reservation_device_count,
                                                 .device_count = subplan->plan->hardware.device_count,
                                                 .follows = subplan->follows,
                                                 .begin_s = subplan->begin_s,
                                                 .end_s = subplan->end_s,
                                                 .restart_s = subplan->restart_s};
        for (uint32_t d = 0; d < reservation->device_count; d++)
            whole->reservation_devices[whole->reservation_device_count++] = subplan->devices[d];
    }
    return STATUS_OK;
}

/* --- turns ---------------------------------------------------------------------------------- */

/* Returns the seconds of a unit's computation on a device, or of its copies without computation. */
static double unit_seconds(const struct plan *plan, const struct hardware *hardware, const struct plan_unit *unit,
                           uint32_t device, bool copies)
{
    double computed_s = 0, copied_s = 0;
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
        const struct plan_op *op = &plan->ops[o];
        if (op->kind == OP_COMPUTE && op->stream == STREAM_COMPUTE && op->work != PLAN_NONE) {
            const struct plan_work *work = &plan->works[op->work];
            computed_s += cost_work_s(hardware, device, plan->items + work->first_item, work->item_count, NULL);
        } else if (copies && op->kind == OP_COPY && (op->stream == STREAM_H2D || op->stream == STREAM_D2H)) {
            copied_s += cost_copy_s(hardware, device, op->stream == STREAM_H2D ? COPY_H2D : COPY_D2H, op->bytes);
        }
    }
    return computed_s > 0 ? computed_s : copied_s;
}

static uint32_t device_of(const struct plan_merge_piece *p, const struct plan_task *task)
{
    const struct plan *plan = p->plan;
    return p->subplan->devices[task->gang == PLAN_NONE ? task->device
                                                           : plan->gang_devices[plan->gangs[task->gang].first]];
}

/* Divides the subplan's time among its tasks: jobs of different sizes alternate or follow each other, and their
 * times decide the order on the host's streams. */
static enum status time_tasks(struct merge *c, struct plan_merge_piece *p)
{
    const struct plan *plan = p->plan;
    TRY(ARENA_NEW(&c->scratch, plan->unit_count, p->unit_s, c->err));
    for (uint32_t u = 0; u < plan->unit_count; u++) p->unit_s[u] = -1;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t i = 0; i < plan->segments[s].task_count; i++) {
            const struct plan_task *task = &plan->tasks[plan->segments[s].first_task + i];
            double *seconds = &p->unit_s[task->unit];
            if (*seconds < 0)
                *seconds = shortest_s + unit_seconds(plan, &c->whole->hardware, &plan->units[task->unit],
                                                     device_of(p, task), true);
            p->all_s += plan->segments[s].repeat_count * *seconds;
        }
    return STATUS_OK;
}

/* Returns the number of elements of `sorted` below `limit`; with `also`, also the equal ones. */
static uint32_t count_below(const double *sorted, uint32_t count, double limit, bool also)
{
    uint32_t begin = 0;
    while (begin < count) {
        uint32_t middle = begin + (count - begin) / 2;
        if (sorted[middle] < limit || (also && sorted[middle] <= limit)) begin = middle + 1;
        else count = middle;
    }
    return begin;
}

/* Two subplans overlap if each begins before the other ends. A subplan overlaps itself unless it takes no time. */
static enum status choose_turns(struct merge *c)
{
    double *begins, *ends;
    uint32_t users = 0;
    TRY(ARENA_NEW(&c->scratch, c->count, begins, c->err));
    TRY(ARENA_NEW(&c->scratch, c->count, ends, c->err));
    for (uint32_t i = 0; i < c->count; i++) {
        const struct plan_merge_piece *p = &c->pieces[i];
        TRY(time_tasks(c, &c->pieces[i]));
        if (!p->uses_host || p->subplan->begin_s >= p->subplan->end_s) continue;
        begins[users] = p->subplan->begin_s;
        ends[users++] = p->subplan->end_s;
    }
    qsort(begins, users, sizeof *begins, order_double);
    qsort(ends, users, sizeof *ends, order_double);
    for (uint32_t i = 0; i < c->count; i++) {
        const struct merge_subplan *subplan = c->pieces[i].subplan;
        if (!c->pieces[i].uses_host || subplan->begin_s >= subplan->end_s) continue;
        uint32_t beside = count_below(begins, users, subplan->end_s, false) -
                          count_below(ends, users, subplan->begin_s, true);
        c->pieces[i].one_by_one = beside > 1;
    }
    return STATUS_OK;
}

static bool is_written(const struct plan_merge_piece *p)
{
    return p->segment == p->plan->segment_count;
}

static double next_s(const struct plan_merge_piece *p)
{
    return p->subplan->begin_s + p->done_s / p->all_s * (p->subplan->end_s - p->subplan->begin_s);
}

static void write_task(struct merge *c, const struct plan_merge_piece *p, const struct plan_task *task,
                       uint32_t *slots)
{
    const struct plan_unit *unit = &p->plan->units[task->unit];
    uint32_t at = 0;
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
        for (uint32_t a = 0; a < p->plan->ops[o].access_count; a++) {
            const struct plan_access *access = &p->plan->accesses[p->plan->ops[o].first_access + a];
            if (!(access->flags & ACCESS_ACQUIRE)) continue;
            const struct plan_slot *slot = &p->plan->slots[p->plan->layouts[task->layout + at]];
            uint64_t base = p->plan->buffers[access->buffer].on_device ? 0 : p->staged_base;
            slots[at++] = plan_builder_slot(c->builder, base + slot->offset_bytes, slot->bytes);
        }
    if (task->gang != PLAN_NONE)
        plan_builder_gang_task(c->builder, p->units[task->unit], p->gangs[task->gang], slots, at);
    else
        plan_builder_task(c->builder, p->units[task->unit], p->subplan->devices[task->device], slots, at);
    if (task->peer == PLAN_NONE) return;
    plan_builder_peer(c->builder, task->gang != PLAN_NONE ? p->gangs[task->peer]
                                                              : p->subplan->devices[task->peer]);
}

/* Writes one task; consecutive single tasks form a segment. */
static void write_single(struct merge *c, struct plan_merge_piece *p, uint32_t *slots)
{
    const struct plan_segment *segment = &p->plan->segments[p->segment];
    const struct plan_task *task = &p->plan->tasks[segment->first_task + p->index];
    write_task(c, p, task, slots);
    p->done_s += p->unit_s[task->unit];
    if (++p->index < segment->task_count) return;
    p->index = 0;
    if (++p->repeat < segment->repeat_count) return;
    p->repeat = 0;
    p->segment++;
}

static void write_turn(struct merge *c, struct plan_merge_piece *p, uint32_t *slots)
{
    const struct plan_segment *segment = &p->plan->segments[p->segment];
    uint32_t repeats = (segment->repeat_count + TURNS - 1) / TURNS;
    if (repeats > segment->repeat_count - p->repeat) repeats = segment->repeat_count - p->repeat;
    plan_builder_segment(c->builder, 1); /* ends the segment of single tasks */
    for (uint32_t i = 0; i < segment->task_count; i++) {
        const struct plan_task *task = &p->plan->tasks[segment->first_task + i];
        write_task(c, p, task, slots);
        p->done_s += repeats * p->unit_s[task->unit];
    }
    plan_builder_segment(c->builder, repeats);
    p->repeat += repeats;
    if (p->repeat < segment->repeat_count) return;
    p->repeat = 0;
    p->segment++;
}

static void offer(struct merge *c, uint32_t index);

static void stop_waiting(struct merge *c, uint32_t index)
{
    if (--c->pieces[index].waits == 0) offer(c, index);
}

static void end_piece(struct merge *c, const struct plan_merge_piece *p)
{
    for (uint32_t d = 0; d < p->plan->hardware.device_count; d++)
        if (p->next_on[d] != PLAN_NONE) stop_waiting(c, p->next_on[d]);
    for (uint32_t f = p->follower; f != PLAN_NONE; f = c->pieces[f].next_follower) stop_waiting(c, f);
}

/* Offers the subplan's next turn, if it has one and may begin. */
static void offer(struct merge *c, uint32_t index)
{
    struct plan_merge_piece *p = &c->pieces[index];
    tournament_set(&c->next_s, index, is_written(p) ? HUGE_VAL : next_s(p));
    if (is_written(p)) end_piece(c, p);
}

/* Lines up subplans: each begins after the subplan that it follows, and after earlier subplans on its devices. */
static enum status line_up(struct merge *c)
{
    uint32_t *last_on;
    TRY(allocate_table(c, c->whole->hardware.device_count, &last_on)); /* 1 + index of a subplan */
    TRY(tournament_create(&c->scratch, c->count, HUGE_VAL, &c->next_s, c->err));
    for (uint32_t i = 0; i < c->count; i++) c->pieces[i].follower = c->pieces[i].next_follower = PLAN_NONE;
    for (uint32_t i = c->count; i-- > 0;) {
        struct plan_merge_piece *p = &c->pieces[i];
        uint32_t devices = p->plan->hardware.device_count;
        TRY(allocate_table(c, devices, &p->next_on));
        for (uint32_t d = 0; d < devices; d++) {
            uint32_t *last = &last_on[p->subplan->devices[d]];
            p->next_on[d] = *last > 0 ? *last - 1 : PLAN_NONE;
            if (*last > 0) c->pieces[*last - 1].waits++;
            *last = i + 1;
        }
        if (p->subplan->follows == PLAN_NONE) continue;
        p->next_follower = c->pieces[p->subplan->follows].follower;
        c->pieces[p->subplan->follows].follower = i;
        p->waits++;
    }
    for (uint32_t i = 0; i < c->count; i++)
        if (c->pieces[i].waits == 0) offer(c, i);
    return STATUS_OK;
}

/* --- cycles ---------------------------------------------------------------------------------- */

/* Returns the seconds of a repetition of its segment, by the clock of next_s(). */
static double period_s(struct plan_merge_piece *p)
{
    const struct plan_segment *segment = &p->plan->segments[p->segment];
    if (p->paced != p->segment + 1) {
        p->paced = p->segment + 1;
        p->repetition_s = 0;
        for (uint32_t i = 0; i < segment->task_count; i++)
            p->repetition_s += p->unit_s[p->plan->tasks[segment->first_task + i].unit];
    }
    return p->repetition_s / p->all_s * (p->subplan->end_s - p->subplan->begin_s);
}

/* Finds the subplans whose next task is less than a repetition away. Returns when the first of the others goes
 * on. */
static double find_paces(struct merge *c, double now_s)
{
    double others_s = HUGE_VAL;
    c->paced_count = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        struct plan_merge_piece *p = &c->pieces[i];
        double at_s = tournament_get(&c->next_s, i);
        if (!(at_s < HUGE_VAL)) continue;
        double period = p->one_by_one ? period_s(p) : 0;
        if (at_s - now_s >= period) {
            others_s = min_s(others_s, at_s);
            continue;
        }
        const struct plan_segment *segment = &p->plan->segments[p->segment];
        c->paced[c->paced_count] = i;
        c->paces[c->paced_count++] = (struct merge_pace){
            .period_s = period, .tasks = segment->task_count, .left = segment->repeat_count - p->repeat - 1};
    }
    return others_s;
}

/* Writes one cycle, which repeats `times` times. A subplan in the midst of a repetition ends the cycle there, too. */
static void write_cycle(struct merge *c, uint32_t times, uint32_t *slots)
{
    uint64_t left = 0;
    plan_builder_segment(c->builder, 1); /* what singles left */
    for (uint32_t i = 0; i < c->paced_count; i++) {
        struct plan_merge_piece *p = &c->pieces[c->paced[i]];
        p->in_cycle = (uint64_t)c->paces[i].in_cycle * c->paces[i].tasks;
        left += p->in_cycle;
    }
    for (; left > 0; left--) {
        uint32_t index = tournament_first(&c->next_s, tournament_least(&c->next_s));
        struct plan_merge_piece *p = &c->pieces[index];
        write_single(c, p, slots);
        tournament_set(&c->next_s, index, --p->in_cycle > 0 ? next_s(p) : HUGE_VAL);
    }
    plan_builder_segment(c->builder, times);
    for (uint32_t i = 0; i < c->paced_count; i++) {
        struct plan_merge_piece *p = &c->pieces[c->paced[i]];
        uint32_t more = (times - 1) * c->paces[i].in_cycle;
        p->repeat += more;
        p->done_s += more * p->repetition_s;
        offer(c, c->paced[i]);
    }
}

/* Returns true when a cycle was written. */
static bool try_cycle(struct merge *c, uint32_t *slots)
{
    if (c->untried++ < CYCLE_TRY + (uint64_t)c->count) return false;
    c->untried = 0;
    double now_s = tournament_least(&c->next_s), others_s = find_paces(c, now_s);
    uint32_t times = merge_cycle_choose(c->paces, c->paced_count, others_s - now_s);
    if (times > 0) write_cycle(c, times, slots);
    return times > 0;
}

static enum status write_order(struct merge *c)
{
    uint32_t most = 1, *slots;
    for (uint32_t i = 0; i < c->count; i++)
        for (uint32_t u = 0; u < c->pieces[i].plan->unit_count; u++)
            if (c->pieces[i].plan->units[u].acquire_count > most) most = c->pieces[i].plan->units[u].acquire_count;
    TRY(allocate_table(c, most, &slots));
    TRY(ARENA_NEW(&c->scratch, c->count, c->paces, c->err));
    TRY(allocate_table(c, c->count, &c->paced));
    TRY(line_up(c));
    while (tournament_least(&c->next_s) < HUGE_VAL) {
        if (try_cycle(c, slots)) continue;
        uint32_t index = tournament_first(&c->next_s, tournament_least(&c->next_s));
        struct plan_merge_piece *p = &c->pieces[index];
        (p->one_by_one ? write_single : write_turn)(c, p, slots);
        offer(c, index);
    }
    plan_builder_segment(c->builder, 1);
    return STATUS_OK;
}

/* --- estimate and bound --------------------------------------------------------------------- */

/* Adds the computation of a subplan's devices, without contention. */
static void add_computing(const struct plan_merge_piece *p, const struct hardware *hardware, double *busy_s)
{
    const struct plan *plan = p->plan;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t i = 0; i < plan->segments[s].task_count; i++) {
            const struct plan_task *task = &plan->tasks[plan->segments[s].first_task + i];
            const struct plan_unit *unit = &plan->units[task->unit];
            const struct plan_gang *gang = task->gang == PLAN_NONE ? NULL : &plan->gangs[task->gang];
            for (uint32_t m = 0; m < (gang ? plan_gang_size(gang) : 1); m++) {
                uint32_t device = p->subplan->devices[gang ? plan->gang_devices[gang->first + m] : task->device];
                busy_s[device] += plan->segments[s].repeat_count * unit_seconds(plan, hardware, unit, device, false);
            }
        }
}

static enum status describe(struct merge *c, const struct merge_options *options)
{
    struct plan *whole = c->whole;
    char text[384], seconds[QUANTITY_TEXT_BYTES];
    double *busy_s;
    uint32_t busiest = 0;
    const struct plan_merge_piece *longest = NULL;
    TRY(ARENA_NEW(&c->scratch, whole->hardware.device_count, busy_s, c->err));
    for (uint32_t i = 0; i < c->count; i++) {
        const struct plan_merge_piece *p = &c->pieces[i];
        add_computing(p, &whole->hardware, busy_s);
        if (p->subplan->end_s > whole->estimated_makespan_s) whole->estimated_makespan_s = p->subplan->end_s;
        if (!longest || p->plan->lower_bound_s > longest->plan->lower_bound_s) longest = p;
    }
    for (uint32_t d = 1; d < whole->hardware.device_count; d++)
        if (busy_s[d] > busy_s[busiest]) busiest = d;
    if (busy_s[busiest] >= longest->plan->lower_bound_s) {
        whole->lower_bound_s = busy_s[busiest];
        whole->bound_kind = BOUND_AREA;
        snprintf(text, sizeof text, "run like this, device %" PRIu32 " computes for %s", busiest,
                 quantity_text(busy_s[busiest], DIMENSION_SECONDS, seconds));
    } else {
        whole->lower_bound_s = longest->plan->lower_bound_s;
        whole->bound_kind = longest->plan->bound_kind;
        snprintf(text, sizeof text, "%s and what shares its devices: %.200s",
                 whole->jobs.jobs[longest->subplan->jobs[0]].name, longest->plan->bound_text);
    }
    if (whole->estimated_makespan_s < whole->lower_bound_s) whole->estimated_makespan_s = whole->lower_bound_s;
    whole->seed = options->seed;
    whole->order = options->order;
    TRY(arena_string(&whole->arena, text, &whole->bound_text, c->err));
    return arena_string(&whole->arena, options->policy, &whole->policy, c->err);
}

/* --- the whole ------------------------------------------------------------------------------ */

/* Returns the offset of `bytes` after earlier subplans on the subplan's hosts. */
static uint64_t base_of(const struct merge *c, const struct merge_subplan *subplan, uint64_t bytes, uint64_t *staged)
{
    const struct hardware_device *devices = c->whole->hardware.devices;
    uint64_t base = 0;
    uint32_t count = subplan->plan->hardware.device_count;
    for (uint32_t d = 0; d < count; d++)
        if (staged[devices[subplan->devices[d]].host] > base) base = staged[devices[subplan->devices[d]].host];
    for (uint32_t d = 0; d < count; d++) staged[devices[subplan->devices[d]].host] = base + bytes;
    return base;
}

static struct subproblem_run run_of(const struct hardware *hardware, const struct merge_subplan *subplan)
{
    return subproblem_run_of(hardware, subplan->devices, subplan->plan->hardware.device_count);
}

/* Gives each subplan's ranges an offset. Each device has a part of its host's memory. A subplan's ranges are in the
 * parts of its devices, as far as these are neighbours (subproblem_run_of()), because subplans that share a device
 * follow each other. Those on several hosts have their own. */
static enum status place_ranges(struct merge *c, const struct merge_subplan *subplans)
{
    const struct hardware *hardware = &c->whole->hardware;
    uint64_t *ends, *most, *base;
    uint32_t devices = hardware->device_count;
    TRY(ARENA_NEW(&c->scratch, hardware_host_count(hardware), ends, c->err));
    TRY(ARENA_NEW(&c->scratch, devices, most, c->err));
    TRY(ARENA_NEW(&c->scratch, devices, base, c->err));
    for (uint32_t i = 0; i < c->count; i++) {
        const struct subproblem_run run = run_of(hardware, &subplans[i]);
        const uint64_t bytes = size_align(plan_ranges_bytes(subplans[i].plan), PLAN_HOST_ALIGNMENT);
        if (run.count > 0) (void)subproblem_run_enlarge(run, bytes, most);
    }
    for (uint32_t d = 0; d < devices; d++) {
        uint64_t *end = &ends[hardware->devices[d].host];
        base[d] = *end;
        *end += most[d];
    }
    for (uint32_t i = 0; i < c->count; i++) {
        const struct subproblem_run run = run_of(hardware, &subplans[i]);
        const uint64_t bytes = size_align(plan_ranges_bytes(subplans[i].plan), PLAN_HOST_ALIGNMENT);
        c->pieces[i].range_base = run.count > 0 ? base[run.first] : base_of(c, &subplans[i], bytes, ends);
    }
    return STATUS_OK;
}

static enum status merge(struct merge *c, const struct merge_subplan *subplans,
                         const struct merge_options *options)
{
    uint64_t *staged;
    TRY(ARENA_NEW(&c->scratch, hardware_host_count(&c->whole->hardware), staged, c->err));
    TRY(ARENA_NEW(&c->scratch, c->count, c->pieces, c->err));
    for (uint32_t i = 0; i < c->count; i++) {
        c->pieces[i].subplan = &subplans[i];
        c->pieces[i].plan = subplans[i].plan;
        uint64_t bytes = size_align(plan_staged_bytes(subplans[i].plan), MEMORY_ALIGNMENT);
        c->pieces[i].staged_base = base_of(c, &subplans[i], bytes, staged);
    }
    TRY(place_ranges(c, subplans));
    TRY(make_reservations(c));
    TRY(copy_jobs(c));
    TRY(copy_ranges(c));
    for (uint32_t i = 0; i < c->count; i++) TRY(number_gangs(c, &c->pieces[i]));
    for (uint32_t i = 0; i < c->count; i++) {
        TRY(number_tables(c, &c->pieces[i]));
        TRY(number_units(c, &c->pieces[i]));
    }
    TRY(choose_turns(c));
    TRY(write_order(c));
    return describe(c, options);
}

enum status plan_merge(struct hardware *hardware, struct job_set *jobs, const struct merge_subplan *subplans,
                       uint32_t subplan_count, const struct merge_options *options, struct plan *out,
                       struct error *err)
{
    struct merge c = {.count = subplan_count, .err = err};
    assert(subplan_count > 0);
    TRY(plan_builder_create(hardware, jobs, &c.builder, err));
    c.whole = plan_builder_plan(c.builder);
    enum status status = merge(&c, subplans, options);
    if (!status) status = plan_builder_finish(c.builder, out, err);
    if (!status) status = plan_host_fits(out, err);
    if (!status && plan_check(out, err)) status = error_add(err, "the planner made a plan that is wrong");
    if (status) plan_release(out);
    plan_builder_destroy(c.builder);
    arena_release(&c.scratch);
    return status;
}
