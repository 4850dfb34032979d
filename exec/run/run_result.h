/* The outcome of a run, in its result and its trace. */
#ifndef SPILLWAY_EXEC_RUN_RUN_RESULT_H
#define SPILLWAY_EXEC_RUN_RUN_RESULT_H

#include "exec/state/run_loop.h"

/* Adds `why` to result->unwritten. */
void run_result_unwritten(struct run_result *result, const struct error *why);

/* Keeps results and reports failures, after all work has ended. Errors: STATUS_IO, and the
 * failure of a job that ended the run. */
MUST_CHECK enum status run_sum_up(struct run_loop *loop, struct trace *trace, struct error *err);

#endif
