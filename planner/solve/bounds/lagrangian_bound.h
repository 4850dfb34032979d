/*
 * The Lagrangian bound for partial schedules: prices of tasks by the time of their start.
 *
 * Can a partial schedule be completed by `limit`? Each device runs a path of tasks through time. Task k has a price for
 * every start s, such that any schedule earns at least a fixed amount, the due; when the devices cannot earn it, each
 * on its best path, no schedule completes the partial one. One table holds all paths, so a partial schedule costs one
 * look at each device's next tasks.
 *
 * This is the Lagrangian dual of the time-indexed formulation in which every task runs once and after its predecessor,
 * over paths that do not go back in a job that they served one or two tasks before. Unlike the assignment bound
 * (instance_bound.h) it knows that a task's good partners are available only at their own times.
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
 * Fits the prices to `count` states, so that more are (nearly) hopeless. They never become worse for all states
 * together. A round takes some milliseconds.
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
