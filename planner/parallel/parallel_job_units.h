/*
 * The units of a parallel job: operations and accesses of a pass, gather, reduction or update (table in
 * planner/parallel/parallel_job.h), each appended with its task on its stage's gang.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_UNITS_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_UNITS_H

#include "planner/parallel/parallel_job_layout.h"

/* Emits a step's pass, whose variants are taken, and frees its ring slots. */
void parallel_job_emit_pass(struct parallel_job *s, const struct pipeline_step *step);

/* Emits the gathering of a step's weights into its stage's next slot, and the copy of its swapped activations. */
void parallel_job_emit_gather(struct parallel_job *s, const struct pipeline_step *step);

/* Emits the reduction of chunk r's gradient over data-parallel ranks: of the last pass that made one, or of a
 * minibatch. */
void parallel_job_emit_reduce(struct parallel_job *s, uint32_t r);

/* Emits the sum of a tied table's gradients on both end stages, after the sums over replicas. */
void parallel_job_emit_join(struct parallel_job *s);

/* Emits the squares of chunk r's complete gradients, of a job that clips. */
void parallel_job_emit_norm(struct parallel_job *s, uint32_t r);

void parallel_job_emit_update(struct parallel_job *s, uint32_t r, bool ends_minibatch);

/* Emits an update by the host: sums whole gradients of the ranks, reads and writes back stored states. */
void parallel_job_emit_host_update(struct parallel_job *s, uint32_t r, bool ends_minibatch);

/* Emits the copy of host-updated weights to the devices. Jobs that are carried out may end the minibatch with it. */
void parallel_job_emit_refresh(struct parallel_job *s, uint32_t r, bool ends_minibatch);

/* Emits the beginning of the next sum in chunk r's gradient, of a carried-out job with delayed updates. */
void parallel_job_emit_reset(struct parallel_job *s, uint32_t r);

/* Reads a minibatch's data and brings them to the chunk's stage. */
void parallel_job_emit_batch(struct parallel_job *s, uint32_t r);

/* Emits the held-out minibatches after a minibatch, the last unit of which ends it. */
void parallel_job_emit_evaluation(struct parallel_job *s);

/* Emits the minibatch after `done` others, of a synchronous schedule, with the evaluation that follows it. */
void parallel_job_emit_minibatch(struct parallel_job *s, uint64_t done);

/* Emits the load, or the end, of states' and gradients' lives, and of data and loss. */
void parallel_job_emit_resident(struct parallel_job *s, uint32_t r, bool load);

/* --- jobs whose states are in host memory only while they run (planner/plan.h, ranges) --- */

/* Gives the jobs ranges of host memory, if all are carried out without storage and there is one host. */
MUST_CHECK enum status parallel_job_files_begin(const struct parallel_job *all, uint32_t count, struct plan *plan,
                                                struct error *err);

/* Emits units that make all states in the ranges (open), or write weights to files. Does nothing without ranges. */
void parallel_job_files_emit(struct parallel_job *all, uint32_t count, bool open);

/* Sizes the ranges, after all buffers are known, and lays them out one after the other: all jobs are under way at
 * once. */
void parallel_job_files_end(struct plan *plan);

#endif
