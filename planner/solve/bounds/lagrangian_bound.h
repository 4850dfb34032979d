/*
 * Prices of tasks by the time at which they start, and what devices can still earn by them: a bound on
 * schedules that have been begun.
 *
 * Can this be completed by `limit`? Each device will run a path of tasks through time. Give task k a price for
 * every start s, so that any schedule earns at least what is due; when the devices cannot earn that much, each
 * on the path that is best for itself, there is no such schedule. All paths from all tasks and times are in
 * one table, so a partial schedule costs a look at what may come next on each device.
 *
 * It is the Lagrangian dual of the time-indexed formulation in which every task is run once and behind its
 * predecessor, over paths that do not go back in a job that they served one or two tasks before. It sees what
 * the assignment bound (instance_bound.h) cannot: that the partners which suit a task have times of their own.
 *
 * Source: arc-time-indexed formulations; Pessoa, Uchoa, de Aragao and Rodrigues 2010.
 */
#ifndef SPILLWAY_PLANNER_LAGRANGIAN_BOUND_H
#define SPILLWAY_PLANNER_LAGRANGIAN_BOUND_H

#include "planner/solve/bounds/instance_bound.h"
#include "planner/solve/bounds/task_net.h"

struct lagrangian_bound; /* opaque */

/* A partial schedule, by the numbers of task_net.h. */
struct lagrangian_state {
    int32_t now;                         /* nothing will start before */
    int32_t soon[TASK_NET_JOBS_MAX];     /* nor a job's next task, wherever; of its last task start and step */
    uint16_t next[TASK_NET_JOBS_MAX];    /* that task; the next job's first: all are done */
    int32_t start[TASK_NET_DEVICES_MAX]; /* of the last task on each device; 0: there is none */
    uint16_t task[TASK_NET_DEVICES_MAX]; /* that task; task_count: there is none */
};

/* Nothing has started. */
void lagrangian_state_begin(const struct task_net *net, struct lagrangian_state *state);

/* For schedules of makespan `limit`, with the assignment bound's prices; `net` is borrowed. STATUS_NO_MEMORY. */
MUST_CHECK enum status lagrangian_bound_create(const struct task_net *net, const struct instance_bounds *bounds,
                                          int64_t limit, struct lagrangian_bound **out, struct error *err);
void lagrangian_bound_destroy(struct lagrangian_bound *prices); /* NULL is fine */

/* Ask for a smaller makespan. */
void lagrangian_bound_limit(struct lagrangian_bound *prices, int64_t limit);

/*
 * Change the prices so that of these states more are found hopeless, or nearly so; never less so for all of
 * them together. Some milliseconds a round.
 */
void lagrangian_bound_fit(struct lagrangian_bound *prices, const struct lagrangian_state *states, uint32_t count,
                     uint32_t rounds, double until_s);

/* Remember the prices, and come back to them; before that, to the first ones. */
void lagrangian_bound_keep(struct lagrangian_bound *prices);
void lagrangian_bound_return(struct lagrangian_bound *prices);

/* What can be earned beyond what is due, in parts of a tick; below 0: `state` cannot be completed by the limit. */
int64_t lagrangian_bound_slack(const struct lagrangian_bound *prices, const struct lagrangian_state *state);

#endif
