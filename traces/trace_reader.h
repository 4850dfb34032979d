/*
 * Reads traces span by span. Memory holds everything except spans and levels, for a trace of any length.
 *
 *     trace_reader_open -> trace_reader_span until there are no more -> trace_reader_level likewise -> close
 *
 * Reading checks everything that trace_check() checks; totals are checked at the end of the levels.
 */
#ifndef SPILLWAY_TRACES_TRACE_READER_H
#define SPILLWAY_TRACES_TRACE_READER_H

#include "traces/trace.h"

struct trace_reader; /* opaque */

/* Opens a trace. The caller frees *out with trace_reader_close(). Errors of all functions: as trace_read(). */
MUST_CHECK enum status trace_reader_open(const char *path, struct trace_reader **out, struct error *err);

/* Returns the trace without spans and levels. Borrowed. */
const struct trace *trace_reader_head(const struct trace_reader *reader);

void trace_reader_close(struct trace_reader *reader); /* NULL does nothing */

/* Reads and checks the rest. *span_count is the number of all spans. */
MUST_CHECK enum status trace_reader_finish(struct trace_reader *reader, uint64_t *span_count, struct error *err);

/* A part of a trace; all 0: the whole trace. */
struct trace_part {
    double from_s, to_s;   /* spans that overlap this window; to_s 0: to the end */
    uint64_t minibatches;  /* only the first minibatches of each job, and levels up to their end; 0: all */
};

/*
 * Reads a trace and checks all of it, but keeps only this part; memory grows with the part. Totals of jobs and places
 * count the whole trace. It keeps the levels within the window and, for each place, the last level before it. The
 * caller zeroes *out, and releases it with trace_release() also after an error.
 */
MUST_CHECK enum status trace_read_part(const char *path, const struct trace_part *part, struct trace *out,
                                       struct error *err);

#endif
