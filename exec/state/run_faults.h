/* Faults of jobs while other jobs continue. */
#ifndef SPILLWAY_EXEC_STATE_RUN_FAULTS_H
#define SPILLWAY_EXEC_STATE_RUN_FAULTS_H

#include "exec/state/run_state.h"

/* Ends the job after the minibatches that it has begun; the first reason stays. Ends the other
 * jobs too, unless the run keeps going or `alone` says that the fault concerns only this job.
 * From any thread. */
void run_fail_job(struct run *run, uint32_t job, bool alone, const struct error *why);

/* Fails a job before the run starts. Returns STATUS_OK when the run keeps going, else why->status. */
MUST_CHECK enum status run_fail_early(struct run *run, uint32_t job, struct error *why);

bool run_job_failed(struct run *run, uint32_t job);

/* Fails a job that has lost a part of its state; later results are not kept. */
void run_fail_damaged(struct run *run, uint32_t job, const struct error *why);
bool run_job_damaged(struct run *run, uint32_t job);

/* Returns false if a device of the job was lost: its losses and state must not be used. From any thread. */
bool run_job_is_sound(struct run *run, uint32_t job);

/* Ends the jobs of newly lost devices, unless they are `home`. */
void run_note_lost_devices(struct run *run);

/* Adds a note for the user, from any thread. run_tell_notes() reports them from the calling thread. */
void run_note(struct run *run, const char *format, ...) PRINTF_LIKE(2, 3);
void run_tell_notes(struct run *run);

#endif
