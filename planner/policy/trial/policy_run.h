/*
 * A policy makes a schedule of an instance.
 *
 * Two ways to ask it:
 *
 *   planned   in virtual time, by the durations of the instance, before anything runs. Parameters of
 *             what comes next are then known and copied in as early as the rules of instance.h let
 *             them be, whenever the decision was made.
 *   live      while the tasks run and take as long as they take (`actual`); the policy still sees the
 *             estimates of what lies ahead. A copy in cannot begin before the decision that asks for
 *             it, so that a task starts no earlier than that plus its copy, unless its parameters are
 *             there.
 *
 * In both a policy decides as late as it can, when a device is free (late binding), or, where it says
 * commit_ahead, when the device's current task starts: then live copies hide behind that task.
 */
#ifndef SPILLWAY_PLANNER_POLICY_RUN_H
#define SPILLWAY_PLANNER_POLICY_RUN_H

#include "planner/policy/policy_ask.h"
#include "planner/solve/instance/timetable.h"

struct policy_run_options {
    uint64_t seed;
    bool live;
    const struct instance *actual; /* live: the same instance with the durations that tasks really
                                      have; NULL: those that were estimated */
    bool timed;                    /* measure what deciding takes */
    uint64_t decision;             /* from 1: which one is told of in `decided`; 0: none */
    const struct policy *other;    /* what that one is asked instead, once and without a past; NULL: the policy itself */
};

/* A decision as it was made. */
struct policy_decided {
    uint8_t made, waits;           /* 0 or 1; a child process tells them */
    int64_t at;                    /* ticks */
    struct policy_choice choice;   /* unless it waits */
};

/* Zeroed it is empty; release it with policy_run_release(), also after an error. A complete one becomes
 * a timetable by timetable_place(). */
struct policy_run {
    struct dispatch_step *steps; /* (task_count) in the order in which tasks got their places */
    int64_t *starts;             /* (task_count) theirs */
    uint32_t task_count;         /* made so far: all of them, unless it failed */
    int64_t value;               /* of the objective */
    uint64_t decisions;          /* including those to wait */
    double seconds;              /* spent in the policy */
    struct policy_decided decided; /* what options->decision asks for; not `made` where there were fewer */
    enum policy_rule broken;     /* after STATUS_BAD_INPUT */
};

/*
 * Errors: STATUS_INFEASIBLE for a policy that is none for instances (it is a search, keeps states
 * on devices, or uses a device that does not hold all tasks); STATUS_BAD_INPUT when it breaks a rule;
 * STATUS_NO_MEMORY.
 */
MUST_CHECK enum status policy_run(const struct policy *policy, const struct instance *in,
                                  const struct policy_run_options *options, struct policy_run *out,
                                  struct error *err);
void policy_run_release(struct policy_run *run);

#endif
