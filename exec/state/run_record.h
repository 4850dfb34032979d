/*
 * Records a run: spans, memory levels, bounds, by one call per ended operation, in plan order. Memory does not grow
 * with the run, unless the trace keeps spans.
 */
#ifndef SPILLWAY_EXEC_STATE_RUN_RECORD_H
#define SPILLWAY_EXEC_STATE_RUN_RECORD_H

#include "planner/plan.h"
#include "traces/trace_writer.h"

struct run_record; /* opaque */

/* Prepares the zeroed `trace`, which keeps spans and levels if `spans` is true. `writer` gets them too; it may be
 * NULL. The caller frees the record with run_record_destroy(). */
MUST_CHECK enum status run_record_create(const struct plan *plan, bool spans, struct trace_writer *writer,
                                         struct trace *trace, struct run_record **out, struct error *err);
void run_record_destroy(struct run_record *record); /* NULL does nothing */

/* Memory acquired at an operation's start and released at its end. Times count from the start of the run. */
struct run_slots {
    double start_s, end_s;
    uint32_t device;
    uint64_t acquired_bytes, released_bytes;
};

/* What an operation leaves for the record when it has ended. */
struct run_ended {
    struct run_slots slots[2]; /* of its device, and of the one that it copied from */
    struct trace_span span; /* its number holds in any case */
    uint32_t slot_count;
    bool has_span; /* false: it was left out */
};
void run_record_ended(struct run_record *record, const struct run_ended *ended);

/* Sums a stream's (plan_stream()) time so far. */
double run_record_busy_s(const struct run_record *record, uint32_t stream);

/* Fills in the trace: levels, peaks, makespan, times of jobs. Errors that concern only the writer are given to it. */
MUST_CHECK enum status run_record_finish(struct run_record *record, struct error *err);

#endif
