/*
 * Expected set-ups: duals of a *soft* assignment, as a guide for list schedules.
 *
 * The assignment bound (instance_bound.h) matches every unit with its best follower, as if available at any time; a
 * unit that suits few others costs nothing. A list schedule chooses between few ready jobs. With a softness T the least
 * cost becomes -T log of the mean of exp(-cost / T): a compromise between least and mean, in which units that suit few
 * others cost more. The less a candidate costs beyond that, the better. The values are no bounds.
 *
 * Source: Sinkhorn's iteration on entropic optimal transport; Cuturi, "Sinkhorn distances", 2013.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_SEARCH_SET_UP_GUIDE_H
#define SPILLWAY_PLANNER_SOLVE_SEARCH_SET_UP_GUIDE_H

#include "planner/solve/bounds/instance_bound.h"

/* The expected ticks between the starts of a unit j and a unit k that follows it are row[j] + column[k]. */
struct set_up_guide {
    double *row, *column; /* (unit_count) */
    double row_start;     /* before a device's first task */
};

/* softness: in mean computations of a unit; 0: the duals of `bounds` unchanged. Costs are taken between some hundred
 * units at most and all others, which takes 30 ms. */
MUST_CHECK enum status set_up_guide_make(const struct instance *in, const struct instance_bounds *bounds,
                                         double softness, struct set_up_guide *out, struct error *err);
void set_up_guide_release(struct set_up_guide *guide);

#endif
