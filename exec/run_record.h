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

/* `span`: times in seconds from the start of the run. Bytes of device memory that the operation
 * took when it started and gave back when it ended, on `device`. */
void run_record_add(struct run_record *record, const struct trace_span *span, uint32_t device,
                    uint64_t acquired_bytes, uint64_t released_bytes);

/* Fill in the trace: levels, peaks, makespan, times of jobs. */
void run_record_finish(struct run_record *record);

#endif
