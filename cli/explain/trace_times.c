/* An awaited operation is earlier in the order of ends, so following the waits terminates. */
#include "cli/explain/trace_times.h"

#include <stdlib.h>

#include "base/extreme.h"
#include "base/try.h"
#include "sim/engine/allocate.h"

/* Closer ends are equal; at most this many are inspected. */
static const double same_s = 1e-6;
enum { ALIKE_MOST = 64 };

struct ended {
    double end_s;
    uint64_t span;
};

static int by_end(const void *left, const void *right)
{
    const struct ended *a = left, *b = right;
    if (a->end_s < b->end_s || a->end_s > b->end_s) return a->end_s < b->end_s ? -1 : 1;
    return (a->span > b->span) - (a->span < b->span);
}

/* Counts ended[0 .. below) up to this time. */
static uint64_t count_ended(const struct ended *ended, uint64_t below, double time_s)
{
    uint64_t first = 0;
    while (first < below) {
        uint64_t middle = first + (below - first) / 2;
        if (ended[middle].end_s <= time_s) first = middle + 1;
        else below = middle;
    }
    return first;
}

static uint32_t closeness(const struct trace *trace, const struct trace_span *a, const struct trace_span *b)
{
    bool device = trace->streams[a->stream].device == trace->streams[b->stream].device;
    return (a->stream == b->stream ? 4u : 0u) + (device ? 2u : 0u) + (a->job == b->job ? 1u : 0u);
}

/* Returns EXPLAIN_NOBODY if none had ended. */
static uint64_t awaited_by(const struct trace *trace, const struct ended *ended, uint64_t at)
{
    const struct trace_span *span = &trace->spans[ended[at].span];
    uint64_t count = count_ended(ended, at, span->start_s);
    if (count == 0) return EXPLAIN_NOBODY;
    uint64_t best = count - 1;
    for (uint64_t i = best; i-- > 0 && count - i <= ALIKE_MOST && ended[i].end_s >= ended[count - 1].end_s - same_s;)
        if (closeness(trace, &trace->spans[ended[i].span], span) > closeness(trace, &trace->spans[ended[best].span], span))
            best = i;
    return ended[best].span;
}

/* Returns the number of operations with a duration. *begin_s: the earliest begin. */
static uint64_t sort_by_end(const struct trace *trace, struct ended *ended, double *begin_s)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i];
        if (!(span->end_s > span->start_s)) continue;
        *begin_s = count == 0 ? span->start_s : min_s(*begin_s, span->start_s);
        ended[count++] = (struct ended){span->end_s, i};
    }
    qsort(ended, count, sizeof *ended, by_end);
    return count;
}

static enum status allocate_arrays(uint64_t count, struct arena *arena, struct explain_times *times,
                                   struct explain_schedule *schedule, struct error *err)
{
    enum status status = STATUS_OK;
    *times = (struct explain_times){.count = count,
                                    .seconds = sim_allocate(arena, count, sizeof(double), &status, err),
                                    .gap_s = sim_allocate(arena, count, sizeof(double), &status, err),
                                    .alone_s = sim_allocate(arena, count, sizeof(double), &status, err)};
    *schedule = (struct explain_schedule){.end_s = sim_allocate(arena, count, sizeof(double), &status, err),
                                          .decisive = sim_allocate(arena, count, sizeof(uint64_t), &status, err)};
    return status;
}

enum status explain_trace_times(const struct trace *trace, struct arena *arena, struct explain_times *times,
                                struct explain_schedule *schedule, struct error *err)
{
    enum status status = STATUS_OK;
    double begin_s = 0;
    struct ended *ended = sim_allocate(arena, trace->span_count, sizeof *ended, &status, err);
    if (status) return status;
    uint64_t count = sort_by_end(trace, ended, &begin_s);
    if (count == 0) return error_set(err, STATUS_BAD_INPUT, "the trace has no operations that last");
    TRY(allocate_arrays(trace->span_count, arena, times, schedule, err));
    for (uint64_t at = 0; at < count; at++) {
        uint64_t i = ended[at].span, awaited = awaited_by(trace, ended, at);
        const struct trace_span *span = &trace->spans[i];
        double ready_s = awaited == EXPLAIN_NOBODY ? begin_s : trace->spans[awaited].end_s;
        times->seconds[i] = times->alone_s[i] = span->end_s - span->start_s;
        times->gap_s[i] = span->start_s - ready_s;
        schedule->end_s[i] = span->end_s - begin_s;
        schedule->decisive[i] = awaited;
    }
    schedule->last = ended[count - 1].span;
    schedule->makespan_s = ended[count - 1].end_s - begin_s;
    return STATUS_OK;
}
