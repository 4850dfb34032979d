/*
 * The Lagrangian bound: prices of tasks by the time at which they start, as a bound for partial schedules.
 *
 * The question is whether a partial schedule can be completed by `limit`. Each device will run a path of tasks through
 * time. Task k has a price for every start s, such that any schedule earns at least a fixed amount, the due. When the
 * devices cannot earn the due, each on its best path, no schedule completes the partial one. One table holds all paths
 * from all tasks and times, so a partial schedule costs one look at the next tasks of each device.
 *
 * The bound is the Lagrangian dual of the time-indexed formulation in which every task runs once and after its
 * predecessor, over paths that do not go back in a job that they served one or two tasks before. The assignment bound
 * (instance_bound.h) ignores time; this one knows that the good partners of a task are available only at times of their
 * own.
 *
 * Source: arc-time-indexed formulations; Pessoa, Uchoa, de Aragao and Rodrigues 2010.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_BOUNDS_LAGRANGIAN_BOUND_H
#define SPILLWAY_PLANNER_SOLVE_BOUNDS_LAGRANGIAN_BOUND_H

#include "planner/solve/bounds/instance_bound.h"
#include "planner/solve/bounds/task_net.h"

struct lagrangian_bound; /* opaque */

/* A partial schedule, by the numbers of task_net.h. */
struct lagrangian_state {
    int32_t now;                         /* no task starts before this tick */
    int32_t soon[TASK_NET_JOBS_MAX];     /* earliest start of each job's next task on any device: start plus step of its
                                            last task */
    uint16_t next[TASK_NET_JOBS_MAX];    /* each job's next task; first task of the next job: all are done */
    int32_t start[TASK_NET_DEVICES_MAX]; /* start of the last task on each device; 0: no task yet */
    uint16_t task[TASK_NET_DEVICES_MAX]; /* the last task on each device; task_count: no task yet */
};

/* Sets *state to the empty schedule. */
void lagrangian_state_begin(const struct task_net *net, struct lagrangian_state *state);

/* Creates the bound for schedules of makespan `limit`, with the prices of the assignment bound. `net` is borrowed. */
MUST_CHECK enum status lagrangian_bound_create(const struct task_net *net, const struct instance_bounds *bounds,
                                               int64_t limit, struct lagrangian_bound **out, struct error *err);
void lagrangian_bound_destroy(struct lagrangian_bound *prices); /* NULL is fine */

/* Lowers the limit. */
void lagrangian_bound_limit(struct lagrangian_bound *prices, int64_t limit);

/*
 * Fits the prices to `count` states, so that more of them are found hopeless or nearly so. The prices never become
 * worse for all states together. A round takes some milliseconds.
 */
void lagrangian_bound_fit(struct lagrangian_bound *prices, const struct lagrangian_state *states, uint32_t count,
                          uint32_t rounds, double until_s);

/* Stores the prices. lagrangian_bound_return() restores them, or the first prices if none were stored. */
void lagrangian_bound_keep(struct lagrangian_bound *prices);
void lagrangian_bound_return(struct lagrangian_bound *prices);

/* Returns the possible earnings beyond the due, in parts of a tick. Below 0, `state` cannot be completed by the
 * limit. */
int64_t lagrangian_bound_slack(const struct lagrangian_bound *prices, const struct lagrangian_state *state);

#endif
