/*
 * The same problem under other circumstances.
 *
 * Results depend on the arguments only. *out is zeroed before; release it with instance_release(), also after an error.
 * Errors: STATUS_NO_MEMORY, and errors of instance_finish().
 */
#ifndef SPILLWAY_PLANNER_SOLVE_INSTANCE_INSTANCE_CHANGE_H
#define SPILLWAY_PLANNER_SOLVE_INSTANCE_INSTANCE_CHANGE_H

#include "planner/solve/instance/instance.h"

/* Multiplies all durations of every unit by `factor`. Ticks become finer, so that small changes are not rounded off. */
MUST_CHECK enum status instance_scale(const struct instance *in, uint32_t factor, struct instance *out,
                                      struct error *err);

/*
 * Simulates errors of estimates: computations of each unit and class of devices, and copies, take longer or shorter by
 * up to the share `noise` (below 1), uniformly and equally in every minibatch.
 */
MUST_CHECK enum status instance_perturb(const struct instance *in, double noise, uint64_t seed,
                                        struct instance *out, struct error *err);

/* Puts the jobs in an order drawn from the seed, so that ties by index break otherwise. */
MUST_CHECK enum status instance_reorder(const struct instance *in, uint64_t seed, struct instance *out,
                                        struct error *err);

/* Makes a class of some devices of the last one: twice as fast, with memory for about three of four units. The last
 * class keeps at least one device; a single device does not change. */
MUST_CHECK enum status instance_mix(const struct instance *in, uint64_t seed, struct instance *out,
                                    struct error *err);

#endif
