/*
 * Where packed rows begin: passes over blocks need it, and get no batch. A buffer for each stream that computes is
 * filled right before a pass, on the stream's thread: 8 bytes a token of a minibatch, in host memory that plans do not
 * count.
 */
#ifndef SPILLWAY_EXEC_RUN_RUN_ROWS_H
#define SPILLWAY_EXEC_RUN_RUN_ROWS_H

#include "exec/network/unit.h"
#include "exec/state/run_state.h"
#include "planner/walk/plan_walk.h"

/* Makes the buffers, if a job packs rows. */
MUST_CHECK enum status run_rows_open(struct run *run, struct error *err);

/* Returns the buffer for a pass of a job that packs rows; NULL for others. */
int32_t *run_rows_of(const struct run *run, const struct plan_walk_op *op);

/* Returns the rows of positions within the buffer. */
int32_t *run_rows_positions(const struct job *job, int32_t *begins);

/* Fills both parts for a pass over one microbatch, or over all of a minibatch of the data. */
void run_rows_fill(const struct run *run, uint32_t job, uint32_t pass, uint64_t batch_index,
                   const struct unit_microbatch *microbatch, int32_t *begins);

#endif
