#include "planner/saturn/saturn_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/try.h"
#include "models/job/learning_rate.h"
#include "planner/strategy/subproblem.h"

/* --- runs ----------------------------------------------------------------------------------- */

/* Sorts devices in ascending order, so that the members of tensor groups are closest together. */
static enum status sort_devices(struct saturn_runs *r, const uint32_t *devices, uint32_t count,
                                const uint32_t **out, struct error *err)
{
    uint32_t *own;
    TRY(ARENA_NEW(&r->arena, count, own, err));
    for (uint32_t i = 0; i < count; i++) own[i] = r->machine->devices[devices[i]];
    qsort(own, count, sizeof *own, order_u32);
    *out = own;
    return STATUS_OK;
}

static int compare_starts(const void *a, const void *b)
{
    const struct saturn_run *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return (x->time->job > y->time->job) - (x->time->job < y->time->job);
}

enum status saturn_runs_of_schedule(struct saturn_runs *r, const struct spase_schedule *schedule, struct error *err)
{
    TRY(ARENA_NEW(&r->arena, r->jobs->count, r->runs, err));
    for (uint32_t j = 0; j < r->jobs->count; j++) {
        const struct spase_task *task = &schedule->tasks[j];
        struct saturn_run *run = &r->runs[r->count++];
        *run = (struct saturn_run){.time = &r->times->times[task->config], .start = task->start,
                                   .end = task->start + task->ticks, .minibatches = r->jobs->jobs[j].minibatches,
                                   .follows = PLAN_NONE, .of = 1};
        TRY(sort_devices(r, schedule->devices + schedule->device_first[j], run->time->config.devices, &run->devices,
                         err));
    }
    qsort(r->runs, r->count, sizeof *r->runs, compare_starts);
    return STATUS_OK;
}

/* Divides a job's minibatches among its pieces, in order: each piece gets the minibatches that end within its work.
 * `done` and `last` are per job: the share of earlier work, and the last run. */
static void share_minibatches(struct saturn_runs *r, double *done, uint32_t *last, uint64_t *given)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        struct saturn_run run = r->runs[i];
        uint32_t j = run.time->job, config = (uint32_t)(run.time - r->times->times);
        uint64_t minibatches = r->jobs->jobs[j].minibatches;
        double whole = (double)spase_ticks(r->instance, config, run.time->class);
        done[j] += (double)(run.end - run.start - run.restart) / whole;
        bool complete = done[j] >= 1 - 1e-6; /* ticks are rounded up */
        uint64_t end = complete ? minibatches : (uint64_t)(done[j] * (double)minibatches);
        if (end > minibatches) end = minibatches;
        if (end <= given[j]) continue;
        run.first_minibatch = given[j];
        run.minibatches = end - given[j];
        run.follows = last[j];
        run.number = last[j] == PLAN_NONE ? 0 : r->runs[last[j]].number + 1;
        if (run.number == 0) run.restart = 0; /* the piece before it was left out */
        given[j] = end;
        last[j] = kept;
        r->runs[kept++] = run;
    }
    r->count = kept;
    for (uint32_t i = 0; i < r->count; i++) r->runs[i].of = r->runs[last[r->runs[i].time->job]].number + 1;
}

enum status saturn_runs_of_course(struct saturn_runs *r, const struct spase_course *course, struct error *err)
{
    double *done;
    uint32_t *last;
    uint64_t *given;
    TRY(ARENA_NEW(&r->arena, course->piece_count, r->runs, err));
    TRY(ARENA_NEW(&r->arena, r->jobs->count, done, err));
    TRY(ARENA_NEW(&r->arena, r->jobs->count, last, err));
    TRY(ARENA_NEW(&r->arena, r->jobs->count, given, err));
    for (uint32_t j = 0; j < r->jobs->count; j++) last[j] = PLAN_NONE;
    for (size_t i = 0; i < course->piece_count; i++) {
        const struct spase_piece *piece = &course->pieces[i];
        struct saturn_run *run = &r->runs[r->count++];
        *run = (struct saturn_run){.time = &r->times->times[piece->config], .start = piece->start, .end = piece->end,
                                   .restart = piece->restart};
        TRY(sort_devices(r, course->devices + piece->first_device, piece->device_count, &run->devices, err));
    }
    qsort(r->runs, r->count, sizeof *r->runs, compare_starts);
    share_minibatches(r, done, last, given);
    return STATUS_OK;
}

/* --- jobs ----------------------------------------------------------------------------------- */

static enum status check_name(const struct saturn_runs *r, const char *name, uint32_t job, struct error *err)
{
    for (uint32_t j = 0; j < r->jobs->count; j++)
        if (j != job && strcmp(r->jobs->jobs[j].name, name) == 0)
            return error_set(err, STATUS_BAD_INPUT, "job '%s' is stopped and goes on as '%s', and there is a job '%s'",
                             r->jobs->jobs[job].name, name, name);
    return STATUS_OK;
}

/* Makes a piece of a job. Its learning rate follows the schedule of the whole job. A piece that is not the last
 * writes no weights. */
static enum status make_piece(const struct saturn_runs *r, const struct saturn_run *run, struct job_set *out,
                              struct job *job, struct error *err)
{
    char name[JOB_NAME_MAX + 32];
    *job = r->jobs->jobs[run->time->job];
    job->minibatches = run->minibatches;
    job->first_minibatch += run->first_minibatch;
    if (run->of == 1) return STATUS_OK;
    snprintf(name, sizeof name, "%s.%u", job->name, run->number + 1);
    if (strlen(name) > JOB_NAME_MAX)
        return error_set(err, STATUS_LIMIT, "the job name '%s' is too long (limit is %d)", name, JOB_NAME_MAX);
    TRY(check_name(r, name, run->time->job, err));
    struct rate_schedule *schedule = &job->optimizer.schedule;
    if (schedule->kind != RATE_CONSTANT || schedule->warmup > 0)
        schedule->steps = learning_rate_steps(&r->jobs->jobs[run->time->job]);
    if (run->number + 1 < run->of) job->weights_out = job->weights_best = NULL;
    return arena_string(&out->arena, name, &job->name, err);
}

enum status saturn_runs_jobs(struct saturn_runs *r, struct job_set *out, struct error *err)
{
    bool several = r->count > r->jobs->count;
    if (r->count > JOB_COUNT_MAX)
        return error_set(err, STATUS_LIMIT, "too many runs of jobs (limit is %d)", JOB_COUNT_MAX);
    TRY(ARENA_NEW(&out->arena, r->count, out->jobs, err));
    out->count = r->count;
    for (uint32_t i = 0; i < r->count; i++)
        TRY(make_piece(r, &r->runs[i], out, &out->jobs[several ? i : r->runs[i].time->job], err));
    return STATUS_OK;
}

/* --- plans ---------------------------------------------------------------------------------- */

enum status saturn_runs_plan(struct saturn_runs *r, const struct job_set *jobs, const struct planner_options *spilled,
                             bool turns, double tick_s, struct error *err)
{
    const struct planner_options plain = {.seed = spilled->seed, .activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO,
                                          .host = turns ? PLANNER_HOST_TURNS : PLANNER_HOST_AUTO};
    struct planner_options own = *spilled;
    own.host = plain.host;
    struct subproblem_hosts hosts;
    TRY(subproblem_hosts_begin(&r->arena, r->machine->hardware, &hosts, err));
    bool several = r->count > r->jobs->count;
    uint32_t *numbers;
    TRY(ARENA_NEW(&r->arena, r->count, numbers, err));
    TRY(ARENA_NEW(&r->arena, r->count, r->plans, err));
    TRY(ARENA_NEW(&r->arena, r->count, r->subplans, err));
    for (uint32_t i = 0; i < r->count; i++)
        r->carries_some |= saturn_time_is_carried_out(r->machine->hardware, &r->jobs->jobs[r->runs[i].time->job],
                                                      r->runs[i].time);
    for (uint32_t i = 0; i < r->count; i++) {
        const struct saturn_run *run = &r->runs[i];
        numbers[i] = several ? i : run->time->job;
        const struct subproblem subproblem = {.jobs = &numbers[i], .job_count = 1, .devices = run->devices,
                                              .device_count = run->time->config.devices};
        TRY(subproblem_plan(r->machine->hardware, jobs->jobs, &subproblem, &run->time->config.parallel,
                            subproblem_hosts_left(&hosts, &subproblem, turns),
                            run->time->config.way == SATURN_SPILLED ? &own : &plain, &r->plans[i], err));
        const bool keeps = parallel_is_carried_out(&r->plans[i].jobs.jobs[0].parallel); /* a host buffer of its own */
        if (turns || keeps || run->number + 1 == run->of)
            TRY(subproblem_hosts_reserve(&hosts, &subproblem, &r->plans[i], err));
        r->subplans[i] = (struct merge_subplan){.plan = &r->plans[i], .jobs = subproblem.jobs,
                                                .devices = subproblem.devices,
                                                .follows = run->follows, .restart_s = (double)run->restart * tick_s,
                                                .begin_s = (double)run->start * tick_s,
                                                .end_s = (double)run->end * tick_s};
    }
    return STATUS_OK;
}

static void release_plans(struct saturn_runs *r)
{
    for (uint32_t i = 0; r->plans && i < r->count; i++) plan_release(&r->plans[i]);
    r->plans = NULL;
}

void saturn_runs_release(struct saturn_runs *runs)
{
    release_plans(runs);
    arena_release(&runs->arena);
    *runs = (struct saturn_runs){0};
}
