/*
 * A solver on orders of tasks with streams (stream_program.h): on all tasks where they are few, else on windows of the
 * order, each in turn while all others keep their places (fix-and-optimize), until a whole round has improved nothing.
 *
 * Every program asks only for makespans below the known one. A solution is dispatched again, and kept if it is better.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_EXACT_STREAM_SOLVE_H
#define SPILLWAY_PLANNER_SOLVE_EXACT_STREAM_SOLVE_H

#include "planner/solve/bounds/instance_bound.h"
#include "planner/solve/instance/timetable.h"

/* Defaults: most tasks of one program for all; tasks of a window. */
enum { STREAM_SOLVE_WHOLE = 16, STREAM_SOLVE_WINDOW = 7 };

struct stream_solve_options {
    const char *solver;     /* planner/solve/milp/milp.h */
    double until_s;         /* on clock_s(); HUGE_VAL: none */
    uint32_t windows;       /* most windows */
    uint64_t nodes_max;     /* of each program (GLPK); 0: no limit */
    void (*on_progress)(void *context); /* called before each program; may be NULL */
    void *context;
};

struct stream_solve_result {
    bool whole;         /* one program of all tasks */
    bool proven;        /* the solver reports that no better order exists */
    int64_t bound;      /* the solver's lower bound on the makespan; 0: none */
    uint32_t programs, improved;
    bool cut_short;     /* the time was up */
    uint64_t nodes;
    double seconds;
};

/*
 * Improves steps[] (in->task_count), whose makespan is *value. `bound`: a makespan at which it stops. Errors:
 * STATUS_LIMIT for instances that no program takes; of milp_solve(). steps[] and *value are valid after every error.
 */
MUST_CHECK enum status stream_solve(const struct instance *in, int64_t bound,
                                    const struct stream_solve_options *options, struct dispatch_step *steps,
                                    int64_t *value, struct stream_solve_result *result, struct error *err);

#endif
