/*
 * Saturn's problem for plans: the parallelism of each job, its number of devices, the devices, and its start (SPASE).
 *
 * The run time of every job in every configuration (planner/saturn/saturn_configs.h) is found by timing plans of a few
 * minibatches (planner/saturn/saturn_times.h). The run times make a SPASE instance, which
 * planner/saturn/spase/spase_certify.h schedules and bounds. The schedule becomes a plan with a reservation for each
 * job (planner/strategy/reservation.h). The schedule's bound becomes the bound of the plan's order: no choice among
 * these configurations ends sooner, by these run times.
 *
 *     jobs, machine -> configurations -> run times -> SPASE instance -> schedule, bound -> reservations -> plan
 *
 * States of jobs on one device are on the host from beginning to end. When the states of a schedule exceed host memory,
 * other schedules are made: jobs on one device are read from their files before and written after, which their run
 * times then include; jobs that fit otherwise are not spilled; jobs with many states run on several devices. The
 * fastest of the first and the last is the plan.
 *
 * A gang lies within one node. The run times, and so the plan, ignore links that concurrent jobs share and the effect
 * of a gang's place in its node; the simulation has them. A caller that simulates can pass the factor by which spilled
 * runs are slowed, and get a schedule that counts on it (`slowed`).
 *
 * Source: Nagrecha and Kumar, "Saturn: an optimized data system for multi-large-model deep learning workloads", PVLDB
 * 17(4), 2023.
 */
#ifndef SPILLWAY_PLANNER_SATURN_SATURN_H
#define SPILLWAY_PLANNER_SATURN_SATURN_H

#include "planner/saturn/saturn_times.h"
#include "planner/saturn/spase/spase_baseline.h"
#include "planner/saturn/spase/spase_certify.h"

/*
 * The rule that makes the schedule: Saturn's, or a rival's, by the same run times
 * (planner/saturn/spase/spase_baseline.h). Optimus-dynamic plans by Optimus's rule again at intervals.
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
bool saturn_rule_find(const char *policy, enum saturn_rule *out); /* returns false for any other policy */

/* The paper's interval, and the default of optimus-dynamic (or 999 times the longest run, if that is less). */
#define SATURN_INTERVAL_S 1000.0

struct saturn_options {
    const struct planner_options *spilled; /* seed, iterations (0: 200 000, or as time_limit_s allows) and time_limit_s
                                              (0: none) are for the schedule; the other options, except the policy, for
                                              spilled jobs */
    const struct saturn_clock *clock;
    enum saturn_rule rule;
    bool single;       /* each job on one device: plans that an executor can carry out */
    double interval_s; /* interval at which the remaining work is planned again; the plan changes where it then ends
                          sooner by the threshold (planner/saturn/spase/spase_introspect.h). 0 or below: never, except
                          for optimus-dynamic */
    double threshold_s; /* below 0: half an interval, as in the paper */
    double slowed;     /* factor by which spilled runs take longer than timed, since copies share links with other jobs'
                          copies; 0: as timed */
    double bound_s;    /* bound of every schedule by the unslowed run times */
    struct saturn_times *kept_times; /* unslowed run times: empty: out; else used instead of timing. May be NULL */
    double restart_s;  /* cost of a stop; below 0: the time of the largest state out over a device's link, and in
                          again */
};

/* Results. Open structure; zeroed it is empty, with nothing to release. */
struct saturn_report {
    struct spase_certificate certificate;     /* of the schedule, by any rule */
    double tick_s;                            /* seconds of a tick of its times */
    double slowed;                            /* as in the options */
    uint32_t tried, timed;                    /* configurations of all jobs; configurations for which plans were
                                                 timed */
    double scheduled_s;                       /* makespan without planning again */
    double baselines_s[SPASE_BASELINE_COUNT]; /* makespans of the rivals' rules, by the same run times */
    double optimus_dynamic_s;                 /* likewise, with intervals; else 0 */
    double restart_s, threshold_s;
    uint32_t intervals, replans, restarts;    /* intervals examined; plans changed; jobs that went on elsewhere */
};

/*
 * Makes a plan. Takes ownership of hardware and jobs, also after an error. Deterministic unless a time limit ends the
 * search. Errors: STATUS_INFEASIBLE naming a job that fits in no way; STATUS_BAD_INPUT for jobs that name devices;
 * errors of the clock.
 */
MUST_CHECK enum status saturn_plan(struct hardware *hardware, struct job_set *jobs,
                                   const struct saturn_options *options, struct saturn_report *report,
                                   struct plan *out, struct error *err);

#endif
