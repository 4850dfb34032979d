/*
 * Properties of every simulation of every plan, checked with only the plan's walk, models/cost/cost.h and the spans:
 *
 *   order     an operation starts after the operations that it waits for have ended; the operations of a collective
 *             start together
 *   bounds    the makespan is at least the longest chain of operations, the work of every stream, and the traffic of
 *             every link direction
 *   memory    overlapping ranges of a device are not in use at the same time and end within its memory; the trace's
 *             peak is a possible one
 *   numbers   renumbered devices and jobs take the same time
 *
 * For plans in which no two flows ever meet: a faster link never makes the end later. (If flows meet this is no
 * theorem: an operation that ends earlier on one link may make later flows meet others on the next.)
 */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_PLAN_JUDGE_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_PLAN_JUDGE_H

#include "planner/plan.h"
#include "traces/trace.h"

enum { JUDGE_OPS_MAX = 1 << 14, JUDGE_WAITS_MAX = 1 << 17, JUDGE_DIRECTIONS_MAX = 128 };

struct judge_op {
    double alone_s;  /* its time without concurrent operations */
    double ready_s;  /* earliest end of all operations that it waits for */
    uint32_t stream;
    uint32_t first_wait, wait_count;
    uint32_t join_at;   /* for an operation of a collective, its number; else 0 */
    uint32_t first_use; /* in lifetime_of */
};

/* The life of a buffer, from ACQUIRE to the last use. */
struct judge_lifetime {
    uint64_t first, end; /* range of the device's memory */
    uint64_t bytes;      /* of the buffer */
    uint32_t place, buffer;
    uint32_t acquired_by;
    double from_s, to_s;
};

struct plan_judge {
    const struct plan *plan;
    struct judge_op ops[JUDGE_OPS_MAX];
    uint32_t op_count;
    uint32_t waits[JUDGE_WAITS_MAX];
    uint32_t wait_count;
    struct judge_lifetime lifetimes[JUDGE_OPS_MAX];
    uint32_t lifetime_count;
    uint32_t lifetime_of[JUDGE_WAITS_MAX]; /* by use; 0: none */
    uint32_t use_count;
    double chain_s, stream_s, direction_s; /* bounds */
    bool alone; /* no two flows can meet, and no operation slows another */
};

/* Walks the plan. Fails the test if it exceeds the limits. `judge` is large: make it static. */
void plan_judge_read(struct plan_judge *judge, const struct plan *plan);

/* Return the first fault of a simulation, or NULL. */
const char *plan_judge_spans(struct plan_judge *judge, const struct trace *trace);
const char *plan_judge_bounds(const struct plan_judge *judge, double makespan_s);

/* Renumbers devices and jobs in place, by a key. */
void plan_judge_renumber(struct plan *plan, uint64_t key);

#endif
