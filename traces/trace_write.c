/* A trace in memory, written as one that comes span by span (trace_writer.c). */
#include "base/try.h"
#include "traces/trace_writer.h"

static enum status write_all(struct trace_writer *writer, const struct trace *trace, struct error *err)
{
    enum status status = trace_writer_begin(writer, trace, err);
    if (status != STATUS_OK) {
        trace_writer_discard(writer);
        return status;
    }
    for (uint64_t i = 0; i < trace->span_count; i++) trace_writer_span(writer, &trace->spans[i]);
    for (uint64_t i = 0; i < trace->level_count; i++) trace_writer_level(writer, &trace->levels[i]);
    return trace_writer_commit(writer, trace, err);
}

enum status trace_write(const struct trace *trace, const char *path, struct error *err)
{
    struct trace_writer *writer;
    enum status status = trace_check(trace, err);
    if (status != STATUS_OK) return error_add(err, "the trace for '%s'", path);
    TRY(trace_writer_create(path, &writer, err));
    return write_all(writer, trace, err);
}
