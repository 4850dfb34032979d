/*
 * Run times of jobs in configurations that fit: a plan of some minibatches on the first devices of a node of the class,
 * timed by the caller's clock (the planner does not include the simulator).
 *
 *     run of n minibatches = t(second) + (n - second) (t(second) - t(first)) / (second - first)
 *
 * first and second are 2 and 4 minibatches, or these times the interval of evaluations; a job of at most `second`
 * minibatches is timed whole. Jobs that differ only in names, seeds, data and learning rates are timed once.
 */
#ifndef SPILLWAY_PLANNER_SATURN_SATURN_TIMES_H
#define SPILLWAY_PLANNER_SATURN_SATURN_TIMES_H

#include "planner/saturn/saturn_configs.h"
#include "planner/saturn/saturn_machine.h"
#include "planner/strategy/planner.h"

/* A function that times a plan. */
struct saturn_clock {
    enum status (*time)(void *context, const struct plan *plan, double *seconds, struct error *err);
    void *context;
};

/* A configuration of a job on a class of nodes. */
struct saturn_time {
    struct saturn_config config; /* the configuration that fits, perhaps with less kept than at first */
    uint32_t job, class;
    uint64_t first, second;      /* numbers of minibatches ... */
    double first_s, second_s;    /* ... and their times */
    double run_s;                /* of the whole job */
};

/* Open structure; zeroed it is empty. */
struct saturn_times {
    struct saturn_time *times; /* job by job, configuration by configuration, class by class */
    size_t count, capacity;
    uint32_t tried, timed;     /* configurations examined; configurations with plans */
};

/* Times all jobs; `single`: on one device each. Release it, also after an error. Errors: STATUS_INFEASIBLE for a job
 * that fits nowhere, with the reason; errors of the clock and of planner_plan(). */
MUST_CHECK enum status saturn_times_find(const struct saturn_machine *machine, const struct job_set *jobs,
                                         const struct planner_options *options, bool single,
                                         const struct saturn_clock *clock,
                                         struct saturn_times *out, struct error *err);
/* Copies run times, with spilled runs `slowed` times as long. `out`: zeroed before; release it, also after an error. */
MUST_CHECK enum status saturn_times_slowed(const struct saturn_times *times, double slowed, struct saturn_times *out,
                                           struct error *err);
void saturn_times_release(struct saturn_times *times);

/* Returns true for a configuration on several devices that can be carried out. */
bool saturn_time_is_carried_out(const struct hardware *hardware, const struct job *job, const struct saturn_time *time);

/* Returns true when a minibatch of both jobs costs the same in any configuration. Different bytes in the padding of
 * structs only make the answer false. */
bool saturn_costs_the_same(const struct job *a, const struct job *b);

#endif
