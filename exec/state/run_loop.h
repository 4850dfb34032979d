/* State of the loop over a plan's operations, for run*.c. */
#ifndef SPILLWAY_EXEC_STATE_RUN_LOOP_H
#define SPILLWAY_EXEC_STATE_RUN_LOOP_H

#include "base/files/spool.h"
#include "exec/state/run_record.h"
#include "exec/state/run_state.h"
#include "planner/walk/plan_walk.h"

enum { RUN_WINDOW = 8192, RUN_FLIGHT_WAITS = 4 };

/* An enqueued operation. */
struct run_flight {
    uint64_t number, minibatch, event;
    uint64_t walked; /* the minibatch of the plan's walk, for the trace; `minibatch` is the one that it is about */
    const struct plan_op *op;
    const struct plan_unit *unit;
    uint32_t stream, device, op_index;
    uint32_t peer;  /* P2P: the source device; else `device` */
    bool skipped;   /* while stopping */
    bool elsewhere; /* another process carries it out */
    bool omitted;   /* beyond its job's limit; set by the stream's thread */
    double predicted_s;
    uint64_t acquired_bytes, released_bytes;
    struct device_timing timing;
    bool within;         /* a collective of a tensor group, which the pass before it has carried out ... */
    double exchanged_s;  /* ... and its seconds without waits; of a pass: seconds of all of them with waits, which do
                            not count as
                          * the pass's */
    uint64_t waits[RUN_FLIGHT_WAITS]; /* the first few, for reports */
    uint32_t wait_count;
};

/* A staged buffer: the minibatch of its state, and whether it came from a device and is not on storage yet. */
struct run_staged_state {
    uint64_t arrived; /* as in run_device_state */
    bool fresh;
};

/* The passes of a rank over a chunk that were enqueued for a minibatch: each is over the next microbatch. In
 * asynchronous schedules all that were enqueued, with the chunk's other units. */
struct run_passes {
    uint64_t minibatch;
    uint32_t forward, backward, weight, evaluated; /* backward: or of its first unit; weight: of its second */
    uint32_t reduced; /* microbatches whose gradients the replicas added to their shares */
    uint32_t batches, summed, updates; /* units of asynchronous schedules */
};

/* The targets of the minibatch that was counted last. */
struct run_targets {
    uint64_t next, count; /* next: the minibatch's number + 1; 0: none yet */
};

struct run_loop {
    struct run *run;
    const struct plan *plan;
    struct run_record *record;
    struct spool *ended;    /* rank of several, with a trace: what operations here left (struct run_ended) */
    struct plan_walk *walk;
    struct run_flight *flights; /* RUN_WINDOW */
    uint64_t oldest, next;
    double *backlog_s;      /* per stream: predicted, in flight */
    double *ended_s;        /* per stream: the end of its last span */
    double *predicted_s;    /* per plan op */
    double predicted_max_s, done_s, total_s;
    double polled_s;        /* last progress report */
    uint64_t *walked;       /* per job: minibatches that the walk has passed */
    uint64_t *last;         /* per job: operation enqueued last */
    struct run_targets (*targets)[2]; /* per job: of training, of held-out data */
    struct run_passes *passes; /* of parallel jobs: per shard and rank ... */
    uint32_t *first_passes;    /* ... of each shard */
    bool stopping;
    bool join_skipped;      /* the first member of a collective, or of a tensor group's pass, was; so are the others */
    struct run_device_state *states; /* [device][buffer] */
    struct run_staged_state *staged; /* [buffer] */
    uint64_t *users;        /* with poison: events, [device][buffer][stream of the device] */
};

static inline struct run_flight *run_flight_of(const struct run_loop *loop, uint64_t number)
{
    return &loop->flights[number % RUN_WINDOW];
}

#endif
