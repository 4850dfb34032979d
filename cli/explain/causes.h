/*
 * The difference between a measured run and its prediction, by cause.
 *
 * The measured run is turned into the predicted one: first gaps are removed, then collectives no longer wait longer
 * from their first member to their last than predicted, then for one cause after another its operations get predicted
 * durations. A cause's part is the reduction of the makespan in its step; parts add up to the difference, and are below
 * 0 if operations were faster. They depend on the order of enum explain_cause.
 */
#ifndef SPILLWAY_CLI_EXPLAIN_CAUSES_H
#define SPILLWAY_CLI_EXPLAIN_CAUSES_H

#include "cli/explain/explain_schedule.h"

enum explain_cause {
    EXPLAIN_GAPS,                /* between operations: the executor's overhead */
    EXPLAIN_MEMBERS,             /* members of collectives that came later after the others than predicted */
    EXPLAIN_COMPUTE_BESIDE_COPY, /* computations that overlap their device's copies for half of their time or more */
    EXPLAIN_COMPUTE_ALONE,       /* other computations on devices */
    EXPLAIN_COPY_SMALL,          /* latency is half of their time or more */
    EXPLAIN_COPY_SHARED,         /* others that share a link for half of their time or more */
    EXPLAIN_COPY_BESIDE_COMPUTE, /* others that overlap their device's computations for half of their time or more */
    EXPLAIN_COPY_ALONE,          /* other copies between host and devices */
    EXPLAIN_COPY_PEERS,          /* copies between devices */
    EXPLAIN_CPU,                 /* the host's: optimizers, embeddings */
    EXPLAIN_STORAGE_COPY,
    EXPLAIN_FILES,               /* between files and host memory */
    EXPLAIN_COLLECTIVE,
    EXPLAIN_BATCH,               /* reading of batches */
    EXPLAIN_CAUSE_COUNT
};
extern const char *const explain_cause_names[EXPLAIN_CAUSE_COUNT];
extern const char *const explain_cause_remedies[EXPLAIN_CAUSE_COUNT]; /* help if the cause was slower */

struct explain_cause_part {
    double seconds;                  /* of the difference of makespans */
    double predicted_s, measured_s;  /* of its operations; of gaps only measured_s; of members the waits for them */
    uint64_t operations;
    uint64_t bytes;                  /* of copies only */
};

struct explain_causes {
    double predicted_s, measured_s;  /* makespans */
    struct explain_cause_part parts[EXPLAIN_CAUSE_COUNT];
    double rest_s;                   /* operations that began too early by the trace's clocks */
};

/*
 * Splits the difference. `promised` are the times of the predicted trace, which ends at predicted_s; `measured` is of
 * `plan`, complete and with spans. Errors: STATUS_BAD_INPUT if it is not.
 */
MUST_CHECK enum status explain_causes_find(const struct plan *plan, const struct explain_times *promised,
                                           double predicted_s,
                                           const struct trace *measured, struct explain_causes *out, struct error *err);

#endif
