/*
 * The runs of jobs, with devices and times: the step from a schedule, or from a course that was planned again on the
 * way (planner/saturn/spase/spase_introspect.h), to a plan. A part of planner/saturn/saturn.c.
 *
 * A job that is stopped and goes on in another configuration or on other devices is several runs, each of some of its
 * minibatches, and in the plan several jobs: "a" becomes "a.1", "a.2", ... Work is divisible in a course, minibatches
 * are not: a stop moves to the end of the previous minibatch, and a piece without a minibatch is left out.
 */
#ifndef SPILLWAY_PLANNER_SATURN_SATURN_RUNS_H
#define SPILLWAY_PLANNER_SATURN_SATURN_RUNS_H

#include "planner/saturn/saturn_times.h"
#include "planner/saturn/spase/spase_introspect.h"
#include "planner/strategy/plan_merge.h"

struct saturn_run {
    const struct saturn_time *time; /* its job and configuration */
    const uint32_t *devices;        /* (time->config.devices) of the machine, ascending */
    int64_t start, end, restart;    /* ticks */
    uint64_t first_minibatch, minibatches;
    uint32_t follows;               /* the previous run of the same job, or PLAN_NONE */
    uint32_t number, of;            /* number among the job's runs, from 0, and their count */
};

/* In the order of their starts. Zeroed it is empty; lives as long as its arena. */
struct saturn_runs {
    const struct saturn_machine *machine;
    const struct saturn_times *times;
    const struct spase *instance;   /* with `times` as its configurations */
    const struct job_set *jobs;
    struct arena arena;
    struct saturn_run *runs;
    uint32_t count;
    struct plan *plans;             /* (count), once planned */
    struct merge_subplan *subplans; /* (count), likewise */
    bool carries_some;              /* some job on several devices is carried out */
};

/* Makes the runs of a schedule or of a course; machine, times, instance and jobs are set before. */
MUST_CHECK enum status saturn_runs_of_schedule(struct saturn_runs *runs, const struct spase_schedule *schedule,
                                               struct error *err);
MUST_CHECK enum status saturn_runs_of_course(struct saturn_runs *runs, const struct spase_course *course,
                                             struct error *err);

/* Replaces the jobs of `out`, which are runs->jobs, by the jobs of the plan, in the same arena: in the order of the
 * runs where some job has several, else unchanged. Errors: STATUS_BAD_INPUT for a name that another job has;
 * STATUS_LIMIT. */
MUST_CHECK enum status saturn_runs_jobs(struct saturn_runs *runs, struct job_set *out, struct error *err);

/* Plans each of these jobs by itself. `turns`: jobs with states in host memory are there only while they run. Errors:
 * as subproblem_plan(). */
MUST_CHECK enum status saturn_runs_plan(struct saturn_runs *runs, const struct job_set *jobs,
                                        const struct planner_options *spilled, bool turns, double tick_s,
                                        struct error *err);

void saturn_runs_release(struct saturn_runs *runs);

#endif
