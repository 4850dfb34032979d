/*
 * A round is a minibatch on each device. The first and the last round are written by themselves, since their units are
 * the first or the last of their job; the one between them repeats. A minibatch takes as long as the busiest of a
 * device's streams.
 */
#include "planner/spill/order/outputs_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/try.h"

struct job_set outputs_takers(const struct job_set *jobs)
{
    struct job_set takers = *jobs;
    while (takers.count > 0 && job_makes_outputs(&jobs->jobs[takers.count - 1])) takers.count--;
    return takers;
}

struct rounds {
    const struct cost_table *times;
    struct schedule *out;
    uint32_t job, devices;
    struct error *err;
};

/* Adds the units of a minibatch, on one device. */
static enum status add_minibatch(struct rounds *r, uint64_t minibatch, uint32_t device)
{
    const struct partition_units units = partition_job_units(r->times->partition, r->job);
    const uint32_t count = schedule_unit_count(units);
    struct schedule *out = r->out;
    for (uint32_t i = 0; i < count; i++) {
        TRY(array_reserve(&out->units, &out->capacity, out->count, sizeof *out->units, PLAN_TASKS_MAX,
                          "units in the schedule", r->err));
        out->units[out->count] = (struct schedule_unit){
            .job = r->job, .position = i, .device = device,
            .next_here = i + 1 < count ? out->count + 1 : PLAN_NONE,
            .first = minibatch == 0 && i == 0,
            .last = minibatch + 1 == r->times->jobs->jobs[r->job].minibatches && i + 1 == count,
            .ends = i + 1 == count};
        out->count++;
    }
    return STATUS_OK;
}

/* Adds minibatches [first, end), the first of which is a round's first. */
static enum status add_round(struct rounds *r, uint64_t first, uint64_t end)
{
    for (uint64_t m = first; m < end; m++) TRY(add_minibatch(r, m, (uint32_t)(m - first)));
    return STATUS_OK;
}

static enum status repeat(struct rounds *r, uint32_t first, uint64_t times)
{
    struct schedule *out = r->out;
    if (times == 0) return STATUS_OK;
    TRY(array_reserve(&out->cycles, &out->cycle_capacity, out->cycle_count, sizeof *out->cycles, PLAN_SEGMENTS_MAX,
                      "cycles in the schedule", r->err));
    out->cycles[out->cycle_count++] = (struct schedule_loop){first, out->count, times};
    return STATUS_OK;
}

static enum status add_job(struct rounds *r)
{
    const uint64_t all = r->times->jobs->jobs[r->job].minibatches, rounds = (all + r->devices - 1) / r->devices;
    TRY(add_round(r, 0, min_u64(all, r->devices)));
    if (rounds > 2) {
        const uint32_t first = r->out->count;
        TRY(add_round(r, r->devices, 2 * (uint64_t)r->devices));
        TRY(repeat(r, first, rounds - 3));
    }
    return rounds > 1 ? add_round(r, (rounds - 1) * r->devices, all) : STATUS_OK;
}

/* Returns the seconds of all minibatches of a job. */
static double job_s(const struct rounds *r)
{
    const struct partition_units units = partition_job_units(r->times->partition, r->job);
    const uint64_t all = r->times->jobs->jobs[r->job].minibatches;
    double in_s = 0, compute_s = 0, out_s = 0;
    for (uint32_t i = 0; i < schedule_unit_count(units); i++) {
        const struct cost_unit *unit = cost_table_at(r->times, 0, r->job, i);
        in_s += unit->in_s;
        compute_s += unit->compute_s + unit->cpu_s;
        out_s += unit->edge_out_s;
    }
    return (double)((all + r->devices - 1) / r->devices) * max_s(in_s, max_s(compute_s, out_s));
}

/* Appends a schedule, whose numbers of units follow those here. Both have no bases. */
static enum status append(struct schedule *to, const struct schedule *from, struct error *err)
{
    const uint32_t before = to->count;
    for (uint32_t i = 0; i < from->count; i++) {
        TRY(array_reserve(&to->units, &to->capacity, to->count, sizeof *to->units, PLAN_TASKS_MAX,
                          "units in the schedule", err));
        to->units[to->count] = from->units[i];
        if (from->units[i].next_here != PLAN_NONE) to->units[to->count].next_here += before;
        to->count++;
    }
    for (uint32_t i = 0; i < from->cycle_count; i++) {
        TRY(array_reserve(&to->cycles, &to->cycle_capacity, to->cycle_count, sizeof *to->cycles, PLAN_SEGMENTS_MAX,
                          "cycles in the schedule", err));
        to->cycles[to->cycle_count++] = (struct schedule_loop){from->cycles[i].first + before,
                                                               from->cycles[i].end + before, from->cycles[i].times};
    }
    for (uint32_t i = 0; i <= from->joint_count; i++) {
        TRY(array_reserve(&to->joints, &to->joint_capacity, to->joint_count, sizeof *to->joints, PLAN_SEGMENTS_MAX,
                          "joints in the schedule", err));
        to->joints[to->joint_count++] = before + (i > 0 ? from->joints[i - 1] : 0);
    }
    return STATUS_OK;
}

enum status outputs_order_first(const struct cost_table *times, uint32_t devices, struct schedule *schedule,
                                struct error *err)
{
    struct schedule whole = {0};
    struct rounds r = {.times = times, .out = &whole, .devices = devices, .err = err};
    enum status status = STATUS_OK;
    double seconds = 0;
    for (r.job = outputs_takers(times->jobs).count; r.job < times->jobs->count && !status; r.job++) {
        status = add_job(&r);
        seconds += job_s(&r);
    }
    if (!status) status = append(&whole, schedule, err);
    if (status) {
        schedule_release(&whole);
        return status;
    }
    whole.makespan_s = schedule->makespan_s + seconds;
    whole.repeated_s = schedule->repeated_s;
    schedule_release(schedule);
    *schedule = whole;
    return STATUS_OK;
}
