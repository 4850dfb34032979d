/*
 * A live run keeps each job's tasks in order; times and devices are open. A job's *chain* is a cursor over its
 * tasks in the plan's segments:
 *
 *     segments   [ a0 b0 a1 b1 ] x 3   [ b2 a2 ] x 1
 *     chain a      a0 a1 a0 a1 a0 a1 a2                  at: which entry of (a0, a1, a2), which repetition
 *
 * so memory does not grow with repetitions.
 *
 * Slots overlap if weight buffers do. With two weight buffers, a unit may take either, and takes the one without the
 * device's last unit, so that its copies in run during that unit's computation. Earlier units are compared one by one,
 * and the first difference decides:
 *
 *     took last   weight buffer 1, before that 0, of three
 *     choices     0: overlaps (nothing, 8 MiB)   1: (8 MiB, ...)   2: (nothing, nothing) *
 *
 * Parallel jobs have no choices. A decision is about a job's next minibatch, whose tasks follow each other at once,
 * each on its own gang. The policy sees a job on its *seat*, the first of its devices, and only when all of them have a
 * slot. With two slots a minibatch fills its pipeline while the one before it, of another job, drains.
 */
#include "planner/policy/plan_dispatch.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "models/cost/cost.h"

enum { HISTORY = 8 }; /* units of a device to look back at: the most weight buffers that it may have */
enum { MINIBATCH_SLOTS = 2 };

/* A policy takes a job without computation left for one that is done. */
static const double COMPUTE_LEAST_S = 1e-9;

struct plan_dispatch_chain {
    uint32_t first, count; /* its entries of `entries` */
    uint32_t at;           /* from `first`; count: it is done */
    uint32_t segment, segment_at, repeat; /* that entry's segment, the first entry in it, its repetition */
    uint64_t minibatches;  /* dispatched, of a parallel job */
    uint32_t device;       /* of the unit that runs */
    bool holds_slot;
    bool under_way;        /* it has its range of host memory */
    bool closes;           /* it was dropped: only its CLOSEs are left */
};

struct plan_dispatch_device {
    const struct plan_task *history[HISTORY]; /* newest first; NULL: none */
    uint32_t slots, running; /* units that hold one */
    uint64_t slot_bytes;
};

struct plan_dispatch {
    const struct plan *plan;
    struct policy_session session;
    struct policy_view view;
    bool asks; /* the policy */
    uint32_t device_count;          /* that it may use */
    uint32_t running;
    uint32_t following;                 /* job whose unit was decided last; PLAN_NONE: nothing follows it */
    struct policy_choice opening;       /* decided, dispatched after the OPENs of its job; job PLAN_NONE: none */
    struct plan_dispatch_chain *chains; /* (job count) */
    uint32_t *entries;                  /* tasks of jobs, job by job, in plan order */
    struct plan_dispatch_device *devices;
    uint32_t *first_choice;         /* (unit count * device count + 1), into `choices` */
    uint32_t *choices;              /* tasks, by unit and device */
    uint32_t *first_acquire;        /* (unit count + 1), into `staged` */
    bool *staged;                   /* per ACQUIRE of a unit: of a staged buffer */
    double *compute_least_s;        /* (unit count), over all types */
    struct policy_cost *costs;      /* (unit count, type count) */
    struct policy_job *jobs;        /* shown */
    struct policy_device *shown;    /* (device count) */
    uint32_t *homes;                /* (job count): the node where the plan has it, and where it stays; or its seat */
    uint32_t *groups, group_count;  /* of devices that are shown together: nodes, or seats */
    bool by_minibatch;              /* parallel jobs */
    uint32_t minibatch_of;          /* job whose minibatch is being dispatched; PLAN_NONE: none */
    uint32_t *first_device;         /* parallel jobs: (job count + 1), into ... */
    uint32_t *job_devices;          /* ... the devices of each */
    struct policy_cost *minibatch_costs; /* parallel jobs: (job count, type count) of the next minibatch */
};

/* --- chains ---------------------------------------------------------------------------------- */

static bool is_done(const struct plan_dispatch_chain *chain) { return chain->at == chain->count; }

static const struct plan_unit *unit_at(const struct plan_dispatch *d, const struct plan_dispatch_chain *chain)
{
    return &d->plan->units[d->plan->tasks[d->entries[chain->first + chain->at]].unit];
}

static uint32_t segment_end(const struct plan *plan, uint32_t segment)
{
    return plan->segments[segment].first_task + plan->segments[segment].task_count;
}

/* Moves to the segment of the current entry. */
static void enter_segment(const struct plan_dispatch *d, struct plan_dispatch_chain *chain)
{
    if (is_done(chain)) return;
    while (d->entries[chain->first + chain->at] >= segment_end(d->plan, chain->segment)) chain->segment++;
    chain->segment_at = chain->at;
    chain->repeat = 0;
}

static void advance(const struct plan_dispatch *d, struct plan_dispatch_chain *chain)
{
    const struct plan *plan = d->plan;
    chain->at++;
    if (!is_done(chain) && d->entries[chain->first + chain->at] < segment_end(plan, chain->segment)) return;
    if (++chain->repeat < plan->segments[chain->segment].repeat_count) chain->at = chain->segment_at;
    else enter_segment(d, chain);
}

/* Returns true when the unit follows the previous unit without a decision. */
static bool follows(const struct plan_unit *unit)
{
    return unit->pass == PLAN_UPDATE || unit->pass == PLAN_KEEP || unit->pass == PLAN_CLOSE;
}

/* Returns the next unit to decide about: for a job that has not begun, the unit after its OPENs. */
static const struct plan_unit *unit_to_decide(const struct plan_dispatch *d, const struct plan_dispatch_chain *chain)
{
    const struct plan_unit *unit = unit_at(d, chain);
    for (uint32_t at = chain->at; unit->pass == PLAN_OPEN; at++)
        unit = &d->plan->units[d->plan->tasks[d->entries[chain->first + at]].unit];
    return unit;
}

static bool runs_on_device(const struct plan *plan, const struct plan_unit *unit)
{
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
        if (!plan_stream_is_host(plan->ops[o].stream)) return true;
    return false;
}

/* --- places ---------------------------------------------------------------------------------- */

/* Returns the bytes that two tasks on one device share, of its arena or of the arena of staged buffers. */
static uint64_t overlap_bytes(const struct plan_dispatch *d, const struct plan_task *a,
                              const struct plan_task *b)
{
    const struct plan *plan = d->plan;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plan->units[a->unit].acquire_count; i++)
        for (uint32_t k = 0; k < plan->units[b->unit].acquire_count; k++) {
            if (d->staged[d->first_acquire[a->unit] + i] != d->staged[d->first_acquire[b->unit] + k]) continue;
            const struct plan_slot *x = &plan->slots[plan->layouts[a->layout + i]];
            const struct plan_slot *y = &plan->slots[plan->layouts[b->layout + k]];
            uint64_t first = x->offset_bytes > y->offset_bytes ? x->offset_bytes : y->offset_bytes;
            uint64_t x_end = x->offset_bytes + x->bytes, y_end = y->offset_bytes + y->bytes;
            uint64_t end = x_end < y_end ? x_end : y_end;
            if (first < end) bytes += end - first;
        }
    return bytes;
}

static const struct plan_task *choose_place(struct plan_dispatch *d, uint32_t unit, uint32_t device)
{
    const struct plan *plan = d->plan;
    struct plan_dispatch_device *on = &d->devices[device];
    size_t row = (size_t)unit * plan->hardware.device_count + device;
    const uint32_t *choices = d->choices + d->first_choice[row];
    uint32_t count = d->first_choice[row + 1] - d->first_choice[row];
    const struct plan_task *best = &plan->tasks[choices[0]];
    assert(count > 0);
    uint64_t least[HISTORY];
    for (uint32_t h = 0; count > 1 && h < HISTORY; h++)
        least[h] = on->history[h] ? overlap_bytes(d, best, on->history[h]) : 0;
    for (uint32_t c = 1; c < count; c++) {
        const struct plan_task *other = &plan->tasks[choices[c]];
        uint64_t bytes[HISTORY];
        uint32_t differs = HISTORY;
        for (uint32_t h = 0; h < HISTORY; h++) {
            bytes[h] = on->history[h] ? overlap_bytes(d, other, on->history[h]) : 0;
            if (differs == HISTORY && bytes[h] != least[h]) differs = h;
        }
        if (differs == HISTORY || bytes[differs] > least[differs]) continue;
        best = other;
        memcpy(least, bytes, sizeof least);
    }
    if (plan->units[unit].acquire_count > 0) {
        memmove(on->history + 1, on->history, (HISTORY - 1) * sizeof *on->history);
        on->history[0] = best;
    }
    return best;
}

/* --- what the policy sees -------------------------------------------------------------------- */

static void show_device(struct plan_dispatch *d, uint32_t device)
{
    const struct plan_dispatch_device *on = &d->devices[device];
    struct policy_device *shown = &d->shown[device];
    shown->slots = device >= d->device_count ? 0 : on->slots - on->running;
    shown->memory = shown->slots * on->slot_bytes;
    shown->asks = shown->slots > 0;
}

static bool ranges_overlap(const struct plan_host_range *a, const struct plan_host_range *b)
{
    return a->offset_bytes < b->offset_bytes + b->bytes && b->offset_bytes < a->offset_bytes + a->bytes;
}

/* Returns true if the job is in host memory, or its range there is free. */
static bool has_room(const struct plan_dispatch *d, uint32_t job)
{
    if (!plan_has_range(d->plan, job) || d->chains[job].under_way) return true;
    for (uint32_t j = 0; j < d->view.job_count; j++)
        if (d->chains[j].under_way && d->homes[j] == d->homes[job] &&
            ranges_overlap(&d->plan->host_ranges[j], &d->plan->host_ranges[job]))
            return false;
    return true;
}

/* Updates the view after a job came to host memory or left it. */
static void show_room(struct plan_dispatch *d)
{
    for (uint32_t j = 0; d->plan->host_ranges && j < d->view.job_count; j++) d->jobs[j].admitted = has_room(d, j);
}

/* Returns true if all devices of a parallel job have a slot. */
static bool has_slots(const struct plan_dispatch *d, uint32_t job)
{
    for (uint32_t i = d->first_device[job]; i < d->first_device[job + 1]; i++)
        if (d->shown[d->job_devices[i]].slots == 0) return false;
    return true;
}

/* With several nodes: shows only the node's devices and jobs. Of parallel jobs only the seat and those that have it. */
static void show_group(struct plan_dispatch *d, uint32_t group)
{
    const struct hardware *hardware = &d->plan->hardware;
    if (d->group_count == 1 && !d->by_minibatch) return;
    for (uint32_t i = 0; i < hardware->device_count; i++)
        d->shown[i].asks = d->shown[i].slots > 0 && (d->by_minibatch ? i : hardware->devices[i].host) == group;
    for (uint32_t j = 0; j < d->view.job_count; j++)
        d->jobs[j].admitted = d->homes[j] == group && (d->by_minibatch ? has_slots(d, j) : has_room(d, j));
}

/* --- minibatches ----------------------------------------------------------------------------- */

/* Returns the seconds that a task keeps a parallel job's devices busy, if they share it equally. */
static double share_of_task_s(const struct plan_dispatch *d, const struct plan_task *task)
{
    const uint32_t job = d->plan->units[task->unit].job;
    const double devices = d->first_device[job + 1] - d->first_device[job];
    return d->compute_least_s[task->unit] * plan_task_members(d->plan, task) / devices;
}

/* Moves past the next task. Returns false where the minibatch ends: with its last task, and the job's last minibatch
 * with the job's last task. */
static bool advance_in_minibatch(const struct plan_dispatch *d, struct plan_dispatch_chain *chain)
{
    const struct plan_unit *const unit = unit_at(d, chain);
    advance(d, chain);
    chain->minibatches += unit->ends_minibatch;
    const bool last = chain->minibatches >= d->plan->jobs.jobs[unit->job].minibatches;
    return !is_done(chain) && (!unit->ends_minibatch || last);
}

static void show_minibatch(struct plan_dispatch *d, uint32_t job)
{
    struct plan_dispatch_chain ahead = d->chains[job];
    struct policy_job *const shown = &d->jobs[job];
    double seconds = 0;
    bool more = true;
    while (more) {
        seconds += share_of_task_s(d, &d->plan->tasks[d->entries[ahead.first + ahead.at]]);
        more = advance_in_minibatch(d, &ahead);
    }
    for (uint32_t k = 0; k < d->view.kind_count; k++)
        d->minibatch_costs[(size_t)job * d->view.kind_count + k] = (struct policy_cost){.compute = seconds};
    shown->shard = 0;
    shown->memory = 0;
    shown->next = d->minibatch_costs + (size_t)job * d->view.kind_count;
    shown->remaining = fmax(shown->remaining, seconds);
}

/* Shows the job's current unit; none if it is done. */
static void show_unit(struct plan_dispatch *d, uint32_t job)
{
    struct plan_dispatch_chain *chain = &d->chains[job];
    struct policy_job *shown = &d->jobs[job];
    if (is_done(chain)) {
        shown->remaining = 0;
        return;
    }
    if (d->by_minibatch) {
        show_minibatch(d, job);
        return;
    }
    const struct plan_unit *unit = unit_to_decide(d, chain);
    uint32_t index = (uint32_t)(unit - d->plan->units);
    shown->shard = unit->shard;
    shown->memory = runs_on_device(d->plan, unit) ? d->devices[0].slot_bytes : 0;
    shown->next = d->costs + (size_t)index * d->view.kind_count;
    shown->remaining = fmax(shown->remaining, d->compute_least_s[index]);
}

/* --- deciding -------------------------------------------------------------------------------- */

/* Returns true if some job is ready and some device could take it. Fills in view.device. */
static bool can_decide(struct plan_dispatch *d)
{
    bool ready = false;
    d->view.device = POLICY_NONE;
    for (uint32_t i = d->device_count; i-- > 0;)
        if (d->shown[i].asks) d->view.device = i;
    for (uint32_t j = 0; j < d->view.job_count && !ready; j++) ready = policy_is_ready(&d->view, j);
    return ready && d->view.device != POLICY_NONE;
}

static struct policy_choice lowest(const struct plan_dispatch *d)
{
    struct policy_choice choice = {0, d->view.device};
    while (!policy_is_ready(&d->view, choice.job)) choice.job++;
    return choice;
}

static void dispatch_choice(struct plan_dispatch *d, struct policy_choice choice, struct plan_dispatched *out)
{
    struct plan_dispatch_chain *chain = &d->chains[choice.job];
    struct plan_dispatch_device *on = &d->devices[choice.device];
    struct policy_job *job = &d->jobs[choice.job];
    struct policy_device *device = &d->shown[choice.device];
    const struct plan_unit *unit = unit_at(d, chain);
    uint32_t index = (uint32_t)(unit - d->plan->units);
    const struct policy_cost *cost = &job->next[device->kind];
    chain->device = choice.device;
    chain->holds_slot = runs_on_device(d->plan, unit);
    on->running += chain->holds_slot;
    d->running++;
    if (chain->holds_slot) device->free = fmax(device->free, d->view.now) + cost->compute;
    device->job = choice.job;
    device->shard = unit->shard;
    job->taken = true;
    job->last_device = choice.device;
    job->ready = (chain->holds_slot ? device->free : d->view.now + cost->compute) + cost->out;
    job->remaining -= d->compute_least_s[index];
    show_device(d, choice.device);
    *out = (struct plan_dispatched){choose_place(d, index, choice.device), true, false};
    advance(d, chain);
    show_unit(d, choice.job);
    d->following = choice.job;
}

/* Dispatches the next task of the minibatch that was decided last. */
static bool dispatch_in_minibatch(struct plan_dispatch *d, struct plan_dispatched *out)
{
    const uint32_t job = d->minibatch_of;
    if (job == PLAN_NONE) return false;
    struct plan_dispatch_chain *chain = &d->chains[job];
    const struct plan_task *task = &d->plan->tasks[d->entries[chain->first + chain->at]];
    d->jobs[job].remaining -= share_of_task_s(d, task);
    *out = (struct plan_dispatched){task, true, advance_in_minibatch(d, chain)};
    if (out->more) return true;
    d->minibatch_of = PLAN_NONE;
    show_unit(d, job);
    return true;
}

static void begin_minibatch(struct plan_dispatch *d, struct policy_choice choice, struct plan_dispatched *out)
{
    struct policy_job *job = &d->jobs[choice.job];
    struct policy_device *device = &d->shown[choice.device];
    d->chains[choice.job].device = choice.device;
    d->chains[choice.job].under_way = true;
    for (uint32_t i = d->first_device[choice.job]; i < d->first_device[choice.job + 1]; i++) {
        d->devices[d->job_devices[i]].running++;
        show_device(d, d->job_devices[i]);
    }
    d->running++;
    device->free = fmax(device->free, d->view.now) + job->next[device->kind].compute;
    device->job = choice.job;
    device->shard = 0;
    job->taken = true;
    job->last_device = choice.device;
    job->ready = device->free;
    d->minibatch_of = choice.job;
    (void)dispatch_in_minibatch(d, out);
}

/* Dispatches a file operation, on any device of the job's node. */
static void dispatch_files(struct plan_dispatch *d, uint32_t job, uint32_t device, struct plan_dispatched *out)
{
    struct plan_dispatch_chain *chain = &d->chains[job];
    uint32_t unit = (uint32_t)(unit_at(d, chain) - d->plan->units);
    *out = (struct plan_dispatched){choose_place(d, unit, device), false, false};
    advance(d, chain);
}

/* Dispatches the OPENs of a job whose first unit was decided, then that unit. */
static bool dispatch_opening(struct plan_dispatch *d, struct plan_dispatched *out)
{
    uint32_t job = d->opening.job;
    if (job == PLAN_NONE) return false;
    if (unit_at(d, &d->chains[job])->pass == PLAN_OPEN) {
        dispatch_files(d, job, d->opening.device, out);
    } else {
        const struct policy_choice choice = d->opening;
        d->opening.job = PLAN_NONE;
        dispatch_choice(d, choice, out);
    }
    return true;
}

static bool dispatch_closing(struct plan_dispatch *d, struct plan_dispatched *out)
{
    for (uint32_t j = 0; d->plan->host_ranges && j < d->view.job_count; j++) {
        struct plan_dispatch_chain *chain = &d->chains[j];
        if (!chain->closes) continue;
        if (!is_done(chain)) {
            dispatch_files(d, j, chain->device, out);
            return true;
        }
        chain->closes = chain->under_way = false;
        show_room(d);
    }
    return false;
}

/* Returns the task that follows the last decision, if there is one. */
static bool dispatch_follower(struct plan_dispatch *d, struct plan_dispatched *out)
{
    if (d->following == PLAN_NONE) return false;
    struct plan_dispatch_chain *chain = &d->chains[d->following];
    if (is_done(chain) || !follows(unit_at(d, chain))) {
        d->following = PLAN_NONE;
        return false;
    }
    uint32_t unit = (uint32_t)(unit_at(d, chain) - d->plan->units);
    d->jobs[d->following].remaining -= d->compute_least_s[unit];
    *out = (struct plan_dispatched){choose_place(d, unit, chain->device), false, false};
    advance(d, chain);
    show_unit(d, d->following);
    return true;
}

/* Dispatches the decided unit, or its preceding operations. */
static void begin(struct plan_dispatch *d, struct policy_choice choice, struct plan_dispatched *out)
{
    struct plan_dispatch_chain *chain = &d->chains[choice.job];
    if (d->by_minibatch) {
        begin_minibatch(d, choice, out);
        return;
    }
    if (unit_at(d, chain)->pass != PLAN_OPEN) {
        dispatch_choice(d, choice, out);
        return;
    }
    d->opening = choice;
    chain->device = choice.device;
    chain->under_way = true;
    show_room(d);
    (void)dispatch_opening(d, out);
}

enum status plan_dispatch_next(struct plan_dispatch *dispatch, double now_s, struct plan_dispatched *out,
                               bool *found, struct error *err)
{
    struct plan_dispatch *d = dispatch;
    struct policy_choice choice;
    bool waited = false;
    *found = dispatch_in_minibatch(d, out) || dispatch_opening(d, out) || dispatch_follower(d, out) ||
             dispatch_closing(d, out);
    if (*found) return STATUS_OK;
    d->view.now = fmax(d->view.now, now_s);
    for (uint32_t group = 0; group < d->group_count; group++) {
        bool waits = false;
        show_group(d, d->groups[group]);
        if (!can_decide(d)) continue;
        if (!d->asks) {
            choice = lowest(d);
        } else {
            TRY(policy_session_ask(&d->session, &d->view, &choice, &waits, err));
        }
        waited |= waits;
        if (waits) continue;
        begin(d, choice, out);
        *found = true;
        return STATUS_OK;
    }
    return waited && d->running == 0 ? policy_session_stuck(&d->session, &d->view, err) : STATUS_OK;
}

void plan_dispatch_over(struct plan_dispatch *dispatch, uint32_t job, double now_s)
{
    struct plan_dispatch *d = dispatch;
    struct plan_dispatch_chain *chain = &d->chains[job];
    struct plan_dispatch_device *on = &d->devices[chain->device];
    struct policy_device *shown = &d->shown[chain->device];
    assert(d->jobs[job].taken && d->running > 0);
    d->view.now = fmax(d->view.now, now_s);
    d->running--;
    on->running -= chain->holds_slot;
    for (uint32_t i = d->first_device[job]; i < d->first_device[job + 1]; i++) {
        d->devices[d->job_devices[i]].running--;
        show_device(d, d->job_devices[i]);
    }
    if (on->running == 0) shown->free = fmin(shown->free, d->view.now);
    d->jobs[job].taken = false;
    d->jobs[job].ready = d->view.now;
    show_device(d, chain->device);
    if (!is_done(chain) || !chain->under_way) return;
    chain->under_way = false;
    show_room(d);
}

void plan_dispatch_drop_job(struct plan_dispatch *dispatch, uint32_t job)
{
    struct plan_dispatch_chain *chain = &dispatch->chains[job];
    if (chain->closes || is_done(chain) || dispatch->minibatch_of == job) return;
    if (chain->under_way && !dispatch->by_minibatch)
        while (unit_at(dispatch, chain)->pass != PLAN_CLOSE) chain->at++;
    else
        chain->at = chain->count;
    chain->closes = !is_done(chain);
    if (dispatch->opening.job == job) dispatch->opening.job = PLAN_NONE;
    enter_segment(dispatch, chain);
    dispatch->jobs[job].remaining = 0;
}

void plan_dispatch_end_policy(struct plan_dispatch *dispatch)
{
    dispatch->asks = false;
    dispatch->device_count = dispatch->plan->hardware.device_count;
    for (uint32_t i = 0; i < dispatch->device_count; i++) show_device(dispatch, i);
}

uint32_t plan_dispatch_running(const struct plan_dispatch *dispatch) { return dispatch->running; }

uint64_t plan_dispatch_decisions(const struct plan_dispatch *dispatch) { return dispatch->session.decisions; }

/* --- making ---------------------------------------------------------------------------------- */

static enum status check(const struct plan *plan, const struct policy *policy, struct error *err)
{
    if (!plan_is_open(plan))
        return error_set(err, STATUS_BAD_INPUT,
                         "the plan has only one order (expected a plan made with --dispatch live)");
    if (!policy->choose && !policy->rank)
        return error_set(err, STATUS_INFEASIBLE, "policy '%s' is a search and cannot decide live", policy->name);
    if (policy->resident)
        return error_set(err, STATUS_INFEASIBLE,
                         "policy '%s' keeps states on devices, but live dispatch may choose any device",
                         policy->name);
    return STATUS_OK;
}

static bool allocate(struct plan_dispatch *d)
{
    const struct plan *plan = d->plan;
    size_t devices = plan->hardware.device_count, acquires = 0, places = 0;
    for (uint32_t u = 0; u < plan->unit_count; u++) acquires += plan->units[u].acquire_count;
    d->chains = alloc_zeroed(plan->jobs.count, sizeof *d->chains);
    d->entries = alloc_zeroed(plan_first_choice(plan), sizeof *d->entries);
    d->devices = alloc_zeroed(devices, sizeof *d->devices);
    d->first_choice = alloc_zeroed(plan->choice_count > 0 ? plan->unit_count * devices + 1 : 1,
                                   sizeof *d->first_choice);
    d->choices = alloc_zeroed(plan->choice_count, sizeof *d->choices);
    d->first_acquire = alloc_zeroed((size_t)plan->unit_count + 1, sizeof *d->first_acquire);
    d->staged = alloc_zeroed(acquires, sizeof *d->staged);
    d->compute_least_s = alloc_zeroed(plan->unit_count, sizeof *d->compute_least_s);
    d->costs = alloc_zeroed((size_t)plan->unit_count * plan->hardware.type_count, sizeof *d->costs);
    d->jobs = alloc_zeroed(plan->jobs.count, sizeof *d->jobs);
    d->shown = alloc_zeroed(devices, sizeof *d->shown);
    d->homes = alloc_zeroed(plan->jobs.count, sizeof *d->homes);
    d->groups = alloc_zeroed(d->by_minibatch ? plan->jobs.count : hardware_host_count(&plan->hardware),
                             sizeof *d->groups);
    d->first_device = alloc_zeroed((size_t)plan->jobs.count + 1, sizeof *d->first_device);
    for (uint32_t j = 0; d->by_minibatch && j < plan->jobs.count; j++)
        places += parallel_devices(&plan->jobs.jobs[j].parallel);
    d->job_devices = alloc_zeroed(places, sizeof *d->job_devices);
    d->minibatch_costs = alloc_zeroed(d->by_minibatch ? (size_t)plan->jobs.count * plan->hardware.type_count : 0,
                                      sizeof *d->minibatch_costs);
    if (!d->groups || !d->first_device || !d->job_devices || !d->minibatch_costs) return false;
    return d->chains && d->entries && d->devices && d->first_choice && d->choices && d->first_acquire &&
           d->staged && d->compute_least_s && d->costs && d->jobs && d->shown && d->homes;
}

/* Returns a unit's cost on a device: its copies, and its computation there or else on the host's processor. */
static struct policy_cost cost_of(const struct plan *plan, const struct plan_unit *unit, uint32_t device)
{
    const struct hardware *hw = &plan->hardware;
    struct policy_cost cost = {0};
    double host_s = 0;
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
        const struct plan_op *op = &plan->ops[o];
        if (op->kind == OP_COPY && op->stream == STREAM_H2D) {
            cost.in += cost_copy_s(hw, device, COPY_H2D, op->bytes);
        } else if (op->kind == OP_COPY && op->stream == STREAM_D2H) {
            cost.out += cost_copy_s(hw, device, COPY_D2H, op->bytes);
        } else if (op->kind == OP_COMPUTE && op->work != PLAN_NONE) {
            const struct plan_work *work = &plan->works[op->work];
            bool host = plan_stream_is_host(op->stream);
            double seconds = cost_work_s(hw, host ? hardware_cpu(hw) : device, &plan->items[work->first_item],
                                         work->item_count, NULL);
            if (host) host_s += seconds;
            else cost.compute += seconds;
        }
    }
    if (cost.compute <= 0) cost.compute = host_s;
    cost.compute = fmax(cost.compute, COMPUTE_LEAST_S);
    return cost;
}

static void find_costs(struct plan_dispatch *d)
{
    const struct plan *plan = d->plan;
    uint32_t types = plan->hardware.type_count;
    for (uint32_t u = 0; u < plan->unit_count; u++) {
        d->compute_least_s[u] = HUGE_VAL;
        for (uint32_t i = 0; i < plan->hardware.device_count; i++) {
            struct policy_cost *cost = &d->costs[(size_t)u * types + plan->hardware.devices[i].type];
            if (cost->compute <= 0) *cost = cost_of(plan, &plan->units[u], i);
            d->compute_least_s[u] = fmin(d->compute_least_s[u], cost->compute);
        }
    }
}

static void find_acquires(struct plan_dispatch *d)
{
    const struct plan *plan = d->plan;
    for (uint32_t u = 0; u < plan->unit_count; u++) {
        const struct plan_unit *unit = &plan->units[u];
        uint32_t next = d->first_acquire[u];
        for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
            const struct plan_access *accesses = plan->accesses + plan->ops[o].first_access;
            for (uint32_t a = 0; a < plan->ops[o].access_count; a++)
                if (accesses[a].flags & ACCESS_ACQUIRE)
                    d->staged[next++] = !plan->buffers[accesses[a].buffer].on_device;
        }
        d->first_acquire[u + 1] = next;
    }
}

/* Lists the devices of parallel jobs, of which each is the seat of its job, and the seats. */
static void find_seats(struct plan_dispatch *d)
{
    const struct plan *plan = d->plan;
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const uint32_t devices = (uint32_t)parallel_devices(&plan->jobs.jobs[j].parallel);
        d->first_device[j + 1] = d->first_device[j] + devices;
        for (uint32_t rank = 0; rank < devices; rank++) {
            const uint32_t device = plan_rank_device(plan, j, rank);
            d->job_devices[d->first_device[j] + rank] = device;
            d->devices[device].slots = MINIBATCH_SLOTS;
        }
        uint32_t group = 0;
        d->homes[j] = plan_rank_device(plan, j, 0);
        while (group < d->group_count && d->groups[group] != d->homes[j]) group++;
        if (group == d->group_count) d->groups[d->group_count++] = d->homes[j];
    }
}

static void find_nodes(struct plan_dispatch *d)
{
    d->group_count = hardware_host_count(&d->plan->hardware);
    for (uint32_t node = 0; node < d->group_count; node++) d->groups[node] = node;
}

/* Sorts choices by unit and device (counting sort). */
static void find_choices(struct plan_dispatch *d)
{
    const struct plan *plan = d->plan;
    if (plan->choice_count == 0) return;
    size_t devices = plan->hardware.device_count, rows = plan->unit_count * devices;
    for (uint32_t i = plan_first_choice(plan); i < plan->task_count; i++)
        d->first_choice[plan->tasks[i].unit * devices + plan->tasks[i].device]++;
    uint32_t sum = 0;
    for (size_t row = 0; row <= rows; row++) {
        uint32_t count = d->first_choice[row];
        if (row < rows && count > d->devices[row % devices].slots) d->devices[row % devices].slots = count;
        sum += count;
        d->first_choice[row] = sum; /* the row's end; filling backwards turns it into the row's beginning */
    }
    for (uint32_t i = plan->task_count; i-- > plan_first_choice(plan);)
        d->choices[--d->first_choice[plan->tasks[i].unit * devices + plan->tasks[i].device]] = i;
}

static void find_chains(struct plan_dispatch *d)
{
    const struct plan *plan = d->plan;
    uint32_t first_choice = plan_first_choice(plan), sum = 0;
    for (uint32_t i = 0; i < first_choice; i++) d->chains[plan->units[plan->tasks[i].unit].job].count++;
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        d->chains[j].first = sum;
        sum += d->chains[j].count;
        d->chains[j].count = 0;
    }
    for (uint32_t i = 0; i < first_choice; i++) {
        struct plan_dispatch_chain *chain = &d->chains[plan->units[plan->tasks[i].unit].job];
        d->entries[chain->first + chain->count++] = i;
    }
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct plan_dispatch_chain *chain = &d->chains[j];
        if (chain->count > 0 && !d->by_minibatch)
            d->homes[j] = plan->hardware.devices[plan->tasks[d->entries[chain->first]].device].host;
        enter_segment(d, &d->chains[j]);
    }
}

/* Shows the jobs and devices at the start. */
static void show_first(struct plan_dispatch *d, const struct plan_dispatch_options *options)
{
    const struct plan *plan = d->plan;
    d->device_count = options->policy->one_device && !d->by_minibatch ? 1 : plan->hardware.device_count;
    d->view = (struct policy_view){.jobs = d->jobs,
                                   .devices = d->shown,
                                   .job_count = plan->jobs.count,
                                   .device_count = d->device_count,
                                   .kind_count = plan->hardware.type_count,
                                   .seed = options->seed};
    for (uint32_t i = 0; i < plan->hardware.device_count; i++) {
        if (d->devices[i].slots > 0) d->devices[i].slot_bytes = plan_device_bytes(plan, i) / d->devices[i].slots;
        d->shown[i] = (struct policy_device){
            .kind = plan->hardware.devices[i].type, .job = POLICY_NONE, .shard = POLICY_NONE};
        show_device(d, i);
    }
    for (uint32_t j = 0; j < plan->jobs.count; j++)
        d->jobs[j] = (struct policy_job){.deadline = HUGE_VAL,
                                         .weight = 1,
                                         .last_device = POLICY_NONE,
                                         .next_device = POLICY_NONE,
                                         .admitted = true};
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const struct plan_segment *segment = &plan->segments[s];
        for (uint32_t i = segment->first_task; i < segment->first_task + segment->task_count; i++) {
            uint32_t unit = plan->tasks[i].unit;
            double seconds = d->by_minibatch ? share_of_task_s(d, &plan->tasks[i]) : d->compute_least_s[unit];
            d->jobs[plan->units[unit].job].remaining += segment->repeat_count * seconds;
        }
    }
    for (uint32_t j = 0; j < plan->jobs.count; j++) show_unit(d, j);
}

enum status plan_dispatch_create(const struct plan *plan, const struct plan_dispatch_options *options,
                                 struct plan_dispatch **out, struct error *err)
{
    enum status status = check(plan, options->policy, err);
    if (status != STATUS_OK) return status;
    struct plan_dispatch *d = alloc_zeroed(1, sizeof *d);
    if (!d) return error_memory(err, "live dispatch", sizeof *d);
    d->plan = plan;
    d->asks = true;
    d->by_minibatch = plan->any_order;
    d->following = d->minibatch_of = PLAN_NONE;
    d->opening.job = PLAN_NONE;
    if (!allocate(d)) {
        plan_dispatch_destroy(d);
        return error_memory(err, "live dispatch", plan->task_count * sizeof *d->choices);
    }
    find_costs(d);
    find_acquires(d);
    find_choices(d);
    if (d->by_minibatch) find_seats(d);
    else find_nodes(d);
    find_chains(d);
    show_first(d, options);
    d->view.device = 0;
    if (options->state) d->session = (struct policy_session){.policy = options->policy, .state = options->state};
    else status = policy_session_begin(&d->session, options->policy, &d->view, err);
    if (status != STATUS_OK) {
        plan_dispatch_destroy(d);
        return status;
    }
    *out = d;
    return STATUS_OK;
}

void plan_dispatch_destroy(struct plan_dispatch *dispatch)
{
    if (!dispatch) return;
    policy_session_end(&dispatch->session);
    free(dispatch->chains);
    free(dispatch->entries);
    free(dispatch->devices);
    free(dispatch->first_choice);
    free(dispatch->choices);
    free(dispatch->first_acquire);
    free(dispatch->staged);
    free(dispatch->compute_least_s);
    free(dispatch->costs);
    free(dispatch->jobs);
    free(dispatch->shown);
    free(dispatch->homes);
    free(dispatch->groups);
    free(dispatch->first_device);
    free(dispatch->job_devices);
    free(dispatch->minibatch_costs);
    free(dispatch);
}
