/*
 * Tasks and columns; formulation.h says which kind has which.
 *
 * Task k starts in the window [head_k, limit - tail_k]: head_k is the time of its chain's earlier tasks, tail_k the
 * least time from its start to the makespan. Any M is the difference of two windows' ends.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_EXACT_FORMULATION_STATE_H
#define SPILLWAY_PLANNER_SOLVE_EXACT_FORMULATION_STATE_H

#include "planner/solve/exact/formulation.h"

enum { FORMULATION_NO_COLUMN = UINT32_MAX };

struct formulation_task {
    uint32_t job, position, unit;
    int64_t compute, in, out;
    int64_t head, tail, first, last; /* first: start as the first task of a device; last: E of a last task */
    uint32_t start;                  /* column of s_k */
};

struct formulation {
    const struct instance *in;
    const struct instance_bounds *bounds;
    enum formulation_kind kind;
    int64_t limit;
    struct milp *milp;
    struct formulation_task *tasks; /* (n), job by job */
    uint32_t n;
    uint32_t makespan;  /* column */
    uint32_t *pairs;    /* (n, n): columns of z or y; FORMULATION_NO_COLUMN */
    uint32_t *begins, *ends;  /* adjacency: (n) */
    uint32_t *devices;  /* disjunctive: (n, device_count) */
    uint32_t *steps;    /* time-indexed: (n), column of the first tick of the window */
};

/* Adds all columns and rows of the formulation's kind to `milp`. The tasks must exist. */
void formulation_write_rows(struct formulation *formulation);

#endif
