/*
 * Small plans of every family, from a key: made by the family's planner on machines of one to six devices, or without a
 * planner (support_random_plan.h). They are as small as the family allows, so that millions can be tested.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_RANDOM_FAMILY_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_RANDOM_FAMILY_H

#include <stdbool.h>

#include "planner/plan.h"

enum random_family {
    RANDOM_FREE,        /* no family: operations in any legal order */
    RANDOM_ONE_LINK,    /* only copies to devices that share one link, all ready at the start */
    RANDOM_SPILLED,     /* states are spilled; a policy decides */
    RANDOM_RESIDENT,    /* states stay on devices: each shard of a job on one */
    RANDOM_SWAPPED,     /* activations kept, swapped or recomputed */
    RANDOM_REPLICAS,    /* one stage: data parallel, ZeRO 0 to 3 */
    RANDOM_PIPELINED,   /* synchronous pipelines of every schedule, with replicas */
    RANDOM_STALE,       /* asynchronous pipelines */
    RANDOM_TENSOR,      /* networks split within their layers as well, with slices of tokens */
    RANDOM_FAMILY_COUNT
};
extern const char *const random_family_names[RANDOM_FAMILY_COUNT];

/* Makes a plan. Returns false if the drawn jobs fit on no device. Fails the test on other errors of the planner.
 * Every plan except the first two families' has passed plan_check(). */
bool random_family_plan(enum random_family family, uint64_t key, struct plan *out);

#endif
