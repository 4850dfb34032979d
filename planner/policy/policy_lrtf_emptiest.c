/*
 * LRTF on devices with several slots: the longest remaining job goes to the device with the most free slots; ties to
 * the lowest indexes.
 *
 * Devices that take one unit at a time, as on the planner's clock, are equally empty. With several slots, each held
 * from copy in to copy out (the simulator's live dispatch), this separates copies: two units on one device share its
 * link.
 */
#include "planner/policy/policies.h"

const struct policy policy_lrtf_emptiest = {
    .version = SPILLWAY_POLICY_VERSION,
    .name = "lrtf-emptiest",
    .summary = "longest remaining job first, on the device with most free slots",
    .rank = policy_remaining,
    .emptiest = true,
};
