/*
 * Private to sim.c (the loop), sim_create.c (before the first event), sim_machine.c (streams, links and paths) and
 * steady.c (skipped repetitions).
 */
#ifndef SPILLWAY_SIM_SIM_STATE_H
#define SPILLWAY_SIM_SIM_STATE_H

#include <assert.h>

#include "sim/dispatch.h"
#include "sim/duration.h"
#include "sim/lookahead.h"
#include "sim/network/collective_flow.h"
#include "sim/network/flow.h"
#include "sim/network/interference.h"
#include "sim/sim.h"
#include "sim/steady.h"
#include "sim/symmetry/symmetry.h"
#include "sim/window.h"
#include "traces/trace_order.h"

enum sim_stream_state {
    SIM_STREAM_IDLE,
    SIM_STREAM_IN_LATENCY,
    SIM_STREAM_RUNNING,
    SIM_STREAM_JOINING, /* it waits for the other streams of a collective */
    SIM_STREAM_JOINED   /* a collective runs, as an event of another stream */
};

struct sim_stream {
    uint32_t first, last;   /* low numbers of issued operations not started, if pending > 0 */
    uint32_t pending;
    uint32_t waits_passed;  /* waits of the first one that have ended */
    uint32_t running;       /* low number, unless idle */
    uint32_t owner;         /* of its events in the queue */
    uint32_t device;
    uint32_t next_waiter;   /* the next stream that waits for the same operation */
    uint8_t kind;           /* enum plan_stream_kind */
    uint8_t state;          /* enum sim_stream_state */
    bool lacks;             /* counted in `lacking` */
    bool slowed;            /* computations use sim/network/interference.h; copies and collectives affect it */
    uint64_t unissued;      /* operations of the plan that are not issued yet */
    double start_s;         /* start of the running operation */
    double joined_s;        /* when it reached the last collective, to wait for other streams */
    double volume;          /* of the copy in its latency, or of a collective's part ... */
    uint64_t bytes;         /* ... likewise */
    uint32_t part;          /* current part of the running collective; parts are sequential */
    uint32_t path;          /* of its copies, like the next two; for P2P and collectives, of the running operation */
    double latency_s, rate; /* without contention */
    double busy_s;
    uint64_t operations;
    uint64_t opens;         /* ended operations that lift a limit on the stream; UINT64_MAX: none */
};

/* Two devices between which the plan copies. */
struct sim_pair {
    uint32_t device, peer; /* to, from */
    uint32_t route_device, route_peer; /* devices whose links it crosses, which may stand for the above */
    double latency_s, rate;
    uint64_t bytes;  /* of the previous copy, which took ... */
    double alone_s;  /* ... this time without contention */
};

struct sim {
    const struct plan *plan;
    const struct hardware *hardware;
    const struct sim_options *options;
    struct trace *trace;
    struct arena arena;
    struct sim_window window;
    struct sim_lifetimes *lifetimes;
    struct sim_durations *durations;
    struct sim_collectives *collectives; /* NULL: the plan has no gangs */
    struct sim_collective_flows *collective_flows; /* NULL: no collective is a flow */
    struct sim_dispatch *live;   /* NULL: the plan's order */
    struct plan_walk *walk;      /* owned by the window once that is made */
    struct sim_symmetry symmetry; /* devices that are simulated; zeroed: all */
    struct sim_flows *flows;
    struct sim_interference *interference;
    struct sim_queue *queue;     /* owners: streams and bundles, device by device ... */
    uint32_t *owner_events;      /* ... and each owner's identity: a stream or, after all streams, a bundle */
    struct sim_stream *streams;
    uint32_t stream_count;
    struct sim_pair *pairs;          /* by device, then peer */
    uint32_t *first_pair;        /* per device, and one more */
    uint32_t pair_count;
    uint32_t first_p2p_path;     /* pairs' paths, after the paths of host and storage ... */
    uint32_t first_prefetch_path; /* ... then, with demand_first, one per device for copies from the host that are not
                                   * on demand ... */
    uint32_t first_joint_path;   /* ... then the paths of collectives */
    uint32_t *path_streams;      /* by path; a collective's: the stream of the running one */
    uint32_t lacking;            /* streams with unissued operations, none pending and no closed limit ... */
    uint32_t lacking_files;      /* ... likewise of files */
    struct sim_lookahead lookahead;
    bool slowed;                 /* some stream is slowed */
    bool flows_changed, slowing_changed; /* since the last settling */
    bool *job_started;
    struct sim_instant zero; /* origin of virtual time, moved by sim/steady.h */
    double now_s;            /* relative to `zero`, like times of queue, flows and interference */
    struct sim_steady steady;
    uint64_t total, done, events, skipped; /* operations */
    struct trace_order order; /* spans that wait for the writer and on_span */
    bool order_failed;        /* no memory for it */
};

/* Returns true if every operation is reported. */
static inline bool sim_records(const struct sim *sim)
{
    return sim->options->record_spans || sim->options->writer || sim->options->on_span;
}

/* Seconds since the first operation started. */
static inline double sim_time_s(const struct sim *sim)
{
    return sim_instant_s(sim->zero, sim->now_s);
}

static inline struct sim_stream *sim_stream_at(struct sim *sim, uint32_t index)
{
    assert(index < sim->stream_count);
    return &sim->streams[index];
}

/* Marks a stream without pending operations: operations are issued until it has one, or a limit that opens later. */
void sim_stream_lacks(struct sim *sim, uint32_t index);

/* Makes everything before the first event: checks of the machine, streams, memory, the trace. The caller releases `sim`
 * as sim_run() does, also after an error. */
MUST_CHECK enum status sim_create(struct sim *sim, struct error *err);

/* Fills sim->pairs with the pairs of the plan's copies. Needs the walk. */
MUST_CHECK enum status sim_find_pairs(struct sim *sim, struct error *err);

/* Makes streams, links and all copies' paths. */
MUST_CHECK enum status sim_create_machine(struct sim *sim, struct error *err);

#endif
