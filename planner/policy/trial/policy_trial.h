/*
 * Try a policy on an instance, at no risk: the user's code is loaded and run in a child process with
 * limits of time and memory, and what it leads to is judged here, by timetable_check(). Built-in
 * policies are run in this process.
 */
#ifndef SPILLWAY_PLANNER_POLICY_TRIAL_H
#define SPILLWAY_PLANNER_POLICY_TRIAL_H

#include "base/process/contain.h"
#include "planner/policy/policy_load.h"
#include "planner/policy/trial/policy_run.h"

struct policy_trial_options {
    struct policy_run_options run;
    const char *other;            /* a name or a file: opened as run.other; NULL: none */
    bool twice;                   /* a second time in the same process: are all choices the same? */
    struct contain_limits limits; /* for the user's code; of all runs of the trial together */
};

enum { POLICY_TRIAL_TEXT_BYTES = 1024 };

/* Zeroed it is empty; release it with policy_trial_release(). */
struct policy_trial {
    char name[POLICY_NAME_MAX + 1]; /* what the policy calls itself; "" when it was not loaded */
    enum status status;       /* OK; INFEASIBLE: not for this instance; CHECK: `broken`; BAD_INPUT: it
                                 could not be loaded */
    enum policy_rule broken;
    char text[POLICY_TRIAL_TEXT_BYTES]; /* why, unless OK */
    struct policy_run run;    /* complete when OK */
};

/*
 * `policy` is a name or a file (policy_load.h). What the policy does wrong is a result (out->status),
 * not an error. Errors: STATUS_NO_MEMORY, STATUS_DEVICE when there can be no child.
 */
MUST_CHECK enum status policy_trial(const char *policy, const struct instance *in,
                                    const struct policy_trial_options *options,
                                    struct policy_trial *out, struct error *err);
void policy_trial_release(struct policy_trial *trial);

#endif
