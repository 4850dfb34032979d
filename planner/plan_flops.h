/* The numerator and the denominator of a plan's MFU, and what its devices may really have to multiply. */
#ifndef SPILLWAY_PLANNER_PLAN_FLOPS_H
#define SPILLWAY_PLANNER_PLAN_FLOPS_H

#include "planner/plan.h"

/* Model FLOPs of all jobs: those of the network's formulas (models/kernel/work.h), forward and backward, recomputation not
 * counted. */
double plan_model_flops(const struct plan *plan);

/*
 * The same by the fewest multiplications that a device may do them with: 3 x 3 convolutions by minimal filtering where no
 * device has matrix cores for fp32 (models/cost/convolution_model.h). These cannot exceed a peak; model FLOPs then can.
 */
double plan_least_flops(const struct plan *plan, const struct hardware *hardware);

/* The fastest that products of the plan's jobs may run at on a device of this type, FLOP/s: those of fp32 go by its TF32
 * units, if it has some, as models/cost/cost.c has it, and those of bf16 by its bf16 ones; the fastest over the jobs. 0: its
 * fp32 peak is not known. */
double plan_peak_flops_per_s(const struct plan *plan, const struct device_type *type);

#endif
