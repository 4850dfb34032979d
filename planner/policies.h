/* The built-in policies: one a file, the table in policies.c. */
#ifndef SPILLWAY_PLANNER_POLICIES_H
#define SPILLWAY_PLANNER_POLICIES_H

#include "planner/policy.h"

/* NULL when there is none of that name. */
const struct policy *policy_find(const char *name);
const struct policy *policy_at(uint32_t index); /* NULL past the end */

extern const struct policy policy_sharded_lrtf, policy_sharded_lrtf_cached, policy_fifo,
    policy_random, policy_srtf, policy_spill_sequential, policy_model_parallel,
    policy_shard_parallel, policy_optimal;

/* Are orders searched for (order_search.h), and nothing is asked? */
static inline bool policy_is_searched(const struct policy *policy)
{
    return !policy->choose;
}

/* The job for which `rank` is highest of those that may run, ties to the lowest index, on the device
 * of policy_place(): what several policies share. False: none may. */
typedef double (*policy_rank)(const struct policy_view *view, const struct policy_job *job);
bool policy_highest(const struct policy_view *view, policy_rank rank, struct policy_choice *out);

/* policy_highest() by remaining time. */
bool policy_longest(void *state, const struct policy_view *view, struct policy_choice *out);

#endif
