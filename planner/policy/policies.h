/* The built-in policies: one a file, the table in policies.c. */
#ifndef SPILLWAY_PLANNER_POLICIES_H
#define SPILLWAY_PLANNER_POLICIES_H

#include "planner/policy/policy.h"

/* NULL when there is none of that name. */
const struct policy *policy_find(const char *name);
const struct policy *policy_at(uint32_t index); /* NULL past the end */

/* Names of policies in the order of `--policy all`; NULL past the end. */
const char *policy_name_at(uint32_t index);

extern const struct policy policy_sharded_lrtf, policy_sharded_lrtf_cached, policy_fifo,
    policy_random, policy_srtf, policy_lrtf_emptiest, policy_spill_sequential, policy_model_parallel,
    policy_shard_parallel, policy_optimal;

/* Are orders searched for (order_search.h), and nothing is asked? */
static inline bool policy_is_searched(const struct policy *policy)
{
    return !policy->choose && !policy->rank;
}

/* The rank of several policies: what is left to compute. */
double policy_remaining(void *state, const struct policy_view *view, uint32_t job);

#endif
