/*
 * Jobs that stop and go on elsewhere (planner/plan.h): a job whose reservation follows another one begins with the
 * state that the other's job ended with, on other devices and perhaps in another layout.
 *
 *     streams of the first job   ... last operations |
 *     stream of moves                                | state, losses, evaluations | event
 *     streams of the second                                                       | first operations ...
 *
 * The state goes from host memory to host memory, or storage, tensor by tensor, with the best weights so far. A job
 * whose predecessor did not complete does not begin. Where the first job has a range of host memory, its last CLOSE
 * leaves the state in a file; where the second has one, its first OPEN takes the state, on the stream of files.
 */
#ifndef SPILLWAY_EXEC_RUN_RUN_MOVES_H
#define SPILLWAY_EXEC_RUN_RUN_MOVES_H

#include "exec/state/run_state.h"
#include "planner/walk/plan_walk.h"

/* Does nothing unless some job goes on from another. Comes after the tables of states. Errors: STATUS_BAD_INPUT for
 * jobs of unlike states; STATUS_NO_MEMORY. */
MUST_CHECK enum status run_moves_create(struct run *run, struct error *err);

/* Opens the stream. */
MUST_CHECK enum status run_moves_start(struct run *run, struct error *err);

/* Makes an operation wait for its job's state, which the first one asks for. */
void run_moves_before(struct run *run, const struct plan_walk_op *op);

/* Notes an operation of a job that another one goes on from. `event`: its end. */
void run_moves_after(struct run *run, const struct plan_walk_op *op, uint64_t event);

/* Returns the path for the weights of a job that ended: its own; of a job that is to go on elsewhere, its last
 * successor's, to be written as a partial result (*partial); NULL if there is none, or another job has the state. */
const char *run_moves_weights(const struct run *run, uint32_t job, bool *partial);

/* Ends the stream before the data of jobs; closes it. */
void run_moves_stop(struct run *run);
void run_moves_close(struct run *run);

/* --- for jobs with ranges, on the stream of files --------------------------------------------- */

/* Returns true if the job goes on from another one. */
bool run_moves_awaits(const struct run *run, uint32_t job);

/* Returns true if the job does not go on from another one, or that one is complete and sound. Ends the job
 * otherwise. */
bool run_moves_may_take(struct run *run, uint32_t job);

/* Fills the job's state from the job that it continues. Errors: STATUS_IO, STATUS_NO_MEMORY. */
MUST_CHECK enum status run_moves_take(struct run *run, uint32_t job, struct error *err);

/* Writes a complete job's state to a file, if another job is to go on from it. A failure fails that job. */
void run_moves_leave(struct run *run, uint32_t job);

/* After all work has ended: brings a state that no job has taken back to its range. Returns false if there is none, or
 * with an error. */
bool run_moves_return(struct run *run, uint32_t job, struct error *err);

#endif
