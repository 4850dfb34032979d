/*
 * Several searches of one instance at the same time (schedule_search.h), each with a seed of its own on a thread
 * of its own; the best schedule is kept, of equal ones that of the first.
 *
 * How well local search ends depends on luck: the better of two was 0.12 to 0.17 points nearer to the bound than the two
 * are in the mean (20 instances of 12 to 15 jobs on 8 devices, 250 passes each). Searches without local search go to one
 * search, whatever is asked for.
 *
 * Deterministic for a seed, a number of iterations and a number of searches, without a limit of time: the first
 * search is what schedule_search() does alone, and only what it finds cuts others short.
 */
#ifndef SPILLWAY_PLANNER_SCHEDULE_STREAMS_H
#define SPILLWAY_PLANNER_SCHEDULE_STREAMS_H

#include "planner/solve/search/schedule_search.h"

enum { SEARCH_PORTFOLIO_MAX = 16 };

/*
 * As schedule_search() with `searches` (1 to SEARCH_PORTFOLIO_MAX) of them; options->stop is of no use.
 * *iterations: of the first. A thread that cannot be had is done without: its search follows the first.
 * Errors: STATUS_NO_MEMORY, when any of them fails.
 */
MUST_CHECK enum status search_portfolio(const struct instance *in, const struct instance_bounds *bounds,
                                        const struct schedule_search_options *options, uint32_t searches,
                                        struct dispatch_step *steps, int64_t *value, uint32_t *iterations,
                                        struct error *err);

#endif
