/*
 * Searches a better order of units: list schedules under many rules, then windows of the best made again.
 *
 * A static schedule is only the order in which units are placed, and their devices (schedule_builder.h): a list of
 * (job, device), in which a job's k-th entry is its k-th unit, so that any permutation is a schedule. A rule judges a
 * candidate by the device's wait for it, copies and weight buffers included, and by its job's rest: its computation
 * (Sharded-LRTF), its time with copies without other jobs, or its remaining share, by which jobs that copy advance with
 * jobs that compute. First come built-in policies, the jobs' best schedule as an instance (order_of_instance.h) and
 * rules over a grid. Then alternate: rules near the best; windows of the best order placed again by a perturbed rule;
 * and sequences of units that change places or devices.
 *
 * Anytime; deterministic for a seed and a number of iterations, which a time limit only cuts short. The objective is
 * the makespan by the planner's clock.
 */
#ifndef SPILLWAY_PLANNER_SPILL_ORDER_ORDER_SEARCH_H
#define SPILLWAY_PLANNER_SPILL_ORDER_ORDER_SEARCH_H

#include "planner/planner_options.h"
#include "planner/spill/order/cost_table.h"

struct order_search_options {
    uint64_t seed;
    uint32_t iterations; /* schedules to make, besides the policies' schedules; below 40 without the instance */
    double until_s;      /* on clock_s() of base/process/clock.h; HUGE_VAL: none */
    double bound_s;      /* lower bound: the search stops there */
    void (*on_progress)(void *context); /* called between iterations; may be NULL */
    void *context;
};

/*
 * The partition must be a spilled one over all devices. Release *out with schedule_release(). `effort`: out. The
 * policies' schedules are made whatever the limits. Errors: STATUS_LIMIT.
 */
MUST_CHECK enum status order_search(const struct cost_table *times,
                                    const struct order_search_options *options,
                                    struct schedule *out, struct planner_search *effort, struct error *err);

#endif
