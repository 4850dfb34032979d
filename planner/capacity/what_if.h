/*
 * The fastest way of training a job on a machine: of every way of planner/capacity/what_if_ways.h what it takes at the least is
 * known before there is a plan (planner/capacity/what_if_floor.h). In that order ways are planned, and what fits is timed by
 * whoever asks (the simulator is not the planner's to know), until nothing is left that could be faster than the best
 * of those. The answer is the one that timing all of them gives.
 *
 * A way over several devices that does not fit with all activations kept is tried with less kept, which is never faster
 * where more fits.
 *
 *     jobs of up to 8 minibatches    are timed whole
 *     longer ones                    as in planner/saturn/saturn_times.h, from plans of 2 and of 4 minibatches; where that says
 *                                    less than the least, the least
 */
#ifndef SPILLWAY_PLANNER_WHAT_IF_H
#define SPILLWAY_PLANNER_WHAT_IF_H

#include "planner/capacity/what_if_ways.h"
#include "planner/saturn/saturn_times.h"

enum { WHAT_IF_REASON_BYTES = 200 };

struct what_if_try {
    struct what_if_way way; /* as it was tried last */
    bool fits;              /* there is a plan, and it was timed */
    bool slower;            /* there is none: it could not be the fastest, whether it fits or not */
    double run_s;           /* of the whole job: where it fits; where it is slower, at the least */
    char reason[WHAT_IF_REASON_BYTES]; /* of one that is neither: why not */
};

/* Open; zeroed it is empty. */
struct what_if {
    struct what_if_try *tries; /* (count) in the order of the ways */
    uint32_t count;
    uint32_t best;             /* of equal ones the first; `count` where none fits */
};

/*
 * All ways of a job on a machine, neither of which is changed; with `all` those that cannot be the fastest are timed,
 * too. Release *out, also after an error.
 * Errors: those of the clock and of planner_plan() but for what only means that a way does not fit. That none does
 * is no error.
 */
MUST_CHECK enum status what_if_search(const struct hardware *hardware, const struct job *job,
                                      const struct saturn_clock *clock, bool all, struct what_if *out,
                                      struct error *err);
void what_if_release(struct what_if *what_if);

/* Seconds of the whole job by one way. */
MUST_CHECK enum status what_if_time(const struct hardware *hardware, const struct job *job,
                                    const struct what_if_way *way, const struct saturn_clock *clock, double *run_s,
                                    struct error *err);

/* Seconds of each further minibatch of a long run by one way, however many the job has, and of its beginning and end. */
MUST_CHECK enum status what_if_minibatch(const struct hardware *hardware, const struct job *job,
                                         const struct what_if_way *way, const struct saturn_clock *clock,
                                         double *begin_s, double *minibatch_s, struct error *err);

/* Its plan, of so many minibatches; borrows from machine and job. Release it, also after an error. */
MUST_CHECK enum status what_if_plan(const struct hardware *hardware, const struct job *job,
                                    const struct what_if_way *way, uint64_t minibatches, struct plan *out,
                                    struct error *err);

#endif
