/*
 * The critical path of a trace without a plan. Dependencies are guessed: an operation waited for the last that ended
 * before it began, which is good if some operation always runs. Among ends within a microsecond, its stream's is
 * preferred, then its device's, then its job's. Operations of no duration are skipped.
 */
#ifndef SPILLWAY_CLI_EXPLAIN_TRACE_PATH_H
#define SPILLWAY_CLI_EXPLAIN_TRACE_PATH_H

#include "cli/explain/critical_path.h"
#include "traces/trace_reader.h"

enum { EXPLAIN_WINDOW_SPANS = 1 << 16, EXPLAIN_ALIKE_MOST = 64 };

/*
 * Reads the trace once, and once more in windows from its end to its begin. A window has about `window_spans` spans (at
 * least EXPLAIN_ALIKE_MOST), or more where shorter windows do not help; a trace without an index is one window. The
 * time without contention is set to the measured time. `name` stands for the file in messages. Arrays of *out live as
 * long as `arena`. Errors: as trace_reader_span(); STATUS_BAD_INPUT if no operation has a duration.
 */
MUST_CHECK enum status explain_trace_path(struct trace_reader *reader, const char *name, uint64_t window_spans,
                                          struct arena *arena, struct explain_path *out, struct error *err);

#endif
