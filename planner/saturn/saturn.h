/*
 * Saturn's problem in plans: which parallelism for each job, on how many devices, which, and when (SPASE).
 *
 * Run times of every job in every configuration (planner/saturn/saturn_configs.h) are found by timing plans of a few
 * minibatches (planner/saturn/saturn_times.h). They make a SPASE instance, which planner/saturn/spase/spase_certify.h schedules
 * and bounds; the schedule becomes a plan with a reservation for each job (planner/strategy/reservation.h), with the schedule's
 * bound as that of its order: no choice among these configurations ends sooner, by these run times.
 *
 *     jobs, machine -> configurations -> run times -> SPASE instance -> schedule, bound -> reservations -> plan
 *
 * States of jobs that are spilled lie on the host from first to last. Where those of a schedule are more than it holds,
 * a schedule is made again in which what fits otherwise is not spilled.
 *
 * A gang lies within one node. Not in the run times, and so in the plan's simulation alone: links that jobs beside
 * each other share, and what a gang's place in its node changes. Who simulates can say by how much runs that are spilled
 * are slowed, and have a schedule made that counts on it (`slowed`).
 *
 * Source: Nagrecha and Kumar, "Saturn: an optimized data system for multi-large-model deep learning workloads",
 * PVLDB 17(4), 2023.
 */
#ifndef SPILLWAY_PLANNER_SATURN_H
#define SPILLWAY_PLANNER_SATURN_H

#include "planner/saturn/saturn_times.h"
#include "planner/saturn/spase/spase_baseline.h"
#include "planner/saturn/spase/spase_certify.h"

/*
 * Who makes the schedule: Saturn, or one that it is compared with, by the same run times (planner/saturn/spase/spase_baseline.h).
 * Optimus-dynamic is Optimus's rule planned anew at intervals, as Saturn's introspection does with its own.
 */
enum saturn_rule {
    SATURN_RULE_SPASE,
    SATURN_RULE_MAX,
    SATURN_RULE_MIN,
    SATURN_RULE_OPTIMUS,
    SATURN_RULE_OPTIMUS_DYNAMIC,
    SATURN_RULE_RANDOM,
    SATURN_RULES
};

/* Names of policies: "saturn", "max-heuristic", "min-heuristic", "optimus", "optimus-dynamic", "randomized". */
extern const char *const saturn_rule_names[SATURN_RULES];
bool saturn_rule_find(const char *policy, enum saturn_rule *out); /* false: none of them */

/* Of the paper, and of optimus-dynamic unless somebody says otherwise (or 999 times the longest run, if that is less). */
#define SATURN_INTERVAL_S 1000.0

struct saturn_options {
    const struct planner_options *spilled; /* seed, iterations (0: 200 000, or what time_limit_s allows) and
                                               time_limit_s (0: none) are the schedule's, the rest those of jobs
                                               that are spilled, but for the policy */
    const struct saturn_clock *clock;
    enum saturn_rule rule;
    bool single;       /* each job on one device: plans that an executor can carry out */
    double interval_s; /* plan anew at so long intervals what is left, and change the plan where it then ends by the
                          threshold sooner (planner/saturn/spase/spase_introspect.h); 0 or below: do not, but for optimus-dynamic */
    double threshold_s; /* below 0: half an interval, as in the paper */
    double slowed;     /* runs that are spilled take so many times as long as they are timed, since copies share links with
                          those of other jobs; 0: as timed */
    double bound_s;    /* of every schedule by run times as timed, where they are slowed */
    struct saturn_times *kept_times; /* as timed: empty, out; else taken for them. May be NULL */
    double restart_s;  /* what a stop costs; below 0: the largest state out over a device's link, and in again */
};

/* What was found on the way. Open; zeroed it is empty; nothing is to be released. */
struct saturn_report {
    struct spase_certificate certificate;     /* of the schedule, whoever made it */
    double tick_s;                            /* of its times */
    double slowed;                            /* as in the options */
    uint32_t tried, timed;                    /* configurations, of all jobs; that plans were timed of */
    double scheduled_s;                       /* without planning anew */
    double baselines_s[SPASE_BASELINE_COUNT]; /* what others' rules would take, by the same run times */
    double optimus_dynamic_s;                 /* likewise, where intervals are given; else 0 */
    double restart_s, threshold_s;
    uint32_t intervals, replans, restarts;    /* looked at; changed; jobs that went on elsewhere */
};

/*
 * Takes hardware and jobs over, also on failure. The same input gives the same plan but where a limit of time cuts
 * in. Errors: STATUS_INFEASIBLE naming a job that fits in no way; STATUS_BAD_INPUT for jobs that name devices; those of
 * the clock.
 */
MUST_CHECK enum status saturn_plan(struct hardware *hardware, struct job_set *jobs,
                                   const struct saturn_options *options, struct saturn_report *report,
                                   struct plan *out, struct error *err);

#endif
