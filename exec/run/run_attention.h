/* Chooses the implementation of attention for a run's jobs. Included only by files of a run. */
#ifndef SPILLWAY_EXEC_RUN_RUN_ATTENTION_H
#define SPILLWAY_EXEC_RUN_RUN_ATTENTION_H

#include "exec/state/run_state.h"

/* Prepares an opened, idle device for the attention of its jobs. If a faster implementation cannot be used, a note
 * says so once per reason. The implementations used go to run->attention_by. */
void run_prepare_attention(struct run *run, uint32_t device);

#endif
