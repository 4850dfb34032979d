/* Random cases for tests of policies: small instances of every kind that the rules know. */
#ifndef SPILLWAY_PLANNER_POLICY_TRIAL_POLICY_CASES_H
#define SPILLWAY_PLANNER_POLICY_TRIAL_POLICY_CASES_H

#include "planner/solve/instance/instance.h"

/* In live runs, durations differ by up to this share from the policy's estimates. */
#define POLICY_CASE_NOISE 0.3

/* Makes case `number` (from 0) of a seed: 1 to 4 devices, of two kinds in half of the cases, some without room for
 * every unit; 1 to 6 jobs of up to 4 shards, with and without copies; sometimes a bridge. Errors: as instance_random().
 * Release it with instance_release(). */
MUST_CHECK enum status policy_case(uint64_t seed, uint32_t number, struct instance *out,
                                   struct error *err);

#endif
