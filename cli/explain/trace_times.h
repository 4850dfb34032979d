/*
 * Dependencies guessed from a trace without a plan: an operation waited for the last that ended before it began, which
 * is good if some operation always runs. Among ends within a microsecond, its stream's is preferred, then its
 * device's, then its job's. Operations of no duration are skipped.
 */
#ifndef SPILLWAY_CLI_EXPLAIN_TRACE_TIMES_H
#define SPILLWAY_CLI_EXPLAIN_TRACE_TIMES_H

#include "cli/explain/explain_schedule.h"

/*
 * Fills arrays indexed by trace->spans, for explain_path_find(). The time without contention is set to the measured
 * time. Arrays live as long as `arena`. Errors: STATUS_BAD_INPUT if no operation has a duration.
 */
MUST_CHECK enum status explain_trace_times(const struct trace *trace, struct arena *arena, struct explain_times *times,
                                           struct explain_schedule *schedule, struct error *err);

#endif
