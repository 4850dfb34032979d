/*
 * The units of a job that is spread: which operations and accesses a pass, a gather, a reduction or an update
 * has (planner/parallel/spread.h has the table), each appended to the plan with its instance on the gang of its stage.
 * Part of planner/parallel/spread.c; nobody else includes this.
 */
#ifndef SPILLWAY_PLANNER_SPREAD_UNITS_H
#define SPILLWAY_PLANNER_SPREAD_UNITS_H

#include "planner/parallel/spread_places.h"

/* A pass, by enum pipeline_pass, of a step whose variants are taken; its slots of rings are given back. */
void spread_emit_pass(struct spread *s, const struct pipeline_step *step);

/* What a step multiplies by, into the next slot of its stage; and what was swapped of its activations. */
void spread_emit_gather(struct spread *s, const struct pipeline_step *step);

/* The gradient of run r over the data-parallel ranks: of the pass that made one last, or of a minibatch. */
void spread_emit_reduce(struct spread *s, uint32_t r);

/* The gradients of a tied table on the first and the last stage, added up behind the sums over their replicas. */
void spread_emit_join(struct spread *s);

void spread_emit_update(struct spread *s, uint32_t r, bool ends_minibatch);

/* Weights that the host has updated, on the devices. */
void spread_emit_refresh(struct spread *s, uint32_t r);

/* Begin (load) or end the life of states and gradients. */
void spread_emit_resident(struct spread *s, uint32_t r, bool load);

#endif
