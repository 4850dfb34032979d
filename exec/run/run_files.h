/*
 * OPENs and CLOSEs, which move jobs between files and host memory (planner/plan.h, ranges), on a stream of their own.
 * Does nothing for plans without ranges.
 */
#ifndef SPILLWAY_EXEC_RUN_RUN_FILES_H
#define SPILLWAY_EXEC_RUN_RUN_FILES_H

#include "exec/state/run_state.h"
#include "planner/walk/plan_walk.h"

/* Adds the stream to run->streams. */
MUST_CHECK enum status run_files_start(struct run *run, struct error *err);

/* Called before any device is closed. */
void run_files_stop(struct run *run);

/* Enqueues an OPEN or a CLOSE, whose fault fails its job. */
void run_files_enqueue(struct run *run, const struct plan_walk_op *op, struct device_timing *timing);

#endif
