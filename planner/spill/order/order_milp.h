/*
 * Orders of units by GLPK (planner/solve/exact/stream_solve.h): the best order of a search (order_search.h), improved.
 *
 * The cut becomes an instance with streams (instance_of_cut.h), whose clock is the planner's but for rounding. Where it
 * has few tasks GLPK is asked for a better order of all, and what it says about them bounds the makespan of every
 * order; otherwise it is asked for better orders of windows. An order of GLPK is placed by the planner's clock and
 * taken only if it ends earlier there, so the result is never worse than the search's.
 */
#ifndef SPILLWAY_PLANNER_SPILL_ORDER_ORDER_MILP_H
#define SPILLWAY_PLANNER_SPILL_ORDER_ORDER_MILP_H

#include "planner/spill/order/order_search.h"

struct order_milp_options {
    struct order_search_options search; /* before GLPK, within half of the time */
    uint32_t windows;                   /* programs for GLPK */
};

/*
 * As order_search(). *report: out. The partition must be a spilled one over all devices. That GLPK does not take the
 * instance, or fails, is told in the report and costs its share only.
 */
MUST_CHECK enum status order_milp(const struct cost_table *times, const struct order_milp_options *options,
                                  struct schedule *out, struct planner_search *effort, struct planner_milp *report,
                                  struct error *err);

#endif
