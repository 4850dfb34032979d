/*
 * Traces that are read span by span. Memory holds what is not spans or levels, however long the trace is.
 *
 *     trace_reader_open -> trace_reader_span until there are no more -> trace_reader_level likewise -> close
 *
 * Everything is checked on the way as trace_check() does; totals are checked at the end of the levels.
 */
#ifndef SPILLWAY_TRACES_TRACE_READER_H
#define SPILLWAY_TRACES_TRACE_READER_H

#include "traces/trace.h"

struct trace_reader; /* opaque */

/* The caller frees *out with trace_reader_close(). Errors of all: those of trace_read(). */
MUST_CHECK enum status trace_reader_open(const char *path, struct trace_reader **out, struct error *err);

/* The same from memory; `text` is borrowed, `name` stands for the file in messages. */
MUST_CHECK enum status trace_reader_of_text(const char *name, const char *text, size_t length,
                                            struct trace_reader **out, struct error *err);

/* The trace without spans and levels. Borrowed. */
const struct trace *trace_reader_head(const struct trace_reader *reader);

/* *more is false at the end, and *out untouched. */
MUST_CHECK enum status trace_reader_span(struct trace_reader *reader, struct trace_span *out, bool *more,
                                         struct error *err);

/* After the last span. */
MUST_CHECK enum status trace_reader_level(struct trace_reader *reader, struct trace_level *out, bool *more,
                                          struct error *err);

void trace_reader_close(struct trace_reader *reader); /* NULL is fine */

/* Reads everything that is left, to check it. *span_count is the number of all spans. */
MUST_CHECK enum status trace_reader_finish(struct trace_reader *reader, uint64_t *span_count, struct error *err);

/* A part of a trace. All 0: all of it. */
struct trace_part {
    double from_s, to_s;   /* spans that overlap this window; to_s 0: up to the end */
    uint64_t minibatches;  /* only the first ones of each job, and levels up to the last end of these; 0: all */
};

/*
 * Reads a trace and checks all of it, but keeps only this part: memory grows with the part. Totals of jobs and places
 * are those of the whole. The levels are those within the window and, of each place, the last before it.
 * Zeroed struct in; release with trace_release(), also after an error.
 */
MUST_CHECK enum status trace_read_part(const char *path, const struct trace_part *part, struct trace *out,
                                       struct error *err);

#endif
