/*
 * Small plans of every family, from a key: by the planner of each family on machines of one to six devices, or of
 * none (support_random_plan.h). They are as small as the family allows, so that millions can be looked at.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_RANDOM_FAMILY_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_RANDOM_FAMILY_H

#include <stdbool.h>

#include "planner/plan.h"

enum random_family {
    RANDOM_FREE,        /* of no family: operations in any legal order */
    RANDOM_ONE_LINK,    /* nothing but copies to devices behind one link, which all want from the start */
    RANDOM_SPILLED,     /* states come and go; a policy decides */
    RANDOM_RESIDENT,    /* states stay on devices: a job's shards on one each */
    RANDOM_SWAPPED,     /* activations kept, swapped or recomputed */
    RANDOM_REPLICAS,    /* one stage: data parallel, ZeRO 0 to 3 */
    RANDOM_PIPELINED,   /* synchronous pipelines of every schedule, with replicas */
    RANDOM_STALE,       /* asynchronous ones */
    RANDOM_TENSOR,      /* networks split inside their layers as well, slices of tokens included */
    RANDOM_FAMILY_COUNT
};
extern const char *const random_family_names[RANDOM_FAMILY_COUNT];

/* False: what was drawn fits on no device, and there is no plan. Fails the test when the planner fails in any
 * other way. Every plan but the first two families' has passed plan_check(). */
bool random_family_plan(enum random_family family, uint64_t key, struct plan *out);

#endif
