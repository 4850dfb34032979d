/*
 * Traces that are written span by span, while a run goes on. Memory does not grow with the number of spans and levels.
 *
 *     trace_writer_create -> trace_writer_begin -> trace_writer_span, trace_writer_level ... -> trace_writer_total
 *     -> trace_writer_commit
 *
 * The file is there whole or not at all (base/files/file.h). Everything is checked on the way as trace_check() does.
 */
#ifndef SPILLWAY_TRACES_TRACE_WRITER_H
#define SPILLWAY_TRACES_TRACE_WRITER_H

#include "base/json/json_out.h"
#include "traces/trace.h"

struct trace_writer; /* opaque */

/* The caller ends *out with trace_writer_commit() or trace_writer_discard(). Errors: as file_out_create(). */
MUST_CHECK enum status trace_writer_create(const char *path, struct trace_writer **out, struct error *err);

/* Takes over the streams, jobs and names of places from `trace`, which must outlive the writer. */
MUST_CHECK enum status trace_writer_begin(struct trace_writer *writer, const struct trace *trace, struct error *err);

/* Write the next span, in the order of numbers, and the next level, in the order of time. Both may take turns. The
 * first error is remembered and reported by trace_writer_commit(). */
void trace_writer_span(struct trace_writer *writer, const struct trace_span *span);
void trace_writer_level(struct trace_writer *writer, const struct trace_level *level);

/* Remembers that the trace cannot be written, as if it were an error of a span. */
void trace_writer_fail(struct trace_writer *writer, const struct error *err);

/* Writes capacities and peaks of all places as "places". */
void trace_writer_places(const struct trace *trace, struct json_out *out);

/* Fills in makespan and times of jobs from the spans that were written; without spans changes nothing. */
void trace_writer_total(const struct trace_writer *writer, struct trace *trace);

/* Writes the rest of the file from `trace`: peaks, jobs and what else is known at the end. The writer is freed, also
 * after an error; no file is left then. Errors: STATUS_CHECK; as file_out_commit(). */
MUST_CHECK enum status trace_writer_commit(struct trace_writer *writer, const struct trace *trace, struct error *err);
void trace_writer_discard(struct trace_writer *writer); /* NULL does nothing */

#endif
