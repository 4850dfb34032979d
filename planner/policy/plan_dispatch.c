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
 */
#include "planner/policy/plan_dispatch_state.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/try.h"

/* Returns true when the unit follows the previous unit without a decision. */
static bool follows(const struct plan_unit *unit)
{
    return unit->pass == PLAN_UPDATE || unit->pass == PLAN_KEEP || unit->pass == PLAN_CLOSE;
}

/* Returns the next unit to decide about: for a job that has not begun, the unit after its OPENs. */
static const struct plan_unit *unit_to_decide(const struct plan_dispatch *d, const struct plan_dispatch_chain *chain)
{
    const struct plan_unit *unit = plan_dispatch_unit_at(d, chain);
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
    uint64_t least[PLAN_DISPATCH_HISTORY];
    for (uint32_t h = 0; count > 1 && h < PLAN_DISPATCH_HISTORY; h++)
        least[h] = on->history[h] ? overlap_bytes(d, best, on->history[h]) : 0;
    for (uint32_t c = 1; c < count; c++) {
        const struct plan_task *other = &plan->tasks[choices[c]];
        uint64_t bytes[PLAN_DISPATCH_HISTORY];
        uint32_t differs = PLAN_DISPATCH_HISTORY;
        for (uint32_t h = 0; h < PLAN_DISPATCH_HISTORY; h++) {
            bytes[h] = on->history[h] ? overlap_bytes(d, other, on->history[h]) : 0;
            if (differs == PLAN_DISPATCH_HISTORY && bytes[h] != least[h]) differs = h;
        }
        if (differs == PLAN_DISPATCH_HISTORY || bytes[differs] > least[differs]) continue;
        best = other;
        memcpy(least, bytes, sizeof least);
    }
    if (plan->units[unit].acquire_count > 0) {
        memmove(on->history + 1, on->history, (PLAN_DISPATCH_HISTORY - 1) * sizeof *on->history);
        on->history[0] = best;
    }
    return best;
}

/* --- what the policy sees -------------------------------------------------------------------- */

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

/* With several nodes: shows only the node's devices and jobs. Of parallel jobs only the seat and those that have it. */
static void show_group(struct plan_dispatch *d, uint32_t group)
{
    const struct hardware *hardware = &d->plan->hardware;
    if (d->group_count == 1 && !d->by_minibatch) return;
    for (uint32_t i = 0; i < hardware->device_count; i++)
        d->shown[i].asks = d->shown[i].slots > 0 && (d->by_minibatch ? i : hardware->devices[i].host) == group;
    for (uint32_t j = 0; j < d->view.job_count; j++)
        d->jobs[j].admitted =
            d->homes[j] == group && (d->by_minibatch ? plan_dispatch_has_slots(d, j) : has_room(d, j));
}

void plan_dispatch_show_unit(struct plan_dispatch *d, uint32_t job)
{
    struct plan_dispatch_chain *chain = &d->chains[job];
    struct policy_job *shown = &d->jobs[job];
    if (d->by_minibatch) {
        plan_dispatch_show_minibatch(d, job);
        return;
    }
    if (plan_dispatch_is_done(chain)) {
        shown->remaining = 0;
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
    const struct plan_unit *unit = plan_dispatch_unit_at(d, chain);
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
    plan_dispatch_show_device(d, choice.device);
    *out = (struct plan_dispatched){choose_place(d, index, choice.device), true, false};
    plan_dispatch_advance(d, chain);
    plan_dispatch_show_unit(d, choice.job);
    d->following = choice.job;
}

/* Dispatches a file operation, on any device of the job's node. */
static void dispatch_files(struct plan_dispatch *d, uint32_t job, uint32_t device, struct plan_dispatched *out)
{
    struct plan_dispatch_chain *chain = &d->chains[job];
    uint32_t unit = (uint32_t)(plan_dispatch_unit_at(d, chain) - d->plan->units);
    *out = (struct plan_dispatched){choose_place(d, unit, device), false, false};
    plan_dispatch_advance(d, chain);
}

/* Dispatches the OPENs of a job whose first unit was decided, then that unit. */
static bool dispatch_opening(struct plan_dispatch *d, struct plan_dispatched *out)
{
    uint32_t job = d->opening.job;
    if (job == PLAN_NONE) return false;
    if (plan_dispatch_unit_at(d, &d->chains[job])->pass == PLAN_OPEN) {
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
        if (!plan_dispatch_is_done(chain)) {
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
    if (plan_dispatch_is_done(chain) || !follows(plan_dispatch_unit_at(d, chain))) {
        d->following = PLAN_NONE;
        return false;
    }
    uint32_t unit = (uint32_t)(plan_dispatch_unit_at(d, chain) - d->plan->units);
    d->jobs[d->following].remaining -= d->compute_least_s[unit];
    *out = (struct plan_dispatched){choose_place(d, unit, chain->device), false, false};
    plan_dispatch_advance(d, chain);
    plan_dispatch_show_unit(d, d->following);
    return true;
}

/* Dispatches the decided unit, or its preceding operations. */
static void begin(struct plan_dispatch *d, struct policy_choice choice, struct plan_dispatched *out)
{
    struct plan_dispatch_chain *chain = &d->chains[choice.job];
    if (d->by_minibatch) {
        plan_dispatch_begin_minibatch(d, choice, out);
        return;
    }
    if (plan_dispatch_unit_at(d, chain)->pass != PLAN_OPEN) {
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
    *found = plan_dispatch_in_minibatch(d, out) || dispatch_opening(d, out) || dispatch_follower(d, out) ||
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
        plan_dispatch_show_device(d, d->job_devices[i]);
    }
    if (on->running == 0) shown->free = fmin(shown->free, d->view.now);
    d->jobs[job].taken = false;
    d->jobs[job].ready = d->view.now;
    plan_dispatch_show_device(d, chain->device);
    if (!plan_dispatch_is_done(chain) || !chain->under_way) return;
    chain->under_way = false;
    show_room(d);
}

void plan_dispatch_drop_job(struct plan_dispatch *dispatch, uint32_t job)
{
    struct plan_dispatch_chain *chain = &dispatch->chains[job];
    if (chain->closes || plan_dispatch_is_done(chain) || dispatch->minibatch_of == job) return;
    if (chain->under_way && !dispatch->by_minibatch)
        while (plan_dispatch_unit_at(dispatch, chain)->pass != PLAN_CLOSE) chain->at++;
    else
        chain->at = chain->count;
    chain->closes = !plan_dispatch_is_done(chain);
    if (dispatch->opening.job == job) dispatch->opening.job = PLAN_NONE;
    plan_dispatch_enter_segment(dispatch, chain);
    dispatch->jobs[job].remaining = 0;
}

void plan_dispatch_end_policy(struct plan_dispatch *dispatch)
{
    dispatch->asks = false;
    dispatch->device_count = dispatch->plan->hardware.device_count;
    for (uint32_t i = 0; i < dispatch->device_count; i++) plan_dispatch_show_device(dispatch, i);
}

uint32_t plan_dispatch_running(const struct plan_dispatch *dispatch) { return dispatch->running; }

uint64_t plan_dispatch_decisions(const struct plan_dispatch *dispatch) { return dispatch->session.decisions; }
