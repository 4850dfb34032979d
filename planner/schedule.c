/*
 * A list scheduler: policies decide, placing.h keeps the clocks.
 *
 * A decision is made when a device's computation lane becomes free and some job is ready, at the
 * earliest such time over all devices; ties go to the lowest device, unless the chosen job's last
 * device is free too, which spares moving its boundary.
 *
 * Cost: O(jobs + devices) per unit.
 */
#include "planner/schedule.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "planner/placing.h"

struct turn { /* of a device */
    uint32_t cached; /* job chosen ahead; PLAN_NONE: none */
    double not_before_s; /* the policy wanted to wait: nothing to decide earlier; HUGE_VAL: not until
                            another placement changes something */
};

struct scheduler {
    const struct policy *policy;
    struct placing *placing;
    struct turn *turns; /* (device count) */
    struct policy_view view;
    bool resident;
};

static double max_s(double a, double b) { return a > b ? a : b; }

/* The earliest time at which some job that may run on the device is ready; HUGE_VAL: none is. */
static double earliest_ready(const struct scheduler *s, uint32_t device)
{
    double earliest = HUGE_VAL;
    for (uint32_t j = 0; j < s->view.job_count; j++) {
        const struct policy_job *job = &s->view.jobs[j];
        if (job->admitted && !job->reserved && job->remaining_s > 0 && job->ready_s < earliest &&
            (job->next_device == PLAN_NONE || job->next_device == device))
            earliest = job->ready_s;
    }
    return earliest;
}

/* The next time after `now_s` at which a job becomes ready; HUGE_VAL: none will. */
static double next_ready(const struct scheduler *s, double now_s)
{
    double next = HUGE_VAL;
    for (uint32_t j = 0; j < s->view.job_count; j++) {
        const struct policy_job *job = &s->view.jobs[j];
        if (job->admitted && job->remaining_s > 0 && job->ready_s > now_s && job->ready_s < next)
            next = job->ready_s;
    }
    return next;
}

/* The device that can start something first, and when. PLAN_NONE: all wait for nothing. */
static uint32_t next_decision(const struct scheduler *s, double *at)
{
    uint32_t best = PLAN_NONE;
    double any = s->resident ? 0 : earliest_ready(s, 0);
    *at = HUGE_VAL;
    for (uint32_t d = 0; d < s->view.device_count; d++) {
        const struct turn *turn = &s->turns[d];
        double ready;
        if (turn->cached != PLAN_NONE) ready = s->view.jobs[turn->cached].ready_s;
        else ready = s->resident ? earliest_ready(s, d) : any;
        double free_s = s->placing->lanes[d].compute_free_s;
        double when = max_s(max_s(free_s, turn->not_before_s), ready);
        if (when < *at) {
            *at = when;
            best = d;
        }
    }
    return best;
}

/* The chosen job's last device, when it is as free as `device` and holds nothing chosen ahead. */
static uint32_t prefer_last_device(const struct scheduler *s, uint32_t job, uint32_t device)
{
    uint32_t last = s->view.jobs[job].last_device;
    if (s->resident || last == PLAN_NONE || last >= s->view.device_count) return device;
    bool free = s->placing->lanes[last].compute_free_s <= s->view.now_s;
    return s->turns[last].cached == PLAN_NONE && free ? last : device;
}

/* Choose the device's next unit while its current one, of `own`, runs from start_s on. */
static void choose_ahead(struct scheduler *s, uint32_t device, uint32_t own, double start_s)
{
    struct policy_job *jobs = s->placing->view_jobs;
    double ready = jobs[own].ready_s;
    s->view.now_s = start_s;
    jobs[own].ready_s = start_s; /* a candidate: it is done when this device is free */
    s->turns[device].cached = s->policy->choose(&s->view, device);
    s->view.decision++;
    jobs[own].ready_s = ready;
    if (s->turns[device].cached != PLAN_NONE) jobs[s->turns[device].cached].reserved = true;
}

static void run(struct scheduler *s, struct schedule *out)
{
    for (uint32_t left = out->count; left > 0;) {
        uint32_t device = next_decision(s, &s->view.now_s);
        assert(device != PLAN_NONE && s->view.now_s < HUGE_VAL);
        struct turn *turn = &s->turns[device];
        uint32_t job = turn->cached;
        if (job != PLAN_NONE) {
            turn->cached = PLAN_NONE;
            s->placing->view_jobs[job].reserved = false;
        } else {
            job = s->policy->choose(&s->view, device);
            s->view.decision++;
            if (job == PLAN_NONE) { /* the policy waits for something else to happen */
                turn->not_before_s = next_ready(s, s->view.now_s);
                continue;
            }
            device = prefer_last_device(s, job, device);
        }
        double start = placing_put(s->placing, job, device, &out->units[out->count - left--]);
        for (uint32_t d = 0; d < s->view.device_count; d++) s->turns[d].not_before_s = 0;
        if (s->policy->commit_ahead && left > 0) choose_ahead(s, device, job, start);
    }
}

/* --- public ---------------------------------------------------------------------------------- */

enum status schedule_init(struct schedule *schedule, const struct unit_times *times,
                          struct error *err)
{
    uint64_t count = 0;
    *schedule = (struct schedule){0};
    for (uint32_t j = 0; j < times->jobs->count; j++) {
        count += unit_times_count(times, j);
        if (count > PLAN_INSTANCES_MAX)
            return error_set(err, STATUS_LIMIT, "more than %llu units in the schedule",
                             (unsigned long long)PLAN_INSTANCES_MAX);
    }
    schedule->units = calloc(count + 1, sizeof *schedule->units);
    if (!schedule->units) return error_memory(err, "the schedule", count * sizeof *schedule->units);
    schedule->count = (uint32_t)count;
    return STATUS_OK;
}

enum status schedule_link(struct schedule *schedule, uint32_t jobs, uint32_t devices,
                          struct error *err)
{
    uint32_t *of_job = malloc(((size_t)jobs + devices) * sizeof *of_job);
    if (!of_job) return error_memory(err, "the schedule", ((size_t)jobs + devices) * sizeof *of_job);
    uint32_t *on_device = of_job + jobs;
    for (uint32_t i = 0; i < jobs + devices; i++) of_job[i] = PLAN_NONE;
    for (uint32_t i = schedule->count; i-- > 0;) {
        struct scheduled_unit *unit = &schedule->units[i];
        uint32_t next = of_job[unit->job];
        unit->next_here = next == on_device[unit->device] ? next : PLAN_NONE;
        of_job[unit->job] = on_device[unit->device] = i;
    }
    free(of_job);
    return STATUS_OK;
}

enum status schedule_make(const struct unit_times *times, const struct policy *policy,
                          uint64_t seed, struct schedule *out, struct error *err)
{
    struct scheduler s = {.policy = policy, .resident = times->partition->resident};
    enum status status = schedule_init(out, times, err);
    if (!status) status = placing_create(times, policy->one_device, &s.placing, err);
    if (status) goto out;
    uint32_t devices = s.placing->device_count;
    s.turns = calloc(devices, sizeof *s.turns);
    if (!s.turns) {
        status = error_memory(err, "the schedule", devices * sizeof *s.turns);
        goto out;
    }
    for (uint32_t d = 0; d < devices; d++) s.turns[d].cached = PLAN_NONE;
    s.view = (struct policy_view){.jobs = s.placing->view_jobs,
                                  .job_count = times->jobs->count,
                                  .device_count = devices,
                                  .seed = seed};
    run(&s, out);
    out->makespan_s = s.placing->makespan_s;
    status = schedule_link(out, times->jobs->count, devices, err);
out:
    free(s.turns);
    placing_destroy(s.placing);
    if (status) schedule_release(out);
    return status;
}

void schedule_release(struct schedule *schedule)
{
    free(schedule->units);
    *schedule = (struct schedule){0};
}
