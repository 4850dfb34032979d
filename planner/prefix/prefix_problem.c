#include "planner/prefix/prefix_problem.h"

#include <math.h>

#include "base/extreme.h"
#include "base/try.h"
#include "models/cost/cost.h"
#include "models/job/evaluation.h"
#include "models/jobs/job_outputs.h"
#include "planner/pass_seconds.h"

/* --- choices ------------------------------------------------------------------------------------ */

bool prefix_is_shared(const struct prefix_problem *problem, const uint64_t *layers, uint32_t job)
{
    for (uint32_t j = 0; j < job; j++)
        if (problem->jobs[j].group == problem->jobs[job].group && layers[j] == layers[job]) return true;
    return false;
}

double prefix_seconds(const struct prefix_problem *problem, const uint64_t *layers)
{
    double sum = 0;
    for (uint32_t j = 0; j < problem->job_count; j++) {
        const struct prefix_job *job = &problem->jobs[j];
        if (job->group == PREFIX_NONE) continue;
        const struct prefix_group *group = &problem->groups[job->group];
        const struct prefix_layer *kept = &group->layers[layers[j]];
        const double all_s = group->layers[job->most].compute_s;
        sum += job->samples * (layers[j] > 0 ? kept->load_s + all_s - kept->compute_s : all_s);
        if (layers[j] > 0 && !prefix_is_shared(problem, layers, j))
            sum += group->rows * kept->make_s;
    }
    return sum;
}

double prefix_bytes(const struct prefix_problem *problem, const uint64_t *layers)
{
    double sum = 0;
    for (uint32_t j = 0; j < problem->job_count; j++) {
        if (problem->jobs[j].group == PREFIX_NONE || layers[j] == 0 || prefix_is_shared(problem, layers, j)) continue;
        const struct prefix_group *group = &problem->groups[problem->jobs[j].group];
        sum += group->rows * group->layers[layers[j]].bytes;
    }
    return sum;
}

/* --- the jobs ----------------------------------------------------------------------------------- */

/* Returns true if the first device does not hold the job's state. */
static bool is_spilled(const struct hardware *hardware, const struct job *job)
{
    return (double)job_state(job, 0, job->network.layer_count).bytes > (double)hardware->devices[0].memory_bytes;
}

static double forward_s(const struct hardware *hardware, const struct job *job, uint64_t count)
{
    double sum = 0;
    for (uint64_t l = 0; l < count; l++) sum += pass_seconds(hardware, 0, job, l, 1, PLAN_FORWARD, 0);
    return sum;
}

/* Computes the seconds of a sample, as a share of a minibatch. */
static struct prefix_layer layer_of(const struct hardware *hardware, const struct job *job, uint64_t count)
{
    const double samples = (double)job_samples(job);
    struct job taker = *job, maker = *job;
    taker.outputs = (struct job_outputs){.layers = count};
    maker.microbatches = job_samples(job);
    maker.microbatch = 1;
    const uint64_t all = job_samples(job) * job_output_bytes(&taker);
    const double compute_s = forward_s(hardware, job, count), made_s = forward_s(hardware, &maker, count);
    double fetch_s = 0;
    if (is_spilled(hardware, job)) {
        const struct state_layout state = job_state(job, 0, count);
        fetch_s = pass_seconds_copy(hardware, 0, COPY_H2D, state_weight_bytes(&state));
    }
    double load_s = pass_seconds_copy(hardware, 0, COPY_H2D, all);
    if (hardware_has_cpu(hardware))
        load_s += pass_seconds(hardware, hardware_cpu(hardware), &taker, 0, count, PLAN_RECALL, 0);
    return (struct prefix_layer){.compute_s = max_s(compute_s, fetch_s) / samples,
                                 .make_s = (max_s(made_s, fetch_s) + pass_seconds_copy(hardware, 0, COPY_D2H, all)) /
                                           samples,
                                 .load_s = load_s / samples,
                                 .bytes = (double)job_output_bytes(&taker)};
}

static double samples_of(const struct job *job)
{
    const double held_out = (double)evaluation_count(job) * (double)job->evaluation.minibatches;
    return ((double)job->minibatches + held_out) * (double)job_samples(job);
}

/* Finds the job's group, or makes one. `prints`: by group. */
static enum status find_group(const struct job_set *jobs, uint32_t j, struct prefix_problem *p, uint64_t *prints,
                              struct error *err)
{
    const struct job *job = &jobs->jobs[j];
    char text[JOB_OUTPUTS_TEXT];
    uint64_t print, held_out;
    TRY(job_outputs_fingerprint(job, &print, err));
    for (uint32_t g = 0; g < p->group_count && p->jobs[j].group == PREFIX_NONE; g++)
        if (prints[g] == print && !job_outputs_differ(&jobs->jobs[p->groups[g].first], job, text)) p->jobs[j].group = g;
    if (p->jobs[j].group != PREFIX_NONE) {
        struct prefix_group *group = &p->groups[p->jobs[j].group];
        group->most = max_u64(group->most, p->jobs[j].most);
        return STATUS_OK;
    }
    struct prefix_group *group = &p->groups[p->group_count];
    TRY(job_outputs_samples(job, &group->samples, &held_out, err));
    prints[p->group_count] = print;
    group->first = j;
    group->held_out = held_out;
    group->most = p->jobs[j].most;
    group->rows = ceil((double)(group->samples + held_out) / (double)job_samples(job)) * (double)job_samples(job);
    p->jobs[j].group = p->group_count++;
    return STATUS_OK;
}

/* Lists the layers of a group, by the job that freezes most. */
static enum status fill_layers(const struct hardware *hardware, const struct job_set *jobs, struct prefix_problem *p,
                               uint32_t g, struct arena *arena, struct error *err)
{
    struct prefix_group *group = &p->groups[g];
    uint32_t j = group->first;
    while (p->jobs[j].group != g || p->jobs[j].most < group->most) j++;
    TRY(ARENA_NEW(arena, group->most + 1, group->layers, err));
    for (uint64_t l = 1; l <= group->most; l++) group->layers[l] = layer_of(hardware, &jobs->jobs[j], l);
    return STATUS_OK;
}

enum status prefix_problem_make(const struct hardware *hardware, const struct job_set *jobs, double budget_bytes,
                                struct arena *arena, struct prefix_problem *out, struct error *err)
{
    struct prefix_problem p = {.job_count = jobs->count, .budget_bytes = budget_bytes};
    uint64_t *prints;
    TRY(ARENA_NEW(arena, jobs->count, p.jobs, err));
    TRY(ARENA_NEW(arena, jobs->count, p.groups, err));
    TRY(ARENA_NEW(arena, jobs->count, prints, err));
    for (uint32_t j = 0; j < jobs->count; j++) {
        p.jobs[j] = (struct prefix_job){.group = PREFIX_NONE, .samples = samples_of(&jobs->jobs[j])};
        p.jobs[j].most = job_outputs_most(&jobs->jobs[j], &p.jobs[j].why);
        if (p.jobs[j].most > 0) TRY(find_group(jobs, j, &p, prints, err));
    }
    for (uint32_t g = 0; g < p.group_count; g++) TRY(fill_layers(hardware, jobs, &p, g, arena, err));
    *out = p;
    return STATUS_OK;
}
