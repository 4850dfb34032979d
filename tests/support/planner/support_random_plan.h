/*
 * Plans of no family: operations of all kinds on all streams, in any order that rules 2 and 3 of planner/plan.h allow,
 * on machines that share links in any way, whose devices slow each other down, with and without storage and direct
 * links. They train nothing, so plan_check() would refuse them; code that only times plans must accept them.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_RANDOM_PLAN_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_RANDOM_PLAN_H

#include <stdbool.h>

#include "planner/plan.h"

struct random_plan_shape {
    uint64_t key;                /* the only source of random numbers */
    uint32_t tasks, repeats; /* tasks of one to four operations; number of repetitions of the whole */
    bool turned;                 /* the devices are in another order */
};

/* Makes a plan for at most REF_DEVICES_MAX - 1 devices. Returns the number of copies between devices in a
 * repetition. */
uint64_t random_plan(const struct random_plan_shape *shape, struct plan *out);

#endif
