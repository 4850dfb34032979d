/*
 * What is made without settling comes first: its clock is to beat, and its lower bound holds for every plan. Plans of
 * parts are made to be compared and thrown away; equal jobs on equal devices are planned once.
 */
#include "planner/settle.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/extreme.h"
#include "base/size.h"
#include "models/try.h"
#include "planner/leased.h"
#include "planner/partition.h"
#include "planner/policies.h"
#include "planner/settle_divide.h"

/*
 * Jobs for each device; jobs times devices; divisions that are planned where some jobs are left over. Different jobs are
 * planned alone, then with those of their device, and what is left is streamed over the others: 130
 * different ones on 64 devices take 2.3 s, 260 six times as long.
 */
enum { JOBS_EACH_MAX = 8, SETTLED_PAIRS_MAX = 8192, DIVISIONS_MAX = 3 };

/* A plan of a part has to end that much earlier to be taken. */
static const double gain_least = 1e-9;

/* Over the lower bound: other ways to run the same jobs are not tried then. */
static const double near_enough = 1.02;

struct settling {
    const struct hardware *hardware;
    const struct job_set *jobs;
    const struct planner_options *options;
    struct footprints *footprints;
    struct arena arena;
    struct settle_times times;
    uint32_t *like;         /* per job: the lowest that takes as long wherever it is */
    struct settled_part *parts; /* of one device, that are planned already */
    uint32_t part_count, busy;
    struct error *err;
};

/* Jobs of one device; what the best plan of these takes. */
struct settled_part {
    uint32_t *jobs; /* (count) */
    uint32_t count, kind;
    double estimate_s;
    double host_bytes;
};

/* What is to be done instead of streaming everything. */
struct choice {
    const char *policy;     /* on the whole machine; NULL: none of these */
    uint32_t *device;       /* where jobs settle; NULL: they do not */
    double estimate_s;
};

/* --- what is asked for ----------------------------------------------------------------------- */

bool settle_open(const struct planner_options *o)
{
    bool stays = o->activations == PLANNER_AUTO || plan_activations_stay(o->activations);
    bool place = o->optimizer == PLANNER_AUTO || o->optimizer == PLACE_DEVICE;
    return o->settle && !o->policy && !o->live && !o->instance && !o->timetable && !o->swap && stays && place &&
           !o->mixed && o->storage == STORAGE_AUTO && o->cuts == CUTS_GREEDY && o->shards <= 1 && o->regions == 0 &&
           !o->no_double_buffer && !o->no_persistence && o->last == LAST_AUTO;
}

static bool too_many(const struct hardware *hardware, const struct job_set *jobs)
{
    uint64_t devices = hardware->device_count;
    return jobs->count > devices * JOBS_EACH_MAX || jobs->count * devices > SETTLED_PAIRS_MAX;
}

/* None is spread or says where it goes. */
static bool all_free(const struct job_set *jobs)
{
    for (uint32_t j = 0; j < jobs->count; j++)
        if (parallel_is_set(&jobs->jobs[j].parallel) || jobs->jobs[j].devices) return false;
    return true;
}

bool settle_applies(const struct hardware *hardware, const struct job_set *jobs,
                    const struct planner_options *options)
{
    return all_free(jobs) && settle_open(options) && !too_many(hardware, jobs);
}

bool settle_gives_up(const struct hardware *hardware, const struct job_set *jobs, const struct planner_options *options)
{
    return all_free(jobs) && settle_open(options) && too_many(hardware, jobs);
}

/* --- parts ----------------------------------------------------------------------------------- */

static bool any_clips(const struct job *jobs, const struct part *part)
{
    for (uint32_t i = 0; i < part->job_count; i++)
        if (job_clips(&jobs[part->jobs[i]])) return true;
    return false;
}

/* Other devices copy at the same time, and the host's one processor has no time for all of their optimizers. */
static struct planner_options options_beside(const struct hardware *all, const struct part *part, bool clips,
                                             uint32_t busy, const struct planner_options *options)
{
    struct planner_options own = *options;
    own.settle = false;
    if (busy <= part->device_count) return own;
    own.contention = partition_contention(all, busy);
    if (own.optimizer == PLANNER_AUTO && !clips) own.optimizer = PLACE_DEVICE;
    return own;
}

/* Ways to run jobs on a device, in the order in which they are tried. */
static const struct way {
    const struct policy *policy; /* NULL: streamed, as ever */
    bool several;                /* for several jobs alone */
} ways[] = {{&policy_model_parallel, false}, {&policy_shard_parallel, true}, {NULL, false}, {&policy_spill_sequential, true}};

/* Jobs that clip need the host's processor, and states that stay have none. */
static bool way_open(const struct way *way, uint32_t job_count, bool clips)
{
    bool stays = way->policy && way->policy->resident;
    return !(way->several && job_count == 1) && !(stays && clips);
}

/* `trial` takes the place of *best where that is none or ends later; else it is released. */
static void keep_earlier(struct plan *trial, struct plan *best, bool *found)
{
    if (*found && trial->estimated_makespan_s >= best->estimated_makespan_s) {
        plan_release(trial);
        return;
    }
    if (*found) plan_release(best);
    *best = *trial;
    *found = true;
}

/* The best way on one device, or one near the bound of all. Errors: of streaming where there is none. */
static enum status best_way(const struct hardware *all, const struct job *from, const struct part *part,
                            double host_bytes, struct planner_options *own, struct plan *out, struct error *err)
{
    bool clips = any_clips(from, part), found = false;
    struct error streamed = {0};
    for (size_t w = 0; w < ARRAY_COUNT(ways); w++) {
        struct plan trial = {0};
        struct error why = {0};
        if (!way_open(&ways[w], part->job_count, clips)) continue;
        if (found && out->estimated_makespan_s <= near_enough * out->lower_bound_s) break;
        own->policy = ways[w].policy ? ways[w].policy->name : NULL;
        enum status status = part_plan(all, from, part, NULL, host_bytes, own, &trial, &why);
        if (status == STATUS_OK) keep_earlier(&trial, out, &found);
        if (!ways[w].policy) streamed = why;
        if (status == STATUS_OK || status == STATUS_INFEASIBLE) continue;
        if (found) plan_release(out);
        *err = why;
        return status;
    }
    if (!found) *err = streamed;
    return found ? STATUS_OK : STATUS_INFEASIBLE;
}

enum status settle_part(const struct hardware *all, const struct job *from, const struct part *part,
                        uint32_t busy, double host_bytes, const struct planner_options *options,
                        struct plan *out, struct error *err)
{
    if (!settle_open(options)) return part_plan(all, from, part, NULL, host_bytes, options, out, err);
    struct planner_options own = options_beside(all, part, any_clips(from, part), busy, options);
    enum status status = part->device_count > 1 ? part_plan(all, from, part, NULL, host_bytes, &own, out, err)
                                                : best_way(all, from, part, host_bytes, &own, out, err);
    if (status != STATUS_INFEASIBLE) return status;
    *err = (struct error){0}; /* the host's processor may have to have optimizers */
    own = *options;
    own.settle = false;
    return part_plan(all, from, part, NULL, host_bytes, &own, out, err);
}

/* --- times of parts -------------------------------------------------------------------------- */

static enum status take(struct settling *s, size_t count, size_t size, void *out)
{
    void *memory;
    TRY(arena_array(&s->arena, count, size, &memory, s->err));
    memcpy(out, &memory, sizeof memory);
    return STATUS_OK;
}

/* Seconds of a part's best plan, and what it needs in host memory; infinite: none fits. */
static enum status time_part(struct settling *s, const struct part *part, double *seconds, double *host_bytes)
{
    struct plan plan = {0};
    struct error why = {0};
    *seconds = HUGE_VAL;
    *host_bytes = 0;
    enum status status = settle_part(s->hardware, s->jobs->jobs, part, s->busy, s->hardware->host_bytes.value,
                                     s->options, &plan, &why);
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

static bool same_jobs(const struct settling *s, const struct settled_part *a, const uint32_t *jobs, uint32_t count)
{
    if (a->count != count) return false;
    for (uint32_t i = 0; i < count; i++)
        if (s->like[a->jobs[i]] != s->like[jobs[i]]) return false;
    return true;
}

/* Of these jobs, ascending, on one device. */
static enum status time_device(struct settling *s, uint32_t device, const uint32_t *jobs, uint32_t count,
                               const struct settled_part **out)
{
    uint32_t kind = s->hardware->devices[device].type;
    for (uint32_t i = 0; i < s->part_count; i++)
        if (s->parts[i].kind == kind && same_jobs(s, &s->parts[i], jobs, count)) {
            *out = &s->parts[i];
            return STATUS_OK;
        }
    struct settled_part *made = &s->parts[s->part_count];
    *made = (struct settled_part){.count = count, .kind = kind};
    TRY(take(s, count, sizeof *jobs, &made->jobs));
    memcpy(made->jobs, jobs, count * sizeof *jobs);
    const struct part part = {.jobs = jobs, .devices = &device, .job_count = count, .device_count = 1};
    TRY(time_part(s, &part, &made->estimate_s, &made->host_bytes));
    s->part_count++;
    *out = made;
    return STATUS_OK;
}

/* --- jobs alone ------------------------------------------------------------------------------ */

static bool as_long(const struct settling *s, uint32_t a, uint32_t b)
{
    const struct job *x = &s->jobs->jobs[a], *y = &s->jobs->jobs[b];
    return footprint_twin(s->footprints, a) == footprint_twin(s->footprints, b) && x->minibatches == y->minibatches &&
           x->first_minibatch == y->first_minibatch && x->evaluation.every == y->evaluation.every &&
           x->evaluation.minibatches == y->evaluation.minibatches;
}

static uint32_t device_of_kind(const struct hardware *hardware, uint32_t kind)
{
    uint32_t d = 0;
    while (d < hardware->device_count && hardware->devices[d].type != kind) d++;
    return d;
}

/* *fits false: some job does so on no device alone. */
static enum status time_jobs(struct settling *s, bool *fits)
{
    uint32_t jobs = s->jobs->count, devices = s->hardware->device_count, kinds = s->hardware->type_count;
    uint32_t *kind, *longest;
    double *alone;
    TRY(take(s, (size_t)jobs * kinds, sizeof *alone, &alone));
    TRY(take(s, devices, sizeof *kind, &kind));
    TRY(take(s, jobs, sizeof *longest, &longest));
    TRY(take(s, jobs, sizeof *s->like, &s->like));
    /* each job alone on each kind; each device of all divisions */
    TRY(take(s, (size_t)jobs * kinds + (DIVISIONS_MAX + 1) * devices, sizeof *s->parts, &s->parts));
    for (uint32_t j = 0; j < jobs; j++) {
        s->like[j] = 0;
        while (!as_long(s, s->like[j], j)) s->like[j]++;
    }
    *fits = true;
    for (uint32_t j = 0; j < jobs; j++) {
        bool somewhere = false;
        for (uint32_t k = 0; k < kinds; k++) {
            const struct settled_part *part = NULL;
            uint32_t device = device_of_kind(s->hardware, k);
            if (device < devices) TRY(time_device(s, device, &j, 1, &part));
            alone[(size_t)j * kinds + k] = part ? part->estimate_s : HUGE_VAL;
            somewhere |= part && part->estimate_s < HUGE_VAL;
        }
        *fits &= somewhere;
    }
    for (uint32_t d = 0; d < devices; d++) kind[d] = s->hardware->devices[d].type;
    s->times = (struct settle_times){.alone_s = alone, .kind = kind, .longest = longest, .job_count = jobs,
                                     .device_count = devices, .kind_count = kinds};
    if (*fits) settle_order(&s->times, longest);
    return STATUS_OK;
}

/* --- divisions ------------------------------------------------------------------------------- */

static uint32_t jobs_of(const struct settling *s, const uint32_t *device_of, uint32_t device, uint32_t *jobs)
{
    uint32_t count = 0;
    for (uint32_t j = 0; j < s->jobs->count; j++)
        if (device_of[j] == device) jobs[count++] = j;
    return count;
}

/* By the plans of all its parts; infinite where one fits in no way, or host memory does not hold them together. */
static enum status time_division(struct settling *s, const uint32_t *device_of, double *seconds)
{
    uint32_t devices = s->hardware->device_count, *jobs, *left, left_devices = 0, count;
    double host_bytes = 0, part_s, part_bytes;
    TRY(take(s, s->jobs->count, sizeof *jobs, &jobs));
    TRY(take(s, devices, sizeof *left, &left));
    *seconds = 0;
    for (uint32_t d = 0; d < devices; d++) {
        const struct settled_part *part;
        count = jobs_of(s, device_of, d, jobs);
        if (count == 0) left[left_devices++] = d;
        if (count == 0) continue;
        TRY(time_device(s, d, jobs, count, &part));
        *seconds = max_s(*seconds, part->estimate_s);
        host_bytes += part->host_bytes;
    }
    count = jobs_of(s, device_of, SETTLED_NOWHERE, jobs);
    if (count > 0) {
        const struct part rest = {.jobs = jobs, .devices = left, .job_count = count, .device_count = left_devices};
        TRY(time_part(s, &rest, &part_s, &part_bytes));
        *seconds = max_s(*seconds, part_s);
        host_bytes += part_bytes;
    }
    if (host_bytes > s->hardware->host_bytes.value) *seconds = HUGE_VAL;
    return STATUS_OK;
}

static enum status try_division(struct settling *s, const struct settle_division *division, struct choice *best)
{
    double seconds;
    TRY(time_division(s, division->device, &seconds));
    if (seconds >= best->estimate_s * (1 - gain_least)) return STATUS_OK;
    *best = (struct choice){.estimate_s = seconds};
    TRY(take(s, s->jobs->count, sizeof *best->device, &best->device));
    memcpy(best->device, division->device, s->jobs->count * sizeof *best->device);
    return STATUS_OK;
}

/* What a division may come to: what is left takes as much longer than alone as everything did, streamed. */
static double outlook_s(const struct settle_division *division, double slowed)
{
    return max_s(division->settled_s, division->left_s * slowed);
}

/* The number of settled devices that promises most, behind those that promised up to *tried_s; 0: none does. */
static uint32_t next_division(const struct settling *s, double slowed, double *tried_s, struct settle_division *division)
{
    uint32_t next = 0, devices = s->hardware->device_count;
    double next_s = HUGE_VAL;
    for (uint32_t m = 1; m < devices; m++) {
        settle_divide(&s->times, m, division);
        double outlook = outlook_s(division, slowed);
        if (division->left_count <= devices - m || outlook <= *tried_s || outlook >= next_s) continue;
        next = m;
        next_s = outlook;
    }
    *tried_s = next_s;
    return next;
}

/* All jobs settled; then with some left, in the order of what they may come to. */
static enum status try_divisions(struct settling *s, struct choice *best)
{
    struct settle_division division = {0};
    uint32_t devices = s->hardware->device_count;
    double slowed = max_s(1, best->estimate_s / settle_share_s(&s->times)), tried_s = 0;
    TRY(take(s, s->jobs->count, sizeof *division.device, &division.device));
    TRY(take(s, devices, sizeof *division.load_s, &division.load_s));
    settle_divide(&s->times, devices, &division);
    if (division.settled_s < HUGE_VAL) TRY(try_division(s, &division, best));
    for (uint32_t tried = 0; tried < DIVISIONS_MAX; tried++) {
        uint32_t settled = next_division(s, slowed, &tried_s, &division);
        if (settled == 0 || tried_s >= best->estimate_s) return STATUS_OK;
        settle_divide(&s->times, settled, &division);
        TRY(try_division(s, &division, best));
    }
    return STATUS_OK;
}

/* --- the whole machine ----------------------------------------------------------------------- */

/* One device: other ways than streaming. Several: with the stages of several jobs resident on all of them. */
static enum status try_policies(struct settling *s, struct choice *best)
{
    uint32_t *all, *devices, count = s->hardware->device_count;
    TRY(take(s, s->jobs->count, sizeof *all, &all));
    TRY(take(s, count, sizeof *devices, &devices));
    for (uint32_t j = 0; j < s->jobs->count; j++) all[j] = j;
    for (uint32_t d = 0; d < count; d++) devices[d] = d;
    const struct part part = {.jobs = all, .devices = devices, .job_count = s->jobs->count, .device_count = count};
    struct planner_options own = *s->options;
    bool clips = any_clips(s->jobs->jobs, &part);
    own.settle = false;
    for (size_t w = 0; w < ARRAY_COUNT(ways); w++) {
        const struct policy *policy = ways[w].policy;
        struct plan plan = {0};
        struct error why = {0};
        if (!policy || !way_open(&ways[w], part.job_count, clips)) continue;
        bool on_all = policy->resident && policy->seats_max > 1; /* the others have one device compute at a time */
        if (count > 1 && !on_all) continue;
        own.policy = policy->name;
        enum status status = part_plan(s->hardware, s->jobs->jobs, &part, NULL, s->hardware->host_bytes.value, &own,
                                       &plan, &why);
        if (status == STATUS_INFEASIBLE) continue;
        if (status) {
            *s->err = why;
            return status;
        }
        if (plan.estimated_makespan_s < best->estimate_s * (1 - gain_least))
            *best = (struct choice){.policy = policy->name, .estimate_s = plan.estimated_makespan_s};
        plan_release(&plan);
    }
    return STATUS_OK;
}

static enum status choose(struct settling *s, struct choice *best)
{
    bool fits;
    TRY(try_policies(s, best));
    if (s->hardware->device_count == 1) return STATUS_OK;
    TRY(footprints_create(s->hardware, s->jobs, &s->footprints, s->err));
    TRY(time_jobs(s, &fits));
    return fits ? try_divisions(s, best) : STATUS_OK;
}

/* --- the plan -------------------------------------------------------------------------------- */

/* As if the file had said so. */
static enum status name_devices(struct job_set *jobs, const uint32_t *device, struct error *err)
{
    for (uint32_t j = 0; j < jobs->count; j++) {
        void *memory;
        if (device[j] == SETTLED_NOWHERE) continue;
        TRY(arena_array(&jobs->arena, 1, sizeof *device, &memory, err));
        memcpy(memory, &device[j], sizeof *device);
        jobs->jobs[j].devices = memory;
        jobs->jobs[j].device_count = 1;
    }
    return STATUS_OK;
}

/* The machine and the jobs of `plan` in another plan, which takes its place, with its bound: that is of every plan. */
static enum status plan_anew(struct plan *plan, const struct choice *choice, const struct planner_options *options,
                             struct error *err)
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
    own.settle = choice->device != NULL;
    if (choice->device && name_devices(&jobs, choice->device, err)) {
        hardware_release(&hardware);
        job_set_release(&jobs);
        return err->status;
    }
    TRY(planner_plan(&hardware, &jobs, &own, plan, err));
    if (!choice->device) return STATUS_OK;
    plan->lower_bound_s = bound_s;
    plan->bound_kind = kind;
    return arena_string(&plan->arena, text, &plan->bound_text, err);
}

enum status settle_plan(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                        struct plan *out, struct error *err)
{
    struct planner_options streamed = *options;
    streamed.settle = false;
    TRY(planner_plan(hardware, jobs, &streamed, out, err));
    struct settling s = {.hardware = &out->hardware, .jobs = &out->jobs, .options = options,
                         .busy = min_u32(out->jobs.count, out->hardware.device_count), .err = err};
    struct choice best = {.estimate_s = out->estimated_makespan_s};
    enum status status = choose(&s, &best);
    footprints_destroy(s.footprints);
    if (!status && (best.policy || best.device)) status = plan_anew(out, &best, options, err);
    arena_release(&s.arena);
    if (status) plan_release(out);
    return status;
}
