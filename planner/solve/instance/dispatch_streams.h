/*
 * The clock of instances with streams: the rules by which plans run, in whole ticks. It is the planner's own clock
 * (planner/spill/order/schedule_builder.h) for what an instance knows.
 *
 * Tasks are dispatched in the order of their starts, the lower device first if these are equal; without work for the
 * host the order of different devices does not matter. When task k of a job is dispatched to device g,
 *
 *     host before  the host's processor, free and with the job's previous task ended, works `host_before`
 *     copy in      begins when g's stream in is free, k's buffer is, and the shard's last update is in host memory.
 *                  Tasks of g with memory use its `slots` buffers in turn. A buffer is free when its task's copy out
 *                  has ended. With `out_apart` what goes out lies after what came in, and the buffer is free when the
 *                  task has ended, for a k with no more memory than that task and without `in_apart`
 *     table        after that, when the device's only place for tables is free: until the boundary of the last task
 *                  with a table, and its table, have been copied out
 *                  With `after_host` this, or without a table the copy in, waits until the host has done the job's last
 *                  `host_after`
 *     boundary     after that, and when the previous task's boundary is out, `edge_in` on the stream in. Nothing is
 *                  copied if that task was the last on g and the host did not work between them
 *     compute      when g is free, all that has arrived, and the buffer's last copy out has ended if k copies out
 *     copy out     of the boundary and of `out`, one after the other on g's stream out
 *     host         after the copy out works `update` and then, when the boundary is out, `host_after`. The shard is
 *                  then ready to be copied in, and the job's next task may begin
 *
 * With `edges` a device has that many places for boundaries, which its tasks with boundaries use in turn: from the copy
 * in, or the start if nothing is copied, until the task's own boundary is out, and the next task has read one that
 * stays. Before a job's first task the stream in copies `load`, for its units without memory, and after its last the
 * stream out copies `store`.
 *
 * The host's one processor works in the order of dispatch.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_INSTANCE_DISPATCH_STREAMS_H
#define SPILLWAY_PLANNER_SOLVE_INSTANCE_DISPATCH_STREAMS_H

#include "planner/solve/instance/timetable.h"

struct stream_device { /* ticks from which on its parts are free */
    int64_t in, compute, out;
    int64_t buffer[INSTANCE_STREAM_SLOTS_MAX]; /* for data in ... */
    int64_t left[INSTANCE_STREAM_SLOTS_MAX];   /* ... and for data out with a place of their own */
    uint64_t memory[INSTANCE_STREAM_SLOTS_MAX]; /* of the buffer's last task */
    int64_t edge[INSTANCE_STREAM_EDGES_MAX];
    int64_t table;
    uint32_t turn;      /* number of tasks that used a buffer */
    uint32_t edge_turn; /* ... and an edge */
};

/* Open structure. */
struct dispatch_streams {
    struct stream_device *devices; /* (device_count) */
    int64_t *boundary;             /* (job_count): when the last task's boundary is in host memory */
    int64_t *home;                 /* (job_count): when the host did the last `host_after` */
    int64_t *ready;                /* (unit_count), by state_of[]: when a shard is in host memory */
    uint32_t *state_of;            /* (unit_count): the first unit of the unit's shard */
    int64_t host;                  /* when the processor is free */
    int64_t last_start;            /* of the last task; -1: none */
    uint32_t last_device;
    bool host_works;               /* some unit has work for the host */
    size_t moving_bytes;           /* of devices, boundary and ready, one after the other */
};

MUST_CHECK enum status dispatch_streams_create(const struct instance *in, struct dispatch_streams **out,
                                               struct error *err);
void dispatch_streams_destroy(struct dispatch_streams *streams); /* NULL is fine */
void dispatch_streams_clear(struct dispatch_streams *streams);
void dispatch_streams_copy(struct dispatch_streams *to, const struct dispatch_streams *from);

/* As dispatch_start() and dispatch_put_at(). */
int64_t dispatch_streams_start(const struct dispatch *dispatch, uint32_t job, uint32_t device);
void dispatch_streams_put(struct dispatch *dispatch, uint32_t job, uint32_t device, int64_t start);

#endif
