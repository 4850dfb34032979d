/*
 * Expected set-ups: the duals of a *soft* assignment, as a guide for list schedules.
 *
 * The assignment bound (instance_bound.h) matches every unit with the follower that suits it best, as if any unit were
 * available at any time. Its duals see no difficulty in a unit that suits few others. A list schedule chooses between
 * the few jobs that are ready. With a softness T the least cost over all followers becomes -T log of the mean of
 * exp(-cost / T): a compromise between the least and the mean, in which units that suit few others cost more. The less
 * a candidate costs beyond that, the better it uses its place. The values are no bounds.
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

/* Makes a guide. softness: in mean computations of a unit; 0: the duals of `bounds` unchanged. Costs are taken
 * between at most some hundred units of the instance and all others, which takes 30 ms. */
MUST_CHECK enum status set_up_guide_make(const struct instance *in, const struct instance_bounds *bounds,
                                         double softness, struct set_up_guide *out, struct error *err);
void set_up_guide_release(struct set_up_guide *guide);

#endif
