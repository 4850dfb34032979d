/* Policies that choose no units themselves: the planner knows them by name. */
#include "planner/policy/policies.h"

/* From the best order of a search; see planner/spill/order/order_milp.h. */
const struct policy policy_milp = {
    .version = SPILLWAY_POLICY_VERSION,
    .name = "milp",
    .summary = "the order of policy optimal, improved by GLPK (--time-limit), with its proof where units are few",
};

/* Jobs that share frozen weights, in lockstep; see planner/strategy/shared.h. */
const struct policy policy_shared_base = {
    .version = SPILLWAY_POLICY_VERSION,
    .name = "shared-base",
    .summary = "jobs with one frozen base ('adapter', 'freeze') go through it together, and it crosses once for all",
};
