#include "planner/prefix/prefix_keep.h"

#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "models/jobs/job_outputs.h"

/* Counts what is made. */
static uint32_t makers_of(const struct prefix_problem *p, const uint64_t *layers)
{
    uint32_t count = 0;
    for (uint32_t j = 0; j < p->job_count; j++) count += layers[j] > 0 && !prefix_is_shared(p, layers, j);
    return count;
}

static bool has_name(const struct job_set *jobs, const char *name)
{
    for (uint32_t j = 0; j < jobs->count; j++)
        if (strcmp(jobs->jobs[j].name, name) == 0) return true;
    return false;
}

/* Returns a name that no job has. */
static enum status name_maker(struct job_set *jobs, const char *of, const char **out, struct error *err)
{
    char name[JOB_NAME_MAX + 1];
    uint32_t tries = 1;
    do {
        if (tries == 1) snprintf(name, sizeof name, "%.80s-outputs", of);
        else snprintf(name, sizeof name, "%.80s-outputs-%u", of, tries);
        tries++;
    } while (has_name(jobs, name));
    return arena_string(&jobs->arena, name, out, err);
}

static enum status add_maker(const struct prefix_problem *p, uint64_t layers, uint32_t job, struct job_set *jobs,
                             struct error *err)
{
    const struct prefix_group *group = &p->groups[p->jobs[job].group];
    const char *name;
    TRY(name_maker(jobs, jobs->jobs[job].name, &name, err));
    TRY(job_outputs_maker(&jobs->jobs[job], name, layers, group->samples, group->held_out, &jobs->arena,
                          &jobs->jobs[jobs->count], err));
    jobs->count++;
    return STATUS_OK;
}

/* Returns the maker of a job's choice, which a job before it has as well, or was added last. */
static uint32_t maker_of(const struct prefix_problem *p, const uint64_t *layers, uint32_t job,
                         const struct job_set *jobs)
{
    for (uint32_t j = 0; j < job; j++)
        if (p->jobs[j].group == p->jobs[job].group && layers[j] == layers[job]) return jobs->jobs[j].outputs.maker;
    return jobs->count - 1;
}

enum status prefix_keep(const struct prefix_problem *p, const struct prefix_choice *choice, struct job_set *jobs,
                        struct error *err)
{
    const uint32_t makers = makers_of(p, choice->layers);
    struct job *all;
    if (makers == 0) return STATUS_OK;
    if (jobs->count + makers > JOB_COUNT_MAX)
        return error_set(err, STATUS_LIMIT, "too many jobs: %u, and %u that make outputs (limit is %d)", jobs->count,
                         makers, (int)JOB_COUNT_MAX);
    TRY(ARENA_NEW(&jobs->arena, jobs->count + makers, all, err));
    memcpy(all, jobs->jobs, jobs->count * sizeof *all);
    jobs->jobs = all;
    for (uint32_t j = 0; j < p->job_count; j++) {
        if (choice->layers[j] == 0) continue;
        if (!prefix_is_shared(p, choice->layers, j)) TRY(add_maker(p, choice->layers[j], j, jobs, err));
        jobs->jobs[j].outputs = (struct job_outputs){.layers = choice->layers[j],
                                                     .maker = maker_of(p, choice->layers, j, jobs)};
    }
    return STATUS_OK;
}

void prefix_forget(struct job_set *jobs)
{
    while (jobs->count > 0 && job_makes_outputs(&jobs->jobs[jobs->count - 1])) jobs->count--;
    for (uint32_t j = 0; j < jobs->count; j++) jobs->jobs[j].outputs = (struct job_outputs){0};
}
