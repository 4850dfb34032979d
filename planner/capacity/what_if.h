/*
 * The fastest way of training a job on a machine. Every way of planner/capacity/what_if_ways.h has a lower bound before
 * it is planned (planner/capacity/what_if_floor.h). Ways are planned in the order of bounds and timed by the caller's
 * clock (the planner does not include the simulator), until no other could be faster.
 *
 * A way over several devices that does not fit with all activations kept is tried with fewer, which is never faster
 * where more fit.
 *
 *     jobs of up to 8 minibatches    are timed whole
 *     longer ones                    as in planner/saturn/saturn_times.h, from plans of 2 and of 4 minibatches; or the
 *                                    lower bound, where that is larger
 */
#ifndef SPILLWAY_PLANNER_CAPACITY_WHAT_IF_H
#define SPILLWAY_PLANNER_CAPACITY_WHAT_IF_H

#include "planner/capacity/what_if_ways.h"
#include "planner/saturn/saturn_times.h"

enum { WHAT_IF_REASON_BYTES = 200 };

struct what_if_try {
    struct what_if_way way; /* as tried last */
    bool fits;              /* the way has a plan, and was timed */
    bool slower;            /* no plan: the way cannot be the fastest, whether it fits or not */
    double run_s;           /* seconds of the whole job when it fits; a lower bound when it is slower */
    char reason[WHAT_IF_REASON_BYTES]; /* the reason, for a way that is neither */
};

/* Open structure; zeroed it is empty. */
struct what_if {
    struct what_if_try *tries; /* (count) in the order of the ways */
    uint32_t count;
    uint32_t best;             /* the first of equal ones; `count` when no way fits */
};

/*
 * Machine and job are not changed. `all`: also times ways that cannot be the fastest. Release *out, also after an
 * error. Errors: of the clock, and of planner_plan() unless they only mean that a way does not fit; it is no error when
 * none fits.
 */
MUST_CHECK enum status what_if_search(const struct hardware *hardware, const struct job *job,
                                      const struct saturn_clock *clock, bool all, struct what_if *out,
                                      struct error *err);
void what_if_release(struct what_if *what_if);

/* Computes the seconds of the whole job by one way. */
MUST_CHECK enum status what_if_time(const struct hardware *hardware, const struct job *job,
                                    const struct what_if_way *way, const struct saturn_clock *clock, double *run_s,
                                    struct error *err);

/* Computes the seconds of a long run's further minibatches by one way, whatever the job's number of minibatches, and of
 * its beginning and end. */
MUST_CHECK enum status what_if_minibatch(const struct hardware *hardware, const struct job *job,
                                         const struct what_if_way *way, const struct saturn_clock *clock,
                                         double *begin_s, double *minibatch_s, struct error *err);

/* Makes the plan of a way, with `minibatches` minibatches; borrows from machine and job. Release it, also after an
 * error. */
MUST_CHECK enum status what_if_plan(const struct hardware *hardware, const struct job *job,
                                    const struct what_if_way *way, uint64_t minibatches, struct plan *out,
                                    struct error *err);

#endif
