/*
 * Run times of jobs in the configurations that they could have, where each fits: a plan of some minibatches on the
 * first devices of a node of the class, timed by whoever asks (the simulator is not the planner's to know).
 *
 *     run of n minibatches = t(second) + (n - second) (t(second) - t(first)) / (second - first)
 *
 * first and second are 2 and 4 minibatches, or times the interval of evaluations; a job of no more than `second` is
 * timed whole. Jobs that differ in names, seeds, data and learning rates alone are timed once.
 */
#ifndef SPILLWAY_PLANNER_SATURN_TIMES_H
#define SPILLWAY_PLANNER_SATURN_TIMES_H

#include "planner/saturn/saturn_configs.h"
#include "planner/saturn/saturn_machine.h"
#include "planner/strategy/planner.h"

/* How long a plan takes. */
struct saturn_clock {
    enum status (*time)(void *context, const struct plan *plan, double *seconds, struct error *err);
    void *context;
};

/* A configuration of a job on a class of nodes. */
struct saturn_time {
    struct saturn_config config; /* as it fits: perhaps with less kept than first offered */
    uint32_t job, class;
    uint64_t first, second;      /* minibatches ... */
    double first_s, second_s;    /* ... and how long they take */
    double run_s;                /* of the whole job */
};

/* Open; zeroed it is empty. */
struct saturn_times {
    struct saturn_time *times; /* job by job, configuration by configuration, class by class */
    size_t count, capacity;
    uint32_t tried, timed;     /* configurations that were looked at; that plans were made for */
};

/* Of all jobs; `single`: on one device each. Release it, also after an error. Errors: STATUS_INFEASIBLE for a job that fits nowhere, with the
 * reason; those of the clock and of planner_plan(). */
MUST_CHECK enum status saturn_times_find(const struct saturn_machine *machine, const struct job_set *jobs,
                                         const struct planner_options *options, bool single,
                                         const struct saturn_clock *clock,
                                         struct saturn_times *out, struct error *err);
/* A copy, in which spilled runs take `slowed` times as long. `out`: zeroed; release it, also after an error. Errors:
 * STATUS_NO_MEMORY. */
MUST_CHECK enum status saturn_times_slowed(const struct saturn_times *times, double slowed, struct saturn_times *out,
                                           struct error *err);
void saturn_times_release(struct saturn_times *times);

/* Does a minibatch of both cost the same in any configuration? Bytes that differ by chance, where a struct has
 * gaps, only mean that the answer is no. */
bool saturn_costs_the_same(const struct job *a, const struct job *b);

#endif
