/*
 * A small instance's tasks, with the least times between their starts; forwards or mirrored.
 *
 * A makespan depends on the starts s_k only:
 *
 *     s_k - s_j >= setup          k directly follows j on a device
 *     s_{k+1} - s_k >= step       along a chain; `through` more unless they are neighbours on a device
 *     schedule's start to s_k     at least head; for the first task of a device at least begin
 *     s_k to schedule's end       at least tail; for the last task of a device at least finish
 *
 * Read from its end, every condition keeps its form: heads become tails, beginnings finishes, setups are transposed. A
 * mirrored net has the same answer, and a search may find it easier.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_BOUNDS_TASK_NET_H
#define SPILLWAY_PLANNER_SOLVE_BOUNDS_TASK_NET_H

#include "planner/solve/instance/instance.h"
#include "planner/solve/instance/timetable.h"

enum {
    TASK_NET_TASKS_MAX = 128,
    TASK_NET_JOBS_MAX = 32,
    TASK_NET_DEVICES_MAX = 16,
    TASK_NET_FORBIDDEN = -1
};

struct task_net_class {
    bool fits[TASK_NET_TASKS_MAX];
    int32_t step[TASK_NET_TASKS_MAX];
    int32_t setup[TASK_NET_TASKS_MAX + 1][TASK_NET_TASKS_MAX]; /* row task_count: `begin` */
};

/* Open structure. Tasks are numbered job by job, in the order of their chain. */
struct task_net {
    const struct instance *in; /* borrowed */
    bool mirrored;
    uint32_t task_count, job_count, device_count, class_count;
    uint32_t first[TASK_NET_JOBS_MAX + 1]; /* first task of each job; one past the last task at the end */
    uint8_t job[TASK_NET_TASKS_MAX];
    uint32_t unit[TASK_NET_TASKS_MAX];
    int32_t step[TASK_NET_TASKS_MAX], through[TASK_NET_TASKS_MAX]; /* least ticks to the next task of the chain */
    int32_t head[TASK_NET_TASKS_MAX], tail[TASK_NET_TASKS_MAX];    /* least ticks, along the chain */
    int32_t finish[TASK_NET_TASKS_MAX + 1];                        /* finish of an empty device: 0 */
    /* least ticks between neighbours on a device of any class, chain included; TASK_NET_FORBIDDEN: never neighbours */
    int32_t distance[TASK_NET_TASKS_MAX + 1][TASK_NET_TASKS_MAX];
    struct task_net_class *classes;
};

/* Returns true for an instance within the limits above whose objective is the makespan without a bridge. */
bool task_net_takes(const struct instance *in);

/* Creates the net. Mirrored nets need equal devices. The caller frees it with task_net_destroy(). */
MUST_CHECK enum status task_net_create(const struct instance *in, bool mirrored, struct task_net **out,
                                       struct error *err);
void task_net_destroy(struct task_net *net); /* NULL is fine */

/* Turns an order of the net's starts into an order of dispatch, in place. */
void task_net_order(const struct task_net *net, struct dispatch_step *steps);

#endif
