/*
 * Checkpoints of a run while it goes on: when one is due, a consistent copy of the job's state, and a
 * thread that writes it. The loop calls in where operations are enqueued, always from one thread.
 * All of these do nothing when the saver is NULL.
 */
#ifndef SPILLWAY_EXEC_RUN_SAVER_H
#define SPILLWAY_EXEC_RUN_SAVER_H

#include "exec/state/run_state.h"
#include "planner/walk/plan_walk.h"

struct run_saver; /* opaque */

/* `states` is the loop's: [device][buffer], what is newer on a device than on the host. Opens the
 * folder. NULL in *out without options->checkpoints. Errors: STATUS_IO, STATUS_NO_MEMORY. */
MUST_CHECK enum status run_saver_create(struct run *run, const struct device_state *states,
                                        struct run_saver **out, struct error *err);

/* Room for the copy: bytes of the largest state of a job. */
uint64_t run_saver_bytes(const struct run *run);

/* Is this the end of a minibatch after which a checkpoint would be due, while the copy for the one
 * before has not been made yet? Then the loop lets some of what is enqueued end first. `walked`:
 * whole minibatches of its job, this one included if it ends one. */
bool run_saver_is_ahead(const struct run_saver *saver, const struct plan_walk_op *op,
                        uint64_t walked);

/* In front of the operation: what would change a state that is still to be copied waits. */
void run_saver_before(struct run_saver *saver, const struct plan_walk_op *op);

/* Behind it, its event recorded. */
void run_saver_after(struct run_saver *saver, const struct plan_walk_op *op, uint64_t walked);

/* The job has ended, and its state on the host is about to go: its last checkpoint, when it is written. From any thread. */
void run_saver_close_job(struct run_saver *saver, uint32_t job);

/* When everything has ended and all state is on the host: the last checkpoint of each job. */
void run_saver_finish(struct run_saver *saver);

/* Nothing waits for the saver any more; before the streams are stopped. */
void run_saver_stop(struct run_saver *saver);
void run_saver_destroy(struct run_saver *saver);

#endif
