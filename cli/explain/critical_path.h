/*
 * The critical path: the operation that ends last, the one whose end it waited for, and so on. It has only operations
 * and gaps, so their seconds add up to the makespan. Other operations may be slower, up to a point.
 */
#ifndef SPILLWAY_CLI_EXPLAIN_CRITICAL_PATH_H
#define SPILLWAY_CLI_EXPLAIN_CRITICAL_PATH_H

#include "cli/explain/explain_schedule.h"

/* One stream's (or job's) operations on the path. */
struct explain_share {
    double seconds;
    double alone_s;      /* without contention */
    uint64_t operations;
};

/* An operation of `waiter` began when one of `awaited` ended. */
struct explain_handover {
    uint32_t waiter, awaited; /* streams */
    uint64_t count;
    double awaited_s;         /* of the awaited operations */
};

struct explain_path {
    double makespan_s;
    double gap_s;
    struct explain_share *streams; /* by stream of the plan */
    struct explain_share *jobs;
    struct explain_handover *handovers; /* the longest awaited first */
    uint32_t stream_count, job_count;
    size_t handover_count, handover_capacity;
    uint64_t operations;
    struct arena *arena; /* of the arrays */
};

/* An operation of the path. */
struct explain_step {
    uint32_t stream, job;
    double seconds, alone_s, gap_s;
    bool waited;             /* for an operation; false: for the start of the run */
    uint32_t awaited_stream; /* of that operation */
    double awaited_s;
};

/* Begins an empty path of operations of `trace`. Arrays live as long as `arena`, and grow in it. */
MUST_CHECK enum status explain_path_begin(const struct trace *trace, double makespan_s, struct arena *arena,
                                          struct explain_path *out, struct error *err);
/* Adds the operation before the last one that was added, the last operation of the run first. */
MUST_CHECK enum status explain_path_step(struct explain_path *path, const struct explain_step *step, struct error *err);
/* Sorts the handovers. */
void explain_path_end(struct explain_path *path);

/* Finds the path. `trace` gives stream and job of operations. Arrays live as long as `arena`. */
MUST_CHECK enum status explain_path_find(const struct trace *trace, const struct explain_times *times,
                                         const struct explain_schedule *schedule, struct arena *arena,
                                         struct explain_path *out, struct error *err);

#endif
