/*
 * Frozen weights that jobs share (models/jobs/job_base.h).
 *
 * They lie in host memory once, after all other host buffers. A table of all of a job's weights has them at their
 * distance from the job's own state, so that whatever walks over weights finds both.
 */
#ifndef SPILLWAY_EXEC_STATE_RUN_BASE_H
#define SPILLWAY_EXEC_STATE_RUN_BASE_H

#include "exec/state/run_state.h"

/* Makes run->whole_tables: the tables of states, with the bases of jobs that share them. Host buffers have their places
 * and states their addresses. */
MUST_CHECK enum status run_base_create(struct run *run, struct error *err);

/* Returns true if the job's frozen weights are in its own states, or it is the first sound job of those that share
 * them: it fills them in. */
bool run_base_fills(struct run *run, uint32_t job);

/* Returns the job that fills in the job's base; PLAN_NONE: none is sound. */
uint32_t run_base_filler(struct run *run, uint32_t job);

#endif
