/*
 * The path goes back in time, so a window of the trace is held at a time:
 *
 *     from_s                          to_s
 *       | spans that end in the window |    at: began at to_s, or earlier
 *
 * The operation that `at` waited for has the latest end up to the begin of `at`. It is known if the window has it and
 * all ends within a microsecond of it. Otherwise the window moves to the begin of `at`. Its length follows the number
 * of spans that the last windows had.
 *
 * An awaited operation is earlier in the order of ends, so following the waits terminates.
 */
#include "cli/explain/trace_path.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/extreme.h"
#include "base/try.h"

/* Closer ends are equal; at most EXPLAIN_ALIKE_MOST are inspected. */
static const double same_s = 1e-6;

/* About the most windows. A file whose spans are in no order of time is read once for each. */
enum { WINDOWS_MOST = 64 };
enum { LENGTHS_TRIED = 40 };

struct ended {
    double start_s, end_s;
    uint64_t number;
    uint32_t stream, job;
};

struct trace_path {
    struct trace_reader *reader;
    const struct trace *head;
    uint64_t window_spans;
    double begin_s;      /* of the first operation */
    struct ended last;   /* operation */
    uint64_t span_count; /* with a duration */
    double from_s;       /* of the window */
    double length_s;     /* of the next window */
    struct ended *items; /* sorted by end */
    size_t count, capacity;
};

static int by_end(const void *left, const void *right)
{
    const struct ended *a = left, *b = right;
    if (a->end_s < b->end_s || a->end_s > b->end_s) return a->end_s < b->end_s ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* --- the window ------------------------------------------------------------------------------ */

static enum status hold(struct trace_path *p, const struct ended *item, struct error *err)
{
    TRY(array_reserve(&p->items, &p->capacity, p->count, sizeof *item, TRACE_SPANS_MAX, "spans", err));
    p->items[p->count++] = *item;
    return STATUS_OK;
}

/* Reads the next operation that has a duration. */
static enum status next_operation(struct trace_path *p, struct ended *out, bool *more, struct error *err)
{
    struct trace_span span;
    do TRY(trace_reader_span(p->reader, &span, more, err));
    while (*more && !(span.end_s > span.start_s));
    if (*more)
        *out = (struct ended){.start_s = span.start_s, .end_s = span.end_s, .number = span.number,
                              .stream = span.stream,
                              .job = span.job};
    return STATUS_OK;
}

/* Reads and checks all of the trace. */
static enum status read_all(struct trace_path *p, const char *name, struct error *err)
{
    uint64_t spans, levels;
    bool holds = !trace_reader_counts(p->reader, &spans, &levels) || spans <= p->window_spans;
    TRY(trace_reader_part(p->reader, NULL, err));
    for (;;) {
        struct ended item;
        bool more;
        TRY(next_operation(p, &item, &more, err));
        if (!more) break;
        p->begin_s = p->span_count == 0 ? item.start_s : min_s(p->begin_s, item.start_s);
        if (p->span_count++ == 0 || by_end(&item, &p->last) > 0) p->last = item;
        if (holds) TRY(hold(p, &item, err));
    }
    TRY(trace_reader_finish(p->reader, &spans, err));
    if (p->span_count == 0) return error_set(err, STATUS_BAD_INPUT, "%s: the trace has no operations that last", name);
    if (p->count > 0) qsort(p->items, p->count, sizeof *p->items, by_end);
    p->from_s = holds ? 0 : HUGE_VAL;
    if (p->window_spans < spans / WINDOWS_MOST) p->window_spans = spans / WINDOWS_MOST;
    p->length_s = (p->last.end_s - p->begin_s) * (double)p->window_spans / (double)p->span_count;
    return STATUS_OK;
}

/* Holds the operations that end in the window; stops with *full if they are more than `most`. */
static enum status load(struct trace_path *p, double from_s, double to_s, uint64_t most, bool *full, struct error *err)
{
    *full = false;
    p->count = 0;
    p->from_s = from_s;
    TRY(trace_reader_part(p->reader, &(struct trace_part){.from_s = from_s, .to_s = to_s}, err));
    for (;;) {
        struct ended item;
        bool more;
        TRY(next_operation(p, &item, &more, err));
        if (!more) break;
        if (item.end_s > to_s) continue;
        *full = p->count >= most;
        if (*full) return STATUS_OK;
        TRY(hold(p, &item, err));
    }
    if (p->count > 0) qsort(p->items, p->count, sizeof *p->items, by_end);
    return STATUS_OK;
}

/* Returns true if no operation before the window can be one of the last of these `count` or within a microsecond. */
static bool is_known(const struct trace_path *p, size_t count)
{
    if (!(p->from_s > p->begin_s) || count >= EXPLAIN_ALIKE_MOST) return true;
    return count > 0 && p->items[count - 1].end_s - same_s >= p->from_s;
}

/* Moves the window to the latest ends up to to_s: doubles its length, or halves steps between too short and too
 * long. */
static enum status move_window(struct trace_path *p, double to_s, struct error *err)
{
    double short_s = 0, long_s = HUGE_VAL;
    for (int tries = 0;; tries++) {
        bool full;
        TRY(load(p, max_s(to_s - p->length_s, 0), to_s, tries < LENGTHS_TRIED ? p->window_spans : UINT64_MAX, &full,
                 err));
        if (full) long_s = p->length_s;
        else if (is_known(p, p->count)) break;
        else short_s = p->length_s;
        p->length_s = long_s < HUGE_VAL ? (short_s + long_s) / 2 : 2 * p->length_s;
        if (tries + 1 >= LENGTHS_TRIED && long_s < HUGE_VAL) p->length_s = long_s;
    }
    if (p->count < p->window_spans / 4) p->length_s *= 2;
    return STATUS_OK;
}

/* --- the path -------------------------------------------------------------------------------- */

/* Counts the operations of the window that had ended by this time. */
static size_t count_ended(const struct trace_path *p, double time_s)
{
    size_t first = 0, below = p->count;
    while (first < below) {
        size_t middle = first + (below - first) / 2;
        if (p->items[middle].end_s <= time_s) first = middle + 1;
        else below = middle;
    }
    return first;
}

static uint32_t closeness(const struct trace *trace, const struct ended *a, const struct ended *b)
{
    bool device = trace->streams[a->stream].device == trace->streams[b->stream].device;
    return (a->stream == b->stream ? 4u : 0u) + (device ? 2u : 0u) + (a->job == b->job ? 1u : 0u);
}

/* Finds the operation that `at` waited for; *some is false if none had ended. */
static enum status find_awaited(struct trace_path *p, const struct ended *at, struct ended *out, bool *some,
                                struct error *err)
{
    size_t count = count_ended(p, at->start_s);
    if (!is_known(p, count)) {
        TRY(move_window(p, at->start_s, err));
        count = p->count;
    }
    *some = count > 0;
    if (count == 0) return STATUS_OK;
    const struct ended *items = p->items;
    size_t best = count - 1;
    for (size_t i = best;
         i-- > 0 && count - i <= EXPLAIN_ALIKE_MOST && items[i].end_s >= items[count - 1].end_s - same_s;)
        if (closeness(p->head, &items[i], at) > closeness(p->head, &items[best], at)) best = i;
    *out = items[best];
    return STATUS_OK;
}

static enum status follow(struct trace_path *p, struct explain_path *out, struct error *err)
{
    struct ended at = p->last, awaited;
    for (bool some = true; some; at = awaited) {
        TRY(find_awaited(p, &at, &awaited, &some, err));
        double seconds = at.end_s - at.start_s, ready_s = some ? awaited.end_s : p->begin_s;
        TRY(explain_path_step(out, &(struct explain_step){.stream = at.stream,
                                                          .job = at.job,
                                                          .seconds = seconds,
                                                          .alone_s = seconds,
                                                          .gap_s = at.start_s - ready_s,
                                                          .waited = some,
                                                          .awaited_stream = some ? awaited.stream : 0,
                                                          .awaited_s = some ? awaited.end_s - awaited.start_s : 0},
                              err));
    }
    return STATUS_OK;
}

enum status explain_trace_path(struct trace_reader *reader, const char *name, uint64_t window_spans,
                               struct arena *arena, struct explain_path *out, struct error *err)
{
    struct trace_path p = {.reader = reader, .head = trace_reader_head(reader), .window_spans = window_spans};
    assert(window_spans >= EXPLAIN_ALIKE_MOST);
    enum status status = read_all(&p, name, err);
    if (status == STATUS_OK) status = explain_path_begin(p.head, p.last.end_s - p.begin_s, arena, out, err);
    if (status == STATUS_OK) status = follow(&p, out, err);
    if (status == STATUS_OK) explain_path_end(out);
    free(p.items);
    return status;
}
