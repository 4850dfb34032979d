/* Seconds of a plan's operations on a machine, each computed once (models/cost/cost.h). */
#ifndef SPILLWAY_SIM_DURATION_H
#define SPILLWAY_SIM_DURATION_H

#include "planner/plan.h"

struct sim_durations; /* opaque */

/* `slow`: factors (device_count) of the computation times of each device; NULL: all 1. *out lives as long as
 * `arena`; `plan`, `hardware` and `slow` are borrowed. */
MUST_CHECK enum status sim_durations_create(struct arena *arena, const struct plan *plan,
                                            const struct hardware *hardware, const double *slow,
                                            struct sim_durations **out, struct error *err);

/* Returns the seconds of plan->ops[op] on the device without contention: cost_work_s() of its work (0 if it has none),
 * or cost_copy_s() of its bytes in the direction of its stream. Not for P2P copies, which depend on a second device. */
double sim_durations_alone_s(struct sim_durations *durations, uint32_t device, uint32_t op);

#endif
