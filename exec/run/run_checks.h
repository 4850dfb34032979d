/* Checks that can refuse a run; run_setup.c makes them before anything slow. */
#ifndef SPILLWAY_EXEC_RUN_RUN_CHECKS_H
#define SPILLWAY_EXEC_RUN_RUN_CHECKS_H

#include "exec/state/run_state.h"

/* Checks that the plan's jobs can be trained by an executor on some machine. Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status run_check_plan(const struct plan *plan, struct error *err);

/* Finds the back end, run->backend. Errors: STATUS_DEVICE when the plan is for another machine. */
MUST_CHECK enum status run_check_machine(struct run *run, struct error *err);

/* Checks options and output files of each job. */
MUST_CHECK enum status run_check_jobs(struct run *run, struct error *err);

/* Checks names and shapes in the files of initial weights. */
MUST_CHECK enum status run_check_weights(struct run *run, struct error *err);

/* Checks that host buffers and arenas together fit into the available memory. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status run_check_memory(const struct run *run, struct error *err);

#endif
