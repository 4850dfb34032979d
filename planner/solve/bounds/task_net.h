/*
 * The tasks of a small instance one by one, and what must pass between their starts; forwards or mirrored.
 *
 * A makespan is a question about starts s_k alone: s_k - s_j >= setup when k is right behind j on a device,
 * s_{k+1} - s_k >= step along a chain (and `through` more unless they are neighbours), a time from the
 * schedule's beginning to s_k (head: always, begin: for the first task of a device), and one from s_k to its
 * end (tail: always, finish: for the last of a device). Read from its end every one of these is of the same kind:
 * heads become tails, beginnings finishes, setups are transposed. A mirrored net is another problem with the same
 * answer, and searches that go from front to back may find it easier.
 */
#ifndef SPILLWAY_PLANNER_TASK_NET_H
#define SPILLWAY_PLANNER_TASK_NET_H

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

/* Open. Tasks are numbered job by job, in the order in which their chain is served. */
struct task_net {
    const struct instance *in; /* borrowed */
    bool mirrored;
    uint32_t task_count, job_count, device_count, class_count;
    uint32_t first[TASK_NET_JOBS_MAX + 1]; /* of a job; that of the next one behind the last */
    uint8_t job[TASK_NET_TASKS_MAX];
    uint32_t unit[TASK_NET_TASKS_MAX];
    int32_t step[TASK_NET_TASKS_MAX], through[TASK_NET_TASKS_MAX]; /* to the next of the chain, at least */
    int32_t head[TASK_NET_TASKS_MAX], tail[TASK_NET_TASKS_MAX];    /* at least, along the chain */
    int32_t finish[TASK_NET_TASKS_MAX + 1];                        /* of an empty device: 0 */
    /* between neighbours on a device of any class, by the chain as well; TASK_NET_FORBIDDEN: never */
    int32_t distance[TASK_NET_TASKS_MAX + 1][TASK_NET_TASKS_MAX];
    struct task_net_class *classes;
};

/* Small enough, and its objective the makespan without a bridge? */
bool task_net_takes(const struct instance *in);

/* Mirrored nets are for devices that are all alike. The caller frees it with task_net_destroy(). STATUS_NO_MEMORY. */
MUST_CHECK enum status task_net_create(const struct instance *in, bool mirrored, struct task_net **out,
                                       struct error *err);
void task_net_destroy(struct task_net *net); /* NULL is fine */

/* An order of the net's starts as one of dispatch, in place. */
void task_net_order(const struct task_net *net, struct dispatch_step *steps);

#endif
