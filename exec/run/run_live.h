/* Live dispatch: a plan with choices, for which the policy is asked while work runs. */
#ifndef SPILLWAY_EXEC_RUN_RUN_LIVE_H
#define SPILLWAY_EXEC_RUN_RUN_LIVE_H

#include "exec/state/run_loop.h"

struct run_live; /* opaque */

/* Dispatches by the policy run->options->live, or as rank 0 tells. Errors: as plan_dispatch_create(). Destroy it after
 * the streams have ended; NULL does nothing. */
MUST_CHECK enum status run_live_create(struct run_loop *loop, struct run_live **out, struct error *err);
void run_live_destroy(struct run_live *live);

/* Runs until all jobs have ended or stopped. A policy that fails stops the run. */
MUST_CHECK enum status run_live_walk(struct run_live *live, struct error *err);

/* Has the other ranks' messages handed over, if there are any. Call it before run_ranks_listen(); NULL does nothing. */
void run_live_listen(struct run_live *live);

/* Fills in the result. The trace has the order in which units ran. */
MUST_CHECK enum status run_live_sum_up(struct run_live *live, struct trace *trace, struct error *err);

#endif
