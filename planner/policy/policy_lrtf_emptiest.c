/*
 * LRTF on devices with several slots: the ready job with the longest remaining time, to the device that
 * can take most units, ties to the lowest index on both sides.
 *
 * Where devices take one unit at a time, as on the planner's clock, they are all equally empty; where a
 * unit holds one of several slots from its copy in to its copy out (live dispatch in the simulator),
 * this keeps copies apart: two units that come to one device share its link, to two devices they do not.
 */
#include "planner/policy/policies.h"

const struct policy policy_lrtf_emptiest = {
    .version = SPILLWAY_POLICY_VERSION,
    .name = "lrtf-emptiest",
    .summary = "longest remaining job first, on the device with most free slots",
    .rank = policy_remaining,
    .emptiest = true,
};
