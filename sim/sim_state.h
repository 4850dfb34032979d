/*
 * A run of the simulator: what sim.c (the loop), sim_create.c (before the first event) and sim_machine.c
 * (its streams, links and paths) share. Nobody else includes this.
 */
#ifndef SPILLWAY_SIM_SIM_STATE_H
#define SPILLWAY_SIM_SIM_STATE_H

#include <assert.h>

#include "sim/dispatch.h"
#include "sim/duration.h"
#include "sim/gate.h"
#include "sim/network/collective_flow.h"
#include "sim/network/flow.h"
#include "sim/network/interference.h"
#include "sim/sim.h"
#include "sim/steady.h"
#include "sim/symmetry/symmetry.h"
#include "sim/window.h"

enum stream_state {
    STREAM_IDLE,
    STREAM_IN_LATENCY,
    STREAM_RUNNING,
    STREAM_JOINING, /* it has come to a collective whose other streams have not all */
    STREAM_JOINED   /* a collective runs, as an event of another stream */
};

struct stream {
    uint32_t first, last;   /* low numbers of what is issued and not started, if pending > 0 */
    uint32_t pending;
    uint32_t waits_passed;  /* of the first one: these have ended */
    uint32_t running;       /* low number, unless idle */
    uint32_t owner;         /* of its events in the queue */
    uint32_t device;
    uint32_t next_waiter;   /* the next stream that waits for the same operation */
    uint8_t kind;           /* enum plan_stream_kind */
    uint8_t state;          /* enum stream_state */
    bool lacks;             /* it is counted in `lacking` */
    bool slowed;            /* computations go through sim/network/interference.h, copies and collectives concern it */
    uint64_t unissued;      /* operations of the plan */
    double start_s;         /* of the running one */
    double volume;          /* of the copy in its latency, or the part of a collective ... */
    uint64_t bytes;         /* ... like this */
    uint32_t part;          /* of the running collective; they are done one after the other */
    uint32_t path;          /* of its copies, like the two below; P2P and collectives: of the running one */
    double latency_s, rate; /* of undisturbed copies */
    double busy_s;
    uint64_t operations;
    uint64_t opens;         /* so many have ended: a gate that waits for the stream is open; UINT64_MAX: none does */
};

/* Two devices that the plan copies between. */
struct pair {
    uint32_t device, peer; /* to, from */
    uint32_t route_device, route_peer; /* whose links it crosses; other than these where some stand for others */
    double latency_s, rate;
    uint64_t bytes;  /* of the copy before, which took ... */
    double alone_s;  /* ... so long when nothing else ran */
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
    struct sim_collective_flows *collective_flows; /* NULL: no collective is one */
    struct sim_dispatch *live;   /* NULL: the plan's order */
    struct plan_walk *walk;      /* the window's, once that is made */
    struct sim_symmetry symmetry; /* who is simulated; zeroed: everybody */
    struct sim_flows *flows;
    struct sim_interference *interference;
    struct sim_queue *queue;     /* owners: streams and bundles of flows that are used, device by device ... */
    uint32_t *owner_events;      /* ... and who each is: a stream, or behind all of these a bundle */
    struct stream *streams;
    uint32_t stream_count;
    struct pair *pairs;          /* by device, then peer */
    uint32_t *first_pair;        /* per device, and one more */
    uint32_t pair_count;
    uint32_t first_p2p_path;     /* those of the pairs, behind those of host and storage ... */
    uint32_t first_prefetch_path; /* ... then, where copies on demand go first, one for each device for those from
                                     the host that are not ... */
    uint32_t first_joint_path;   /* ... and those of collectives behind these */
    uint32_t *path_streams;      /* by path; of a collective's the stream of the running one */
    uint32_t lacking;            /* streams with unissued operations, none pending and no gate that is shut */
    struct sim_gates gates;
    bool slowed;                 /* some stream is */
    bool flows_changed, slowing_changed; /* since they were settled */
    bool *job_started;
    struct sim_instant zero; /* of virtual time, as it is counted now: steady.h */
    double now_s;            /* since then; so are all times that queue, flows and interference have */
    struct sim_steady steady;
    uint64_t total, done, events, skipped; /* operations */
};

/* Seconds since the first operation started. */
static inline double sim_time_s(const struct sim *sim)
{
    return sim_instant_s(sim->zero, sim->now_s);
}

static inline struct stream *sim_stream_at(struct sim *sim, uint32_t index)
{
    assert(index < sim->stream_count);
    return &sim->streams[index];
}

/* The stream has nothing pending: operations are to be issued until it has, or it has a gate that opens later. */
void sim_stream_lacks(struct sim *sim, uint32_t index);

/* All before the first event: checks of the machine, streams, memory, the trace. Released as sim_run()
 * does, also after an error. */
MUST_CHECK enum status sim_create(struct sim *sim, struct error *err);

/* sim->pairs: the pairs of devices that the plan copies between. Needs the walk. */
MUST_CHECK enum status sim_find_pairs(struct sim *sim, struct error *err);

/* Streams, links and the paths of copies over them, the pairs' included. */
MUST_CHECK enum status sim_create_machine(struct sim *sim, struct error *err);

#endif
