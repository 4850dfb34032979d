/* The best order that a search finds, measured against a lower bound; see order_search.h. */
#include "planner/policy/policies.h"

const struct policy policy_optimal = {
    .version = SPILLWAY_POLICY_VERSION,
    .name = "optimal",
    .summary = "the best order that a search finds from all of these (--time-limit), with a proof",
};
