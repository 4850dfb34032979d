/*
 * Plans of no family: operations of all kinds on all streams, in any order that rules 2 and 3 of
 * planner/plan.h allow, on machines whose links are shared in any way, whose devices slow each other down,
 * with and without storage and direct links. plan_check() would refuse them, for they train nothing; whoever
 * only times plans must not mind.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_RANDOM_PLAN_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_RANDOM_PLAN_H

#include <stdbool.h>

#include "planner/plan.h"

struct random_plan_shape {
    uint64_t key;                /* what is drawn depends on it alone */
    uint32_t instances, repeats; /* of one to four operations; the whole of them so often */
    bool turned;                 /* the devices in another order */
};

/* At most REF_DEVICES_MAX - 1 devices. Returns how many copies between devices a repetition has. */
uint64_t random_plan(const struct random_plan_shape *shape, struct plan *out);

#endif
