/* What came out of a run, in its result and its trace. */
#ifndef SPILLWAY_EXEC_RUN_RESULT_H
#define SPILLWAY_EXEC_RUN_RESULT_H

#include "exec/state/run_loop.h"

/* Adds `why` to result->unwritten. */
void run_result_unwritten(struct run_result *result, const struct error *why);

/* When all has ended: what is to be kept is kept, and what failed is told. Errors: STATUS_NO_MEMORY,
 * STATUS_IO, and that of a job whose failure ended the run. */
MUST_CHECK enum status run_sum_up(struct run_loop *loop, struct trace *trace, struct error *err);

#endif
