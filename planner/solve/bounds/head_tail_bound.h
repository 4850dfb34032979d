/*
 * What devices take in front of their first and behind the start of their last tasks, beyond the duals of the
 * assignment bound (instance_bound.h).
 *
 * First tasks of devices are different tasks, and last ones too; of the tasks of one unit each is a whole
 * pass through the network later, or further from the end, than another. So the i-th least start and the
 * i-th least end are paid by i devices each, and not the least ones by all of them.
 */
#ifndef SPILLWAY_PLANNER_HEAD_TAIL_BOUND_H
#define SPILLWAY_PLANNER_HEAD_TAIL_BOUND_H

#include "planner/solve/bounds/instance_bound.h"

struct head_tail_bound {
    __int128 both; /* of all devices; one without tasks pays `least` instead */
    __int128 ends; /* the least ends alone, of as many devices as there are or of all tasks */
    int64_t last;  /* the largest of these; no device need be counted with more */
    bool full;     /* there are as many tasks as devices */
};

/* `least`: a makespan that is proven otherwise. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status head_tail_bound_find(const struct instance *in, int64_t least, const struct instance_bounds *duals,
                                      struct head_tail_bound *out, struct error *err);

/* When a device whose first task is of this unit can start it: its copy in is waited for as well. */
int64_t head_tail_bound_first_start(const struct instance *in, uint32_t unit);

#endif
