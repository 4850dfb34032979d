/*
 * Repetitions of a plan that are proven to go as the ones before, and left out.
 *
 * A plan stores ten thousand steps as one and a count (planner/plan.h, segments). Behind every few repetitions of a
 * segment that has many the simulator looks at its whole state: what waits, what runs and since when, what is left of
 * it at which rate, which events are to come. When that equals, to the last bit and relative to now, what it was a
 * number of repetitions before, all to come are as those were, and the time, what was added up and the place in the
 * plan go on by so many times the difference, up to the last repetition but one.
 *
 * Times would hardly ever be equal to the last bit if they counted from the beginning of a run, since they are rounded
 * differently as they grow. So at each look another zero is chosen, then. What is told differs in its last bits from
 * what it was if times counted from the beginning; but it is the same whether repetitions are left out or not:
 *   - the makespan, jobs' starts and ends, counts, bytes and peaks to the last bit (seconds of zeros are added with
 *     twice the digits, so that no order of adding shows),
 *   - seconds that streams and links are busy, or full, but for rounding: 1e-12 of the makespan.
 */
#ifndef SPILLWAY_SIM_STEADY_H
#define SPILLWAY_SIM_STEADY_H

#include "sim/network/flow.h"

struct sim;

/* Seconds, as a sum of two numbers of which the second is what the first is rounded by. */
struct sim_instant {
    double high, low;
};

static inline double sim_instant_s(struct sim_instant zero, double since_s)
{
    double sum = zero.high + since_s, part = sum - zero.high;
    double lost = (zero.high - (sum - part)) + (since_s - part);
    return sum + (lost + zero.low);
}

enum { SIM_STEADY_METERS = SIM_FLOWS_METERS + 4 };

struct sim_steady {
    bool watching;         /* some segment of the plan repeats often enough */
    uint32_t segment;      /* that the walk was in ... */
    uint64_t issued;       /* ... when it was looked at */
    uint32_t stride;       /* repetitions from look to look; 0: nothing to look for in this segment */
    uint32_t next_repeat;  /* the next look */
    uint64_t settled;      /* operations before are of the segment's first two repetitions, or before */
    uint32_t looks;        /* since that */
    bool skipped;          /* once in a segment */
    struct sim_words state, reference; /* now, and at a look before: */
    uint32_t reference_repeat, reference_look;
    struct sim_instant reference_zero;
    uint64_t *reference_meters;
    struct sim_meter meters[SIM_STEADY_METERS];
    size_t meter_count;
};

/* Before the first event, when all else of the simulation is made. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status sim_steady_create(struct sim *sim, struct error *err);
void sim_steady_release(struct sim_steady *steady); /* a zeroed one is fine */

/* Between events, when what they changed is settled. */
void sim_steady_look(struct sim *sim);

#endif
