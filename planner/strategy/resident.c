/*
 * The plan without resident placement comes first: its clock is to beat, and its lower bound holds for every plan.
 * Subproblems are planned only to compare; equal jobs on equal devices once.
 */
#include "planner/strategy/resident.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/extreme.h"
#include "base/hash.h"
#include "base/try.h"
#include "planner/policy/policies.h"
#include "planner/spill/cut/host_need.h"
#include "planner/strategy/direct.h"
#include "planner/strategy/reservation.h"
#include "planner/strategy/resident_divide.h"
#include "planner/strategy/resident_subproblem.h"

/* How many divisions with jobs left over are planned, and examined: numbers of resident devices, in equal steps. */
enum { DIVISIONS_MAX = 3, DIVISIONS_SEEN = 64 };

/* A plan of a subproblem is used only if it ends earlier by this share. */
static const double gain_least = 1e-9;

struct resident_search {
    const struct hardware *hardware;
    const struct job_set *jobs;
    const struct planner_options *options;
    struct footprints *footprints;
    struct arena arena;
    struct resident_times times;
    uint32_t *like;         /* per job: the lowest job with equal times everywhere */
    uint32_t *kind_device;  /* per kind: the first device; device_count: none */
    struct resident_timed *timed; /* jobs of one device, already planned */
    uint32_t *slots;        /* 1 + an index of `timed`, by hash; (slot_count), a power of two, at most half full */
    uint32_t slot_count;
    uint32_t timed_count;
    struct resident_company company;
    double subproblem_bytes; /* host memory of each subproblem */
    struct error *err;
};

struct resident_timed {
    uint32_t *jobs; /* (count) */
    uint32_t count, kind;
    double estimate_s;
    double host_bytes;
};

/* A decision other than spilling everything. */
struct resident_choice {
    const char *policy;     /* for the whole machine; NULL: none */
    uint32_t *device;       /* per job: its device; NULL: no job stays */
    double estimate_s;
};

bool resident_all_free(const struct job_set *jobs)
{
    for (uint32_t j = 0; j < jobs->count; j++)
        if (parallel_is_set(&jobs->jobs[j].parallel) || jobs->jobs[j].devices) return false;
    return true;
}

bool resident_applies(const struct hardware *hardware, const struct job_set *jobs,
                      const struct planner_options *options)
{
    (void)hardware;
    return resident_all_free(jobs) && resident_allowed(options);
}

/* --- times of subproblems -------------------------------------------------------------------------- */

/* Computes the seconds of a subproblem's best plan, and its need of host memory; infinite: none fits. */
static enum status time_subproblem(struct resident_search *s, const struct subproblem *subproblem, double *seconds,
                                   double *host_bytes)
{
    struct plan plan = {0};
    struct error why = {0};
    *seconds = HUGE_VAL;
    *host_bytes = 0;
    enum status status = resident_subproblem_plan(s->hardware, s->jobs->jobs, subproblem, &s->company,
                                                  s->subproblem_bytes, s->options, &plan, &why);
    if (status == STATUS_INFEASIBLE) return STATUS_OK;
    if (status) {
        *s->err = why;
        return status;
    }
    *seconds = plan.estimated_makespan_s;
    *host_bytes = (double)plan_host_bytes(&plan);
    plan_release(&plan);
    return STATUS_OK;
}

static uint64_t hash_jobs(const struct resident_search *s, uint32_t kind, const uint32_t *jobs, uint32_t count)
{
    uint64_t hash = hash_bytes(HASH_BEGIN, &kind, sizeof kind);
    for (uint32_t i = 0; i < count; i++) hash = hash_bytes(hash, &s->like[jobs[i]], sizeof *s->like);
    return hash;
}

static bool same_jobs(const struct resident_search *s, const struct resident_timed *a, const uint32_t *jobs,
                      uint32_t count)
{
    if (a->count != count) return false;
    for (uint32_t i = 0; i < count; i++)
        if (s->like[a->jobs[i]] != s->like[jobs[i]]) return false;
    return true;
}

static enum status time_device(struct resident_search *s, uint32_t device, const uint32_t *jobs, uint32_t count,
                               const struct resident_timed **out)
{
    uint32_t kind = s->hardware->devices[device].type;
    uint64_t slot = hash_jobs(s, kind, jobs, count) % s->slot_count;
    for (; s->slots[slot] > 0; slot = (slot + 1) % s->slot_count) {
        *out = &s->timed[s->slots[slot] - 1];
        if ((*out)->kind == kind && same_jobs(s, *out, jobs, count)) return STATUS_OK;
    }
    struct resident_timed *made = &s->timed[s->timed_count];
    *made = (struct resident_timed){.count = count, .kind = kind};
    TRY(ARENA_NEW(&s->arena, count, made->jobs, s->err));
    memcpy(made->jobs, jobs, count * sizeof *jobs);
    const struct subproblem subproblem = {.jobs = jobs, .devices = &device, .job_count = count, .device_count = 1};
    TRY(time_subproblem(s, &subproblem, &made->estimate_s, &made->host_bytes));
    s->slots[slot] = ++s->timed_count;
    *out = made;
    return STATUS_OK;
}
/* --- single jobs ----------------------------------------------------------------------------- */

/* The properties that determine a job's time, except its place. */
struct likeness {
    uint64_t minibatches, first_minibatch, held_out_every, held_out;
    uint32_t twin, job;
};

static int compare_likeness(const void *left, const void *right)
{
    return memcmp(left, right, offsetof(struct likeness, job));
}

static int compare_likeness_and_job(const void *left, const void *right)
{
    const struct likeness *a = left, *b = right;
    int order = compare_likeness(a, b);
    return order ? order : a->job < b->job ? -1 : 1;
}

static enum status find_alike(struct resident_search *s)
{
    struct likeness *all;
    uint32_t count = s->jobs->count;
    TRY(ARENA_NEW(&s->arena, count, all, s->err));
    TRY(ARENA_NEW(&s->arena, count, s->like, s->err));
    for (uint32_t j = 0; j < count; j++) {
        const struct job *job = &s->jobs->jobs[j];
        all[j] = (struct likeness){.minibatches = job->minibatches, .first_minibatch = job->first_minibatch,
                                   .held_out_every = job->evaluation.every, .held_out = job->evaluation.minibatches,
                                   .twin = footprint_twin(s->footprints, j), .job = j};
    }
    qsort(all, count, sizeof *all, compare_likeness_and_job);
    for (uint32_t i = 0; i < count; i++)
        s->like[all[i].job] = i > 0 && compare_likeness(&all[i - 1], &all[i]) == 0 ? s->like[all[i - 1].job]
                                                                                   : all[i].job;
    return STATUS_OK;
}

/* Allocates tables for each job on each kind of device, and each device of all divisions. */
static enum status allocate_tables(struct resident_search *s)
{
    uint32_t devices = s->hardware->device_count, kinds = s->hardware->type_count;
    size_t subproblems = (size_t)s->jobs->count * kinds + (size_t)(DIVISIONS_MAX + 1) * devices;
    TRY(ARENA_NEW(&s->arena, subproblems, s->timed, s->err));
    for (s->slot_count = 2; s->slot_count < 2 * subproblems;) s->slot_count *= 2;
    TRY(ARENA_NEW(&s->arena, s->slot_count, s->slots, s->err));
    TRY(ARENA_NEW(&s->arena, kinds, s->kind_device, s->err));
    for (uint32_t k = 0; k < kinds; k++) s->kind_device[k] = devices;
    for (uint32_t d = devices; d-- > 0;) s->kind_device[s->hardware->devices[d].type] = d;
    return STATUS_OK;
}

/* Times each job by itself. *fits is false if a job fits on no device. */
static enum status time_jobs(struct resident_search *s, bool *fits)
{
    uint32_t jobs = s->jobs->count, devices = s->hardware->device_count, kinds = s->hardware->type_count;
    uint32_t *kind, *longest;
    double *alone;
    TRY(ARENA_NEW(&s->arena, (size_t)jobs * kinds, alone, s->err));
    TRY(ARENA_NEW(&s->arena, devices, kind, s->err));
    TRY(ARENA_NEW(&s->arena, jobs, longest, s->err));
    TRY(find_alike(s));
    TRY(allocate_tables(s));
    *fits = true;
    for (uint32_t j = 0; j < jobs; j++) {
        bool somewhere = false;
        for (uint32_t k = 0; k < kinds; k++) {
            const struct resident_timed *subproblem = NULL;
            if (s->kind_device[k] < devices) TRY(time_device(s, s->kind_device[k], &j, 1, &subproblem));
            alone[(size_t)j * kinds + k] = subproblem ? subproblem->estimate_s : HUGE_VAL;
            somewhere |= subproblem && subproblem->estimate_s < HUGE_VAL;
        }
        *fits &= somewhere;
    }
    for (uint32_t d = 0; d < devices; d++) kind[d] = s->hardware->devices[d].type;
    s->times = (struct resident_times){.alone_s = alone, .kind = kind, .longest = longest, .job_count = jobs,
                                       .device_count = devices, .kind_count = kinds};
    if (*fits) resident_order(&s->times, longest);
    return STATUS_OK;
}

/* --- divisions ------------------------------------------------------------------------------- */

/* Jobs by device, ascending; jobs left over come last. */
struct resident_shares {
    uint32_t *jobs;  /* (job count) */
    uint32_t *begin; /* (device count + 2): start of each device's jobs, then of the jobs left over, then the end */
};

static enum status share_out(struct resident_search *s, const uint32_t *device_of, struct resident_shares *out)
{
    uint32_t jobs = s->jobs->count, devices = s->hardware->device_count;
    TRY(ARENA_NEW(&s->arena, jobs, out->jobs, s->err));
    TRY(ARENA_NEW(&s->arena, (size_t)devices + 2, out->begin, s->err));
    for (uint32_t j = 0; j < jobs; j++) out->begin[min_u32(device_of[j], devices)]++;
    for (uint32_t d = 0; d <= devices; d++) out->begin[d + 1] += out->begin[d];
    for (uint32_t j = jobs; j-- > 0;) out->jobs[--out->begin[min_u32(device_of[j], devices)]] = j;
    return STATUS_OK;
}

/* Times a division by its subproblems' plans; infinite if one does not fit, or host memory is too small for all. */
static enum status time_division(struct resident_search *s, const uint32_t *device_of, double *seconds)
{
    uint32_t devices = s->hardware->device_count, *left, left_devices = 0, count;
    double host_bytes = 0, subproblem_s, subproblem_bytes;
    struct resident_shares shares;
    TRY(share_out(s, device_of, &shares));
    TRY(ARENA_NEW(&s->arena, devices, left, s->err));
    *seconds = 0;
    for (uint32_t d = 0; d < devices; d++) {
        const struct resident_timed *subproblem;
        count = shares.begin[d + 1] - shares.begin[d];
        if (count == 0) left[left_devices++] = d;
        if (count == 0) continue;
        TRY(time_device(s, d, shares.jobs + shares.begin[d], count, &subproblem));
        *seconds = max_s(*seconds, subproblem->estimate_s);
        host_bytes += subproblem->host_bytes;
    }
    count = shares.begin[devices + 1] - shares.begin[devices];
    if (count > 0) {
        const struct subproblem rest = {.jobs = shares.jobs + shares.begin[devices], .devices = left,
                                        .job_count = count,
                                        .device_count = left_devices};
        TRY(time_subproblem(s, &rest, &subproblem_s, &subproblem_bytes));
        *seconds = max_s(*seconds, subproblem_s);
        host_bytes += subproblem_bytes;
    }
    if (host_bytes > s->hardware->host_bytes.value) *seconds = HUGE_VAL;
    return STATUS_OK;
}

static enum status try_division(struct resident_search *s, const struct resident_division *division,
                                struct resident_choice *best)
{
    double seconds;
    TRY(time_division(s, division->device, &seconds));
    if (seconds >= best->estimate_s * (1 - gain_least)) return STATUS_OK;
    *best = (struct resident_choice){.estimate_s = seconds};
    TRY(ARENA_NEW(&s->arena, s->jobs->count, best->device, s->err));
    memcpy(best->device, division->device, s->jobs->count * sizeof *best->device);
    return STATUS_OK;
}

/* Returns the expected seconds of a division: jobs left over are slowed as all jobs were when spilled. */
static double outlook_s(const struct resident_division *division, double slowed)
{
    return max_s(division->resident_s, division->left_s * slowed);
}

/* A number of devices with resident jobs, and its expected seconds. */
struct prospect {
    double outlook_s;
    uint32_t resident;
};

static int compare_prospects(const void *left, const void *right)
{
    const struct prospect *a = left, *b = right;
    if (a->outlook_s < b->outlook_s || a->outlook_s > b->outlook_s) return a->outlook_s < b->outlook_s ? -1 : 1;
    return a->resident < b->resident ? -1 : 1;
}

/* Finds divisions with at least one job left over for each other device, the most promising first. */
static uint32_t find_prospects(const struct resident_search *s, double slowed, struct resident_division *division,
                               struct prospect out[DIVISIONS_SEEN])
{
    uint32_t devices = s->hardware->device_count, steps = min_u32(devices - 1, DIVISIONS_SEEN), count = 0;
    for (uint32_t i = 1; i <= steps; i++) {
        uint32_t resident = (uint32_t)((uint64_t)i * (devices - 1) / steps);
        resident_divide(&s->times, resident, division);
        if (division->left_count <= devices - resident) continue;
        out[count++] = (struct prospect){outlook_s(division, slowed), resident};
    }
    qsort(out, count, sizeof *out, compare_prospects);
    return count;
}

/* Tries all jobs resident; then divisions with jobs left over, in the order of their expected seconds. */
static enum status try_divisions(struct resident_search *s, struct resident_choice *best)
{
    struct resident_division division = {0};
    struct prospect prospects[DIVISIONS_SEEN];
    uint32_t devices = s->hardware->device_count, tried = 0;
    double slowed = max_s(1, best->estimate_s / resident_share_s(&s->times)), tried_s = 0;
    TRY(ARENA_NEW(&s->arena, s->jobs->count, division.device, s->err));
    TRY(ARENA_NEW(&s->arena, devices, division.load_s, s->err));
    TRY(ARENA_NEW(&s->arena, devices, division.order, s->err));
    TRY(ARENA_NEW(&s->arena, s->hardware->type_count, division.kind_end, s->err));
    resident_divide(&s->times, devices, &division);
    if (division.resident_s < HUGE_VAL) TRY(try_division(s, &division, best));
    uint32_t count = find_prospects(s, slowed, &division, prospects);
    for (uint32_t i = 0; i < count && tried < DIVISIONS_MAX; i++) {
        if (prospects[i].outlook_s >= best->estimate_s) return STATUS_OK;
        if (prospects[i].outlook_s <= tried_s) continue; /* no better than the one before */
        tried_s = prospects[i].outlook_s;
        tried++;
        resident_divide(&s->times, prospects[i].resident, &division);
        TRY(try_division(s, &division, best));
    }
    return STATUS_OK;
}

/* --- the whole machine ----------------------------------------------------------------------- */

/* Tries ways other than spilling; on several devices also stages of several jobs, resident on all of them. */
static enum status try_policies(struct resident_search *s, struct resident_choice *best)
{
    uint32_t *all, *devices, count = s->hardware->device_count;
    TRY(ARENA_NEW(&s->arena, s->jobs->count, all, s->err));
    TRY(ARENA_NEW(&s->arena, count, devices, s->err));
    for (uint32_t j = 0; j < s->jobs->count; j++) all[j] = j;
    for (uint32_t d = 0; d < count; d++) devices[d] = d;
    const struct subproblem subproblem = {.jobs = all, .devices = devices, .job_count = s->jobs->count,
                                          .device_count = count};
    struct planner_options own = *s->options;
    const struct policy *ways[RESIDENT_WAYS_MAX];
    size_t way_count = resident_ways(s->jobs->jobs, &subproblem, ways);
    own.resident = false;
    for (size_t w = 0; w < way_count; w++) {
        const struct policy *policy = ways[w];
        struct plan plan = {0};
        struct error why = {0};
        if (!policy) continue;
        bool on_all = policy->resident && policy->seats_max > 1; /* with other policies one device computes at a time */
        if (count > 1 && !on_all) continue;
        own.policy = policy->name;
        enum status status = subproblem_plan(s->hardware, s->jobs->jobs, &subproblem, NULL,
                                             s->hardware->host_bytes.value, &own, &plan, &why);
        if (status == STATUS_INFEASIBLE) continue;
        if (status) {
            *s->err = why;
            return status;
        }
        if (plan.estimated_makespan_s < best->estimate_s * (1 - gain_least))
            *best = (struct resident_choice){.policy = policy->name, .estimate_s = plan.estimated_makespan_s};
        plan_release(&plan);
    }
    return STATUS_OK;
}

static enum status choose(struct resident_search *s, struct resident_choice *best)
{
    bool fits;
    TRY(try_policies(s, best));
    if (s->hardware->device_count == 1) return STATUS_OK;
    TRY(footprints_create(s->hardware, s->jobs, &s->footprints, s->err));
    TRY(time_jobs(s, &fits));
    return fits ? try_divisions(s, best) : STATUS_OK;
}

/* --- the plan -------------------------------------------------------------------------------- */

/* Sets devices as if the jobs file had named them. */
static enum status name_devices(struct job_set *jobs, const uint32_t *device, struct error *err)
{
    for (uint32_t j = 0; j < jobs->count; j++) {
        uint32_t *only;
        if (device[j] == RESIDENT_NOWHERE) continue;
        TRY(ARENA_NEW(&jobs->arena, 1, only, err));
        *only = device[j];
        jobs->jobs[j].devices = only;
        jobs->jobs[j].device_count = 1;
    }
    return STATUS_OK;
}

/* Plans again with the machine and the jobs of `plan`. Keeps the bound, which holds for every plan. */
static enum status plan_anew(struct plan *plan, const struct resident_choice *choice,
                             const struct planner_options *options, struct error *err)
{
    struct hardware hardware = plan->hardware;
    struct job_set jobs = plan->jobs;
    char text[512];
    double bound_s = plan->lower_bound_s;
    uint32_t kind = plan->bound_kind;
    snprintf(text, sizeof text, "%s", plan->bound_text);
    plan->hardware = (struct hardware){0};
    plan->jobs = (struct job_set){0};
    plan_release(plan);
    *plan = (struct plan){0};
    struct planner_options own = *options;
    own.policy = choice->policy;
    own.resident = choice->device != NULL;
    if (choice->device && name_devices(&jobs, choice->device, err)) {
        hardware_release(&hardware);
        job_set_release(&jobs);
        return err->status;
    }
    if (!choice->device) return direct_plan(&hardware, &jobs, &own, plan, err);
    TRY(reservation_plan(&hardware, &jobs, &own, plan, err));
    plan->lower_bound_s = bound_s;
    plan->bound_kind = kind;
    return arena_string(&plan->arena, text, &plan->bound_text, err);
}

enum status resident_plan(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                          struct plan *out, struct error *err)
{
    struct planner_options spilled = *options;
    spilled.resident = false;
    TRY(direct_plan(hardware, jobs, &spilled, out, err));
    uint32_t busy = min_u32(out->jobs.count, out->hardware.device_count);
    struct resident_search s = {.hardware = &out->hardware, .jobs = &out->jobs, .options = options,
                                .company = resident_company(&out->hardware, busy), .err = err};
    bool turns = host_states_exceed(s.hardware, s.jobs, hardware_host_count(s.hardware));
    s.subproblem_bytes = s.hardware->host_bytes.value / (turns ? busy : 1);
    struct resident_choice best = {.estimate_s = out->estimated_makespan_s};
    enum status status = choose(&s, &best);
    footprints_destroy(s.footprints);
    if (!status && (best.policy || best.device)) status = plan_anew(out, &best, options, err);
    arena_release(&s.arena);
    if (status) plan_release(out);
    return status;
}
