/*
 * The loop over a plan's operations: what run.c (the walk), run_flights.c (what is enqueued and has not
 * ended), run_enqueue.c (one operation), run_newer.c (state on devices) and run_result.c (in the end) share.
 */
#ifndef SPILLWAY_EXEC_RUN_LOOP_H
#define SPILLWAY_EXEC_RUN_LOOP_H

#include "exec/state/run_record.h"
#include "exec/state/run_state.h"
#include "planner/walk/plan_walk.h"

enum { RUN_WINDOW = 8192, FLIGHT_WAITS = 4 };

/* An operation that was enqueued. */
struct flight {
    uint64_t number, minibatch, event;
    const struct plan_op *op;
    const struct plan_unit *unit;
    uint32_t stream, device, op_index;
    uint32_t peer;  /* P2P: the device that is copied from, whose memory is given back; else `device` */
    bool skipped;   /* while stopping: it does nothing but wait */
    bool omitted;   /* its computation came behind its job's limit; set by the stream's thread */
    double predicted_s;
    uint64_t acquired_bytes, released_bytes;
    struct device_timing timing;
    uint64_t waits[FLIGHT_WAITS]; /* for reports: the first few */
    uint32_t wait_count;
};

/* What a staged buffer holds: state of which minibatch; and is it on its way to storage? */
struct staged_state {
    uint64_t arrived; /* as in device_state */
    bool fresh;
};

struct run_loop {
    struct run *run;
    const struct plan *plan;
    struct run_record *record;
    struct plan_walk *walk;
    struct flight *flights; /* RUN_WINDOW */
    uint64_t oldest, next;
    double *backlog_s;      /* per stream: predicted, in flight */
    double *predicted_s;    /* per plan op */
    double predicted_max_s, done_s, total_s;
    double polled_s;        /* when progress was last told */
    uint64_t *walked;       /* per job: minibatches whose end the walk has passed */
    uint64_t *last;         /* per job: its operation that was enqueued last */
    bool stopping;
    struct device_state *states; /* [device][buffer] */
    struct staged_state *staged; /* [buffer] */
    uint64_t *users;        /* with poison: [device][buffer][stream of the device], events */
};

static inline struct flight *run_flight_of(const struct run_loop *loop, uint64_t number)
{
    return &loop->flights[number % RUN_WINDOW];
}

#endif
