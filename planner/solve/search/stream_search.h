/*
 * Searches an order for instances with streams (planner/solve/instance/dispatch_streams.h), as the planner does for the
 * units of a cut (planner/spill/order/order_search.h): list schedules under many rules, then windows of the best order
 * dispatched again by a perturbed rule, and sequences of tasks that change places or devices.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_SEARCH_STREAM_SEARCH_H
#define SPILLWAY_PLANNER_SOLVE_SEARCH_STREAM_SEARCH_H

#include "planner/solve/search/schedule_search.h"

/* As schedule_search(), which calls it. */
MUST_CHECK enum status stream_search(const struct instance *in, int64_t bound,
                                     const struct schedule_search_options *options, struct dispatch_step *steps,
                                     int64_t *value, uint32_t *iterations, struct error *err);

#endif
