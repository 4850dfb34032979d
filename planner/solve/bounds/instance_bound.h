/*
 * Lower bounds on the objective of any schedule of an instance; exact integers, no solver needed.
 *
 *   area        all computation spread evenly over the devices (each task where it is fastest)
 *   chain       a job's tasks follow each other; its first copy in and last copy out are exposed
 *   link        every shard is copied in once, over as many links as there are devices
 *   bridge      bytes that must cross the host bridge, at its rate
 *   memory      memory by time: a task holds its memory while it is copied in and computes
 *   assignment  each device runs a path of tasks, so the least cost of covering all tasks with paths,
 *               by what must pass between the starts of neighbours (set-ups, distances along chains),
 *               divided by the devices. One row per unit, with its repetitions as supply, one more
 *               row for where paths begin and a column for where they end.
 *   sorted      the same where there are too many units for a matrix: without memory, the least
 *               cost of neighbours is that of computations and copies matched in order of size
 *   opening     the assignment, and what devices lose at first, when jobs have had no time to spread
 *   weighted    where devices differ or share a bridge: the assignment with a weight for the time of each class of
 *               devices and one for the bytes (weighted_bound.h)
 *   priced      prices of tasks over time (priced_bound.h); only certify() makes it, when a gap is left
 *   order       sums of ends: jobs in order of time by weight, on one device as fast as all
 *   due         largest tardiness: what is due by a date must be done by then
 *
 * For the sums only chain and order apply, for tardiness chain and due.
 */
#ifndef SPILLWAY_PLANNER_INSTANCE_BOUND_H
#define SPILLWAY_PLANNER_INSTANCE_BOUND_H

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
    INSTANCE_BOUND_COUNT
};
extern const char *const instance_bound_names[INSTANCE_BOUND_COUNT];

/* Most units for which `assignment` is computed: 0.1 s. Past that, `sorted`. */
enum { INSTANCE_BOUND_UNITS_MAX = 512 };

struct instance_bounds {
    int64_t value[INSTANCE_BOUND_COUNT]; /* 0 where it does not apply: a bound as well */
    enum instance_bound_kind best;
    /*
     * Duals of the assignment (or sorted) bound, (unit_count) each: between the starts of a task
     * of unit j and one of unit k directly behind it pass at least row[j] + column[k] ticks; before
     * the first start of a device column[k] + row_start, behind the last row[j] + column_end. What
     * passes beyond that is *slack*: the devices have count * makespan - sum of duals of it in all.
     */
    int64_t *row, *column;
    int64_t row_start, column_end;
    int64_t sum; /* of repeat * (row + column) over all units */
    double class_weight[INSTANCE_CLASSES_MAX]; /* of a tick on a device of each class; 1 in the mean over all devices */
};

/* Zeroed before; release it with instance_bounds_release(). Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status instance_bounds_make(const struct instance *in, struct instance_bounds *out,
                                            struct error *err);
void instance_bounds_release(struct instance_bounds *bounds);

static inline int64_t instance_bounds_best(const struct instance_bounds *bounds)
{
    return bounds->value[bounds->best];
}

/* What must pass between the starts of a task of unit j and one of unit k directly behind it on any
 * device; ASSIGNMENT_FORBIDDEN when that cannot be. */
int64_t instance_distance(const struct instance *in, uint32_t j, uint32_t k);

/* The same on a device of one class. */
int64_t instance_class_distance(const struct instance *in, uint32_t j, uint32_t k, uint32_t class);

/* The earliest start of a unit's first task, and from the start of its last to its job's end. */
int64_t instance_head(const struct instance *in, uint32_t unit);
int64_t instance_tail(const struct instance *in, uint32_t unit);

/* Computation of units [from, to) of a job, where each is fastest. */
int64_t instance_compute_between(const struct instance *in, uint32_t from, uint32_t to);

#endif
