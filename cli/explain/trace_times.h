/*
 * Dependencies guessed from a trace without a plan: an operation waited for the operation that ended last before it
 * began.
 *
 * The guess is good if some operation always runs. Among operations that ended within a microsecond of each other, one
 * on the same stream is preferred, then one on the same device, then one of the same job. Operations of no duration are
 * skipped. The run had more dependencies than these, but they decided no begin, unless they ended at the same time.
 */
#ifndef SPILLWAY_CLI_EXPLAIN_TRACE_TIMES_H
#define SPILLWAY_CLI_EXPLAIN_TRACE_TIMES_H

#include "cli/explain/explain_schedule.h"

/*
 * Fills arrays indexed by trace->spans, for explain_path_find(). The time without contention is unknown and set to the
 * measured time. Arrays live as long as `arena`. Errors: STATUS_BAD_INPUT if no operation has a duration.
 */
MUST_CHECK enum status explain_trace_times(const struct trace *trace, struct arena *arena, struct explain_times *times,
                                           struct explain_schedule *schedule, struct error *err);

#endif
