/*
 * Lower bounds on a SPASE instance's makespan, as exact integers and without a solver.
 *
 *     longest  a job's shortest mode
 *     area     each job's least devices by time, over all devices
 *     scaled   devices and time are scaled by dual-feasible functions f and g: a set of gangs that fits a node for T
 *              ticks still fits when a gang of k for t ticks becomes one of f(k) for g(t), so that the sum of
 *              f(k) g(t) over the jobs stays within nodes * f(all) g(T), for each f and g. A weighted sum of these
 *              rows that each job's best mode already breaks refutes T. The weights are found in floating point and
 *              checked in integers
 *
 * Time may be scaled although gangs have no fixed places: jobs that do not overlap form chains of at most T, so scaled
 * ones form chains of at most g(T); started as early as these allow, jobs overlap only where they did before, and there
 * f holds.
 *
 * Source: Fekete and Schepers, "New classes of fast lower bounds for bin packing problems", 2001, for the functions,
 * and "A general framework for bounds for higher-dimensional orthogonal packing problems", 2004, for scaling both
 * directions. Weights: Arora, Hazan and Kale, "The multiplicative weights update method", 2012.
 */
#ifndef SPILLWAY_PLANNER_SATURN_SPASE_SPASE_BOUND_H
#define SPILLWAY_PLANNER_SATURN_SPASE_SPASE_BOUND_H

#include "planner/saturn/spase/spase.h"

enum spase_bound_kind {
    SPASE_BOUND_LONGEST,
    SPASE_BOUND_AREA,
    SPASE_BOUND_SCALED,
    SPASE_BOUND_COUNT
};

struct spase_bounds {
    int64_t value[SPASE_BOUND_COUNT];
    enum spase_bound_kind best;
};

/*
 * `known`: the makespan of a schedule; larger values are not refuted. At `until_s` on the clock of
 * base/process/clock.h "scaled" stops; HUGE_VAL: never, with the same result everywhere.
 */
MUST_CHECK enum status spase_bounds_make(const struct spase *in, int64_t known, double until_s,
                                         struct spase_bounds *out, struct error *err);

static inline int64_t spase_bounds_best(const struct spase_bounds *bounds)
{
    return bounds->value[bounds->best];
}

/* --- one row for a search -------------------------------------------------------------------- */

/*
 * The rows for makespans of at most `limit` (at least 1), added up with the weights nearest to a refutation. In every
 * schedule that ends by then the modes' costs, and idle_cost[class] per idle tick of the class's devices before
 * `limit`, add up to at most `room`.
 */
struct spase_surrogate {
    int64_t *cost;      /* (mode_count); arbitrary for modes longer than the limit */
    int64_t *idle_cost; /* (class_count): of 2^20 ticks of one device */
    int64_t room;
    bool refuted;       /* no schedule ends by `limit` */
};

/* Makes the surrogate row. The caller frees it with spase_surrogate_release(). */
MUST_CHECK enum status spase_surrogate_make(const struct spase *in, int64_t limit, double until_s,
                                            struct spase_surrogate *out, struct error *err);
void spase_surrogate_release(struct spase_surrogate *surrogate);

/* --- rows ------------------------------------------------------------------------------------ */

/* A pair of scaling functions on one class: a mode of that class weighs f(devices) g(ticks). */
struct spase_row {
    uint32_t class;
    uint32_t f; /* 0: devices unscaled; else see spase_bound.c */
    uint32_t g; /* 0: ticks unscaled */
    int64_t g_at;
};

/*
 * Lists the rows for makespans of at most `limit`, at most SPASE_ROWS_MAX. The caller frees *rows. Weights and rooms
 * are integers below 2^80.
 */
enum { SPASE_ROWS_MAX = 2048 };
MUST_CHECK enum status spase_rows_make(const struct spase *in, int64_t limit, struct spase_row **rows,
                                       uint32_t *count, struct error *err);
__int128 spase_row_weight(const struct spase *in, const struct spase_row *row, int64_t limit,
                          const struct spase_mode *mode);
__int128 spase_row_room(const struct spase *in, const struct spase_row *row, int64_t limit);

#endif
