/*
 * A few flows that meet in one lane: their rates in closed form, and the remaining volume of each.
 *
 *     class a  ==trunk 12==+
 *     class b  ==trunk 12==+-- lane 20      one level decides: every flow has this rate, or its limit
 *     class c  --cap 3-----+                if that is less
 *
 * A trunk is a lane that only one class uses: each of its n flows gets at most 1/n of it. The limit of a flow is the
 * lesser of this part and its cap. Machines whose devices meet at one switch or host bridge consist of stars. The level
 * is the bandwidth of the lane minus the rates of flows below the level, divided by the number of other flows. The
 * iteration starts at bandwidth / flows, and the level rises until no further flow is below.
 *
 * All flows of a star are consecutive, in at most 64 places, with a bit for each active one. At an event all of them
 * advance by the volume served since the last event; rates and the first end take one pass each. With the three or four
 * active flows of a group of devices this costs a tenth of the general solver (share.h). Unpredictable choices, such as the
 * first flow to end, are made without branches: half of these would be mispredicted.
 *
 * Tried and rejected: padding flows to multiples of 2 or 4 so that loop exits predict well. Most of the time one or two
 * flows are active, and computing the idle ones took longer.
 *
 * The functions are inline because most events do nothing else to flows; flow.c calls them.
 */
#ifndef SPILLWAY_SIM_STAR_H
#define SPILLWAY_SIM_STAR_H

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/network/outline.h"

enum { SIM_STAR_FLOWS_MAX = 64 };

struct sim_star_flow {
    double left;      /* bytes, at the star's read_s */
    double rate;      /* bytes/s; 0: it began after read_s */
    double full;      /* 1: this rate fills its own lanes or the trunk; 0: it does not */
    double limit;     /* bytes/s: maximum rate next to the other flows of its class */
    double full_rate; /* rates from here on fill its own lanes or the trunk; infinite for all flows of a class but one,
                         so that the trunk counts once */
    double full_s;    /* seconds in which they were full */
    uint64_t order;   /* decides between flows that end at the same time */
    uint32_t flow;    /* private to flow.c, like `path` */
    uint32_t path;
};
static_assert(sizeof(struct sim_star_flow) == 64, "a place is a cache line");

/* A class of the star. */
struct sim_star_arm {
    double cap, trunk;  /* bytes/s; trunk: infinite if there is none */
    uint64_t places;    /* bits */
};

struct sim_star {
    double bytes_per_s;
    double read_s;      /* time to which flows are advanced */
    double full_s;      /* seconds in which the lane was full */
    uint64_t active;    /* bits: places with an active flow */
    struct sim_star_flow *flows; /* by place */
    double first_s;     /* the next end, and the places that end then ... */
    uint64_t ending;
    uint8_t first;      /* ... of which this one is handled first */
    bool full;
    bool touched;       /* private to flow.c */
};
static_assert(sizeof(struct sim_star) == 64, "a star is a cache line");

static inline uint32_t sim_star_bit(uint64_t places)
{
    return (uint32_t)__builtin_ctzll(places);
}

/* Updates the limits after the arm's number of flows has changed. */
static inline void sim_star_limit(struct sim_star *star, const struct sim_star_arm *arm)
{
    uint64_t places = star->active & arm->places;
    double part = arm->trunk;
    if (places == 0) return;
    if (places & (places - 1)) {
        uint32_t count = 0;
        for (uint64_t left = places; left; left &= left - 1) count++;
        part /= count;
    }
    double limit = part < arm->cap ? part : arm->cap;
    double full_rate = (arm->trunk < INFINITY ? part : arm->cap) * SIM_FULL;
    for (uint64_t left = places; left; left &= left - 1) {
        struct sim_star_flow *flow = &star->flows[sim_star_bit(left)];
        flow->limit = limit;
        flow->full_rate = full_rate;
        if (arm->trunk < INFINITY) full_rate = INFINITY;
    }
}

static inline void sim_star_begin(struct sim_star *star, const struct sim_star_arm *arm, uint32_t place,
                                  double volume, uint64_t order)
{
    struct sim_star_flow *flow = &star->flows[place];
    assert(!(star->active >> place & 1));
    star->active |= UINT64_C(1) << place;
    flow->left = volume;
    flow->order = order;
    flow->rate = flow->full = 0;
    sim_star_limit(star, arm);
}

/* Ends the first flow and returns it. The caller must call sim_star_limit() afterwards. */
static inline const struct sim_star_flow *sim_star_end(struct sim_star *star, double now_s)
{
    uint32_t place = star->first;
    struct sim_star_flow *flow = &star->flows[place];
    assert(star->active >> place & 1);
    flow->full_s += (now_s - star->read_s) * flow->full;
    star->active &= ~(UINT64_C(1) << place);
    star->ending &= star->active;
    return flow;
}

/* Returns the level when the demand exceeds the bandwidth. */
static inline double sim_star_level(const struct sim_star *star, uint32_t count, double least)
{
    double level = star->bytes_per_s / count;
    if (!(least < level)) return level;
    for (uint32_t below = 0;;) {
        double taken = 0;
        uint32_t staying = 0;
        for (uint64_t left = star->active; left; left &= left - 1) {
            double limit = star->flows[sim_star_bit(left)].limit;
            bool stays = limit < level;
            taken += stays ? limit : 0;
            staying += stays;
        }
        if (staying == below) return level;
        if (staying == count) return INFINITY; /* by rounding: the demand is the bandwidth */
        below = staying;
        double next = (star->bytes_per_s - taken) / (count - staying);
        if (next > level) level = next;
    }
}

/* Advances the clock of a star without flows. */
static inline void sim_star_rest(struct sim_star *star, double now_s)
{
    star->full_s += star->full * (now_s - star->read_s);
    star->full = false;
    star->read_s = now_s;
}

/* Advances all flows to now_s, rates them and finds the first one to end, star->first, by (time, order). There must be
 * an active flow. Returns the time. */
static inline double sim_star_settle(struct sim_star *star, double now_s)
{
    double demand = 0, least = INFINITY, level = INFINITY, elapsed_s = now_s - star->read_s;
    uint32_t count = 0;
    assert(elapsed_s >= 0);
    star->read_s = now_s;
    for (uint64_t left = star->active; left; left &= left - 1, count++) {
        struct sim_star_flow *flow = &star->flows[sim_star_bit(left)];
        flow->left -= flow->rate * elapsed_s;
        flow->full_s += flow->full * elapsed_s;
        demand += flow->limit;
        least = flow->limit < least ? flow->limit : least;
    }
    /* what rounding has left of flows that end now would have all but the first end a last bit later */
    if (__builtin_expect((star->ending != 0) & (now_s >= star->first_s), 0))
        for (uint64_t left = star->ending; left; left &= left - 1) star->flows[sim_star_bit(left)].left = 0;
    star->full_s += star->full * elapsed_s;
    star->full = demand >= star->bytes_per_s * SIM_FULL;
    if (demand > star->bytes_per_s) level = sim_star_level(star, count, least);
    double first_s = INFINITY, ends_s[SIM_STAR_FLOWS_MAX];
    for (uint64_t left = star->active; left; left &= left - 1) {
        uint32_t place = sim_star_bit(left);
        struct sim_star_flow *flow = &star->flows[place];
        double volume = flow->left > 0 ? flow->left : 0;
        flow->rate = flow->limit < level ? flow->limit : level;
        flow->full = flow->rate >= flow->full_rate;
        ends_s[place] = now_s + volume / flow->rate;
        first_s = ends_s[place] < first_s ? ends_s[place] : first_s;
    }
    uint64_t first = 0;
    for (uint64_t left = star->active; left; left &= left - 1)
        first |= (uint64_t)(ends_s[sim_star_bit(left)] <= first_s) << sim_star_bit(left);
    star->first_s = first_s;
    star->ending = first;
    star->first = (uint8_t)sim_star_bit(first);
    while (first &= first - 1) /* hardly ever: several at the same time */
        if (star->flows[sim_star_bit(first)].order < star->flows[star->first].order)
            star->first = (uint8_t)sim_star_bit(first);
    return first_s;
}

#endif
