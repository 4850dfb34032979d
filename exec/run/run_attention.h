#ifndef SPILLWAY_EXEC_RUN_RUN_ATTENTION_H
#define SPILLWAY_EXEC_RUN_RUN_ATTENTION_H

#include "exec/state/run_state.h"

/* Prepares an opened, idle device. A note says once per reason why a faster implementation cannot be used; those
 * used go to run->attention_by. */
void run_prepare_attention(struct run *run, uint32_t device);

#endif
