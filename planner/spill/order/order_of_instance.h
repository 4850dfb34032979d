/*
 * Schedules of a cut as an instance (instance_of_cut.h), as orders of its units: the best that a search
 * finds (schedule_search.h), where a search that knows more of plans may start; and one that a file
 * holds, whoever found it.
 */
#ifndef SPILLWAY_PLANNER_ORDER_OF_INSTANCE_H
#define SPILLWAY_PLANNER_ORDER_OF_INSTANCE_H

#include "planner/solve/certify/certify.h"
#include "planner/spill/order/cost_table.h"

/*
 * Units of the host's processor and evaluations, which the instance lacks, are placed as soon as their
 * job has come to them. *out: makespan by the planner's clock (schedule_builder.h), without next_here; release it
 * with schedule_release(), also after an error. `iterations` of the instance's search, until_s on clock_s().
 * Errors: STATUS_LIMIT for what no instance can hold; STATUS_NO_MEMORY.
 */
MUST_CHECK enum status order_of_instance(const struct cost_table *times, uint64_t seed,
                                         uint32_t iterations, double until_s, struct schedule *out,
                                         struct error *err);

/* What a timetable's file promises, and what is left of it when it is looked into. */
struct order_claim {
    int64_t value;           /* ticks, checked */
    int64_t bound;           /* ticks, as the file has it */
    struct certificate ours; /* of the same instance, without the file: its bound is proven */
    double tick_s;
};

/*
 * The timetable in the file, as an order: of this cut by timetable_read_checked(); its bound is proven again as
 * far as certify() gets in `limit_s`, and where that finds a schedule below it the file is refused.
 * *out as above. Errors: STATUS_BAD_INPUT, also for such a file; those of instance_of_cut() and certify().
 */
MUST_CHECK enum status order_of_timetable(const struct cost_table *times, const char *path, uint64_t seed,
                                          double limit_s, struct schedule *out, struct order_claim *claim,
                                          struct error *err);

#endif
