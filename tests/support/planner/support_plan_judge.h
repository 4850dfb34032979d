/*
 * What must hold of any simulation of any plan, by the plan's walk, models/cost/cost.h and the spans alone:
 *
 *   order     an operation starts when those that it waits for have ended; those of a collective together
 *   bounds    the makespan is no less than the longest chain of operations, the work of any stream, or what must
 *             cross any lane of a link
 *   memory    ranges of a device that overlap are not lived in at the same time and end within its memory; what
 *             the trace calls the peak is one
 *   numbers   devices and jobs that are numbered otherwise take as long
 *
 * and of plans in which no two flows ever meet: a faster link is never a later end. (Where they meet that
 * is no theorem: what ends earlier on one link may have what follows it meet others on the next.)
 */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_PLAN_JUDGE_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_PLAN_JUDGE_H

#include "planner/plan.h"
#include "traces/trace.h"

enum { JUDGE_OPS_MAX = 1 << 14, JUDGE_WAITS_MAX = 1 << 17, JUDGE_LANES_MAX = 128 };

struct judge_op {
    double alone_s;  /* as long as it takes with nothing beside it */
    double ready_s;  /* no operation that it waits for can have ended before */
    uint32_t stream;
    uint32_t first_wait, wait_count;
    uint32_t join_at;   /* of a collective's operations the how manieth; else 0 */
    uint32_t first_use; /* in lifetime_of */
};

/* From ACQUIRE to the last use. */
struct judge_lifetime {
    uint64_t first, end; /* of the device's memory */
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
    double chain_s, stream_s, lane_s; /* bounds */
    bool alone; /* no two flows can meet and nothing slows anything down */
};

/* Walk the plan, which fits in the limits; else the test fails. `judge` is large: make it static. */
void plan_judge_read(struct plan_judge *judge, const struct plan *plan);

/* What is wrong with a simulation of it, or NULL. */
const char *plan_judge_spans(struct plan_judge *judge, const struct trace *trace);
const char *plan_judge_bounds(const struct plan_judge *judge, double makespan_s);

/* Other numbers for devices and jobs, by a key, in place. */
void plan_judge_renumber(struct plan *plan, uint64_t key);

#endif
