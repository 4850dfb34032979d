/*
 * Instances made from others: the same problem under other circumstances.
 *
 * Each depends on its arguments alone. Zeroed struct in; release it with instance_release(), also after
 * an error. Errors: STATUS_NO_MEMORY, and those of instance_finish().
 */
#ifndef SPILLWAY_PLANNER_INSTANCE_CHANGE_H
#define SPILLWAY_PLANNER_INSTANCE_CHANGE_H

#include "planner/solve/instance/instance.h"

/* All durations of every unit times `factor`: finer ticks, so that small changes are not rounded off. */
MUST_CHECK enum status instance_scale(const struct instance *in, uint32_t factor, struct instance *out,
                                      struct error *err);

/*
 * What really happens where `in` was estimated: each unit's computation on each class of devices, and
 * its copies, take longer or shorter by up to the share `noise` (below 1), uniformly. The whole chain of a
 * job is off alike in every minibatch: it is the estimate that was wrong, so nothing averages out.
 */
MUST_CHECK enum status instance_perturb(const struct instance *in, double noise, uint64_t seed,
                                        struct instance *out, struct error *err);

/* The jobs in an order drawn from the seed: ties by index fall otherwise. */
MUST_CHECK enum status instance_reorder(const struct instance *in, uint64_t seed, struct instance *out,
                                        struct error *err);

/* Some devices of the last class become another: twice as fast, and with so little memory that every
 * fourth unit or so does not fit. The class keeps one device at least; with one alone nothing changes. */
MUST_CHECK enum status instance_mix(const struct instance *in, uint64_t seed, struct instance *out,
                                    struct error *err);

#endif
