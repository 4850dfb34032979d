/* The outcome of planning one way. */
#ifndef SPILLWAY_CLI_WAYS_CLI_OUTCOME_H
#define SPILLWAY_CLI_WAYS_CLI_OUTCOME_H

#include <stdbool.h>

enum { CLI_POLICIES_MAX = 128, CLI_OUTCOME_NAME_BYTES = 96 };

enum cli_outcome_kind {
    CLI_OUTCOME_PLAN,      /* a plan was made and simulated */
    CLI_OUTCOME_NO_ROOM,   /* the jobs do not fit */
    CLI_OUTCOME_REFUSED,   /* does not suit jobs, machine or options */
    CLI_OUTCOME_NOT_TRIED
};

/* The outcome of a policy, a cut or another way. */
struct cli_policy_outcome {
    char policy[CLI_OUTCOME_NAME_BYTES];
    enum cli_outcome_kind kind;
    bool runnable;     /* `run` can carry it out (plan_runnable.h) */
    char reason[1024]; /* why there is no plan, or it cannot be run */
    double makespan_s, estimated_makespan_s, lower_bound_s;
    double tokens_per_s, samples_per_s, compute_share;
};

#endif
