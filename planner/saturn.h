/*
 * Saturn's problem in plans: which parallelism for each job, on how many devices, which, and when (SPASE).
 *
 * Run times of every job in every configuration (planner/saturn_configs.h) are found by timing plans of a few
 * minibatches (planner/saturn_times.h). They make a SPASE instance, which planner/spase_certify.h schedules and
 * bounds; the schedule becomes a plan with a lease for each job (planner/leased.h), with the schedule's bound as
 * that of its order: no choice among these configurations ends sooner, by these run times.
 *
 *     jobs, machine -> configurations -> run times -> SPASE instance -> schedule, bound -> leases -> plan
 *
 * A gang lies within one node. Not in the run times, and so in the plan's simulation alone: links that jobs beside
 * each other share, and what a gang's place in its node changes.
 *
 * Source: Nagrecha and Kumar, "Saturn: an optimized data system for multi-large-model deep learning workloads",
 * PVLDB 17(4), 2023.
 */
#ifndef SPILLWAY_PLANNER_SATURN_H
#define SPILLWAY_PLANNER_SATURN_H

#include "planner/saturn_times.h"
#include "planner/spase_baseline.h"
#include "planner/spase_certify.h"

extern const char saturn_policy[]; /* "saturn" */

/* What was found on the way. Open; zeroed it is empty; nothing is to be released. */
struct saturn_report {
    struct spase_certificate certificate;
    double tick_s;                            /* of its times */
    uint32_t tried, timed;                    /* configurations, of all jobs; that plans were timed of */
    double baselines_s[SPASE_BASELINE_COUNT]; /* what others' rules would take, by the same run times */
};

/*
 * Takes hardware and jobs over, also on failure. Of the options seed, iterations (0: 200 000, or what time_limit_s
 * allows) and time_limit_s (0: none) are the schedule's, the rest those of jobs that are streamed. The same input
 * gives the same plan but where a limit of time cuts in.
 * Errors: STATUS_INFEASIBLE naming a job that fits in no way; STATUS_BAD_INPUT for jobs that name devices; those of
 * the clock.
 */
MUST_CHECK enum status saturn_plan(struct hardware *hardware, struct job_set *jobs,
                                   const struct planner_options *options, const struct saturn_clock *clock,
                                   struct saturn_report *report, struct plan *out, struct error *err);

#endif
