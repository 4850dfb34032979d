/*
 * Tries a policy on an instance without risk. A user's code is loaded and run in a child process with limits of time
 * and memory, and timetable_check() judges its schedule in this process. Built-in policies run in this process.
 */
#ifndef SPILLWAY_PLANNER_POLICY_TRIAL_POLICY_TRIAL_H
#define SPILLWAY_PLANNER_POLICY_TRIAL_POLICY_TRIAL_H

#include "base/process/contain.h"
#include "planner/policy/policy_load.h"
#include "planner/policy/trial/policy_run.h"

struct policy_trial_options {
    struct policy_run_options run;
    const char *other;            /* a name or a file: opened as run.other; NULL: none */
    bool twice;                   /* run twice in the same process, to compare the choices */
    struct contain_limits limits; /* for the user's code; for all runs of the trial together */
};

enum { POLICY_TRIAL_TEXT_BYTES = 1024 };

/* Zeroed: empty. Release it with policy_trial_release(). */
struct policy_trial {
    char name[POLICY_NAME_MAX + 1]; /* the policy's own name; "" when it was not loaded */
    enum status status;       /* OK; INFEASIBLE: not for this instance; CHECK: `broken`; BAD_INPUT: loading failed */
    enum policy_rule broken;
    char text[POLICY_TRIAL_TEXT_BYTES]; /* the reason, unless OK */
    struct policy_run run;    /* complete when OK */
};

/*
 * Tries a policy. `policy` is a name or a file (policy_load.h). A fault of the policy is a result (out->status), not an
 * error. Errors: STATUS_DEVICE without a child process.
 */
MUST_CHECK enum status policy_trial(const char *policy, const struct instance *in,
                                    const struct policy_trial_options *options,
                                    struct policy_trial *out, struct error *err);
void policy_trial_release(struct policy_trial *trial);

#endif
