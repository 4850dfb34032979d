/* The checks by which a run is refused; run_setup.c makes them before anything that takes long. */
#ifndef SPILLWAY_EXEC_RUN_CHECKS_H
#define SPILLWAY_EXEC_RUN_CHECKS_H

#include "exec/state/run_state.h"

/* Can the plan's jobs be trained by an executor at all, on any machine? STATUS_BAD_INPUT. */
MUST_CHECK enum status run_check_plan(const struct plan *plan, struct error *err);

/* Finds the back end, run->backend. STATUS_DEVICE when this machine is not the one that the plan is for. */
MUST_CHECK enum status run_check_machine(struct run *run, struct error *err);

/* Options and output files of each job. */
MUST_CHECK enum status run_check_jobs(struct run *run, struct error *err);

/* Names and shapes in the files of weights that jobs begin with. */
MUST_CHECK enum status run_check_weights(struct run *run, struct error *err);

/* STATUS_NO_MEMORY when host buffers and arenas together exceed the memory that is available. */
MUST_CHECK enum status run_check_memory(const struct run *run, struct error *err);

#endif
