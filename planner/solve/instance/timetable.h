/*
 * A schedule of an instance: which task starts where and when; and how to make one from an order.
 *
 * A timetable lists its tasks device by device, in the order in which they run. Given an order of
 * dispatch (job and device, one entry a task), everything starts as early as the rules of instance.h
 * let it: that is a *dispatch*, which the searches extend step by step. Some optimal schedule of
 * every regular objective comes from the dispatch in the order of its own starts.
 */
#ifndef SPILLWAY_PLANNER_TIMETABLE_H
#define SPILLWAY_PLANNER_TIMETABLE_H

#include "planner/solve/instance/instance.h"

enum { TIMETABLE_NONE = UINT32_MAX };

struct timetable_task {
    uint32_t job, position;
    int64_t start;
};

/* Open; zeroed it is empty. */
struct timetable {
    struct timetable_task *tasks; /* (task_count) */
    uint32_t *device_first;       /* (device_count + 1) */
    uint32_t task_count, device_count;
    int64_t value; /* of the instance's objective, as claimed; timetable_check() recomputes it */
};

/* One dispatch: the next task of `job` goes to `device`. */
struct dispatch_step {
    uint32_t job, device;
};

struct dispatch_job {
    int64_t ready;   /* no earlier start; for a task that is no direct neighbour */
    int64_t ended;   /* the same for one directly behind the job's last task on its device */
    int64_t end;     /* of its tasks so far, copies out included */
    uint32_t next;   /* position of the next task */
    uint32_t unit;   /* its unit (past the end: any) */
    uint32_t device; /* of the last; TIMETABLE_NONE: none so far */
};

struct dispatch_device {
    int64_t start;    /* of its last task */
    uint32_t job;     /* of its last task; TIMETABLE_NONE: none so far */
    uint32_t unit;
};

/* The state of a schedule that is being made. */
struct dispatch {
    const struct instance *in;
    struct dispatch_job *jobs;
    struct dispatch_device *devices;
    uint64_t bytes; /* moved so far */
};

MUST_CHECK enum status dispatch_create(const struct instance *in, struct dispatch **out,
                                       struct error *err);
void dispatch_destroy(struct dispatch *dispatch); /* NULL is fine */
void dispatch_clear(struct dispatch *dispatch);
void dispatch_copy(struct dispatch *to, const struct dispatch *from);

/* When the job's next task would start on this device; the device must hold it. */
int64_t dispatch_start(const struct dispatch *dispatch, uint32_t job, uint32_t device);

/* Put it there; returns the start. */
int64_t dispatch_put(struct dispatch *dispatch, uint32_t job, uint32_t device);

/* Put it there at a start no earlier than dispatch_start(). */
void dispatch_put_at(struct dispatch *dispatch, uint32_t job, uint32_t device, int64_t start);

/* The objective of what was dispatched so far. */
int64_t dispatch_value(const struct dispatch *dispatch);

/* The timetable of a complete order of in->task_count steps. Release with timetable_release(). */
MUST_CHECK enum status timetable_make(const struct instance *in, const struct dispatch_step *steps,
                                      struct timetable *out, struct error *err);

/* The timetable of such an order with starts of its own and the value that is claimed for it. */
MUST_CHECK enum status timetable_place(const struct instance *in, const struct dispatch_step *steps,
                                       const int64_t *starts, int64_t value, struct timetable *out,
                                       struct error *err);
void timetable_release(struct timetable *timetable);

#endif
