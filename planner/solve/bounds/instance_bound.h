/*
 * Lower bounds on any schedule's objective, as exact integers and without a solver.
 *
 *     area        all computation spread evenly over the devices (each task where it is fastest)
 *     chain       a job's tasks follow each other; its first copy in and last copy out are exposed
 *     link        every shard is copied in once, over one link for each device
 *     bridge      bytes that must cross the host bridge, at its rate
 *     memory      memory by time: a task holds its memory while it is copied in and computes
 *     assignment  each device runs a path of tasks, so the least cost of covering all tasks with paths, by the
 *                 least time between the starts of neighbours (set-ups, distances along chains), divided by the
 *                 devices. One row per unit, with its repetitions as supply, one more row for the beginnings of
 *                 paths and one more column for their ends
 *     sorted      the same for instances with too many units for a matrix: without memory, neighbours cost
 *                 at least what computations and copies cost when matched in order of size
 *     opening     the assignment bound plus the prefix bound (prefix_bound.h): the devices' losses at the start,
 *                 when jobs have had no time to spread
 *     weighted    where devices differ or share a bridge: the assignment with a weight for the time of each
 *                 class of devices and one for the bytes (weighted_bound.h)
 *     priced      prices of tasks over time (priced_bound.h); only certify() computes it, when a gap is left
 *     order       sums of ends: jobs in order of time by weight, on one device as fast as all devices together
 *     due         largest tardiness: work with a deadline must be done by then
 *
 *     host        all work of the host's processor, and
 *     out         all copies from the devices: only with streams (stream_bound.h), where besides these area, chain,
 *                 link and memory apply
 *
 * For sums of ends only chain and order apply, for tardiness chain and due.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_BOUNDS_INSTANCE_BOUND_H
#define SPILLWAY_PLANNER_SOLVE_BOUNDS_INSTANCE_BOUND_H

#include "planner/solve/instance/instance.h"

enum instance_bound_kind {
    INSTANCE_BOUND_AREA,
    INSTANCE_BOUND_CHAIN,
    INSTANCE_BOUND_LINK,
    INSTANCE_BOUND_BRIDGE,
    INSTANCE_BOUND_MEMORY,
    INSTANCE_BOUND_ASSIGNMENT,
    INSTANCE_BOUND_SORTED,
    INSTANCE_BOUND_OPENING,
    INSTANCE_BOUND_WEIGHTED,
    INSTANCE_BOUND_PRICED,
    INSTANCE_BOUND_ORDER,
    INSTANCE_BOUND_DUE,
    INSTANCE_BOUND_HOST,
    INSTANCE_BOUND_OUT,
    INSTANCE_BOUND_COUNT
};
extern const char *const instance_bound_names[INSTANCE_BOUND_COUNT];

/* Most units for which `assignment` is computed: 0.1 s. Beyond, `sorted` is computed. */
enum { INSTANCE_BOUND_UNITS_MAX = 512 };

struct instance_bounds {
    int64_t value[INSTANCE_BOUND_COUNT]; /* 0 for a bound that does not apply, which is a valid bound too */
    enum instance_bound_kind best;
    /*
     * Duals of the assignment (or sorted) bound, (unit_count) each. Between the starts of neighbours of units j and k
     * pass at least row[j] + column[k] ticks; before a device's first start column[k] + row_start, after its last
     * row[j] + column_end. Time beyond that is *slack*: devices have count * makespan - sum of duals in all.
     */
    int64_t *row, *column;
    int64_t row_start, column_end;
    int64_t sum; /* sum of repeat * (row + column) over all units */
    double class_weight[INSTANCE_CLASSES_MAX]; /* weight of a tick on a device of each class; the mean over all devices
                                                  is 1 */
};

/* Computes all bounds but `priced`. */
MUST_CHECK enum status instance_bounds_make(const struct instance *in, struct instance_bounds *out,
                                            struct error *err);
void instance_bounds_release(struct instance_bounds *bounds);

static inline int64_t instance_bounds_best(const struct instance_bounds *bounds)
{
    return bounds->value[bounds->best];
}

/* Returns the least ticks between the starts of neighbours of units j and k on any device; ASSIGNMENT_FORBIDDEN when
 * they cannot be neighbours. */
int64_t instance_distance(const struct instance *in, uint32_t j, uint32_t k);

/* Returns the same for a device of one class. */
int64_t instance_class_distance(const struct instance *in, uint32_t j, uint32_t k, uint32_t class);

/* Return head and tail: the earliest start of a unit's first task; the least ticks from its last task's start to its
 * job's end. */
int64_t instance_head(const struct instance *in, uint32_t unit);
int64_t instance_tail(const struct instance *in, uint32_t unit);

/* Returns the computation of units [from, to) of a job, where each is fastest. */
int64_t instance_compute_between(const struct instance *in, uint32_t from, uint32_t to);

#endif
