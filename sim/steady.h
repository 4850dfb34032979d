/*
 * Skips repetitions that provably go as earlier ones.
 *
 * A plan stores ten thousand steps as one and a count (planner/plan.h, segments). Every few repetitions of a long
 * segment, the simulator inspects its whole state: waiting operations, running ones with start, remaining volume and
 * rate, and pending events. When it equals, to the last bit and relative to the current time, the state some
 * repetitions earlier, all later ones go the same way. Time, sums and the position then advance by a multiple of the
 * difference, up to the last repetition but one.
 *
 * Times counted from the start of a run are rounded differently as they grow, and would hardly ever be equal to the
 * last bit. So at each inspection the origin of time moves to the current time. This changes the last bits of results,
 * but equally with and without skipping. With and without skipping,
 *   - the makespan, jobs' starts and ends, counts, bytes and peaks are equal to the last bit (the origins are added
 *     with twice the digits, so that the order of addition has no effect),
 *   - seconds in which streams and links are busy, or full, are equal up to rounding: 1e-12 of the makespan.
 */
#ifndef SPILLWAY_SIM_STEADY_H
#define SPILLWAY_SIM_STEADY_H

#include "sim/network/flow.h"

struct sim;

/* Seconds: a number and its rounding error, added up. */
struct sim_instant {
    double high, low;
};

static inline double sim_instant_s(struct sim_instant zero, double since_s)
{
    double sum = zero.high + since_s, part = sum - zero.high;
    double lost = (zero.high - (sum - part)) + (since_s - part);
    return sum + (lost + zero.low);
}

enum { SIM_STEADY_COUNTERS = SIM_FLOWS_COUNTERS + 4 };

struct sim_steady {
    bool watching;         /* some segment of the plan has enough repetitions */
    uint32_t segment;      /* segment of the walk ... */
    uint64_t issued;       /* ... when it was inspected */
    uint32_t stride;       /* repetitions between inspections; 0: none in this segment */
    uint32_t next_repeat;  /* the next inspection */
    uint64_t settled;      /* operations below this are of the segment's first two repetitions, or earlier */
    uint32_t looks;        /* inspections since then */
    bool skipped;          /* repetitions were skipped; at most once per segment */
    struct sim_snapshot state, reference; /* at present, and at an earlier inspection: */
    uint32_t reference_repeat, reference_look;
    struct sim_instant reference_zero;
    uint64_t *reference_counters;
    struct sim_counter counters[SIM_STEADY_COUNTERS];
    size_t counter_count;
};

/* Is created before the first event, after the rest of the simulation. */
MUST_CHECK enum status sim_steady_create(struct sim *sim, struct error *err);
void sim_steady_release(struct sim_steady *steady); /* a zeroed one is fine */

/* Inspects the state; called between events, after settling. */
void sim_steady_look(struct sim *sim);

#endif
