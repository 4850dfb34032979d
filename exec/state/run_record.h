/*
 * Records a run: spans, memory levels, bounds. One call per operation, in plan order, after it has
 * ended. Memory does not grow with the run, unless the trace keeps spans.
 */
#ifndef SPILLWAY_EXEC_STATE_RUN_RECORD_H
#define SPILLWAY_EXEC_STATE_RUN_RECORD_H

#include "planner/plan.h"
#include "traces/trace_writer.h"

struct run_record; /* opaque */

/* Creates a record and prepares the zeroed `trace`, which keeps spans and levels if `spans` is true. `writer` gets
 * them, too; it may be NULL. Without both only totals are kept. The caller frees the record with
 * run_record_destroy(). */
MUST_CHECK enum status run_record_create(const struct plan *plan, bool spans, struct trace_writer *writer,
                                         struct trace *trace, struct run_record **out, struct error *err);
void run_record_destroy(struct run_record *record); /* NULL does nothing */

/* Times are seconds from the start of the run. */
void run_record_span(struct run_record *record, const struct trace_span *span);

/* Device memory that an operation acquired at its start and released at its end. */
struct run_slots {
    double start_s, end_s;
    uint32_t device;
    uint64_t acquired_bytes, released_bytes;
};
void run_record_slots(struct run_record *record, const struct run_slots *slots);

/* Returns the seconds that operations of a stream (plan_stream()) have taken so far. */
double run_record_busy_s(const struct run_record *record, uint32_t stream);

/* Fills in the trace: levels, peaks, makespan, times of jobs. Errors of what only the writer needs are given to the
 * writer. */
MUST_CHECK enum status run_record_finish(struct run_record *record, struct error *err);

#endif
