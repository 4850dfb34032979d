/*
 * Three passes. First the units are written in order; then shared_fetch.c gives them pieces of the base to fetch;
 * then the clocks of schedule_builder.h run over them.
 *
 * Rounds that are alike repeat: of n of them the first and the last are written by themselves, since the rounds around
 * them may have other jobs, and the second n - 2 times.
 */
#include "planner/spill/shared/shared_order.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/size.h"
#include "base/try.h"
#include "models/job/evaluation.h"
#include "planner/pass_seconds.h"
#include "planner/spill/order/schedule_builder.h"
#include "planner/spill/shared/shared_fetch.h"

struct lockstep {
    const struct partition *cut;
    const struct job_set *jobs;
    struct schedule_builder *builder; /* in the first pass its clocks mean nothing */
    struct schedule *out;
    uint32_t owner;                   /* of the base */
    uint64_t round;                   /* of the base's jobs */
    struct error *err;
};

/* --- rounds ----------------------------------------------------------------------------------- */

static enum status add_unit(struct lockstep *l, uint32_t job)
{
    struct schedule *out = l->out;
    const uint32_t shard = schedule_unit_shard(partition_job_units(l->cut, job), l->builder->jobs[job].position);
    TRY(array_reserve(&out->units, &out->capacity, out->count, sizeof *out->units, PLAN_TASKS_MAX,
                      "units in the schedule", l->err));
    schedule_builder_put(l->builder, job, l->cut->base.device[l->cut->job_first_shard[job] + shard],
                         &out->units[out->count++]);
    return STATUS_OK;
}

static bool has_base(const struct lockstep *l, uint32_t job) { return l->cut->base.owner[job] == l->owner; }

static bool runs(const struct lockstep *l, uint32_t job)
{
    return has_base(l, job) && l->round < l->jobs->jobs[job].minibatches;
}

/* Adds the next unit of each job that has this position of a shard's pass next. */
static enum status add_turn(struct lockstep *l, enum plan_pass pass, uint32_t shard)
{
    for (uint32_t j = l->owner; j < l->jobs->count; j++) {
        const struct partition_units units = partition_job_units(l->cut, j);
        const uint32_t position = l->builder->jobs[j].position;
        if (!has_base(l, j) || l->builder->jobs[j].minibatch != l->round || !runs(l, j)) continue;
        if (schedule_unit_pass(units, position) != pass || schedule_unit_shard(units, position) != shard) continue;
        TRY(add_unit(l, j));
    }
    return STATUS_OK;
}

/* Returns the most held-out minibatches of a job after this round. */
static uint64_t held_out(const struct lockstep *l)
{
    uint64_t most = 0;
    for (uint32_t j = l->owner; j < l->jobs->count; j++)
        if (runs(l, j) && evaluation_follows(&l->jobs->jobs[j], l->round))
            most = max_u64(most, l->jobs->jobs[j].evaluation.minibatches);
    return most;
}

/* Writes the round's units, each job's next minibatch. */
static enum status add_round(struct lockstep *l)
{
    const uint32_t shards = partition_job_shards(l->cut, l->owner);
    const uint64_t evaluations = held_out(l);
    for (uint32_t s = 0; s + 1 < shards; s++) TRY(add_turn(l, PLAN_FORWARD, s));
    TRY(add_turn(l, PLAN_LOSS, shards - 1));
    for (uint32_t s = shards - 1; s-- > 0;) TRY(add_turn(l, PLAN_BACKWARD, s));
    for (uint64_t h = 0; h < evaluations; h++)
        for (uint32_t s = 0; s < shards; s++) TRY(add_turn(l, PLAN_EVALUATE, s));
    l->round++;
    return STATUS_OK;
}

/* Returns how many rounds, from this one on, have the same jobs and no evaluation; 1 for a round with one. */
static uint64_t alike_rounds(const struct lockstep *l, uint64_t most)
{
    uint64_t count = most;
    for (uint32_t j = l->owner; j < l->jobs->count; j++) {
        const struct job *job = &l->jobs->jobs[j];
        if (!runs(l, j)) continue;
        count = min_u64(count, job->minibatches - l->round);
        if (job->evaluation.every == 0) continue;
        const uint64_t left = job->evaluation.every - 1 - (job->first_minibatch + l->round) % job->evaluation.every;
        count = min_u64(count, min_u64(left, job->minibatches - 1 - l->round));
    }
    return max_u64(count, 1);
}

/* Repeats the last round, which began with unit `first`, `times` times more. */
static enum status repeat(struct lockstep *l, uint32_t first, uint64_t times)
{
    struct schedule *out = l->out;
    if (times == 0) return STATUS_OK;
    TRY(array_reserve(&out->cycles, &out->cycle_capacity, out->cycle_count, sizeof *out->cycles, PLAN_SEGMENTS_MAX,
                      "cycles in the schedule", l->err));
    out->cycles[out->cycle_count++] = (struct schedule_loop){first, out->count, times};
    for (uint32_t j = l->owner; j < l->jobs->count; j++)
        if (has_base(l, j) && l->builder->jobs[j].minibatch == l->round) l->builder->jobs[j].minibatch += times;
    l->round += times;
    return STATUS_OK;
}

static enum status add_alike(struct lockstep *l, uint64_t count)
{
    TRY(add_round(l));
    if (count == 1) return STATUS_OK;
    const uint32_t first = l->out->count;
    if (count > 2) TRY(add_round(l));
    if (count > 2) TRY(repeat(l, first, count - 3));
    return add_round(l);
}

static enum status add_base(struct lockstep *l, uint32_t owner, uint64_t rounds)
{
    uint64_t end = 0;
    l->owner = owner;
    for (uint32_t j = owner; j < l->jobs->count; j++)
        if (has_base(l, j)) end = max_u64(end, l->jobs->jobs[j].minibatches);
    if (rounds > 0) end = min_u64(end, rounds);
    for (l->round = 0; l->round < end;) TRY(add_alike(l, alike_rounds(l, end - l->round)));
    return STATUS_OK;
}

static enum status add_all(struct lockstep *l, const struct cost_table *times, uint64_t rounds)
{
    enum status status = schedule_builder_create(times, false, &l->builder, l->err);
    for (uint32_t j = 0; j < l->jobs->count && !status; j++)
        if (l->cut->base.owner[j] == j) status = add_base(l, j, rounds);
    schedule_builder_destroy(l->builder);
    l->builder = NULL;
    return status;
}

/* --- clocks ----------------------------------------------------------------------------------- */

struct clocks {
    const struct cost_table *times;
    const struct partition *cut;
    struct schedule *schedule;
    struct schedule_builder *builder;
    double *ready_s; /* per shard of an owner: when its base, or what was fetched of it so far, is on its device */
    double *left_s;  /* per device: when the base before the last in turn was last used there ... */
    double *last_s;  /* ... and the last one */
    double repeated_s;
};

static double copied_s(const struct clocks *c, uint32_t device, uint64_t bytes)
{
    return pass_seconds_copy(c->times->hardware, device, COPY_H2D, bytes) * c->cut->contention;
}

/* Has the device's stream of copies fetch bytes, not before free_s. Returns the end. */
static double fetch(const struct clocks *c, uint32_t device, uint64_t bytes, double free_s)
{
    struct schedule_builder_device *clocks = &c->builder->devices[device];
    return clocks->h2d_free_s = max_s(clocks->h2d_free_s, free_s) + copied_s(c, device, bytes);
}

/* Lets a job find its last output on the device, if its edge there has not been taken by another unit's. */
static void carry(const struct clocks *c, uint32_t job, uint32_t device)
{
    const struct schedule_builder_job *own = &c->builder->jobs[job];
    struct schedule_builder_device *clocks = &c->builder->devices[device];
    const bool there = own->edge_turn != PLAN_NONE && c->builder->view_jobs[job].last_device == device &&
                       clocks->edge_turn - own->edge_turn < c->cut->edge_count;
    clocks->last_job = there ? job : PLAN_NONE;
}

static void pass_unit(struct clocks *c, uint32_t i)
{
    struct schedule_unit *unit = &c->schedule->units[i];
    const struct schedule_base *base = &c->schedule->bases[i];
    const uint32_t device = unit->device, job = unit->job, owner = c->cut->job_first_shard[c->cut->base.owner[job]];
    const uint32_t shard = schedule_unit_shard(partition_job_units(c->cut, job), unit->position);
    struct schedule_builder_device *clocks = &c->builder->devices[device];
    struct schedule_unit put;
    if (base->fetches)
        c->ready_s[owner + shard] = fetch(c, device, shared_fetch_bytes(c->times->jobs, c->cut, job, shard),
                                          c->cut->base.turns > 1 ? c->left_s[device] : c->last_s[device]);
    if (base->fetches_table)
        c->ready_s[owner + shard] = fetch(c, device, footprint_table_bytes(&c->times->jobs->jobs[job]), 0);
    clocks->compute_free_s = max_s(clocks->compute_free_s, c->ready_s[owner + shard]);
    carry(c, job, device);
    schedule_builder_put(c->builder, job, device, &put);
    unit->fetches = put.fetches;
    if (base->ahead != PLAN_NONE)
        c->ready_s[owner + base->ahead] = fetch(c, device, base->ahead_bytes, c->left_s[device]);
    if (!base->releases || c->cut->base.stays[owner + shard]) return;
    c->left_s[device] = c->cut->base.turns > 2 ? c->last_s[device] : clocks->compute_free_s;
    c->last_s[device] = clocks->compute_free_s;
}

/* Leaves repetitions out, and adds up what they take. */
static void pass_all(struct clocks *c)
{
    const struct schedule *schedule = c->schedule;
    double began_s = 0;
    for (uint32_t i = 0, next = 0; i < schedule->count; i++) {
        const struct schedule_loop *cycle = next < schedule->cycle_count ? &schedule->cycles[next] : NULL;
        if (cycle && i == cycle->first) began_s = c->builder->makespan_s;
        pass_unit(c, i);
        if (!cycle || i + 1 < cycle->end) continue;
        c->repeated_s += (double)cycle->times * (c->builder->makespan_s - began_s);
        for (uint32_t k = cycle->first; k < cycle->end; k++)
            if (schedule->units[k].ends) c->builder->jobs[schedule->units[k].job].minibatch += cycle->times;
        next++;
    }
}

static enum status run_clocks(const struct cost_table *times, struct schedule *schedule, struct error *err)
{
    const uint32_t devices = times->hardware->device_count;
    struct clocks c = {.times = times, .cut = times->partition, .schedule = schedule};
    TRY(schedule_builder_create(times, false, &c.builder, err));
    c.ready_s = alloc_zeroed(c.cut->shard_count + 2u * devices, sizeof *c.ready_s);
    c.left_s = c.ready_s + c.cut->shard_count;
    c.last_s = c.left_s + devices;
    enum status status = STATUS_OK;
    if (!c.ready_s) status = error_memory(err, "the schedule", c.cut->shard_count * sizeof *c.ready_s);
    if (!status) pass_all(&c);
    schedule->repeated_s = c.repeated_s;
    schedule->makespan_s = c.builder->makespan_s + c.repeated_s;
    schedule_builder_destroy(c.builder);
    free(c.ready_s);
    return status;
}

/* Returns true for the passes of an embedding on the host, which use no edge. */
static bool is_on_host(const struct partition *cut, const struct schedule_unit *unit)
{
    const uint32_t first = cut->job_first_shard[unit->job];
    return schedule_unit_shard(partition_job_units(cut, unit->job), unit->position) == 0 && cut->on_cpu[first] &&
           cut->shards[first].layer_count == 1 && cut->shards[first].first_layer == 0;
}

/* Links each unit to the job's next, where its output stays on the device until then. */
static enum status link_units(const struct cost_table *times, struct schedule *out, struct error *err)
{
    const uint32_t jobs = times->jobs->count, devices = times->hardware->device_count;
    uint32_t *next_of = alloc_resize(NULL, (size_t)jobs * sizeof *next_of);
    uint32_t *after = alloc_zeroed((size_t)jobs + devices, sizeof *after); /* edges used after the next unit */
    if (!next_of || !after) {
        free(next_of);
        free(after);
        return error_memory(err, "the schedule", (size_t)jobs * 2 * sizeof *next_of);
    }
    uint32_t *const edges = after + jobs; /* ... and by device */
    for (uint32_t j = 0; j < jobs; j++) next_of[j] = PLAN_NONE;
    for (uint32_t i = out->count; i-- > 0;) {
        struct schedule_unit *unit = &out->units[i];
        const uint32_t next = next_of[unit->job], between = edges[unit->device] - after[unit->job];
        const bool here = next != PLAN_NONE && out->units[next].device == unit->device &&
                          between < times->partition->edge_count;
        unit->next_here = here ? next : PLAN_NONE;
        unit->fetched = next != PLAN_NONE && out->units[next].fetches;
        after[unit->job] = edges[unit->device];
        if (!is_on_host(times->partition, unit)) edges[unit->device]++;
        next_of[unit->job] = i;
    }
    free(next_of);
    free(after);
    return STATUS_OK;
}

/* --- all -------------------------------------------------------------------------------------- */

/* `rounds`: of each base at most so many; 0: all. */
static enum status order_rounds(const struct cost_table *times, uint64_t rounds, struct schedule *out,
                                struct error *err)
{
    struct lockstep l = {.cut = times->partition, .jobs = times->jobs, .out = out, .err = err};
    *out = (struct schedule){0};
    enum status status = add_all(&l, times, rounds);
    if (!status) status = shared_fetch_plan(times->jobs, times->partition, times->hardware->device_count, out, err);
    if (!status) status = run_clocks(times, out, err);
    if (!status && rounds == 0) status = link_units(times, out, err);
    if (status) schedule_release(out);
    return status;
}

enum status shared_order_make(const struct cost_table *times, struct schedule *out, struct error *err)
{
    return order_rounds(times, 0, out, err);
}

enum status shared_order_estimate(const struct cost_table *times, double *seconds, struct error *err)
{
    enum { FEW = 4 }; /* of rounds that are alike the third stands for all others */
    struct schedule schedule;
    uint64_t rounds = 0;
    TRY(order_rounds(times, FEW, &schedule, err));
    for (uint32_t j = 0; j < times->jobs->count; j++) rounds = max_u64(rounds, times->jobs->jobs[j].minibatches);
    *seconds = schedule.makespan_s;
    if (rounds > FEW && schedule.cycle_count > 0) *seconds += schedule.repeated_s * (double)(rounds - FEW);
    schedule_release(&schedule);
    return STATUS_OK;
}
