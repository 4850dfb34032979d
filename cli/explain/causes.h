/*
 * Why a run was not as it was predicted, by cause.
 *
 * The measured run is turned into the predicted one step by step: gaps go, then the operations of one cause after
 * another take what was predicted. What each step takes off the makespan is that cause's part; the parts add up to
 * the difference, and one is below 0 where things were faster than predicted. A step's part depends on what is
 * left when it comes; the order is that of enum explain_cause.
 */
#ifndef SPILLWAY_EXPLAIN_CAUSES_H
#define SPILLWAY_EXPLAIN_CAUSES_H

#include "cli/explain/explain_schedule.h"

enum explain_cause {
    EXPLAIN_GAPS,                /* between operations: the executor's own time */
    EXPLAIN_COMPUTE_BESIDE_COPY, /* computations, half of their time or more beside copies of their device */
    EXPLAIN_COMPUTE_ALONE,       /* other computations on devices */
    EXPLAIN_COPY_SMALL,          /* copies of which latency is half or more */
    EXPLAIN_COPY_SHARED,         /* others, half of their time or more beside copies that share a link with them */
    EXPLAIN_COPY_BESIDE_COMPUTE, /* others, half of their time or more beside computations of their device */
    EXPLAIN_COPY_ALONE,          /* what is left of copies between host and devices */
    EXPLAIN_COPY_PEERS,          /* between devices */
    EXPLAIN_CPU,                 /* on the host's processor: optimizers, embeddings */
    EXPLAIN_STORAGE_COPY,
    EXPLAIN_FILES,               /* jobs from files to host memory and back */
    EXPLAIN_COLLECTIVE,
    EXPLAIN_BATCH,               /* input */
    EXPLAIN_CAUSE_COUNT
};
extern const char *const explain_cause_names[EXPLAIN_CAUSE_COUNT];
extern const char *const explain_cause_remedies[EXPLAIN_CAUSE_COUNT]; /* what to change where it was slower */

struct explain_cause_part {
    double seconds;                  /* of the makespans' difference */
    double predicted_s, measured_s;  /* of all its operations; of gaps: measured alone */
    uint64_t operations;
    uint64_t bytes;                  /* of copies */
};

struct explain_causes {
    double predicted_s, measured_s;  /* makespans */
    struct explain_cause_part parts[EXPLAIN_CAUSE_COUNT];
    double rest_s;                   /* of the difference: operations that began before they could, by the trace's clocks */
};

/* Both traces are of `plan`, complete and with spans. Errors: STATUS_BAD_INPUT where one is not; STATUS_NO_MEMORY. */
MUST_CHECK enum status explain_causes_find(const struct plan *plan, const struct trace *predicted, const struct trace *measured,
                                           struct explain_causes *out, struct error *err);

#endif
