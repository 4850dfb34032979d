/*
 * Orders of tasks with streams (planner/solve/instance/dispatch_streams.h) as a mixed-integer program: of all tasks, or
 * of a window of an order whose other tasks keep their places.
 *
 *     x_k_g    task k is on device g               y_j_k    j comes before k on a device
 *     keep_k   k's boundary stays on the device    u_a_b    the host's processor does work a before work b
 *     in_k, free_k, s_k, edge_k, host_k_*          times: copied in; the stream in is free; start; the boundary is out;
 *                                                  the host's works have ended
 *
 * No M is larger than the limit allows. Rows of loads make it tight: on each device, and for the host, all work after
 * what came before and before what follows. With more than two buffers a task waits only for those two places before
 * it, if any; and waiting for the start of another device's task is left out. So the optimum is a lower bound in either
 * case, and a solution is an order that has to be dispatched again. One class of devices.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_EXACT_STREAM_PROGRAM_H
#define SPILLWAY_PLANNER_SOLVE_EXACT_STREAM_PROGRAM_H

#include "planner/solve/exact/stream_tails.h"
#include "planner/solve/milp/milp.h"

enum { STREAM_PROGRAM_TASKS_MAX = 64 };

struct stream_program; /* opaque */

struct stream_program_request {
    const struct dispatch *before;     /* the state before the tasks; cleared: all tasks */
    const struct dispatch_step *steps; /* (count) the tasks in an order; the devices do not matter */
    uint32_t count;
    const struct stream_tails *after;  /* NULL: nothing follows */
    int64_t limit;                     /* only makespans up to this */
};

/* Borrows the request's parts. Errors: STATUS_LIMIT for more than STREAM_PROGRAM_TASKS_MAX tasks or classes of
 * devices; STATUS_INFEASIBLE if bounds of the tasks already exclude the limit. */
MUST_CHECK enum status stream_program_create(const struct stream_program_request *request, struct stream_program **out,
                                             struct error *err);
void stream_program_destroy(struct stream_program *program); /* NULL is fine */
const struct milp *stream_program_milp(const struct stream_program *program); /* borrowed */

/* Computes the order of a solution: steps (count). Errors: STATUS_CHECK when it is none. */
MUST_CHECK enum status stream_program_steps(const struct stream_program *program, const double *x,
                                            struct dispatch_step *steps, struct error *err);

#endif
