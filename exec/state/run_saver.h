/*
 * Writes checkpoints while a run goes on: copies a job's consistent state and writes it on a thread. Called from one
 * thread, as operations are enqueued. All functions do nothing when the saver is NULL.
 */
#ifndef SPILLWAY_EXEC_STATE_RUN_SAVER_H
#define SPILLWAY_EXEC_STATE_RUN_SAVER_H

#include "exec/state/run_state.h"
#include "planner/walk/plan_walk.h"

struct run_saver; /* opaque */

/* Opens the folder. `states`, [device][buffer], belongs to the loop. *out is NULL without options->checkpoints.
 * Errors: STATUS_IO. */
MUST_CHECK enum status run_saver_create(struct run *run, const struct run_device_state *states,
                                        struct run_saver **out, struct error *err);

/* Returns the bytes of the copy: the largest state of a job. */
uint64_t run_saver_bytes(const struct run *run);

/* Returns true if a checkpoint is due after the minibatch that ends here, while the previous copy is not made yet:
 * the loop lets some enqueued work end first. `walked`: whole minibatches of the job, including this one if it ends
 * here. */
bool run_saver_is_ahead(const struct run_saver *saver, const struct plan_walk_op *op,
                        uint64_t walked);

/* Called before an operation is enqueued, which may have to wait for the copy. */
void run_saver_before(struct run_saver *saver, const struct plan_walk_op *op);

/* Called after the operation's event was recorded. */
void run_saver_after(struct run_saver *saver, const struct plan_walk_op *op, uint64_t walked);

/* Waits until the copy that was asked for last is made, if any: state on the host may change then. After all operations
 * have ended. */
void run_saver_await_copy(struct run_saver *saver);

/* Several processes, at rank 0, with a loss that it has taken: returns the minibatches of the job after which all ranks
 * cut for a checkpoint, run_minibatches_ahead() after this loss; 0: they do not. Under run.lock. */
uint64_t run_saver_plan_cut(struct run_saver *saver, uint32_t job);

/* Writes the last checkpoint of a job, before its state on the host is freed. From any thread. */
void run_saver_close_job(struct run_saver *saver, uint32_t job);

/* Writes the last checkpoints, after all work has ended and all state is on the host. */
void run_saver_finish(struct run_saver *saver);

/* Ends all waiting for the saver, before the streams are stopped. */
void run_saver_stop(struct run_saver *saver);
void run_saver_destroy(struct run_saver *saver);

#endif
