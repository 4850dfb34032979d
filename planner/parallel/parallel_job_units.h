/*
 * The units of a parallel job: the operations and accesses of a pass, a gather, a reduction or an update
 * (planner/parallel/parallel_job.h has the table). Each unit is appended to the plan with its instance on the gang of
 * its stage.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_UNITS_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_UNITS_H

#include "planner/parallel/parallel_job_layout.h"

/* Emits the pass of a step, whose variants are taken, and frees its slots of rings. */
void parallel_job_emit_pass(struct parallel_job *s, const struct pipeline_step *step);

/* Emits the gathering of a step's weights into the next slot of its stage, and the copy of its swapped activations. */
void parallel_job_emit_gather(struct parallel_job *s, const struct pipeline_step *step);

/* Emits the reduction of chunk r's gradient over the data-parallel ranks: of the last pass that made one, or of a
 * minibatch. */
void parallel_job_emit_reduce(struct parallel_job *s, uint32_t r);

/* Emits the sum of a tied table's gradients on the first and the last stage, after the sums over their replicas. */
void parallel_job_emit_join(struct parallel_job *s);

void parallel_job_emit_update(struct parallel_job *s, uint32_t r, bool ends_minibatch);

/* Emits the copy of weights that the host has updated to the devices. */
void parallel_job_emit_refresh(struct parallel_job *s, uint32_t r);

/* Emits the beginning (load) or the end of the life of states and gradients. */
void parallel_job_emit_resident(struct parallel_job *s, uint32_t r, bool load);

#endif
