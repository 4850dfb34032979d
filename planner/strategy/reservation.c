/*
 * Jobs become groups with lists of devices, in the file's order. Each is planned as a subproblem
 * (planner/strategy/subproblem.h), on one device in the best of several ways (planner/strategy/resident.h), and begins
 * when its devices are free by these plans' clocks. planner/strategy/plan_merge.h merges them.
 */
#include "planner/strategy/reservation.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/try.h"
#include "planner/spill/cut/host_need.h"
#include "planner/strategy/resident_subproblem.h"
#include "planner/strategy/plan_merge.h"
#include "planner/strategy/subproblem.h"

const char reservation_policy[] = "resident placement";

struct group {
    struct subproblem subproblem;
    uint32_t *jobs; /* the array of subproblem.jobs */
    uint32_t job_count; /* so far */
    bool parallel;
    struct plan plan;
    double begin_s;
};

struct reservation_groups {
    const struct hardware *hardware;
    const struct job_set *jobs;
    const struct planner_options *options;
    struct arena arena;
    struct group *groups;
    uint32_t count;
    uint32_t *group_of;  /* per job */
    uint32_t *last_of;   /* per device: 1 + its last group; 0: none */
    uint32_t *left;      /* devices for jobs that name none */
    uint32_t left_count;
    double *free_s;      /* per device */
    struct subproblem_hosts hosts; /* free memory of hosts */
    struct error *err;
};

bool reservation_applies(const struct hardware *hardware, const struct job_set *jobs,
                         const struct planner_options *options)
{
    (void)options;
    uint32_t parallel = 0;
    for (uint32_t j = 0; j < jobs->count; j++) {
        if (jobs->jobs[j].devices) return true;
        if (hardware->device_count > 1 && parallel_is_alone(hardware, &jobs->jobs[j])) return true;
        parallel += parallel_is_set(&jobs->jobs[j].parallel);
    }
    return parallel > 0 && parallel < jobs->count;
}

/* --- devices -------------------------------------------------------------------------------- */

static bool names_devices(const struct job *job)
{
    return job->devices || parallel_is_set(&job->parallel);
}

static uint64_t devices_of(const struct job *job)
{
    return job->devices ? job->device_count : parallel_devices(&job->parallel);
}

static uint32_t device_of(const struct job *job, uint32_t i)
{
    return job->devices ? job->devices[i] : job->parallel.first_device + i;
}

static enum status check_devices(struct reservation_groups *g, const struct job *job)
{
    uint32_t have = g->hardware->device_count;
    if (!names_devices(job)) return STATUS_OK;
    if (!job->devices && job->parallel.first_device + devices_of(job) > have)
        return error_set(g->err, STATUS_BAD_INPUT,
                         "job '%s' runs on devices %" PRIu32 " to %" PRIu64 ", and machine '%s' has %" PRIu32,
                         job->name, job->parallel.first_device, job->parallel.first_device + devices_of(job) - 1,
                         g->hardware->name, have);
    for (uint32_t i = 0; i < devices_of(job); i++)
        if (device_of(job, i) >= have)
            return error_set(g->err, STATUS_BAD_INPUT,
                             "job '%s' names device %" PRIu32 ", and machine '%s' has %" PRIu32, job->name,
                             device_of(job, i), g->hardware->name, have);
    return STATUS_OK;
}

/* Lists the devices that no job names, or all if each is named. */
static enum status find_left(struct reservation_groups *g)
{
    uint32_t devices = g->hardware->device_count, *named;
    TRY(ARENA_NEW(&g->arena, devices, named, g->err));
    TRY(ARENA_NEW(&g->arena, devices, g->left, g->err));
    for (uint32_t j = 0; j < g->jobs->count; j++) {
        const struct job *job = &g->jobs->jobs[j];
        for (uint32_t i = 0; names_devices(job) && i < devices_of(job); i++) named[device_of(job, i)] = 1;
    }
    for (uint32_t d = 0; d < devices; d++)
        if (!named[d]) g->left[g->left_count++] = d;
    if (g->left_count > 0) return STATUS_OK;
    for (uint32_t d = 0; d < devices; d++) g->left[d] = d;
    g->left_count = devices;
    return STATUS_OK;
}

/* --- groups --------------------------------------------------------------------------------- */

static bool same_devices(const struct subproblem *subproblem, const uint32_t *devices, uint32_t count)
{
    return subproblem->device_count == count && memcmp(subproblem->devices, devices, count * sizeof *devices) == 0;
}

/* Returns the last group with one of these devices, if a job that is not parallel can join it. */
static struct group *group_to_join(struct reservation_groups *g, const uint32_t *devices, uint32_t count)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < count; i++) last = max_u32(last, g->last_of[devices[i]]);
    if (last == 0) return NULL;
    struct group *group = &g->groups[last - 1];
    return !group->parallel && same_devices(&group->subproblem, devices, count) ? group : NULL;
}

/* Returns the job's devices in its own order; borrowed, or in the arena. */
static enum status devices_for(struct reservation_groups *g, const struct job *job, const uint32_t **out,
                               uint32_t *count)
{
    uint32_t *devices;
    *out = job->devices ? job->devices : g->left;
    *count = names_devices(job) ? (uint32_t)devices_of(job) : g->left_count;
    if (job->devices || !names_devices(job)) return STATUS_OK;
    TRY(ARENA_NEW(&g->arena, *count, devices, g->err));
    for (uint32_t i = 0; i < *count; i++) devices[i] = device_of(job, i);
    *out = devices;
    return STATUS_OK;
}

static enum status find_group(struct reservation_groups *g, uint32_t j)
{
    const struct job *job = &g->jobs->jobs[j];
    bool parallel = parallel_is_set(&job->parallel);
    const uint32_t *devices;
    uint32_t count;
    TRY(devices_for(g, job, &devices, &count));
    struct group *group = parallel ? NULL : group_to_join(g, devices, count);
    if (!group) {
        group = &g->groups[g->count++];
        group->parallel = parallel;
        group->subproblem = (struct subproblem){.devices = devices, .device_count = count};
        for (uint32_t i = 0; i < count; i++) g->last_of[devices[i]] = g->count;
    }
    group->subproblem.job_count++;
    g->group_of[j] = (uint32_t)(group - g->groups);
    return STATUS_OK;
}

/* Adds jobs that name devices first. */
static enum status add_job(struct reservation_groups *g, uint32_t j)
{
    struct group *group = &g->groups[g->group_of[j]];
    if (!group->jobs) TRY(ARENA_NEW(&g->arena, group->subproblem.job_count, group->jobs, g->err));
    group->subproblem.jobs = group->jobs;
    group->jobs[group->job_count++] = j;
    return STATUS_OK;
}

static enum status make_groups(struct reservation_groups *g)
{
    uint32_t count = g->jobs->count;
    for (uint32_t j = 0; j < count; j++) TRY(check_devices(g, &g->jobs->jobs[j]));
    TRY(find_left(g));
    TRY(ARENA_NEW(&g->arena, count, g->group_of, g->err));
    TRY(ARENA_NEW(&g->arena, g->hardware->device_count, g->last_of, g->err));
    for (uint32_t j = 0; j < count; j++)
        if (names_devices(&g->jobs->jobs[j])) TRY(find_group(g, j));
    for (uint32_t j = 0; j < count; j++)
        if (!names_devices(&g->jobs->jobs[j])) TRY(find_group(g, j));
    for (uint32_t j = 0; j < count; j++)
        if (names_devices(&g->jobs->jobs[j])) TRY(add_job(g, j));
    for (uint32_t j = 0; j < count; j++)
        if (!names_devices(&g->jobs->jobs[j])) TRY(add_job(g, j));
    return STATUS_OK;
}

/* --- plans ---------------------------------------------------------------------------------- */

/* Lists the devices of jobs that are not parallel, each once. */
static enum status busy_devices(struct reservation_groups *g, uint32_t *busy)
{
    uint32_t *has_jobs;
    TRY(ARENA_NEW(&g->arena, g->hardware->device_count, has_jobs, g->err));
    *busy = 0;
    for (uint32_t i = 0; i < g->count; i++)
        for (uint32_t d = 0; !g->groups[i].parallel && d < g->groups[i].subproblem.device_count; d++) {
            uint32_t *has = &has_jobs[g->groups[i].subproblem.devices[d]];
            *busy += *has == 0;
            *has = 1;
        }
    return STATUS_OK;
}

/* `turns`: jobs are in host memory only while they run. */
static enum status plan_group(const struct reservation_groups *g, struct group *group,
                              const struct resident_company *company, bool turns, double host_bytes)
{
    const struct planner_options plain = {.seed = g->options->seed, .activations = PLANNER_AUTO,
                                          .optimizer = PLANNER_AUTO,
                                          .host = turns ? PLANNER_HOST_TURNS : PLANNER_HOST_AUTO};
    if (group->parallel)
        return subproblem_plan(g->hardware, g->jobs->jobs, &group->subproblem, NULL, host_bytes, &plain, &group->plan,
                               g->err);
    return resident_subproblem_plan(g->hardware, g->jobs->jobs, &group->subproblem, company, host_bytes, g->options,
                                    &group->plan, g->err);
}

static enum status plan_groups(struct reservation_groups *g)
{
    uint32_t busy;
    TRY(busy_devices(g, &busy));
    const struct resident_company company = resident_company(g->hardware, busy);
    bool turns = host_states_exceed(g->hardware, g->jobs, hardware_host_count(g->hardware));
    TRY(subproblem_hosts_begin(&g->arena, g->hardware, &g->hosts, g->err));
    for (uint32_t i = 0; i < g->count; i++) {
        struct group *group = &g->groups[i];
        double left = subproblem_hosts_left(&g->hosts, &group->subproblem, turns);
        if (turns && !group->parallel) left /= g->count - i; /* each group gets an equal share, in which its jobs
                                                                take turns */
        TRY(plan_group(g, group, &company, turns, left));
        TRY(subproblem_hosts_reserve(&g->hosts, &group->subproblem, &group->plan, g->err));
        for (uint32_t d = 0; d < group->subproblem.device_count; d++)
            if (g->free_s[group->subproblem.devices[d]] > group->begin_s)
                group->begin_s = g->free_s[group->subproblem.devices[d]];
        for (uint32_t d = 0; d < group->subproblem.device_count; d++)
            g->free_s[group->subproblem.devices[d]] = group->begin_s + group->plan.estimated_makespan_s;
    }
    return STATUS_OK;
}

static enum status check_options(const struct planner_options *options, struct error *err)
{
    const char *what = options->instance ? "instance" : options->timetable ? "timetable" : NULL;
    if (options->swap) what = "swapping of activations";
    if (!what) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "jobs that have devices for themselves, and %s: they do not go together",
                     what);
}

static enum status prepare(struct reservation_groups *g)
{
    TRY(check_options(g->options, g->err));
    for (uint32_t j = 0; j < g->jobs->count; j++)
        if (parallel_check(&g->jobs->jobs[j], g->err)) return error_add(g->err, "job '%s'", g->jobs->jobs[j].name);
    TRY(ARENA_NEW(&g->arena, g->jobs->count, g->groups, g->err));
    TRY(ARENA_NEW(&g->arena, g->hardware->device_count, g->free_s, g->err));
    TRY(make_groups(g));
    return plan_groups(g);
}

enum status reservation_plan(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                             struct plan *out, struct error *err)
{
    struct reservation_groups g = {.hardware = hardware, .jobs = jobs, .options = options, .err = err};
    struct merge_subplan *subplans = NULL;
    enum status status = prepare(&g);
    if (!status) {
        subplans = alloc_zeroed(g.count, sizeof *subplans);
        if (!subplans) status = error_memory(err, "subplans of a plan", g.count * sizeof *subplans);
    }
    if (status) {
        hardware_release(hardware);
        job_set_release(jobs);
    } else {
        const struct merge_options how = {.policy = reservation_policy, .seed = options->seed};
        for (uint32_t i = 0; i < g.count; i++) {
            const struct group *group = &g.groups[i];
            subplans[i] = (struct merge_subplan){.plan = &group->plan, .jobs = group->subproblem.jobs,
                                                    .devices = group->subproblem.devices, .follows = PLAN_NONE,
                                                    .begin_s = group->begin_s,
                                                    .end_s = group->begin_s + group->plan.estimated_makespan_s};
        }
        status = plan_merge(hardware, jobs, subplans, g.count, &how, out, err);
    }
    for (uint32_t i = 0; i < g.count; i++) plan_release(&g.groups[i].plan);
    free(subplans);
    arena_release(&g.arena);
    return status;
}
