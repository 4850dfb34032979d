/*
 * Many flows that meet in one lane: what a start or an end costs does not grow with their number.
 *
 * A crowd is a star (star.h) of any size. The flows of an *arm* are alike: they have one cap, and share a trunk, a
 * lane that only they use, so that n of them have the limit min(cap, trunk / n). In the lane where all arms meet one level decides: every
 * flow goes at it, or at its limit where that is less. Limits take few values, as devices and switches are alike; that is
 * what a crowd lives on, and sim_crowd_suits() says whether it is so.
 */
#ifndef SPILLWAY_SIM_CROWD_H
#define SPILLWAY_SIM_CROWD_H

#include "sim/engine/queue.h"

enum { SIM_CROWD_LIMITS_MAX = 32 };

/* Flows that are alike. */
struct sim_crowd_arm {
    double cap, trunk;     /* bytes/s; trunk: infinite where there is none */
    double limited_from_s; /* its clock's limited_s when it was last looked at */
    double capped_s;       /* a flow that was always there went at its cap so long */
    double trunk_full_s;
    uint32_t first_place, flow_limit; /* flow_limit: at least 1 */
    uint32_t flow_count;   /* under way */
    uint32_t clock;
    bool capped, fills;    /* its limit is its cap; its flows fill the trunk when they go at it */
};

struct sim_crowd_flow {
    double capped_from_s;  /* the arm's capped_s when it began */
    double capped_s;       /* of all that were at this place */
    uint32_t arm;
    bool active;
};

/* The clock of all flows of one limit. */
struct sim_crowd_clock {
    double limit;
    double served;          /* bytes, at the crowd's read_s */
    double rate;
    double limited_s;       /* so long they went at the limit */
    double first_s;         /* when `first` ends as things are */
    struct sim_queue *ends; /* readings of `served`; owner: a place */
    uint32_t flow_count;
    uint32_t first;         /* whose end was looked for last, if it is still there */
    bool limited;
};

struct sim_crowd {
    double bytes_per_s;
    double read_s;
    double full_s;          /* the lane was full so long */
    uint64_t work;          /* how often a clock was set, or a flow moved to another */
    struct sim_crowd_arm *arms;
    struct sim_crowd_flow *flows; /* by place: first those of arm 0, then those of arm 1, and so on */
    uint32_t arm_count, place_count, flow_count, clock_count;
    uint32_t first;         /* the clock of the next end */
    bool full;
    bool touched;           /* flow.c's */
    struct sim_crowd_clock clocks[SIM_CROWD_LIMITS_MAX]; /* by limit, the lowest first */
};

/* Do limits take few values, and those of an arm with many flows one? Of arms only cap, trunk and flow_limit are read. */
bool sim_crowd_suits(const struct sim_crowd_arm *arms, uint32_t arm_count);

/* `crowd` has its bandwidth, its arms, which suit, and room for their flows; the rest is zero. Clocks live as long as
 * `arena`. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status sim_crowd_init(struct sim_crowd *crowd, struct arena *arena, struct error *err);

/* `order` decides between flows that end at the same time. In force from the next sim_crowd_settle() on. */
void sim_crowd_begin(struct sim_crowd *crowd, uint32_t place, double volume, uint64_t order, double now_s);

/* The first flow, as sim_crowd_settle() found, has ended. Returns its place. */
uint32_t sim_crowd_end(struct sim_crowd *crowd, double now_s);

/* Rates all flows and finds the first to end: when, and its order. False: no flow is under way. O(log flows). */
bool sim_crowd_settle(struct sim_crowd *crowd, double now_s, double *end_s, uint64_t *order);

/* For sim/steady.h, as in flow.h. */
void sim_crowd_rebase(struct sim_crowd *crowd, double seconds);
void sim_crowd_write(const struct sim_crowd *crowd, uint64_t first_order, struct sim_words *out);

#endif
