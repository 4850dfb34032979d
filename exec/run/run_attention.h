/* The choice of the code that computes the attention of a run's jobs. Included only by files of a run. */
#ifndef SPILLWAY_EXEC_RUN_ATTENTION_H
#define SPILLWAY_EXEC_RUN_ATTENTION_H

#include "exec/state/run_state.h"

/* Of a device that was opened and has nothing to do yet: let it get ready for the attention of the jobs
 * that use it. Where it will be slower than it could be, a note says so once for each reason; what it
 * is done by goes to run->attention_by. */
void run_prepare_attention(struct run *run, uint32_t device);

#endif
