/*
 * The units of a parallel job: which operations and accesses a pass, a gather, a reduction or an update
 * has (planner/parallel/parallel_job.h has the table), each appended to the plan with its instance on the gang of its stage.
 * Part of planner/parallel/parallel_job.c; nobody else includes this.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_UNITS_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_UNITS_H

#include "planner/parallel/parallel_job_layout.h"

/* A pass, by enum pipeline_pass, of a step whose variants are taken; its slots of rings are given back. */
void parallel_job_emit_pass(struct parallel_job *s, const struct pipeline_step *step);

/* What a step multiplies by, into the next slot of its stage; and what was swapped of its activations. */
void parallel_job_emit_gather(struct parallel_job *s, const struct pipeline_step *step);

/* The gradient of run r over the data-parallel ranks: of the pass that made one last, or of a minibatch. */
void parallel_job_emit_reduce(struct parallel_job *s, uint32_t r);

/* The gradients of a tied table on the first and the last stage, added up behind the sums over their replicas. */
void parallel_job_emit_join(struct parallel_job *s);

void parallel_job_emit_update(struct parallel_job *s, uint32_t r, bool ends_minibatch);

/* Weights that the host has updated, on the devices. */
void parallel_job_emit_refresh(struct parallel_job *s, uint32_t r);

/* Begin (load) or end the life of states and gradients. */
void parallel_job_emit_resident(struct parallel_job *s, uint32_t r, bool load);

#endif
