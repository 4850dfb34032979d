/*
 * The state of a swarm simulation, private to its files:
 *
 *   swarm_run.c    microbatches: their way through the stages, passes, steps
 *   swarm_route.c  the choice of peers
 *   swarm_links.c  transfers between peers
 *   swarm_peers.c  peers that leave, return, fetch their stage's state and move
 *
 * A *parcel* is the unit of transfers: number m < slots is microbatch m, slots + p is the next piece of the state that
 * peer p fetches. A microbatch is in one place at a time, so a parcel has at most one event.
 */
#ifndef SPILLWAY_SIM_SWARM_SWARM_STATE_H
#define SPILLWAY_SIM_SWARM_SWARM_STATE_H

#include "sim/engine/queue.h"
#include "sim/swarm/swarm_run.h"

enum swarm_parcel_place {
    SWARM_PARCEL_NOWHERE, /* a free slot; nothing to fetch */
    SWARM_PARCEL_WAITING, /* waits for the link of `from` */
    SWARM_PARCEL_FLYING,
    SWARM_PARCEL_QUEUED,  /* at `to`, or computed there */
    SWARM_PARCEL_PAUSED,  /* until its trainer's timeout */
    SWARM_PARCEL_STRANDED /* no peer can be asked */
};

struct swarm_parcel {
    uint32_t place; /* enum swarm_parcel_place */
    uint32_t from;  /* SWARM_NONE: a trainer, or storage */
    uint32_t to;
    uint32_t next;  /* the next in the queue of a link or a processor */
    double bytes;
};

struct swarm_microbatch {
    uint32_t trainer;
    uint32_t pipeline;  /* SWARM_FIXED */
    uint32_t goal;      /* the stage of the next backward pass */
    uint32_t stage;     /* current stage, or the next one while in transit */
    bool backward;
    uint32_t blamed;    /* paused: the peer whose answer is missing; SWARM_NONE: a peer asked earlier */
    double asked_s;     /* when the peer of this stage was chosen */
    uint32_t answering; /* the peer whose forward result is in transit, SWARM_NONE: none ... */
    double answering_s; /* ... and when that peer was chosen */
    uint32_t farthest;  /* number of stages that it has passed forward */
};

/* First in, first out. */
struct swarm_line {
    uint32_t head, tail;
};

enum swarm_peer_state { SWARM_PEER_AWAY, SWARM_PEER_JOINING, SWARM_PEER_READY };

struct swarm_peer {
    uint32_t group, stage, state;
    uint32_t home;         /* its stage without rebalancing */
    struct swarm_line passes;    /* the head is being computed */
    double pass_begin_s;
    struct swarm_line parcels;   /* waiting for its link up */
    bool sending;
    double down_free_s;
    bool slow;             /* by random straggling */
    double slow_until_s, slow_factor; /* by recorded events */
    uint32_t life_draws, slow_draws;
    uint32_t under_way;    /* microbatches in transit to it, or there */
    uint32_t pieces_left;
    uint64_t gradients;    /* number of microbatches since the last step */
    double gradients_s;    /* seconds of their computation */
    double since_s;        /* last return or change of stage */
};

/* A trainer's view of a peer. */
struct swarm_view {
    double response_s;     /* average response time; 0: none yet */
    double turn;           /* see swarm_route.c */
    double banned_until_s;
    bool away;             /* the trainer has noticed */
};

struct swarm_trace_event {
    double at_s, for_s, factor;
    uint32_t peer;
};

struct swarm_state {
    const struct swarm *in;
    const struct swarm_options *options;
    struct swarm_result *out;
    struct sim_queue *queue;
    double now_s;
    uint32_t slots, peers, stages, trainers;
    struct swarm_parcel *parcels;       /* (slots + peers) */
    struct swarm_microbatch *microbatches; /* (slots) */
    uint32_t *free_slots, free_count;
    uint32_t *holder;             /* (slots, stages): the peer that has a stage's activations, or has just made its
                                     gradient */
    double *held_s;               /* (slots, stages): computing seconds that these activations cost */
    struct swarm_peer *peer;            /* (peers) */
    struct swarm_view *views;           /* (trainers, peers) */
    double *turns;                /* (trainers, stages): turn of the peer that was asked last */
    uint32_t *asked_last;         /* (trainers, stages): SWARM_ROUND_ROBIN */
    uint32_t *pipelines;          /* (pipeline_count, stages): peers; SWARM_FIXED */
    uint32_t *pipeline_load;      /* (pipeline_count): microbatches under way */
    uint32_t pipeline_count;
    uint64_t gradients[SWARM_STAGES_MAX]; /* number of microbatches, on present peers */
    uint32_t queued[SWARM_STAGES_MAX];    /* microbatches at the stage's peers */
    double queued_s[SWARM_STAGES_MAX];    /* time integral of queued since the last rebalancing check */
    double counted_s[SWARM_STAGES_MAX];   /* end of that integral */
    double rebalanced_s;
    uint32_t alive;               /* microbatches */
    bool averaging;
    double averaging_begin_s;
    struct swarm_trace_event *trace;    /* by time */
    uint32_t trace_count, trace_next;
    bool ended;
};

/* Owners of events. */
static inline uint32_t swarm_owner_parcel(const struct swarm_state *r, uint32_t parcel) { (void)r; return parcel; }
static inline uint32_t swarm_owner_pass(const struct swarm_state *r, uint32_t p) { return r->slots + r->peers + p; }
static inline uint32_t swarm_owner_link(const struct swarm_state *r, uint32_t p) { return r->slots + 2 * r->peers + p; }
static inline uint32_t swarm_owner_life(const struct swarm_state *r, uint32_t p) { return r->slots + 3 * r->peers + p; }
static inline uint32_t swarm_owner_slow(const struct swarm_state *r, uint32_t p) { return r->slots + 4 * r->peers + p; }
static inline uint32_t swarm_owner_trace(const struct swarm_state *r) { return r->slots + 5 * r->peers; }
static inline uint32_t swarm_owner_averaging(const struct swarm_state *r) { return r->slots + 5 * r->peers + 1; }
static inline uint32_t swarm_owner_count(const struct swarm_state *r) { return r->slots + 5 * r->peers + 2; }

/* Order of events at equal times. */
enum {
    SWARM_ORDER_LIFE,
    SWARM_ORDER_SLOW,
    SWARM_ORDER_TRACE,
    SWARM_ORDER_LINK,
    SWARM_ORDER_PARCEL,
    SWARM_ORDER_PASS,
    SWARM_ORDER_AVERAGING
};

static inline struct swarm_view *swarm_view_of(const struct swarm_state *r, uint32_t trainer, uint32_t p)
{
    return &r->views[(size_t)trainer * r->peers + p];
}
static inline uint32_t *swarm_holder_of(const struct swarm_state *r, uint32_t m, uint32_t stage)
{
    return &r->holder[(size_t)m * r->stages + stage];
}
static inline double *swarm_held_of(const struct swarm_state *r, uint32_t m, uint32_t stage)
{
    return &r->held_s[(size_t)m * r->stages + stage];
}
static inline const struct swarm_group *swarm_group_at(const struct swarm_state *r, uint32_t p)
{
    return &r->in->groups[r->peer[p].group];
}
static inline bool swarm_rebalances(const struct swarm_state *r)
{
    return r->options->wiring != SWARM_FIXED && r->options->rebalance_s < HUGE_VAL;
}

/* --- swarm_links.c ---------------------------------------------------------------------------- */

void swarm_line_add(struct swarm_state *r, struct swarm_line *line, uint32_t parcel);
uint32_t swarm_line_pop(struct swarm_state *r, struct swarm_line *line); /* the head; there is one */
void swarm_line_remove(struct swarm_state *r, struct swarm_line *line, uint32_t parcel);

/* Sends the parcel; with `from` SWARM_NONE it uses no link up. */
void swarm_link_send(struct swarm_state *r, uint32_t parcel, uint32_t from, uint32_t to, double bytes);
void swarm_link_free(struct swarm_state *r, uint32_t p); /* the event: its link up has sent a parcel */

/* --- swarm_route.c ---------------------------------------------------------------------------- */

/* Returns the peer that microbatch m's trainer asks at its stage; SWARM_NONE: it knows none. */
uint32_t swarm_route_choose(struct swarm_state *r, uint32_t m);
void swarm_route_answered(struct swarm_state *r, uint32_t m); /* the peer that it waits for has answered */
void swarm_route_ban(struct swarm_state *r, uint32_t trainer, uint32_t p);
void swarm_route_welcome(struct swarm_state *r, uint32_t p); /* it is ready, and all trainers learn it */
/* Returns the end of the first ban that keeps the trainer from asking at the stage; HUGE_VAL: none. */
double swarm_route_ban_end_s(const struct swarm_state *r, uint32_t trainer, uint32_t stage);

/* --- swarm_peers.c ---------------------------------------------------------------------------- */

void swarm_peers_begin(struct swarm_state *r, const uint32_t *stages);
void swarm_peers_end(struct swarm_state *r); /* counts open gradients at the end of the run */
void swarm_peer_life(struct swarm_state *r, uint32_t p);  /* the event: it fails, or returns */
void swarm_peer_slow(struct swarm_state *r, uint32_t p);  /* the event */
void swarm_peer_trace(struct swarm_state *r);             /* the event */
void swarm_peer_piece(struct swarm_state *r, uint32_t p); /* the event: a piece has arrived */
void swarm_averaging_set(struct swarm_state *r, bool averaging);
double swarm_peer_slowdown(const struct swarm_state *r, uint32_t p);
void swarm_peers_rebalance(struct swarm_state *r);
void swarm_queue_count(struct swarm_state *r, uint32_t stage, int change); /* microbatches at the stage's peers */

/* --- swarm_run.c ------------------------------------------------------------------------------ */

void swarm_lose(struct swarm_state *r, uint32_t p);  /* all work of the peer, and all transfers to and from it */
void swarm_settle(struct swarm_state *r);            /* new microbatches, or averaging, as needed */
void swarm_wake(struct swarm_state *r);              /* a peer has become ready */

#endif
