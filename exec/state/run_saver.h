/*
 * Writes checkpoints while a run goes on: decides when one is due, takes a consistent copy of the job's state, and
 * writes it on a thread. The loop calls these functions as it enqueues operations, always from one thread. All of
 * them do nothing when the saver is NULL.
 */
#ifndef SPILLWAY_EXEC_STATE_RUN_SAVER_H
#define SPILLWAY_EXEC_STATE_RUN_SAVER_H

#include "exec/state/run_state.h"
#include "planner/walk/plan_walk.h"

struct run_saver; /* opaque */

/* Creates a saver and opens the folder. `states` belongs to the loop: [device][buffer], the state that is newer on a
 * device than on the host. *out is NULL without options->checkpoints. Errors: STATUS_IO. */
MUST_CHECK enum status run_saver_create(struct run *run, const struct device_state *states,
                                        struct run_saver **out, struct error *err);

/* Returns the room for the copy: bytes of the largest state of a job. */
uint64_t run_saver_bytes(const struct run *run);

/* Returns true when a checkpoint is due after the minibatch that ends here, while the copy for the previous
 * checkpoint is not made yet. The loop then lets some enqueued work end first. `walked`: whole minibatches of the
 * job, including this one if it ends here. */
bool run_saver_is_ahead(const struct run_saver *saver, const struct plan_walk_op *op,
                        uint64_t walked);

/* Called before the operation is enqueued: an operation that would change state which is still to be copied waits. */
void run_saver_before(struct run_saver *saver, const struct plan_walk_op *op);

/* Called after the operation was enqueued and its event recorded. */
void run_saver_after(struct run_saver *saver, const struct plan_walk_op *op, uint64_t walked);

/* Writes the last checkpoint of a job that has ended, before its state on the host is freed. From any thread. */
void run_saver_close_job(struct run_saver *saver, uint32_t job);

/* Writes the last checkpoint of each job, after all work has ended and all state is on the host. */
void run_saver_finish(struct run_saver *saver);

/* Ends all waiting for the saver; call before the streams are stopped. */
void run_saver_stop(struct run_saver *saver);
void run_saver_destroy(struct run_saver *saver);

#endif
