/*
 * What a trace alone says of what waited for what: an operation waited for the one that ended last before it began.
 *
 * Without a plan that is a guess, and a good one where something always runs: of operations that ended within a
 * microsecond of each other one on its own stream is preferred, then one on its device, then one of its job. Operations
 * that take no time are passed over. A trace has more dependencies than that, but none of those decided a begin, unless
 * what it waited for ended at the same time.
 */
#ifndef SPILLWAY_EXPLAIN_TRACE_TIMES_H
#define SPILLWAY_EXPLAIN_TRACE_TIMES_H

#include "cli/explain/explain_schedule.h"

/*
 * By place in trace->spans, for explain_path_find(). What operations would take alone is not known: as long as they did.
 * Arrays live as long as `arena`. Errors: STATUS_BAD_INPUT for a trace without operations that last; STATUS_NO_MEMORY.
 */
MUST_CHECK enum status explain_trace_times(const struct trace *trace, struct arena *arena, struct explain_times *times,
                                           struct explain_schedule *schedule, struct error *err);

#endif
