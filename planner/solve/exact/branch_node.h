/* A partial schedule in branch and bound: for the files that implement planner/solve/exact/branch_bound.h. */
#ifndef SPILLWAY_PLANNER_SOLVE_EXACT_BRANCH_NODE_H
#define SPILLWAY_PLANNER_SOLVE_EXACT_BRANCH_NODE_H

#include "planner/solve/exact/branch_bound.h"

enum { BRANCH_NO_JOB = 255 };

struct branch_place { /* a device */
    int32_t start;
    uint16_t unit;
    uint16_t task;     /* its number: job by job, in the order of chains */
    uint8_t job;       /* BRANCH_NO_JOB: no task has run */
};

struct branch_node {
    int64_t slack, cost; /* cost: of ended jobs, for sums of ends */
    uint64_t bytes; /* least bytes over the bridge of any schedule that continues this one (bridge_bytes.h) */
    int32_t now;
    int32_t ready[BRANCH_BOUND_JOBS_MAX], ended[BRANCH_BOUND_JOBS_MAX], end[BRANCH_BOUND_JOBS_MAX];
    uint16_t next[BRANCH_BOUND_JOBS_MAX];
    uint8_t device[BRANCH_BOUND_JOBS_MAX];
    struct branch_place places[BRANCH_BOUND_DEVICES_MAX];
};

#endif
