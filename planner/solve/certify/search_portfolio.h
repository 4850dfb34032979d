/*
 * Several searches of one instance at the same time (schedule_search.h), each with its own seed on its own thread. The
 * best schedule is kept; of equal ones, the schedule of the search with the lowest number.
 *
 * Local search depends on luck: the better of two searches was 0.12 to 0.17 points nearer to the bound than the mean of
 * the two (20 instances of 12 to 15 jobs on 8 devices, 250 passes each). An instance without local search gets one
 * search, whatever the number asked for.
 *
 * Deterministic for a seed, a number of iterations and a number of searches, without a time limit: the first search is
 * the one of schedule_search(), and only its result cuts others short.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_CERTIFY_SEARCH_PORTFOLIO_H
#define SPILLWAY_PLANNER_SOLVE_CERTIFY_SEARCH_PORTFOLIO_H

#include "planner/solve/search/schedule_search.h"

enum { SEARCH_PORTFOLIO_MAX = 16 };

/*
 * Searches as schedule_search(), with `searches` searches (1 to SEARCH_PORTFOLIO_MAX); options->stop is ignored.
 * *iterations: iterations of the first search. Without a thread for a search, the search runs after the first one.
 * Errors: STATUS_NO_MEMORY, when any search fails.
 */
MUST_CHECK enum status search_portfolio(const struct instance *in, const struct instance_bounds *bounds,
                                        const struct schedule_search_options *options, uint32_t searches,
                                        struct dispatch_step *steps, int64_t *value, uint32_t *iterations,
                                        struct error *err);

#endif
