/*
 * The fastest way of training a job on a machine: every way of planner/what_if_ways.h is planned, and what fits is timed
 * by whoever asks (the simulator is not the planner's to know).
 *
 * Memory prunes first: plans that do not fit are refused by the planner's closed forms before there is a plan. A way over
 * several devices that does not fit with all activations kept is tried with less kept, which is never faster where
 * more fits. Nothing else is pruned: what is said to be the best was compared with all others by the same clock.
 *
 *     jobs of up to 8 minibatches    are timed whole
 *     longer ones                    as in planner/saturn_times.h, from plans of 2 and of 4 minibatches
 */
#ifndef SPILLWAY_PLANNER_WHAT_IF_H
#define SPILLWAY_PLANNER_WHAT_IF_H

#include "planner/saturn_times.h"
#include "planner/what_if_ways.h"

enum { WHAT_IF_REASON_BYTES = 200 };

struct what_if_try {
    struct what_if_way way; /* as it was tried last */
    bool fits;
    double run_s;           /* of the whole job, where it fits */
    char reason[WHAT_IF_REASON_BYTES]; /* why not, else */
};

/* Open; zeroed it is empty. */
struct what_if {
    struct what_if_try *tries; /* (count) in the order of the ways */
    uint32_t count;
    uint32_t best;             /* of equal ones the first; `count` where none fits */
};

/*
 * All ways of a job on a machine, none of which are changed. Release *out, also after an error.
 * Errors: those of the clock and of planner_plan() but for what only means that a way does not fit. That none does
 * is no error.
 */
MUST_CHECK enum status what_if_search(const struct hardware *hardware, const struct job *job,
                                      const struct saturn_clock *clock, struct what_if *out, struct error *err);
void what_if_release(struct what_if *what_if);

/* Seconds of the whole job by one way. */
MUST_CHECK enum status what_if_time(const struct hardware *hardware, const struct job *job,
                                    const struct what_if_way *way, const struct saturn_clock *clock, double *run_s,
                                    struct error *err);

/* Its plan, of so many minibatches; borrows from machine and job. Release it, also after an error. */
MUST_CHECK enum status what_if_plan(const struct hardware *hardware, const struct job *job,
                                    const struct what_if_way *way, uint64_t minibatches, struct plan *out,
                                    struct error *err);

#endif
