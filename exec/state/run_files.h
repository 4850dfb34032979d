/*
 * Jobs that wait in their files or are there again (planner/plan.h, ranges of host memory): what OPENs and CLOSEs do, on a
 * stream of their own. Does nothing for plans without ranges.
 */
#ifndef SPILLWAY_EXEC_RUN_FILES_H
#define SPILLWAY_EXEC_RUN_FILES_H

#include "exec/state/run_state.h"
#include "planner/walk/plan_walk.h"

/* Starts the stream, which goes into run->streams. */
MUST_CHECK enum status run_files_start(struct run *run, struct error *err);

/* Ends it, before any device is closed. */
void run_files_stop(struct run *run);

/* Enqueues an OPEN or a CLOSE. What goes wrong is its job's failure. */
void run_files_enqueue(struct run *run, const struct plan_walk_op *op, struct device_timing *timing);

/* Is the job's state in host memory for whoever looks when all has ended? */
bool run_job_is_open(const struct run *run, uint32_t job);

#endif
