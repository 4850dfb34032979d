/*
 * Events are ends of tasks and, for policies that commit ahead, starts. At each event, devices are asked in order until
 * no device can do anything; then the clock advances to the next event. So every decision uses only the knowledge of
 * its time, and the number of decisions is bounded: each places a task, or waits for the next event.
 *
 * A view shows estimates: a running task is shown to end at its estimated end, or now if that is past.
 */
#include "planner/policy/trial/policy_run.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/try.h"
#include "planner/policy/policies.h"

struct policy_run_clock {
    int64_t free;      /* its last task has computed */
    int64_t starts;    /* of its last task: when to ask ahead; INT64_MAX: it was asked */
    uint32_t chosen;   /* ahead; TIMETABLE_NONE: nothing */
    int64_t chosen_at; /* when */
    bool waits;        /* it was asked and nothing has happened since */
};

struct driver {
    const struct instance *in, *actual;
    const struct policy_run_options *options;
    const struct policy *policy;
    struct policy_session session, other; /* the second for one decision; without a policy there is none */
    struct policy_view view;
    struct policy_job *jobs;
    struct policy_device *devices;
    struct policy_cost *costs; /* (unit_count, class_count) */
    struct policy_run_clock *clocks;
    int64_t *estimate;         /* (job_count): when its running task was estimated to end */
    struct dispatch *dispatch; /* of `actual` */
    struct policy_run *out;
    int64_t now;
    uint32_t device_count;     /* that are used */
};

/* --- the view -------------------------------------------------------------------------------- */

static bool is_done(const struct driver *d, uint32_t job)
{
    return d->dispatch->jobs[job].next == instance_length(&d->in->jobs[job]);
}

static void show_unit(struct driver *d, uint32_t job)
{
    uint32_t unit = d->dispatch->jobs[job].unit;
    d->jobs[job].shard = d->in->units[unit].shard;
    d->jobs[job].memory = d->in->units[unit].memory;
    d->jobs[job].next = d->costs + (size_t)unit * d->in->class_count;
}

static void show_all(struct driver *d)
{
    const struct instance *in = d->in;
    for (uint32_t u = 0; u < in->unit_count; u++)
        for (uint32_t c = 0; c < in->class_count; c++)
            d->costs[(size_t)u * in->class_count + c] =
                (struct policy_cost){(double)instance_compute(in, u, c), (double)in->units[u].in,
                                     (double)in->units[u].out};
    for (uint32_t j = 0; j < in->job_count; j++) {
        const struct instance_job *job = &in->jobs[j];
        double once = 0;
        for (uint32_t u = 0; u < job->unit_count; u++)
            once += (double)instance_compute_min(in, job->first_unit + u);
        d->jobs[j] = (struct policy_job){
            .remaining = once * job->repeat,
            .deadline = job->deadline < INSTANCE_HORIZON_MAX ? (double)job->deadline : HUGE_VAL,
            .weight = job->weight,
            .last_device = POLICY_NONE,
            .next_device = POLICY_NONE,
            .admitted = true};
        show_unit(d, j);
    }
    for (uint32_t g = 0; g < d->device_count; g++) {
        d->devices[g] = (struct policy_device){.memory = in->classes[in->device_class[g]].memory,
                                               .kind = in->device_class[g],
                                               .job = POLICY_NONE,
                                               .shard = POLICY_NONE,
                                               .slots = 1,
                                               .asks = true};
        d->clocks[g] = (struct policy_run_clock){.starts = INT64_MAX, .chosen = TIMETABLE_NONE};
    }
    d->view = (struct policy_view){.jobs = d->jobs,
                                   .devices = d->devices,
                                   .job_count = in->job_count,
                                   .device_count = d->device_count,
                                   .kind_count = in->class_count,
                                   .seed = d->options->seed};
}

/* Updates the parts of the view that depend on the time. */
static void refresh(struct driver *d)
{
    d->view.now = (double)d->now;
    for (uint32_t j = 0; j < d->in->job_count; j++) {
        const struct dispatch_job *job = &d->dispatch->jobs[j];
        bool runs = job->ended > d->now;
        int64_t ready = !runs ? job->ended : d->estimate[j] > d->now ? d->estimate[j] : d->now;
        d->jobs[j].ready = (double)ready;
        d->jobs[j].taken = runs;
    }
    for (uint32_t g = 0; g < d->device_count; g++) {
        struct policy_run_clock *clock = &d->clocks[g];
        bool runs = clock->free > d->now;
        d->devices[g].free = runs ? d->jobs[d->devices[g].job].ready : (double)clock->free;
        d->devices[g].asks = !runs && clock->chosen == TIMETABLE_NONE;
        if (clock->chosen != TIMETABLE_NONE) d->jobs[clock->chosen].taken = true;
    }
}

/* --- what happens ---------------------------------------------------------------------------- */

/* Gives the job's next task to the device, as decided at `decided`. */
static void put(struct driver *d, uint32_t job, uint32_t device, int64_t decided)
{
    const struct instance *in = d->in;
    uint32_t unit = d->dispatch->jobs[job].unit, made = d->out->task_count++;
    const struct dispatch_device *last = &d->dispatch->devices[device];
    int64_t start = dispatch_start(d->dispatch, job, device);
    bool there = last->job != TIMETABLE_NONE &&
                 instance_resident(&in->units[last->unit], &in->units[unit]);
    int64_t copied = decided + (there ? 0 : d->actual->units[unit].in);
    if (d->options->live && copied > start) start = copied;
    dispatch_put_at(d->dispatch, job, device, start);
    d->out->steps[made] = (struct dispatch_step){job, device};
    d->out->starts[made] = start;
    d->estimate[job] = start + instance_compute(in, unit, in->device_class[device]);
    d->jobs[job].last_device = device;
    d->jobs[job].remaining -= (double)instance_compute_min(in, unit);
    if (is_done(d, job)) d->jobs[job].remaining = 0;
    else show_unit(d, job);
    d->devices[device].job = job;
    d->devices[device].shard = in->units[unit].shard;
    d->clocks[device].free = d->dispatch->jobs[job].ended;
    d->clocks[device].starts = d->policy->commit_ahead ? start : INT64_MAX;
    d->clocks[device].chosen = TIMETABLE_NONE;
    for (uint32_t g = 0; g < d->device_count; g++) d->clocks[g].waits = false;
}

/* Asks the policy or the rule that decides this time. */
static enum status consult(struct driver *d, struct policy_choice *choice, bool *waits, struct error *err)
{
    bool told = d->options->decision == d->session.decisions + 1;
    struct policy_session *asked = told && d->other.policy ? &d->other : &d->session;
    asked->decisions = d->session.decisions;
    enum status status = policy_session_ask(asked, &d->view, choice, waits, err);
    d->session.decisions = asked->decisions;
    d->session.broken = asked->broken;
    if (told && !status)
        d->out->decided = (struct policy_decided){.made = 1, .waits = *waits, .at = d->now, .choice = *choice};
    return status;
}

/* Asks for the task after the one that starts now on the device. The device's own job is a candidate, as if it had
 * ended. */
static enum status ask_ahead(struct driver *d, uint32_t device, struct error *err)
{
    uint32_t own = d->devices[device].job;
    struct policy_choice choice = {POLICY_NONE, POLICY_NONE};
    bool waits;
    d->clocks[device].starts = INT64_MAX;
    refresh(d);
    for (uint32_t g = 0; g < d->device_count; g++) d->devices[g].asks = g == device;
    d->jobs[own].taken = false;
    d->jobs[own].ready = (double)d->now;
    d->view.device = device;
    d->view.ahead = true;
    enum status status = consult(d, &choice, &waits, err);
    d->view.ahead = false;
    if (status || waits) return status;
    d->clocks[device].chosen = choice.job;
    d->clocks[device].chosen_at = d->now;
    return STATUS_OK;
}

static enum status ask(struct driver *d, uint32_t device, struct error *err)
{
    struct policy_choice choice = {POLICY_NONE, POLICY_NONE};
    bool waits;
    d->view.device = device;
    TRY(consult(d, &choice, &waits, err));
    if (!waits) {
        put(d, choice.job, choice.device, d->now);
        return STATUS_OK;
    }
    for (uint32_t g = 0; g < d->device_count; g++)
        if (d->devices[g].asks) d->clocks[g].waits = true;
    return STATUS_OK;
}

/* Returns true if some job may run on the device; the view is fresh. */
static bool has_candidate(const struct driver *d, uint32_t device)
{
    for (uint32_t j = 0; j < d->in->job_count; j++)
        if (policy_may_run(&d->view, j, device)) return true;
    return false;
}

/* Lets the first device that can act do so. *acted: one did. */
static enum status act(struct driver *d, bool *acted, struct error *err)
{
    *acted = true;
    for (uint32_t g = 0; g < d->device_count; g++) {
        const struct policy_run_clock *clock = &d->clocks[g];
        uint32_t job = clock->chosen;
        if (clock->starts <= d->now) return ask_ahead(d, g, err);
        if (job == TIMETABLE_NONE || clock->free > d->now || d->dispatch->jobs[job].ended > d->now)
            continue;
        put(d, job, g, clock->chosen_at);
        return STATUS_OK;
    }
    refresh(d);
    for (uint32_t g = 0; g < d->device_count; g++)
        if (d->devices[g].asks && !d->clocks[g].waits && has_candidate(d, g)) return ask(d, g, err);
    *acted = false;
    return STATUS_OK;
}

/* Returns INT64_MAX if nothing runs. */
static int64_t next_event(const struct driver *d)
{
    int64_t next = INT64_MAX;
    for (uint32_t g = 0; g < d->device_count; g++) {
        const struct policy_run_clock *clock = &d->clocks[g];
        if (clock->free > d->now && clock->free < next) next = clock->free;
        if (clock->starts > d->now && clock->starts < next) next = clock->starts;
    }
    return next;
}

static enum status drive(struct driver *d, struct error *err)
{
    TRY(policy_session_begin(&d->session, d->policy, &d->view, err));
    if (d->options->other) TRY(policy_session_begin(&d->other, d->options->other, &d->view, err));
    while (d->out->task_count < d->in->task_count) {
        bool acted;
        TRY(act(d, &acted, err));
        if (acted) continue;
        int64_t next = next_event(d);
        if (next == INT64_MAX) return policy_session_stuck(&d->session, &d->view, err);
        d->now = next;
        for (uint32_t g = 0; g < d->device_count; g++) d->clocks[g].waits = false;
    }
    d->out->value = dispatch_value(d->dispatch);
    return STATUS_OK;
}

/* --- public ---------------------------------------------------------------------------------- */

static enum status check_policy(const struct policy *policy, const struct instance *in,
                                struct error *err)
{
    if (policy_is_searched(policy))
        return error_set(err, STATUS_INFEASIBLE, "policy '%s' is a search and cannot decide live",
                         policy->name);
    if (policy->resident)
        return error_set(err, STATUS_INFEASIBLE,
                         "policy '%s' keeps states on devices, which instances know nothing of",
                         policy->name);
    for (uint32_t u = 0; policy->one_device && u < in->unit_count; u++)
        if (!instance_fits(in, u, in->device_class[0]))
            return error_set(err, STATUS_INFEASIBLE,
                             "policy '%s' uses only device 0, which has no room for job '%.80s'",
                             policy->name, in->jobs[in->units[u].job].name);
    return STATUS_OK;
}

enum status policy_run(const struct policy *policy, const struct instance *in,
                       const struct policy_run_options *options, struct policy_run *out,
                       struct error *err)
{
    struct driver d = {.in = in,
                       .actual = options->live && options->actual ? options->actual : in,
                       .options = options,
                       .policy = policy,
                       .session.timed = options->timed,
                       .out = out,
                       .device_count = policy->one_device ? 1 : in->device_count};
    assert(d.actual->task_count == in->task_count && d.actual->unit_count == in->unit_count);
    if (check_policy(policy, in, err) || (options->other && check_policy(options->other, in, err))) return err->status;
    out->steps = alloc_zeroed(in->task_count, sizeof *out->steps);
    out->starts = alloc_zeroed(in->task_count, sizeof *out->starts);
    d.jobs = alloc_zeroed(in->job_count, sizeof *d.jobs);
    d.devices = alloc_zeroed(d.device_count, sizeof *d.devices);
    d.costs = alloc_zeroed((size_t)in->unit_count * in->class_count, sizeof *d.costs);
    d.clocks = alloc_zeroed(d.device_count, sizeof *d.clocks);
    d.estimate = alloc_zeroed(in->job_count, sizeof *d.estimate);
    if (!out->steps || !out->starts || !d.jobs || !d.devices || !d.costs || !d.clocks || !d.estimate) {
        error_memory(err, "a schedule", in->task_count * sizeof *out->steps);
    } else if (!dispatch_create(d.actual, &d.dispatch, err)) {
        show_all(&d);
        if (drive(&d, err)) out->broken = d.session.broken;
        policy_session_end(&d.session);
        if (options->other) policy_session_end(&d.other);
        out->decisions = d.session.decisions;
        out->seconds = d.session.seconds;
    }
    dispatch_destroy(d.dispatch);
    free(d.jobs);
    free(d.devices);
    free(d.costs);
    free(d.clocks);
    free(d.estimate);
    return err->status;
}

void policy_run_release(struct policy_run *run)
{
    free(run->steps);
    free(run->starts);
    *run = (struct policy_run){0};
}
