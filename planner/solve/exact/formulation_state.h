/*
 * The tasks of a formulation and the columns that stand for them; formulation.h says which kind has which.
 *
 * Task k can start in [head, tail window]: head_k is what stands in front of it in its chain, tail_k
 * what must still pass from its start to the makespan. With every schedule wanted by `limit`,
 * head_k <= s_k <= limit - tail_k, and any M is the difference of two ends of windows.
 */
#ifndef SPILLWAY_PLANNER_FORMULATION_STATE_H
#define SPILLWAY_PLANNER_FORMULATION_STATE_H

#include "planner/solve/exact/formulation.h"

enum { NO_COLUMN = UINT32_MAX };

struct formulation_task {
    uint32_t job, position, unit;
    int64_t compute, in, out;
    int64_t head, tail, first, last; /* first: start as the first of a device; last: E of a last one */
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
    uint32_t *pairs;    /* (n, n): columns of z or y; NO_COLUMN */
    uint32_t *begins, *ends;  /* adjacency: (n) */
    uint32_t *devices;  /* disjunctive: (n, device_count) */
    uint32_t *steps;    /* time-indexed: (n), column of the first tick of the window */
};

/* All columns and rows of the formulation's kind, into `milp`; tasks are made first. */
void formulation_write_rows(struct formulation *formulation);

#endif
