/*
 * Where and when jobs run: what becomes of a schedule, or of a course that was planned anew on the way
 * (planner/saturn/spase/spase_introspect.h), on its way to a plan. A part of planner/saturn/saturn.c.
 *
 * A job that is stopped and goes on in another configuration or on other devices is several runs, each of some of
 * its minibatches, and in the plan several jobs: of "a" those are "a.1", "a.2", ... Work is divisible in a course, and
 * minibatches are not: a stop moves to the minibatch's end in front of it, and a piece without one is left out.
 */
#ifndef SPILLWAY_PLANNER_SATURN_RUNS_H
#define SPILLWAY_PLANNER_SATURN_RUNS_H

#include "planner/saturn/saturn_times.h"
#include "planner/saturn/spase/spase_introspect.h"
#include "planner/strategy/plan_merge.h"

struct saturn_run {
    const struct saturn_time *time; /* its job and configuration */
    const uint32_t *devices;        /* (time->config.devices) of the machine, ascending */
    int64_t start, end, restart;    /* ticks */
    uint64_t first_minibatch, minibatches;
    uint32_t follows;               /* the run before it of the same job, or PLAN_NONE */
    uint32_t number, of;            /* among those of the job, from 0 */
};

/* In the order of their starts. Zeroed it is empty; lives as long as its arena. */
struct saturn_runs {
    const struct saturn_machine *machine;
    const struct saturn_times *times;
    const struct spase *instance;   /* whose configurations are `times` */
    const struct job_set *jobs;
    struct arena arena;
    struct saturn_run *runs;
    uint32_t count;
    struct plan *plans;             /* (count), when planned */
    struct merge_subplan *subplans; /* (count), likewise */
};

/* From one of them; machine, times, instance and jobs are set. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status saturn_runs_of_schedule(struct saturn_runs *runs, const struct spase_schedule *schedule,
                                               struct error *err);
MUST_CHECK enum status saturn_runs_of_course(struct saturn_runs *runs, const struct spase_course *course,
                                             struct error *err);

/* The jobs of the plan in place of those that `out` has, which are runs->jobs, in the same arena: in the order of the
 * runs where some job has several, else as they were. Errors: STATUS_BAD_INPUT for a name that another job has; STATUS_LIMIT, STATUS_NO_MEMORY. */
MUST_CHECK enum status saturn_runs_jobs(struct saturn_runs *runs, struct job_set *out, struct error *err);

/* Plan each of those jobs for itself. Errors: those of subproblem_plan(). */
MUST_CHECK enum status saturn_runs_plan(struct saturn_runs *runs, const struct job_set *jobs,
                                        const struct planner_options *spilled, double tick_s, struct error *err);

void saturn_runs_release(struct saturn_runs *runs);

#endif
