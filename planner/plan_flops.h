/* The numerator and the denominator of a plan's MFU, and the least multiplications of its devices. */
#ifndef SPILLWAY_PLANNER_PLAN_FLOPS_H
#define SPILLWAY_PLANNER_PLAN_FLOPS_H

#include "planner/plan.h"

/* Returns the model FLOPs of all jobs by the network's formulas (models/kernel/work.h), forward and backward, without
 * recomputation. */
double plan_model_flops(const struct plan *plan);

/*
 * Returns the FLOPs that the devices compute, with recomputation: the numerator of HFU. Only of plans of parallel jobs
 * without slices of tokens; else 0. Attention counts as in plan_model_flops(): half of the products of causal networks.
 */
double plan_hardware_flops(const struct plan *plan);

/*
 * Returns the FLOPs of the algorithms with the fewest multiplications: 3 x 3 convolutions by minimal filtering if no
 * device has matrix cores for fp32 (models/cost/convolution_model.h). These cannot exceed a peak.
 */
double plan_least_flops(const struct plan *plan, const struct hardware *hardware);

/* Returns the fastest rate of the plan's products on a device of this type, over all jobs: fp32 products use its TF32
 * units, if any, bf16 products its bf16 units. 0: its fp32 peak is unknown. */
double plan_peak_flops_per_s(const struct plan *plan, const struct device_type *type);

#endif
