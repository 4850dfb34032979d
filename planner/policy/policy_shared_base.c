/* Jobs that share frozen weights go through them in lockstep; see planner/strategy/shared.h. */
#include "planner/policy/policies.h"

const struct policy policy_shared_base = {
    .version = SPILLWAY_POLICY_VERSION,
    .name = "shared-base",
    .summary = "jobs with one frozen base ('adapter', 'freeze') go through it together, and it crosses once for all",
};
