#ifndef SPILLWAY_SIM_DURATION_H
#define SPILLWAY_SIM_DURATION_H

#include "planner/plan.h"

struct sim_durations; /* opaque */

/* `slow`: factors (device_count) of each device's computation times; NULL: all 1. *out lives as long as `arena`;
 * `plan`, `hardware` and `slow` are borrowed. */
MUST_CHECK enum status sim_durations_create(struct arena *arena, const struct plan *plan,
                                            const struct hardware *hardware, const double *slow,
                                            struct sim_durations **out, struct error *err);

/* Returns the seconds of plan->ops[op] on the device without contention: cost_work_s() of its work (0 without work), or
 * cost_copy_s() of its bytes in its stream's direction. Not for P2P copies, which depend on a second device. */
double sim_durations_alone_s(struct sim_durations *durations, uint32_t device, uint32_t op);

#endif
