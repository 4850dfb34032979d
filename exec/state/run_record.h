/*
 * What a run writes down of itself: spans, memory levels, bounds. One call per operation, in plan
 * order, once it has ended; nothing is allocated between create and finish.
 */
#ifndef SPILLWAY_EXEC_RUN_RECORD_H
#define SPILLWAY_EXEC_RUN_RECORD_H

#include "planner/plan.h"
#include "traces/trace.h"

struct run_record; /* opaque */

/* Prepares `trace` (zeroed) as well. With `spans` false only totals are kept. The caller frees it
 * with run_record_destroy(). */
MUST_CHECK enum status run_record_create(const struct plan *plan, bool spans, struct trace *trace,
                                         struct run_record **out, struct error *err);
void run_record_destroy(struct run_record *record); /* NULL is fine */

/* Times are seconds from the start of the run. */
void run_record_span(struct run_record *record, const struct trace_span *span);

/* Device memory that an operation took when it started and gave back when it ended. */
struct run_slots {
    double start_s, end_s;
    uint32_t device;
    uint64_t acquired_bytes, released_bytes;
};
void run_record_slots(struct run_record *record, const struct run_slots *slots);

/* Seconds that operations of a stream (plan_stream()) have taken so far. */
double run_record_busy_s(const struct run_record *record, uint32_t stream);

/* Fill in the trace: levels, peaks, makespan, times of jobs. */
void run_record_finish(struct run_record *record);

#endif
