/*
 * A policy makes a schedule of an instance.
 *
 * There are two ways to ask it:
 *
 *     planned   in virtual time, by the durations of the instance, before anything runs. The parameters of
 *               the next task are then known and copied in as early as the rules of instance.h allow,
 *               whenever the decision was made
 *     live      while the tasks run and take their real time (`actual`); the policy still sees estimates of
 *               the future. A copy in cannot begin before its decision, so a task starts no earlier than the
 *               decision plus its copy, unless its parameters are on the device
 *
 * In both ways a policy decides as late as it can, when a device is free (late binding), or, with commit_ahead, when
 * the device's current task starts: then live copies hide behind that task.
 */
#ifndef SPILLWAY_PLANNER_POLICY_TRIAL_POLICY_RUN_H
#define SPILLWAY_PLANNER_POLICY_TRIAL_POLICY_RUN_H

#include "planner/policy/policy_ask.h"
#include "planner/solve/instance/timetable.h"

struct policy_run_options {
    uint64_t seed;
    bool live;
    const struct instance *actual; /* live: the same instance with real durations; NULL: the estimates */
    bool timed;                    /* measure the time of decisions */
    uint64_t decision;             /* number, from 1, of the decision to report in `decided`; 0: none */
    const struct policy *other;    /* policy that is asked for that decision instead, once and without a past; NULL: the
                                      policy itself */
};

/* A decision as it was made. */
struct policy_decided {
    uint8_t made, waits;           /* 0 or 1, as reported by a child process */
    int64_t at;                    /* ticks */
    struct policy_choice choice;   /* unless it waits */
};

/* Zeroed: empty. Release it with policy_run_release(), also after an error. timetable_place() makes a timetable of a
 * complete run. */
struct policy_run {
    struct dispatch_step *steps; /* (task_count) in the order of decisions */
    int64_t *starts;             /* (task_count) their starts */
    uint32_t task_count;         /* tasks placed: all of them, unless it failed */
    int64_t value;               /* value of the objective */
    uint64_t decisions;          /* including decisions to wait */
    double seconds;              /* time spent in the policy */
    struct policy_decided decided; /* decision number options->decision; not `made` when there were fewer */
    enum policy_rule broken;     /* after STATUS_BAD_INPUT */
};

/*
 * Runs a policy. Errors: STATUS_INFEASIBLE for a policy that does not apply to instances (it is a search, keeps states
 * on devices, or uses a device that does not hold all tasks); STATUS_BAD_INPUT when it breaks a rule.
 */
MUST_CHECK enum status policy_run(const struct policy *policy, const struct instance *in,
                                  const struct policy_run_options *options, struct policy_run *out,
                                  struct error *err);
void policy_run_release(struct policy_run *run);

#endif
