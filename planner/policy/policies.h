/* The built-in policies: one per file, and the list of all. */
#ifndef SPILLWAY_PLANNER_POLICY_POLICIES_H
#define SPILLWAY_PLANNER_POLICY_POLICIES_H

#include "planner/policy/policy.h"

/* Returns the policy, or NULL for an unknown name. */
const struct policy *policy_find(const char *name);
const struct policy *policy_at(uint32_t index); /* NULL past the end */

/* Returns the names of policies in the order of `--policy all`; NULL past the end. */
const char *policy_name_at(uint32_t index);

/* X(NAME): policy_NAME of policy_NAME.c, in the order of `--policy all`. A new policy needs its file and a row here. */
#define POLICIES(X)      \
    X(sharded_lrtf)        \
    X(sharded_lrtf_cached) \
    X(lrtf_emptiest)       \
    X(srtf)                \
    X(fifo)                \
    X(random)              \
    X(spill_sequential)    \
    X(model_parallel)      \
    X(shard_parallel)      \
    X(optimal)

#define POLICY_DECLARE(name) extern const struct policy policy_##name;
POLICIES(POLICY_DECLARE)
POLICY_DECLARE(milp) /* known by its name only: it asks a solver, which is seldom wanted with all others */
POLICY_DECLARE(shared_base) /* likewise: it is a way to cut and to order at once (planner/strategy/shared.h) */
#undef POLICY_DECLARE

/* Returns true when the policy is a search for orders (order_search.h, order_milp.h), which is never asked. */
static inline bool policy_is_searched(const struct policy *policy)
{
    return !policy->choose && !policy->rank;
}

/* Returns the remaining computation: the rank of several policies. */
double policy_remaining(void *state, const struct policy_view *view, uint32_t job);

#endif
