/*
 * What follows a partial schedule of an instance with streams: for each clock
 * (planner/solve/instance/dispatch_streams.h) the longest path from it to the end, if the remaining tasks are
 * dispatched in a given order. Waiting for an earlier task's start is left out, so the paths are lower bounds.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_EXACT_STREAM_TAILS_H
#define SPILLWAY_PLANNER_SOLVE_EXACT_STREAM_TAILS_H

#include "planner/solve/instance/dispatch_streams.h"

/* In ticks; below 0: nothing waits for it. */
struct stream_device_tails {
    int64_t in, compute, out;
    /* Of the buffers' next uses: [0] is of the next task with memory. */
    int64_t buffer[INSTANCE_STREAM_SLOTS_MAX], left[INSTANCE_STREAM_SLOTS_MAX];
};

/* Open structure; zeroed it is empty. */
struct stream_tails {
    struct stream_device_tails *devices; /* (device_count) */
    int64_t *ended, *boundary;           /* (job_count) */
    int64_t *ready;                      /* (unit_count), by state_of[] */
    int64_t host;
};

/* `from`: the state before steps[0 .. count), the remaining tasks. Release with stream_tails_release(). */
MUST_CHECK enum status stream_tails_make(const struct dispatch *from, const struct dispatch_step *steps, uint32_t count,
                                         struct stream_tails *out, struct error *err);
void stream_tails_release(struct stream_tails *tails);

#endif
