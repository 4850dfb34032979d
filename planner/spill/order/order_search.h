/*
 * Searches a better order of units: list schedules under many rules, then windows of the best one made again.
 *
 * A static schedule decides only the order in which units are placed, and their devices (schedule_builder.h). It is a
 * list of (job, device), in which the k-th entry of a job is its k-th unit, so that any permutation is a schedule. A
 * rule judges a candidate by the device's wait for it, copies and weight buffers included, and by the rest of its job:
 * its computation (Sharded-LRTF's measure), its time with copies without other jobs, or the remaining share of the job.
 * By the last measure, jobs that copy advance together with jobs that compute. First come the built-in policies, the
 * best schedule of the jobs as an instance (order_of_instance.h) and rules over a grid. Then these alternate: rules
 * near the best one; windows of the best order, whose units are placed again by a perturbed rule and the later units as
 * before; and sequences of units that change places or devices.
 *
 * Anytime; deterministic for a seed and a number of iterations, and a time limit only cuts it short. The objective is
 * the makespan by the planner's clock.
 */
#ifndef SPILLWAY_PLANNER_SPILL_ORDER_ORDER_SEARCH_H
#define SPILLWAY_PLANNER_SPILL_ORDER_ORDER_SEARCH_H

#include "planner/planner_options.h"
#include "planner/spill/order/cost_table.h"

struct order_search_options {
    uint64_t seed;
    uint32_t iterations; /* schedules to make, besides the policies' schedules; below 40 without the instance */
    double until_s;      /* on clock_s() of base/process/progress.h; HUGE_VAL: none */
    double bound_s;      /* lower bound: the search stops there */
    void (*on_progress)(void *context); /* called between iterations; may be NULL */
    void *context;
};

/*
 * Searches. The partition must be a spilled one over all devices. Release *out with schedule_release(). `effort`: out.
 * The policies' schedules are made whatever the limits. Errors: STATUS_LIMIT.
 */
MUST_CHECK enum status order_search(const struct cost_table *times,
                                    const struct order_search_options *options,
                                    struct schedule *out, struct planner_search *effort, struct error *err);

#endif
