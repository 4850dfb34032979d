/* Checks that can refuse a run, before anything slow. */
#ifndef SPILLWAY_EXEC_RUN_RUN_CHECKS_H
#define SPILLWAY_EXEC_RUN_RUN_CHECKS_H

#include "exec/state/run_state.h"

/* Checks that jobs can be trained on some machine. Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status run_check_plan(const struct plan *plan, uint32_t processes, struct error *err);

/* Finds run->backend. Errors: STATUS_DEVICE when the plan is for another machine. */
MUST_CHECK enum status run_check_machine(struct run *run, struct error *err);

/* Checks options and output files. */
MUST_CHECK enum status run_check_jobs(struct run *run, struct error *err);

/* Checks names and shapes in files of initial weights. */
MUST_CHECK enum status run_check_weights(struct run *run, struct error *err);

/* Checks that host buffers and arenas fit into available memory. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status run_check_memory(const struct run *run, struct error *err);

#endif
