/*
 * A run in several processes (exec/state/run_peers.h): refused plans, copies between devices of different ranks,
 * states that move between ranks before and after the walk, the measured trace of all ranks (run_ranks_trace.c), and
 * their reports (run_ranks_report.c).
 *
 * Rank 0 has the files. It reads weights and checkpoints, and sends the others the states of their devices; at the end
 * they send them back, and rank 0 writes what one process would write. A job that begins with new weights is filled by
 * every rank for itself, with the same bits.
 */
#ifndef SPILLWAY_EXEC_RUN_RUN_RANKS_H
#define SPILLWAY_EXEC_RUN_RUN_RANKS_H

#include "exec/state/run_peers.h"

/* Finds out who has what. Does nothing without other ranks. Errors: STATUS_BAD_INPUT for plans and options that several
 * processes do not carry out. */
MUST_CHECK enum status run_ranks_open(struct run *run, struct error *err);

/* Ends on all ranks the jobs that failed at one before the walk. */
MUST_CHECK enum status run_ranks_agree(struct run *run, struct error *err);

/* Begins to hear other ranks, after all else is set up. */
void run_ranks_listen(struct run *run);

/* Enqueues this rank's part in a copy between devices of different ranks, on the operation's stream. */
void run_ranks_receive_copy(struct run *run, const struct plan_walk_op *op, void *to, uint64_t minibatch, bool *omitted,
                            struct device_timing *timing);
void run_ranks_send_copy(struct run *run, const struct plan_walk_op *op, const void *from, uint64_t minibatch);

/* Enqueues this rank's part in bringing what a device's copy has put at `at`, in host memory, to all ranks of the job.
 * Does nothing without other ranks. */
void run_ranks_spread(struct run *run, const struct plan_walk_op *op, void *at);

/* Returns true if rank 0 fills the job's states for this rank. */
bool run_ranks_awaits_states(const struct run *run, uint32_t job);

/* Distributes the states that rank 0 has read. */
MUST_CHECK enum status run_ranks_scatter(struct run *run, struct error *err);

/* Begins to keep best weights: there are none, but for those that rank 0 has read from a checkpoint. */
void run_ranks_clear_best(struct run *run);
/* Called before this rank keeps a shard's better values. Under run.lock. */
void run_ranks_replace_best(struct run *run, uint32_t shard);
/* Brings best weights together on rank 0, at the end. */
MUST_CHECK enum status run_ranks_gather_best(struct run *run, struct error *err);

/* Brings all states and best weights to rank 0, at the end. */
MUST_CHECK enum status run_ranks_gather(struct run_loop *loop, struct error *err);

/* Brings to rank 0, at the end, what its result lacks of other ranks (run_ranks_report.c), and to its trace the first
 * and last times of jobs, unless it has traced all ranks. Ranks begin together. */
MUST_CHECK enum status run_ranks_gather_report(struct run_loop *loop, struct trace *trace, struct error *err);

/* Begins the measured trace of a run that rank 0 traces: tells the others, and compares their clocks with its own. */
MUST_CHECK enum status run_ranks_begin_trace(struct run_loop *loop, struct error *err);
/* Brings to rank 0 what operations elsewhere left, which records all of it in the order of the walk. */
MUST_CHECK enum status run_ranks_gather_trace(struct run_loop *loop, struct error *err);

/* Takes leave of the other ranks. `status`: of the run so far, with its error in *err. */
MUST_CHECK enum status run_ranks_close(struct run *run, enum status status, struct error *err);

#endif
