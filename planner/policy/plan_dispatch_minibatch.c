/*
 * Parallel jobs have no choices. A decision is about a job's next minibatch, whose tasks follow each other at once,
 * each on its own gang. The policy sees a job on its *seat*, the first of its devices, and only when all of them have a
 * slot. With two slots a minibatch fills its pipeline while the one before it, of another job, drains.
 */
#include <math.h>

#include "planner/policy/plan_dispatch_state.h"

bool plan_dispatch_has_slots(const struct plan_dispatch *d, uint32_t job)
{
    for (uint32_t i = d->first_device[job]; i < d->first_device[job + 1]; i++)
        if (d->shown[d->job_devices[i]].slots == 0) return false;
    return true;
}

double plan_dispatch_share_of_task_s(const struct plan_dispatch *d, const struct plan_task *task)
{
    const uint32_t job = d->plan->units[task->unit].job;
    const double devices = d->first_device[job + 1] - d->first_device[job];
    return d->compute_least_s[task->unit] * plan_task_members(d->plan, task) / devices;
}

/* Moves past the next task. Returns false where the minibatch ends: with its last task, and the job's last minibatch
 * with the job's last task. */
static bool advance_in_minibatch(const struct plan_dispatch *d, struct plan_dispatch_chain *chain)
{
    const struct plan_unit *const unit = plan_dispatch_unit_at(d, chain);
    plan_dispatch_advance(d, chain);
    chain->minibatches += unit->ends_minibatch;
    const bool last = chain->minibatches >= d->plan->jobs.jobs[unit->job].minibatches;
    return !plan_dispatch_is_done(chain) && (!unit->ends_minibatch || last);
}

void plan_dispatch_show_minibatch(struct plan_dispatch *d, uint32_t job)
{
    struct plan_dispatch_chain ahead = d->chains[job];
    struct policy_job *const shown = &d->jobs[job];
    double seconds = 0;
    if (plan_dispatch_is_done(&ahead)) {
        shown->remaining = 0;
        return;
    }
    bool more = true;
    while (more) {
        seconds += plan_dispatch_share_of_task_s(d, &d->plan->tasks[d->entries[ahead.first + ahead.at]]);
        more = advance_in_minibatch(d, &ahead);
    }
    for (uint32_t k = 0; k < d->view.kind_count; k++)
        d->minibatch_costs[(size_t)job * d->view.kind_count + k] = (struct policy_cost){.compute = seconds};
    shown->shard = 0;
    shown->memory = 0;
    shown->next = d->minibatch_costs + (size_t)job * d->view.kind_count;
    shown->remaining = fmax(shown->remaining, seconds);
}

bool plan_dispatch_in_minibatch(struct plan_dispatch *d, struct plan_dispatched *out)
{
    const uint32_t job = d->minibatch_of;
    if (job == PLAN_NONE) return false;
    struct plan_dispatch_chain *chain = &d->chains[job];
    const struct plan_task *task = &d->plan->tasks[d->entries[chain->first + chain->at]];
    d->jobs[job].remaining -= plan_dispatch_share_of_task_s(d, task);
    *out = (struct plan_dispatched){task, true, advance_in_minibatch(d, chain)};
    if (out->more) return true;
    d->minibatch_of = PLAN_NONE;
    plan_dispatch_show_minibatch(d, job);
    return true;
}

void plan_dispatch_begin_minibatch(struct plan_dispatch *d, struct policy_choice choice, struct plan_dispatched *out)
{
    struct policy_job *job = &d->jobs[choice.job];
    struct policy_device *device = &d->shown[choice.device];
    d->chains[choice.job].device = choice.device;
    d->chains[choice.job].under_way = true;
    for (uint32_t i = d->first_device[choice.job]; i < d->first_device[choice.job + 1]; i++) {
        d->devices[d->job_devices[i]].running++;
        plan_dispatch_show_device(d, d->job_devices[i]);
    }
    d->running++;
    device->free = fmax(device->free, d->view.now) + job->next[device->kind].compute;
    device->job = choice.job;
    device->shard = 0;
    job->taken = true;
    job->last_device = choice.device;
    job->ready = device->free;
    d->minibatch_of = choice.job;
    (void)plan_dispatch_in_minibatch(d, out);
}
