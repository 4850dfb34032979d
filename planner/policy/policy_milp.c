/* An order that GLPK improves, from the best of a search; see planner/spill/order/order_milp.h. */
#include "planner/policy/policies.h"

const struct policy policy_milp = {
    .version = SPILLWAY_POLICY_VERSION,
    .name = "milp",
    .summary = "the order of policy optimal, improved by GLPK (--time-limit), with its proof where units are few",
};
