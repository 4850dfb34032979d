/* Shared by the files that call GLPK, all of which run in the child process of milp_solve.c. */
#ifndef SPILLWAY_PLANNER_SOLVE_MILP_MILP_GLPK_H
#define SPILLWAY_PLANNER_SOLVE_MILP_MILP_GLPK_H

#include <glpk.h>

#include "planner/solve/milp/milp_model.h"

/* Sends data to the parent. Ends the process when the parent no longer reads. */
void milp_glpk_send(int pipe, const void *data, size_t length);

/* Returns GLPK's name for such bounds. */
int milp_glpk_bounds(double low, double high);

/* A program whose listed columns are 0 or 1; `options` has the request (planner/solve/milp/milp.h). */
struct milp_glpk_listing {
    glp_prob *lp;
    const struct milp_options *options;
    int pipe;       /* for the settings */
    double until_s; /* on the clock of base/process/clock.h */
    uint64_t nodes; /* out */
};

/* Lists settings. Returns MILP_INFEASIBLE when all were reported, MILP_STOPPED when there may be others. */
enum milp_status milp_glpk_list(struct milp_glpk_listing *listing);

#endif
