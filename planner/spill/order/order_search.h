/*
 * A better order of units: list schedules under many rules, then windows of the best one made anew.
 *
 * All that a static schedule decides is the order in which units are placed, and on which device
 * (schedule_builder.h): a list of (job, device), in which the k-th entry of a job is its k-th unit, so that
 * any permutation is a schedule. A rule judges a candidate by how long the device would wait for it,
 * copies and weight buffers included, and by what is left of its job: computation (Sharded-LRTF's measure),
 * time that it would take alone with its copies, or the share of its own that is left, which has
 * jobs that copy advance beside jobs that compute. First come the built-in policies, the best schedule
 * of the jobs as an instance (order_of_instance.h) and rules over a grid; then, in turns, rules near the
 * best one; windows of the best order, whose units are placed anew by a perturbed rule and those behind
 * it as before; and runs of units that change places or devices.
 *
 * Anytime; deterministic for a seed and a number of iterations, a limit of time only cuts it short.
 * The objective is the makespan by the planner's clock.
 */
#ifndef SPILLWAY_PLANNER_ORDER_SEARCH_H
#define SPILLWAY_PLANNER_ORDER_SEARCH_H

#include "planner/planner_options.h"
#include "planner/spill/order/cost_table.h"

struct order_search_options {
    uint64_t seed;
    uint32_t iterations; /* schedules made, those of the policies aside; below 40 without the instance */
    double until_s;      /* on clock_s() of base/process/progress.h; HUGE_VAL: none */
    double bound_s;      /* nothing is below: stop there */
    void (*on_progress)(void *context); /* called between iterations; may be NULL */
    void *context;
};

/*
 * The partition must be a spilled one over all devices. Release *out with schedule_release().
 * `effort`: out. The policies' schedules are made, whatever the limits.
 * Errors: STATUS_NO_MEMORY, STATUS_LIMIT.
 */
MUST_CHECK enum status order_search(const struct cost_table *times,
                                    const struct order_search_options *options,
                                    struct schedule *out, struct planner_search *effort, struct error *err);

#endif
