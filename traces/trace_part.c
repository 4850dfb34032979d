/* Traces, or parts of them, read into memory. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "traces/trace_reader.h"

struct gathered {
    struct trace_span *spans;
    struct trace_level *levels;
    size_t span_count, span_capacity, level_count, level_capacity;
};

static enum status gather_spans(struct trace_reader *s, struct gathered *all, struct error *err)
{
    for (;;) {
        bool more;
        struct trace_span span;
        enum status status = trace_reader_span(s, &span, &more, err);
        if (status != STATUS_OK || !more) return status;
        status = array_reserve(&all->spans, &all->span_capacity, all->span_count, sizeof span, TRACE_SPANS_MAX, "spans",
                               err);
        if (status != STATUS_OK) return status;
        all->spans[all->span_count++] = span;
    }
}

static enum status gather_levels(struct trace_reader *s, struct gathered *all, struct error *err)
{
    for (;;) {
        bool more;
        struct trace_level level;
        enum status status = trace_reader_level(s, &level, &more, err);
        if (status != STATUS_OK || !more) return status;
        TRY(array_reserve(&all->levels, &all->level_capacity, all->level_count, sizeof level, TRACE_LEVELS_MAX,
                          "memory levels", err));
        all->levels[all->level_count++] = level;
    }
}

/* Gives the arena an array that fits; *items stays the caller's on failure. */
static enum status adopt(struct arena *arena, void *items, size_t bytes, struct error *err)
{
    void *array;
    memcpy(&array, items, sizeof array);
    if (bytes == 0) return STATUS_OK;
    void *fitting = alloc_resize(array, bytes);
    if (!fitting) return error_memory(err, "a trace", bytes);
    memcpy(items, &fitting, sizeof fitting);
    return arena_adopt(arena, fitting, bytes, err);
}

/* The trace takes the arrays over. */
static enum status keep(struct trace *trace, struct gathered *all, struct error *err)
{
    TRY(adopt(&trace->arena, &all->spans, all->span_count * sizeof *all->spans, err));
    if (all->span_count > 0) {
        trace->spans = all->spans;
        all->spans = NULL;
    }
    trace->span_count = all->span_count;
    TRY(adopt(&trace->arena, &all->levels, all->level_count * sizeof *all->levels, err));
    if (all->level_count > 0) {
        trace->levels = all->levels;
        all->levels = NULL;
    }
    trace->level_count = all->level_count;
    return STATUS_OK;
}

/* Takes the reader over, also on failure. */
static enum status read_part(struct trace_reader *s, struct trace *out, struct error *err)
{
    struct gathered all = {0};
    enum status status = gather_spans(s, &all, err);
    if (status == STATUS_OK) status = gather_levels(s, &all, err);
    trace_reader_take_head(s, out);
    if (status == STATUS_OK) status = keep(out, &all, err);
    free(all.spans);
    free(all.levels);
    trace_reader_close(s);
    return status;
}

enum status trace_read_part(const char *path, const struct trace_part *part, struct trace *out, struct error *err)
{
    struct trace_reader *s;
    TRY(trace_reader_open(path, part, &s, err));
    return read_part(s, out, err);
}

enum status trace_read(const char *path, struct trace *out, struct error *err)
{
    return trace_read_part(path, NULL, out, err);
}

enum status trace_parse(const char *name, const char *text, size_t length, struct trace *out, struct error *err)
{
    struct trace_reader *s;
    TRY(trace_reader_of_text(name, text, length, NULL, &s, err));
    return read_part(s, out, err);
}
