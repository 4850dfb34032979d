/*
 * The best schedule of a cut as an instance (instance_of_cut.h, schedule_search.h), as an order of its
 * units: where a search that knows more of plans may start.
 */
#ifndef SPILLWAY_PLANNER_ORDER_OF_INSTANCE_H
#define SPILLWAY_PLANNER_ORDER_OF_INSTANCE_H

#include "planner/unit_times.h"

/*
 * Units of the host's processor and evaluations, which the instance lacks, are placed as soon as their
 * job has come to them. *out: makespan by the planner's clock (placing.h), without next_here; release it
 * with schedule_release(), also after an error. `iterations` of the instance's search, until_s on clock_s().
 * Errors: STATUS_LIMIT for what no instance can hold; STATUS_NO_MEMORY.
 */
MUST_CHECK enum status order_of_instance(const struct unit_times *times, uint64_t seed,
                                         uint32_t iterations, double until_s, struct schedule *out,
                                         struct error *err);

#endif
