/*
 * Traces that are read span by span. Memory holds the head, the index and, of a window, a level of each place, however
 * long the trace is.
 *
 *     trace_reader_open -> trace_reader_span until there are no more -> trace_reader_level likewise -> close
 *
 * Everything that is read is checked as trace_check() does; totals are checked at the end of the levels. With a part,
 * an index (traces/trace_index.h) spares reading the rest of the trace; without an index all of it is read and checked.
 */
#ifndef SPILLWAY_TRACES_TRACE_READER_H
#define SPILLWAY_TRACES_TRACE_READER_H

#include "traces/trace.h"

struct trace_reader; /* opaque */

/* A part of a trace. All 0: all of it. */
struct trace_part {
    double from_s, to_s;   /* spans that overlap this window; to_s 0: up to the end */
    uint64_t minibatches;  /* only the first ones of each job, and levels up to the last end of these; 0: all */
};

/* Opens a trace. `part` may be NULL: all of it. The caller frees *out with trace_reader_close(). All
 * functions return the errors of trace_read(). */
MUST_CHECK enum status trace_reader_open(const char *path, const struct trace_part *part, struct trace_reader **out,
                                         struct error *err);

/* Works as trace_reader_open() on a text in memory, which is borrowed; `name` stands for the file in messages. */
MUST_CHECK enum status trace_reader_of_text(const char *name, const char *text, size_t length,
                                            const struct trace_part *part, struct trace_reader **out,
                                            struct error *err);

/* Reads from a trace in memory, which is borrowed and was checked. */
MUST_CHECK enum status trace_reader_of(const struct trace *trace, struct trace_reader **out, struct error *err);

/* Returns the trace; for a file it has no spans and levels. Borrowed. Totals of jobs and places count the whole
 * trace. */
const struct trace *trace_reader_head(const struct trace_reader *reader);

/* Returns true if the number of all spans and levels is known before they are read; it is in *spans and *levels
 * then. */
bool trace_reader_counts(const struct trace_reader *reader, uint64_t *spans, uint64_t *levels);

/* Reads the next span. *more is false at the end, and *out untouched. */
MUST_CHECK enum status trace_reader_span(struct trace_reader *reader, struct trace_span *out, bool *more,
                                         struct error *err);

/* Reads the next level, after the last span. A window has the levels within it and the last earlier one of each
 * place. */
MUST_CHECK enum status trace_reader_level(struct trace_reader *reader, struct trace_level *out, bool *more,
                                          struct error *err);

/* Gives the caller the head, who releases it with trace_release(). The reader can only be closed then. */
void trace_reader_take_head(struct trace_reader *reader, struct trace *out);

/* Goes back to the first span. */
MUST_CHECK enum status trace_reader_rewind(struct trace_reader *reader, struct error *err);

/* Goes back to the first span of another part (NULL: all); of a trace in memory all levels belong to a part. */
MUST_CHECK enum status trace_reader_part(struct trace_reader *reader, const struct trace_part *part, struct error *err);

void trace_reader_close(struct trace_reader *reader); /* NULL does nothing */

/* Reads everything that is left, to check it. *span_count is the number of all spans that were read. */
MUST_CHECK enum status trace_reader_finish(struct trace_reader *reader, uint64_t *span_count, struct error *err);

/*
 * Reads a part of a trace into memory, which grows with the part. Zeroed struct in; release with trace_release(), also
 * after an error.
 */
MUST_CHECK enum status trace_read_part(const char *path, const struct trace_part *part, struct trace *out,
                                       struct error *err);

#endif
