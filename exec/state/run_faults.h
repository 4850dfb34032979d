/* Faults of jobs while other jobs continue. */
#ifndef SPILLWAY_EXEC_STATE_RUN_FAULTS_H
#define SPILLWAY_EXEC_STATE_RUN_FAULTS_H

#include "exec/state/run_state.h"

/* Ends the job after the minibatches that it has begun, for the reason `why`; the first reason
 * stays. Ends the other jobs too, unless the run keeps going or `alone` says that the fault
 * concerns only this job. From any thread. */
void run_fail_job(struct run *run, uint32_t job, bool alone, const struct error *why);

/* Fails a job before the run starts. Returns STATUS_OK when the run keeps going, else the status of
 * `why`. */
MUST_CHECK enum status run_fail_early(struct run *run, uint32_t job, struct error *why);

bool run_job_failed(struct run *run, uint32_t job);

/* Fails a job that lost a part of its state; results computed since then are not kept. */
void run_fail_damaged(struct run *run, uint32_t job, const struct error *why);
bool run_job_damaged(struct run *run, uint32_t job);

/* Returns true when every device that the job uses still works. Otherwise losses and state that
 * came from a lost device must not be used. From any thread. */
bool run_job_is_sound(struct run *run, uint32_t job);

/* Ends the jobs of devices that were lost since the last call, unless they are `home`. */
void run_note_lost_devices(struct run *run);

/* Notes something for the user that ends nothing, from any thread. run_tell_notes() reports the
 * notes from the calling thread. */
void run_note(struct run *run, const char *format, ...) PRINTF_LIKE(2, 3);
void run_tell_notes(struct run *run);

#endif
