/*
 * A timetable lists a schedule's tasks device by device, in the order in which they run. A *dispatch* is made from an
 * order (a job and a device for each task): every task starts as early as instance.h's rules allow. Searches extend it
 * step by step. For every regular objective some optimal schedule is the dispatch in the order of its own starts.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_INSTANCE_TIMETABLE_H
#define SPILLWAY_PLANNER_SOLVE_INSTANCE_TIMETABLE_H

#include "planner/solve/instance/instance.h"

enum { TIMETABLE_NONE = UINT32_MAX };

struct timetable_task {
    uint32_t job, position;
    int64_t start;
};

/* Open structure; zeroed it is empty. */
struct timetable {
    struct timetable_task *tasks; /* (task_count) */
    uint32_t *device_first;       /* (device_count + 1) */
    uint32_t task_count, device_count;
    int64_t value; /* claimed value of the instance's objective; timetable_check() recomputes it */
};

/* One dispatch: the next task of `job` goes to `device`. */
struct dispatch_step {
    uint32_t job, device;
};

struct dispatch_job {
    int64_t ready;   /* earliest start of a task that is no direct neighbour */
    int64_t ended;   /* earliest start of a task that directly follows the job's last task on its device */
    int64_t end;     /* end of its tasks so far, copies out included */
    uint32_t next;   /* position of the next task */
    uint32_t unit;   /* its unit (past the end: any) */
    uint32_t device; /* device of the last task; TIMETABLE_NONE: none so far */
};

struct dispatch_device {
    int64_t start;    /* of its last task */
    uint32_t job;     /* of its last task; TIMETABLE_NONE: none so far */
    uint32_t unit;
};

struct dispatch_streams;

/* The state of a schedule under construction. */
struct dispatch {
    const struct instance *in;
    struct dispatch_job *jobs;
    struct dispatch_device *devices;
    struct dispatch_streams *streams; /* NULL: an instance without streams */
    uint64_t bytes; /* moved so far */
};

MUST_CHECK enum status dispatch_create(const struct instance *in, struct dispatch **out,
                                       struct error *err);
void dispatch_destroy(struct dispatch *dispatch); /* NULL is fine */
void dispatch_clear(struct dispatch *dispatch);
void dispatch_copy(struct dispatch *to, const struct dispatch *from);

/* Returns the tick at which the job's next task would start on this device. The device must hold the task. */
int64_t dispatch_start(const struct dispatch *dispatch, uint32_t job, uint32_t device);

/* Dispatches the job's next task to the device. Returns its start. */
int64_t dispatch_put(struct dispatch *dispatch, uint32_t job, uint32_t device);

/* Dispatches the job's next task to the device at `start`, no earlier than dispatch_start(). */
void dispatch_put_at(struct dispatch *dispatch, uint32_t job, uint32_t device, int64_t start);

/* Returns the objective of the tasks dispatched so far. */
int64_t dispatch_value(const struct dispatch *dispatch);

/* Makes the timetable of a complete order of in->task_count steps. Release it with timetable_release(). */
MUST_CHECK enum status timetable_make(const struct instance *in, const struct dispatch_step *steps,
                                      struct timetable *out, struct error *err);

/* Makes the timetable of a complete order with given starts and a claimed value. */
MUST_CHECK enum status timetable_place(const struct instance *in, const struct dispatch_step *steps,
                                       const int64_t *starts, int64_t value, struct timetable *out,
                                       struct error *err);
void timetable_release(struct timetable *timetable);

#endif
