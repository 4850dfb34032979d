/*
 * Many flows that meet in one link direction, with costs that do not grow with their number.
 *
 * A crowd is a bottleneck (bottleneck.h) of any size. An *arm*'s flows are equal: they have one cap, and share a trunk,
 * a link direction of their own, so n flows have the limit min(cap, trunk / n). In the arms' common link direction
 * every flow of a priority has one rate, the level, or its limit if that is less. Limits must take few values, as on
 * devices and switches of few kinds; sim_crowd_suits() checks it.
 *
 * Priorities are strict, as in share.h. Two arms of different priorities may be *partners*, with one trunk for both:
 * copies in of the devices behind one switch, on demand and ahead of time.
 */
#ifndef SPILLWAY_SIM_NETWORK_CROWD_H
#define SPILLWAY_SIM_NETWORK_CROWD_H

#include "sim/engine/queue.h"
#include "sim/network/path_classes.h"

enum { SIM_CROWD_LIMITS_MAX = 1024 };
#define SIM_CROWD_NO_ARM UINT32_MAX

/* Equal flows. */
struct sim_crowd_arm {
    double cap, trunk;     /* bytes/s; trunk: infinite if there is none */
    double limited_from_s; /* limited_s of its clock at the last inspection */
    double capped_s;       /* seconds at the cap, of an always active flow */
    double trunk_full_s;
    uint32_t first_place, flow_limit; /* flow_limit: maximum number of flows, at least 1 */
    uint32_t flow_count;   /* active flows */
    uint32_t clock;
    uint32_t priority;
    uint32_t partner;      /* the arm of another priority with the same trunk, or SIM_CROWD_NO_ARM ... */
    uint32_t trunk_flow_limit; /* ... and the maximum number of flows of both */
    bool capped, fills;    /* the limit is the cap; its flows at their limit fill the trunk's remainder */
};

struct sim_crowd_flow {
    double capped_from_s;  /* the arm's capped_s when the flow began */
    double capped_s;       /* seconds at the cap of all flows here */
    uint32_t arm;
    bool active;
};

/* The clock of all flows with one limit and priority. */
struct sim_crowd_clock {
    double limit;           /* 0: partners of the first priority fill the trunk */
    double served;          /* bytes served to each flow, at the crowd's read_s */
    double rate;
    double limited_s;       /* seconds at the limit */
    double first_s;         /* end of `first` at current rates; infinite at rate 0 */
    struct sim_queue *ends; /* ordered by readings of `served`; owner: a place minus first_place */
    uint32_t first_place;
    uint32_t flow_count;
    uint32_t first;         /* the last search's first to end, if still active */
    bool limited;
};

struct sim_crowd {
    double bytes_per_s;
    double read_s;
    double full_s;          /* seconds in which the link direction was full */
    uint64_t work;          /* times that a clock was set, or a flow moved */
    struct sim_crowd_arm *arms;
    struct sim_crowd_flow *flows; /* by place: all flows of arm 0, then of arm 1, ... */
    uint32_t arm_count, place_count, flow_count, clock_count;
    uint32_t first;         /* the clock with the next end */
    bool full;
    bool touched;           /* private to flow.c */
    uint32_t first_clocks[SIM_PRIORITIES_MAX + 1]; /* by priority */
    struct sim_crowd_clock *clocks; /* by priority, then by limit, the lowest first */
};

/* Returns true if limits take few values, and one in each arm with many flows, and if arms with equal limits are close
 * to each other. Reads only arms' cap, trunk, flow limits, priority and partner. */
bool sim_crowd_suits(const struct sim_crowd_arm *arms, uint32_t arm_count);

/* Bandwidth, suitable arms and room for their flows are set before; other fields are zero. Clocks live as long as
 * `arena`. */
MUST_CHECK enum status sim_crowd_init(struct sim_crowd *crowd, struct arena *arena, struct error *err);

/* `order` decides between flows that end at once. Takes effect at the next sim_crowd_settle(). */
void sim_crowd_begin(struct sim_crowd *crowd, uint32_t place, double volume, uint64_t order, double now_s);

/* Ends the first flow, found by sim_crowd_settle(). Returns its place. */
uint32_t sim_crowd_end(struct sim_crowd *crowd, double now_s);

/* Computes all rates, and the first end's time and order. Returns false if no flow is active. O(log flows). */
bool sim_crowd_settle(struct sim_crowd *crowd, double now_s, double *end_s, uint64_t *order);

/* For sim/steady.h, as in flow.h. */
void sim_crowd_rebase(struct sim_crowd *crowd, double seconds);
void sim_crowd_write(const struct sim_crowd *crowd, uint64_t first_order, struct sim_snapshot *out);

#endif
