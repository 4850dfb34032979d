/*
 * LRTF on devices with several slots: the ready job with the longest remaining time goes to the device with the most
 * free slots; ties to the lowest index of both.
 *
 * Devices that take one unit at a time, as on the planner's clock, are all equally empty. With several slots, each held
 * from the copy in to the copy out (live dispatch in the simulator), this rule separates copies: two units on one
 * device share its link, on two devices they do not.
 */
#include "planner/policy/policies.h"

const struct policy policy_lrtf_emptiest = {
    .version = SPILLWAY_POLICY_VERSION,
    .name = "lrtf-emptiest",
    .summary = "longest remaining job first, on the device with most free slots",
    .rank = policy_remaining,
    .emptiest = true,
};
