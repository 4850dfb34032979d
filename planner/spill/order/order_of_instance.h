/*
 * Schedules of a cut as an instance (instance_of_cut.h), made orders of its units: the best of a search
 * (schedule_search.h), to start a search that knows plans better; and one from a file.
 */
#ifndef SPILLWAY_PLANNER_SPILL_ORDER_ORDER_OF_INSTANCE_H
#define SPILLWAY_PLANNER_SPILL_ORDER_ORDER_OF_INSTANCE_H

#include "planner/solve/certify/certify.h"
#include "planner/spill/order/cost_table.h"

/*
 * The instance lacks units of the host's processor and evaluations: each comes right after its job's unit before it.
 * *out has the makespan by the planner's clock (schedule_builder.h), but not its units' next_here; release it with
 * schedule_release(), also after an error. `iterations`: of the instance's search; until_s: on clock_s(). Errors:
 * STATUS_LIMIT for jobs that no instance can hold.
 */
MUST_CHECK enum status order_of_instance(const struct cost_table *times, uint64_t seed,
                                         uint32_t iterations, double until_s, struct schedule *out,
                                         struct error *err);

/* Places the units as an instance's tasks in this order (in->task_count). *out and errors as above. */
MUST_CHECK enum status order_of_steps(const struct cost_table *times, const struct instance *in,
                                      const struct dispatch_step *steps, struct schedule *out, struct error *err);

/* The claims of a timetable's file, and their check. */
struct order_claim {
    int64_t value;           /* ticks, checked */
    int64_t bound;           /* ticks, as in the file */
    struct certificate ours; /* certificate of the same instance without the file: its bound is proven */
    double tick_s;
};

/*
 * Reads an order from a timetable's file. timetable_read_checked() checks that it is of this cut; certify() proves its
 * bound again within `limit_s` seconds, and a schedule below it refuses the file. *out is complete. Errors:
 * STATUS_BAD_INPUT, also for such a file; errors of instance_of_cut() and certify().
 */
MUST_CHECK enum status order_of_timetable(const struct cost_table *times, const char *path, uint64_t seed,
                                          double limit_s, struct schedule *out, struct order_claim *claim,
                                          struct error *err);

#endif
