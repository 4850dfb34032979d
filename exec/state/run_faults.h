/* Jobs that fail while others go on. */
#ifndef SPILLWAY_EXEC_RUN_FAULTS_H
#define SPILLWAY_EXEC_RUN_FAULTS_H

#include "exec/state/run_state.h"

/* This job ends with the minibatches it has begun, for this reason; the first reason stays. Unless the
 * run keeps going, or the fault is `alone` the job's, the other jobs end as well. From any thread. */
void run_fail_job(struct run *run, uint32_t job, bool alone, const struct error *why);

/* The same before anything runs; returns STATUS_OK when the run keeps going, else what `why` says. */
MUST_CHECK enum status run_fail_early(struct run *run, uint32_t job, struct error *why);

bool run_job_failed(struct run *run, uint32_t job);

/* A part of its state is lost: it fails, and what it computed since is not to be kept. */
void run_fail_damaged(struct run *run, uint32_t job, const struct error *why);
bool run_job_damaged(struct run *run, uint32_t job);

/* Is every device there that the job uses? Else losses and state that came from one since are not to
 * be used. From any thread. */
bool run_job_is_sound(struct run *run, uint32_t job);

/* End the jobs of devices that were lost since the last call, unless they are `home`. */
void run_note_lost_devices(struct run *run);

/* Tell the user something that does not end anything. From any thread; told by the calling one. */
void run_note(struct run *run, const char *format, ...) PRINTF_LIKE(2, 3);
void run_tell_notes(struct run *run);

#endif
