/*
 * A list scheduler: policies decide, schedule_builder.h keeps the clocks.
 *
 * A decision is made at the earliest time over all devices at which a computation stream is free and a job ready. A
 * policy sees schedule_builder.h's state as policy.h defines. Jobs that a policy ranks are kept sorted
 * (planner/spill/order/agenda.h); a policy that chooses sees all.
 *
 * Over several nodes, each spilled job has one (planner/spill/cut/node_assignment.h). A device that asks sees only its
 * node's jobs as admitted, so policies need not know nodes.
 *
 * If jobs take turns in host memory, jobs with room are admitted. Room changes when a job begins or ends, so all are
 * checked then.
 *
 * Cost per unit: O(log jobs + log devices) if the policy ranks jobs, else O(jobs + devices).
 */
#include "planner/spill/order/schedule.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/try.h"
#include "planner/policy/policies.h"
#include "planner/policy/policy_ask.h"
#include "planner/spill/cut/node_assignment.h"
#include "planner/spill/order/agenda.h"
#include "planner/spill/order/schedule_builder.h"
#include "planner/spill/order/schedule_near.h"
#include "planner/spill/order/schedule_steady.h"

struct scheduler {
    const struct policy *policy;
    struct schedule_builder *builder;
    double *not_before_s;          /* per device: the policy chose to wait until then; HUGE_VAL: until another placement
                                      changes something */
    struct policy_session session;
    struct policy_view view;
    struct policy_job *jobs;       /* (job count), shown */
    struct policy_device *devices; /* (device count), shown */
    struct policy_cost *costs;     /* (job count, type count): of the next unit */
    uint32_t *of_type;             /* (type count): a device of the type; PLAN_NONE */
    uint32_t *nodes;               /* (job count); NULL: no job is bound to a node */
    double *ready_s;               /* (host count), scratch */
    struct tournament job_ready_s; /* when each job could be chosen; only without nodes and residence, for a policy
                                      that chooses */
    struct arena arena;            /* of trees and queues */
    struct schedule_steady steady;
    struct schedule_near near;
    uint64_t left;                 /* units to place */
    bool resident;
};

/* --- what a policy sees ---------------------------------------------------------------------- */

/* Shows a job's next unit. All spilled state comes through weight buffers, whatever its size. */
static void show_unit(struct scheduler *s, uint32_t job)
{
    const struct cost_table *times = s->builder->times;
    const struct partition *cut = times->partition;
    struct policy_job *shown = &s->jobs[job];
    uint32_t position = s->builder->jobs[job].position;
    shown->shard = schedule_unit_shard(partition_job_units(cut, job), position);
    bool stays = s->resident || cut->persistent[cut->job_first_shard[job] + shown->shard];
    shown->memory = stays ? 0 : cut->weight_buffer_bytes;
    for (uint32_t type = 0; type < s->view.kind_count; type++) {
        if (s->of_type[type] == PLAN_NONE) continue;
        const struct cost_unit *time = cost_table_at(times, s->of_type[type], job, position);
        s->costs[(size_t)job * s->view.kind_count + type] =
            (struct policy_cost){time->compute_s, time->in_s, time->out_s};
    }
}

static uint32_t host_of(const struct scheduler *s, uint32_t device)
{
    return s->builder->times->hardware->devices[device].host;
}

/* Returns true if the job is admitted, and does not wait for others to make whole minibatches. */
static bool may_go_on(const struct scheduler *s, uint32_t job)
{
    return s->builder->view_jobs[job].admitted &&
           !(s->near.state == NEAR_CLOSING && schedule_near_holds(&s->near, job));
}

static void show_job(struct scheduler *s, uint32_t job)
{
    const struct schedule_builder_view *now = &s->builder->view_jobs[job];
    struct policy_job *shown = &s->jobs[job];
    shown->ready = now->ready_s;
    shown->remaining = now->remaining_s;
    shown->last_device = now->last_device;
    shown->next_device = now->next_device;
    shown->admitted = may_go_on(s, job) && (!s->nodes || s->nodes[job] == host_of(s, s->view.device));
    if (s->near.state == NEAR_CLOSING) shown->remaining = schedule_near_rank(&s->near, job);
    shown->taken = now->reserved;
}

static void show_first(struct scheduler *s)
{
    const struct cost_table *times = s->builder->times;
    const struct partition *cut = times->partition;
    for (uint32_t type = 0; type < s->view.kind_count; type++) s->of_type[type] = PLAN_NONE;
    for (uint32_t d = 0; d < s->view.device_count; d++)
        s->of_type[times->hardware->devices[d].type] = d;
    for (uint32_t j = 0; j < s->view.job_count; j++) {
        s->jobs[j] = (struct policy_job){.deadline = HUGE_VAL,
                                         .weight = 1,
                                         .next = s->costs + (size_t)j * s->view.kind_count};
        show_unit(s, j);
        show_job(s, j);
    }
    for (uint32_t d = 0; d < s->view.device_count; d++)
        s->devices[d] = (struct policy_device){.memory = cut->weight_buffer_count * cut->weight_buffer_bytes,
                                               .kind = times->hardware->devices[d].type,
                                               .slots = 1,
                                               .job = POLICY_NONE,
                                               .shard = POLICY_NONE};
}

/* Updates the devices that ask. Resident jobs have their devices, so one device is asked at a time. */
static void show_devices(struct scheduler *s, uint32_t device)
{
    bool alone = s->resident || s->view.ahead, other = host_of(s, device) != host_of(s, s->view.device);
    s->view.device = device;
    for (uint32_t j = 0; s->nodes && other && j < s->view.job_count; j++)
        s->jobs[j].admitted = may_go_on(s, j) && s->nodes[j] == host_of(s, device);
    for (uint32_t d = 0; d < s->view.device_count; d++) {
        double free_s = s->builder->devices[d].compute_free_s;
        s->devices[d].free = free_s;
        s->devices[d].asks =
            d == device || (!alone && s->builder->devices[d].ahead == PLAN_NONE && free_s <= s->view.now &&
                            (!s->nodes || host_of(s, d) == host_of(s, device)));
    }
}

static enum status ask(struct scheduler *s, uint32_t device, struct policy_choice *choice, bool *waits,
                       struct error *err)
{
    show_devices(s, device);
    return policy_session_ask(&s->session, &s->view, choice, waits, err);
}

/* --- deciding -------------------------------------------------------------------------------- */

/* Returns true if jobs differ in their possible devices. */
static bool is_bound(const struct scheduler *s)
{
    return s->resident || s->nodes;
}

/* Returns when the job can be chosen; HUGE_VAL: after another event. */
static double choosable_s(const struct schedule_builder_view *job)
{
    return job->admitted && !job->reserved && job->remaining_s > 0 ? job->ready_s : HUGE_VAL;
}

/* Returns the earliest time when a resident job is ready on this device. */
static double earliest_ready(const struct scheduler *s, uint32_t device)
{
    double earliest = HUGE_VAL;
    for (uint32_t j = 0; j < s->view.job_count; j++) {
        const struct schedule_builder_view *job = &s->builder->view_jobs[j];
        if (job->next_device == device) earliest = min_s(earliest, choosable_s(job));
    }
    return earliest;
}

/* Finds, by node, the earliest time when one of its jobs is ready. */
static void find_ready(const struct scheduler *s)
{
    for (uint32_t h = 0; h < hardware_host_count(s->builder->times->hardware); h++) s->ready_s[h] = HUGE_VAL;
    for (uint32_t j = 0; j < s->view.job_count; j++) {
        const struct schedule_builder_view *job = &s->builder->view_jobs[j];
        double *earliest = &s->ready_s[s->nodes[j]];
        *earliest = min_s(*earliest, choosable_s(job));
    }
}

/* Returns the next time after `now_s` when a job becomes ready, or HUGE_VAL. */
static double next_ready(const struct scheduler *s, double now_s)
{
    double next = HUGE_VAL;
    for (uint32_t j = 0; j < s->view.job_count; j++) {
        const struct schedule_builder_view *job = &s->builder->view_jobs[j];
        if (job->admitted && job->remaining_s > 0 && job->ready_s > now_s && job->ready_s < next)
            next = job->ready_s;
    }
    return next;
}

/* Returns the device that can start something first, and when; PLAN_NONE if all wait for nothing. */
static uint32_t next_decision(const struct scheduler *s, double *at)
{
    uint32_t best = PLAN_NONE;
    double any = is_bound(s) ? 0 : tournament_least(&s->job_ready_s);
    if (s->nodes) find_ready(s);
    *at = HUGE_VAL;
    for (uint32_t d = 0; d < s->view.device_count; d++) {
        uint32_t ahead = s->builder->devices[d].ahead;
        double ready;
        if (ahead != PLAN_NONE) ready = s->builder->view_jobs[ahead].ready_s;
        else ready = s->resident ? earliest_ready(s, d) : s->nodes ? s->ready_s[host_of(s, d)] : any;
        double free_s = s->builder->devices[d].compute_free_s;
        double when = max_s(max_s(free_s, s->not_before_s[d]), ready);
        if (when < *at) {
            *at = when;
            best = d;
        }
    }
    return best;
}

static void note_ready(struct scheduler *s, uint32_t job)
{
    if (!is_bound(s)) tournament_set(&s->job_ready_s, job, choosable_s(&s->builder->view_jobs[job]));
}

/* Returns true if spilled jobs take turns in host memory. */
static bool takes_turns(const struct scheduler *s)
{
    return s->builder->times->partition->host.need && !s->resident;
}

/* Returns true if only the job's own units have changed its state. */
static bool is_shown(const struct scheduler *s, uint32_t job)
{
    const struct schedule_builder_view *now = &s->builder->view_jobs[job];
    const struct policy_job *shown = &s->jobs[job];
    return !s->nodes && shown->admitted == may_go_on(s, job) && shown->taken == now->reserved &&
           !(shown->ready < now->ready_s || shown->ready > now->ready_s);
}

/* Updates the jobs that may begin, or no longer may, after a range of host memory was allocated or freed. */
static void show_all(struct scheduler *s)
{
    for (uint32_t j = 0; takes_turns(s) && j < s->view.job_count; j++) {
        if (is_shown(s, j)) continue;
        show_job(s, j);
        note_ready(s, j);
    }
}

static void reserve(struct scheduler *s, uint32_t job, bool reserved)
{
    s->builder->view_jobs[job].reserved = s->jobs[job].taken = reserved;
    if (reserved) schedule_builder_allocate_range(s->builder, job);
    note_ready(s, job);
    if (reserved) show_all(s);
}

/* Tells the search for cycles of the policy's decision among the jobs that it saw. */
static void note_decision(struct scheduler *s, uint32_t job)
{
    if (!s->steady.reference || !s->steady.rank) return;
    double rank = s->steady.rank(s->session.state, &s->view, job), next = -HUGE_VAL;
    for (uint32_t j = 0; j < s->view.job_count; j++) {
        if (j == job || policy_place(&s->view, j) == POLICY_NONE) continue;
        double other = s->steady.rank(s->session.state, &s->view, j);
        next = max_s(next, other);
        if (s->steady.gaps) schedule_steady_compared(&s->steady, job, rank, j, other);
    }
    schedule_steady_decided(&s->steady, s->view.now, job, rank, next);
}

/* Decides as the policy does, but while a stretch closes: the job with the most left of its quota goes on. */
static enum status decide(struct scheduler *s, uint32_t device, struct policy_choice *choice, bool *waits,
                          struct error *err)
{
    const struct policy closing = {.rank = policy_remaining, .emptiest = s->policy->emptiest};
    if (s->near.state != NEAR_CLOSING) return ask(s, device, choice, waits, err);
    show_devices(s, device);
    *waits = !policy_decide(&closing, NULL, &s->view, choice);
    return STATUS_OK;
}

/* Takes back what was chosen ahead of jobs that have their whole minibatches. */
static void free_held(struct scheduler *s)
{
    for (uint32_t d = 0; d < s->view.device_count; d++) {
        uint32_t ahead = s->builder->devices[d].ahead;
        if (ahead == PLAN_NONE || !schedule_near_holds(&s->near, ahead)) continue;
        s->builder->devices[d].ahead = PLAN_NONE;
        reserve(s, ahead, false);
    }
}

/* Chooses the device's next unit while its current one, of `own`, runs from start_s on. */
static enum status choose_ahead(struct scheduler *s, uint32_t device, uint32_t own, double start_s,
                                struct error *err)
{
    struct policy_choice choice;
    bool waits;
    s->view.now = start_s;
    s->view.ahead = true;
    s->jobs[own].ready = start_s; /* a candidate: it is done when this device is free */
    enum status status = decide(s, device, &choice, &waits, err);
    if (!status && !waits) note_decision(s, choice.job);
    s->view.ahead = false;
    show_job(s, own);
    if (status || waits) return status;
    s->builder->devices[device].ahead = choice.job;
    reserve(s, choice.job, true);
    return STATUS_OK;
}

/* Waits until a unit ends, at the policy's wish. */
static enum status wait(struct scheduler *s, struct error *err)
{
    double next = next_ready(s, s->view.now);
    bool runs = next < HUGE_VAL;
    for (uint32_t d = 0; d < s->view.device_count; d++) {
        if (s->devices[d].asks) s->not_before_s[d] = next;
        else runs = true; /* or is asked itself */
    }
    return runs ? STATUS_OK : policy_session_stuck(&s->session, &s->view, err);
}

/* Places the job's next unit on the device. Returns its start. */
static double put(struct scheduler *s, uint32_t job, uint32_t device, struct schedule_unit *unit)
{
    uint32_t seated = s->builder->next_admitted;
    double start = schedule_builder_put(s->builder, job, device, unit);
    s->devices[device].job = job;
    s->devices[device].shard = s->jobs[job].shard;
    s->devices[device].free = s->builder->devices[device].compute_free_s;
    if (!unit->last) show_unit(s, job);
    show_job(s, job);
    while (seated < s->builder->next_admitted) show_job(s, seated++); /* the job's seat went to them */
    return start;
}

static enum status append(struct scheduler *s, uint32_t job, uint32_t device, struct schedule *out, double *start,
                          struct error *err)
{
    TRY(array_reserve(&out->units, &out->capacity, out->count, sizeof *out->units, PLAN_TASKS_MAX,
                      "units in the schedule", err));
    *start = put(s, job, device, &out->units[out->count++]);
    s->left--;
    return STATUS_OK;
}

static const struct schedule_unit *last_unit(const struct schedule *schedule)
{
    return &schedule->units[schedule->count - 1];
}

/* Shows what has changed when the placing went on over cycles of `units`, or a stretch began or ended to close. */
static void show_again(struct scheduler *s, uint64_t units)
{
    s->left -= units;
    s->session.decisions += units;
    for (uint32_t j = 0; j < s->view.job_count; j++) show_job(s, j);
    for (uint32_t d = 0; d < s->view.device_count; d++) s->devices[d].free = s->builder->devices[d].compute_free_s;
}

static enum status add_cycle(struct scheduler *s, struct schedule *out, const struct schedule_cycle *cycle,
                             struct error *err)
{
    TRY(array_reserve(&out->cycles, &out->cycle_capacity, out->cycle_count, sizeof *out->cycles, PLAN_SEGMENTS_MAX,
                      "cycles in the schedule", err));
    out->cycles[out->cycle_count++] = (struct schedule_loop){cycle->first, cycle->end, cycle->times};
    show_again(s, cycle->times * (cycle->end - cycle->first));
    return STATUS_OK;
}

static enum status add_joint(struct schedule *out, struct error *err)
{
    TRY(array_reserve(&out->joints, &out->joint_capacity, out->joint_count, sizeof *out->joints, PLAN_SEGMENTS_MAX,
                      "joints in the schedule", err));
    out->joints[out->joint_count++] = out->count;
    return STATUS_OK;
}

/* Repeats the round that was closed, if it pays. */
static enum status repeat_round(struct scheduler *s, struct schedule *out, struct schedule_cycle *cycle,
                                struct error *err)
{
    *cycle = (struct schedule_cycle){.first = s->near.first, .end = out->count,
                                     .times = schedule_near_choose(&s->near, out->units, out->count)};
    if (cycle->times == 0) {
        show_again(s, 0);
        return STATUS_OK;
    }
    schedule_near_skip(&s->near, cycle);
    TRY(add_joint(out, err));
    return add_cycle(s, out, cycle, err);
}

/* Skips cycles that repeat the last one, or nearly do. *cycle: the skipped cycles; the view then shows the time after
 * them. *found: what may be chosen has changed. */
static enum status look_for_cycles(struct scheduler *s, struct schedule *out, struct schedule_cycle *cycle, bool *found,
                                   struct error *err)
{
    bool closing = s->near.state == NEAR_CLOSING;
    *cycle = (struct schedule_cycle){0};
    *found = !closing && schedule_steady_look(&s->steady, last_unit(out), out->count, cycle);
    if (*found) {
        TRY(add_cycle(s, out, cycle, err));
        schedule_near_restart(&s->near, out->count);
        schedule_steady_go_on(&s->steady, out->count);
        return STATUS_OK;
    }
    enum schedule_near_step step = schedule_near_look(&s->near, last_unit(out), out->count, s->left);
    *found = step == NEAR_CLOSES || step == NEAR_CLOSED;
    if (step == NEAR_CLOSES) {
        free_held(s);
        show_again(s, 0);
    }
    if (step == NEAR_OPENS) TRY(add_joint(out, err));
    if (step == NEAR_CLOSED) TRY(repeat_round(s, out, cycle, err));
    if (step == NEAR_OPENS || step == NEAR_CLOSED) schedule_steady_go_on(&s->steady, out->count);
    return STATUS_OK;
}

/* --- policies that choose -------------------------------------------------------------------- */

/* Continues after a unit if the policy chooses. */
static enum status choose_on(struct scheduler *s, struct schedule *out, struct error *err)
{
    struct schedule_cycle cycle;
    bool found;
    TRY(look_for_cycles(s, out, &cycle, &found, err));
    if (!found) return STATUS_OK;
    for (uint32_t j = 0; j < s->view.job_count; j++) note_ready(s, j);
    for (uint32_t d = 0; d < s->view.device_count; d++)
        if (s->not_before_s[d] > cycle.old_s) s->not_before_s[d] += cycle.later_s;
    return STATUS_OK;
}

static enum status run(struct scheduler *s, struct schedule *out, struct error *err)
{
    enum status status = STATUS_OK;
    if (!is_bound(s)) TRY(tournament_create(&s->arena, s->view.job_count, 0, &s->job_ready_s, err));
    while (s->left > 0 && !status) {
        uint32_t device = next_decision(s, &s->view.now);
        if (device == PLAN_NONE) return policy_session_stuck(&s->session, &s->view, err);
        uint32_t job = s->builder->devices[device].ahead;
        if (job != PLAN_NONE) {
            s->builder->devices[device].ahead = PLAN_NONE;
            reserve(s, job, false);
        } else {
            struct policy_choice choice;
            bool waits;
            status = decide(s, device, &choice, &waits, err);
            if (!status && waits) status = wait(s, err);
            if (status || waits) continue;
            job = choice.job;
            device = choice.device;
            note_decision(s, job);
        }
        double start;
        TRY(append(s, job, device, out, &start, err));
        schedule_steady_decided(&s->steady, s->view.now, job, HUGE_VAL, -HUGE_VAL);
        note_ready(s, job);
        if (last_unit(out)->first || last_unit(out)->last) show_all(s);
        for (uint32_t d = 0; d < s->view.device_count; d++) /* may be asked again from now on */
            if (s->not_before_s[d] > s->view.now) s->not_before_s[d] = s->view.now;
        if (s->policy->commit_ahead && s->left > 0) status = choose_ahead(s, device, job, start, err);
        if (!status) status = choose_on(s, out, err);
    }
    return status;
}

/* --- policies that rank ---------------------------------------------------------------------- */

/* Returns the group of the devices that may run a job. */
static uint32_t group_of(const struct scheduler *s, uint32_t job)
{
    if (s->resident) return s->builder->view_jobs[job].next_device;
    return s->nodes ? s->nodes[job] : 0;
}

/* Adds all jobs that can be chosen now or later. */
static void fill_agenda(struct scheduler *s, struct agenda *agenda)
{
    for (uint32_t j = 0; j < s->view.job_count; j++) {
        const struct schedule_builder_view *job = &s->builder->view_jobs[j];
        if (may_go_on(s, j) && job->remaining_s > 0) agenda_add(agenda, j, group_of(s, j), job->ready_s);
    }
}

static enum status make_agenda(struct scheduler *s, struct agenda *out, struct error *err)
{
    uint32_t groups = s->resident ? s->view.device_count
                      : s->nodes  ? hardware_host_count(s->builder->times->hardware)
                                  : 1;
    uint32_t *of_device;
    TRY(ARENA_NEW(&s->arena, s->view.device_count, of_device, err));
    for (uint32_t d = 0; d < s->view.device_count; d++) of_device[d] = s->resident ? d : s->nodes ? host_of(s, d) : 0;
    TRY(agenda_create(&s->arena, s->view.job_count, s->view.device_count, of_device, groups, out, err));
    fill_agenda(s, out);
    return STATUS_OK;
}

static void rank_ready(struct scheduler *s, struct agenda *agenda, uint32_t group, double at)
{
    for (uint32_t j; (j = agenda_wake(agenda, group, at)) != AGENDA_NONE;) {
        s->jobs[j].admitted = true; /* on the asking device's node */
        bool closes = s->near.state == NEAR_CLOSING;
        agenda_rank(agenda, j, group,
                    closes ? schedule_near_rank(&s->near, j) : s->policy->rank(s->session.state, &s->view, j));
    }
}

/* Tells the search for cycles of the other jobs that are ready in the group. */
static void compare_ready(struct scheduler *s, uint32_t group, uint32_t job, double rank)
{
    for (uint32_t j = 0; s->steady.gaps && j < s->view.job_count; j++) {
        const struct schedule_builder_view *other = &s->builder->view_jobs[j];
        if (j == job || !other->admitted || !(other->remaining_s > 0) || other->ready_s > s->view.now ||
            group_of(s, j) != group)
            continue;
        schedule_steady_compared(&s->steady, job, rank, j, s->policy->rank(s->session.state, &s->view, j));
    }
}

/* Returns the job of highest rank that is ready on the device. */
static uint32_t highest(struct scheduler *s, struct agenda *agenda, uint32_t device)
{
    uint32_t group = agenda->group_of[device];
    rank_ready(s, agenda, group, s->view.now);
    double rank = agenda_highest(agenda, group);
    uint32_t job = agenda_pop(agenda, group);
    schedule_steady_decided(&s->steady, s->view.now, job, rank, agenda_highest(agenda, group));
    compare_ready(s, group, job, rank);
    return job;
}

/* Follows policy_place() and policy_emptiest() if each device runs one unit at a time. */
static uint32_t place_of(const struct scheduler *s, const struct agenda *agenda, uint32_t job, uint32_t device)
{
    uint32_t last = s->builder->view_jobs[job].last_device;
    bool asks = !s->policy->emptiest && last != PLAN_NONE && agenda->group_of[last] == agenda->group_of[device] &&
                agenda_free(agenda, last) <= s->view.now;
    return asks ? last : device;
}

/* Continues after a unit. Makes the agenda again after skipped cycles. */
static enum status rank_on(struct scheduler *s, struct schedule *out, struct agenda *agenda, struct error *err)
{
    struct schedule_cycle cycle;
    bool found;
    TRY(look_for_cycles(s, out, &cycle, &found, err));
    if (!found) return STATUS_OK;
    agenda_clear(agenda);
    for (uint32_t d = 0; d < s->view.device_count; d++)
        agenda_set_free(agenda, d, s->builder->devices[d].compute_free_s);
    fill_agenda(s, agenda);
    for (uint32_t g = 0; g < agenda->group_count; g++) {
        double woken_s = agenda->groups[g].woken_s;
        rank_ready(s, agenda, g, woken_s > cycle.old_s ? woken_s + cycle.later_s : woken_s);
    }
    return STATUS_OK;
}

/* Runs a policy that ranks: it always chooses a job if one is ready. */
static enum status run_ranked(struct scheduler *s, struct schedule *out, struct error *err)
{
    struct agenda agenda;
    double start;
    TRY(make_agenda(s, &agenda, err));
    while (s->left > 0) {
        uint32_t seated = s->builder->next_admitted;
        s->view.device = agenda_next(&agenda, &s->view.now);
        if (s->view.device == AGENDA_NONE) return policy_session_stuck(&s->session, &s->view, err);
        s->view.decision = s->session.decisions++;
        uint32_t job = highest(s, &agenda, s->view.device), device = place_of(s, &agenda, job, s->view.device);
        TRY(append(s, job, device, out, &start, err));
        agenda_set_free(&agenda, device, s->builder->devices[device].compute_free_s);
        if (!last_unit(out)->last && may_go_on(s, job))
            agenda_add(&agenda, job, group_of(s, job), s->builder->view_jobs[job].ready_s);
        for (; seated < s->builder->next_admitted; seated++)
            agenda_add(&agenda, seated, group_of(s, seated), s->builder->view_jobs[seated].ready_s);
        TRY(rank_on(s, out, &agenda, err));
    }
    return STATUS_OK;
}

/* --- nodes ----------------------------------------------------------------------------------- */

/* Assigns nodes to spilled jobs on devices of several nodes. */
static enum status find_nodes(struct scheduler *s, struct error *err)
{
    const struct cost_table *times = s->builder->times;
    uint32_t devices = s->builder->device_count, jobs = times->jobs->count;
    if (s->resident || !node_assignment_applies(times->hardware, devices)) return STATUS_OK;
    double *seconds = alloc_zeroed(jobs + 1u, sizeof *seconds);
    s->nodes = alloc_zeroed(jobs + 1u, sizeof *s->nodes);
    s->ready_s = alloc_zeroed(hardware_host_count(times->hardware), sizeof *s->ready_s);
    enum status status = STATUS_OK;
    if (!seconds || !s->nodes || !s->ready_s) status = error_memory(err, "the schedule", jobs * sizeof *seconds);
    for (uint32_t j = 0; !status && j < jobs; j++) seconds[j] = s->builder->view_jobs[j].remaining_s;
    if (!status) status = node_assignment_choose(times->hardware, devices, times->jobs, seconds, s->nodes, err);
    if (!status) schedule_builder_set_nodes(s->builder, s->nodes);
    free(seconds);
    return status;
}

/* --- public ---------------------------------------------------------------------------------- */

enum status schedule_init(struct schedule *schedule, const struct cost_table *times,
                          struct error *err)
{
    uint64_t count = 0;
    *schedule = (struct schedule){0};
    for (uint32_t j = 0; j < times->jobs->count; j++) {
        count += cost_table_unit_count(times, j);
        if (count > PLAN_TASKS_MAX)
            return error_set(err, STATUS_LIMIT, "more than %llu units in the schedule",
                             (unsigned long long)PLAN_TASKS_MAX);
    }
    schedule->units = alloc_zeroed(count + 1, sizeof *schedule->units);
    if (!schedule->units) return error_memory(err, "the schedule", count * sizeof *schedule->units);
    schedule->count = (uint32_t)count;
    schedule->capacity = count + 1;
    return STATUS_OK;
}

enum status schedule_copy_ranges(struct schedule *schedule, const struct schedule_builder *builder, struct error *err)
{
    uint32_t jobs = builder->times->jobs->count;
    if (!builder->times->partition->host.need) return STATUS_OK;
    free(schedule->ranges);
    schedule->ranges = alloc_zeroed(jobs + 1u, sizeof *schedule->ranges);
    if (!schedule->ranges) return error_memory(err, "the schedule", jobs * sizeof *schedule->ranges);
    for (uint32_t j = 0; j < jobs; j++) schedule->ranges[j] = builder->jobs[j].range_offset;
    return STATUS_OK;
}

enum status schedule_link(struct schedule *schedule, uint32_t jobs, uint32_t devices,
                          struct error *err)
{
    uint32_t *of_job = alloc_resize(NULL, ((size_t)jobs + devices) * sizeof *of_job);
    if (!of_job) return error_memory(err, "the schedule", ((size_t)jobs + devices) * sizeof *of_job);
    uint32_t *on_device = of_job + jobs;
    for (uint32_t i = 0; i < jobs + devices; i++) of_job[i] = PLAN_NONE;
    uint32_t joints = schedule->joint_count;
    for (uint32_t i = schedule->count; i-- > 0;) {
        if (joints > 0 && schedule->joints[joints - 1] == i + 1) {
            for (uint32_t k = 0; k < jobs + devices; k++) of_job[k] = PLAN_NONE;
            while (joints > 0 && schedule->joints[joints - 1] == i + 1) joints--;
        }
        struct schedule_unit *unit = &schedule->units[i];
        uint32_t next = of_job[unit->job];
        unit->next_here = next == on_device[unit->device] ? next : PLAN_NONE;
        unit->fetched = next != PLAN_NONE && schedule->units[next].fetches;
        of_job[unit->job] = on_device[unit->device] = i;
    }
    free(of_job);
    return STATUS_OK;
}

enum status schedule_make(const struct cost_table *times, const struct policy *policy,
                          uint64_t seed, bool whole, struct schedule *out, struct error *err)
{
    struct scheduler s = {.policy = policy, .resident = times->partition->resident};
    enum status status = whole ? schedule_init(out, times, err) : STATUS_OK;
    if (!whole) *out = (struct schedule){0};
    out->count = 0;
    for (uint32_t j = 0; j < times->jobs->count; j++) s.left += cost_table_unit_count(times, j);
    if (!status) status = schedule_builder_create(times, policy->one_device, &s.builder, err);
    if (!status) status = find_nodes(&s, err);
    if (status) goto out;
    uint32_t devices = s.builder->device_count;
    uint32_t jobs = times->jobs->count, types = times->hardware->type_count;
    s.not_before_s = alloc_zeroed(devices, sizeof *s.not_before_s);
    s.devices = alloc_zeroed(devices, sizeof *s.devices);
    s.jobs = alloc_zeroed(jobs + 1u, sizeof *s.jobs);
    s.costs = alloc_zeroed((size_t)jobs * types + 1, sizeof *s.costs);
    s.of_type = alloc_zeroed(types, sizeof *s.of_type);
    if (!s.not_before_s || !s.devices || !s.jobs || !s.costs || !s.of_type) {
        status = error_memory(err, "the schedule", devices * sizeof *s.not_before_s);
        goto out;
    }
    s.view = (struct policy_view){.jobs = s.jobs,
                                  .devices = s.devices,
                                  .job_count = jobs,
                                  .device_count = devices,
                                  .kind_count = types,
                                  .seed = seed};
    show_first(&s);
    show_devices(&s, 0);
    status = policy_session_begin(&s.session, policy, &s.view, err);
    if (!status && !whole)
        status = schedule_steady_begin(&s.steady, s.builder, policy->one_device, policy, s.session.state, &s.view,
                                       s.left, err);
    bool ranks = !policy->choose && policy->rank && !policy->commit_ahead && !takes_turns(&s);
    if (!status && !whole)
        status = schedule_near_begin(&s.near, s.builder, policy->one_device, policy, s.left, err);
    if (!status) status = (ranks ? run_ranked : run)(&s, out, err);
    policy_session_end(&s.session);
    if (status) goto out;
    out->makespan_s = s.builder->makespan_s;
    status = schedule_copy_ranges(out, s.builder, err);
    if (!status) status = schedule_link(out, times->jobs->count, devices, err);
out:
    free(s.not_before_s);
    free(s.devices);
    free(s.jobs);
    free(s.costs);
    free(s.of_type);
    free(s.nodes);
    free(s.ready_s);
    arena_release(&s.arena);
    schedule_steady_release(&s.steady);
    schedule_near_release(&s.near);
    schedule_builder_destroy(s.builder);
    if (status) schedule_release(out);
    return status;
}

void schedule_release(struct schedule *schedule)
{
    free(schedule->units);
    free(schedule->bases);
    free(schedule->cycles);
    free(schedule->joints);
    free(schedule->ranges);
    *schedule = (struct schedule){0};
}
