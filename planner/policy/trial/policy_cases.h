/* Random cases that policies are tested on: small instances of every kind that the rules know. */
#ifndef SPILLWAY_PLANNER_POLICY_CASES_H
#define SPILLWAY_PLANNER_POLICY_CASES_H

#include "planner/solve/instance/instance.h"

/* In what runs live, durations differ by up to this share from those that the policy sees. */
#define POLICY_CASE_NOISE 0.3

/* Case `number` (from 0) of a seed: 1 to 4 devices, of two kinds in half of the cases, some of them
 * without room for every unit; 1 to 6 jobs of up to 4 shards with copies and without; sometimes a
 * bridge. Errors: those of instance_random(). Release it with instance_release(). */
MUST_CHECK enum status policy_case(uint64_t seed, uint32_t number, struct instance *out,
                                   struct error *err);

#endif
