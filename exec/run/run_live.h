/* Live dispatch: the loop over a plan with choices, which asks what comes next while work runs. */
#ifndef SPILLWAY_EXEC_RUN_LIVE_H
#define SPILLWAY_EXEC_RUN_LIVE_H

#include "exec/state/run_loop.h"

struct run_live; /* opaque */

/* The policy of run->options->live. Errors: those of plan_dispatch_create(). NULL is fine to destroy, once
 * the streams have ended. */
MUST_CHECK enum status run_live_create(struct run_loop *loop, struct run_live **out, struct error *err);
void run_live_destroy(struct run_live *live);

/* Until all jobs are through, or what a stop leaves of them. A policy that fails stops the run. */
MUST_CHECK enum status run_live_walk(struct run_live *live, struct error *err);

/* Fill in what the result says of it; the trace is that of the order that came about. */
MUST_CHECK enum status run_live_sum_up(struct run_live *live, struct trace *trace, struct error *err);

#endif
