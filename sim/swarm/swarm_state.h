/*
 * What a run of a swarm works with; for its own files only:
 *
 *   swarm_run.c    microbatches: their way through the stages, passes, steps
 *   swarm_route.c  who is asked
 *   swarm_links.c  what is on its way from peer to peer
 *   swarm_peers.c  peers that go, come, fetch their stage's state and move
 *
 * A *parcel* is what links carry: number m < slots is microbatch m, slots + p the next piece of the state that
 * peer p fetches. A microbatch is in one place at a time, so that a parcel has at most one event.
 */
#ifndef SPILLWAY_SWARM_SWARM_STATE_H
#define SPILLWAY_SWARM_SWARM_STATE_H

#include "sim/engine/queue.h"
#include "sim/swarm/swarm_run.h"

enum parcel_place {
    PARCEL_NOWHERE, /* a free slot; nothing to fetch */
    PARCEL_WAITING, /* for the link of `from` */
    PARCEL_FLYING,
    PARCEL_QUEUED,  /* at `to`, or computed there */
    PARCEL_PAUSED,  /* until its trainer's patience ends */
    PARCEL_STRANDED /* nobody to ask */
};

struct parcel {
    uint32_t place; /* enum parcel_place */
    uint32_t from;  /* SWARM_NONE: a trainer, or storage */
    uint32_t to;
    uint32_t next;  /* in the line of a link or a processor */
    double bytes;
};

struct microbatch {
    uint32_t trainer;
    uint32_t pipeline;  /* SWARM_FIXED */
    uint32_t goal;      /* the stage whose backward pass comes next */
    uint32_t stage;     /* that it is in, or on its way to */
    bool backward;
    uint32_t blamed;    /* PARCEL_PAUSED: whose answer did not come; SWARM_NONE: of one that it had asked before */
    double asked_s;     /* when the peer of this stage was chosen */
    uint32_t answering; /* the peer whose forward result is on its way, SWARM_NONE: no answer is due ... */
    double answering_s; /* ... and when that peer was chosen */
    uint32_t farthest;  /* stages that it has been through forward */
};

/* First in, first out. */
struct line {
    uint32_t head, tail;
};

enum peer_state { PEER_AWAY, PEER_JOINING, PEER_READY };

struct peer {
    uint32_t group, stage, state;
    uint32_t home;         /* its stage without rebalancing */
    struct line passes;    /* the head is computed */
    double pass_begin_s;
    struct line parcels;   /* that wait for its link up */
    bool sending;
    double down_free_s;
    bool slow;             /* by chance */
    double slow_until_s, slow_factor; /* by a trace */
    uint32_t life_draws, slow_draws;
    uint32_t under_way;    /* microbatches on their way to it, or there */
    uint32_t pieces_left;
    uint64_t gradients;    /* of microbatches, since the last step */
    double gradients_s;    /* of computing behind them */
    double since_s;        /* when it last came, or last changed its stage */
};

/* What a trainer knows of a peer. */
struct view {
    double response_s;     /* the average; 0: none yet */
    double turn;           /* see swarm_route.c */
    double banned_until_s;
    bool away;             /* it has noticed */
};

struct trace_event {
    double at_s, for_s, factor;
    uint32_t peer;
};

struct run {
    const struct swarm *in;
    const struct swarm_options *options;
    struct swarm_result *out;
    struct sim_queue *queue;
    double now_s;
    uint32_t slots, peers, stages, trainers;
    struct parcel *parcels;       /* (slots + peers) */
    struct microbatch *microbatches; /* (slots) */
    uint32_t *free_slots, free_count;
    uint32_t *holder;             /* (slots, stages): who has a stage's activations, or has just made its gradient */
    double *held_s;               /* (slots, stages): of computing behind these activations */
    struct peer *peer;            /* (peers) */
    struct view *views;           /* (trainers, peers) */
    double *turns;                /* (trainers, stages): of the last one that was asked */
    uint32_t *asked_last;         /* (trainers, stages): SWARM_ROUND_ROBIN */
    uint32_t *pipelines;          /* (pipeline_count, stages): peers; SWARM_FIXED */
    uint32_t *pipeline_load;      /* (pipeline_count): microbatches under way */
    uint32_t pipeline_count;
    uint64_t gradients[SWARM_STAGES_MAX]; /* of microbatches, on peers that are there */
    uint32_t queued[SWARM_STAGES_MAX];    /* microbatches at the stage's peers */
    double queued_s[SWARM_STAGES_MAX];    /* the integral of that since the last look at it */
    double counted_s[SWARM_STAGES_MAX];   /* up to when */
    double rebalanced_s;
    uint32_t alive;               /* microbatches */
    bool averaging;
    double averaging_begin_s;
    struct trace_event *trace;    /* by time */
    uint32_t trace_count, trace_next;
    bool ended;
};

/* Owners of events. */
static inline uint32_t owner_parcel(const struct run *r, uint32_t parcel) { (void)r; return parcel; }
static inline uint32_t owner_pass(const struct run *r, uint32_t p) { return r->slots + r->peers + p; }
static inline uint32_t owner_link(const struct run *r, uint32_t p) { return r->slots + 2 * r->peers + p; }
static inline uint32_t owner_life(const struct run *r, uint32_t p) { return r->slots + 3 * r->peers + p; }
static inline uint32_t owner_slow(const struct run *r, uint32_t p) { return r->slots + 4 * r->peers + p; }
static inline uint32_t owner_trace(const struct run *r) { return r->slots + 5 * r->peers; }
static inline uint32_t owner_averaging(const struct run *r) { return r->slots + 5 * r->peers + 1; }
static inline uint32_t owner_count(const struct run *r) { return r->slots + 5 * r->peers + 2; }

/* What goes first of equal times. */
enum { ORDER_LIFE, ORDER_SLOW, ORDER_TRACE, ORDER_LINK, ORDER_PARCEL, ORDER_PASS, ORDER_AVERAGING };

static inline struct view *view_of(const struct run *r, uint32_t trainer, uint32_t p)
{
    return &r->views[(size_t)trainer * r->peers + p];
}
static inline uint32_t *holder_of(const struct run *r, uint32_t m, uint32_t stage)
{
    return &r->holder[(size_t)m * r->stages + stage];
}
static inline double *held_of(const struct run *r, uint32_t m, uint32_t stage)
{
    return &r->held_s[(size_t)m * r->stages + stage];
}
static inline const struct swarm_group *group_of(const struct run *r, uint32_t p)
{
    return &r->in->groups[r->peer[p].group];
}
static inline bool rebalances(const struct run *r)
{
    return r->options->wiring != SWARM_FIXED && r->options->rebalance_s < HUGE_VAL;
}

/* --- swarm_links.c ---------------------------------------------------------------------------- */

void line_add(struct run *r, struct line *line, uint32_t parcel);
uint32_t line_take(struct run *r, struct line *line); /* the head; there is one */
void line_remove(struct run *r, struct line *line, uint32_t parcel);

/* Put the parcel on its way; with `from` SWARM_NONE it waits for no link up. */
void link_send(struct run *r, uint32_t parcel, uint32_t from, uint32_t to, double bytes);
void link_free(struct run *r, uint32_t p); /* the event: its link up has carried a parcel */

/* --- swarm_route.c ---------------------------------------------------------------------------- */

/* Whom microbatch m's trainer asks at its stage; SWARM_NONE: nobody it knows of. */
uint32_t route_choose(struct run *r, uint32_t m);
void route_answered(struct run *r, uint32_t m); /* by whom it waits for */
void route_ban(struct run *r, uint32_t trainer, uint32_t p);
void route_welcome(struct run *r, uint32_t p); /* it is ready, everyone hears of it */
/* The end of the first ban that keeps the trainer from asking at the stage; HUGE_VAL: none does. */
double route_ban_end_s(const struct run *r, uint32_t trainer, uint32_t stage);

/* --- swarm_peers.c ---------------------------------------------------------------------------- */

void peers_begin(struct run *r, const uint32_t *stages);
void peers_end(struct run *r); /* what is open at the end of the run is counted */
void peer_life(struct run *r, uint32_t p);  /* the event: it fails, or comes back */
void peer_slow(struct run *r, uint32_t p);  /* the event */
void peer_trace(struct run *r);             /* the event */
void peer_piece(struct run *r, uint32_t p); /* the event: a piece has come */
void averaging_set(struct run *r, bool averaging);
double peer_slowdown(const struct run *r, uint32_t p);
void peers_rebalance(struct run *r);
void queue_count(struct run *r, uint32_t stage, int change); /* microbatches at the stage's peers */

/* --- swarm_run.c ------------------------------------------------------------------------------ */

void microbatch_advance(struct run *r, uint32_t m); /* what comes next for it */
void microbatch_pause(struct run *r, uint32_t m, uint32_t blamed);
void run_lose(struct run *r, uint32_t p);  /* all that the peer has, and what is on its way to or from it */
void run_settle(struct run *r);            /* new microbatches, or averaging, as there is need */
void run_wake(struct run *r);              /* a peer has become ready */

#endif
