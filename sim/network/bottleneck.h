/*
 * A few flows that meet in one link direction: their rates in closed form, and the remaining volume of each.
 *
 *     class a  ==trunk 12==+
 *     class b  ==trunk 12==+-- link direction 20   one level decides: every flow has this rate, or its limit
 *     class c  --cap 3-----+                       if that is less
 *
 * A trunk is a link direction that only one class uses: each of its n flows gets at most 1/n of it. The limit of a flow
 * is the lesser of this part and its cap. Machines whose devices meet at one switch or host bridge consist of
 * bottlenecks. The level is the bandwidth of the link direction minus the rates of flows below the level, divided by
 * the number of other flows. The iteration starts at bandwidth / flows, and the level rises until no further flow is
 * below.
 *
 * All flows of a bottleneck are consecutive, in at most 64 places, with a bit for each active one. At an event all of
 * them advance by the volume served since the last event; rates and the first end take one pass each. With the three or
 * four active flows of a group of devices this costs a tenth of the general solver (share.h). Unpredictable choices,
 * such as the first flow to end, are made without branches: half of these would be mispredicted.
 *
 * Tried and rejected: padding flows to multiples of 2 or 4 so that loop exits predict well. Most of the time one or two
 * flows are active, and computing the idle ones took longer.
 *
 * The functions are inline because most events do nothing else to flows; flow.c calls them.
 */
#ifndef SPILLWAY_SIM_NETWORK_BOTTLENECK_H
#define SPILLWAY_SIM_NETWORK_BOTTLENECK_H

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/network/path_classes.h"

enum { SIM_BOTTLENECK_FLOWS_MAX = 64 };

struct sim_bottleneck_flow {
    double left;      /* bytes, at the bottleneck's read_s */
    double rate;      /* bytes/s; 0: it began after read_s */
    double full;      /* 1: this rate fills its own link directions or the trunk; else 0 */
    double limit;     /* bytes/s: maximum next to its class's other flows */
    double full_rate; /* from this rate on, its own link directions or the trunk are full; infinite for all but one of a
                       * class's flows, so that the trunk counts once */
    double full_s;    /* seconds in which they were full */
    uint64_t order;   /* decides between flows that end at the same time */
    uint32_t flow;    /* private to flow.c, like `path` */
    uint32_t path;
};
static_assert(sizeof(struct sim_bottleneck_flow) == 64, "a place is a cache line");

/* A class of the bottleneck. */
struct sim_bottleneck_arm {
    double cap, trunk;  /* bytes/s; trunk: infinite if there is none */
    uint64_t places;    /* bits */
};

struct sim_bottleneck {
    double bytes_per_s;
    double read_s;      /* time to which flows are advanced */
    double full_s;      /* seconds in which the link direction was full */
    uint64_t active;    /* bits: places with an active flow */
    struct sim_bottleneck_flow *flows; /* by place */
    double first_s;     /* the next end, and the places that end then ... */
    uint64_t ending;
    uint8_t first;      /* ... of which this one is handled first */
    bool full;
    bool touched;       /* private to flow.c */
};
static_assert(sizeof(struct sim_bottleneck) == 64, "a bottleneck is a cache line");

static inline uint32_t sim_bottleneck_bit(uint64_t places)
{
    return (uint32_t)__builtin_ctzll(places);
}

/* Updates the limits after a change of the arm's number of flows. */
static inline void sim_bottleneck_limit(struct sim_bottleneck *bottleneck, const struct sim_bottleneck_arm *arm)
{
    uint64_t places = bottleneck->active & arm->places;
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
        struct sim_bottleneck_flow *flow = &bottleneck->flows[sim_bottleneck_bit(left)];
        flow->limit = limit;
        flow->full_rate = full_rate;
        if (arm->trunk < INFINITY) full_rate = INFINITY;
    }
}

static inline void sim_bottleneck_begin(struct sim_bottleneck *bottleneck, const struct sim_bottleneck_arm *arm,
                                        uint32_t place, double volume, uint64_t order)
{
    struct sim_bottleneck_flow *flow = &bottleneck->flows[place];
    assert(!(bottleneck->active >> place & 1));
    bottleneck->active |= UINT64_C(1) << place;
    flow->left = volume;
    flow->order = order;
    flow->rate = flow->full = 0;
    sim_bottleneck_limit(bottleneck, arm);
}

/* Ends and returns the first flow; sim_bottleneck_limit() must follow. */
static inline const struct sim_bottleneck_flow *sim_bottleneck_end(struct sim_bottleneck *bottleneck, double now_s)
{
    uint32_t place = bottleneck->first;
    struct sim_bottleneck_flow *flow = &bottleneck->flows[place];
    assert(bottleneck->active >> place & 1);
    flow->full_s += (now_s - bottleneck->read_s) * flow->full;
    bottleneck->active &= ~(UINT64_C(1) << place);
    bottleneck->ending &= bottleneck->active;
    return flow;
}

/* Returns the level when the demand exceeds the bandwidth. */
static inline double sim_bottleneck_level(const struct sim_bottleneck *bottleneck, uint32_t count, double least)
{
    double level = bottleneck->bytes_per_s / count;
    if (!(least < level)) return level;
    for (uint32_t below = 0;;) {
        double taken = 0;
        uint32_t staying = 0;
        for (uint64_t left = bottleneck->active; left; left &= left - 1) {
            double limit = bottleneck->flows[sim_bottleneck_bit(left)].limit;
            bool stays = limit < level;
            taken += stays ? limit : 0;
            staying += stays;
        }
        if (staying == below) return level;
        if (staying == count) return INFINITY; /* by rounding: the demand is the bandwidth */
        below = staying;
        double next = (bottleneck->bytes_per_s - taken) / (count - staying);
        if (next > level) level = next;
    }
}

/* Advances the clock of a bottleneck without flows. */
static inline void sim_bottleneck_rest(struct sim_bottleneck *bottleneck, double now_s)
{
    bottleneck->full_s += bottleneck->full * (now_s - bottleneck->read_s);
    bottleneck->full = false;
    bottleneck->read_s = now_s;
}

/* Advances all flows to now_s, rates them and finds the first to end, bottleneck->first, by (time, order). A flow must
 * be active. Returns the time. */
static inline double sim_bottleneck_settle(struct sim_bottleneck *bottleneck, double now_s)
{
    double demand = 0, least = INFINITY, level = INFINITY, elapsed_s = now_s - bottleneck->read_s;
    uint32_t count = 0;
    assert(elapsed_s >= 0);
    bottleneck->read_s = now_s;
    for (uint64_t left = bottleneck->active; left; left &= left - 1, count++) {
        struct sim_bottleneck_flow *flow = &bottleneck->flows[sim_bottleneck_bit(left)];
        flow->left -= flow->rate * elapsed_s;
        flow->full_s += flow->full * elapsed_s;
        demand += flow->limit;
        least = flow->limit < least ? flow->limit : least;
    }
    /* rounding leaves flows that end now a remainder, which would end all but the first a last bit later */
    if (__builtin_expect((bottleneck->ending != 0) & (now_s >= bottleneck->first_s), 0))
        for (uint64_t left = bottleneck->ending; left; left &= left - 1)
            bottleneck->flows[sim_bottleneck_bit(left)].left = 0;
    bottleneck->full_s += bottleneck->full * elapsed_s;
    bottleneck->full = demand >= bottleneck->bytes_per_s * SIM_FULL;
    if (demand > bottleneck->bytes_per_s) level = sim_bottleneck_level(bottleneck, count, least);
    double first_s = INFINITY, ends_s[SIM_BOTTLENECK_FLOWS_MAX];
    for (uint64_t left = bottleneck->active; left; left &= left - 1) {
        uint32_t place = sim_bottleneck_bit(left);
        struct sim_bottleneck_flow *flow = &bottleneck->flows[place];
        double volume = flow->left > 0 ? flow->left : 0;
        flow->rate = flow->limit < level ? flow->limit : level;
        flow->full = flow->rate >= flow->full_rate;
        ends_s[place] = now_s + volume / flow->rate;
        first_s = ends_s[place] < first_s ? ends_s[place] : first_s;
    }
    uint64_t first = 0;
    for (uint64_t left = bottleneck->active; left; left &= left - 1)
        first |= (uint64_t)(ends_s[sim_bottleneck_bit(left)] <= first_s) << sim_bottleneck_bit(left);
    bottleneck->first_s = first_s;
    bottleneck->ending = first;
    bottleneck->first = (uint8_t)sim_bottleneck_bit(first);
    while (first &= first - 1) /* hardly ever: several at the same time */
        if (bottleneck->flows[sim_bottleneck_bit(first)].order < bottleneck->flows[bottleneck->first].order)
            bottleneck->first = (uint8_t)sim_bottleneck_bit(first);
    return first_s;
}

#endif
